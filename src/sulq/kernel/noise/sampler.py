"""Noise is drawn here and nowhere else: exact integer draws from bits of the operating system.

Few draws of a law come one by one, in Python integers (Canonne, Kamath, Steinke 2020); many come
together (`vector_sampler`). Both follow the law exactly. Proof: docs/proofs/noise.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, partial

import numpy as np

from sulq.kernel.noise import entropy
from sulq.kernel.noise.entropy import LazyUniform, OsBits
from sulq.kernel.noise.laws import (
    CentredBinomial,
    DiscreteGaussian,
    DividedLaplace,
    Geometric,
    Law,
    NoNoise,
    Proposal,
    proposal_for,
)
from sulq.kernel.noise.vector_sampler import draw_many, exp_bounds, plan_for

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


# Many fair coins at the cost of one draw: the binomial as a thinned discrete Gaussian.
#
# With n = coins/2 and x_i = (2i - 1)/(2n + 1),
#     C(2n, n + k) / C(2n, n) = exp(-k^2 / (n + 1/2) - excess(k)),
#     excess(k) = sum over i <= k of 2 (atanh(x_i) - x_i) >= 0,
# so a draw k of the discrete Gaussian of variance (coins + 1)/4, kept with probability
# exp(-excess(|k|)), is a centred binomial draw. Proof: docs/proofs/noise.md, claim 4.


MANY = 8  # from here on one vector call costs less than single draws
MOST_TOSSED_COINS = 1 << 13
TOSSED_AT_ONCE = 1 << 20  # bytes


def add_fresh_noise(sums: Sequence[int], laws: Sequence[Law]) -> list[int]:
    """Each sum plus one independent draw of its law."""
    return add_noise(sums, draw_noise(laws))


def add_noise(sums: Sequence[int], noise: Sequence[int]) -> list[int]:
    """Each sum plus what was drawn for it."""
    if len(sums) != len(noise):
        raise ValueError(f"got {len(sums)} sums and {len(noise)} laws; want one law for each sum")
    return [value + extra for value, extra in zip(sums, noise, strict=True)]


def draw_noise(laws: Sequence[Law | Geometric]) -> list[int]:
    """One independent draw of each law: before rows are read, it cannot wait for them."""
    if laws and all(law is laws[0] for law in laws):
        return draw(laws[0], len(laws))
    places: dict[Law | Geometric, list[int]] = {}
    known: dict[int, list[int]] = {}  # by identity: hashing long fractions is slow
    for place, law in enumerate(laws):
        group = known.get(id(law))
        if group is None:
            group = known[id(law)] = places.setdefault(law, [])
        group.append(place)
    noise = [0] * len(laws)
    for law, group in places.items():
        for place, value in zip(group, draw(law, len(group)), strict=True):
            noise[place] = value
    return noise


def draw(law: Law | Geometric, count: int) -> list[int]:
    """`count` independent draws of `law`."""
    if isinstance(law, Geometric):
        return draw_one_sided(law, count)
    if isinstance(law, NoNoise):
        return [0] * count
    if isinstance(law, CentredBinomial):
        toss = _toss_coins if law.coins <= MOST_TOSSED_COINS else _thin_gaussian
        return toss(law.coins, count)
    if isinstance(law, DividedLaplace):
        source = OsBits()
        return [_divided(law, source) for _ in range(count)]
    proposal = proposal_for(law)
    if count >= MANY:
        plan = plan_for(proposal)
        if plan is not None:
            return draw_many(plan, count)
    source = OsBits()
    return [_draw_one(proposal, source) for _ in range(count)]


def _draw_one(proposal: Proposal, source: OsBits) -> int:
    """Rejection from the discrete Laplace law. Canonne, Kamath, Steinke 2020, algorithm 3; S4.14"""
    scale, penalty = proposal.scale, proposal.penalty
    while True:
        y = _laplace(scale.numerator, scale.denominator, source)
        if penalty is None or source.bernoulli_exp(*penalty.ratio(abs(y))):
            return y


def draw_one_sided(law: Geometric, count: int) -> list[int]:
    """`count` independent draws of the one-sided law. M.3"""
    source = OsBits()
    top, bottom = law.scale.numerator, law.scale.denominator
    return [_geometric(top, bottom, source) for _ in range(count)]


def _laplace(top: int, bottom: int, source: OsBits) -> int:
    """P(y) ~ exp(-|y| bottom / top). Canonne, Kamath, Steinke 2020, algorithm 2."""
    while True:
        magnitude = _geometric(top, bottom, source)
        if source.bits(1) == 0:
            return magnitude
        if magnitude:
            return -magnitude


def _divided(law: DividedLaplace, source: OsBits) -> int:
    """A compound Poisson draw: jumps of +-j come at the rate 2 shape a^j / j, a = exp(-1/scale).

    Candidates come at most once on average in each block of j: [2^l, 2^(l+1)) up to the scale, and
    one block for all beyond; each is kept with its chance. docs/proofs/noise.md, claim 6; V.4
    """
    pieces = math.ceil(2 * law.shape)
    rate = 2 * law.shape / pieces  # at most 1
    top, bottom = law.scale.numerator, law.scale.denominator
    blocks = max(0, (-(-top // bottom) - 1).bit_length())  # 2^blocks is the scale or more
    total = 0
    for _ in range(pieces):
        for block in range(blocks + 1):
            for _ in range(_poisson(rate.numerator, rate.denominator, source)):
                jump = (
                    _jump(block, top, bottom, source)
                    if block < blocks
                    else _far_jump(blocks, top, bottom, source)
                )
                total += -jump if source.bits(1) else jump
    return total


def _poisson(top: int, bottom: int, source: OsBits) -> int:
    """A Poisson draw of mean top/bottom <= 1: heads until a tail, kept with m^n 2^(n-1) / n!."""
    while True:
        n = 0
        while source.bits(1):
            n += 1
        if source.below(2 * math.factorial(n) * bottom**n) < (2 * top) ** n:
            return n


def _jump(block: int, top: int, bottom: int, source: OsBits) -> int:
    """A candidate j in [2^block, 2^(block+1)), kept with 2^block/j exp(-j bottom/top); else 0."""
    j = (1 << block) + source.bits(block)
    kept = source.below(j) < 1 << block and source.bernoulli_exp(j * bottom, top)
    return j if kept else 0


def _far_jump(blocks: int, top: int, bottom: int, source: OsBits) -> int:
    """A candidate j from J = 2^blocks on: in the c-th stretch of J with chance 2^-c, kept with
    2^c J/j exp(-j bottom/top) = (2/e)^c J/j exp(-(j bottom/top - c)); else 0."""
    stretch = 1
    while source.bits(1):
        stretch += 1
    j = (stretch << blocks) + source.bits(blocks)
    kept = source.below(j) < 1 << blocks
    kept = kept and all(_two_over_e(source) for _ in range(stretch))
    return j if kept and source.bernoulli_exp(j * bottom - stretch * top, top) else 0


def _two_over_e(source: OsBits) -> bool:
    """True with probability 2/e = 1 - 1/3 + 1/12 - ..., each term 1/(k + 2) of the one before."""
    k = 1
    while source.below(k + 2) == 0:
        k += 1
    return k % 2 == 1


def _geometric(top: int, bottom: int, source: OsBits) -> int:
    """P(y) ~ exp(-y bottom / top), y >= 0: uniform below top, thinned, plus whole tops."""
    while True:
        low = source.below(top)
        if not source.bernoulli_exp(low, top):
            continue
        high = 0
        while source.bernoulli_exp(1, 1):
            high += 1
        return (low + top * high) // bottom


def _toss_coins(coins: int, count: int) -> list[int]:
    """Count the heads. S0.4"""
    half = coins // 2
    if count < MANY:
        source = OsBits()
        return [source.bits(coins).bit_count() - half for _ in range(count)]
    row = -(-coins // 64)
    spare = np.uint64(64 * row - coins)
    rows_at_once = TOSSED_AT_ONCE // (8 * row)
    values: list[int] = []
    while len(values) < count:
        rows = min(rows_at_once, count - len(values))
        words = entropy.words(rows * row).reshape(rows, row).copy()
        words[:, -1] >>= spare
        heads = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
        values += (heads - half).tolist()
    return values


def _thin_gaussian(coins: int, count: int) -> list[int]:
    """Draws of the discrete Gaussian of variance (coins + 1)/4, kept with exp(-excess)."""
    envelope = DiscreteGaussian(Fraction(coins + 1, 4))
    source = OsBits()
    values: list[int] = []
    while len(values) < count:
        candidates = draw(envelope, count - len(values))
        values += [y for y in candidates if _keeps(coins, abs(y), source)]
    return values


def _keeps(coins: int, k: int, source: OsBits) -> bool:
    """True with probability C(2n, n + k) / C(2n, n) over its Gaussian bound, n = coins/2."""
    if 2 * k > coins:
        return False
    return LazyUniform(source, source.bits(64), 64).below(partial(keep_bounds, coins, k))
