"""Quantiles and ends read off the noisy counts of one distribution's bins."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from sulq.noise.distributions import Law
from sulq.readings import z_of
from sulq.sql.estimates import Estimate, Stated
from sulq.sql.forms import UNKNOWN

Numbers = NDArray[np.float64]


def quantile_of(
    counts: Numbers, edges: Numbers, spread: float, share: float, name: Hashable
) -> Estimate:
    """The value below which a share of the rows lies, as `quantiles` reads it."""
    raw = np.concatenate([[0.0], np.cumsum(counts)])
    rising = np.maximum.accumulate(np.maximum((_from_below(raw) + _from_above(raw)) / 2, 0.0))
    bins = len(counts)
    places = np.arange(bins + 1)
    # C(edge) - share N has variance i (1-share)^2 + (bins-i) share^2 units
    error = spread * np.sqrt(places * (1 - share) ** 2 + (bins - places) * share**2)
    gap = raw - share * raw[-1]

    def interval(confidence: float) -> tuple[float, float]:
        far = z_of(confidence) * error
        low = max(0, int(np.argmax(gap + far >= 0)) - 1)
        beyond = np.nonzero(gap - far <= 0)[0]
        high = min(bins, int(beyond[-1]) + 1) if len(beyond) else bins
        return float(edges[low]), float(edges[high])

    value = _reached(rising, edges, share)
    limits = (float(edges[0]), float(edges[-1]))
    known = raw[-1] > z_of(0.95) * spread * np.sqrt(bins)
    return Stated(value, interval, limits, frozenset([name]), "" if known else UNKNOWN)


def _from_below(raw: Numbers) -> Numbers:
    """The least non-decreasing sequence that is nowhere below."""
    found: Numbers = np.maximum.accumulate(raw)
    return found


def _from_above(raw: Numbers) -> Numbers:
    """The largest non-decreasing sequence that is nowhere above."""
    found: Numbers = np.minimum.accumulate(raw[::-1])[::-1]
    return found


def _reached(rising: Numbers, edges: Numbers, share: float) -> float:
    """Where the rising counts reach a share, by linear interpolation."""
    goal = share * rising[-1]
    at = min(max(int(np.searchsorted(rising, goal, side="left")), 1), len(rising) - 1)
    before, after = rising[at - 1], rising[at]
    part = min(max((goal - before) / (after - before), 0.0), 1.0) if after > before else 0.0
    return float(edges[at - 1] + part * (edges[at] - edges[at - 1]))


def end_of(
    counts: Numbers,
    edges: Numbers,
    law: Law,
    step: float,
    highest: bool,
    lattice: float,
    name: Hashable,
) -> Estimate:
    """The outermost bin that clearly holds rows; nothing tells of fewer rows further out.

    With the stated confidence no bin that is called full is empty (Bonferroni over the bins), so
    the true end lies at or beyond it: the interval goes on to the declared bound.
    """
    limits = (float(edges[0]), float(edges[-1]))

    def outermost(confidence: float) -> int | None:
        least = float(law.half_width(1 - (1 - confidence) / len(counts))) * step
        full = np.nonzero(counts > least)[0]
        return None if not len(full) else int(full[-1] if highest else full[0])

    def interval(confidence: float) -> tuple[float, float]:
        at = outermost(confidence)
        if at is None:
            return limits
        inner = float(edges[at] if highest else edges[at + 1])
        return (inner, limits[1]) if highest else (limits[0], inner)

    at = outermost(0.95)
    if at is None:
        return Stated(limits[highest], interval, limits, frozenset([name]), UNKNOWN)
    if not highest:
        value = float(edges[at])
    else:  # the last point of [edge, next edge); the last bin is closed
        last = at == len(counts) - 1
        value = float(edges[at + 1]) - (0.0 if last else lattice)
    return Stated(value, interval, limits, frozenset([name]))
