"""What a noisy tree of counts says: histogram, counts below, quantiles, smallest and largest.

Weighted least squares over the tree in two passes (Hay et al. 2010, for unequal noise), with the
exact covariances of its result. Post-processing only. Proof: docs/proofs/trees.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sulq.errors import InvalidQuery

Floats = NDArray[np.float64]


def rising(values: Floats) -> Floats:
    """Return the nearest non-decreasing sequence (pool adjacent violators)."""
    means: list[float] = []
    widths: list[int] = []
    for value in values.tolist():
        mean, width = value, 1
        while means and means[-1] > mean:
            mean = (mean * width + means[-1] * widths[-1]) / (width + widths[-1])
            width += widths.pop()
            means.pop()
        means.append(mean)
        widths.append(width)
    return np.repeat(np.array(means), widths)


def check_level(confidence: object) -> None:
    """Raise `InvalidQuery` unless this is a confidence."""
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise InvalidQuery(f"confidence must lie between 0 and 1, got {confidence!r:.40}")


def check_share(share: object) -> None:
    """Raise `InvalidQuery` unless this is a share of the rows."""
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InvalidQuery(f"a share must lie between 0 and 1, got {share!r:.40}")


def rank_half_width(
    variance: Floats,
    with_total: Floats,
    reach: Callable[[float], float],
    share: float | None,
    confidence: float,
) -> float:
    """How far off the rank of a quantile may be, in rows, wherever it lies; share None: of an end.

    From the noise alone, so known before asking. Proof: docs/proofs/trees.md, section 3.
    """
    check_level(confidence)
    if share is None:  # the end is looked for among all edges, and seen from twice its bar on
        above = variance[-1] - 2 * with_total + variance
        each = 1 - (1 - confidence) / (len(variance) - 1)
        return float(2 * reach(each) * np.sqrt(max(variance.max(), above.max())))
    check_share(share)
    spread = variance - 2 * share * with_total + share**2 * variance[-1]
    return float(reach(confidence) * np.sqrt(max(0.0, spread.max())))


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """How a Number is distributed over its range.

    Bars are per number asked for, not for all at once, unless `cdf(simultaneous=True)`; those of
    the ends hold at once. `steps` marks a declared lattice: then quantiles are points of it.
    """

    edges: Floats
    raw: Floats
    below: Floats
    """How many rows lie below each edge: `raw`, made non-decreasing and possible."""
    variance: Floats
    with_total: Floats
    reach: Callable[[float], float]
    most: float
    steps: bool
    within: tuple[float, float] | None
    """What a value can be where the rows are; None: no row can be there, as all can see."""

    @property
    def possible(self) -> tuple[float, float]:
        """Return the least and the largest that any value in these rows can be."""
        if self.within is not None:
            return self.within
        return float(self.edges[0]), float(self.edges[-1 - self.steps])

    @property
    def empty(self) -> bool:
        """Whether everybody knows that there is no row: then no value is known."""
        return self.within is None or not (self.raw[-1] or self.variance[-1])

    def _inside(self, value: float) -> float:
        low, high = self.possible
        return min(max(value, low), high)

    @property
    def total(self) -> float:
        """Return how many rows there are."""
        return float(max(self.raw[-1], 0.0))

    def cdf(self, confidence: float = 0.95, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """(low, high) of `below`; simultaneous: all of them hold at once (a union bound)."""
        check_level(confidence)
        each = self._each(confidence) if simultaneous else confidence
        half = self.reach(each) * np.sqrt(self.variance)
        value = self.below
        low, high = rising(self.raw - half), rising(self.raw + half)
        return (
            np.clip(np.minimum(low, value), 0, self.most),
            np.clip(np.maximum(high, value), 0, self.most),
        )

    def quantile(self, share: float) -> float:
        """The value below which a share of the rows lies; not a number where there is none."""
        check_share(share)
        if self.empty:
            return math.nan
        below = self.below
        wanted = share * below[-1]
        place = int(np.clip(np.searchsorted(below, wanted, side="left"), 1, len(below) - 1))
        if self.steps:
            return self._inside(float(self.edges[place - 1]))
        before, after = below[place - 1], below[place]
        part = np.clip((wanted - before) / (after - before), 0, 1) if after > before else 0.0
        width = self.edges[place] - self.edges[place - 1]
        return self._inside(float(self.edges[place - 1] + part * width))

    def quantile_interval(self, share: float, confidence: float = 0.95) -> tuple[float, float]:
        """Where that quantile lies, at this confidence: whole cells that cannot be ruled out."""
        check_share(share)
        check_level(confidence)
        if self.empty:
            return self.possible
        last = len(self.edges) - 1
        gap = self.raw - share * self.raw[-1]
        spread = self.variance - 2 * share * self.with_total + share**2 * self.variance[-1]
        half = self.reach(confidence) * np.sqrt(np.maximum(spread, 0.0))
        low = max(0, int(np.argmax(gap + half >= 0)) - 1)
        open_yet = np.nonzero(gap - half <= 0)[0]
        high = min(last, int(open_yet[-1]) + 1) if len(open_yet) else last
        ends = float(self.edges[low]), float(self.edges[max(high - self.steps, low)])
        return self._inside(ends[0]), self._inside(ends[1])

    def rank_error(self, share: float | None, confidence: float = 0.95) -> float:
        """How far off the rank of a quantile may be, as a share of the rows by the noisy total."""
        found = rank_half_width(self.variance, self.with_total, self.reach, share, confidence)
        return found / self.total if self.total else np.inf

    def _each(self, confidence: float) -> float:
        """For every edge, so that all hold together: a union bound."""
        return 1 - (1 - confidence) / (len(self.edges) - 1)

    @property
    def median(self) -> float:
        return self.quantile(0.5)

    def minimum(self, confidence: float = 0.95) -> tuple[float, float, float]:
        """(value, low, high) of the smallest: by `high` the rows have surely begun.

        One row is hidden by design, so nothing stands against the range's own end as `low`.
        """
        if self.empty:
            return math.nan, *self.possible
        half = self.reach(self._each(confidence)) * np.sqrt(self.variance)
        seen = np.nonzero(self.raw - half > 0)[0]
        high = int(seen[0]) if len(seen) else len(self.edges) - 1
        value, last = self.edges[max(high - 1, 0)], self.edges[max(high - self.steps, 0)]
        return self._inside(float(value)), self.possible[0], self._inside(float(last))

    def maximum(self, confidence: float = 0.95) -> tuple[float, float, float]:
        """(value, low, high) of the largest, as `minimum`."""
        if self.empty:
            return math.nan, *self.possible
        above = self.raw[-1] - self.raw
        spread = self.variance[-1] - 2 * self.with_total + self.variance
        half = self.reach(self._each(confidence)) * np.sqrt(np.maximum(spread, 0.0))
        seen = np.nonzero(above - half > 0)[0]
        low = int(seen[-1]) if len(seen) else 0
        value = self._inside(float(self.edges[low]))
        return value, value, self.possible[1]

    def histogram(self) -> Floats:
        """Return the rows per cell, from the counts below: none is negative."""
        found: Floats = np.diff(self.below)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The shape of the answer of least squares, the same for every tree of one question."""

    sizes: tuple[int, ...]
    combined: tuple[Floats, ...]
    """The variance of each node estimated from itself and what lies below it."""

    @classmethod
    def of(cls, sizes: Sequence[int], variances: Sequence[float]) -> Fit:
        """From the noise of one node of each level, top first."""
        found = [np.full(sizes[-1], float(variances[-1]))]
        for size, own in zip(reversed(sizes[:-1]), reversed(variances[:-1]), strict=True):
            children = _sums(found[-1], size)
            found.append(own * children / (own + children) if own else np.zeros(size))
        return cls(tuple(sizes), tuple(reversed(found)))

    def cells(self, nodes: Floats, variances: Sequence[float]) -> Floats:
        """Return the finest level of the least-squares tree."""
        levels = np.split(nodes, np.cumsum(self.sizes)[:-1])
        if not variances[-1]:
            return levels[-1]
        up = [levels[-1]]
        for place in range(len(self.sizes) - 2, -1, -1):  # each node with what lies below it
            children = _sums(self.combined[place + 1], self.sizes[place])
            share = children / (variances[place] + children)
            up.append(share * levels[place] + (1 - share) * _sums(up[-1], self.sizes[place]))
        up.reverse()
        settled = up[0]
        for place in range(1, len(self.sizes)):  # what is missing goes to the children
            own = self.combined[place]
            parent = np.arange(self.sizes[place]) // 2
            missing = settled - _sums(up[place], self.sizes[place - 1])
            weight = own / _sums(own, self.sizes[place - 1])[parent]
            settled = up[place] + weight * missing[parent]
        return settled

    def spreads(self) -> tuple[Floats, Floats]:
        """Return Var(C_i) and Cov(C_i, total) of the counts below every edge."""
        leaves = self.sizes[-1]
        place = np.append(np.arange(leaves), leaves - 1)
        inside = np.zeros(leaves + 1)  # how much of its node's error the edge has to its left
        inside[-1] = 1.0
        variance = np.zeros(leaves + 1)
        for level in range(len(self.sizes) - 1, 0, -1):
            own = self.combined[level]
            parent = place // 2
            whole = _sums(own, self.sizes[level - 1])[parent]
            first = np.where(place % 2 == 1, own[place - place % 2], 0.0)
            left = first + inside * own[place]
            squares = first + inside**2 * own[place]
            safe = np.where(whole > 0, whole, 1.0)
            variance += squares - left**2 / safe
            inside, place = left / safe, parent
        own = self.combined[0]
        before = np.concatenate([[0.0], np.cumsum(own)])[place]
        variance += before + inside**2 * own[place]
        return variance, before + inside * own[place]


def _sums(values: Floats, size: int) -> Floats:
    """Add up the children's values per parent; the last parent may have one child."""
    found: Floats = np.add.reduceat(values, np.arange(0, 2 * size, 2))
    return found
