"""KMeans: Lloyd's rounds over noisy sums, started from a noisy cloud. S0.9, S4.8, V.3"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sulq.errors import InvalidQuery
from sulq.kernel.query.vectors import (
    Vector,
    bins,
    concat,
    from_nearest,
    nearest,
    norm,
    ones,
    project,
    scaled,
    squares,
)
from sulq.learn.budget import FitBudget, FitPlan, FitStep
from sulq.learn.covariance import Gram, clip_share, find_centre, shrink
from sulq.learn.dataset import FitData
from sulq.learn.estimator import Learner
from sulq.learn.features import Array, published
from sulq.learn.parameters import NONE, Constraints, Whole
from sulq.learn.summaries import Groups, Summary

REACH_BINS = 40
LEAST_REACH = 2.0**-9
SMALL = 2.0
"""Clusters that hold fewer rows than so many errors keep their centre."""
FEW = 4
BIAS = 0.5
"""Rows that are clipped pull from all sides: about half of what they lose does not cancel."""


@dataclass(frozen=True)
class RoundSums:
    """What one round says of each cluster: rows, sum of (clipped) residuals, their errors."""

    rows: Array
    rows_error: float
    moves: Array
    moves_error: float

    def errors(self) -> Array:
        """The noise of each new centre, per coordinate."""
        return self.moves_error / np.maximum(self.rows, max(2 * self.rows_error, 1.0))

    def small(self, errors: float) -> NDArray[np.bool_]:
        """Clusters that hold fewer rows than so many errors: their update is skipped."""
        return np.asarray(self.rows < max(errors * self.rows_error, 0.5))


@dataclass(frozen=True)
class CountWeight:
    """How much rows weigh against residuals in one question, in clips."""

    replace: bool
    rows: float

    def reach(self, gaussian: bool, width: int) -> float:
        """How far one row moves the answer, in clips: L2, or L1 for Laplace noise. V.3"""
        if not gaussian:
            return (2 if self.replace else 1) * (self.rows + math.sqrt(width))
        if self.replace:  # two residuals in one cluster, or one in each of two
            return max(2.0, math.sqrt(2 * (1 + self.rows**2)))
        return math.hypot(1.0, self.rows)


def for_centres(table: FitData) -> CountWeight:
    """Under replace two residuals are two clips apart already: rows of weight 1 come free."""
    return CountWeight(table.replace, 1.0 if table.replace else 0.6)


def for_cells(table: FitData) -> CountWeight:
    """Cells are small: their rows matter more than where in them the mean is."""
    return CountWeight(table.replace, 2.0 if table.replace else 1.5)


def round_error(table: FitData, share: float, weighing: CountWeight) -> float:
    """The error of a residual at this share, per unit of the clip; of rows: over the weight."""
    unit = table.unit / (math.sqrt(share) if table.gaussian else share)
    return unit * weighing.reach(table.gaussian, table.width)


def ask_round(
    table: FitData,
    budget: FitBudget,
    vector: Vector,
    centres: Array,
    clip: float,
    weighing: CountWeight,
    step: str = "rounds",
) -> RoundSums:
    """Rows of every cluster and their residuals, at most `clip` long."""
    weight = weighing.rows * clip
    points = published(centres)
    right = concat(scaled(ones(), published(weight)), from_nearest(vector, points, published(clip)))
    found, error = budget.sums(step, table.outer(nearest(vector, points), right))
    return RoundSums(found[:, 0] / weight, error / weight, found[:, 1:], error)


def ask_paper_round(table: FitData, budget: FitBudget, vector: Vector, centres: Array) -> RoundSums:
    """The paper's step: rows and sums of every cluster as they are, nothing clipped. S4.8"""
    points = published(centres)
    query = table.outer(nearest(vector, points), concat(ones(), vector))
    found, error = budget.sums("rounds", query)
    return RoundSums(found[:, 0], error, found[:, 1:], error)


def update_centres(centres: Array, found: RoundSums, errors: float = SMALL) -> Array:
    """Each centre by the mean of its residuals, as far as that is not noise."""
    rows = np.maximum(found.rows, max(2 * found.rows_error, 1.0))
    steps = np.where(found.small(errors)[:, None], 0.0, found.moves / rows[:, None])
    if found.moves_error <= 0:
        return np.asarray(centres + steps)
    noise = found.errors()
    if centres.shape[1] < FEW:  # too few coordinates to judge one centre alone: all together
        steps = shrink((steps / noise[:, None]).ravel(), 1.0).reshape(steps.shape)
        return np.asarray(centres + steps * noise[:, None])
    shrunk = [shrink(step, float(error)) for step, error in zip(steps, noise, strict=True)]
    return np.asarray(centres + np.array(shrunk))


def visible(count: int) -> float:
    """So many errors of one cell hardly ever show up among `count` empty ones."""
    return math.sqrt(2 * math.log(max(count, 3)))


# --- how far residuals reach ---------------------------------------------------------------------


@dataclass(frozen=True)
class DistanceProfile:
    """Rows by their distance from the nearest centre."""

    edges: Array
    rows: Array
    """Of bins that stand out of the noise; 0 in the others."""

    @classmethod
    def of(cls, distances: Array) -> DistanceProfile:
        """Of public points."""
        edges = np.quantile(distances, np.linspace(0, 1, REACH_BINS + 1))
        edges[0] = 0.0
        return cls(edges, np.ones(REACH_BINS))

    @property
    def shown(self) -> float:
        return float(self.rows.sum())

    @property
    def all(self) -> float:
        """Beyond this no row shows."""
        return float(self.edges[1:][self.rows > 0].max())

    def quantile(self, share: float) -> float:
        """The distance that this share of the rows does not pass, even inside a bin."""
        below = np.concatenate([[0.0], np.cumsum(self.rows)]) / self.rows.sum()
        return float(np.interp(share, below, self.edges)) if share < 1 else float(self.edges[-1])

    def clip(self, noise: float) -> float:
        """The radius B with the least squared error, (bias of the clipped)^2 + (noise B)^2."""
        if noise <= 0:
            return float(self.edges[-1])
        levels = (np.arange(400) + 0.5) / 400
        distances = np.array([self.quantile(level) for level in levels])
        # rows beyond B pull with B instead of their distance
        lost = np.maximum(distances[None, :] - distances[:, None], 0.0).mean(axis=1)
        return float(distances[np.argmin((BIAS * lost) ** 2 + (noise * distances) ** 2)])


def ask_reach(
    table: FitData,
    budget: FitBudget,
    vector: Vector,
    centres: Array,
    farthest: float,
    step: str = "reach",
) -> DistanceProfile:
    """A histogram of distances, its bins in equal ratios."""
    edges = np.concatenate([[0.0], farthest * np.geomspace(LEAST_REACH, 1 + 2**-10, REACH_BINS)])
    distance = norm(from_nearest(vector, published(centres)))
    counts, error = budget.sums(step, table.outer(ones(), bins(distance, published(edges))))
    held = np.where(counts[0] > max(visible(REACH_BINS) * error, 0.5), counts[0], 0.0)
    if not held.any():
        held[-2:] = 1.0
    return DistanceProfile(edges, held)


# --- sizes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sizes:
    """Rows and squared distances of each cluster, and their errors."""

    rows: Array
    rows_error: float
    inertia: Array
    inertia_error: float

    def small(self) -> NDArray[np.bool_]:
        return np.asarray(self.rows < max(SMALL * self.rows_error, 0.5))


def ask_sizes(
    table: FitData,
    budget: FitBudget,
    vector: Vector,
    centres: Array,
    farthest: float,
    step: str = "sizes",
) -> Sizes:
    points = published(centres)
    distance = norm(from_nearest(vector, points, published(farthest)))
    weight = farthest**2
    right = concat(scaled(ones(), published(weight)), squares(distance))
    found, error = budget.sums(step, table.outer(nearest(vector, points), right))
    return Sizes(found[:, 0] / weight, error / weight, found[:, 1], error)


# Where clusters may start: a cloud of public points that stand for the rows.
#
# A noisy histogram of every axis (or a noisy Gaussian) gives a first cloud. Then the cloud is cut
# into many small cells, and one question per pass counts their rows and finds their means: cells
# lie where the rows are. Any number of k-means restarts on the cloud costs nothing.


MOST_BINS = 32
LEAST_BINS = 6
DRAWS = 4_000
RESTARTS = 24
CELL_ERRORS = 8
"""A cell or bin should hold so many errors of its rows."""
UNCLIPPED = 0.9
"""Of a cell's rows, by the cloud."""


@dataclass(frozen=True)
class Space:
    """Where clusters are looked for: a vector of coordinates and their ranges."""

    vector: Vector
    low: Array
    high: Array

    @property
    def width(self) -> int:
        return len(self.low)

    def axis(self, place: int) -> Vector:
        if self.width == 1:
            return self.vector
        row = np.zeros((1, self.width))
        row[0, place] = 1.0
        return project(self.vector, published(row))


@dataclass(frozen=True)
class WeightedPoints:
    """Public points and how many rows each stands for."""

    points: Array
    rows: Array

    @property
    def mean(self) -> Array:
        return np.asarray(self.rows @ self.points / self.rows.sum())

    def moved(self, by: Array) -> WeightedPoints:
        return WeightedPoints(self.points + by, self.rows)

    def distances(self, centres: Array) -> Array:
        """Of every point from its nearest centre."""
        square = np.square(centres).sum(axis=1) - 2 * self.points @ centres.T
        found = np.square(self.points).sum(axis=1) + square.min(axis=1)
        return np.asarray(np.sqrt(np.maximum(found, 0.0)))

    def clustered(self, count: int, random: np.random.Generator, restarts: int, most: int) -> Array:
        """Centres by plain k-means, the best of several restarts."""
        if len(np.unique(self.points, axis=0)) <= count:  # too few places for that many centres
            chosen = self.points[random.integers(0, len(self.points), count)]
            spread = np.maximum(self.points.std(axis=0), 1e-3)
            return np.asarray(chosen + 0.1 * spread * random.standard_normal(chosen.shape))
        runs = [self._run(self._seeds(count, random), most) for _ in range(restarts)]
        return min(runs, key=lambda run: run[0])[1]

    def start(self, count: int, random: np.random.Generator) -> Array:
        return self.clustered(count, random, RESTARTS, 50)

    def _seeds(self, count: int, random: np.random.Generator) -> Array:
        """k-means++, the best of a few draws at each step."""
        trials = 2 + int(math.log(count))
        chosen = [self.points[random.choice(len(self.points), p=self.rows / self.rows.sum())]]
        least = np.square(self.points - chosen[0]).sum(axis=1)
        for _ in range(1, count):
            below = np.cumsum(self.rows * least)
            drawn = np.searchsorted(below, random.random(trials) * below[-1], side="right")
            drawn = np.minimum(drawn, len(self.points) - 1)
            apart = np.square(self.points[:, None, :] - self.points[None, drawn, :]).sum(axis=2)
            both = np.minimum(apart, least[:, None])
            best = int((self.rows @ both).argmin())
            chosen.append(self.points[drawn[best]])
            least = both[:, best]
        return np.array(chosen)

    def _run(self, centres: Array, most: int) -> tuple[float, Array]:
        """Lloyd's rounds on the points: squared distances, centres."""
        square = np.square(self.points).sum(axis=1)
        total = math.inf
        for _ in range(most):
            apart = np.square(centres).sum(axis=1) - 2 * self.points @ centres.T
            near = apart.argmin(axis=1)
            before, total = total, float(self.rows @ (square + apart.min(axis=1)))
            held = np.bincount(near, self.rows, len(centres))
            sums = [np.bincount(near, self.rows * x, len(centres)) for x in self.points.T]
            means = np.stack(sums, axis=1) / np.maximum(held, 1e-300)[:, None]
            centres = np.where(held[:, None] > 0, means, centres)
            if total >= before * (1 - 1e-6):
                break
        return total, centres


# --- the first cloud ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Marginal:
    """Rows per bin along one axis; what is below its noise is 0."""

    edges: Array
    rows: Array

    def draws(self, random: np.random.Generator) -> Array:
        """Bins by their rows, uniform inside."""
        below = np.concatenate([[0.0], np.cumsum(self.rows)])
        level = below[-1] * random.permutation((np.arange(DRAWS) + 0.5) / DRAWS)
        return np.asarray(np.interp(level, below, self.edges))


def ask_axes(
    table: FitData,
    budget: FitBudget,
    space: Space,
    random: np.random.Generator,
    strict: bool,
    step: str = "axes",
) -> WeightedPoints:
    """Two passes over all axes: equal bins of the whole range, then close ones where rows are.

    `strict` leaves out what may be noise; a cloud that is counted in cells later needs not.
    """
    edges = []
    count = _bin_count(table, budget, space, step)
    for low, high in zip(space.low, space.high, strict=True):
        slack = max(high - low, 1e-3) * 2**-10
        edges.append(np.linspace(low - slack, high + slack, count + 1))
    coarse = _ask_marginals(table, budget, space, edges, step, strict)
    close = [_finer(marginal, count) for marginal in coarse]
    fine = _ask_marginals(table, budget, space, close, step, strict)
    points = np.stack([marginal.draws(random) for marginal in fine], axis=1)
    return WeightedPoints(points, np.full(DRAWS, table.rows / DRAWS))


def _bin_count(table: FitData, budget: FitBudget, space: Space, step: str) -> int:
    """Fewer bins where noise is loud: about eight errors of rows in each."""
    halves = [bins(space.axis(i), [-(2**20), 0, 2**20]) for i in range(space.width)]
    error = budget.error(table.outer(ones(), concat(*halves)), budget.plan.share(step))
    if error <= 0:
        return MOST_BINS
    return int(min(MOST_BINS, max(LEAST_BINS, table.rows / error / CELL_ERRORS)))


def _ask_marginals(
    table: FitData, budget: FitBudget, space: Space, edges: list[Array], step: str, strict: bool
) -> list[Marginal]:
    """All axes in one question: a row lies in one bin of each."""
    parts = [bins(space.axis(i), published(edge)) for i, edge in enumerate(edges)]
    found, error = budget.sums(step, table.outer(ones(), concat(*parts)))
    ends = np.cumsum([len(edge) - 1 for edge in edges])
    pieces = np.split(found[0], ends[:-1])
    return [Marginal(e, _pooled(c, error, strict)) for e, c in zip(edges, pieces, strict=True)]


def _pooled(counts: Array, error: float, strict: bool) -> Array:
    """Bins that show keep their rows; neighbours that do not share theirs evenly."""
    level = max(error * visible(len(counts)), 0.5)
    shows = counts > level
    found = np.where(shows, counts, 0.0)
    ends = np.flatnonzero(np.diff(np.concatenate([[True], shows, [True]])))
    for first, last in ends.reshape(-1, 2):
        together = counts[first:last].sum()
        if together > (SMALL * error * math.sqrt(last - first) if strict else 0.0):
            found[first:last] = together / (last - first)
    return found if found.any() else np.ones(len(counts))


def _finer(marginal: Marginal, count: int) -> Array:
    """Edges that are close where rows are many, by the cube root of the rows; empty bins join."""
    weight = np.cbrt(marginal.rows)
    pieces = np.maximum(1, np.round(weight / weight.sum() * count)).astype(int)
    edges = [float(marginal.edges[0])]
    empty = False
    for low, high, rows, many in zip(
        marginal.edges[:-1], marginal.edges[1:], marginal.rows, pieces, strict=True
    ):
        if rows <= 0 and empty:
            edges.pop()
        edges.extend(np.linspace(low, high, many + 1)[1:].tolist())
        empty = rows <= 0
    return np.array(edges)


def ask_moments(
    table: FitData, budget: FitBudget, vector: Vector, clip: float, step: str = "gram"
) -> tuple[Gram, Array, float]:
    """The Gram matrix, the mean and its error in one question: a constant beside the coordinates.

    The first centre was found over the whole public range; this one moves it by what lies within
    the clip, and the Gram matrix is that around the new centre.
    """
    weight = clip / 2
    both = concat(scaled(ones(), published(weight)), vector)
    found, error = budget.sums(step, table.outer(both, both))
    error_of_sum = error / math.sqrt(2) / weight  # off the diagonal two draws are averaged
    spread = error_of_sum / table.rows
    shift = shrink(found[0, 1:] / weight / table.rows, spread)
    return Gram(found[1:, 1:] - table.rows * np.outer(shift, shift), error), shift, spread


def gaussian_cloud(spread: Array, rows: float, random: np.random.Generator) -> WeightedPoints:
    """Draws of a Gaussian around 0 with these deviations."""
    points = random.standard_normal((DRAWS, len(spread))) * spread
    return WeightedPoints(points, np.full(DRAWS, rows / DRAWS))


# --- finer clouds -------------------------------------------------------------------------------


def cell_count(rows: float, error: float, clusters: int) -> int:
    """How many cells a pass can tell apart; 0 where that is no finer than the clusters."""
    most = 100 + 10 * clusters
    count = most if error <= 0 else min(most, rows / error / CELL_ERRORS)
    return int(count) if count >= 2 * clusters else 0


def refine(
    table: FitData,
    budget: FitBudget,
    space: Space,
    cloud: WeightedPoints,
    cells: int,
    random: np.random.Generator,
    step: str = "cells",
) -> WeightedPoints:
    """The cloud in small cells, each with its noisy rows at its noisy mean."""
    centres = cloud.clustered(cells, random, 1, 10)
    clip = _cell_radius(cloud, centres)
    found = ask_round(table, budget, space.vector, centres, clip, for_cells(table), step)
    held = ~found.small(2.0)
    if held.sum() < 2:
        return cloud
    means = np.clip(update_centres(centres, found)[held], space.low, space.high)
    return _spread(means, found.rows[held], random, space)


def _cell_radius(cloud: WeightedPoints, centres: Array) -> float:
    """How far the cloud's points lie from their cells' centres: the 90 % point, and a fifth."""
    distance = cloud.distances(centres)
    order = np.argsort(distance)
    below = np.cumsum(cloud.rows[order]) / cloud.rows.sum()
    place = min(int(np.searchsorted(below, UNCLIPPED)), len(order) - 1)
    return max(1.2 * float(distance[order][place]), 1e-3)


def _spread(means: Array, rows: Array, random: np.random.Generator, space: Space) -> WeightedPoints:
    """Points around the means, half as far as the nearest other ones, for the next pass."""
    square = np.square(means).sum(axis=1)
    apart = square[:, None] + square[None, :] - 2 * means @ means.T
    np.fill_diagonal(apart, np.inf)
    near = np.sqrt(np.maximum(np.sort(apart, axis=1)[:, : min(3, len(means) - 1)], 0)).mean(axis=1)
    counts = np.maximum(2, np.round(rows / rows.sum() * DRAWS)).astype(int)
    noise = random.standard_normal((int(counts.sum()), means.shape[1]))
    width = np.repeat(near, counts)[:, None] / (2 * math.sqrt(means.shape[1]))
    points = np.clip(np.repeat(means, counts, axis=0) + noise * width, space.low, space.high)
    return WeightedPoints(points, np.repeat(rows / counts, counts))


# One round of k-means as one question: rows and residuals of all clusters together. S4.8, V.3


MOST_ROUNDS = 100
PAPER_ROUNDS = 5
MOST_AXES = 8
"""With more coordinates the start is looked for among the principal directions."""
PASSES = 2
"""Over the cells of the cloud."""
PAPER_SMALL = 2 * math.sqrt(2 * math.log(4 / 0.01))
"""A cluster under 2 z errors keeps its centre, z = sqrt(2 ln(4/beta)), beta = 1 %. S4.8"""
STILL = 1e-5
"""Centres that move less than their grid are done."""
LEAST_ERRORS = 2.0
LEAST_SIGNAL = 1.5
"""Below these a fit says nothing that one centre at the mean would not."""


@dataclass(frozen=True)
class Frame:
    """Where rounds run: y = basis (x - centre), and the first cloud there."""

    centre: Array
    basis: Array
    space: Space
    cloud: WeightedPoints | None
    farthest: float
    lost: float = 0.0
    """What the centre's noise adds to a row's squared distance where no round corrects it."""

    def to_coordinates(self, points: Array) -> Array:
        return np.asarray(self.centre + points @ self.basis)


class KMeans(Learner):
    """k-means: centres of clusters, their sizes, and the squared distances within them.

    Parameters
    ----------
    n_clusters : int
        How many clusters.
    init : array of shape (n_clusters, coordinates), optional
        Centres in user units to start from, in place of the search for a start.
    rounds : int, optional
        The number of rounds. Without it, as many as the noise allows.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    cluster_centers_, centers_error_ : ndarray of shape (n_clusters, coordinates)
        Centres in user units, and their standard errors.
    sizes_, sizes_error_ : ndarray
        Noisy numbers of rows, and their standard errors.
    shares_, shares_error_ : ndarray
        The same as shares of all rows.
    inertia_, inertia_error_ : float
        The sum of squared distances to the nearest centre, in coordinates scaled by the bounds.
    start_ : ndarray of shape (n_clusters, coordinates)
        Where the rounds began, in coordinates scaled by the bounds.
    n_iter_ : int
        The number of rounds.

    Notes
    -----
    Lloyd's rounds over noisy sums; each round moves a centre by the part of its step that is not
    noise. `method="paper"` is the papers' own algorithm from random centres (S4.8). There is no
    `labels_`: which cluster a private row is in would be a statement about that row.

    Examples
    --------
    >>> from sulq.learn import KMeans
    >>> model = KMeans(n_clusters=2, credits=50, random_state=0).fit(db, ["age", "income"])
    >>> model.cluster_centers_.shape
    (2, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_clusters": [Whole()],
        "rounds": [Whole(), NONE],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = None,
        rounds: int | None = None,
        credits: Any = None,
        method: str = "auto",
        random_state: Any = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.rounds = rounds
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    # --- plan -----------------------------------------------------------------------------------

    def _plan(self, table: FitData) -> FitPlan:
        if self.init is not None:
            self._given(table)
        rounds = self._round_count(table)
        if self.method == "paper":
            return FitPlan("paper", (FitStep("rounds", table.share, rounds),))
        shares = {"reach": 0.02, "sizes": 0.03}
        wide = table.width > MOST_AXES
        if wide:
            shares |= {"centre": 0.12, "clip": 0.03, "gram": 0.4}
        if self.init is None:
            cells = 0.2 if wide else 0.36
            if self._cell_count(table, cells * table.share / PASSES):
                shares |= {"cells": cells}
            if not wide:
                shares |= {"axes": 0.18 if "cells" in shares else 0.35}
        many = {"axes": 2, "cells": PASSES}
        steps = [FitStep(n, s * table.share, many.get(n, 1)) for n, s in shares.items()]
        left = table.share * (1 - sum(shares.values()))
        return FitPlan("lloyd", (*steps, FitStep("rounds", left, rounds)))

    def _cell_count(self, table: FitData, share: float) -> int:
        weighing = for_cells(table)
        error = round_error(table, share, weighing) / weighing.rows
        return cell_count(table.rows, error, self.n_clusters)

    def _round_count(self, table: FitData) -> int:
        """More rounds as rows stand out of the noise: each halving of it is worth one."""
        if self.rounds is not None:
            return self.rounds
        if self.method == "paper":
            return PAPER_ROUNDS
        each = table.signal / self.n_clusters
        if not math.isfinite(each):
            return MOST_ROUNDS
        return int(min(MOST_ROUNDS, max(2, 1 + math.log2(1 + each / 40))))

    # --- learning -------------------------------------------------------------------------------

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        random = np.random.default_rng(self.random_state)
        if self.method == "paper":
            self._learn_as_the_paper(table, budget, random)
            return
        self._hopeless(table, budget.plan)
        wide = table.width > MOST_AXES
        frame = self._wide(table, budget, random) if wide else self._narrow(table, budget, random)
        if self.init is None:
            centres = self._start(table, budget, frame, random)
        else:
            centres = (self._given(table) - frame.centre) @ frame.basis.T
        self._centre = frame.centre
        self.start_ = frame.to_coordinates(centres)
        reach = self._reach(table, budget, frame, centres)
        weighing = for_centres(table)
        noise = round_error(table, budget.plan.share("rounds"), weighing)
        clip = reach.clip(noise * math.sqrt(frame.space.width) * self.n_clusters / table.rows)
        for done in range(budget.plan.steps[-1].rounds):
            found = ask_round(table, budget, frame.space.vector, centres, clip, weighing)
            before, centres = centres, update_centres(centres, found)
            self.n_iter_ = done + 1
            if np.abs(centres - before).max() < STILL:
                break
        self._judge(table, centres, found, frame.lost)
        self._conclude(table, budget, frame, centres, found, reach.all)

    def _reach(
        self, table: FitData, budget: FitBudget, frame: Frame, centres: Array
    ) -> DistanceProfile:
        """How far rows are from the start: asked, or by the cloud where the answer is too noisy."""
        shown = ask_reach(table, budget, frame.space.vector, centres, frame.farthest)
        if shown.shown >= table.rows / 2 or frame.cloud is None:
            return shown
        return DistanceProfile.of(frame.cloud.distances(centres))

    def _start(
        self, table: FitData, budget: FitBudget, frame: Frame, random: np.random.Generator
    ) -> Array:
        assert frame.cloud is not None  # noqa: S101
        cloud = frame.cloud
        if "cells" in {step.name for step in budget.plan.steps}:
            cells = self._cell_count(table, budget.plan.share("cells"))
            for _ in range(PASSES):
                cloud = refine(table, budget, frame.space, cloud, cells, random)
        return cloud.start(self.n_clusters, random)

    def _given(self, table: FitData) -> Array:
        """The start that was given, in coordinates."""
        offset, width = table.features.units
        try:
            found = (np.asarray(self.init, dtype=np.float64) - offset) / width
        except (TypeError, ValueError):
            found = np.empty(0)
        if found.shape != (self.n_clusters, table.width) or not np.isfinite(found).all():
            raise InvalidQuery(
                f"init must hold {self.n_clusters} centres of {table.width} finite numbers"
            )
        return np.clip(found, table.features.low, table.features.high)

    def _narrow(self, table: FitData, budget: FitBudget, random: np.random.Generator) -> Frame:
        """All coordinates as they are."""
        features = table.features
        centre, basis = features.middle, np.eye(table.width)
        space = Space(features.as_vector(centre), features.low - centre, features.high - centre)
        cloud = None
        if self.init is None:
            strict = "cells" not in {step.name for step in budget.plan.steps}
            cloud = ask_axes(table, budget, space, random, strict)
            mean = cloud.mean
            centre, cloud = centre + mean, cloud.moved(-mean)
            space = Space(features.as_vector(centre), space.low - mean, space.high - mean)
        return Frame(centre, basis, space, cloud, 2 * features.radius(centre))

    def _wide(self, table: FitData, budget: FitBudget, random: np.random.Generator) -> Frame:
        """The principal directions that stand out of the noise; all of them as it vanishes."""
        features, width = table.features, table.width
        centre = find_centre(table, budget).mean
        farthest = features.radius(centre)
        vector = features.as_vector(centre)
        reach = ask_reach(table, budget, vector, np.zeros((1, width)), farthest, "clip")
        radius = min(reach.quantile(clip_share(table)), farthest)
        gram, shift, error = ask_moments(table, budget, features.as_vector(centre, radius), radius)
        centre = np.clip(centre + shift, features.low, features.high)
        vector = features.as_vector(centre)
        spectrum, directions = np.linalg.eigh(gram.value / table.rows)
        spectrum, basis = spectrum[::-1], directions[:, ::-1].T
        edge = gram.edge / table.rows
        count = max(1, int((spectrum > 0.85 * edge).sum())) if edge else width
        # an eigenvalue of signal + noise is l + edge^2/(4 l); the rest of the floor comes off too
        seen = np.maximum(spectrum[:count], edge)
        plain = (seen + np.sqrt(np.maximum(seen**2 - edge**2, 0.0))) / 2
        spread = np.sqrt(np.maximum(plain - 0.3 * edge, 1e-9))
        cloud = gaussian_cloud(spread, table.rows, random)
        if count == width:
            cloud, basis = WeightedPoints(cloud.points @ basis, cloud.rows), np.eye(width)
        else:
            basis = basis[:count]
            vector = project(vector, published(basis))
        ends = np.full(count, farthest)
        lost = (width - count) * error**2
        return Frame(centre, basis, Space(vector, -ends, ends), cloud, 2 * farthest, lost)

    def _learn_as_the_paper(
        self, table: FitData, budget: FitBudget, random: np.random.Generator
    ) -> None:
        """T rounds from random points of the public box, by the public bounds alone. S4.8"""
        features = table.features
        low, high = features.low, features.high
        vector = features.as_vector()
        if self.init is None:
            centres = low + random.random((self.n_clusters, table.width)) * (high - low)
        else:
            centres = self._given(table)
        self._centre, self.start_ = features.middle, centres
        for done in range(budget.plan.steps[-1].rounds):
            found = ask_paper_round(table, budget, vector, centres)
            small = found.small(PAPER_SMALL)
            if self.on_noise == "raise":  # Dwork: "output an exception", S0.9
                self._check_sizes(small, found.rows_error)
            means = found.moves / np.maximum(found.rows, 1.0)[:, None]
            centres = np.where(small[:, None], centres, np.clip(means, low, high))
            self.n_iter_ = done + 1
        self._set_centres(table, centres, np.repeat(found.errors()[:, None], table.width, axis=1))
        self._set_sizes(table, found.rows, found.rows_error)
        self.inertia_ = self.inertia_error_ = math.nan
        self._check_sizes(small, found.rows_error)

    # --- what was learned -----------------------------------------------------------------------

    def _conclude(
        self,
        table: FitData,
        budget: FitBudget,
        frame: Frame,
        centres: Array,
        found: RoundSums,
        reach: float,
    ) -> None:
        noise = np.sqrt(np.square(frame.basis).sum(axis=0))
        self._set_centres(
            table, frame.to_coordinates(centres), found.errors()[:, None] * noise[None, :]
        )
        vector = table.features.as_vector(frame.centre)
        points = self._coordinate_centers - frame.centre
        sizes = ask_sizes(table, budget, vector, points, reach)
        self._set_sizes(table, sizes.rows, sizes.rows_error)
        self.inertia_ = float(max(sizes.inertia.sum(), 0.0))
        self.inertia_error_ = float(sizes.inertia_error * math.sqrt(len(sizes.inertia)))
        self._check_sizes(sizes.small(), sizes.rows_error)

    def _set_centres(self, table: FitData, centres: Array, errors: Array) -> None:
        features = table.features
        self._coordinate_centers = np.clip(centres, features.low, features.high)
        self.cluster_centers_ = features.to_user(self._coordinate_centers)
        self.centers_error_ = errors * features.units[1]

    def _set_sizes(self, table: FitData, rows: Array, error: float) -> None:
        self.sizes_ = np.maximum(rows, 0.0)
        self.sizes_error_ = np.full(self.n_clusters, error)
        total = max(float(self.sizes_.sum()), 1.0)
        self.shares_ = self.sizes_ / total
        self.shares_error_ = self.sizes_error_ / total

    def _check_sizes(self, small: NDArray[np.bool_], error: float) -> None:
        """Raise TooNoisy, or warn, if a cluster is below the size bound. Noisy sizes only. S0.9"""
        if small.any():
            remedy = "ask for fewer clusters or spend more"
            if self.on_noise == "raise":
                remedy = 'ask for fewer clusters, spend more, or take on_noise="warn"'
            self._too_noisy(f"{_named(small, error)}: its centre is a guess; {remedy}")

    def _hopeless(self, table: FitData, plan: FitPlan) -> None:
        """Public facts alone: clusters that must be smaller than three errors of their rows."""
        weighing = for_centres(table)
        error = round_error(table, plan.share("rounds"), weighing) / weighing.rows
        each = table.rows / self.n_clusters
        if self.n_clusters > 1 and each < LEAST_ERRORS * error:
            self._too_noisy(
                f"{table.rows:,.0f} rows in {self.n_clusters} clusters are about {each:,.0f} each,"
                f" +-{error:,.0f} by the noise: worse than one centre at the mean."
                + _wanted(table, LEAST_ERRORS * error / each)
            )

    def _judge(self, table: FitData, centres: Array, found: RoundSums, lost: float) -> None:
        """Centres whose noise outweighs their distances say less than one centre at the mean."""
        if self.n_clusters == 1:
            return
        small = found.small(LEAST_ERRORS)
        rows = np.where(small, 0.0, found.rows)
        mean = rows @ centres / max(float(rows.sum()), 1.0)
        between = float(rows @ np.square(centres - mean).sum(axis=1))
        noise = float(rows @ np.square(found.errors())) * centres.shape[1] + lost * table.rows
        if between < LEAST_SIGNAL * noise:
            short = math.sqrt(LEAST_SIGNAL * noise / between) if between > 0 else 4.0
            which = f"{_named(small, found.rows_error)}, and " if small.any() else ""
            self._too_noisy(
                f"{which}the centres are closer together than their noise: worse than one centre at"
                " the mean." + _wanted(table, min(max(short, 1.5), 20.0))
            )

    def _summary(self) -> Summary:
        rows = max(float(self.sizes_.sum()), 1.0)
        spread = max(float(self.inertia_), 0.0) / rows / max(len(self._features.keys), 1)
        return Groups(
            name=type(self).__name__,
            word="cluster",
            keys=tuple(self._features.keys),
            widths=self._features.units[1],
            centres=self.cluster_centers_,
            centres_error=self.centers_error_,
            shares=self.shares_,
            sizes=self.sizes_,
            sizes_error=self.sizes_error_,
            within=math.sqrt(spread),
        )

    # --- public rows ----------------------------------------------------------------------------

    def transform(self, rows: Any) -> Array:
        """Distances of public rows from every centre, in coordinates scaled by the bounds."""
        points = self._coordinates(rows, getattr(self, "_centre", None))
        apart = points[:, None, :] - self._coordinate_centers[None, :, :]
        return np.asarray(np.sqrt(np.square(apart).sum(axis=2)))

    def predict(self, rows: Any) -> NDArray[np.int64]:
        """The nearest centre of each public row."""
        return np.asarray(self.transform(rows).argmin(axis=1))

    def score(self, rows: Any, y: Any = None) -> float:
        """Minus the squared distances of public rows from their nearest centres, added up."""
        return -float(np.square(self.transform(rows).min(axis=1)).sum())


def _named(small: NDArray[np.bool_], error: float) -> str:
    """Which clusters are below the size bound. S0.9"""
    names = ", ".join(str(place) for place in np.flatnonzero(small))
    return f"cluster {names} holds fewer rows than its noise shows (+-{error:,.0f})"


def _wanted(table: FitData, times: float) -> str:
    epsilon = float(table.oracle.promise.epsilon)
    return (
        f" About {times * table.rows:,.0f} rows or epsilon {times * epsilon:.2g} would be needed;"
        " or ask for fewer clusters or columns, or spend more credits"
    )
