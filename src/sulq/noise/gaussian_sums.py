"""Sums of exp(-t^2 / 2v) over integers: term by term when short, Euler-Maclaurin when long.

The long form has a relative error below 1e-10 down to tails of 1e-17 (docs/proofs/noise.md,
claim 5); it serves error bars, never a privacy decision.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

REACH = 39  # exp(-39^2 / 2) is below the smallest float
SHORT = 1 << 13


def gaussian_mass(variance: Fraction, low: int, high: int | None = None) -> float:
    """The sum of exp(-t^2 / 2v) over low <= t <= high, for low >= 1 (high None: no end)."""
    spread = math.sqrt(variance)
    last = math.floor(REACH * spread) + 1
    if high is not None:
        last = min(last, high)
    if low > last:
        return 0.0
    if last - low < SHORT and last < 1 << 52:
        t = np.arange(low, last + 1, dtype=np.float64)
        return float(np.exp(-t * t / (2 * float(variance))).sum())
    beyond = 0.0 if high is None or high > last else _mass_from(spread, high + 0.5)
    return _mass_from(spread, low - 0.5) - beyond


def gaussian_square_mass(variance: Fraction, high: int) -> float:
    """The sum of t^2 exp(-t^2 / 2v) over 1 <= t <= high."""
    spread = math.sqrt(variance)
    last = min(math.floor(REACH * spread) + 1, high)
    if last < SHORT:
        t = np.arange(1, last + 1, dtype=np.float64)
        return float((t * t * np.exp(-t * t / (2 * float(variance)))).sum())
    edge = last + 0.5
    z = edge / spread
    fall = math.exp(-z * z / 2)
    integral = spread**2 * (
        spread * math.sqrt(math.pi / 2) * math.erf(z / math.sqrt(2)) - edge * fall
    )
    return integral - (2 * edge - edge * z * z) * fall / 24


def _mass_from(spread: float, start: float) -> float:
    """The sum over t = start + 1/2, ...: integral of f + f'/24 - 7 f'''/5760 at `start`."""
    z = start / spread
    fall = math.exp(-z * z / 2)
    integral = spread * math.sqrt(math.pi / 2) * math.erfc(z / math.sqrt(2))
    return integral - fall * (z / (24 * spread) + 7 * (3 * z - z**3) / (5760 * spread**3))
