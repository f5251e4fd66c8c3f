"""Plans are kept by asker and text, and nothing but the text's reading is skipped."""

from __future__ import annotations

import pytest
from tests.sql.small_table import LOOKUPS, SCHEMA, rows

from sulq import Database, InvalidQuery, Promise
from sulq.sql.evaluate.linear_forms import Noisy, looked_up
from sulq.sql.plan import pricing

PROMISE = Promise(epsilon=1, delta=1e-6, queries=1000)
TEXT = "SELECT city, COUNT(*) AS n FROM people WHERE age > 3 GROUP BY city HAVING n > -1000"


@pytest.fixture
def database():
    pricing._plans.clear()
    with Database.open(rows(), SCHEMA, PROMISE, ":memory:") as database:
        yield database


def plan(oracle, text=TEXT, **terms):
    return oracle.quote_sql(text, **terms).plan


def test_a_text_is_read_once(database):
    assert plan(database) is plan(database)
    assert plan(database) is not plan(database, TEXT + " LIMIT 3")
    first, again = database.sql(TEXT), database.sql(TEXT)
    assert first.records() == again.records()
    assert (first.credits > 0, again.credits) == (True, 0)


def test_what_one_asks_is_not_kept_for_another(database):
    """Else the time it takes would tell an analyst what a colleague asked."""
    database.grant("ann", 5)
    database.grant("bob", 5)
    ann, bob = database.as_analyst("ann"), database.as_analyst("bob")
    assert plan(ann) is plan(ann)
    assert plan(ann) is not plan(bob)
    assert plan(ann) is not plan(database)


def test_another_table_or_promise_is_another_plan(database):
    first = plan(database)
    with Database.open(rows(300), SCHEMA, PROMISE, ":memory:") as smaller:
        assert plan(smaller) is not first
    other = Promise(epsilon=2, delta=1e-6, queries=1000)
    with Database.open(rows(), SCHEMA, other, ":memory:") as looser:
        assert plan(looser) is not first


def test_lookups_and_long_texts_are_read_anew(database):
    text = "SELECT name, COUNT(*) FROM people JOIN regions ON city = key GROUP BY name"
    assert plan(database, text, lookups=LOOKUPS) is not plan(database, text, lookups=LOOKUPS)
    with pytest.raises(InvalidQuery, match="public lookup tables only"):
        plan(database, text)
    long = TEXT + " " * pricing.LONGEST
    assert plan(database, long) is not plan(database, long)


def test_refusals_are_not_kept_and_what_is_kept_is_bounded(database):
    with pytest.raises(InvalidQuery):
        plan(database, "SELECT age FROM people")
    assert "SELECT age FROM people" not in {key[2] for key in pricing._plans}
    for limit in range(pricing.MOST + 9):
        plan(database, f"SELECT COUNT(*) FROM people LIMIT {limit}")
    assert len(pricing._plans) == pricing.MOST


def test_half_widths_that_were_looked_up_are_the_law_s_own(database):
    """Two questions with noise of their own, at two confidences, in turns."""
    wide = database.sql("SELECT COUNT(*) AS n FROM people WHERE smoker", credits=1).cell("n")
    narrow = database.sql("SELECT COUNT(*) AS n FROM people WHERE member", credits=4).cell("n")
    for confidence, spreads in ((0.95, 1.95996), (0.5, 0.67449), (0.95, 1.95996)):
        for cell in (wide, narrow):
            assert isinstance(cell, Noisy)
            half = looked_up(cell.draws, confidence)
            assert half == pytest.approx(spreads * cell.standard_error, rel=1e-3)
