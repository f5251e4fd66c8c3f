"""Tables as JSON, CSV and Arrow: one answer, charged once, in the format that was asked for."""

from __future__ import annotations

import csv
import datetime
import io
from typing import Any

import pyarrow as pa
import pytest
from tests.server.conftest import new_key, served

from sulq import Category, Database, Number, Promise, Schema
from sulq.server.errors import HttpProblem
from sulq.server.limits import Settings
from sulq.server.routes.questions import ARROW, CSV, JSON, SPENT, chosen_format

ASKED = {"sql": "SELECT illness, COUNT(*) AS n FROM people WHERE age > 20 GROUP BY illness"}


def ask(server: Any, accept: str | None, key: str) -> Any:
    headers = {"Idempotency-Key": key} | ({} if accept is None else {"Accept": accept})
    return server.client().post("/v1/tables/people/sql", json=ASKED, headers=headers)


def test_one_key_has_one_answer_in_every_format_and_what_is_not_had_is_free(server):
    key = new_key()
    refused = ask(server, "image/png, text/html;q=0.5", key)
    assert (refused.status_code, refused.json()["code"]) == (406, "not_acceptable")
    assert refused.json()["credits_spent"] == 0 and server.database.left_for("analyst") == 40
    text = ask(server, CSV, key)
    assert text.headers["content-type"].startswith(CSV) and text.headers[SPENT] == "2"
    told = ask(server, None, key).json()
    assert server.database.left_for("analyst") == 38
    rows = list(csv.DictReader(io.StringIO(text.text, newline="")))
    assert list(rows[0]) == ["illness", "n", "n_low", "n_high"]
    assert [row["illness"] for row in rows] == [key or "" for key, _ in told["rows"]]
    assert [float(row["n_low"]) for row in rows] == [cell["low"] for _, cell in told["rows"]]
    stream = ask(server, ARROW, key)
    assert stream.headers["content-type"] == ARROW and stream.headers["vary"] == "Accept"
    table = pa.ipc.open_stream(stream.content).read_all()
    assert table.column_names == list(rows[0])
    assert table["n"].to_pylist() == [cell["value"] for _, cell in told["rows"]]
    assert table.schema.field("n").type == pa.float64()
    assert server.database.left_for("analyst") == 38


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        ("text/*", CSV),
        ("TEXT/CSV", CSV),
        ("text/csv;q=0.5, application/json;q=0.9", JSON),
        ("text/html, */*;q=0.1", JSON),
        ("application/json;q=0, text/csv;charset=utf-8", CSV),
        (ARROW, ARROW),
    ],
)
def test_the_format_that_is_liked_best_is_chosen(accept, media):
    assert chosen_format(accept) == media


@pytest.mark.parametrize("accept", ["text/html", "text/csv;q=0", "application/json;q=x", ";;"])
def test_what_is_not_had_is_refused(accept):
    with pytest.raises(HttpProblem) as refusal:
        chosen_format(accept)
    assert refusal.value.status == 406


def test_days_are_days_and_formulas_are_quoted(tmp_path, state):
    rows = {
        "seen": [datetime.date(2024, 1, 3), datetime.date(2024, 2, 5)] * 500,
        "site": ["=cmd()", "Oslo"] * 500,
    }
    schema = Schema(
        Number("seen", datetime.date(2024, 1, 1), datetime.date(2024, 12, 31)),
        Category("site", ["=cmd()", "Oslo"]),
    )
    asked = {"sql": "SELECT site, MEDIAN(seen) AS middle FROM visits GROUP BY site"}
    promise, ledger = Promise(50, "1e-6", 10), tmp_path / "visits.ledger"
    table = pa.table(rows)
    with (
        Database.open(table, schema, promise, ledger, name="visits", publish=True) as visits,
        served(tmp_path, Settings(pacing=False), visits=visits) as server,
    ):

        def sent(accept: str) -> Any:
            headers = {"Idempotency-Key": "the-only-key", "Accept": accept}
            path = "/v1/tables/visits/sql"
            return server.client("owner").post(path, json=asked, headers=headers)

        told = sent(JSON).json()
        assert [column["type"] for column in told["columns"]] == ["text", "date"]
        found = list(csv.DictReader(io.StringIO(sent(CSV).text, newline="")))
        assert [row["site"] for row in found[:2]] == ["'=cmd()", "Oslo"]
        days = [cell["value"] for _, cell in told["rows"][:2]]
        wanted = [datetime.date(1970, 1, 1) + datetime.timedelta(days=day) for day in days]
        assert [datetime.date.fromisoformat(row["middle"]) for row in found[:2]] == wanted
        arrow = pa.ipc.open_stream(sent(ARROW).content).read_all()
        assert arrow.schema.field("middle_low").type == pa.date32()
        assert arrow["middle"].to_pylist()[:2] == wanted
