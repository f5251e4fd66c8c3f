"""What a result tells is true: no reading of nobody, no group that is ruled out, no false zero.

Noise is forced where the verdict would hang on it: the same laws, with integers the test chose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sulq import Category, Database, Flag, Number, Promise, Schema, col, count, histogram, quantiles
from sulq.answers.oracle import Answer
from sulq.sql.api import ask_sql

ROWS = 20_000
SCHEMA = Schema(
    Category("city", ["Oslo", "Paris", "Rome"]),
    Number("age", 0, 120, step=1),
    Number("income", 0, 1000),
    Flag("ill"),
)


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    random = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "city": random.choice(["Oslo", "Paris"], ROWS),
            "age": random.integers(18, 90, ROWS),
            "income": random.uniform(0, 500, ROWS),
            "ill": random.random(ROWS) < 0.2,
        }
    )
    with Database.open(frame, SCHEMA, Promise(1, 1e-6, queries=1000), ":memory:") as opened:
        yield opened


class Forced:
    """A table whose noisy sums are what a test says, in user units; prices and laws are its own."""

    def __init__(self, database: Database, sums: Callable[[int], float]) -> None:
        self.database, self.sums = database, sums
        self.schema, self.promise = database.schema, database.promise
        self.size, self.remaining = database.size, database.remaining

    def quote(self, query: Any, **terms: Any) -> Any:
        return self.database.quote(query, **terms)

    def ask(self, query: Any, **terms: Any) -> Answer:
        found = self.database.ask(query, **terms)
        bound = found.bound
        assert bound is not None
        steps = [term.fine_step for term in bound.terms]
        values = [
            round(self.sums(at) / float(steps[at % len(steps)])) for at in range(len(found.values))
        ]
        return Answer.of(
            bound, values, found.laws, most=ROWS, credits=found.credits, receipt=found.receipt
        )


EMPTY = ["city = 'Berlin'", "age > 130", "city IN ('Bonn', 'Bern')"]


@pytest.mark.parametrize("of", ["MEDIAN(age)", "QUANTILE(income, 0.9)", "MIN(age)", "MAX(income)"])
@pytest.mark.parametrize("where", [*EMPTY, "age > 50 AND age < 40"])
def test_of_nobody_no_value_is_known(database: Database, of: str, where: str) -> None:
    found = database.sql(f"SELECT {of} AS x FROM t WHERE {where}").cell()
    assert math.isnan(found.value) and found.note == "no row matches"
    assert found.interval() == ((0, 120) if "age" in of else (0, 1000))


def test_of_nobody_python_says_so_too(database: Database) -> None:
    found = database.ask(quantiles("age", [0.1, 0.5], where=col("city") == "Berlin"))
    assert np.isnan(found.value).all()
    low, high = found.interval()
    assert (low == 0).all() and (high == 120).all()
    assert math.isnan(found.distribution.median)
    assert math.isnan(found.distribution.minimum()[0])
    assert "unknown" in str(found) and "'Berlin' is not a declared value" in repr(found)


@pytest.mark.parametrize(
    ("where", "least", "most"),
    [("age > 100", 101, 120), ("age BETWEEN 30 AND 33", 30, 33), ("age < 7 AND ill", 0, 6)],
)
def test_quantiles_stay_where_the_rows_can_be(
    database: Database, where: str, least: int, most: int
) -> None:
    kinds = ["MEDIAN(age)", "QUANTILE(age, 0.99)", "MIN(age)", "MAX(age)"]
    for credits in (1, 50):  # whatever the noise
        found = database.sql(f"SELECT {', '.join(kinds)} FROM t WHERE {where}", credits=credits)
        for cell in found.rows[0]:
            low, high = cell.interval(0.999999)
            assert least <= low <= high <= most
            assert least <= cell.value <= most


@pytest.mark.parametrize(
    ("key", "where", "shown"),
    [
        ("age", "age IN (20, 30)", [20, 30]),
        ("age", "age = 20 OR age = 30", [20, 30]),
        ("age", "age BETWEEN 20 AND 23 AND age <> 22", [20, 21, 23]),
        ("age", "(age < 3 OR age > 118) AND ill", [0, 1, 2, 119, 120]),
        ("FLOOR(age / 10) * 10", "age = 20 OR age = 35", [20, 30]),
        ("age >= 65", "age >= 65", [True, None]),
        ("age >= 65", "age < 30", [False, None]),
    ],
)
def test_a_group_that_where_rules_out_is_not_shown(
    database: Database, key: str, where: str, shown: list[object]
) -> None:
    text = f"SELECT {key} AS k, COUNT(*) AS n FROM t WHERE {where} GROUP BY k"
    assert list(database.sql(text).column("k")) == shown


def test_what_is_not_shown_is_asked_as_before(database: Database) -> None:
    text = "SELECT age, COUNT(*) AS n FROM t WHERE age >= 20 AND age <= 30 AND age <> 25 GROUP BY 1"
    (asked,) = database.quote_sql(text).plan.questions
    assert len(asked.groups[0].edges or ()) == 12  # every cell of the range: same digest and price


def test_counts_are_whole_and_what_follows_from_them_is_not_rounded(database: Database) -> None:
    text = "SELECT city, COUNT(*) AS n, 2 * COUNT(*) AS twice FROM t GROUP BY city"
    for row in database.sql(text):
        n, twice = row["n"], row["twice"]
        assert isinstance(n.value, int) and all(isinstance(end, int) for end in n.interval())
        assert twice.value == pytest.approx(2 * n.unrounded.value)
        assert abs(n.value - n.unrounded.value) <= 0.5
        low, high = n.unrounded.interval()
        assert n.interval() == (math.floor(low), math.ceil(high))
    assert all(isinstance(record["n"], int) for record in database.sql(text).records())


def test_a_negative_count_is_shown_and_its_interval_is_no_point(database: Database) -> None:
    forced = Forced(database, lambda at: [9_000.0, -225.0, ROWS + 700.0, 40.0][at % 4])
    text = "SELECT city, COUNT(*) AS n FROM t GROUP BY city"
    found = {row["city"]: row["n"] for row in ask_sql(forced, text)}
    half = found["Oslo"].interval()[1] - 9_000
    assert half > 50
    assert found["Paris"].value == -225 and found["Paris"].interval() == (0, half)
    assert found["Rome"].value == ROWS + 700 and found["Rome"].interval() == (ROWS - half, ROWS)
    plain = Forced(database, lambda at: -225.0)
    alone = plain.ask(count(where=col("ill")))
    assert alone.value == -225 and alone.interval()[0] == 0 and alone.interval()[1] > 50
    cells = plain.ask(histogram("city"))
    assert (np.asarray(cells.interval()[1]) > 50).all()


def test_sorted_by_noise_groups_that_cannot_be_told_from_0_come_last(database: Database) -> None:
    counts = [60.0, 5_000.0, 9_000.0, 20.0]  # bars of about 118
    forced = Forced(database, lambda at: counts[at % 4])
    for way, order in (
        ("DESC", ["Rome", "Paris", "Oslo", None]),
        ("ASC", ["Paris", "Rome", None, "Oslo"]),
    ):
        text = f"SELECT city, COUNT(*) AS n FROM t GROUP BY city ORDER BY n {way}"
        found = ask_sql(forced, text)
        assert list(found.column("city")) == order
        assert any(
            note.startswith("ORDER BY: 2 groups come last, for what is sorted by cannot be told")
            for note in found.notes
        )
        assert list(ask_sql(forced, f"{text} LIMIT 2").column("city")) == order[:2]
    clear = ask_sql(Forced(database, lambda at: 9_000.0 + at), text)
    assert not any("ORDER BY" in note for note in clear.notes)
    keys = ask_sql(forced, "SELECT city, COUNT(*) AS n FROM t GROUP BY city ORDER BY city")
    assert list(keys.column("city")) == ["Oslo", "Paris", "Rome", None]


def test_means_of_groups_without_a_reading_come_last(database: Database) -> None:
    def sums(at: int) -> float:  # by city: its rows, and their ages less the middle
        return [5_000.0, -40_000.0, 3.0, 150.0, 8_000.0, -150_000.0, -20.0, 10.0][at % 8]

    text = "SELECT city, AVG(age) AS a FROM t GROUP BY city ORDER BY a DESC"
    found = ask_sql(Forced(database, sums), text)
    assert list(found.column("city"))[:2] == ["Oslo", "Rome"]
    assert found.cell("a", 2).unread() and found.cell("a", 3).unread()


def test_a_difference_derived_after_group_by_is_as_sharp_as_its_parts() -> None:
    """Twice too wide before: two answers from one receipt were taken to share their noise."""
    random = np.random.default_rng(1)
    size = 30_000
    frame = pd.DataFrame(
        {"sex": random.choice(["F", "M"], size), "age": random.integers(20, 80, size)}
    )
    schema = Schema(Category("sex", ["F", "M"]), Number("age", 0, 120, step=1))
    with Database.open(frame, schema, Promise(1, 1e-6, queries=100), ":memory:") as db:
        parts = db.sql("SELECT sex, AVG(age) AS a FROM t GROUP BY sex")
        male, female = (f"AVG(age) FILTER (WHERE sex = '{sex}')" for sex in "MF")
        found = db.sql(f"SELECT {male} - {female} AS d FROM t")
        assert found.credits == 0 and "derived" in found.notes[0]
        widths = [np.diff(parts.cell("a", row).interval())[0] for row in (0, 1)]
        # counts of 15,000 within 8 standard deviations of 42: widths agree to 3 %
        assert np.diff(found.cell().interval())[0] == pytest.approx(math.hypot(*widths), rel=0.1)
        again = db.sql(f"SELECT {male} - {male} AS nothing FROM t").cell()
        assert again.interval() == (0, 0)
