"""Through a real database: what was paid for is free, in other words too; and who pays what."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.people import frame, publish

from sulq import (
    BudgetSpent,
    Category,
    Flag,
    Number,
    Promise,
    Refused,
    Schema,
    cdf,
    col,
    count,
    histogram,
    mean,
    outer,
    total,
    variance,
)
from sulq.exact.domain import Assumptions
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.query.vectors import columns

OLD = col("age") >= 65
YOUNG = (col("age") < 65) | col("age").is_null()
TINY = Fraction(1, 10**9)


def paid(db: Any) -> Fraction:
    return Fraction(db.promise.credits) - db.remaining


def test_a_complement_is_free_says_so_and_adds_up() -> None:
    db = publish()
    first = db.ask(count(where=OLD))
    rest = db.ask(count(where=YOUNG))
    assert rest.credits == 0 and paid(db) == 1
    assert rest.sources == (first.receipt.seq,)
    assert rest.note == f"derived from receipt {first.receipt.seq}"
    assert rest.value == db.size - first.value
    assert rest.standard_error == first.standard_error
    assert rest.receipt.seq != first.receipt.seq
    assert db.ask(count(where=YOUNG)).receipt.body["seq"] == rest.receipt.body["seq"]


def test_public_strata_have_public_sizes() -> None:
    db = publish()
    here = col("city") == "Oslo"
    ill = db.ask(count(where=here & OLD))
    well = db.ask(count(where=here & YOUNG))
    assert well.credits == 0
    assert ill.value + well.value == (frame().city == "Oslo").sum()
    assert db.ask(count(where=YOUNG)).credits == 1  # the other city is still unknown


@pytest.mark.parametrize("noise", ["laplace", "binomial", "huber"])
def test_other_noises_derive_but_do_not_top_up(noise: str) -> None:
    delta = 0 if noise == "laplace" else "1e-6"
    db = publish(promise=Promise(1, delta, queries=100, noise=noise))
    ill = db.ask(count(where=OLD))
    well = db.ask(count(where=YOUNG))
    assert well.credits == 0 and ill.value + well.value == db.size
    assert well.interval() == (db.size - ill.interval()[1], db.size - ill.interval()[0])
    db.ask(count(where=col("smoker")))
    db.ask(count(where=~col("smoker")))
    spent = paid(db)
    db.ask(count(where=col("smoker").is_not_null()))  # twice the variance is not enough
    assert paid(db) == spent + 1


def test_a_looser_laplace_question_is_met_by_a_sum_with_its_own_bar() -> None:
    db = publish(promise=Promise(20, queries=100))
    parts = [db.ask(count(where=col("blood") == value)) for value in "AB"]
    both = db.ask(count(where=col("blood").isin(["A", "B"])), credits=0.5)
    assert both.credits == 0 and both.value == pytest.approx(sum(p.value for p in parts), abs=1)
    half = (both.interval()[1] - both.interval()[0]) / 2
    alone = (parts[0].interval()[1] - parts[0].interval()[0]) / 2
    assert 1.2 < half / alone < 1.5  # less than twice, as two independent noises


def test_a_finer_answer_costs_the_missing_precision_only() -> None:
    """M.7: 1 + 2 credits, and law, bar and price of one answer of 3 credits."""
    db, fresh = publish(), publish()
    question = count(where=OLD)
    once = db.ask(question)
    finer = db.ask(question, credits=3)
    alone = fresh.ask(question, credits=3)
    assert abs(finer.credits - 2) < TINY and abs(paid(db) - 3) < TINY
    assert finer.standard_error == pytest.approx(alone.standard_error, rel=1e-9)
    assert finer.laws[0].sigma_squared == pytest.approx(alone.laws[0].sigma_squared, rel=1e-9)
    first, second, _ = db.ledger.entries()
    weighted = (first.values[0] + 2 * second.values[0]) / 3
    assert (first.receipt.seq, second.receipt.seq) == (once.receipt.seq, finer.receipt.seq)
    assert finer.value == round(weighted / 2**30)
    assert db.quote(question, credits=3).repeat
    assert abs(db.quote(question, credits=4).credits - 1) < TINY


def test_the_same_size_again_is_a_new_draw() -> None:
    """1 credit, then 2: the second draw has the first one's size, and must be its own."""
    db = publish()
    question = count(where=OLD)
    db.ask(question, credits=1)
    db.ask(question, credits=2)
    drawn = [entry for entry in db.ledger.entries() if entry.charged]
    assert len(drawn) == 2
    assert drawn[0].values != drawn[1].values and drawn[0].noise != drawn[1].noise


def test_a_matrix_and_a_histogram_are_topped_up_as_a_whole() -> None:
    db, numbers = publish(), columns(["age", "income"])
    for question in (outer(numbers, numbers), histogram("blood")):
        unit = db.quote(question).credits
        rough = db.ask(question)
        finer = db.ask(question, credits=4 * unit)
        assert abs(finer.credits - 3 * unit) < TINY
        assert finer.standard_error == pytest.approx(rough.standard_error / 2, rel=1e-9)


def test_a_derived_estimate_counts_for_its_precision() -> None:
    """Two halves give the whole at variance 2: the other half of the precision is paid."""
    db = publish()
    for where in (col("smoker"), ~col("smoker")):
        db.ask(count(where=where))
    whole = db.ask(count(where=col("smoker").is_not_null()))
    assert abs(whole.credits - Fraction(1, 2)) < TINY
    unit = publish().ask(count(where=OLD)).standard_error
    assert whole.standard_error == pytest.approx(unit, rel=1e-9)
    finer = Fraction(13, 10)  # overlapping answers share: 1 + 1/3 in all
    part = db.ask(count(where=col("smoker")), credits=finer)
    assert part.credits == 0 and part.standard_error < 0.9 * unit


def test_no_source_is_left_out_when_a_draw_is_added() -> None:
    """24 parts have 24 times the variance: 23/24 of the price is missing, and then nothing is."""
    db = publish()
    parts = [db.ask(count(where=col("age") == k)) for k in range(24)]
    whole = db.ask(count(where=(col("age") >= 0) & (col("age") < 24)))
    assert abs(whole.credits - Fraction(23, 24)) < TINY and len(whole.sources) == 25
    assert whole.standard_error == pytest.approx(parts[0].standard_error, rel=1e-9)


def test_coarser_groups_and_parts_of_a_vector_are_free() -> None:
    db = publish()
    table = db.ask(histogram("blood", "smoker", other=True), credits=4)
    before = paid(db)
    blood = db.ask(histogram("blood"), credits=0.5)
    off = (db.size - table.value.sum()) / 12  # all 12 cells add up to a public number
    assert blood.value == pytest.approx(table.value[:3].sum(axis=1) + 3 * off)
    assert blood.standard_error == pytest.approx(table.standard_error[0, 0] * np.sqrt(3 - 9 / 12))
    one = db.ask(count(where=(col("blood") == "A") & col("smoker")))
    assert one.value == round(table.value[0, 1] + off)
    average = db.ask(mean("age"), credits=3)
    counted = db.ask(count("age"), credits=1)
    summed = db.ask(total("age"), credits=0.1)
    assert counted.credits == summed.credits == 0
    assert summed.value / counted.value == pytest.approx(average.value, rel=1e-2)
    assert paid(db) == before + 3


def test_ratios_know_that_their_parts_share_noise() -> None:
    """A mean of derived parts: numerator and denominator come from the same answers."""
    db = publish(promise=Promise(8, "1e-6", queries=100))
    rows = frame()
    db.ask(mean("age"), credits=8)
    db.ask(mean("age", where=col("smoker")), credits=8)
    rest = db.ask(mean("age", where=~col("smoker") | col("smoker").is_null()), credits=2)
    truth = rows[~rows.smoker].age.mean()
    assert rest.credits == 0 and len(rest.sources) == 2
    assert abs(rest.value - truth) < 6 * rest.standard_error
    low, high = rest.interval()
    assert low < truth < high or abs(rest.value - truth) > 1.9 * rest.standard_error
    db.ask(variance("age"), credits=8)
    db.ask(variance("age", where=col("smoker")), credits=8)
    spread = db.ask(variance("age", where=~col("smoker") | col("smoker").is_null()), credits=1)
    assert spread.credits == 0
    assert abs(spread.value - rows[~rows.smoker].age.var(ddof=0)) < 6 * spread.standard_error


def test_sums_below_an_edge_may_lean_on_one_answer() -> None:
    db = publish()
    db.ask(histogram("age", edges=[0, 10, 20, 30, 40, 120]), credits=8)
    found = db.ask(cdf("age", [0, 20, 40, 120]), credits=2)
    assert found.credits == 0
    unit = publish().ask(count(where=OLD)).standard_error
    expected = unit / 2 * np.sqrt([0, 2, 4, 5])
    assert found.standard_error == pytest.approx(expected)


def test_open_text_and_arithmetic_match_where_they_are_the_same() -> None:
    schema = Schema(Number("a", 0, 9, step=1), Number("b", 0, 9, step=1), Flag("f"), Category("t"))
    data = {"a": [1, 2, 3] * 9, "b": [3, 2, 1] * 9, "f": [True, False, None] * 9, "t": ["x"] * 27}
    db = publish(pd.DataFrame(data), schema)
    less = col("a") < col("b")
    for where in (less & col("f"), col("t").like("x%") & col("f"), col("a") + col("b") > 3):
        db.ask(count(where=where))
    spent = paid(db)
    for where in (less & (~col("f") | col("f").is_null()), col("t").like("y%") & col("f")):
        db.ask(count(where=where))
    assert paid(db) == spent + 2
    assert db.ask(count(where=~(col("a") + col("b") > 3))).credits == 1  # a sum may be missing
    db.ask(count(where=less))
    assert db.ask(count(where=less & ~col("f")), credits=0.01).credits > 0


# --- who pays, and who sees ---------------------------------------------------------------------


def two_analysts(**more: Any) -> tuple[Any, Any, Any]:
    db = publish(**more)
    db.grant("ann", 30)
    db.grant("bob", 30)
    return db, db.as_analyst("ann"), db.as_analyst("bob")


def test_a_share_pays_once_for_what_is_new_to_its_analyst() -> None:
    db, ann, bob = two_analysts()
    ann.ask(count(where=OLD))
    before = db.statement().spent
    first = bob.ask(count(where=YOUNG))
    again = bob.ask(count(where=YOUNG))
    assert (first.credits, again.credits) == (1, 0) and first.value == again.value
    assert (ann.remaining, bob.remaining) == (29, 29)
    assert db.statement().spent == before  # the accounts paid for it once
    assert ann.ask(count(where=YOUNG)).credits == 0  # her own answer says it


def test_a_share_pays_no_second_time_when_others_have_asked_since() -> None:
    _, ann, bob = two_analysts()
    ann.ask(count(where=col("smoker")))
    ann.ask(count(where=~col("smoker")))
    both = count(where=col("smoker").is_not_null())
    first = bob.ask(both, credits=0.5)
    assert first.credits == Fraction(1, 2)
    ann.ask(both, credits=4)
    again = bob.ask(both, credits=0.5)
    assert again.credits == 0 and again.value == first.value
    assert abs(bob.ask(both, credits=2).credits - Fraction(3, 2)) < TINY


def test_a_top_up_charges_the_share_what_its_analyst_lacks() -> None:
    db, ann, bob = two_analysts()
    ann.ask(count(where=OLD), credits=2)
    finer = bob.ask(count(where=OLD), credits=3)
    assert finer.credits == 3 and bob.remaining == 27
    assert abs(db.statement().spent - 3) < TINY
    assert abs(ann.ask(count(where=OLD), credits=3).credits - 1) < TINY
    assert abs(db.statement().spent - 3) < TINY


def test_a_quote_shows_nothing_of_a_colleague() -> None:
    """Whatever ann has asked, bob is quoted the same."""
    questions = [
        count(where=OLD),
        count(where=YOUNG),
        count(where=col("smoker").is_not_null()),
        histogram("blood"),
        mean("age"),
    ]
    _, _, alone = two_analysts()
    _, ann, bob = two_analysts()
    for question in (*questions[:2], histogram("blood", "smoker", other=True), mean("age")):
        ann.ask(question, credits=2)
    for where in (col("smoker"), ~col("smoker")):
        ann.ask(count(where=where))
    for question in questions:
        for credits in (0.1, 1, 2, 3):
            one, two = (who.quote(question, credits=credits) for who in (alone, bob))
            assert (one.credits, one.repeat, one.note) == (two.credits, two.repeat, two.note)
            assert np.array_equal(one.standard_error, two.standard_error)
    assert ann.quote(count(where=YOUNG)).repeat


def test_a_spent_share_refuses_what_only_others_have_paid_for() -> None:
    _, ann, bob = two_analysts()
    ann.ask(count(where=OLD))
    bob.ask(count(where=col("smoker")), credits=30)
    with pytest.raises(BudgetSpent, match="bob's share"):
        bob.ask(count(where=YOUNG))
    assert bob.ask(count(where=~col("smoker") | col("smoker").is_null())).credits == 0


# --- never data, always the same bytes ----------------------------------------------------------


def test_no_row_is_read_for_what_is_derived(monkeypatch: pytest.MonkeyPatch) -> None:
    db = publish()
    for where in (col("smoker"), ~col("smoker")):
        db.ask(count(where=where))

    def refuse(*_: Any) -> Any:
        raise AssertionError("a row was read")

    monkeypatch.setattr(type(db.engine), "exact_sums", refuse)
    monkeypatch.setattr(type(db.engine), "prepare", refuse)
    db.ask(count(where=col("smoker").is_not_null()), credits=0.5)


def test_a_hit_never_depends_on_rows() -> None:
    """Two tables of other rows: the same questions are free, at the same prices."""
    prices = []
    for seed in (1, 2):
        db = publish(frame(seed=seed))
        asked = [
            count(where=OLD),
            count(where=YOUNG),
            histogram("blood"),
            count(where=col("blood") == "A"),
        ]
        prices.append([db.ask(question).credits for question in asked])
    assert prices[0] == prices[1] == [1, 0, 2, 0]


def test_a_key_keeps_its_derived_answer(tmp_path: Path) -> None:
    db = publish(ledger=tmp_path / "ledger")
    for where in (col("smoker"), ~col("smoker")):
        db.ask(count(where=where))
    both = count(where=col("smoker").is_not_null())
    first = db.ask(both, credits=0.5, key="k")
    topped = db.ask(count(where=OLD), credits=1) and db.ask(count(where=OLD), credits=2, key="t")
    db.ask(both, credits=5)
    db.ask(count(where=OLD), credits=5)
    assert db.ask(both, credits=0.5, key="k").value == first.value
    with pytest.raises(Refused, match="another question"):
        db.ask(count(where=YOUNG), key="k")
    spent = db.remaining
    with pytest.raises(Refused, match="another question"):
        db.ask(both, credits=9, key="t")
    assert db.remaining == spent  # refused before anything was charged
    db.close()
    again = publish(ledger=tmp_path / "ledger")
    for key, question, credits, before in (
        ("k", both, 0.5, first),
        ("t", count(where=OLD), 2, topped),
    ):
        found = again.ask(question, credits=credits, key=key)
        assert found.value == before.value and found.credits == 0
        assert found.receipt.to_json() == before.receipt.to_json()
        assert found.standard_error == before.standard_error


def test_the_store_comes_back_with_the_ledger(tmp_path: Path) -> None:
    db = publish(ledger=tmp_path / "ledger")
    first = db.ask(count(where=OLD))
    db.close()
    again = publish(ledger=tmp_path / "ledger")
    rest = again.ask(count(where=YOUNG))
    assert rest.credits == 0 and rest.sources == (first.receipt.seq,)


def test_a_draw_that_was_charged_and_not_answered_is_not_charged_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db = publish()
    db.ask(count(where=OLD))
    settle = type(db.ledger).settle_all

    def crash(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(db.ledger), "settle_all", crash)
    with pytest.raises(KeyboardInterrupt):
        db.ask(count(where=OLD), credits=3)
    monkeypatch.setattr(type(db.ledger), "settle_all", settle)
    spent = paid(db)
    assert abs(spent - 3) < TINY
    db.ask(count(where=OLD), credits=3)
    assert paid(db) == spent


def test_nothing_released_under_assumptions_is_used() -> None:
    schema = Schema(Flag("ill"), Category("site", ["a", "b"], public=True))
    data = pd.DataFrame(
        {"ill": np.random.default_rng(1).random(4_000) < 0.5, "site": ["a", "b"] * 2_000}
    )
    exactly = Assumptions(epsilon=2, delta="1e-3", known_rows=10, least={"ill": 0.3})
    db = publish(data, schema, exactly=exactly)
    [exact] = db.ask_exactly([count(where=col("ill"))])
    noisy = db.ask(count(where=col("ill")))
    assert (
        noisy.credits == 1 and noisy.sources == () and exact.standard_error != noisy.standard_error
    )


def test_persons_have_no_public_number_of_rows() -> None:
    schema = Schema(Flag("f"), Number("cost", 0, 9, step=1), unit="person", max_rows=2)
    data = {
        "person": [1, 1, 2, 3, 3, 3],
        "f": [True, False, True, True, False, False],
        "cost": [1] * 6,
    }
    db = publish(pd.DataFrame(data), schema)
    db.ask(count(where=col("f")))
    assert db.ask(count(where=~col("f") | col("f").is_null())).credits > 0


def test_what_was_stored_just_now_is_not_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next question asks what the last answer tells: it is still in memory."""
    read: list[int] = []
    stored_answers = Ledger.stored_answers

    def noted(ledger: Ledger, numbers: list[int]) -> Any:
        read.extend(numbers)
        return stored_answers(ledger, numbers)

    monkeypatch.setattr(Ledger, "stored_answers", noted)
    with publish() as db:
        whole, old = db.ask(count()), db.ask(count(where=OLD))
        young = db.ask(count(where=YOUNG))
        assert read == [] and young.credits == 0
        assert young.value == whole.value - old.value
