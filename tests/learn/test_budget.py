"""The purse keeps to its cap and its plan; the plan and the quote read no data."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.people import frame, publish

from sulq import BudgetSpent, InvalidQuery, Promise, Refused, col, count, outer
from sulq.federation import split_rows
from sulq.kernel.noise.laws import DiscreteLaplace
from sulq.kernel.query.vectors import one_hot, ones
from sulq.learn import PCA
from sulq.learn.budget import FitBudget, FitPlan, FitQuote, FitStep, budget_of
from sulq.learn.dataset import FitData


def purse_of(db, cap=None, *steps):
    purse = FitBudget(db, budget_of(db, cap), "test")
    purse.follow(FitPlan("test", steps or (FitStep("a", 1.0),)))
    return purse


def charged(receipt) -> Fraction:
    """What a receipt says the worst account lost, in credits."""
    return max(
        (Fraction(int(loss[0]), 2**64) for loss in receipt.body["charges"]), default=Fraction(0)
    )


@settings(max_examples=25, deadline=None)
@given(
    shares=st.lists(st.floats(0.01, 1), min_size=1, max_size=6),
    cap=st.one_of(st.none(), st.integers(1, 100), st.floats(0.5, 99)),
)
def test_credits_equal_the_receipts_and_keep_to_the_cap(shares, cap):
    db = publish()
    before = db.remaining
    total = sum(shares)
    steps = [FitStep(f"s{i}", share / total) for i, share in enumerate(shares)]
    purse = purse_of(db, cap, *steps)
    for i in range(len(shares)):
        purse.ask(f"s{i}", count(where=col("age") >= i + 1))
    assert purse.spent == sum(map(charged, purse.receipts)) == before - db.remaining
    assert purse.spent <= (before if cap is None else Fraction(cap))
    assert purse.spent >= purse.cap * Fraction(99, 100)


def test_last_question_takes_no_more_than_is_left():
    purse = purse_of(publish(), 10, FitStep("a", 0.75), FitStep("b", 0.25))
    purse.ask("a", count(where=col("age") >= 1))
    purse.ask("b", count(where=col("age") >= 2), share=0.9)
    assert purse.spent <= 10
    with pytest.raises(BudgetSpent, match="raise credits="):
        purse.ask("b", count(where=col("age") >= 3), share=1)


def test_repeat_is_free_and_listed_apart():
    db = publish()
    question = count(where=col("age") >= 30)
    purse_of(db, 5).ask("a", question)
    again = purse_of(db, 5)
    again.ask("a", question)
    assert again.spent == 0
    assert again.receipts == []
    assert len(again.reused) == 1


def test_rounds_share_their_step():
    plan = FitPlan("test", (FitStep("a", 0.6, rounds=3), FitStep("b", 0.4)))
    assert plan.share("a") == pytest.approx(0.2)
    assert plan.rounds == 4


def test_plan_above_the_whole_is_a_bug():
    with pytest.raises(ValueError, match="above 1"):
        FitPlan("test", (FitStep("a", 0.7), FitStep("b", 0.4)))


@pytest.mark.parametrize("credits", [0, -1, True, "5", float("nan"), float("inf")])
def test_wrong_cap_is_refused(credits):
    with pytest.raises(InvalidQuery, match="credits must be a number above 0 or None"):
        PCA(credits=credits).quote(publish(), ["age", "income"])


def test_cap_above_what_is_left_is_refused_before_spending():
    db = publish()
    with pytest.raises(BudgetSpent, match="100 are left"):
        budget_of(db, 101)
    assert db.remaining == 100


def test_quote_names_steps_and_credits():
    plan = FitPlan("lloyd", (FitStep("start", 0.25), FitStep("round", 0.75, 3)), ("a note",))
    text = str(FitQuote(Fraction(40), Fraction(60), plan))
    assert "at most 40 credits" in text
    assert "3 x  30" in text
    assert "a note" in text


def table_of(db, **more):
    terms = {"features": ["age", "income"], "label": None, "kind": "none", "where": None}
    return FitData.of(db, cap=budget_of(db, None), **{**terms, **more})


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_unit_is_the_error_of_a_unit_count(noise, neighbours):
    delta = 0 if noise == "laplace" else 1e-6
    db = publish(promise=Promise(1, delta, noise=noise, neighbours=neighbours))
    table = table_of(db)
    cells = db.quote(outer(ones(), one_hot("smoker")), credits=table.cap).standard_error
    apart = 1 if neighbours == "add-remove" else 2 ** (1 if noise == "laplace" else 0.5)
    if noise == "laplace":  # cells are whole numbers: the geometric law's error, S2.6
        assert table.unit == pytest.approx(2**0.5, rel=1e-6)
        apart = DiscreteLaplace(Fraction(apart)).standard_deviation() / 2**0.5
    assert float(cells[0, 0]) / table.unit == pytest.approx(apart, rel=1e-3)


def test_rows_are_free_where_public_and_paid_for_elsewhere():
    public = publish()
    purse = purse_of(public)
    assert table_of(public).counted(purse).rows == 2_000
    assert purse.spent == 0
    hidden = publish(promise=Promise(1, 1e-6, neighbours="add-remove"))
    purse = purse_of(hidden)
    table = table_of(hidden).counted(purse)
    assert 0 < purse.spent <= Fraction(2)
    assert abs(table.rows - 2_000) < 6 * table.rows_error  # false alarm 2e-9
    purse = purse_of(public)
    part = table_of(public, where=col("age") >= 50).counted(purse)
    assert purse.spent > 0
    assert abs(part.rows - 1_000) < 6 * part.rows_error + 200


def test_whole_credit_laws_are_refused_with_the_remedy():
    db = publish(promise=Promise(1, 1e-6, queries=10, noise="binomial"))
    with pytest.raises(Refused, match="gaussian"):
        table_of(db)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"features": "age"}, "list of column names"),
        ({"features": []}, "list of column names"),
        ({"features": ["age", "age"]}, "every name once"),
        ({"features": ["agee"]}, "agee"),
        ({"label": "smoker"}, "takes no label"),
        ({"kind": "classes"}, "needs label"),
        ({"kind": "classes", "label": "income", "features": ["age"]}, "no declared classes"),
        ({"kind": "number", "label": "smoker"}, "predicts a Number"),
        ({"kind": "number", "label": "income"}, "also a feature"),
    ],
)
def test_wrong_columns_are_refused(terms, words):
    db = publish()
    with pytest.raises(InvalidQuery, match=words):
        table_of(db, **terms)
    assert db.remaining == 100


class Plain:
    """Somebody's own oracle: the protocol and nothing beside it."""

    def __init__(self, oracle):
        self.schema, self.promise, self.size = oracle.schema, oracle.promise, oracle.size
        self.quote, self.ask, self._oracle = oracle.quote, oracle.ask, oracle

    @property
    def remaining(self):
        return self._oracle.remaining


def test_without_credits_a_fit_takes_a_tenth_of_what_the_caller_has_left(tmp_path):
    """Of a ledger that is kept; the quote and the notes say so, before and after."""
    with publish(ledger=tmp_path / "ledger") as db:
        db.grant("ann", 30)
        ann = db.as_analyst("ann")
        with ann.reserve(20) as reserved:
            for oracle, left in ((db, 70), (ann, 10), (reserved, 20)):
                assert oracle.remaining == left
                quote = PCA(1).quote(oracle, ["age", "income"])
                assert left * Fraction(99, 1000) < quote.credits <= Fraction(left, 10)
                assert quote.left_after == left - quote.credits
                assert f"at most a tenth of the {left} credits left" in quote.note
        fitted = PCA(1).fit(ann, ["age", "income"])
        assert 0 < fitted.credits_ <= 3
        assert 27 <= ann.remaining < 30
        assert "at most a tenth of the 30 credits left" in fitted.notes_[0]
        named = PCA(1, credits=20).fit(ann, ["income", "age"])
        assert named.credits_ > 19
        assert not any("a tenth" in note for note in named.notes_)


def test_a_ledger_in_memory_is_spent_whole_and_who_does_not_say_is_durable():
    db = publish()
    assert budget_of(db, None) > 99
    db.grant("ann", 10)
    assert budget_of(db.as_analyst("ann"), None) > 9
    with db.reserve(20) as reserved:
        assert budget_of(reserved, None) > 19
    assert 6 < budget_of(Plain(db), None) <= 9
    assert "a tenth" not in PCA(1).quote(db, ["age", "income"]).note
    assert "a tenth" in PCA(1).quote(Plain(db), ["age", "income"]).note


def test_owners_together_are_durable_if_one_of_them_is(tmp_path):
    with publish(frame(300), ledger=tmp_path / "ledger") as kept:
        assert split_rows(publish(), kept).durable
        assert budget_of(split_rows(publish(), kept), None) <= 10
        assert not split_rows(publish(), publish()).durable
        assert split_rows(publish(), Plain(publish())).durable
