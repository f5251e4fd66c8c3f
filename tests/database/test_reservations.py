"""Plans beside earlier answers, and credits set aside."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.people import frame, publish

import sulq.database.plan
import sulq.kernel.release.release
from sulq import (
    BudgetSpent,
    EngineFailed,
    InvalidQuery,
    Refused,
    col,
    count,
    histogram,
    mean,
    total,
)

SMOKERS = count(where=col("smoker"))


@pytest.fixture(scope="module")
def data():
    return frame(500)


# --- with earlier answers -----------------------------------------------------------------------

BLOOD = histogram("blood")
OF_A = count(where=col("blood") == "A")
OLDER = count(where=col("age") > 50)


def test_what_follows_from_earlier_answers_is_free(data):
    db = publish(data)
    told = db.ask(BLOOD, credits=30)
    plan = db.plan([OF_A, OLDER], credits=20)
    assert [(line.credits, line.repeat) for line in plan.lines] == [(0, True), (20, False)]
    of_a, _ = plan.ask(key="k")
    assert (of_a.credits, of_a.sources) == (0, (told.receipt.seq,))
    assert of_a.value == round(told.value[0])
    assert db.remaining == 50
    again = db.plan([OF_A, OLDER], credits=20).ask(key="k")
    assert again[0].value == of_a.value


def test_a_finer_answer_pays_what_is_missing_and_a_retry_is_the_same(data):
    db = publish(data)
    db.ask(SMOKERS, credits=10)
    plan = db.plan([SMOKERS, OLDER], credits=40)
    assert [round(float(line.credits), 6) for line in plan.lines] == [10, 20]
    finer, other = plan.ask(key="k")
    assert finer.standard_error == pytest.approx(other.standard_error, rel=1e-3)
    assert float(db.remaining) == pytest.approx(60)
    assert finer.credits + other.credits == 90 - db.remaining
    db.ask(SMOKERS, credits=25)  # more is known meanwhile
    left = db.remaining
    again = db.plan([SMOKERS, OLDER], credits=40).ask(key="k")
    assert [a.value for a in again] == [finer.value, other.value]
    assert db.remaining == left


def test_a_retry_after_the_draw_and_before_the_sum_pays_nothing(data, monkeypatch):
    db = publish(data)
    db.ask(SMOKERS, credits=10)

    def failing(*_):
        raise EngineFailed

    with monkeypatch.context() as broken:
        broken.setattr(sulq.Database, "topped_up", failing)
        with pytest.raises(EngineFailed):
            db.plan([SMOKERS, OLDER], credits=40).ask(key="k")
    left = db.remaining
    answers = db.plan([SMOKERS, OLDER], credits=40).ask(key="k")
    assert [answer.credits for answer in answers] == [0, 0]
    assert answers[0].standard_error == pytest.approx(answers[1].standard_error, rel=1e-3)
    again = db.plan([SMOKERS, OLDER], credits=40).ask(key="k")
    assert [a.value for a in again] == [a.value for a in answers]
    assert db.remaining == left


def test_a_retry_before_the_draw_draws_what_was_missing(data, monkeypatch):
    db = publish(data)
    db.ask(SMOKERS, credits=10)

    def failing(*_):
        raise EngineFailed

    with monkeypatch.context() as broken:
        broken.setattr(sulq.kernel.release.release, "draw_noise", failing)
        with pytest.raises(EngineFailed):
            db.plan([SMOKERS, OLDER], credits=40).ask(key="k")
    left = db.remaining
    finer, other = db.plan([SMOKERS, OLDER], credits=40).ask(key="k")
    assert (finer.credits, other.credits, db.remaining) == (0, 0, left)
    assert finer.standard_error == pytest.approx(other.standard_error, rel=1e-3)


def test_an_analyst_pays_once_for_what_follows_from_others_answers(data):
    db = publish(data)
    db.grant("ann", 30)
    db.ask(BLOOD, credits=30)
    ann = db.as_analyst("ann")
    plan = ann.plan([OF_A, OLDER], credits=20)
    assert [line.credits for line in plan.lines] == [10, 10]
    of_a, _ = plan.ask()
    assert of_a.credits == 10
    assert ann.remaining == 10
    assert db.statement().spent == 40  # the accounts paid for the other one alone
    assert ann.plan([OF_A, OLDER], credits=20).credits == 0


def test_an_analysts_retry_has_what_others_answers_added(data, monkeypatch):
    db = publish(data)
    db.grant("ann", 40)
    db.ask(SMOKERS, credits=10)
    ann = db.as_analyst("ann")

    def failing(*_):
        raise EngineFailed

    with monkeypatch.context() as broken:
        broken.setattr(sulq.Database, "topped_up", failing)
        with pytest.raises(EngineFailed):
            ann.plan([SMOKERS, OLDER], credits=40).ask(key="k")
    assert ann.remaining == 0
    finer, other = ann.plan([SMOKERS, OLDER], credits=40).ask(key="k")
    assert finer.standard_error == pytest.approx(other.standard_error, rel=1e-3)
    assert (finer.credits, other.credits) == (0, 0)


def test_what_is_asked_in_a_reservation_is_known_outside_and_the_other_way(data):
    db = publish(data)
    before = db.ask(OLDER, credits=20)
    with db.reserve(40) as reserved:
        assert reserved.database.reuse is db.reuse  # not read a second time
        assert reserved.ask(OLDER, credits=20).value == before.value
        told = reserved.ask(SMOKERS, credits=20)
        with pytest.raises(BudgetSpent, match="reserved"):
            reserved.plan([SMOKERS, mean("age")], credits=50).ask()
    assert db.ask(SMOKERS, credits=20).value == told.value
    assert db.remaining == 60


# --- reserving ----------------------------------------------------------------------------------


def test_reserved_credits_are_there_for_the_block_and_go_back(data):
    db = publish(data)
    with db.reserve(40) as reserved:
        assert (db.remaining, reserved.remaining) == (60, 40)
        with pytest.raises(BudgetSpent):
            db.ask(SMOKERS, credits=61)
        assert reserved.quote(SMOKERS).left_after == 39
        assert reserved.ask(SMOKERS).credits == 1
        assert (db.remaining, reserved.remaining) == (60, 39)
        assert "40 credits reserved, 39 left" in str(db.statement())
        with pytest.raises(BudgetSpent, match="reserved"):
            reserved.ask(total("age"), credits=40)
        reserved.plan([total("age"), mean("income")], credits=reserved.remaining).ask()
        assert 0 <= reserved.remaining < Fraction(1, 10**6)
        assert repr(reserved).startswith("<Reserved")
    assert 60 <= db.remaining < 60 + Fraction(1, 10**6)
    assert "reserved" not in str(db.statement())
    with pytest.raises(Refused, match="has ended"):
        reserved.ask(SMOKERS)


def test_an_error_inside_gives_the_rest_back(data):
    db = publish(data)
    with pytest.raises(ZeroDivisionError), db.reserve(40) as reserved:
        reserved.ask(SMOKERS)
        raise ZeroDivisionError
    assert db.remaining == 99


def test_an_analyst_reserves_out_of_the_share(data):
    db = publish(data)
    db.grant("ann", 20)
    ann = db.as_analyst("ann")
    with ann.reserve(15) as reserved:
        assert (ann.remaining, reserved.remaining, db.remaining) == (5, 15, 80)
        assert reserved.ask(SMOKERS, credits=10).credits == 10
        with pytest.raises(BudgetSpent):
            ann.ask(total("age"), credits=6)
        with pytest.raises(Refused, match="reserve outside"):
            reserved.reserve(1)
        plan = reserved.plan([total("age"), total("income")], credits=5)
        assert plan.left_after == 0
        plan.ask()
    assert ann.remaining == 5
    with pytest.raises(BudgetSpent, match="5 are left"):
        ann.reserve(6)
    with ann.reserve(ann.remaining) as rest:
        rest.ask(count(where=col("age") > 9), credits=5)
    assert ann.remaining == 0


def test_what_is_wrong_with_an_amount_is_said(data):
    db = publish(data)
    for wrong in (0, -1, "40", float("nan"), None):
        with pytest.raises(InvalidQuery, match="credits"):
            db.reserve(wrong)
    with pytest.raises(BudgetSpent, match="100 are left"):
        db.reserve(101)
    with pytest.raises(Refused, match="no grant"):
        db.as_analyst("bob").reserve(1)


def test_after_a_crash_the_next_opening_has_all_that_was_not_spent(tmp_path, data):
    path = tmp_path / "people.ledger"
    db = publish(data, ledger=path)
    reserved = db.reserve(40)
    told = reserved.ask(SMOKERS, credits=10)
    shared = db.ledger._shared
    shared._writer._broken = True
    shared._finish(False)  # as if the process had died
    again = publish(data, ledger=path)
    assert again.remaining == 90
    assert again.ask(SMOKERS, credits=10).value == told.value
    reserved.close()  # of the process that is gone: nothing happens
    assert again.remaining == 90
    again.close()


def test_closing_the_table_inside_the_block_ends_well(tmp_path, data):
    path = tmp_path / "people.ledger"
    with publish(data, ledger=path) as db, db.reserve(40) as reserved:
        reserved.ask(SMOKERS)
        db.close()
    again = publish(data, ledger=path)
    assert again.remaining == 99
    again.close()
