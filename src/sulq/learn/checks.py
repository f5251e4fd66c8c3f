"""Settings of learners, checked before anything is asked."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from sulq.errors import InvalidQuery


def whole(name: str, value: object, least: int = 1, most: float = math.inf) -> int:
    """A whole number from `least` to `most`."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        found = int(value)
        if least <= found <= most:
            return found
    upto = "" if most == math.inf else f" to {most:g}"
    raise InvalidQuery(f"{name} must be a whole number from {least}{upto}, got {value!r:.40}")


def number(name: str, value: object, low: float, high: float, *, ends: str = "()") -> float:
    """A number between `low` and `high`; `ends` tells which of them it may be."""
    if isinstance(value, Real) and not isinstance(value, bool):
        found = float(value)
        above = found >= low if ends[0] == "[" else found > low
        below = found <= high if ends[1] == "]" else found < high
        if above and below:
            return found
    raise InvalidQuery(f"{name} must lie in {ends[0]}{low:g}, {high:g}{ends[1]}, got {value!r:.40}")
