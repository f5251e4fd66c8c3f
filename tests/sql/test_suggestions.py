"""A rewrite that is offered means the same as what was written, or none is offered."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pandas as pd
import pytest

from sulq import Category, Database, InvalidQuery, Number, Promise, Schema

ROWS = pd.DataFrame(
    {
        "city": ["Oslo", "Osaka", "Paris", "New York", "oslo", None] * 50,
        "age": [20, 30, 30, 41, 52, None] * 50,
        "note": ["a", "b", "c", "d", "e", "f"] * 50,
    }
)
DECLARED = ["Oslo", "Osaka", "Paris", "New York", "oslo", "O'Hara"]


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    columns = (Category("city", DECLARED), Number("age", 0, 100, step=1), Category("note"))
    promise = Promise(1, 1e-6, queries=1000)
    with Database.open(ROWS, Schema(*columns), promise, ":memory:", name="t") as opened:
        yield opened


def offered(database: Database, text: str) -> tuple[str, ...]:
    with pytest.raises(InvalidQuery) as refused:
        database.sql(text)
    return refused.value.alternatives


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM t WHERE note ILIKE 'a%'",  # open text: nobody knows what matches
        "SELECT FIRST(age) FROM t",
        "SELECT LAST(age) FROM t",
        "SELECT ANY_VALUE(age) FROM t",
        "SELECT city, ANY_VALUE(age) FROM t GROUP BY city",
    ],
)
def test_nothing_is_offered_where_nothing_means_the_same(database: Database, text: str) -> None:
    assert offered(database, text) == ()


@pytest.mark.parametrize("where", ["", " WHERE age > 25 OR age < 3"])
def test_mode_is_the_largest_group(database: Database, where: str) -> None:
    (near,) = offered(database, f"SELECT MODE(age) FROM t{where}")
    rows = duckdb.connect()
    rows.register("t", ROWS)
    asked = rows.execute(f"SELECT MODE(age) FROM t{where}").fetchone()
    found = rows.execute(near).fetchone()
    assert asked is not None and found is not None and found[0] == asked[0] == 30


def test_counting_a_condition_says_what_is_counted(database: Database) -> None:
    said = "COUNT(condition) counts the rows where it is true or false, as SQL does"
    for text in ("COUNT(age > 25)", "COUNT(city = 'Oslo')"):
        assert any(note.startswith(said) for note in database.sql(f"SELECT {text} FROM t").notes)
        assert said in database.quote_sql(f"SELECT {text} FROM t").note
    for text in ("COUNT_IF(age > 25)", "COUNT(age)", "COUNT(*)"):
        assert said not in database.quote_sql(f"SELECT {text} FROM t").note
