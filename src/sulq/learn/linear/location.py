"""Where the rows and the target lie: means, scales and clips, before any moment is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sulq.kernel.query.expressions import Expression
from sulq.kernel.query.vectors import (
    Ones,
    Vector,
    bins,
    clipped,
    columns,
    concat,
    crossed,
    norm,
    ones,
    project,
    scaled,
)
from sulq.kernel.schema.bind_vectors import VectorBinder
from sulq.kernel.schema.columns import Number
from sulq.learn.budget import FitBudget
from sulq.learn.covariance import shrink
from sulq.learn.dataset import FitData
from sulq.learn.features import Array, published

BINS = 40
FARTHEST, FARTHEST_TARGET, FARTHEST_IN_SCALES = 16.0, 64.0, 256.0
"""How far beyond most rows the public reach may lie and still be told apart."""
FEWEST_BINS = 6
CELLS_A_DOUBLING = 2.5
SCALE_BINS = 14
"""Halvings of the range, the finest spread that is told apart: 2^-13."""
INDICATOR_SCALE = 0.4
"""The usual deviation of a 0/1 coordinate: not worth a question."""
NARROWEST = 0.02
"""No spread is taken for less than this part of the widest."""
SCALE_COST, CELL_NOISE = 0.06, 0.08
"""The share that scales cost; asked where a cell's noise is below this part of the rows."""
SCALES_KEPT = 1.5
"""Rows are clipped here, per coordinate, when their means are asked again."""
PRIOR_SCALE = 0.15
"""How far a mean usually lies from the middle of its public range, as a share of the range."""
TARGET_PART = 0.125
"""How long the target may be inside a clipped row, in radii: it goes along, it does not decide."""
FAR_NOISES, FAR_SHARE = 6.0, 0.05
NEARLY_ALL = 0.999
CONSTANT_PART = 0.5
"""How long the constant beside a row is, in radii: its cross-moment corrects the mean."""
DRIFT_PART = 0.25
"""How large the constant beside the target is, in clips: its cross-moment shows a drift."""
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


def reach_of(table: FitData, vector: Vector) -> float:
    """The longest a vector can be, by public facts."""
    bound = VectorBinder(table.features.schema).bind(vector)
    return math.sqrt(bound.norm_squared) * float(bound.step)


def kept_rows(table: FitData, loudness: float) -> float:
    """The share of rows to leave unclipped: all without noise, half where it is loud."""
    if not math.isfinite(table.signal):
        return 1.0
    return 1.0 - min(0.5, loudness * math.sqrt(table.width) / table.signal)


@dataclass(frozen=True)
class Means:
    """Means of features (coordinates) and target (in [0, 1]), their errors, and total weight."""

    features: Array
    target: float
    error: float
    target_error: float
    rows: float


def find_means(table: FitData, budget: FitBudget, weight: Vector, weighted: bool) -> Means:
    """Both means in one question, half its sensitivity to the target."""
    assert table.label is not None and isinstance(table.label.source, str)  # noqa: S101
    middle = table.features.middle
    reach = max(table.features.radius(middle), 1e-3)
    target = scaled(columns([table.label.source], [0.5]), published(2 * reach))
    parts = [table.features.as_vector(middle), target]
    if weighted:
        parts.append(scaled(ones(), published(reach)))
    found, error = budget.sums("centre", table.outer(weight, concat(*parts)))
    width = table.width
    rows = table.rows
    if weighted:
        rows = max(float(found[0, -1]) / reach, 1.0, error / reach)
    offset = shrink(found[0, :width] / rows, error / rows)
    target_error = error / (2 * reach) / rows
    drawn = PRIOR_SCALE**2 / (PRIOR_SCALE**2 + target_error**2)
    mean = 0.5 + drawn * float(found[0, width]) / (2 * reach) / rows
    return Means(
        np.clip(middle + offset, table.features.low, table.features.high),
        min(max(mean, 0.0), 1.0),
        error / rows,
        target_error,
        rows,
    )


def scales_worth(table: FitData) -> bool:
    """Whether the scales of the numbers can be told for a small share: public facts decide."""
    numbers = len(table.features.numeric) + 1
    if table.features.vector is not None:
        return False
    loud = math.sqrt(numbers) if table.gaussian else float(numbers)
    share = math.sqrt(SCALE_COST) if table.gaussian else SCALE_COST
    return loud / share < CELL_NOISE * table.signal


@dataclass(frozen=True)
class Scales:
    """The usual distance of a coordinate, and of the target, from its mean."""

    features: Array
    target: float


def estimate_scales(table: FitData, budget: FitBudget, weight: Vector, means: Means) -> Scales:
    """From one histogram a number, in halving bins."""
    edges = [0.0, *(2.0**-power for power in range(SCALE_BINS - 1, 0, -1)), 1.001]
    scales = np.full(table.width, INDICATOR_SCALE)
    parts, places, place = [], [], 0
    for name in table.features.names:
        column = table.features.schema[name]
        if isinstance(column, Number):
            centre = published([means.features[place]])
            parts.append(bins(norm(columns([name], centre)), edges))
            places.append(place)
            place += 1
        else:
            place += len(getattr(column, "values", None) or (0,))
    parts.append(bins(norm(_target(table, means.target)), edges))
    counts, error = budget.sums("spread", table.outer(weight, concat(*parts)))
    told = [mean_square(held, np.array(edges), error) for held in counts[0].reshape(len(parts), -1)]
    known = [math.sqrt(square) or 1.0 for square in told]  # nothing stands out: the whole range
    scales[places] = known[:-1]
    least = max(NARROWEST * float(scales.max()), 2.0**-SCALE_BINS)
    return Scales(np.maximum(scales, least), known[-1])


def find_means_again(
    table: FitData, budget: FitBudget, weight: Vector, means: Means, scales: Scales
) -> Means:
    """Means of the rows in scales, clipped: far less noisy than over the public bounds.

    Every mean moves as far as the noise of the first one allows; a clipped mean may be off.
    """
    both_scales = np.append(scales.features, scales.target)
    both = concat(table.features.as_vector(means.features), _target(table, means.target))
    moved = project(both, published(np.diag(1 / both_scales)))
    radius = SCALES_KEPT * math.sqrt(len(both_scales))
    found, error = budget.sums("means", table.outer(weight, clipped(moved, published(radius))))
    known = np.append(np.full(table.width, means.error), means.target_error) / both_scales
    loud = (error / means.rows) ** 2 + SKEW**2
    trust = known**2 / (known**2 + loud)
    shift = trust * found[0] / means.rows * both_scales
    left = both_scales * known * np.sqrt(1 - trust)
    return Means(
        np.clip(means.features + shift[:-1], table.features.low, table.features.high),
        min(max(means.target + float(shift[-1]), 0.0), 1.0),
        float(left[:-1].max()),
        float(left[-1]),
        means.rows,
    )


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
    """Counts above what few of so many noises reach, else 0; a far end of a few noises too.

    One far cell of noise would stretch every quantile near 1, and every mean square.
    """
    loudest = error * math.sqrt(math.log(max(len(counts), 2)))
    held = np.where(counts > max(loudest, 0.5), counts, 0.0)
    beyond = np.cumsum(held[::-1])[::-1]
    return np.where(beyond > min(FAR_NOISES * error, FAR_SHARE * held.sum()), held, 0.0)


def mean_square(counts: Array, edges: Array, error: float) -> float:
    """The mean square of what a histogram counts."""
    held = standing_out(counts, error)
    squares = (edges[1:] ** 2 + edges[1:] * edges[:-1] + edges[:-1] ** 2) / 3
    return float(held @ squares / held.sum()) if held.any() else 0.0


@dataclass(frozen=True)
class CentredData:
    """Rows around their means, in scales, clipped at `radius`; the target clipped at `clip`.

    `whole` and `inside` are the shares of rows and of targets that no clip touches; `variance` is
    the target's; `drift` is what is left of the rows' mean: the noise of `means`, missing values
    (which stand at the mean) and clips move it off 0.
    """

    table: FitData
    weight: Vector
    means: Means
    scales: Array | None
    radius: float
    clip: float
    whole: float
    inside: float
    variance: float
    drift: Array

    @property
    def moved(self) -> Vector:
        return _moved(self.table, self.means, self.scales)

    @property
    def rows(self) -> Vector:
        """The features of a row."""
        return clipped(self.moved, published(self.radius))

    def level(self, slopes: Array) -> float:
        """What is predicted for a row at `means`."""
        return self.means.target - float(slopes @ self.drift)

    def residual(self, slopes: Array, clip: float) -> Vector:
        """Target minus prediction, shrunk as its row is (so slopes stay unbiased), then clipped."""
        level = self.level(slopes)
        target = _target(self.table, level)
        if self.whole > NEARLY_ALL:
            plain = self.table.features.as_vector(self.means.features)
            per_unit = slopes if self.scales is None else slopes / self.scales
            found = project(concat(plain, target), [published([*-per_unit, 1])])
        else:
            share = TARGET_PART * self.radius / max(abs(level), abs(1 - level))
            row = concat(self.moved, scaled(target, published(share)))
            row = clipped(row, published(self.radius * math.hypot(1, TARGET_PART)))
            found = project(row, [published([*-slopes, 1 / share])])
        return clipped(found, published(clip))

    def cross_moment(self, budget: FitBudget) -> tuple[Array, float, CentredData]:
        """The cross-moment with the target, its error, and the view with better means."""
        share = DRIFT_PART * self.clip
        target = self.residual(np.zeros(self.table.width), self.clip)
        found, error = self._sums(budget, "cross", concat(target, scaled(ones(), published(share))))
        rows = self.means.rows
        drift = _clearly(found[:-1, 1], error) / share / rows
        view = replace(self._levelled(found[-1, 0], error, self.clip), drift=drift)
        # of a bell-shaped target, clipping keeps this share of the moment (Bussgang)
        return found[:-1, 0] / self.inside, error / self.inside, view

    def residual_moment(
        self, budget: FitBudget, slopes: Array, clip: float
    ) -> tuple[Array, float, CentredData]:
        """The sum of row times residual, its error, and the view with a better mean."""
        found, error = self._sums(budget, "refine", self.residual(slopes, clip))
        constant = found[-1, 0] / (CONSTANT_PART * self.radius)
        slope = found[:-1, 0] - self.drift * constant
        return slope, error, self._levelled(found[-1, 0], error, clip)

    def _sums(self, budget: FitBudget, step: str, right: Vector) -> tuple[Array, float]:
        """Row times `right`, and in the last place a constant times it."""
        rows = concat(self.rows, scaled(ones(), published(CONSTANT_PART * self.radius)))
        left = rows if isinstance(self.weight, Ones) else crossed(self.weight, rows)
        return budget.sums(step, self.table.outer(left, right))

    def _levelled(self, left: float, error: float, clip: float) -> CentredData:
        """The view with the target's mean moved by what is `left`, as far as that is trusted.

        A residual is clipped far below the label's public range, so its mean is told more
        precisely than the label's own; where the label is skewed it is off by a part of the clip.
        """
        each = CONSTANT_PART * self.radius * self.means.rows
        known = self.means.target_error**2
        trust = known / (known + (error / each) ** 2 + (SKEW * clip) ** 2)
        target = min(max(self.means.target + trust * left / each, 0.0), 1.0)
        error_left = self.means.target_error * math.sqrt(1 - trust)
        return replace(self, means=replace(self.means, target=target, target_error=error_left))


def _clearly(vector: Array, error: float) -> Array:
    """The vector, drawn in by its noise, where noise alone is hardly ever so long; else 0."""
    width = len(vector)
    longest = error**2 * (width + 4 * math.sqrt(2 * width))
    return shrink(vector, error) if float(vector @ vector) > longest else np.zeros(width)


def _moved(table: FitData, means: Means, scales: Array | None) -> Vector:
    vector = table.features.as_vector(means.features)
    return vector if scales is None else project(vector, published(np.diag(1 / scales)))


def _target(table: FitData, centre: float) -> Vector:
    assert table.label is not None and isinstance(table.label.source, str)  # noqa: S101
    return columns([table.label.source], published([centre]))


def estimate_clips(
    table: FitData, budget: FitBudget, weight: Vector, means: Means, scales: Array | None
) -> CentredData:
    """The clips, from one histogram of the rows' lengths and one of the target's."""
    moved, target = _moved(table, means, scales), _target(table, means.target)
    reach = reach_of(table, moved) * (1 + 2**-10)
    farthest = max(means.target, 1 - means.target) * (1 + 2**-10)
    both = concat(bins(norm(moved), [0, reach]), bins(norm(target), [0, farthest]))
    error = budget.error(table.outer(weight, both), budget.plan.share("clip"))
    cells = BINS if error <= 0 else int(np.clip(means.rows / (3 * error), FEWEST_BINS, BINS))
    far = FARTHEST if scales is None else FARTHEST_IN_SCALES
    lengths = _by_ratio(reach, far, cells)
    sizes = _by_ratio(farthest, FARTHEST_TARGET, cells)
    both = concat(bins(norm(moved), lengths.tolist()), bins(norm(target), sizes.tolist()))
    counts, error = budget.sums("clip", table.outer(weight, both))
    whole, inside = kept_rows(table, 60.0), kept_rows(table, 15.0)
    return CentredData(
        table,
        weight,
        means,
        scales,
        radius=quantile(counts[0, :cells], lengths, error, whole),
        clip=quantile(counts[0, cells:], sizes, error, inside),
        whole=whole,
        inside=inside,
        variance=mean_square(counts[0, cells:], sizes, error),
        drift=np.zeros(table.width),
    )


def _by_ratio(reach: float, ratio: float, cells: int) -> Array:
    """Edges from 0 to the reach, each a fixed ratio above the one before; few cells, less far."""
    least = reach / min(ratio, 2 ** (cells / CELLS_A_DOUBLING))
    return np.array([0.0, *np.geomspace(least, reach, cells)])
