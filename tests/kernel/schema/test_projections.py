"""A vector times a matrix: its bounds are what some row reaches, and no row passes them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.kernel.engines.vector_reference import vector

from sulq.kernel.query import vectors as q
from sulq.kernel.schema.bind_vectors import VectorBinder
from sulq.kernel.schema.columns import Category, Schema


@pytest.mark.parametrize("seed", range(20))
def test_a_projection_of_one_cell_is_one_column(seed: int) -> None:
    """The bound is the longest column, rounded as it is; no row passes it and one reaches it."""
    random = np.random.default_rng(seed)
    matrix = random.normal(0, 10.0 ** random.integers(-3, 4), (random.integers(1, 4), 3))
    schema = Schema(Category("c", ["a", "b", "d"]))
    v = VectorBinder(schema).bind(q.project(q.one_hot("c"), matrix.tolist()))
    rows = [vector(v.node, {"c": value}) for value in ("a", "b", "d", "else", None)]
    lengths = [sum(x * x for x in row) for row in rows]
    assert max(lengths) <= v.norm_squared
    assert max(lengths) >= v.norm_squared - 2 * math.isqrt(v.norm_squared) * len(matrix)
    for one in rows:
        for other in rows:
            assert sum((x - y) ** 2 for x, y in zip(one, other, strict=True)) <= v.wide_squared
            assert sum(abs(x - y) for x, y in zip(one, other, strict=True)) <= v.wide_one
        assert all(lo <= x <= hi for x, lo, hi in zip(one, v.lows, v.highs, strict=True))
