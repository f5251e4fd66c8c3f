"""complete = true: SQL shows no group of NULL, and nothing else rests on that word."""

from __future__ import annotations

from typing import Any

import pandas
import pytest

from sulq import (
    Category,
    Database,
    Flag,
    InvalidQuery,
    Number,
    Promise,
    Schema,
    col,
    count,
    histogram,
)
from sulq.errors import Refused
from sulq.kernel.schema.columns import column_from_json, column_json
from sulq.policy.columns import ColumnPolicy

PROMISE = Promise(epsilon=1, delta=1e-6, queries=1000)
CITIES = ["Oslo", "Paris"]
TEXTS = (
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
    "SELECT age, ill, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY age, ill",
    "SELECT FLOOR(age / 2) * 2 AS band, COUNT(*) AS n FROM people GROUP BY 1",
    "SELECT city, ill, COUNT(*) AS n FROM people GROUP BY ROLLUP (city, ill)",
)


def schema(*, complete: bool, public: bool = False) -> Schema:
    return Schema(
        Number("age", 0, 3, step=1, complete=complete),
        Flag("ill", complete=complete),
        Category("city", CITIES, public=public, complete=complete),
        Category("note"),
    )


def people(missing: int = 0) -> pandas.DataFrame:
    """Rows of which so many hold nothing, or what was not declared."""
    rows: list[dict[str, Any]] = [
        {"age": at % 4, "ill": at % 3 == 0, "city": CITIES[at % 2], "note": "a"}
        for at in range(400)
    ]
    for at in range(missing):
        rows[at] |= {"age": None, "ill": None, "city": [None, "Bergen"][at % 2]}
    types = {"age": "Int64", "ill": "boolean", "city": "string"}
    return pandas.DataFrame(rows).astype(types)


def opened(data: pandas.DataFrame, **how: bool) -> Database:
    return Database.open(data, schema(**how), PROMISE, ":memory:", publish=True, name="people")


def values(result: Any) -> list[tuple[Any, ...]]:
    """Keys as they are, figures without their bars, which know how many rows there are."""
    return [
        tuple(cell.unrounded.value if hasattr(cell, "interval") else cell for cell in row)
        for row in result.rows
    ]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("public", [False, True])
def test_no_group_of_null_is_shown_and_such_rows_add_nothing(
    text: str, public: bool, quiet: Any
) -> None:
    """Whatever the rows hold: a table that keeps the word, and one that breaks it 100 times."""
    with (
        opened(people(), complete=False, public=public) as plain,
        opened(people(100), complete=True, public=public) as broken,
        opened(people().iloc[100:], complete=True, public=public) as rest,
    ):
        assert any(None in row for row in values(plain.sql(text)))
        kept = values(broken.sql(text))
        assert "ROLLUP" in text or not any(None in row for row in kept)
        assert kept == values(rest.sql(text))  # as if the rows were not there


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_price_and_bars_are_those_of_the_condition_written_out(text: str, neighbours: str) -> None:
    """No price, range or sensitivity knows the word: a neighbour may break it at any time."""
    promise = Promise(1, 1e-6, 1000, neighbours=neighbours)
    grouped = [name for name in ("city", "ill", "age") if name in text.partition("GROUP")[2]]
    grouped += ["age"] if "BY 1" in text else []
    tests = {"city": "city IN ('Oslo', 'Paris')", "ill": "ill IS NOT NULL"}
    where = " AND ".join(tests.get(name, "age IS NOT NULL") for name in sorted(grouped))
    written = text.replace(" GROUP", f" WHERE {where} GROUP")
    found = []
    for data, how, asked in (
        (people(), True, text),
        (people(1), True, text),
        (people(), False, written),
    ):
        with Database.open(data, schema(complete=how), promise, ":memory:", publish=True) as db:
            quote = db.quote_sql(asked, table="people")
            asked_for = [
                db.bind(question).text.replace("people", "") for question in quote.plan.questions
            ]
            found.append((quote.credits, quote.half_widths, asked_for))
    assert found[0] == found[1] == found[2]


def test_nothing_else_rests_on_it() -> None:
    """Python's questions, a count without groups and a public size are as before."""
    seen = []
    for how in (False, True):
        with opened(people(10), complete=how, public=True) as db:
            questions = [count(), count("age"), histogram("ill", other=True), histogram("city")]
            quotes = [db.quote(question) for question in questions]
            bound = [db.bind(question) for question in questions]
            seen.append(
                (
                    [quote.credits for quote in quotes],
                    [(one.text, one.terms, one.reach, one.sums) for one in bound],
                    db.ask(histogram("city")).value.tolist(),
                    db.quote_sql("SELECT COUNT(*) AS n FROM people WHERE city IS NULL").credits,
                )
            )
    assert seen[0] == seen[1]


def test_it_is_declared_and_stays_declared() -> None:
    for column in schema(complete=True).columns[:3]:
        assert column_from_json(column_json(column)) == column
        assert ColumnPolicy.of(column).column() == column
        assert ColumnPolicy.of(column).facts["complete"] is True
    plain = schema(complete=False).columns
    assert all("complete" not in column_json(column) for column in plain)  # as in old ledgers
    with pytest.raises(InvalidQuery, match="complete is for declared values"):
        Category("note", complete=True)
    with pytest.raises(InvalidQuery, match="complete must be true or false"):
        Flag("ill", complete=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidQuery, match="unknown \\['complete'\\]"):
        ColumnPolicy("note", {"text": True, "complete": True})


def test_it_cannot_be_amended(tmp_path: Any) -> None:
    ledger = tmp_path / "ledger"
    with (
        Database.open(people(), schema(complete=False), PROMISE, ledger, publish=True) as db,
        pytest.raises(Refused, match="SELECTs would change meaning"),
    ):
        db.ask(count(where=col("age") > 1))
        db.amend(schema=schema(complete=True), source=people())
