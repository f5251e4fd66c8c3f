"""Rows with several owners: sums add, bars are those of the sum, every ledger is charged."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.learn.exact_oracle import ExactOracle

import sulq.kernel.release.release as flow
from sulq import (
    BudgetSpent,
    Category,
    Database,
    EngineFailed,
    Flag,
    InvalidQuery,
    Number,
    Promise,
    Refused,
    Schema,
    SulqError,
    cdf,
    col,
    count,
    distribution,
    histogram,
    mean,
    quantiles,
    total,
    variance,
)
from sulq.federation import split_rows
from sulq.learn import PCA

SCHEMA = Schema(
    Number("age", 0, 120, step=1),
    Number("income", -1000, 5000),
    Category("city", ["a", "b"]),
    Flag("ill"),
)
QUESTIONS = [
    count(where=col("age") >= 65),
    total("income", where=col("ill")),
    mean("income", where=col("ill")),
    variance("age"),
    histogram("city", "ill"),
    cdf("age", edges=[0, 20, 40, 120]),
    quantiles("age", [0.25, 0.5]),
    distribution("income"),
]


def frame(rows: int, seed: int) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": chance.integers(0, 120, rows),
            "income": chance.uniform(-1500, 5500, rows),
            "city": chance.choice(["a", "b"], rows),
            "ill": chance.random(rows) < 0.3,
        }
    )


FRAMES = [frame(3_000, 1), frame(20_000, 2), frame(500, 3)]


def opened(promise: Promise, frames: list[pd.DataFrame] = FRAMES) -> list[Database]:
    return [
        Database.open(rows, SCHEMA, promise, ":memory:", name=f"owner{place}")
        for place, rows in enumerate(frames)
    ]


@pytest.mark.sample(3)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.kind)
def test_without_noise_the_owners_together_say_what_one_table_says(question: Any) -> None:
    promise = Promise(1, 1e-6)
    parts = split_rows(*(ExactOracle(db) for db in opened(promise)))
    whole = ExactOracle(Database.open(pd.concat(FRAMES), SCHEMA, promise, ":memory:"))
    np.testing.assert_allclose(parts.ask(question).value, whole.ask(question).value, rtol=1e-6)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_bar_is_that_of_the_sum_of_all_noises(noise: str) -> None:
    promise = Promise(1, 1e-6 if noise == "gaussian" else 0)
    owners = opened(promise)
    parts = split_rows(*owners)
    question = count(where=col("age") >= 65)
    alone = owners[0].quote(question).standard_error
    answer = parts.ask(question)
    assert answer.standard_error == pytest.approx(alone * 3**0.5, rel=1e-6)
    assert parts.quote(question).repeat
    truth = int((pd.concat(FRAMES).age >= 65).sum())
    assert abs(float(answer) - truth) < 12 * answer.standard_error
    assert answer.credits == 1 and all(db.remaining == 99 for db in owners)
    assert answer.receipt.seq == tuple(receipt.seq for receipt in answer.receipt.each)


def test_a_share_too_small_anywhere_spends_nothing_anywhere() -> None:
    owners = opened(Promise(1, 1e-6, queries=10))
    owners[1].ask(count(where=col("ill")), credits=9)
    with pytest.raises(BudgetSpent, match="nothing was asked"):
        split_rows(*owners).ask(total("income"), credits=2)
    assert [db.remaining for db in owners] == [10, 1, 10]


def test_after_a_failure_the_same_key_pays_once() -> None:
    owners = opened(Promise(1, 1e-6))

    class Failing:
        def __getattr__(self, name: str) -> Any:
            return getattr(owners[1], name)

        def ask(self, *args: Any, **terms: Any) -> Any:
            raise Refused("closed")

    question = count(where=col("ill"))
    broken: Any = Failing()
    with pytest.raises(Refused) as caught:
        split_rows(owners[0], broken, owners[2]).ask(question, key="one-attempt")
    assert "key='one-attempt'" in caught.value.__notes__[0]
    assert caught.value.credits_spent is None  # one owner charged
    spent = Fraction(99)
    split_rows(*owners).ask(question, key="one-attempt")
    assert [db.remaining for db in owners] == [spent, spent, spent]


def misfits() -> list[Any]:
    """What an owner may send in place of the answer, given its table and the question."""
    return [
        lambda db, answer: db.ask(histogram("city")),
        lambda db, answer: db.ask(total("income", where=col("ill"))),
        lambda db, answer: db.ask(distribution("age")),
        lambda db, answer: replace(answer, values=()),
        lambda db, answer: replace(answer, values=(*answer.values, 1)),
        lambda db, answer: replace(answer, values=(0.5,) * len(answer.values)),
        lambda db, answer: replace(answer, laws=answer.laws * 2),
        lambda db, answer: replace(answer, bound=None),
        lambda db, answer: None,
    ]


@pytest.mark.sample(7)
@pytest.mark.parametrize("question", [QUESTIONS[0], QUESTIONS[2], QUESTIONS[7]])
@pytest.mark.parametrize("lie", misfits())
def test_a_reply_to_another_question_is_an_error_of_ours(question: Any, lie: Any) -> None:
    """It was a bare ValueError, after the charges at all of them."""
    owners = opened(Promise(1, 1e-6), [frame(40, 1), frame(50, 2)])

    class Misfit:
        def __getattr__(self, name: str) -> Any:
            return getattr(owners[1], name)

        def ask(self, query: Any, **terms: Any) -> Any:
            return lie(owners[1], owners[1].ask(query, **terms))

    liar: Any = Misfit()
    with pytest.raises(SulqError, match="owner 2 sent what is no answer") as caught:
        split_rows(owners[0], liar).ask(question, key="once")
    assert caught.value.credits_spent is None
    left = owners[0].remaining
    split_rows(*owners).ask(question, key="once")
    assert owners[0].remaining == left  # paid already


def test_a_quote_for_another_question_is_refused_free() -> None:
    owners = opened(Promise(1, 1e-6), [frame(40, 1), frame(50, 2)])

    class Misfit:
        def __getattr__(self, name: str) -> Any:
            return getattr(owners[1], name)

        def quote(self, query: Any, **terms: Any) -> Any:
            return owners[1].quote(mean("age"), **terms)

    liar: Any = Misfit()
    with pytest.raises(Refused, match="owner 2 quoted another question"):
        split_rows(owners[0], liar).ask(count())
    assert [db.remaining for db in owners] == [100, 100]


def test_a_retry_needs_no_second_share() -> None:
    """One owner charged all it had and did not answer: under the same key that is still paid."""
    owners = opened(Promise(1, 1e-6, queries=10), FRAMES[:2])
    question = count(where=col("ill"))

    def fails(laws: Any) -> Any:
        raise EngineFailed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(EngineFailed):
        patch.setattr(flow, "draw_noise", fails)
        split_rows(*owners).ask(question, credits=10, key="once")
    assert 0 in [db.remaining for db in owners]  # the other one may not have been reached
    again = split_rows(*owners)
    again.ask(question, credits=10, key="once")
    assert [db.remaining for db in owners] == [0, 0]
    with pytest.raises(BudgetSpent):
        again.ask(total("income"), credits=1, key="new")


def test_a_key_does_not_let_one_owner_pay_alone() -> None:
    owners = opened(Promise(1, 1e-6, queries=10), FRAMES[:2])
    owners[1].ask(count(where=col("ill")), credits=9)
    with pytest.raises(BudgetSpent):
        split_rows(*owners).ask(total("income"), credits=2, key="new")
    assert [db.remaining for db in owners] == [10, 1]


def test_owners_must_mean_the_same() -> None:
    first, second = opened(Promise(1, 1e-6))[:2]
    other = Database.open(FRAMES[2], SCHEMA, Promise(2, 1e-6), ":memory:", name="other")
    with pytest.raises(InvalidQuery, match="agree on one promise"):
        split_rows(first, other)
    wide = Schema(*SCHEMA.columns[1:], Number("age", 0, 130, step=1))
    with pytest.raises(InvalidQuery, match="other columns, bounds or values"):
        split_rows(first, Database.open(FRAMES[2], wide, Promise(1, 1e-6), ":memory:", name="w"))
    with pytest.raises(InvalidQuery, match="2 owners or more"):
        split_rows(second)


def test_sql_and_learners_see_one_table() -> None:
    parts = split_rows(*opened(Promise(5, 1e-6)))
    found = parts.sql("SELECT city, COUNT(*) AS n FROM t GROUP BY city")
    assert sum(cell.value for cell in found.column("n")) == pytest.approx(23_500, abs=500)
    learned = PCA(n_components=1).fit(parts, ["age", "income"])
    assert learned.components_.shape == (1, 2)
