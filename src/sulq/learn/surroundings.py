"""Where the rows and the target lie: means, spreads and clips, before any moment is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sulq.learn.features import Array, published
from sulq.learn.moments import shrink
from sulq.learn.spending import Purse
from sulq.learn.table import Table
from sulq.query.expressions import Expression
from sulq.query.vector_values import Ones, Vector
from sulq.query.vectors import bins, clipped, columns, concat, crossed, norm, ones, project, scaled
from sulq.schema.columns import Number
from sulq.schema.vector_binding import VectorBinder

BINS = 40
FARTHEST, FARTHEST_TARGET, FARTHEST_IN_SPREADS = 16.0, 64.0, 256.0
"""How far beyond most rows the public reach may lie and still be told apart."""
FEWEST_BINS = 6
CELLS_A_DOUBLING = 2.5
SPREAD_BINS = 14
"""Halvings of the range, the finest spread that is told apart: 2^-13."""
INDICATOR_SPREAD = 0.4
"""The usual deviation of a 0/1 coordinate: not worth a question."""
NARROWEST = 0.02
"""No spread is taken for less than this part of the widest."""
PRIOR_SPREAD = 0.15
"""How far a mean usually lies from the middle of its public range, as a share of the range."""
TARGET_PART = 0.125
"""How long the target may be inside a clipped row, in radii: it goes along, it does not decide."""
NEARLY_ALL = 0.999
CONSTANT_PART = 0.5
"""How long the constant beside a row is, in radii: its cross-moment corrects the mean."""
SKEW = 0.15
"""By how much of the clip a clipped mean may be off."""
LEVELS = 256


def weight_vector(weights: Expression | None) -> Vector:
    """An expression in [0, 1] as one coordinate: the nearest of 256 levels; missing is 0."""
    if weights is None:
        return ones()
    edges = [(2 * level - 1) / (2 * LEVELS) for level in range(1, LEVELS + 2)]
    levels = [level / LEVELS for level in range(1, LEVELS + 1)]
    return project(bins(weights.clip(0, 1), edges), [levels])


def reach_of(table: Table, vector: Vector) -> float:
    """The longest a vector can be, by public facts."""
    bound = VectorBinder(table.features.schema).bind(vector)
    return math.sqrt(bound.norm_squared) * float(bound.step)


def kept_rows(table: Table, loudness: float) -> float:
    """The share of rows to leave unclipped: all without noise, half where it is loud."""
    if not math.isfinite(table.signal):
        return 1.0
    return 1.0 - min(0.5, loudness * math.sqrt(table.width) / table.signal)


@dataclass(frozen=True)
class Means:
    """Means of features (coordinates) and target (in [0, 1]); the target's error; total weight."""

    features: Array
    target: float
    target_error: float
    rows: float


def find_means(table: Table, purse: Purse, weight: Vector, weighted: bool) -> Means:
    """Both means in one question, half its sensitivity to the target."""
    assert table.label is not None and isinstance(table.label.source, str)  # noqa: S101
    middle = table.features.middle
    reach = max(table.features.radius(middle), 1e-3)
    target = scaled(columns([table.label.source], [0.5]), published(2 * reach))
    parts = [table.features.as_vector(middle), target]
    if weighted:
        parts.append(scaled(ones(), published(reach)))
    found, error = purse.sums("centre", table.outer(weight, concat(*parts)))
    width = table.width
    rows = table.rows
    if weighted:
        rows = max(float(found[0, -1]) / reach, 1.0, error / reach)
    offset = shrink(found[0, :width] / rows, error / rows)
    target_error = error / (2 * reach) / rows
    drawn = PRIOR_SPREAD**2 / (PRIOR_SPREAD**2 + target_error**2)
    mean = 0.5 + drawn * float(found[0, width]) / (2 * reach) / rows
    return Means(
        np.clip(middle + offset, table.features.low, table.features.high),
        min(max(mean, 0.0), 1.0),
        target_error,
        rows,
    )


def scales_worth(table: Table) -> bool:
    """Whether the spreads of the numbers can be told for a small share: public facts decide."""
    numbers = len(table.features.numeric)
    if table.features.vector is not None or numbers == 0 or table.width < 2:
        return False
    loud = math.sqrt(numbers) if table.gaussian else float(numbers)
    share = 0.06 if not table.gaussian else math.sqrt(0.06)
    return loud / share < 0.05 * table.signal


def find_spreads(table: Table, purse: Purse, weight: Vector, means: Means) -> Array:
    """The spread of every coordinate, from one histogram a number in halving bins."""
    names, place = table.features.names, 0
    edges = [0.0, *(2.0**-power for power in range(SPREAD_BINS - 1, 0, -1)), 1.001]
    spreads = np.full(table.width, INDICATOR_SPREAD)
    parts, places = [], []
    for name in names:
        column = table.features.schema[name]
        if isinstance(column, Number):
            centre = published([means.features[place]])
            parts.append(bins(norm(columns([name], centre)), edges))
            places.append(place)
            place += 1
        else:
            place += len(getattr(column, "values", None) or (0,))
    counts, error = purse.sums("spread", table.outer(weight, concat(*parts)))
    for index, held in zip(places, counts[0].reshape(len(parts), -1), strict=True):
        spreads[index] = math.sqrt(mean_square(held, np.array(edges), error)) or 1.0
    return np.asarray(np.maximum(spreads, max(NARROWEST * float(spreads.max()), 2.0**-SPREAD_BINS)))


def quantile(counts: Array, edges: Array, error: float, share: float) -> float:
    """Where `share` of the counts lies below, interpolated."""
    held = standing_out(counts, error)
    if not held.any():
        return float(edges[-1]) / 2  # nothing stands out: half the public reach
    below = np.cumsum(held) / held.sum()
    place = int(np.searchsorted(below, share - 1e-12))
    before = float(below[place - 1]) if place else 0.0
    part = 1.0 if share >= 1 else (share - before) / (float(below[place]) - before)
    return float(edges[place] + part * (edges[place + 1] - edges[place]))


def standing_out(counts: Array, error: float) -> Array:
    """Counts above what few of so many noises reach, else 0."""
    loudest = error * math.sqrt(math.log(max(len(counts), 2)))
    return np.where(counts > max(loudest, 0.5), counts, 0.0)


def mean_square(counts: Array, edges: Array, error: float) -> float:
    """The mean square of what a histogram counts."""
    held = standing_out(counts, error)
    squares = (edges[1:] ** 2 + edges[1:] * edges[:-1] + edges[:-1] ** 2) / 3
    return float(held @ squares / held.sum()) if held.any() else 0.0


@dataclass(frozen=True)
class View:
    """Rows around their means, in spreads, clipped at `radius`; the target clipped at `clip`.

    `whole` and `inside` are the shares of rows and of targets that no clip touches; `variance` is
    the target's.
    """

    table: Table
    weight: Vector
    means: Means
    spreads: Array | None
    radius: float
    clip: float
    whole: float
    inside: float
    variance: float

    @property
    def moved(self) -> Vector:
        return _moved(self.table, self.means, self.spreads)

    @property
    def rows(self) -> Vector:
        """The features of a row."""
        return clipped(self.moved, published(self.radius))

    def residual(self, slopes: Array, clip: float) -> Vector:
        """Target minus prediction, shrunk as its row is (so slopes stay unbiased), then clipped."""
        target = _target(self.table, self.means)
        if self.whole > NEARLY_ALL:
            plain = self.table.features.as_vector(self.means.features)
            per_unit = slopes if self.spreads is None else slopes / self.spreads
            found = project(concat(plain, target), [published([*-per_unit, 1])])
        else:
            share = TARGET_PART * self.radius / max(self.means.target, 1 - self.means.target)
            row = concat(self.moved, scaled(target, published(share)))
            row = clipped(row, published(self.radius * math.hypot(1, TARGET_PART)))
            found = project(row, [published([*-slopes, 1 / share])])
        return clipped(found, published(clip))

    def left_over(
        self, purse: Purse, step: str, slopes: Array, clip: float
    ) -> tuple[Array, float, View]:
        """The sum of row times residual, its error, and the view with a better mean of the target.

        The residual is clipped far below the label's public range, so its mean is told more
        precisely than the label's own; where the label is skewed it is off by a part of the clip.
        """
        share = CONSTANT_PART * self.radius
        rows = concat(self.rows, scaled(ones(), published(share)))
        left = rows if isinstance(self.weight, Ones) else crossed(self.weight, rows)
        found, error = purse.sums(step, self.table.outer(left, self.residual(slopes, clip)))
        loud = math.hypot(error / share / self.means.rows, SKEW * clip)
        known = self.means.target_error**2
        trust = known / (known + loud**2)
        target = self.means.target + trust * float(found[-1, 0]) / share / self.means.rows
        means = replace(
            self.means,
            target=min(max(target, 0.0), 1.0),
            target_error=self.means.target_error * math.sqrt(1 - trust),
        )
        return found[:-1, 0], error, replace(self, means=means)


def _moved(table: Table, means: Means, spreads: Array | None) -> Vector:
    vector = table.features.as_vector(means.features)
    return vector if spreads is None else project(vector, published(np.diag(1 / spreads)))


def _target(table: Table, means: Means) -> Vector:
    assert table.label is not None and isinstance(table.label.source, str)  # noqa: S101
    return columns([table.label.source], published([means.target]))


def look_around(
    table: Table, purse: Purse, weight: Vector, means: Means, spreads: Array | None
) -> View:
    """The clips, from one histogram of the rows' lengths and one of the target's."""
    moved, target = _moved(table, means, spreads), _target(table, means)
    reach = reach_of(table, moved) * (1 + 2**-10)
    farthest = max(means.target, 1 - means.target) * (1 + 2**-10)
    both = concat(bins(norm(moved), [0, reach]), bins(norm(target), [0, farthest]))
    error = purse.error(table.outer(weight, both), purse.plan.share("clip"))
    cells = BINS if error <= 0 else int(np.clip(means.rows / (3 * error), FEWEST_BINS, BINS))
    far = FARTHEST if spreads is None else FARTHEST_IN_SPREADS
    lengths = _by_ratio(reach, far, cells)
    sizes = _by_ratio(farthest, FARTHEST_TARGET, cells)
    both = concat(bins(norm(moved), lengths.tolist()), bins(norm(target), sizes.tolist()))
    counts, error = purse.sums("clip", table.outer(weight, both))
    whole, inside = kept_rows(table, 60.0), kept_rows(table, 15.0)
    return View(
        table,
        weight,
        means,
        spreads,
        radius=quantile(counts[0, :cells], lengths, error, whole),
        clip=quantile(counts[0, cells:], sizes, error, inside),
        whole=whole,
        inside=inside,
        variance=mean_square(counts[0, cells:], sizes, error),
    )


def _by_ratio(reach: float, ratio: float, cells: int) -> Array:
    """Edges from 0 to the reach, each a fixed ratio above the one before; few cells, less far."""
    least = reach / min(ratio, 2 ** (cells / CELLS_A_DOUBLING))
    return np.array([0.0, *np.geomspace(least, reach, cells)])
