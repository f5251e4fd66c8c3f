"""A privacy filter for every person: what a question costs each of them, and who takes part. V.2

A row that adds the vector g to sums with noise of variance s_t^2 in coordinate t loses
sum g_t^2 / s_t^2. In credits that is sum g_t^2 rate_t, rate_t = R_unit / s_t^2. Balances are whole
steps of a credit in 64-bit integers; prices round up, the cap down, and no float decides.
Proof: docs/proofs/individual.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sulq.errors import InvalidQuery, Refused
from sulq.kernel.accounting.calibration import Calibration

Whole = NDArray[np.int64]

FINEST = 10**12
"""Steps per credit where they fit: a decimal number, so that plain prices need no rounding."""
COARSEST = 10**6
ROOM = 2**61
"""What the largest price of a person stays below."""
HALF = 31
"""Bits of a number whose square fits 62."""


def check_individual(calibration: Calibration) -> None:
    """`Refused` for a promise that filters for each person do not cover. V.2"""
    promise = calibration.promise
    if promise.neighbours != "add-remove":
        raise Refused(
            'individual accounting hides who is in the table: publish with neighbours="add-remove";'
            " where a row is replaced, its loss is that of every row it might have been"
        )
    if promise.noise != "gaussian":
        raise Refused(
            "individual accounting is proved for Gaussian noise alone: publish with"
            f' noise="gaussian" and a delta above 0, got {promise.noise} noise'
        )


def steps_per_credit(credits: Fraction | int, max_rows: int) -> int:
    """How finely balances are kept: so that what a person can be charged fits 64 bits."""
    steps = FINEST
    while steps >= COARSEST:
        if (credits * steps + 2) * max_rows**2 < ROOM:
            return steps
        steps //= 10
    raise InvalidQuery(
        f"individual accounting keeps at most {ROOM // COARSEST:,} credits times max_rows squared;"
        " publish with fewer credits or a smaller max_rows"
    )


def charged(values: Whole, rate: Fraction, largest: int, most: int) -> Whole:
    """values^2 rate, rounded up, and at most `most`; |values| <= largest <= 2^62.

    Exact but for that where 64 bits hold the products; else larger by less than 2^-28 of
    largest^2 rate.
    """
    if rate <= 0 or largest == 0:
        return np.zeros(len(values), np.int64)
    shift = max(0, largest.bit_length() - HALF)
    size = _down(np.abs(values), shift)
    squares, rate = size * size, rate * 4**shift
    if rate >= most:
        return least(squares, 1) * np.int64(most)
    enough = -(-most // rate)  # a square from which on the price is `most`
    top = min(_ceil_shift(largest, shift) ** 2, enough)
    squares = least(squares, top)
    if rate.numerator * top + rate.denominator < 2**63:
        exact = (squares * rate.numerator + (rate.denominator - 1)) // rate.denominator
        return least(exact, most)
    over = max(0, top.bit_length() - HALF)
    squares, rate, top = _down(squares, over), rate * 2**over, _ceil_shift(top, over)
    bits = 62 - (-(-rate * top // 1)).bit_length()
    factor = -(-rate * 2**bits // 1)
    return least(_down(squares * np.int64(factor), bits), most)


def least(values: Whole, most: int) -> Whole:
    """Each value, but at most this."""
    found: Whole = np.minimum(values, np.int64(most))
    return found


def _down(values: Whole, bits: int) -> Whole:
    """values / 2^bits, rounded up; values >= 0."""
    found: Whole = (values + np.int64((1 << bits) - 1)) >> np.int64(bits)
    return found


def _ceil_shift(value: int, bits: int) -> int:
    return -(-value >> bits)


@dataclass(slots=True)
class Balances:
    """What each person has spent, in steps of a credit. Secret: an exact function of the rows."""

    spent: Whole
    cap: int

    @property
    def most(self) -> int:
        """A price that nobody can pay."""
        return self.cap + 1

    def admitted(self, who: Whole, prices: Whole) -> NDArray[np.bool_]:
        """Whose balance *including this question* stays within the cap; each person once. V.2"""
        found: NDArray[np.bool_] = self.spent[who] + prices <= self.cap
        return found

    def charge(self, who: Whole, prices: Whole) -> None:
        """Book what `admitted` allowed."""
        self.spent[who] += prices


def per_person(owner: Whole, prices: Whole, persons: int, most: int) -> tuple[Whole, Whole]:
    """The persons that rows belong to, and what they pay: k sum of the prices of their k rows.

    |sum of k vectors|^2 <= k sum of their |.|^2. Rows that add nothing are left out before.
    """
    rows, total = np.zeros(persons, np.int64), np.zeros(persons, np.int64)
    np.add.at(rows, owner, 1)
    np.add.at(total, owner, prices)
    who = np.flatnonzero(rows)
    return who, least(rows[who] * total[who], most)


def summed(values: Whole, cells: Whole, count: int) -> list[int]:
    """Sums of 64-bit values per cell, exactly: in two halves, for less than 2^32 rows."""
    low, high = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(high, cells, values >> np.int64(32))
    np.add.at(low, cells, values & np.int64(2**32 - 1))
    return [(a << 32) + b for a, b in zip(high.tolist(), low.tolist(), strict=True)]


def rates(
    variances: Sequence[Fraction | None], lifts: Sequence[int], unit: Fraction, steps: int
) -> list[Fraction]:
    """Steps of a credit that a squared whole number costs, per coordinate; 0 without noise.

    `lifts`: what the number is multiplied by before noise of that variance is added.
    """
    return [
        Fraction(0) if variance is None else lift**2 * unit / variance * steps
        for variance, lift in zip(variances, lifts, strict=True)
    ]
