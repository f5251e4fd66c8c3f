from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.kernel.noise.sampler import excess_bounds, keep_bounds, odd_power_sum, power_sum
from sulq.kernel.noise.vector_sampler import exp_bounds


@given(st.integers(0, 60), st.integers(1, 25))
def test_power_sums_match_plain_addition(n: int, p: int) -> None:
    assert power_sum(n, p) == sum(i**p for i in range(1, n + 1))


@pytest.mark.parametrize("k", [1, 64, 65, 200])
def test_odd_power_sums_match_plain_addition(k: int) -> None:
    for p in (3, 5, 11):
        assert odd_power_sum(k, p) == sum((2 * i - 1) ** p for i in range(1, k + 1))


@pytest.mark.parametrize("bits", [20, 64, 100])
@pytest.mark.parametrize("coins", [2, 4, 10, 64, 1000])
def test_keeping_turns_the_gaussian_into_the_binomial(coins: int, bits: int) -> None:
    """Claim 4: exp(-k^2/(n + 1/2)) exp(-excess) = C(2n, n+k) / C(2n, n), both sides enclosed."""
    half = coins // 2
    for k in {0, 1, half // 7, half // 3, half // 2} | ({half} if coins <= 10 else set()):
        ratio = Fraction(math.comb(coins, half + k), math.comb(coins, half))
        low, high = keep_bounds(coins, k, bits)
        gaussian_low, gaussian_high = exp_bounds(Fraction(2 * k * k, coins + 1), bits + 600)
        assert low * gaussian_low <= ratio * 2 ** (2 * bits + 600) <= high * gaussian_high
        if bits > 64:
            assert high - low <= 4


@pytest.mark.parametrize("bits", [4, 12, 40])
def test_excess_bounds_enclose_the_sum(bits: int) -> None:
    coins, k = 30, 9
    truth = math.fsum(2 * (math.atanh(x) - x) for x in ((2 * i - 1) / 31 for i in range(1, k + 1)))
    low, high = excess_bounds(coins, k, bits)
    assert high - low <= Fraction(1, 2**bits)
    assert float(low) <= truth * (1 + 1e-12)
    assert float(high) >= truth * (1 - 1e-12)
    assert excess_bounds(coins, 0, bits) == (Fraction(0), Fraction(0))


@given(st.integers(1, 2**60), st.data())
def test_the_quick_bound_is_a_bound(half: int, data: st.DataObject) -> None:
    coins = 2 * half
    k = data.draw(st.integers(0, max(0, coins // 4)))
    quick, _ = keep_bounds(coins, k, 64)
    _, high = excess_bounds(coins, k, 66)
    assert Fraction(quick, 2**64) <= 1 - high
