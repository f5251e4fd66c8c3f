"""What binding makes of vectors: refusals, centres, steps, the tables behind the functions."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from tests.kernel.engines.vector_reference import vector
from tests.kernel.schema.tables import FIVE, ROW, SCHEMA

from sulq.errors import InvalidQuery
from sulq.kernel.query import vectors as q
from sulq.kernel.query.expressions import col
from sulq.kernel.query.sum_query import outer
from sulq.kernel.query.vectors import Vector
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.bind_vectors import VectorBinder
from sulq.kernel.schema.columns import Category, Number, Schema
from sulq.kernel.schema.vector_program import FULL, decay_table, logistic_table


@pytest.mark.parametrize(
    ("vector_", "complaint"),
    [
        (q.columns(["age"]), "no column"),
        (q.one_hot("n0"), "a Number"),
        (q.columns(["n0"], centre=[0.5, 0.5]), "centre wants 1"),
        (q.project(ROW, [[1, 2]]), "2 numbers a row"),
        (q.nearest(ROW, [[0] * 4]), "4 numbers a row"),
        (q.nearest(ROW, [[2**30] * 5]), "far outside"),
        (q.margin(ROW, "n0", [1] * 5), "Number"),
        (q.residual(ROW, [[1] * 5] * 2, "label", "logistic"), "3 values"),
        (q.residual(ROW, [[1] * 5] * 2, "y", "logistic"), "Category"),
        (q.residual(ROW, [2**40] * 5, "y", "logistic"), "too large"),
        (q.bins(ROW, [0, 1]), "one number"),
        (q.bins("n0", [1, 0]), "increase"),
        (q.clipped(ROW, 2.0**-30), "below one step"),
        (q.cells(col("n0")), "Number"),
    ],
)
def test_what_binding_refuses(vector_: Vector, complaint: str) -> None:
    with pytest.raises(InvalidQuery, match=complaint):
        bind(outer(q.ones(), vector_), FIVE)


def test_too_many_numbers_in_an_answer_are_refused() -> None:
    schema = Schema(Category("many", list(range(2_000))))
    with pytest.raises(InvalidQuery, match="at most 1000000"):
        bind(outer(q.one_hot("many"), q.one_hot("many")), schema)


def test_a_missing_value_takes_the_centre() -> None:
    binder = VectorBinder(SCHEMA)
    missing = {"a": None, "b": None, "f": None, "c": None, "z": None, "g": None}
    plain = binder.bind(q.columns(["a", "f", "c"]))
    assert vector(plain.node, missing) == [FULL // 2] * 4
    told = binder.bind(q.columns(["a", "f", "c"], centre=[0.1, 0.2, 0.3, 0.4]))
    assert vector(told.node, missing) == [0, 0, 0, 0]


def test_a_range_far_from_zero_keeps_its_leaf_within_50_bits() -> None:
    schema = Schema(Number("late", 2**40, 2**40 + 1024), Number("flat", 2**52, 2**52 + 1))
    bound = VectorBinder(schema).bind(q.columns(["late"]))
    assert vector(bound.node, {"late": 2.0**40 + 512}) == [FULL // 2]
    assert vector(bound.node, {"late": 2.0**40 + 1024}) == [FULL]
    with pytest.raises(InvalidQuery, match="narrow"):
        VectorBinder(schema).bind(q.columns(["flat"]))


# --- tables -------------------------------------------------------------------------------------


def test_the_tables_are_the_functions() -> None:
    logistic, decay = logistic_table(), decay_table()
    assert len(logistic) == 32 * 256 + 1 and len(decay) == 16 * 256 + 1
    assert min(logistic) == 0 and max(logistic) == FULL == decay[0] and decay[-1] == 0
    for place in range(0, len(logistic), 97):
        expected = FULL / (1 + math.exp(-(place / 256 - 16)))
        assert abs(logistic[place] - expected) <= 0.5 + 1e-6
    for place in range(0, len(decay), 97):
        assert abs(decay[place] - FULL * math.exp(-place / 256)) <= 0.5 + 1e-6
    assert list(logistic) == sorted(logistic) and list(decay) == sorted(decay, reverse=True)


@pytest.mark.sample(1)
@pytest.mark.parametrize("weight", [0.5, 3, -40])
def test_residuals_are_the_slopes_of_their_losses(weight: float) -> None:
    binder = VectorBinder(SCHEMA)
    x = q.columns(["a"], centre=0.5)
    for a, f in product([0.0, 0.7, 1.9], [True, False]):
        row = {"a": a, "f": f, "b": 1, "c": "x", "z": 0.0, "g": "p"}
        score = weight * (a / 2 - 0.5)
        wanted = {
            "linear": score - f,
            "logistic": 1 / (1 + math.exp(-score)) - f,
            "hinge": (-1 if f else 1) * ((1 if f else -1) * score < 1),
        }
        for kind, slope in wanted.items():
            bound = binder.bind(q.residual(x, [weight], "f", kind))
            found = vector(bound.node, row)[0] * bound.step
            assert found == pytest.approx(slope, abs=2e-5 * max(1, abs(weight)))


def test_soft_shares_are_the_softmax() -> None:
    weights = [[1, -2], [0.5, 3], [-8, 0]]
    bound = VectorBinder(SCHEMA).bind(q.softmax(q.columns(["a", "f"]), weights))
    row = {"a": 1.4, "f": True}
    scores = np.array(weights) @ [0.7, 1.0]
    expected = np.exp(scores) / np.exp(scores).sum()
    found = np.array(vector(bound.node, row)) / FULL
    assert np.abs(found - expected).max() < 2e-5


def test_inner_vectors_count_towards_the_width_of_a_question() -> None:
    schema = Schema(Category("c", [str(i) for i in range(400)]))
    wide = q.crossed(q.one_hot("c"), q.one_hot("c"))
    with pytest.raises(InvalidQuery, match="at most"):
        bind(outer(q.ones(), q.concat(q.norm(wide), q.norm(wide))), schema)


def test_ranges_far_from_zero_are_refused_where_steps_would_be_lost() -> None:
    schema = Schema(Number("x", 2**52 - 8, 2**52 - 4))
    with pytest.raises(InvalidQuery, match="narrow"):
        bind(outer(q.ones(), q.columns(["x"])), schema)
