"""WITHIN and credits=: what can be promised is priced, the rest refused, and nothing half way."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from tests.sql.small_table import SCHEMA, rows

from sulq import BudgetSpent, Database, InvalidQuery, Promise, col, quantiles
from sulq.errors import Reason
from sulq.sql.plan.pricing import short

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


AVERAGE = "SELECT AVG(age) AS a FROM people WHERE balance > 44"
SHARE = "SELECT COUNT_IF(member) / COUNT(*) AS x FROM people WHERE balance > 44"


@pytest.mark.parametrize("text", [AVERAGE, f"{AVERAGE} WITHIN 9", SHARE, f"{SHARE} WITHIN 0.3"])
def test_a_bar_that_assumes_all_rows_says_so(text, database, quiet):
    quote = database.quote_sql(text)
    (said,) = quote.notes
    assert said.startswith("the bar hangs on how many rows match: +-") and "if all 400 do" in said
    assert said.endswith("if one in 5 does; count them first, or state `rows`")
    assert f"note: {said}" in quote.explain()
    assert database.quote_sql(text, rows=400).notes == ()
    count = "SELECT COUNT(*), SUM(age), COUNT_IF(smoker) / 3 FROM people WHERE member"
    assert database.quote_sql(count).notes == ()
    if "WITHIN" in text:
        assert "state how many, `rows`" in database.sql(text).notes[-1]


def test_a_ratio_keeps_its_promise(database, quiet):
    text = "SELECT COUNT_IF(smoker) / COUNT(*) AS x FROM people WHERE balance > -51 WITHIN 0.1"
    found = database.sql(text, rows=400)
    low, high = found.cell("x").interval()
    assert (high - low) / 2 <= 0.1
    assert "WITHIN 0.1: met" in found.notes


@pytest.mark.parametrize(
    ("text", "rows", "reason"),
    [
        ("MEDIAN(age) FROM people WITHIN 2", 400, Reason.WITHIN_RANK),
        ("MAX(age) - 3 FROM people WITHIN 2 PERCENT", 400, Reason.WITHIN_SIZE),
        ("MAX(age) - 3 FROM people WITHIN 2", 400, Reason.WITHIN_UNKNOWN),
        ("MEDIAN(age) FROM people GROUP BY city WITHIN 20 PERCENT", None, Reason.WITHIN_SIZE),
        ("STDDEV(age) FROM people GROUP BY city WITHIN 2", None, Reason.WITHIN_UNKNOWN),
        ("SUM(age) / SUM(balance) FROM people WITHIN 2", 400, Reason.WITHIN_UNKNOWN),
    ],
)
def test_what_cannot_be_promised_is_refused(text, rows, reason, database):
    with pytest.raises(InvalidQuery) as refused:
        database.sql(f"SELECT {text}", rows=rows)
    assert refused.value.reason is reason
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


# --- quantiles: the rank is what can be promised ---

RANKED = [
    ("MEDIAN(age)", 25),
    ("QUANTILE(income, 0.9)", 30),
    ("PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age)", 25),
    ("MIN(age)", 90),
    ("MAX(age)", 90),
]


@pytest.mark.parametrize(("output", "percent"), RANKED)
def test_the_rank_of_a_quantile_is_promised(output, percent, database):
    text = f"SELECT {output} AS x FROM people WHERE member"
    quote = database.quote_sql(f"{text} WITHIN {percent} PERCENT CONFIDENCE 90", rows=400)
    ((_, half),), ((name, rank),) = quote.half_widths, quote.ranks
    assert (half, name, quote.confidence) == (None, "x", 0.9)
    assert 0.97 * percent * 4 <= rank <= 1.00001 * percent * 4
    twice = database.quote_sql(f"{text} WITHIN {percent} PERCENT CONFIDENCE 90", rows=800)
    assert quote.credits == pytest.approx(4 * twice.credits, rel=1e-3)
    dearer = database.quote_sql(text, credits=quote.credits, rows=400, confidence=0.9)
    assert dict(dearer.ranks)["x"] == pytest.approx(rank, rel=1e-3)  # the inverse


def test_the_verdict_on_ranks_is_from_the_noisy_number_of_rows(database):
    text = "SELECT MEDIAN(age) AS m FROM people WHERE balance > -51 WITHIN 30 PERCENT"
    found = database.sql(text, rows=150)  # many more match: far from the edge
    assert "WITHIN 30 PERCENT: met" in found.notes
    low, high = found.cell("m").interval()
    assert low <= found.cell("m").value <= high
    nobody = database.sql("SELECT MEDIAN(age) FROM people WHERE age < 0 WITHIN 60 PERCENT")
    assert any("met by 0 of 1 values" in note for note in nobody.notes)
    assert any("all 400" in note for note in nobody.notes)


def test_the_same_wish_costs_once(database):
    text = "SELECT MEDIAN(age) AS m FROM people WHERE member WITHIN 60 PERCENT"
    first = database.sql(text)
    assert first.credits > 0
    assert database.sql(text).credits == 0


def test_groups_are_sized_by_an_earlier_answer_and_a_wish_that_is_met_is_free(database):
    text = "SELECT smoker, MEDIAN(age) AS m FROM people GROUP BY smoker"
    first = database.sql(text, credits=400)
    met = database.quote_sql(f"{text} WITHIN 5000 PERCENT")
    assert (met.credits, first.credits > 0) == (0, True)
    finer = database.quote_sql(f"{text} WITHIN 10 PERCENT")
    assert any("by an earlier answer" in note for note in finer.notes)


def test_python_wishes_ranks_as_shares(database):
    asked = quantiles("age", [0.25, 0.5])
    quote = database.quote(asked, within=0.4, rows=150)  # of 400: far from the edge
    assert "+-60 rows at 95 %, 40 % of 150" in quote.note
    assert quote.interval() == (None, None)
    answer = database.ask(asked, within=0.4, rows=150)
    assert answer.credits == quote.credits
    assert "ranks within 40 % of the rows: met" in answer.note
    few = database.ask(quantiles("income", [0.5], where=col("age") < 0), within=0.5)
    assert "ranks within 50 % of the rows: not met" in few.note
    with pytest.raises(InvalidQuery, match="a share of the rows"):
        database.quote(asked, within=2)


def test_amounts_are_short_and_on_their_side():
    for amount in (Fraction(1, 3), Fraction(10**6, 7), Fraction(6), Fraction(1, 2**60)):
        down, up = short(amount), short(amount, up=True)
        assert down <= amount <= up
        assert math.isclose(down, up, rel_tol=2**-31)
        assert (short(down), short(up, up=True)) == (down, up)
