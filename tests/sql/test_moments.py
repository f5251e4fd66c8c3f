"""Days and times come out as days and times, and rounding never narrows a bar."""

from __future__ import annotations

import datetime

import pyarrow
import pytest
from tests.learn.exact_oracle import ExactOracle
from tests.sql.small_table import FIRST, SCHEMA, duck, rows

from sulq import Database, Number, Promise, Schema
from sulq.sql.run import ask_sql

PROMISE = Promise(epsilon=1, delta=1e-6, queries=1000)
LAST = datetime.date(2024, 3, 10)


@pytest.fixture
def database():
    with Database.open(rows(), SCHEMA, PROMISE, ":memory:") as database:
        yield database


def test_aggregates_of_days_are_days(database):
    text = (
        "SELECT MIN(seen) AS a, MEDIAN(seen) AS b, AVG(seen) AS c, MAX(seen) AS d FROM people"
        " WHERE member"
    )
    found = database.sql(text, credits=900)
    (record,) = found.records()
    for name in "abcd":
        low, value, high = record[f"{name}_low"], record[name], record[f"{name}_high"]
        assert all(type(x) is datetime.date for x in (low, value, high))
        assert FIRST <= low <= value <= high <= LAST
        assert f"{value} [{low}, {high}]" in repr(found)
    assert found.to_pandas()["b"][0] == record["b"]
    assert "days at 95 %" in database.quote_sql(text, rows=200).explain()


def test_they_are_the_days_of_the_rows(database):
    text = "SELECT MIN(seen) AS a, MAX(seen) AS b, MAX(seen) - MIN(seen) AS c FROM people"
    found = ask_sql(ExactOracle(database), text).records()[0]
    assert (found["a"], found["b"], found["c"]) == duck(rows()).execute(text).fetchone()


def test_keys_of_days_are_days(database):
    text = "SELECT DATE_TRUNC('month', seen) AS m, COUNT(*) AS n FROM people GROUP BY m"
    keys = [record["m"] for record in database.sql(text).records()]
    assert keys[:2] == [datetime.date(2023, 11, 1), datetime.date(2023, 12, 1)]


def test_noisy_days_are_compared_with_days(database):
    exact = ExactOracle(database)
    shown = [
        len(ask_sql(exact, f"SELECT MAX(seen) AS x FROM people HAVING MAX(seen) {test}"))
        for test in ("> DATE '2024-03-01'", "< DATE '2024-03-01'", "> TIMESTAMP '2024-03-01 12:00'")
    ]
    assert shown == [1, 0, 1]
    text = "SELECT AVG(seen) - DATE '2023-11-15' AS days, AVG(seen) + 1 AS next FROM people"
    (record,) = ask_sql(exact, text).records()
    assert 0 < record["days"] < 111
    assert record["next"] == FIRST + datetime.timedelta(days=round(record["days"] + 1))


def test_times_are_times():
    first = datetime.datetime(2024, 1, 1)
    schema = Schema(Number("at", first, datetime.datetime(2024, 1, 2)))
    times = [first + datetime.timedelta(seconds=100 * i) for i in range(400)]
    table = pyarrow.table({"at": times})
    with Database.open(table, schema, PROMISE, ":memory:") as database:
        (record,) = database.sql("SELECT AVG(at) AS x FROM people", credits=900).records()
    assert type(record["x"]) is datetime.datetime
    assert record["x_low"] <= record["x"] <= record["x_high"]


@pytest.mark.parametrize("digits", [-1, 0, 1, 2])
def test_rounding_widens_the_bar(digits, database):
    text = "SELECT AVG(age) AS x, ROUND(AVG(age), {}) AS y FROM people WHERE member"
    found = database.sql(text.format(digits), credits=500)
    x, y = found.cell("x"), found.cell("y")
    assert y.value == round(x.value, digits)
    for confidence in (0.5, 0.95, 0.999):
        (low, high), (least, most) = x.interval(confidence), y.interval(confidence)
        assert least <= low <= high <= most
        unit = 10.0**-digits
        assert low - least < 1.0001 * unit
        assert most - high < 1.0001 * unit
        assert (round(least, digits), round(most, digits)) == (least, most)


def test_rounding_what_is_exact_adds_no_bar(database):
    assert database.sql("SELECT ROUND(COUNT(*), 1) AS n FROM people").cell("n").interval() == (
        400,
        400,
    )
