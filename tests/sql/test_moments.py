"""Days and times come out as days and times, and rounding never narrows a bar."""

from __future__ import annotations

import datetime

import pyarrow
import pytest
from tests.learn.exact_oracle import ExactOracle
from tests.sql.small_table import FIRST, SCHEMA, duck, rows

from sulq import Database, InvalidQuery, Number, Promise, Schema
from sulq.sql.api import ask_sql

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


@pytest.fixture(scope="module")
def stays():
    """Two days and two times a row, with gaps."""
    first, noon = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)
    days = [None if i % 9 == 0 else first + datetime.timedelta(days=i % 50) for i in range(200)]
    left = [day and day + datetime.timedelta(days=i % 7) for i, day in enumerate(days)]
    times = [noon + datetime.timedelta(hours=i % 20) for i in range(200)]
    ends = [time + datetime.timedelta(seconds=i % 90) for i, time in enumerate(times)]
    late, later = datetime.date(2024, 3, 1), datetime.datetime(2024, 1, 3)
    schema = Schema(
        Number("admitted", first, late),
        Number("discharged", first, late),
        Number("start", noon, later, step=1),
        Number("stop", noon, later, step=1),
    )
    table = pyarrow.table({"admitted": days, "discharged": left, "start": times, "stop": ends})
    with Database.open(table, schema, PROMISE, ":memory:") as database:
        yield ExactOracle(database), duck(table)


CELL = 2 * 36 * 3600 / 1024  # in seconds, of the distribution that the median is read off
LASTED = {
    "discharged - admitted": "discharged - admitted",
    "CLAMP(discharged - admitted, 0, 4)": "",
    "admitted - DATE '2024-01-05'": "admitted - DATE '2024-01-05'",
    "DATE '2024-02-20' - admitted": "DATE '2024-02-20' - admitted",
    "ABS(admitted - discharged)": "abs(admitted - discharged)",
    "CASE WHEN admitted > DATE '2024-01-20' THEN discharged - admitted END": "",
    "stop - start": "date_diff('second', start, stop)",
    "start - DATE '2024-01-01'": "date_diff('second', TIMESTAMP '2024-01-01', start)",
}


@pytest.mark.parametrize("of", LASTED)
def test_what_lies_between_two_moments_is_a_number(of, stays):
    exact, truth = stays
    listed = "AVG({0}), SUM({0}), VAR_POP({0}), MEDIAN({0}), MIN({0}), MAX({0}), COUNT({0})"
    (record,) = ask_sql(exact, f"SELECT {listed.format(of)} FROM people").records()
    found = [value for name, value in record.items() if not name.endswith(("_low", "_high"))]
    wanted = truth.execute(f"SELECT {listed.format(LASTED[of] or of)} FROM people").fetchone()
    assert all(type(value) in (int, float) for value in found)
    cell = CELL if "st" in of else 0
    assert found[4:6] == pytest.approx(wanted[4:6], abs=cell)
    assert found[4] <= found[3] <= found[5] + cell
    assert [*found[:3], found[6]] == pytest.approx([*wanted[:3], wanted[6]], rel=1e-3)


def test_a_moment_and_a_number_are_a_moment(stays):
    exact, truth = stays
    listed = "MIN(admitted + 3) AS a, MAX((admitted + discharged) / 2) AS b, MAX(start - 60) AS c"
    (record,) = ask_sql(exact, f"SELECT {listed} FROM people").records()
    least, most, last = truth.execute(
        "SELECT MIN(admitted + 3), MAX(admitted + CAST((discharged - admitted) // 2 AS INT)),"
        " MAX(start - INTERVAL 60 SECOND) FROM people"
    ).fetchone()
    assert record["a"] == least
    assert abs(record["c"] - last).total_seconds() <= CELL
    assert abs(record["b"] - most) <= datetime.timedelta(days=1)
    for text in ("AVG(start + admitted)", "AVG(admitted) + AVG(discharged)", "SUM(admitted + 1)"):
        with pytest.raises(InvalidQuery):
            ask_sql(exact, f"SELECT {text} FROM people")


def test_numbers_of_days_are_grouped_and_compared(stays):
    exact, truth = stays
    text = (
        "SELECT FLOOR(discharged - admitted) AS days, COUNT(*) AS n FROM people"
        " WHERE discharged - admitted BETWEEN 2 AND 5 GROUP BY days"
        " HAVING COUNT(*) > 0 ORDER BY days"
    )
    found = [(r["days"], r["n"]) for r in ask_sql(exact, text).records()]
    assert found == truth.execute(text).fetchall()
