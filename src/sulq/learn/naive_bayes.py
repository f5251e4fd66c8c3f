"""NaiveBayes: class-by-cell tables, or class means and variances, in one joint question."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from sulq.errors import InvalidQuery
from sulq.kernel.query.vectors import Vector, concat, ones, scaled, squares
from sulq.learn.binning import (
    BINS_SHARE,
    Attribute,
    Places,
    attributes_of,
    bins_allowed,
    bins_worth_finding,
    cell_noise,
    cells_of,
    find_cells,
)
from sulq.learn.budget import FitBudget, FitPlan, FitStep
from sulq.learn.covariance import find_centre, find_radius, shrink
from sulq.learn.dataset import FitData
from sulq.learn.estimator import ClassLearner
from sulq.learn.features import Array, Features
from sulq.learn.parameters import NONE, Constraints, Interval, OneOf, Whole
from sulq.learn.summaries import ClassColumns, Summary

CENTRE_SHARE = 0.1
CLIP_SHARE = 0.05


class NaiveBayes(ClassLearner):
    """Naive Bayes: classes by columns that are taken as independent of each other.

    Parameters
    ----------
    numbers : {"auto", "gaussian", "bins"}
        How Numbers are learned: by mean and variance in each class, within a ball that is found
        first, or by a table of classes by bins. "auto" takes bins where there are Categories or
        Flags and enough rows to fill the tables.
    alpha : float
        Added to each count of a table.
    bins : int, optional
        How many bins a Number has. Without it, as many as the noise allows.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    class_count_, class_count_error_ : ndarray and float
        Noisy rows of each class, and their standard error.
    class_log_prior_ : ndarray
        Log shares of the classes.
    theta_, var_, theta_error_ : ndarray of shape (classes, Numbers)
        Class means and variances in user units, and the standard errors of the means.
    feature_log_prob_, attributes_ : list of ndarray, and tuple
        Log shares of the cells in each class, one table for each of the columns with cells.
    classes_, majority_ : ndarray, and int or None
        The classes, and the place of the one that every row gets where noise hides the rest.

    Notes
    -----
    All tables and moments are asked in one joint question. Categories and Flags are always tables.

    Examples
    --------
    >>> from sulq.learn import NaiveBayes
    >>> NaiveBayes(credits=50).fit(db, ["age", "blood"], "smoker").class_count_.shape
    (2,)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "numbers": [OneOf("auto", "gaussian", "bins")],
        "alpha": [Interval(0, math.inf, "[)")],
        "bins": [Whole(2, 1_000), NONE],
    }

    def __init__(
        self,
        *,
        numbers: str = "auto",
        alpha: float = 1.0,
        bins: int | None = None,
        credits: Any = None,
        method: str = "auto",
        random_state: int | None = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.numbers = numbers
        self.alpha = alpha
        self.bins = bins
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    # --- the plan -------------------------------------------------------------------------------

    def _plan(self, table: FitData) -> FitPlan:
        way = self._way(table)
        steps: list[FitStep] = []
        if self.method != "paper":
            if way == "bins" and bins_worth_finding(table):
                steps.append(FitStep("bins", BINS_SHARE * table.share))
            if way == "gaussian" and self._numeric(table) is not None:
                steps.append(FitStep("centre", CENTRE_SHARE * table.share))
                steps.append(FitStep("clip", CLIP_SHARE * table.share))
        rest = table.share - sum(step.share for step in steps)
        name = f"paper, {way}" if self.method == "paper" else way
        return FitPlan(name, (*steps, FitStep("classes", rest)))

    def _way(self, table: FitData) -> str:
        if self.numbers != "auto":
            if self.numbers == "bins" and table.features.vector is not None:
                raise InvalidQuery("a released vector has no bins; take numbers='gaussian'")
            return self.numbers
        if table.features.vector is not None or not self._tables(table):
            return "gaussian"
        assert table.label is not None  # noqa: S101
        room = table.rows / len(table.label.classes) / 4
        return "bins" if room > 2 * cell_noise(table, table.share) else "gaussian"

    def _numeric(self, table: FitData) -> FitData | None:
        """The table of its Numbers alone."""
        features = table.features
        if features.vector is not None:
            return table
        if not features.numeric:
            return None
        return replace(table, features=Features(features.schema, features.numeric))

    def _tables(self, table: FitData) -> tuple[Attribute, ...]:
        """The Categories and Flags."""
        if table.features.vector is not None:
            return ()
        return tuple(a for a in attributes_of(table.features, 2) if not a.ordinal)

    # --- learning -------------------------------------------------------------------------------

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        told = self.ask(table, budget)
        self.majority_ = None
        if told <= 0:
            held = np.maximum(self.class_count_, 1e-9)
            self.give_up(held, "no column tells the classes apart above the noise")

    def planned(self, table: FitData) -> FitPlan:
        """What `ask` will need."""
        return self._plan(table)

    def ask(self, table: FitData, budget: FitBudget) -> float:
        """Learn by the budget's plan; how much of what tells classes apart is not noise."""
        assert table.label is not None  # noqa: S101
        self._gaussian: Features | None = None
        if self._way(table) == "bins":
            most = bins_allowed(table) if self.bins is None else self.bins
            self.attributes_ = find_cells(table, budget, most)
            numbers = None
        else:
            self.attributes_ = self._tables(table)
            numbers = self._numeric(table)
        parts: list[Vector] = [a.vector() for a in self.attributes_]
        weight, lift, width = 1.0, 1.0, 0
        if numbers is not None:
            self._find_ball(numbers, budget)
            width = numbers.width
            vector = numbers.features.as_vector(self._centre, self._radius)
            # powers of 2, so that nothing is rounded. Squares as long as the vector; half as long
            # where there is noise, which then falls on the means less
            whole = 2.0 ** math.floor(math.log2(self._reach))
            weight = whole / 2
            lift = 1 / (2 * whole) / (2 if table.unit else 1)
            parts = [scaled(ones(), weight), vector, scaled(squares(vector), lift), *parts]
        found, error = budget.sums("classes", table.outer(table.label.one_hot(), concat(*parts)))
        return self._read(found, error, (weight, lift), width)

    def _find_ball(self, numbers: FitData, budget: FitBudget) -> None:
        """The centre and the radius of the Numbers: what one row may add is bounded by them."""
        self._gaussian = numbers.features
        if self.method == "paper":
            self._centre = numbers.features.middle
            self._radius: float | None = None
        else:
            self._centre = find_centre(numbers, budget).mean
            self._radius = find_radius(numbers, budget, self._centre)
        reach = numbers.features.radius(self._centre)
        self._reach = reach if self._radius is None else min(self._radius, reach)

    def _read(self, found: Array, error: float, scales: tuple[float, float], width: int) -> float:
        """Counts, then tables and moments, each drawn to what all classes share."""
        start = 1 + 2 * width if width else 0
        counts, count_error = self._class_counts(found, error, scales[0], start)
        self.class_count_ = counts
        self.class_count_error_ = count_error
        held = np.maximum(counts, max(count_error, 1e-9))
        self.class_log_prior_ = np.log(held / held.sum())
        told = 0.0
        self.feature_log_prob_: list[Array] = []
        for attribute in self.attributes_:
            part = found[:, start : start + attribute.size]
            start += attribute.size + 1
            logs, kept = class_shares(part, error, self.alpha)
            told = max(told, kept)
            self.feature_log_prob_.append(logs)
        if width:
            sums, squared = found[:, 1 : 1 + width], found[:, 1 + width : 1 + 2 * width]
            told = max(
                told, self._moments(sums, squared / scales[1], held, error, error / scales[1])
            )
        return told

    def _class_counts(
        self, found: Array, error: float, weight: float, start: int
    ) -> tuple[Array, float]:
        """Rows per class, by precision: from their own column, and from each table's margin."""
        estimates, precisions = [], []
        if start:
            estimates.append(found[:, 0] / weight)
            precisions.append((weight / error) ** 2 if error else 1.0)
        for attribute in self.attributes_:
            size = attribute.size + 1
            estimates.append(found[:, start : start + size].sum(axis=1))
            precisions.append(1 / (size * error**2) if error else 1.0)
            start += size
        total = sum(precisions)
        counts = sum(e * p for e, p in zip(estimates, precisions, strict=True)) / total
        return np.asarray(counts), 1 / math.sqrt(total) if error else 0.0

    def _moments(
        self, sums: Array, squared: Array, held: Array, error: float, square_error: float
    ) -> float:
        """Class means and variances; by how much the means differ more than noise would."""
        assert self._gaussian is not None  # noqa: S101
        rows = float(held.sum())
        means = sums / held[:, None]
        pooled = sums.sum(axis=0) / rows
        away = means - pooled
        told = beyond_noise((away * held[:, None]) ** 2, error**2)
        for place in range(len(held)):
            means[place] = pooled + shrink(away[place], error / held[place])
        within = (squared - 2 * means * sums + held[:, None] * means**2) / held[:, None]
        noise = square_error / held
        shared = (within * held[:, None]).sum(axis=0) / rows
        shared_noise = square_error * math.sqrt(len(held)) / rows
        middle = max(float(np.mean(shared)), 2 * shared_noise / math.sqrt(len(shared)), 1e-12)
        shared = middle + shrink(shared - middle, shared_noise)
        least = middle / 5 if error else 0.0
        shared = np.maximum(shared, least)
        variances = np.stack(
            [shared + shrink(within[k] - shared, float(noise[k])) for k in range(len(held))]
        )
        variances = np.maximum(variances, np.maximum(shared / 4 if error else 0.0, 1e-300))
        self._means, self._variances = means, variances
        width = self._gaussian.units[1]
        self.theta_ = self._gaussian.to_user(self._centre + means)
        self.var_ = variances * width**2
        self.theta_error_ = error / held[:, None] * width
        return told

    def _summary(self) -> Summary:
        prior = np.exp(self.class_log_prior_)
        bits = {
            attribute.name: information(prior, np.exp(table))
            for attribute, table in zip(self.attributes_, self.feature_log_prob_, strict=True)
        }
        means: dict[str, Array] = {}
        if self._gaussian is not None:
            spread = np.sqrt(np.broadcast_to(self.var_, np.shape(self.theta_)))
            for place, key in enumerate(self._gaussian.keys):
                means[key] = self.theta_[:, place]
                bits[key] = information(prior, _densities(means[key], spread[:, place]))
        shares = vars(self._class_shares(self.class_log_prior_))
        return ClassColumns(**shares, bits=bits, means=means)

    def draw(self, classes: Places, random: np.random.Generator) -> Array:
        """Coordinates of the Numbers of made-up rows of these classes."""
        if self._gaussian is None:
            return np.zeros((len(classes), 0))
        spread = np.sqrt(self._variances[classes])
        points = self._centre + self._means[classes] + spread * random.normal(size=spread.shape)
        return np.clip(points, self._gaussian.low, self._gaussian.high)

    # --- public rows ----------------------------------------------------------------------------

    def _scores(self, rows: Any) -> Array:
        count = len(self._coordinates(rows))
        scores = np.tile(self.class_log_prior_, (count, 1))
        if self.attributes_:
            names = tuple(a.name for a in self.attributes_)
            columns = Features(self._features.schema, names)
            cells = cells_of(self.attributes_, columns, self._named(rows))
            for place, logs in enumerate(self.feature_log_prob_):
                padded = np.hstack([logs, np.zeros((len(logs), 1))])  # missing: says nothing
                scores += padded[:, cells[:, place]].T
        if self._gaussian is not None:
            offset = self._gaussian.encode(self._named(rows), self._centre) - self._centre
            if self._radius is not None:
                length = np.linalg.norm(offset, axis=1, keepdims=True)
                offset = offset * np.minimum(1.0, self._radius / np.maximum(length, 1e-300))
            for k, (mean, variance) in enumerate(zip(self._means, self._variances, strict=True)):
                distance = (offset - mean) ** 2 / variance + np.log(2 * math.pi * variance)
                scores[:, k] -= distance.sum(axis=1) / 2
        return scores

    def _named(self, rows: Any) -> Any:
        """Rows by column name, so that parts of them can be read."""
        if hasattr(rows, "columns") or isinstance(rows, dict):
            return rows
        table = np.asarray(rows, dtype=object)
        if table.ndim == 1:
            table = table[:, None]
        return {name: table[:, place] for place, name in enumerate(self._features.names)}


def class_shares(counts: Array, error: float, alpha: float) -> tuple[Array, float]:
    """Log shares of the cells in each class, and the part of them that is not noise.

    (N_kc + alpha) / (N_k + alpha C), drawn to the shares of all classes together by the part of
    their distance that noise explains.
    """
    held = np.maximum(counts, 0.0) + alpha
    totals = np.maximum(held.sum(axis=1, keepdims=True), 1e-300)
    shares = held / totals
    if not error:
        return np.log(np.maximum(shares, 1e-300)), 1.0  # all classes at -inf would have no order
    size = counts.shape[1]
    rows = np.maximum(counts.sum(axis=1, keepdims=True), error * math.sqrt(size))
    together = np.maximum(counts.sum(axis=0), 0.0) + alpha + error
    together = together / together.sum()
    away = counts / rows - together
    square = (away * rows) ** 2
    clear = beyond_noise(square, error**2) > 0
    kept = max(0.0, 1.0 - square.size * error**2 / float(square.sum())) if clear else 0.0
    least = np.minimum(0.5 * error / rows, 0.5 * together)
    drawn = np.maximum(together + kept * (shares - together), least)
    return np.log(drawn / drawn.sum(axis=1, keepdims=True)), kept


def beyond_noise(squares: Array, variance: float) -> float:
    """By how much squared deviations exceed what noise alone would show 19 times in 20."""
    count = squares.size
    return float(squares.sum()) - variance * (count + 1.65 * math.sqrt(2 * count))


def information(prior: Array, table: Array) -> float:
    """Return the mutual information in bits of a class and a cell; `table` is classes x cells."""
    held = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
    overall = prior @ held
    ratio = np.where(held > 0, held, 1.0) / np.where(overall > 0, overall, 1.0)
    return float(max(0.0, (prior[:, None] * held * np.log2(np.where(held > 0, ratio, 1.0))).sum()))


def _densities(means: Array, spread: Array) -> Array:
    """Return the normal densities of each class on one fine grid."""
    least = np.maximum(spread, 1e-12)
    grid = np.linspace((means - 5 * least).min(), (means + 5 * least).max(), 400)
    return np.asarray(
        np.exp(-(((grid - means[:, None]) / least[:, None]) ** 2) / 2) / least[:, None]
    )
