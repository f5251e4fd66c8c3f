"""The covariance of rows: from one look at all rows or, if that is too noisy, at clipped ones.

The look: the Gram matrix of (w, y), y = the rows about the public middle and w = the farthest they
can be. It costs what their mean alone would (a mean entry errs by (w^2 + y^2)/(sqrt 2 w)), and
where rows are many it is enough. Else: distances from that mean, the mean again where its error is
large beside them, and the Gram matrix of rows clipped around it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sulq.kernel.query.vectors import Vector, bins, concat, crossed, norm, ones, project, scaled
from sulq.learn.budget import FitBudget, FitPlan, FitStep
from sulq.learn.dataset import FitData
from sulq.learn.features import Array

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


def find_centre(table: FitData, budget: FitBudget, step: str = "centre") -> Centre:
    """The mean, drawn towards the public middle as far as it is noise (James and Stein)."""
    middle = table.features.middle
    reach = table.features.radius(middle)
    vector = table.features.as_vector(middle)
    if table.public_rows:
        found, error = budget.sums(step, table.outer(ones(), vector))
        rows, sums = table.rows, found[0]
    else:
        weight = max(reach, 1e-3)
        both = concat(scaled(ones(), weight), vector)
        found, error = budget.sums(step, table.outer(ones(), both))
        sums = found[0, 1:]
        rows = mixed_rows(table, float(found[0, 0]) / weight, error / weight)
    offset = sums / rows
    spread = error / rows
    mean = np.clip(middle + shrink(offset, spread), table.features.low, table.features.high)
    return Centre(mean, spread, rows)


def mixed_rows(table: FitData, rows: float, error: float) -> float:
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


def clip_share(table: FitData) -> float:
    """The share of rows that should stay unclipped: all without noise, half where it is loud."""
    if not math.isfinite(table.signal):
        return 1.0
    return 1.0 - min(0.5, 30.0 * math.sqrt(table.width) / table.signal)


def find_lengths(
    table: FitData, budget: FitBudget, centre: Array | None, step: str = "clip"
) -> Lengths:
    """How far the rows are from `centre` (0 if None), in cells that double in four steps.

    Declared bounds may be wide: rows a thousand times nearer are still told apart.
    """
    reach = table.features.radius(centre)
    vector = norm(table.features.as_vector(centre))
    powers = np.arange(NORM_BINS - 1, -1, -1) / BINS_PER_DOUBLING
    edges = np.concatenate([[0.0], reach * 2.0**-powers])
    edges[-1] = reach * (1 + 2**-10)
    counts, error = budget.sums(step, table.outer(ones(), bins(vector, edges.tolist())))
    return Lengths(counts[0], edges, error)


def find_radius(
    table: FitData, budget: FitBudget, centre: Array, step: str = "clip", share: float | None = None
) -> float:
    """A quantile of the rows' distances from `centre`, from one noisy histogram."""
    lengths = find_lengths(table, budget, centre, step)
    return lengths.quantile(clip_share(table) if share is None else share)


def ask_gram(table: FitData, budget: FitBudget, vector: Vector, step: str = "gram") -> Gram:
    """The noisy Gram matrix of a vector; symmetric, its noise independent."""
    return Gram(*budget.sums(step, table.outer(vector, vector)))


# The first questions of most learners: where the rows are, how far they reach, how they co-vary.
#
# Centre first, then clip around it, then the Gram matrix: sensitivity falls with the radius, so a
# little spent on finding the rows pays many times over.


LOOK, CENTRE, CLIP = 0.1, 0.1, 0.05
"""Shares of the credits; the Gram matrix of clipped rows takes the rest."""
BESIDE = 0.15
"""Of the radius: the weight of the 1 that is asked along, to correct the mean."""
OPENING = 90.0
"""How fast clips open as the noise falls; the product of many tables, none by name."""


@dataclass(frozen=True)
class Covariance:
    """A noisy covariance: `error` is of a diagonal entry (off it: over sqrt 2).

    `free` spans the directions in which rows can differ: beside it the covariance is 0.
    `lengthened` undoes, on average, what clipping took off; covariance and error include it.
    """

    mean: Array
    mean_error: float
    covariance: Array
    free: Array
    error: float
    rows: float
    reach: float
    clip: float | None = None
    lengthened: float = 1.0
    length_squared: float = math.nan
    offset: tuple[Array, Array, float] | None = None
    """The rows' mean offset from where they were summed: measured, taken off, and its error."""

    @property
    def noise(self) -> float:
        """tau: the noise's own eigenvalues lie within 2 tau."""
        return math.sqrt(self.free.shape[1] / 2) * self.error

    @property
    def edge(self) -> float:
        """An eigenvalue of pure noise passes this in 1 of 100 cases (Tracy and Widom)."""
        return self.noise * (2 + 2 * math.pow(self.free.shape[1], -2 / 3))

    def feigned(self, vectors: Array) -> Array:
        """The most variance along each direction that an error of the centre can feign."""
        if self.offset is None:
            return np.zeros(len(vectors))
        measured, taken, error = self.offset
        most = (np.abs(vectors @ measured) + 2 * error) ** 2
        feigned: Array = (most - (vectors @ taken) ** 2) * self.lengthened
        return feigned

    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues, the largest first, and eigenvectors as rows."""
        values, vectors = np.linalg.eigh(self.free.T @ self.covariance @ self.free)
        return values[::-1], (self.free @ vectors).T[::-1]


def covariance_plan(table: FitData, method: str) -> FitPlan:
    base = table.share
    steps = (
        FitStep("look", LOOK * base),
        FitStep("clip", 2 * CLIP * base, rounds=2),
        FitStep("centre", CENTRE * base),
        FitStep("gram", (1 - LOOK - 2 * CLIP - CENTRE) * base),
    )
    return FitPlan(method, steps)


def noise_ratio(table: FitData, budget: FitBudget, share: float) -> float:
    """The edge of the noise in a Gram matrix of clipped rows, over the most the rows can add."""
    middle = table.features.middle
    clip = table.features.radius(middle) / 2
    vector = table.features.as_vector(middle, clip)
    error = budget.error(table.outer(vector, vector), share)
    return math.sqrt(2 * table.features.free.shape[1]) * error / (clip**2 * table.rows)


def unclipped_share(loud: float) -> float:
    """The share of rows that stays unclipped: all without noise, few where it is loud."""
    return 1 / (1 + OPENING * loud)


def estimate_covariance(
    table: FitData, budget: FitBudget, loud: float, enough: Callable[[Covariance], bool]
) -> Covariance:
    """Look; where that is not enough, look closer with what is left."""
    seen = _look(table, budget)
    if enough(seen):
        return seen
    share = unclipped_share(loud)
    centre = Centre(seen.mean, seen.mean_error, seen.rows)
    lengths = find_lengths(table, budget, centre.mean)
    radius = lengths.quantile(share)
    if math.sqrt(table.width) * centre.error > 0.3 * radius and loud < 0.25:
        centre = _recentred(table, budget, centre, radius)
        lengths = find_lengths(table, budget, centre.mean)
    return _closer(table, budget, centre, lengths, share)


def _look(table: FitData, budget: FitBudget) -> Covariance:
    """Count, mean and covariance about the public middle, in one question."""
    middle = table.features.middle
    reach = max(table.features.radius(middle), 1e-3)
    gram = ask_gram(table, budget, _beside(reach, table.features.as_vector(middle)), "look")
    rows = table.rows
    if not table.public_rows:
        rows = mixed_rows(table, float(gram.value[0, 0]) / reach**2, gram.error / reach**2)
    offset = _possible(table, gram.value[0, 1:] / reach / rows)
    error = gram.error / math.sqrt(2) / reach / rows
    kept = shrink(offset, error)
    mean = np.clip(middle + kept, table.features.low, table.features.high)
    covariance, noise = _centred(table, gram, kept, rows)
    trace = max(float(np.trace(covariance)), 0.0)
    free = table.features.free
    return Covariance(
        mean,
        error,
        covariance,
        free,
        noise,
        rows,
        reach,
        length_squared=trace,
        offset=(offset, kept, error),
    )


def _possible(table: FitData, offset: Array) -> Array:
    """A difference of rows without what can only be noise."""
    free = table.features.free
    possible: Array = free @ (free.T @ offset)
    return possible


def _beside(weight: float, vector: Vector) -> Vector:
    return concat(scaled(ones(), weight), vector)


def _centred(table: FitData, gram: Gram, mean: Array, rows: float) -> tuple[Array, float]:
    """The covariance of the coordinates after the first, which is constant."""
    freedom = max(rows - 1.0, 1.0)
    scatter = gram.value[1:, 1:] - rows * np.outer(mean, mean)
    possible = _possible(table, _possible(table, scatter).T)
    return possible / freedom, gram.error / freedom


def _recentred(table: FitData, budget: FitBudget, centre: Centre, radius: float) -> Centre:
    """A better mean: the rows around a rough one, clipped, have a smaller sensitivity."""
    vector = table.features.as_vector(centre.mean, radius)
    found, error = budget.sums("centre", table.outer(ones(), vector))
    noise = error / centre.rows
    moved = shrink(_possible(table, found[0] / centre.rows), noise)
    mean = np.clip(centre.mean + moved, table.features.low, table.features.high)
    return Centre(mean, noise, centre.rows)


def _closer(
    table: FitData, budget: FitBudget, centre: Centre, lengths: Lengths, share: float
) -> Covariance:
    """The Gram matrix of rows clipped around the mean, with all that is left."""
    radius = lengths.quantile(share)
    weight = BESIDE * radius
    vector = _beside(weight, table.features.as_vector(centre.mean, radius))
    gram = Gram(*budget.sums("gram", table.outer(vector, vector), budget.left))
    rows = centre.rows
    offset = _possible(table, gram.value[0, 1:] / weight / rows)
    error = gram.error / math.sqrt(2) / weight / rows
    moved = surely(offset, error)
    covariance, noise = _centred(table, gram, moved, rows)
    full = lengths.mean_square()
    lengthened = full / lengths.mean_square(radius)
    return Covariance(
        np.clip(centre.mean + moved, table.features.low, table.features.high),
        min(centre.error, error),
        covariance * lengthened,
        table.features.free,
        noise * lengthened,
        rows,
        lengths.quantile(1.0),
        radius,
        lengthened,
        full,
        (offset, moved, error),
    )


def surely(vector: Array, error: float) -> Array:
    """`shrink`, to 0 unless the vector is longer than noise is (but in 1 of 40 cases)."""
    square = float(vector @ vector)
    if square <= 0 or error <= 0:
        return vector
    longest = (len(vector) + 2 * math.sqrt(2 * len(vector))) * error**2
    return vector * max(0.0, 1.0 - longest / square)


def literal_plan(table: FitData, means: bool) -> FitPlan:
    """One question for each mean and each product: d + d(d+1)/2 of them, equal shares. S0.8"""
    width = table.width
    products = width * (width + 1) // 2
    asked = products + (width if means else 0)
    steps = [FitStep("products", table.share * products / asked, rounds=products)]
    if means:
        steps.insert(0, FitStep("means", table.share * width / asked, rounds=width))
    return FitPlan("paper", tuple(steps))


def literal_loudness(table: FitData, budget: FitBudget) -> float:
    """The same for products asked one by one: 2 sqrt(d) errors over the farthest rows can be."""
    one = project(table.features.as_vector(), [[1] + [0] * (table.width - 1)])
    product = table.outer(ones(), crossed(one, one))
    error = budget.error(product, budget.plan.share("products"))
    reach = table.features.radius(table.features.middle)
    return 2 * math.sqrt(table.width) * error / (reach**2 * table.rows)


def corrected(second: Array, mean: Array, variance: float) -> Array:
    """E[x x'] - m m' with means of that variance: E[m_i^2] is too large by it. S0.8: + R/n^2"""
    covariance: Array = second - np.outer(mean, mean) + variance * np.eye(len(mean))
    return covariance


def literal_covariance(table: FitData, budget: FitBudget, centred: bool) -> Covariance:
    """The papers' own: public bounds, every entry asked alone. S0.8, S4.6, S4.7"""
    width = table.width
    rows = table.rows
    whole = table.features.as_vector()
    single = [project(whole, [row]) for row in np.eye(width, dtype=int).tolist()]
    mean, bias, beside = np.zeros(width), 0.0, 0.0
    if centred:
        found = [budget.sums("means", table.outer(ones(), one)) for one in single]
        mean = np.array([float(value[0, 0]) for value, _ in found]) / rows
        bias = found[0][1] ** 2 / rows**2
        beside = float(np.linalg.norm(mean)) / 2  # |m e'| beside 2 sqrt(d) s of the products
    second = np.zeros((width, width))
    error = 0.0
    for i in range(width):
        for j in range(i, width):
            both = table.outer(ones(), crossed(single[i], single[j]))
            value, error = budget.sums("products", both)
            second[i, j] = second[j, i] = float(value[0, 0]) / rows
    covariance = corrected(second, mean, bias)
    noise = math.sqrt(2) * error / rows * (1 + beside)  # off the diagonal it is not halved
    trace = max(float(np.trace(covariance)), 0.0)
    reach = table.features.radius(table.features.middle)
    return Covariance(
        np.clip(mean, table.features.low, table.features.high),
        math.sqrt(bias),
        covariance,
        np.eye(width),
        noise,
        rows,
        reach,
        length_squared=trace,
    )


def settled_spectrum(values: Array, error: float) -> Array:
    """The variance along each noisy eigenvector, from the noisy eigenvalues.

    Symmetric noise of off-diagonal deviation s pushes eigenvalues apart; what lies along the
    eigenvector i is l_i - 2 s^2 sum_j 1/(l_i - l_j) (Bun, Allez, Bouchaud, Potters 2016).
    """
    if error <= 0 or len(values) < 2:
        return np.array(values)
    square = error**2 / 2
    gaps = values[:, None] - values[None, :]
    smooth = 2 * square  # neighbours within the noise of one entry do not push
    settled: Array = values - 2 * square * (gaps / (gaps**2 + smooth)).sum(axis=1)
    return settled


# The spread of rows whose columns live with several owners: sums first, then products. V.1


SPLIT_CENTRE = 0.1


def split_plan(table: FitData) -> FitPlan:
    """Nobody sees whole rows: no lengths, no clip."""
    steps = (
        FitStep("centre", SPLIT_CENTRE * table.share),
        FitStep("gram", (1 - SPLIT_CENTRE) * table.share),
    )
    return FitPlan("sketches", steps)


def split_covariance(table: FitData, budget: FitBudget) -> Covariance:
    """The products about the noisy mean; what its error adds to them is taken off."""
    centre = find_centre(table, budget)
    vector = table.features.as_vector(centre.mean)
    answer = budget.ask("gram", table.outer(vector, vector))
    found = np.asarray(answer.value, dtype=np.float64)
    second = (found + found.T) / 2 / table.rows
    # entries err differently: noise alone reaches 2 sqrt(the largest row of variances)
    widest = np.sqrt((np.asarray(answer.standard_error) ** 2).sum(axis=1).max())
    free = table.features.free
    covariance = free @ free.T @ second @ free @ free.T
    return Covariance(
        centre.mean,
        centre.error,
        covariance - centre.error**2 * (free @ free.T),
        free,
        float(np.sqrt(2 / len(found)) * widest / table.rows),
        table.rows,
        table.features.radius(table.features.middle),
        length_squared=max(float(np.trace(covariance)), 0.0),
    )
