"""Noise beside sampling error: the arithmetic an owner sees before publishing."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.beliefs.sizing import equal_subset, sampling_variance, sizing, subset_error
from sulq.errors import InvalidQuery
from sulq.kernel.schema.promise import Promise


def test_the_subset_error_is_that_of_all_subsets() -> None:
    """Every subset of 4 of 10 rows, 3 of which count; the estimate is 10/4 times the subset."""
    estimates = [
        Fraction(10, 4) * sum(row < 3 for row in chosen) for chosen in combinations(range(10), 4)
    ]
    mean = sum(estimates) / len(estimates)
    variance = sum((estimate - mean) ** 2 for estimate in estimates) / len(estimates)
    assert mean == 3
    assert subset_error(10, 4, 0.3) == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert subset_error(10, 10, 0.3) == 0


@given(st.integers(2, 10**7), st.floats(0.1, 1e8), st.floats(0.01, 0.5))
def test_the_equal_subset_is_the_first_at_least_as_good(
    rows: int, variance: float, share: float
) -> None:
    subset = equal_subset(rows, variance, share)
    assert 1 <= subset <= rows
    assert subset_error(rows, subset, share) ** 2 <= variance * (1 + 1e-9)
    if subset > 1:
        assert subset_error(rows, subset - 1, share) ** 2 >= variance * (1 - 1e-9)


def test_sizing_of_two_hundred_counts() -> None:
    small, large = (sizing(Promise(1, 1e-6, 200), rows) for rows in (10_000, 1_000_000))
    assert small.standard_error == large.standard_error <= 59.8
    assert small.bar == pytest.approx(1.96 * small.standard_error, rel=1e-4)
    assert small.sampling_error == 50
    assert large.sampling_error_rare == pytest.approx(math.sqrt(9900))
    assert sampling_variance(1_000_000, 0.01) == pytest.approx(9900)
    assert not small.noise_is_smaller
    assert large.noise_is_smaller
    assert large.noise_is_smaller_when_rare
    assert small.subset < large.subset < 1_000_000


def test_a_table_of_one_row_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="at least 2"):
        sizing(Promise(1), 1)


def test_the_bar_is_the_laws_own() -> None:
    """95 % of Laplace noise lies within about b ln 20, 2.12 standard deviations, not 1.96. S2.6"""
    pure = sizing(Promise(1, queries=100), 10_000)
    assert pure.bar == 300  # the smallest whole h with 2 a^(h+1) / (1 + a) <= 5 %, a = e^(-1/100)
    coins = sizing(Promise(1, "1e-6", queries=10, noise="binomial"), 10_000)
    assert coins.bar == int(coins.bar)
