"""A table of persons says on every answer which rows count: a fact of the policy."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from sulq import Category, Database, Number, Promise, Schema, col, count, histogram, mean, quantiles
from sulq.answers.statistics import per_person, total
from sulq.cli import app
from sulq.wire import answer_reply, sql_reply

SAID = "of each person at most 2 rows count"
OVER = "the true value over the rows that count"


def visits(rows_each: int, max_rows: int = 2) -> Database:
    """300 persons of so many rows."""
    frame = pd.DataFrame(
        {
            "who": [n % 300 for n in range(300 * rows_each)],
            "age": [n % 90 for n in range(300 * rows_each)],
            "ward": ["a", "b", "c"] * (100 * rows_each),
        }
    )
    columns = (Number("age", 0, 100, step=1), Category("ward", ["a", "b", "c"]))
    schema = Schema(*columns, unit="who", max_rows=max_rows)
    return Database.open(frame, schema, Promise(1, 1e-6, queries=1000), ledger=":memory:")


QUESTIONS = [
    count(),
    count(where=col("ward") == "a"),
    total("age"),
    mean("age"),
    histogram("ward"),
    quantiles("age", [0.5]),
    per_person(total("age"), (0, 100)),
]


@pytest.mark.parametrize("rows_each", [1, 2, 7], ids=["none-cut", "at-most", "most-cut"])
def test_every_answer_says_what_counts_whether_or_not_a_row_was_cut(rows_each: int) -> None:
    with visits(rows_each) as db:
        for asked in QUESTIONS:
            assert db.quote(asked).notes == (SAID,)
            found = db.ask(asked)
            assert found.note.split("; ")[0] == SAID
            assert SAID in repr(found) and SAID in str(found)
            assert answer_reply(found).note.startswith(SAID)
            assert OVER in found.explain()
        for text in ("AVG(age)", "COUNT(*)", "MEDIAN(age)", "COUNT(*), MAX(age), AVG(age)"):
            result = db.sql(f"SELECT ward, {text} FROM t GROUP BY ward")
            assert result.notes[0] == SAID and result.notes.count(SAID) == 1
            assert f"[low, high] holds {OVER} at 95 %" in repr(result)
            assert sql_reply(result).notes[0] == SAID


def test_one_row_of_a_person_and_rows_that_are_protected_themselves() -> None:
    with visits(2, max_rows=1) as db:
        assert db.ask(count()).note == "of each person at most 1 row counts"
    frame = pd.DataFrame({"age": [20, 30]})
    schema = Schema(Number("age", 0, 100, step=1))
    with Database.open(frame, schema, Promise(1, 1e-6), ledger=":memory:") as db:
        found = db.ask(count(where=col("age") > 25))
        assert found.note == "" and OVER not in found.explain()
        assert "holds the true value at" in repr(db.sql("SELECT AVG(age) FROM t"))


def test_the_command_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    lines = ["who,age", *(f"{n % 40},{20 + n % 50}" for n in range(120))]
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "sulq.toml").write_text(
        f'[visits]\nsource = "{tmp_path}/visits.csv"\nledger = "{tmp_path}/visits.sqlite"\n'
        'unit = {column = "who", max_rows = 2}\n'
        "promise = {epsilon = 1, delta = 1e-6, queries = 100}\n"
        "columns.age = {number = [0, 100], step = 1}\n"
    )
    where = ["--policy", str(tmp_path / "sulq.toml")]
    published = CliRunner().invoke(app, ["publish", "visits", "--yes", *where])
    assert published.exit_code == 0, published.output
    for words in (["visits", "count"], ["SELECT AVG(age) FROM visits"]):
        found = CliRunner().invoke(app, ["ask", *words, *where])
        assert found.exit_code == 0, found.output
        assert SAID in found.output


def test_an_undeclared_value_shows_where_an_answer_is_printed() -> None:
    with visits(1, max_rows=1) as db:
        found = db.ask(count(where=col("ward") == "A"))
        assert "'A' is not a declared value of ward: no row can match" in repr(found)
