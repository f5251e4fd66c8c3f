"""Many draws of one law at once, in NumPy, and still exactly that law.

A candidate is (low, high, sign): |y| = low + 2^shift high, low uniform, high geometric with ratio
exp(-2^shift / scale); it is kept with probability exp(-low/scale - penalty(|y|)). Every decision
compares a uniform number with a float; whoever lies within DOUBT of it is decided again with
exact integers. Proof: docs/proofs/noise.md, claim 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from sulq.kernel.noise import entropy
from sulq.kernel.noise.entropy import LazyUniform, OsBits
from sulq.kernel.noise.laws import Penalty, Proposal

# Rigorous fixed-point bounds on exp(-gamma), for any rational gamma and any precision.
#
# Integer arithmetic only, every rounding outward. Proof: docs/proofs/noise.md, claim 1.


GUARD_BITS = 32


def exp_bounds(gamma: Fraction, bits: int) -> tuple[int, int]:
    """Integers (low, high) with low <= 2^bits exp(-gamma) <= high; equal only at gamma = 0."""
    if gamma < 0:
        raise ValueError(f"got the exponent {gamma}; want gamma >= 0")
    one = 1 << bits
    if gamma == 0:
        return one, one
    if gamma >= bits:  # exp(-bits) < 2^-bits
        return 0, 1
    halvings = int(gamma).bit_length() + 1
    width = bits + GUARD_BITS + 2 * halvings
    below = (gamma.numerator << (width - halvings)) // gamma.denominator
    grown_low, grown_high = _exp_of_small(below, width)
    low = (1 << 2 * width) // grown_high
    high = -((-1 << 2 * width) // grown_low)
    for _ in range(halvings):
        low = low * low >> width
        high = -(-high * high >> width)
    spare = width - bits
    return low >> spare, -(-high >> spare)


def _exp_of_small(below: int, width: int) -> tuple[int, int]:
    """Bounds on 2^width exp(x) for every x in [below, below + 1] / 2^width, 0 <= x <= 1/2."""
    low_term = high_term = 1 << width
    low = high = 0
    order = 0
    while low_term:
        low += low_term
        high += high_term
        order += 1
        low_term = (low_term * below >> width) // order
        high_term = -(-(high_term * (below + 1)) // (order << width))
    return low, high + 2 * high_term  # the rest is at most twice its first term, as x <= 1/2


DOUBT = 2.0**-36  # the floats below are within 2^-44 of the truth
UNIFORM_BITS = 53
LARGEST_SHIFT = 52
LARGEST_HIGH = 1 << 10  # 2^52 * 2^10 still fits 64 bits; beyond, Python integers
LADDER_DEPTH = 30 * math.log(2)
FEWEST_CANDIDATES = 32


@dataclass(frozen=True, slots=True, eq=False)
class SamplerTables:
    """A proposal cut into blocks of 2^shift; `ladder` is exp(-j ratio), j = rungs, ..., 1."""

    proposal: Proposal
    shift: int
    ratio: Fraction
    ladder: NDArray[np.float64]


@lru_cache(maxsize=256)
def plan_for(proposal: Proposal) -> SamplerTables | None:
    """Blocks of an eighth to a sixteenth of the scale; None where 64 bits would not do."""
    shift = max(0, math.floor(proposal.scale).bit_length() - 4)
    if shift > LARGEST_SHIFT:
        return None
    ratio = (1 << shift) / proposal.scale
    rungs = math.ceil(LADDER_DEPTH / ratio)
    ladder = np.exp(-float(ratio) * np.arange(rungs, 0, -1, dtype=np.float64))
    return SamplerTables(proposal, shift, ratio, ladder)


def draw_many(plan: SamplerTables, count: int) -> list[int]:
    """`count` independent draws: the first `count` candidates that are kept."""
    values: list[int] = []
    while len(values) < count:
        missing = count - len(values)
        values += _kept(plan, missing + missing // 2 + FEWEST_CANDIDATES)
    return values[:count]


def _kept(plan: SamplerTables, count: int) -> list[int]:
    first, second, third = entropy.words(3 * count).reshape(3, count)
    negative = (first >> np.uint64(63)).astype(bool)
    low = (first & np.uint64((1 << plan.shift) - 1)).astype(np.int64)
    high = _geometric(plan, second)
    if int(high.max()) >= LARGEST_HIGH:
        low, high = low.astype(object), high.astype(object)
    magnitude = low + high * (1 << plan.shift)
    chance = np.exp(-_gamma(plan, low.astype(np.float64), magnitude.astype(np.float64)))
    prefix = third >> np.uint64(64 - UNIFORM_BITS)
    uniform = prefix * 2.0**-UNIFORM_BITS
    kept = uniform < chance
    # off the ladder nothing bounds the float error, so there the float is not asked
    doubtful = (np.abs(uniform - chance) <= DOUBT) | (high >= len(plan.ladder))
    for i in np.flatnonzero(doubtful):
        exponent = exact_gamma(plan.proposal, int(low[i]), int(magnitude[i]))
        chooser = LazyUniform(OsBits(), int(prefix[i]), UNIFORM_BITS)
        kept[i] = chooser.below(partial(exp_bounds, exponent))
    kept &= ~(negative & (magnitude == 0))  # zero has one sign
    signed: list[int] = np.where(negative, -magnitude, magnitude)[kept].tolist()
    return signed


def _geometric(plan: SamplerTables, words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """P(high >= j) = exp(-j ratio): how many rungs lie above a uniform number."""
    prefix = words >> np.uint64(64 - UNIFORM_BITS)
    uniform = prefix * 2.0**-UNIFORM_BITS
    rungs = len(plan.ladder)
    high = rungs - np.searchsorted(plan.ladder, uniform + DOUBT, side="right")
    at_most = rungs - np.searchsorted(plan.ladder, uniform - DOUBT, side="left")
    for i in np.flatnonzero((high != at_most) | (at_most == rungs)):
        high[i] = _exact_geometric(plan.ratio, int(prefix[i]), int(high[i]))
    return high


def _exact_geometric(ratio: Fraction, prefix: int, guess: int) -> int:
    uniform = LazyUniform(OsBits(), prefix, UNIFORM_BITS)
    high = guess
    while not uniform.below(partial(exp_bounds, high * ratio)):
        high -= 1
    while uniform.below(partial(exp_bounds, (high + 1) * ratio)):
        high += 1
    return high


def exact_gamma(proposal: Proposal, low: int, magnitude: int) -> Fraction:
    """The exponent low/scale + penalty(magnitude) of the probability to keep a candidate."""
    within_block = low / proposal.scale
    if proposal.penalty is None:
        return within_block
    return within_block + Fraction(*proposal.penalty.ratio(magnitude))


def _gamma(
    plan: SamplerTables, low: NDArray[np.float64], magnitude: NDArray[np.float64]
) -> NDArray[np.float64]:
    within_block = low * float(1 / plan.proposal.scale)
    penalty = plan.proposal.penalty
    return within_block if penalty is None else within_block + _penalty(penalty, magnitude)


def _penalty(penalty: Penalty, magnitude: NDArray[np.float64]) -> NDArray[np.float64]:
    centre, doubled = float(penalty.centre), float(2 * penalty.variance)
    if penalty.knee is None:
        return (magnitude - centre) ** 2 / doubled
    inner = np.minimum(magnitude, float(penalty.knee))
    slope = 2 * float(penalty.knee - penalty.centre)
    return ((inner - centre) ** 2 + slope * (magnitude - inner)) / doubled
