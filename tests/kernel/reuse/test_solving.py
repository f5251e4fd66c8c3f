"""Combinations of integer vectors: exactly decided, least squares where there is choice."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.kernel.reuse.solve import solve

small = st.integers(-3, 3)


def ints(*rows: list[int]) -> np.ndarray:
    return np.array(rows, dtype=np.int64)


def rank(rows: list[list[int]]) -> int:
    """By fractions, without any floating point."""
    left = [[Fraction(x) for x in row] for row in rows]
    found = 0
    for column in range(len(left[0])):
        pivot = next((row for row in left[found:] if row[column]), None)
        if pivot is None:
            continue
        left.remove(pivot)
        left.insert(found, pivot)
        for i in range(found + 1, len(left)):
            factor = left[i][column] / pivot[column]
            left[i] = [x - factor * y for x, y in zip(left[i], pivot, strict=True)]
        found += 1
    return found


@given(
    st.integers(2, 6).flatmap(
        lambda width: st.tuples(
            st.lists(st.lists(small, min_size=width, max_size=width), min_size=1, max_size=6),
            st.lists(small, min_size=width, max_size=width),
        )
    )
)
def test_it_is_found_just_where_the_rank_does_not_grow(
    case: tuple[list[list[int]], list[int]],
) -> None:
    rows, wanted = case
    [found] = solve(ints(*rows), ints(wanted), np.ones(len(rows)))
    assert (found is not None) == (rank(rows) == rank([*rows, wanted]))
    if found is not None:
        got = [
            float(sum(w * rows[i][j] for i, w in found.weights.items())) for j in range(len(wanted))
        ]
        assert got == pytest.approx(wanted, abs=1e-8)


def test_what_is_nearly_a_combination_is_none() -> None:
    """Floating point alone would take the one for the other."""
    assert solve(ints([2**45, 1]), ints([2**45, 2]), np.ones(1)) == [None]
    assert solve(ints([2**45, 1], [2**45, 1]), ints([2**45, 2]), np.ones(2)) == [None]
    rows = ints([2**40, 1, 0], [0, 1, 2**40])
    assert solve(rows, ints([2**40, 3, 2**40]), np.ones(2)) == [None]
    [found] = solve(rows, ints([2**40, 2, 2**40]), np.ones(2))
    assert found is not None and found.exact and set(found.weights.values()) == {1}


@given(st.lists(st.integers(1, 50), min_size=3, max_size=3))
def test_least_squares_weighs_by_precision(sizes: list[int]) -> None:
    """y1 = a, y2 = b, y3 = a + b: the variance of a is v1 (v2 + v3) / (v1 + v2 + v3)."""
    v1, v2, v3 = map(float, sizes)
    [found] = solve(ints([1, 0], [0, 1], [1, 1]), ints([1, 0]), np.array([v1, v2, v3]))
    assert found is not None
    variance = sum(float(w) ** 2 * (v1, v2, v3)[i] for i, w in found.weights.items())
    assert variance == pytest.approx(v1 * (v2 + v3) / (v1 + v2 + v3))


def test_a_thousand_disjoint_cells_are_added_up_at_once() -> None:
    rows = np.eye(1_000, dtype=np.int64)
    wanted = np.kron(np.eye(10, dtype=np.int64), np.ones((1, 100), dtype=np.int64))
    found = solve(rows, wanted, np.ones(1_000))
    assert all(each is not None and each.exact and len(each.weights) == 100 for each in found)
