"""outer(left, right) from question to answer: prices, readings, repeats, strata, totality."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from sulq import (
    BudgetSpent,
    Category,
    Database,
    Flag,
    InvalidQuery,
    Number,
    Promise,
    Schema,
    col,
    outer,
)
from sulq.kernel.query import vectors as q

N = 2_000
SCHEMA = Schema(
    Number("age", 0, 100),
    Number("income", 0, 1000),
    Flag("ill"),
    Category("town", ["Oslo", "Paris"], public=True),
)
X = q.columns(["age", "income"], centre=0.5)


def frame(rows: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.uniform(0, 100, rows),
            "income": rng.uniform(0, 1000, rows),
            "ill": rng.random(rows) < 0.3,
            "town": rng.choice(["Oslo", "Paris"], rows),
        }
    )


def opened(promise: Promise | None = None, schema: Schema = SCHEMA) -> Database:
    return Database.open(frame(), schema, promise or Promise(1, 1e-6), ledger=":memory:")


def plain() -> np.ndarray:
    data = frame()
    return np.stack([data["age"] / 100 - 0.5, data["income"] / 1000 - 0.5])


def test_a_gram_matrix_is_symmetric_named_and_near_the_truth() -> None:
    with opened() as db:
        answer = db.ask(outer(X, X))
    value, error = answer.value, answer.standard_error
    assert value.shape == error.shape == (2, 2)
    assert (value == value.T).all()
    assert answer.keys == (("age", "income"), ("age", "income"))
    assert error[0, 1] == pytest.approx(error[0, 0] / math.sqrt(2))
    # 6 standard errors of 4 Gaussian entries: false alarm below 1e-8
    assert (np.abs(value - plain() @ plain().T) < 6 * error + N / 2**18).all()
    low, high = answer.interval(0.95)
    assert (high - low)[0, 1] == pytest.approx((high - low)[0, 0] / math.sqrt(2))
    assert answer.rows()[1].keys() == {"left", "right", "value", "low", "high"}


def test_the_same_noise_in_every_entry_and_the_price_of_the_whole() -> None:
    """Credits are (joint sensitivity / unit)^2, the unit the largest product of two entries."""
    with opened(Promise(1, 1e-6, queries=1000)) as db:
        public = db.quote(outer(q.columns(["age"]), q.one_hot("town")))
        assert public.credits == 1  # the town is public: only the other side can change
        tables = db.quote(outer(q.one_hot("ill"), q.bins("age", [0, 50, 100])))
        assert tables.credits == 2  # V.3
        assert len(set(np.asarray(tables.standard_error).ravel())) == 1
        one = db.quote(outer(q.ones(), q.columns(["age"], centre=0.5)))
        assert one.credits == 4  # it moves by 1, the unit is 1/2
        assert db.quote(outer(q.ones(), q.ones())).credits == 0  # n is public


def test_public_products_are_exact_and_free() -> None:
    with opened() as db:
        before = db.remaining
        answer = db.ask(outer(q.one_hot("town"), q.ones()))
        counts = frame()["town"].value_counts()
        assert answer.value[:, 0].tolist() == [counts["Oslo"], counts["Paris"]]
        assert db.remaining == before


def test_repeats_are_free_and_equal_in_any_spelling() -> None:
    with opened() as db:
        one = db.ask(outer(q.signed(X, col("age") >= 50), X, col("ill") == True))  # noqa: E712
        two = db.ask(outer(q.signed(X, ~(col("age") < 50)), X, col("ill")))
        assert two.credits == 0
        assert (one.value == two.value).all()


def test_only_the_strata_in_s_pay() -> None:
    with opened() as db:
        db.ask(outer(X, X, col("town") == "Oslo"), credits=60)
        db.ask(outer(X, X, col("town") == "Paris"), credits=60)
        with pytest.raises(BudgetSpent):
            db.ask(outer(X, X), credits=60)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_laplace_pays_by_the_l1_norm(neighbours: str) -> None:
    with opened(Promise(1, queries=1000, neighbours=neighbours)) as db:
        quote = db.quote(outer(q.nearest(X, [[0, 0], [0.2, 0.2]]), q.concat(q.ones(), X)))
        # |R|_1 = 1 + 1/2 + 1/2 in units of 1; two different cells may change
        assert quote.credits == (4 if neighbours == "replace" else 2)
        answer = db.ask(outer(X, X))
        assert answer.interval(0.9)[1][0, 1] > answer.value[0, 1]


def test_coins_answer_tables_and_nothing_else() -> None:
    with opened(Promise(1, 1e-6, queries=100, noise="binomial")) as db:
        answer = db.ask(outer(q.one_hot("ill"), q.bins("age", [0, 50, 100])))
        assert answer.credits == 2
        assert (answer.value == np.rint(answer.value)).all()
        with pytest.raises(InvalidQuery, match="binomial"):
            db.ask(outer(X, X))
        signs = q.residual(X, [0, 0], "ill", "hinge")
        with pytest.raises(InvalidQuery, match="binomial"):
            db.ask(outer(signs, q.one_hot("ill")))
        both = q.concat(signs, q.residual(X, [0, 0], col("age") > 50, "hinge"))
        with pytest.raises(InvalidQuery, match="binomial"):  # 1 may become -1: a shift of 2
            db.ask(outer(both, both))


def test_persons_pay_for_all_their_rows() -> None:
    data = frame().assign(who=np.arange(N) // 4)
    schema = Schema(*SCHEMA.columns, unit="who", max_rows=3)
    promise = Promise(1, 1e-6, queries=1000)
    with Database.open(data, schema, promise, ledger=":memory:") as db:
        assert db.quote(outer(q.one_hot("ill"), q.one_hot("town"))).credits == 9 * 2  # M.5
        answer = db.ask(outer(q.ones(), q.ones()))
        assert answer.credits == 9  # how many rows a person has is private
        assert abs(float(answer.value[0, 0]) - 3 * N / 4) < 6 * answer.standard_error[0, 0]


def test_the_quote_says_when_rounding_matters() -> None:
    with opened(Promise(5, 1e-6)) as db:
        fine = db.quote(outer(X, X), credits=1)
        assert fine.note == ""
        coarse = db.quote(outer(X, X), credits=90, rows=10**6)
        assert "rounding may add up to" in coarse.note
        counts = db.quote(outer(q.one_hot("ill"), q.ones()), credits=90, rows=10**9)
        assert counts.note == ""  # nothing was rounded


def test_within_holds_for_every_entry() -> None:
    with opened(Promise(5, 1e-6)) as db:
        quote = db.quote(outer(X, X), within=40.0, confidence=0.9)
        assert np.max(quote.interval(0.9)[1]) <= 40.0


ROWS = [
    (None, None, None, None),
    (math.nan, math.inf, True, "Oslo"),
    (-math.inf, -0.0, False, "elsewhere"),
    (1e308, 5e-324, None, ""),
]
QUESTIONS = [
    outer(X, q.columns(["age", "income", "ill", "town"], clip=0.7)),
    outer(
        q.nearest(X, [[0, 0], [1, 1]]),
        q.concat(q.scaled(q.ones(), 0.3), q.from_nearest(X, [[0, 0], [1, 1]], 0.2)),
    ),
    outer(q.residual(X, [[1, 2], [3, 4]], "town", "logistic"), X),
    outer(q.margin(X, "ill", [1, -1]), q.signed(X, "ill")),
    outer(q.bins(q.norm(X), [0, 0.1, 0.5]), q.crossed(q.one_hot("town", other=True), X)),
    outer(q.softmax(q.concat(q.ones(), X, q.squares(X)), [[50] * 5, [-50] * 5]), X),
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_row_makes_a_question_fail(question: object) -> None:
    for row in ROWS:
        data = pd.concat(
            [frame(50), pd.DataFrame([row], columns=["age", "income", "ill", "town"])]
        ).astype({"ill": "boolean"})
        with Database.open(data, SCHEMA, Promise(1, 1e-6), ledger=":memory:") as db:
            assert np.isfinite(db.ask(question, credits=5).value).all()


def test_credits_are_exact_rationals() -> None:
    with opened() as db:
        quote = db.quote(outer(X, q.project(X, [[0.3, -0.7]])), credits=Fraction(1, 3))
        assert quote.credits == pytest.approx(1 / 3, rel=1e-15)
        assert isinstance(quote.credits, Fraction)
