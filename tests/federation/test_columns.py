"""Columns with several owners: sign sketches, their bars, aligned rows. V.1"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.learn.exact_oracle import ExactOracle

from sulq import (
    BudgetSpent,
    Category,
    Database,
    EngineFailed,
    Flag,
    InvalidQuery,
    Number,
    Promise,
    Schema,
    SumQuery,
    col,
    count,
    mean,
    outer,
)
from sulq.federation import ColumnSplit, split_columns
from sulq.federation.sketches import (
    best_count,
    bit_total,
    coordinates,
    product_errors,
    products,
    sketch_questions,
)
from sulq.kernel.accounting.gaussian import gaussian_mu
from sulq.kernel.query.expressions import hashed
from sulq.kernel.query.vectors import columns, ones
from sulq.learn import PCA

ROWS = 20_000
PROMISE = Promise(1, 1e-6)


def _rows() -> pd.DataFrame:
    chance = np.random.default_rng(5)
    z = chance.normal(size=ROWS)
    return pd.DataFrame(
        {
            "id": np.arange(ROWS),
            "a": np.clip(50 + 20 * z + 5 * chance.normal(size=ROWS), 0, 100),
            "b": chance.choice(["x", "y", "z"], ROWS),
            "c": np.clip(50 - 20 * z + 5 * chance.normal(size=ROWS), 0, 100),
            "d": chance.random(ROWS) < 0.5,
        }
    )


FRAME = _rows()
ID = Number("id", 0, ROWS - 1, step=1, public=True)
LEFT = Schema(ID, Number("a", 0, 100), Category("b", ["x", "y", "z"]))
RIGHT = Schema(ID, Number("c", 0, 100), Flag("d"))


def tables(promise: Promise = PROMISE) -> tuple[Database, Database]:
    shuffled = FRAME.sample(frac=1, random_state=1)
    return (
        Database.open(FRAME[["id", "a", "b"]], LEFT, promise, ":memory:", name="left"),
        Database.open(shuffled[["id", "c", "d"]], RIGHT, promise, ":memory:", name="right"),
    )


def joined(**terms: Any) -> ColumnSplit:
    return split_columns(*tables(), row="id", **terms)


# --- the estimator ------------------------------------------------------------------------------


def test_mean_and_variance_of_a_sketch_by_enumeration() -> None:
    x, y, noise = np.array([0.2, 0.9, 0.5, 0.6]), np.array([0.7, 0.1, 1.0, 0.3]), 4.0
    found = [
        (float(s @ x), float(s @ y)) for s in map(np.array, itertools.product((-1, 1), repeat=4))
    ]
    u, v = np.array(found).T
    # independent noise of variance R on both: E[UV] = E[uv], E[(UV)^2] = E[(u^2+R)(v^2+R)]
    variance = ((u**2 + noise) * (v**2 + noise)).mean() - (u * v).mean() ** 2
    assert (u * v).mean() == pytest.approx(x @ y)
    assert products(u[:, None], v[:, None])[0, 0] == pytest.approx(x @ y)
    exact = (x @ x + noise) * (y @ y + noise) + (x @ y) ** 2 - 2 * (x**2 * y**2).sum()
    assert variance == pytest.approx(exact)
    bar = product_errors(np.array([[x @ y]]), *(np.array([w @ w]) for w in (x, y)), (noise,) * 2, 1)
    assert bar[0, 0] ** 2 >= variance
    assert bar[0, 0] ** 2 == pytest.approx(exact + 2 * (x**2 * y**2).sum())


def test_golden_values() -> None:
    c = 1 / float(gaussian_mu(1, 1e-6)) ** 2
    assert c == pytest.approx(17.847911717923733, rel=1e-9)
    best = math.sqrt(25_000**2 + 15_000**2) / c
    assert best == pytest.approx(1633.510963915621, rel=1e-9)
    for t, golden in ((best, 1390.3592098457063), (200, 2281.6891059989625)):
        found = product_errors(
            np.array([[15_000.0]]), np.array([25_000.0]), np.array([25_000.0]), (c * t, c * t), 1
        )
        assert found[0, 0] / math.sqrt(t) == pytest.approx(golden, rel=1e-9)


def test_the_number_of_sign_vectors_has_public_reasons_and_limits() -> None:
    assert best_count(100_000, 100.0, 4) == math.ceil(100_000 / 12 / 100)
    assert best_count(10, 100.0, 4) == 16
    assert best_count(10**9, 1.0, 1) == 512
    assert best_count(10**9, 1.0, 512) == 16
    assert best_count(1000, 0.0, 1) == 16


def test_a_sign_costs_what_the_column_alone_costs() -> None:
    left, _ = tables()
    part = coordinates(LEFT, "a")
    (signed, sums), *_ = sketch_questions(part, "id", range(3))
    assert sums == 3
    assert left.quote(signed).credits == 3 * left.quote(SumQuery((col("a"),))).credits


def test_bits_are_those_of_the_engine() -> None:
    left, _ = tables()
    found = left.ask(SumQuery((hashed("id", 7), hashed("id", 8))))
    assert found.credits == 0
    assert list(np.ravel(found.value)) == [bit_total(ROWS, 7), bit_total(ROWS, 8)]


# --- the joint table ----------------------------------------------------------------------------


def test_one_owners_columns_are_asked_there() -> None:
    left, right = tables()
    both = split_columns(left, right, row="id")
    both.ask(mean("c"))
    both.ask(count(where=col("d") & (col("id") < 100)))
    assert left.remaining == 100 and right.remaining < 98
    assert both.remaining == right.remaining and both.size == ROWS


def _scaled() -> np.ndarray[Any, Any]:
    hot = (FRAME.b.to_numpy()[:, None] == np.array(["x", "y", "z"])) * 1.0
    return np.column_stack([FRAME.a / 100, FRAME.c / 100, hot, FRAME.d * 1.0])


@pytest.mark.slow
@pytest.mark.usefixtures("settled")
def test_products_across_owners_lie_within_their_bars() -> None:
    left, right = tables()
    both = split_columns(left, right, row="id")
    names = ["a", "c", "b", "d"]
    centre = [0.4, 0.5, 0.3, 0.3, 0.3, 0.5]
    question = outer(columns(names, centre), columns(names, centre))
    quoted = both.quote(question, credits=60)
    answer = both.ask(question, credits=60)
    rows = _scaled() - np.array(centre)
    # 36 entries, each a mean over many sign vectors: 6 errors are passed less than once in 1e6
    off = np.abs(np.asarray(answer.value) - rows.T @ rows) / np.asarray(answer.standard_error)
    assert off.max() < 6
    assert answer.credits <= 60 == quoted.credits
    assert 100 - left.remaining == pytest.approx(60, rel=1e-6)
    assert 100 - right.remaining == pytest.approx(60, rel=1e-6)
    across = float(np.asarray(answer.standard_error)[0, 1])
    assert across == pytest.approx(float(np.asarray(quoted.standard_error)[0, 1]), rel=0.6)


def test_sums_across_owners() -> None:
    both = joined()
    answer = both.ask(outer(ones(), columns(["d", "a"])), credits=10)
    assert np.asarray(answer.value).shape == (1, 2)
    expected = np.array([FRAME.d.sum(), FRAME.a.sum() / 100])
    assert (np.abs(answer.value[0] - expected) < 8 * answer.standard_error[0]).all()


@pytest.mark.slow
def test_without_noise_the_sketches_alone_err() -> None:
    both = split_columns(*(ExactOracle(db) for db in tables()), row="id", sketches=64)  # type: ignore[arg-type]
    names = ["a", "c"]
    found = both.ask(outer(columns(names, [0.5, 0.5]), columns(names, [0.5, 0.5])), credits=50)
    x, y = FRAME.a / 100 - 0.5, FRAME.c / 100 - 0.5
    assert found.value[0, 0] == pytest.approx(float(x @ x), rel=1e-4)
    spread = math.sqrt(((x @ x) * (y @ y) + (x @ y) ** 2) / 64)
    assert abs(found.value[0, 1] - x @ y) < 6 * spread


@pytest.mark.usefixtures("settled")
def test_components_of_a_table_nobody_holds() -> None:
    learned = PCA(n_components=1).fit(joined(), ["a", "c"])
    covariance = np.cov(_scaled()[:, :2].T)
    best = np.linalg.eigvalsh(covariance)[-1]
    caught = learned.components_[0] @ covariance @ learned.components_[0]
    assert caught / best > 0.9
    assert abs(learned.explained_variance_[0] - best) < 6 * learned.explained_variance_error_[0]


def test_what_needs_whole_rows_is_refused_free() -> None:
    both = joined()
    for question in (
        count(where=(col("a") > 50) & col("d")),
        mean("a", where=col("d")),
        outer(columns(["a", "c"], None, 0.5), columns(["a", "c"], None, 0.5)),
    ):
        with pytest.raises(InvalidQuery, match=r"needs whole rows, .* owners 1 and 2"):
            both.ask(question)
    with pytest.raises(InvalidQuery, match="no column"):
        both.ask(mean("nothing"))
    assert both.remaining == 100


def test_too_dear_spends_nothing() -> None:
    both = joined()
    with pytest.raises(BudgetSpent, match="nothing was asked"):
        both.ask(outer(columns(["a", "c"]), columns(["a", "c"])), credits=101)
    assert both.remaining == 100


@pytest.mark.sample(2)
@pytest.mark.parametrize("fault", ["missing", "twice", "range", "private", "rows"])
def test_rows_that_are_not_aligned_are_refused(fault: str) -> None:
    other, schema = FRAME[["id", "c", "d"]].copy(), RIGHT
    if fault == "missing":
        other.loc[5, "id"] = -1
    elif fault == "twice":
        other.loc[5, "id"] = 6
    elif fault == "range":
        schema = Schema(Number("id", 0, ROWS, step=1, public=True), *RIGHT.columns[1:])
    elif fault == "private":
        schema = Schema(Number("id", 0, ROWS - 1, step=1), *RIGHT.columns[1:])
    else:
        other = other.iloc[:-1]
    left, _ = tables()
    right = Database.open(other, schema, PROMISE, ":memory:", name="right")
    with pytest.raises(InvalidQuery, match=r"aligned|number the rows|have .* rows"):
        split_columns(left, right, row="id")
    assert left.remaining == right.remaining == 100


def test_after_a_failure_the_same_key_goes_on() -> None:
    """With everything that is left: what was paid before the failure is not asked for again."""
    left, right = tables()
    patience = [4]

    class Failing:
        def __getattr__(self, name: str) -> Any:
            return getattr(right, name)

        def ask(self, *args: Any, **terms: Any) -> Any:
            patience[0] -= 1
            if patience[0] == 0:
                raise EngineFailed
            return right.ask(*args, **terms)

    broken: Any = Failing()
    split = split_columns(left, broken, row="id", sketches=4)
    question = outer(columns(["a", "c"]), columns(["a", "c"]))
    with pytest.raises(EngineFailed) as caught:
        split.ask(question, credits=100, key="one-attempt")
    assert "key='one-attempt'" in caught.value.__notes__[0]
    assert left.remaining == 0 < right.remaining < 100
    with pytest.raises(BudgetSpent, match="nothing was asked"):
        split.ask(question, credits=100, key="another")
    assert split.ask(question, credits=100, key="one-attempt").value.shape == (2, 2)
    assert left.remaining == right.remaining == 0


def test_the_price_does_not_hang_on_what_was_asked() -> None:
    split = joined(sketches=4)
    question = outer(columns(["a", "c"]), columns(["a", "c"]))
    first = split.quote(question).credits
    split.ask(question)
    assert split.quote(question).credits == first > 0
    with pytest.raises(InvalidQuery, match="give credits"):
        split.ask(question, within=5)
    with pytest.raises(InvalidQuery, match="give credits"):
        split.quote(question, within=5)


@pytest.mark.slow
def test_bars_of_few_sketches_do_not_follow_their_own_luck() -> None:
    """The same column twice, hardly any noise: the product is a mean of 4 squares. A bar from these
    squares would be small just when the product is. V.1: |x|^2 |y|^2 / t at least."""
    rows, rich = 60, Promise(50, 1e-3)
    number = Number("id", 0, rows - 1, step=1, public=True)
    vector = columns(["x", "y"], centre=[0.5] * 2)
    for turn in range(3):
        x = np.random.default_rng(turn).permutation(np.arange(rows) % 2)  # so other signs
        owners = [
            Database.open(
                {"id": np.arange(rows), name: x},
                Schema(number, Number(name, 0, 1)),
                rich,
                ":memory:",
                name=f"{name}{turn}",
            )
            for name in "xy"
        ]
        answer = split_columns(*owners, row="id", sketches=4).ask(outer(vector, vector), credits=50)
        assert answer.standard_error[0, 1] > 0.95 * rows / 4 / 2


def test_a_person_loses_the_sum_of_the_ledgers() -> None:
    assert joined().joint_promise == "epsilon 1.403, delta 2e-06 over 2 ledgers"


def test_add_remove_has_no_public_ids() -> None:
    promise = Promise(1, 1e-6, neighbours="add-remove")
    with pytest.raises(InvalidQuery, match="replace"):
        split_columns(*tables(promise), row="id")
