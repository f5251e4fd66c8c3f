"""Margins, residuals and soft assignments on a block of rows, in whole numbers.

The logistic and the exponential are read from tables of integers, straight lines in between.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sulq.schema.vectors import BITS, FULL, LINE_BITS, TABLE_BITS, TABLE_REACH

Floats: TypeAlias = NDArray[np.float64]
Indexes: TypeAlias = NDArray[np.int64]
Table: TypeAlias = tuple[Indexes, Indexes]


def within(score: Floats, sign: Floats, at_most: float) -> Indexes:
    """0 where the margin is small, else -1."""
    return np.where((sign != 0.0) & (sign * score <= at_most), 0, -1)


def linear(score: Floats, label: Floats, missing: int, bound: float) -> Floats:
    slope = np.clip(score - label, -bound, bound)
    slope[label == missing] = 0.0
    return slope[None, :]


def hinge(score: Floats, sign: Floats, unit: float) -> Floats:
    return np.where(sign * score < unit, -sign, 0.0)[None, :]


def lines(table: tuple[int, ...]) -> Table:
    """Entries, and how much the next one differs."""
    entries = np.array(table, np.int64)
    return entries, np.append(np.diff(entries), 0)


def _tabled(score: Floats, bits: int, table: Table) -> Floats:
    """The table at `score`, a number from 0 on in steps of 2^-bits; straight between entries."""
    fine = TABLE_BITS + LINE_BITS
    place = np.floor(score * 2.0 ** (fine - bits)).astype(np.int64)
    entry, part = place >> LINE_BITS, place & ((1 << LINE_BITS) - 1)
    entries, slopes = table
    half = 1 << (LINE_BITS - 1)
    found: Indexes = entries[entry] + ((slopes[entry] * part + half) >> LINE_BITS)
    return found.astype(np.float64)


def logistic(score: Floats, sign: Floats, bits: int, table: Table) -> Floats:
    reach = TABLE_REACH * 2.0**bits
    slope = _tabled(np.clip(score, -reach, reach) + reach, bits, table)
    slope -= np.where(sign == 1.0, float(FULL), 0.0)
    slope[sign == 0.0] = 0.0
    return slope[None, :]


def shares(scores: Floats, bits: int, table: Table) -> Floats:
    below = np.minimum(scores.max(axis=0) - scores, TABLE_REACH * 2.0**bits)
    weights = _tabled(below, bits, table)
    parts: Floats = np.floor(weights * 2.0**BITS / weights.sum(axis=0))
    return parts


def classes(shares: Floats, label: Indexes) -> Floats:
    here: NDArray[Any] = label == np.arange(len(shares))[:, None]
    slope = shares - here * float(FULL)
    slope[:, label < 0] = 0.0
    return slope
