"""Tables as JSON, CSV and Arrow: one answer, charged once, in the format that was asked for."""

from __future__ import annotations

import csv
import io
from typing import Any

import pyarrow as pa
import pytest
from tests.server.conftest import new_key

from sulq.server.errors import HttpProblem
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
