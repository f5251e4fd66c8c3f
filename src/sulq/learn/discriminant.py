"""LinearDiscriminant: class means and one covariance from noisy sums, at any noise level.

Rows are drawn to a ball around a noisy centre: where the noise is loud the ball is so small that
only a row's direction counts, which needs no search for a radius and lets far rows do no harm;
without noise it holds every row, and the result is Fisher's discriminant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sulq.kernel.query.sum_query import outer
from sulq.kernel.query.vectors import (
    Vector,
    bins,
    clipped,
    concat,
    norm,
    ones,
    project,
    scaled,
)
from sulq.learn.budget import FitBudget, FitPlan, FitStep
from sulq.learn.covariance import shrink
from sulq.learn.dataset import FitData
from sulq.learn.estimator import ClassLearner, largest
from sulq.learn.features import Array, published
from sulq.learn.summaries import Summary

INNER = 0.05
"""Radius of the ball where only directions count, of the public reach."""
OUTER = 0.8
"""Rows are drawn this close, of the public reach, to find their centre."""
HALVINGS = 24
"""Bins of the distance from the centre: four to a halving of the reach."""


@dataclass(frozen=True)
class ClassMoments:
    """Noisy sums of rows in the ball: how each class differs from the average one, and the total.

    `error` is that of one class's sum; `count_error` that of one class's count.
    """

    counts: Array
    sums: Array
    error: float
    count_error: float
    total: Array
    total_error: float
    rows: float
    gram: Array | None = None
    gram_error: float = 0.0


@dataclass(frozen=True)
class DiscriminantRule:
    """score = (row - mean) . weights + offsets, the row in coordinates of the ball."""

    priors: Array
    mean: Array
    means: Array
    weights: Array
    offsets: Array
    evidence: float
    """How far the classes' means differ, in standard deviations of that under noise alone."""


class LinearDiscriminant(ClassLearner):
    """Fisher's linear discriminant, from class means and one covariance.

    Parameters
    ----------
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    priors_ : ndarray
        The share of each class.
    means_ : ndarray of shape (classes, coordinates)
        The class means of the rows in the ball, in user units.
    coef_, intercept_ : ndarray
        Weights per user unit, within the ball, and constants.
    centre_, radius_ : ndarray and float
        The ball that rows are drawn into, in coordinates.
    evidence_ : float
        The standard deviations by which the classes differ more than noise alone would show.
    classes_, majority_ : ndarray, and int or None
        The classes, and the place of the one that every row gets where noise hides the rest.

    Notes
    -----
    The covariance is drawn to a sphere by its share of noise (Ledoit and Wolf).

    Examples
    --------
    >>> from sulq.learn import LinearDiscriminant
    >>> model = LinearDiscriminant(credits=50).fit(db, ["age", "income"], "smoker")
    >>> model.predict_proba({"age": [40], "income": [30_000]}).shape    # public rows
    (1, 2)
    """

    def __init__(
        self,
        *,
        credits: Any = None,
        method: str = "auto",
        random_state: Any = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    def _plan(self, table: FitData) -> FitPlan:
        if self.method == "paper":
            third = table.share / 3
            return FitPlan(
                "paper", (FitStep("counts", third), FitStep("sums", third), FitStep("gram", third))
            )
        centre = 0.15 if directions(table) >= 1.5 else 0.0
        radius = 0.05 if directions(table) >= 15 else 0.0
        rest = 1.0 - centre - radius
        gram = rest * gram_share(table)
        shares = {"centre": centre, "radius": radius, "sums": rest - gram, "gram": gram}
        steps = [FitStep(name, table.share * share) for name, share in shares.items() if share]
        return FitPlan("discriminant" if gram else "means", tuple(steps))

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        assert table.label is not None  # noqa: S101
        planned = {step.name for step in budget.plan.steps}
        features = table.features
        self.centre_ = features.middle
        if "centre" in planned:
            self.centre_ = find_middle(table, budget)
        reach = features.radius(self.centre_)
        self.radius_ = reach
        if self.method != "paper":
            self.radius_ = INNER * reach
        if "radius" in planned:
            self.radius_ = find_ball(table, budget, self.centre_, reach)
        moments = self._ask(table, budget, planned)
        rule = discriminate(moments, table.width, self.radius_, ball_fill(table, planned))
        self.evidence_ = rule.evidence
        self._rule = rule
        self.majority_ = None
        self.priors_ = rule.priors
        self.means_ = features.to_user(self.centre_ + rule.mean + rule.means)
        offset, width = features.units
        weights, level = rule.weights, rule.offsets - rule.weights @ (self.centre_ + rule.mean)
        if len(self.classes_) == 2:
            weights, level = weights[1:] - weights[:1], level[1:] - level[:1]
        self.coef_ = weights / width
        self.intercept_ = level - self.coef_ @ offset
        if rule.evidence < (1.0 if rule.priors.max() > 1.3 * rule.priors.mean() else -2.0):
            # equal classes lose nothing by a guess; a majority is not given up for noise
            self.give_up(
                rule.priors,
                f"the classes' means differ no more than noise would make them"
                f" ({table.rows:,.0f} rows, {table.unit:.3g} noise on a count)",
            )
        self._doubt_unless(rule.evidence)

    def _ask(self, table: FitData, budget: FitBudget, planned: set[str]) -> ClassMoments:
        assert table.label is not None  # noqa: S101
        vector = table.features.as_vector(self.centre_, self.radius_)
        label = table.label.one_hot()
        if self.method == "paper":
            counted, count_error = budget.sums("counts", table.outer(ones(), label))
            sums, error = budget.sums("sums", table.outer(label, vector))
            found = gathered(table, counted[0], sums, error, count_error, 0.0)
        else:
            pull = contrast(table)
            if pull:
                label = contrasted(label, len(table.label.classes), pull)
            share = 0.9 if table.replace and not pull else 0.3
            weight = float(published([self.radius_ * share])[0])
            both = concat(scaled(ones(), weight), vector)
            sums, error = budget.sums("sums", table.outer(label, both))
            counts = sums[:, 0] / weight
            found = gathered(table, counts, sums[:, 1:], error, error / weight, pull)
        if "gram" not in planned:
            return found
        gram, gram_error = budget.sums("gram", outer(vector, vector, rows=table.labelled))
        return replace(found, gram=gram, gram_error=gram_error)

    def _summary(self) -> Summary:
        return self._coefficients()

    def _scores(self, rows: Any) -> Array:
        moved = self._coordinates(rows, self.centre_) - self.centre_
        length = np.linalg.norm(moved, axis=1, keepdims=True)
        drawn = moved * np.minimum(1.0, self.radius_ / np.maximum(length, 1e-300))
        rule = self._rule
        return np.asarray((drawn - rule.mean) @ rule.weights.T + rule.offsets)

    def _choice(self) -> Vector:
        rule = self._rule
        drawn = self._features.as_vector(self.centre_, self.radius_)
        level = rule.offsets - rule.weights @ rule.mean
        both = concat(scaled(drawn, published(1 / self.radius_)), ones())
        return largest(both, np.column_stack([rule.weights * self.radius_, level]))


# --- public facts -------------------------------------------------------------------------------


def sure_signal(table: FitData) -> float:
    """Rows over the noise of a count, the rows taken one error lower where they are noisy."""
    return max(1.0 - table.rows_error / table.rows, 0.0) * table.signal


def directions(table: FitData) -> float:
    """How far a mean direction of rows in the ball stands out: rows over noise, by sqrt(d)."""
    loud = 2.0 if table.replace else 1.0
    if not table.gaussian:
        loud *= math.sqrt(table.width)  # L1 against L2 of a vector
    return sure_signal(table) / loud / math.sqrt(table.width)


def gram_share(table: FitData) -> float:
    """What the Gram matrix gets: nothing while its noise hides an average eigenvalue."""
    loud = math.sqrt(2.0) if table.replace else 1.0  # V.3
    if not table.gaussian:
        loud *= table.width
    clear = sure_signal(table) / loud / table.width**1.5
    if clear < 0.7:
        return 0.0
    return 0.4 if math.isinf(clear) else 0.4 * clear**2 / (clear**2 + 2.0)


def ball_share(table: FitData) -> float:
    """The share of rows inside the ball: all without noise; the fewer the more coordinates."""
    d = table.width
    few = 4.0 / (4.0 + d)
    return max(few, 1.0 - 1000.0 * math.sqrt(d) / table.signal)


def ball_fill(table: FitData, planned: set[str]) -> float:
    """The mean square length of rows in a ball of radius 1, guessed."""
    return 1.0 - 0.4 * ball_share(table) if "radius" in planned else 1.0


def contrast(table: FitData) -> float:
    """How much of the average is taken off a label's one-hot: its norm falls, its L1 norm grows."""
    if table.label is None or not table.gaussian or math.isinf(table.signal):
        return 0.0
    return 1 / math.sqrt(2 * len(table.label.classes))


# --- questions ----------------------------------------------------------------------------------


def find_middle(table: FitData, budget: FitBudget) -> Array:
    """The mean of rows drawn towards the public middle, shrunk to it as far as it is noise."""
    features = table.features
    middle = features.middle
    vector = features.as_vector(middle, OUTER * features.radius(middle))
    found, error = budget.sums("centre", table.outer(ones(), vector))
    moved = middle + shrink(found[0] / table.rows, error / table.rows)
    return np.array(published(np.clip(moved, features.low, features.high)))


def find_ball(table: FitData, budget: FitBudget, centre: Array, reach: float) -> float:
    """The radius that holds `ball_share` of the rows, from a histogram of halvings."""
    share = ball_share(table)
    edges = reach * 2.0 ** (np.arange(-HALVINGS, 1) / 4.0)
    edges[0], edges[-1] = 0.0, reach * (1 + 2**-10)
    far = norm(table.features.as_vector(centre))
    counts, error = budget.sums("radius", table.outer(ones(), bins(far, published(edges))))
    kept = np.where(counts[0] > max(2 * error, 0.5), counts[0], 0.0)
    if not kept.any():
        return INNER * reach
    below = np.cumsum(kept) / kept.sum()
    place = int(np.searchsorted(below, share - 1e-12))
    return float(edges[min(place + 1, HALVINGS)])


def contrasted(label: Vector, classes: int, pull: float) -> Vector:
    """e_k - pull/K: classes are told apart with less noise, their total with more.

    Its square is 1 - (2 pull - pull^2)/K; the clip, a trace above it, moves no row and proves it.
    """
    matrix = np.eye(classes) - pull / classes
    length = math.sqrt(1 - (2 * pull - pull**2) / classes)
    return clipped(project(label, published(matrix)), published(length * (1 + 2**-14)))


def gathered(
    table: FitData, counts: Array, sums: Array, error: float, count_error: float, pull: float
) -> ClassMoments:
    """Answers about (contrasted) labels as differences from the average class, and totals."""
    many = math.sqrt(len(counts)) / (1 - pull)
    rows = mixed_rows(table, float(counts.sum()) / (1 - pull), many * count_error)
    return ClassMoments(
        counts - counts.mean(),
        sums - sums.mean(axis=0),
        error,
        count_error,
        sums.sum(axis=0) / (1 - pull),
        many * error,
        rows,
    )


def mixed_rows(table: FitData, rows: float, error: float) -> float:
    """The labelled rows: those counted with the sums, and what was known before if it agrees."""
    known, doubt = table.rows, table.rows_error
    if error <= 0 or abs(rows - known) > 3 * math.hypot(error, doubt):
        return max(rows, error / 2, 1e-3)
    weight = doubt**2 / (doubt**2 + error**2)
    return max(weight * rows + (1 - weight) * known, 1.0)


# --- from moments to a rule ---------------------------------------------------------------------


def discriminate(found: ClassMoments, width: int, radius: float, fill: float) -> DiscriminantRule:
    """Class means drawn together by their noise, over a covariance drawn to a sphere by its."""
    classes = len(found.counts)
    counts = settled_counts(found)
    rows = float(counts.sum())
    total = shrink(found.total, found.total_error)
    mean = total / rows
    apart = found.sums / counts[:, None] + np.outer(1 / (classes * counts) - 1 / rows, total)
    noise = (found.error / counts) ** 2
    square = float((apart**2).sum())
    expected = (1 - 1 / classes) * width * float(noise.sum())
    kept = 1.0 - expected / square if square > 0 else 0.0
    freedom = width * max(classes - 1, 1)
    strength = float((apart**2 / noise[:, None]).sum()) if found.error else math.inf
    evidence = (strength - freedom) / math.sqrt(2 * freedom) if square > 0 else -math.inf
    apart = apart * max(0.1, kept)
    blur = float(noise.mean()) * max(0.1, kept)
    between = (apart * counts[:, None]).T @ apart
    if found.gram is None:
        inside = radius**2 * fill - float(mean @ mean) - float(np.trace(between)) / rows
        inverse = np.eye(width) / (max(inside, 0.2 * radius**2) / width + blur)
    else:
        within = found.gram - rows * np.outer(mean, mean) - between
        inverse = inverted(within, found.gram_error, rows, radius, blur)
    weights = apart @ inverse
    offsets = np.log(counts / rows) - 0.5 * (weights * apart).sum(axis=1)
    return DiscriminantRule(counts / rows, mean, apart, weights, offsets, evidence)


def settled_counts(found: ClassMoments) -> Array:
    """Class counts, drawn towards equal ones as far as they differ by noise, never 0.

    A wrong prior costs more than a missed one, so it takes several times the noise to be believed.
    """
    average = found.rows / len(found.counts)
    apart = found.counts
    square = float(apart @ apart)
    noise = min(len(apart), 4) * (len(apart) - 1) * found.count_error**2
    kept = max(0.0, 1.0 - noise / square) if square > 0 else 0.0
    least = max(min(0.1 * average, found.count_error), 1e-3)
    return np.asarray(np.maximum(average + kept * apart, least))


def inverted(within: Array, error: float, rows: float, radius: float, blur: float) -> Array:
    """The inverse covariance, drawn to a sphere by its share of noise (Ledoit and Wolf)."""
    d = len(within)
    level = max(float(np.trace(within)) / d, 0.02 * rows * radius**2 / d if error else 0.0)
    apart = within - level * np.eye(d)
    noise = error**2 * d * (d + 1) / 2  # error on the diagonal, error/sqrt 2 off it
    square = float((apart**2).sum())
    drawn = min(1.0, noise / square) if square > 0 else 0.0
    values, axes = np.linalg.eigh(level * np.eye(d) + (1 - drawn) * apart)
    ridge = (1 - drawn) * error * math.sqrt(d)
    values = (np.maximum(values, 0.0) + ridge) / rows + blur
    values = np.maximum(values, 1e-10 * max(float(values.max()), 1e-10))
    return np.asarray((axes / values) @ axes.T)
