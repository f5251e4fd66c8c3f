"""Many fair coins at the cost of one draw: the binomial as a thinned discrete Gaussian.

With n = coins/2 and x_i = (2i - 1)/(2n + 1),
    C(2n, n + k) / C(2n, n) = exp(-k^2 / (n + 1/2) - excess(k)),
    excess(k) = sum over i <= k of 2 (atanh(x_i) - x_i) >= 0,
so a draw k of the discrete Gaussian of variance (coins + 1)/4, kept with probability
exp(-excess(|k|)), is a centred binomial draw. Proof: docs/proofs/noise.md, claim 4.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from sulq.noise.exponential import exp_bounds

QUICK_BITS = 64
FEW = 64  # odd numbers summed one by one


def keep_bounds(coins: int, k: int, bits: int) -> tuple[int, int]:
    """Integers around 2^bits exp(-excess(k)), 0 <= k <= coins/2; rough and quick up to 64 bits."""
    if bits <= QUICK_BITS and 4 * k <= coins:
        cube = (coins + 1) ** 3  # 1 - excess >= 1 - 2 k^4 / (coins + 1)^3
        return (1 << bits) - (2 * k**4 << bits) // cube - 1, 1 << bits
    low, high = excess_bounds(coins, k, bits)
    return exp_bounds(high, bits)[0], exp_bounds(low, bits)[1]


def excess_bounds(coins: int, k: int, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds at most 2^-bits apart, from terms 2 S_p(k) / (p (coins + 1)^p), p = 3, 5, 7, ...

    S_p(k) is the sum of the p-th powers of the first k odd numbers; each term is at most
    x_k^2 times the one before, which bounds the rest.
    """
    if k == 0:
        return Fraction(0), Fraction(0)
    shrink = Fraction(2 * k - 1, coins + 1) ** 2
    total = Fraction(0)
    p = 3
    while True:
        term = Fraction(2 * odd_power_sum(k, p), p * (coins + 1) ** p)
        total += term
        rest = term * shrink / (1 - shrink)
        if rest * (1 << bits) <= 1:
            return total, total + rest
        p += 2


def odd_power_sum(k: int, p: int) -> int:
    """1^p + 3^p + ... + (2k - 1)^p: all numbers up to 2k, less the even ones."""
    if k <= FEW:
        total: int = sum(i**p for i in range(1, 2 * k, 2))
        return total
    return power_sum(2 * k, p) - (power_sum(k, p) << p)


def power_sum(n: int, p: int) -> int:
    """1^p + 2^p + ... + n^p (Faulhaber), p >= 1."""
    terms = (math.comb(p + 1, j) * _bernoulli(j) * n ** (p + 1 - j) for j in range(p + 1))
    total: Fraction = sum(terms, Fraction(0)) / (p + 1)
    return total.numerator


@cache
def _bernoulli(order: int) -> Fraction:
    """Bernoulli numbers with B_1 = +1/2."""
    if order > 1 and order % 2:
        return Fraction(0)
    earlier = sum(
        (math.comb(order, j) * _bernoulli(j) / (order - j + 1) for j in range(order)), Fraction(0)
    )
    return 1 - earlier
