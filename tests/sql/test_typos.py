"""Slips of the pen: what was perhaps meant is offered, if it would be answered."""

from __future__ import annotations

import pytest

from sulq import Category, Database, Flag, InvalidQuery, Number, Promise, Schema
from sulq.sql.plan.typos import respelled, revalued

SCHEMA = Schema(Number("age", 0, 99, step=1), Category("region", ["North", "O'Hara"]), Flag("ill"))


@pytest.fixture(scope="module")
def database() -> Database:
    rows = {"age": [30, 40] * 50, "region": ["North"] * 100, "ill": [True, False] * 50}
    import pandas as pd

    return Database.open(
        pd.DataFrame(rows), SCHEMA, Promise(1, "1e-6"), ledger=":memory:", name="people"
    )


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("SELEC COUNT(*) FROM people", "SELECT COUNT(*) FROM people"),
        ("SELECT CUONT(*) FROM people", "SELECT COUNT(*) FROM people"),
        ("SELECT COUNT(*) FROM people WERE age > 3", "SELECT COUNT(*) FROM people WHERE age > 3"),
        ("SELCT AVG(agee) FORM people", "SELECT AVG(age) FROM people"),
        (
            "SELECT region, COUNT(*) FROM people GRUOP BY region",
            "SELECT region, COUNT(*) FROM people GROUP BY region",
        ),
    ],
)
def test_a_slip_comes_with_what_was_meant(database: Database, slip: str, meant: str) -> None:
    with pytest.raises(InvalidQuery) as refused:
        database.quote_sql(slip)
    assert meant in refused.value.alternatives


@pytest.mark.parametrize(
    "text", ["how many people are ill", "DROP TABLE people", "SELECT COUNT(*) FROM people WHERE"]
)
def test_what_would_not_be_answered_is_not_offered(database: Database, text: str) -> None:
    with pytest.raises(InvalidQuery) as refused:
        database.quote_sql(text)
    assert refused.value.alternatives == ()


def test_texts_aliases_and_long_statements_are_left_alone() -> None:
    assert (
        list(
            respelled(
                "SELECT COUNT(*) AS cuont FROM people WHERE region = 'Nroth'", SCHEMA, "people"
            )
        )
        == []
    )
    assert list(respelled("a b c d e f g h " * 999, SCHEMA)) == []


def test_a_value_comes_with_the_nearest_declared_one() -> None:
    found = dict(revalued("SELECT COUNT(*) FROM t WHERE region = 'north' AND x = 'y'", SCHEMA))
    assert found == {"North": "SELECT COUNT(*) FROM t WHERE region = 'North' AND x = 'y'"}
    quoted = dict(revalued("WHERE region = 'O''Hare'", SCHEMA))
    assert quoted == {"O'Hara": "WHERE region = 'O''Hara'"}
    assert dict(revalued("WHERE age = 'north'", SCHEMA)) == {}  # no column of texts is used
