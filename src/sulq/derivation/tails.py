"""How far a sum of independent Laplace noises strays: its own law, not a normal one."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

POINTS = 2**15
STEP = 0.02
"""In standard deviations: aliases lie 2 pi / STEP of them away."""


@lru_cache(maxsize=4096)
def laplace_half_width(scales: tuple[float, ...], confidence: float) -> float:
    """The least h with P(|sum of Laplace(b)| <= h) >= confidence; errs upward."""
    spread = math.sqrt(2 * math.fsum(b * b for b in scales))
    if not spread:
        return 0.0
    if len(scales) == 1:
        return -scales[0] * math.log1p(-confidence)
    unit = np.array(scales) / spread
    low, high = 0.0, _chernoff(unit, confidence)
    t = STEP * np.arange(1, POINTS)
    wave = np.ones_like(t)
    for b in unit:
        wave /= 1 + (b * t) ** 2  # E exp(i t X) = 1 / (1 + b^2 t^2)
    error = 2 * float(wave[-1])
    if 1 - confidence <= 10 * error:
        return high * spread
    weights = wave / t
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        # P(|S| <= h) = 2/pi int sin(h t) / t E exp(i t S) dt, by the trapezoidal rule
        inside = (2 / math.pi) * STEP * (middle / 2 + float(np.sin(middle * t) @ weights))
        low, high = (low, middle) if inside - error >= confidence else (middle, high)
    return high * spread


def _chernoff(unit: np.ndarray, confidence: float) -> float:
    """2 exp(-s h) prod 1 / (1 - s^2 b^2) <= 1 - confidence, over a list of s."""
    s = np.linspace(0.02, 0.98, 49) / float(unit.max())
    rest = -np.log1p(-np.square(s[:, None] * unit)).sum(axis=1)
    return float(((math.log(2 / (1 - confidence)) + rest) / s).min())
