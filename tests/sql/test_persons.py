"""COUNT(DISTINCT person) on a table that protects persons."""

from __future__ import annotations

import duckdb
import pyarrow
import pytest
from tests.learn.exact_oracle import ExactOracle

from sulq import Category, Database, InvalidQuery, Number, Promise, Schema
from sulq.sql.api import ask_sql

SCHEMA = Schema(
    Number("visits", 0, 9, step=1), Category("city", ["Oslo", "Paris"]), unit="person", max_rows=4
)
ROWS = pyarrow.table(
    {
        "person": [i // 3 for i in range(300)],
        "visits": [(7 * i) % 10 for i in range(300)],
        "city": [("Oslo", "Paris", None)[(i * i) % 3] for i in range(300)],
    }
)


@pytest.fixture
def database():
    promise = Promise(epsilon=1, delta=1e-6, queries=1000)
    with Database.open(ROWS, SCHEMA, promise, ":memory:") as database:
        yield database


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(DISTINCT person) FROM visits",
        "SELECT COUNT(DISTINCT PERSON) AS n, COUNT(*) AS m FROM visits WHERE visits > 6",
        "SELECT COUNT(DISTINCT person) FILTER (WHERE visits = 0) FROM visits WHERE city = 'Oslo'",
        "SELECT city, COUNT(DISTINCT v.person) FROM visits v WHERE city IN ('Oslo', 'Paris')"
        " GROUP BY city",
        "SELECT COUNT(*) / COUNT(DISTINCT person) AS each FROM visits WHERE visits < 5",
    ],
)
def test_counted_as_duckdb_does(text, database):
    found = ask_sql(ExactOracle(database), text, table="visits")
    with duckdb.connect() as truth:
        truth.register("visits", ROWS)
        wanted = sorted(truth.execute(text).fetchall())
    ours = sorted(tuple(getattr(cell, "value", cell) for cell in row) for row in found.rows)
    assert len(ours) == len(wanted)
    for row, true in zip(ours, wanted, strict=True):
        assert row == tuple(x if isinstance(x, str) else pytest.approx(x) for x in true)


def test_one_person_moves_the_count_by_one(database):
    persons = database.quote_sql("SELECT COUNT(DISTINCT person) AS n FROM visits WHERE visits > 6")
    rows = database.quote_sql("SELECT COUNT(*) AS n FROM visits WHERE visits > 6")
    assert persons.credits == rows.credits / 16  # 4 rows each, squared
    assert database.sql("SELECT COUNT(DISTINCT person) AS n FROM visits").cell().value == 100


@pytest.mark.parametrize("text", ["SELECT COUNT(person) FROM v", "SELECT SUM(person) FROM v",
    "SELECT person, COUNT(*) FROM v GROUP BY person",
    "SELECT COUNT(*) FROM v WHERE person = 3", "SELECT COUNT(DISTINCT person + 1) FROM v",
    "SELECT COUNT(*) FROM v WHERE person IS NULL", "SELECT MAX(person) FROM v"])  # fmt: skip
def test_the_person_column_can_only_be_counted(text, database):
    with pytest.raises(InvalidQuery):
        database.quote_sql(text)
