"""The first questions of most learners: where the rows are, how far they reach, how they co-vary.

Centre first, then clip around it, then the Gram matrix: sensitivity falls with the radius, so a
little spent on finding the rows pays many times over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sulq.learn.features import Array
from sulq.learn.spending import Purse
from sulq.learn.table import Table
from sulq.query.vector_values import Vector
from sulq.query.vectors import bins, concat, norm, ones, scaled

NORM_BINS = 40
BINS_PER_DOUBLING = 4


@dataclass(frozen=True)
class Centre:
    """A noisy mean in coordinates, and the standard error of each."""

    mean: Array
    error: float
    rows: float


@dataclass(frozen=True)
class Gram:
    """A noisy sum of y y', and the standard error of a diagonal entry (off it: over sqrt 2)."""

    value: Array
    error: float

    @property
    def edge(self) -> float:
        """Where the eigenvalues of pure noise end, for d coordinates: sqrt(2 d) error."""
        # off-diagonal deviation error/sqrt 2, so the semicircle ends at 2 sqrt(d) error/sqrt 2
        return math.sqrt(2 * len(self.value)) * self.error


@dataclass(frozen=True)
class Lengths:
    """A noisy histogram of the rows' distances from a centre."""

    counts: Array
    edges: Array
    error: float

    @property
    def kept(self) -> Array:
        """Cells under 2 errors hold nothing, nor do those beyond the last one over 4.

        Among so many cells noise alone passes 2 somewhere, and a far cell would weigh much.
        """
        sure = np.flatnonzero(self.counts > max(4 * self.error, 0.5))
        last = sure[-1] if len(sure) else len(self.counts)
        seen = self.counts > max(2 * self.error, 0.5)
        kept = np.where(seen & (np.arange(len(self.counts)) <= last), self.counts, 0.0)
        if kept.any():
            return kept
        return np.where(self.edges[1:] > self.edges[-1] / 2, 1.0, 0.0)  # nothing stands out

    def quantile(self, share: float) -> float:
        """The length that `share` of the rows do not pass, evenly spread within a cell."""
        held = np.flatnonzero(self.kept)
        below = np.concatenate([[0.0], np.cumsum(self.kept[held])]) / self.kept.sum()
        place = int(np.searchsorted(below[1:-1], share - 1e-12))
        low, high = self.edges[held[place]], self.edges[held[place] + 1]
        inside = (share - below[place]) / (below[place + 1] - below[place])
        nearest = max(low, high / 2)  # the first cell reaches down to 0: a clip must not
        return float(nearest + min(max(inside, 0.0), 1.0) * (high - nearest))

    def mean_square(self, clip: float = math.inf) -> float:
        """The mean squared length, of rows shrunk to `clip` where they are longer."""
        low, high = self.edges[:-1], self.edges[1:]
        cut = np.clip(clip, low, high)
        below = (cut**3 - low**3) / 3 + cut**2 * (high - cut)  # evenly spread within a cell
        squares = np.where(clip < low, clip**2, below / (high - low))
        return float(self.kept @ squares / self.kept.sum())


def find_centre(table: Table, purse: Purse, step: str = "centre") -> Centre:
    """The mean, drawn towards the public middle as far as it is noise (James and Stein)."""
    middle = table.features.middle
    reach = table.features.radius(middle)
    vector = table.features.as_vector(middle)
    if table.public_rows:
        found, error = purse.sums(step, table.outer(ones(), vector))
        rows, sums = table.rows, found[0]
    else:
        weight = max(reach, 1e-3)
        both = concat(scaled(ones(), weight), vector)
        found, error = purse.sums(step, table.outer(ones(), both))
        sums = found[0, 1:]
        rows = mixed_rows(table, float(found[0, 0]) / weight, error / weight)
    offset = sums / rows
    spread = error / rows
    mean = np.clip(middle + shrink(offset, spread), table.features.low, table.features.high)
    return Centre(mean, spread, rows)


def mixed_rows(table: Table, rows: float, error: float) -> float:
    """Two noisy counts as one, by their precision; never below what noise alone would show."""
    if error <= 0 or table.rows_error <= 0:
        return max(table.rows if table.rows_error <= 0 else rows, 1.0)
    ours, theirs = error**-2, table.rows_error**-2
    both = (rows * ours + table.rows * theirs) / (ours + theirs)
    return float(max(both, 1.0, 0.5 * (ours + theirs) ** -0.5))


def shrink(vector: Array, error: float) -> Array:
    """James and Stein's estimate: towards 0 by the share of the length that is noise."""
    square = float(vector @ vector)
    freedom = max(len(vector) - 2, 0)
    if square <= 0 or error <= 0:
        return vector
    return vector * max(0.0, 1.0 - freedom * error**2 / square)


def clip_share(table: Table) -> float:
    """The share of rows that should stay unclipped: all without noise, half where it is loud."""
    if not math.isfinite(table.signal):
        return 1.0
    return 1.0 - min(0.5, 30.0 * math.sqrt(table.width) / table.signal)


def find_lengths(table: Table, purse: Purse, centre: Array | None, step: str = "clip") -> Lengths:
    """How far the rows are from `centre` (0 if None), in cells that double in four steps.

    Declared bounds may be wide: rows a thousand times nearer are still told apart.
    """
    reach = table.features.radius(centre)
    vector = norm(table.features.as_vector(centre))
    powers = np.arange(NORM_BINS - 1, -1, -1) / BINS_PER_DOUBLING
    edges = np.concatenate([[0.0], reach * 2.0**-powers])
    edges[-1] = reach * (1 + 2**-10)
    counts, error = purse.sums(step, table.outer(ones(), bins(vector, edges.tolist())))
    return Lengths(counts[0], edges, error)


def find_radius(
    table: Table, purse: Purse, centre: Array, step: str = "clip", share: float | None = None
) -> float:
    """A quantile of the rows' distances from `centre`, from one noisy histogram."""
    lengths = find_lengths(table, purse, centre, step)
    return lengths.quantile(clip_share(table) if share is None else share)


def ask_gram(table: Table, purse: Purse, vector: Vector, step: str = "gram") -> Gram:
    """The noisy Gram matrix of a vector; symmetric, its noise independent."""
    return Gram(*purse.sums(step, table.outer(vector, vector)))
