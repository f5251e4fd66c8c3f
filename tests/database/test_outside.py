"""The owner books a release made elsewhere: what is left, and what the statement then says."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.people import frame, publish

from sulq import BudgetSpent, InvalidQuery, Promise, Refused, col, count
from sulq.report import audit_report

SMOKERS = count(where=col("smoker"))


@pytest.fixture(scope="module")
def data():
    return frame(400)


def test_credits_epsilon_and_delta_are_booked(data):
    db = publish(data)
    db.charge_outside(40, reason="yearbook")
    assert db.remaining == 60
    db.charge_outside(epsilon="0.1", delta="1e-7", reason="census")
    assert 40 < db.remaining < 60
    said = str(db.statement())
    assert "yearbook" in said and "census, epsilon 0.1, delta 1e-7" in said
    assert "70.5 %, except with a chance below 1 in 900,000" in said  # the census may tell all
    with pytest.raises(BudgetSpent):
        db.ask(SMOKERS, credits=50)
    assert db.ask(SMOKERS, credits=30).credits == 30


def test_a_promise_that_was_exceeded_is_called_so(data):
    db = publish(data)
    db.ask(SMOKERS, credits=50)
    db.charge_outside(70, reason="yearbook")
    found = db.statement()
    assert (found.left, found.statement.exceeded.credits_fraction) == (0, 20)
    assert found.exceeded.epsilon == pytest.approx(1.103, abs=1e-3)
    assert "exceeded by releases made elsewhere" in found.guarantee
    assert "epsilon 1.103 at the promised delta" in str(found)
    assert "could, after" not in str(found)  # no sentence on beliefs rests on the old promise
    page = audit_report(found, [], public=True, noise_test=None, at="today")
    assert "exceeded by releases made elsewhere" in page
    assert "believe at most" not in page
    assert db.ask(SMOKERS, credits=50).credits == 0
    with pytest.raises(BudgetSpent):
        db.ask(count(where=col("age") > 40), credits=1)


def test_a_pure_promise_adds_epsilon(data):
    db = publish(data, promise=Promise(1))
    db.charge_outside(epsilon=Fraction(1, 4), reason="r")
    assert db.remaining == 75
    db.charge_outside(epsilon=1, reason="r")
    assert db.statement().exceeded.epsilon == pytest.approx(1.25)


def test_what_makes_no_sense_is_refused(data):
    db = publish(data)
    for wrong in (
        {"reason": "r"},
        {"credits": 1, "epsilon": 1, "reason": "r"},
        {"credits": 1, "reason": " "},
        {"credits": 0, "reason": "r"},
        {"credits": -1, "reason": "r"},
        {"epsilon": -1, "reason": "r"},
        {"epsilon": 1, "delta": 1, "reason": "r"},
        {"epsilon": float("nan"), "reason": "r"},
    ):
        with pytest.raises(InvalidQuery):
            db.charge_outside(**wrong)
    assert db.remaining == 100
    coins = publish(data, promise=Promise(1, "1e-6", 4, "binomial"))
    with pytest.raises(Refused, match=r"G\.1\.5"):
        coins.charge_outside(1, reason="r")
