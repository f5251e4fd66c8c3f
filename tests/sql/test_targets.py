"""WITHIN and credits=: what can be promised is priced, the rest refused, and nothing half way."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from tests.sql.small_table import SCHEMA, rows

from sulq import BudgetSpent, Database, InvalidQuery, Promise
from sulq.sql.targets import short

PROMISE = Promise(epsilon=1, delta=1e-6, queries=1000)
SMOKING = "SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM people WHERE smoker"


@pytest.fixture
def database():
    with Database.open(rows(), SCHEMA, PROMISE, ":memory:") as database:
        yield database


def spent(database):
    return PROMISE.credits - database.remaining


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("SELECT STDDEV(age) AS x FROM people WHERE member", 30),
        ("SELECT COUNT_IF(smoker) / COUNT(*) AS x FROM people WHERE member", 0.5),
        ("SELECT 100 * COUNT_IF(smoker) / COUNT(*) AS x FROM people WHERE member", 40),
        ("SELECT SUM(balance) / COUNT(*) AS x FROM people WHERE member", 20),
        ("SELECT COUNT_IF(smoker) / COUNT(*) AS x FROM people", 0.1),
        ("SELECT AVG(age) - AVG(balance) AS x FROM people WHERE member", 30),
        ("SELECT ROUND(AVG(age), 1) AS x FROM people WHERE member", 9),
        ("SELECT city, COUNT(*) / SUM(COUNT(*)) OVER () AS x FROM people GROUP BY city", 0.4),
    ],
)
def test_bars_of_roots_and_ratios_are_promised(text, amount, database):
    quote = database.quote_sql(f"{text} WITHIN {amount}", rows=400)
    ((_, half),) = quote.half_widths
    assert 0.97 * amount <= half <= 1.00001 * amount
    assert quote.credits > 0


def test_a_ratio_keeps_its_promise(database):
    text = "SELECT COUNT_IF(smoker) / COUNT(*) AS x FROM people WHERE balance > -51 WITHIN 0.1"
    found = database.sql(text, rows=400)
    low, high = found.cell("x").interval()
    assert (high - low) / 2 <= 0.1
    assert "WITHIN 0.1: met" in found.notes


@pytest.mark.parametrize(
    ("text", "rows", "remedy"),
    [
        ("SELECT MEDIAN(age) FROM people WITHIN 2", 400, "how dense the rows lie"),
        ("SELECT MAX(age) - 3 FROM people WITHIN 2", 400, "how dense the rows lie"),
        ("SELECT city, STDDEV(age) FROM people GROUP BY city WITHIN 2", None, "state rows="),
        ("SELECT SUM(age) / SUM(balance) FROM people WITHIN 2", 400, "ratios to a count"),
    ],
)  # fmt: skip
def test_what_cannot_be_promised_is_refused_with_the_remedy(text, rows, remedy, database):
    with pytest.raises(InvalidQuery, match=remedy):
        database.sql(text, rows=rows)
    assert spent(database) == 0


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        (SMOKING, {"credits": 6}),
        (
            "SELECT AVG(age) AS a, AVG(balance) AS b FROM people WHERE member WITHIN 30",
            {"rows": 200},
        ),
    ],
)
def test_all_is_one_transaction_whatever_it_shall_cost(text, terms, database, monkeypatch):
    def never(*_args, **_terms):
        raise AssertionError("asked one by one")

    monkeypatch.setattr(database, "ask", never)
    quote = database.quote_sql(text, **terms)
    assert len(quote.quotes) == 2
    assert database.sql(text, **terms).credits == quote.credits == spent(database)


def test_a_statement_that_cannot_be_paid_charges_nothing(database):
    database.grant("ann", 5)
    ann, before = database.as_analyst("ann"), spent(database)
    with pytest.raises(BudgetSpent):
        ann.sql(SMOKING, credits=6)
    assert (ann.remaining, spent(database)) == (5, before)


def test_a_part_that_is_known_makes_no_other_part_dearer(database):
    quote = database.quote_sql(SMOKING, credits=6)
    database.sql("SELECT COUNT(*) AS n FROM people WHERE smoker", credits=quote.amounts[0])
    known = spent(database)
    found = database.sql(SMOKING, credits=6)
    assert found.credits == quote.amounts[1]
    assert spent(database) == known + quote.amounts[1]


def test_a_repeat_with_credits_is_free(database):
    first = database.sql(SMOKING, credits=7)
    again = database.sql(SMOKING, credits=7, key="again")
    once_more = database.sql(SMOKING, credits=7, key="again")
    assert (again.credits, once_more.credits) == (0, 0)
    assert first.records() == again.records() == once_more.records()


def test_amounts_are_short_and_on_their_side():
    for amount in (Fraction(1, 3), Fraction(10**6, 7), Fraction(6), Fraction(1, 2**60)):
        down, up = short(amount), short(amount, up=True)
        assert down <= amount <= up
        assert math.isclose(down, up, rel_tol=2**-31)
        assert (short(down), short(up, up=True)) == (down, up)
