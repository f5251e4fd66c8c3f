"""Rigorous fixed-point bounds on exp(-gamma), for any rational gamma and any precision.

Integer arithmetic only, every rounding outward. Proof: docs/proofs/noise.md, claim 1.
"""

from __future__ import annotations

from fractions import Fraction

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
