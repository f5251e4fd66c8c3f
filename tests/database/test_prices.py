"""What questions cost: credits, shares, strata, precision, repeats."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.people import frame, publish

from sulq import (
    BudgetSpent,
    InvalidQuery,
    Promise,
    Refused,
    col,
    count,
    histogram,
    mean,
    total,
)
from sulq.formatting import decimal_text
from sulq.kernel.accounting.pricing import stored_price


def test_public_sizes_are_exact_and_free() -> None:
    data = frame()
    db = publish(data)
    assert db.size == len(data)
    for question, truth in [
        (count(), len(data)),
        (count(where=col("city") == "Oslo"), (data.city == "Oslo").sum()),
    ]:
        answer = db.ask(question)
        assert (answer.value, answer.credits, answer.standard_error) == (truth, 0, 0)
        assert answer.interval() == (truth, truth)
    assert db.remaining == 100


def test_under_add_remove_sizes_are_private_and_priced() -> None:
    db = publish(promise=Promise(1, "1e-6", 100, neighbours="add-remove"))
    assert db.size is None
    answer = db.ask(count())
    assert answer.credits == 1
    assert answer.standard_error > 10
    with pytest.raises(InvalidQuery, match="rows"):
        db.ask(mean("income"), within=500)
    assert db.quote(mean("income")).standard_error is None
    assert db.quote(mean("income"), rows=2_000).standard_error > 0


def test_a_unit_question_costs_one_credit_and_questions_left_is_exact() -> None:
    db = publish(promise=Promise(1, "1e-6", queries=3))
    for left in (2, 1, 0):
        assert db.quote(count(where=col("age") > left)).credits == 1
        assert db.ask(count(where=col("age") > left)).credits == 1
        assert db.remaining == left
    with pytest.raises(BudgetSpent, match="left"):
        db.ask(count(where=col("age") > 50))
    assert db.ask(count(where=col("age") > 1)).credits == 0  # repeats stay free
    quote = db.quote(count(where=col("age") > 50))
    assert not quote.affordable
    assert quote.left_after == -1


def test_prices_are_joint() -> None:
    """V.3: a histogram costs 2 under replace and 1 under add-remove, however many cells."""
    db = publish()
    assert db.quote(histogram("blood")).credits == 2
    assert db.quote(histogram("blood", "smoker")).credits == 2
    assert db.quote(mean("income")).credits == Fraction(5, 4)
    other = publish(frame(seed=8), promise=Promise(1, "1e-6", 100, neighbours="add-remove"))
    assert other.quote(histogram("blood")).credits == 1


def test_repeats_and_respellings_are_free_and_identical() -> None:
    db = publish()
    first = db.ask(count(where=(col("age") >= 65) & col("smoker")))
    again = db.ask(count(where=col("smoker") & ~(col("age") < 65)))
    assert (again.value, again.credits) == (first.value, 0)
    assert db.quote(count(where=(col("age") >= 65) & col("smoker"))).credits == 0


def test_an_earlier_finer_answer_serves_a_coarser_question() -> None:
    db = publish()
    fine = db.ask(count(where=col("smoker")), credits=4)
    assert fine.credits == 4
    assert db.ask(count(where=col("smoker"))).credits == 0
    assert db.ask(count(where=col("smoker"))).value == fine.value


def test_within_buys_the_wished_error_and_says_the_price_first() -> None:
    db = publish(frame(20_000))
    for question in (
        count(where=col("age") > 30),
        total("income", where=col("smoker")),
        histogram("blood"),
    ):
        plain = float(np.max(db.quote(question).interval(0.9)[1]))
        quote = db.quote(question, within=plain / 2, confidence=0.9)
        assert float(np.max(quote.interval(0.9)[1])) <= plain / 2
        assert 4 * db.quote(question).credits <= quote.credits < 4.01 * db.quote(question).credits
    answer = db.ask(count(where=col("age") > 30), within=50, confidence=0.95)
    low, high = answer.interval(0.95)
    assert high - low <= 101
    mean_quote = db.quote(mean("income"), within=5_000, rows=20_000)
    assert mean_quote.interval()[1] <= 5_000


def test_credits_buys_precision() -> None:
    db = publish()
    one, four = (db.quote(count(where=col("age") > 3), credits=c) for c in (1, 4))
    assert one.standard_error == pytest.approx(2 * four.standard_error)


def test_shares_live_inside_the_cap() -> None:
    db = publish(promise=Promise(1, "1e-6", queries=10))
    db.grant("ann", 4)
    ann = db.as_analyst("ann")
    assert ann.remaining == 4
    assert ann.ask(count(where=col("age") > 1)).credits == 1
    assert ann.remaining == 3
    assert db.ask(count(where=col("age") > 1)).credits == 0
    bob = db.as_analyst("bob")
    with pytest.raises(Refused, match="grant"):
        bob.ask(count(where=col("age") > 2))
    db.grant("bob", 1)
    assert bob.ask(count(where=col("age") > 1)).credits == 1  # bob's share pays for what he learns
    assert bob.ask(count(where=col("age") > 1)).credits == 0
    with pytest.raises(BudgetSpent):
        bob.ask(count(where=col("age") > 5))
    with pytest.raises(Refused):
        db.grant("eve", 9)
    assert not hasattr(ann, "grant")


def test_strata_are_charged_apart() -> None:
    db = publish(promise=Promise(1, "1e-6", queries=2))
    for city in ("Oslo", "Paris"):
        for age in (20, 40):
            db.ask(count(where=(col("city") == city) & (col("age") > age)))
    assert db.remaining == 0
    with pytest.raises(BudgetSpent):
        db.ask(count(where=(col("city") == "Oslo") & (col("age") > 60)))
    assert db.ask(count(where=col("city") == "Oslo")).credits == 0


def test_a_stored_answer_carries_its_own_price_and_the_asker_pays_what_was_agreed() -> None:
    db = publish()
    db.ask(count(where=col("smoker")), credits=4)
    db.grant("ann", 10)
    bound = db.bind(count(where=col("smoker")))
    wanted = db.price(bound, None, 0.95, None, None)
    cost = stored_price(
        bound, db.calibration, wanted, *db.ledger.snapshot(digest=bound.digest).stored
    )
    assert cost is not None
    assert cost.worst.credits_fraction == 4  # due if the earlier charge were gone
    assert cost.share.credits_fraction == 1
    assert db.as_analyst("ann").ask(count(where=col("smoker"))).credits == 1
    assert db.remaining == 87


def test_colleagues_do_not_see_each_others_questions_in_quotes() -> None:
    db = publish()
    for name in ("ann", "bob"):
        db.grant(name, 20)
    question = count(where=col("smoker"))
    before = db.as_analyst("bob").quote(question)
    db.as_analyst("ann").ask(question, credits=4)
    after = db.as_analyst("bob").quote(question)
    assert (before.credits, before.repeat) == (after.credits, after.repeat) == (1, False)
    assert before.standard_error == after.standard_error
    assert db.as_analyst("ann").quote(question).repeat


def test_free_questions_leave_what_is_left() -> None:
    db = publish()
    db.ask(count(where=col("smoker")), credits=30)
    assert db.quote(count()).left_after == 70
    assert db.quote(count(where=col("smoker"))).left_after == 70


def test_credits_read_as_they_add() -> None:
    assert decimal_text(Fraction(691, 4)) == "172.75"
    assert decimal_text(Fraction(5)) == "5"
    assert decimal_text(Fraction(1, 10**6)) == "1e-06"
