"""LinearRegression: least squares from noisy moments, refined on what they leave unexplained.

Three things decide how much noise a sum of products carries: how long the rows are, how large the
target is, and how many credits it gets. So: find the means of features and target, scale what is
spread differently, clip around the means, and ask three moments apart: the Gram matrix, the
cross-moment with the target (d numbers, it matters most), and, at the first solution, the
cross-moment with the residual, which is smaller than the target and therefore less noisy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from sulq.answers.oracle import Oracle
from sulq.errors import InvalidQuery
from sulq.kernel.query.expressions import Expression, Operation, col
from sulq.kernel.query.sum_query import outer
from sulq.kernel.query.vectors import Vector, columns, concat, crossed, ones, project, scaled
from sulq.learn.budget import FitBudget, FitPlan, FitStep
from sulq.learn.covariance import Gram
from sulq.learn.dataset import FitData, LabelKind
from sulq.learn.estimator import Learner
from sulq.learn.features import Array, published
from sulq.learn.linear.location import (
    PRIOR_SCALE,
    SCALE_COST,
    CentredData,
    Means,
    Scales,
    estimate_clips,
    estimate_scales,
    find_means,
    find_means_again,
    scales_worth,
    weight_vector,
)
from sulq.learn.parameters import NONE, Constraints, InstanceOf, Interval
from sulq.learn.summaries import NumberCoefficients, NumberTest, Summary

FIRST_RIDGE = 0.75
"""Of the noise's spectral edge, for the first solution."""
SMALLEST = 1e-9
"""Eigenvalues below this part of the largest are rounding: collinear or constant columns."""


def shrunk_gram(gram: Gram) -> Array:
    """A noisy Gram matrix drawn towards a multiple of the identity (Ledoit and Wolf).

    The share kept is 1 - |noise|^2 / |G - m I|^2; the noise is known, so nothing is guessed.
    """
    width = len(gram.value)
    mean = max(float(np.trace(gram.value)) / width, gram.error)
    apart = gram.value - mean * np.eye(width)
    noise = gram.error**2 * (width + width * (width - 1) / 2)
    size = float((apart**2).sum())
    kept = max(0.0, 1.0 - noise / size) if size > 0 else 0.0
    return np.asarray(mean * np.eye(width) + kept * apart)


def positive(matrix: Array) -> Array:
    """The nearest matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


@dataclass
class Slopes:
    """Coefficients, their noise covariance, and the step that improves them."""

    value: Array
    noise: Array
    gram: Array
    step: Array
    penalty: Array

    @classmethod
    def first(cls, gram: Gram, cross: Array, error: float, penalty: Array) -> Slopes:
        """Ridge on the shrunk Gram matrix, as strong as the noise's spectral edge."""
        width = len(cross)
        shrunk = positive(shrunk_gram(gram))
        edge = gram.error * math.sqrt(width)
        inverse = _inverse(shrunk, FIRST_RIDGE * edge, penalty)
        value = inverse @ cross
        loud = error**2 + gram.error**2 * float(value @ value) / 2
        step = _inverse(positive(gram.value), gram.error * math.sqrt(width + 1), penalty)
        return cls(value, loud * inverse @ inverse, shrunk, step, penalty)

    def refined(self, slope: Array, error: float) -> Slopes:
        """One Newton step along the noisy sum of row times residual."""
        value = self.value + self.step @ (slope - self.penalty * self.value)
        left = np.eye(len(value)) - self.step @ (self.gram + np.diag(self.penalty))
        noise = left @ self.noise @ left.T + error**2 * self.step @ self.step
        return Slopes(value, noise, self.gram, self.step, self.penalty)

    def explained(self, rows: float) -> float:
        """The variance that the prediction explains, less what its noise spoils."""
        signal = float(self.value @ self.gram @ self.value)
        return (signal - 2 * float(np.trace(self.gram @ self.noise))) / rows


def _inverse(gram: Array, ridge: float, penalty: Array) -> Array:
    """The inverse with a ridge; 0 in directions no row moves along, as least squares has it."""
    whole = gram + ridge * np.eye(len(gram)) + np.diag(penalty)
    return np.asarray(np.linalg.pinv(whole, rcond=SMALLEST, hermitian=True))


def above_noise(gram: Gram, cross: Array, error: float) -> float:
    """By how many deviations the cross-moment passes its noise, in the metric of the rows."""
    if error <= 0:
        return math.inf
    width = len(cross)
    inverse = _inverse(
        positive(shrunk_gram(gram)), gram.error * math.sqrt(width) / 2, np.zeros(width)
    )
    expected = float(np.trace(inverse))
    deviation = math.sqrt(2 * float((inverse**2).sum()))
    return (float(cross @ inverse @ cross) / error**2 - expected) / deviation


# Slopes from noisy moments: shrunk, made positive, refined, with their noise carried along.


SIGNAL_NEEDED = 0.5
"""Deviations by which the cross-moment must pass its noise for slopes to be worth learning."""
REFINEMENTS = 2
LEAST_SIGNAL = 4.0
"""Rows over the noise of a count below which not even a mean can be told."""


def slopes_hopeless(table: FitData) -> bool:
    """Whether public facts alone say that slopes would drown: then all goes to the mean.

    A cross-moment of d coordinates is sqrt(d) counts loud, over twice that where a row is replaced;
    with Laplace noise, charged by L1 norms and without the square root of a share, d counts.
    """
    loud = 6 * math.sqrt(table.width) if table.gaussian else 13.0 * table.width
    return table.signal < loud * (2.5 if table.replace else 1)


class LinearRegression(RegressorMixin, Learner):  # type: ignore[misc]
    """Least squares for a Number column.

    Parameters
    ----------
    alpha : float
        A ridge on the coefficients in user units, as in scikit-learn's Ridge.
    weights : Expression, optional
        An expression in [0, 1] by which every row counts (locally weighted regression), rounded to
        1/256. A missing weight counts as 0.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    coef_, intercept_ : ndarray and float
        Coefficients per user unit, and the constant.
    coef_error_ : ndarray
        The standard error that noise gives a coefficient.
    mean_ : ndarray
        The mean of the features, which stands for a missing value.
    r2_ : float
        An estimate of R^2 from the moments themselves.

    Notes
    -----
    Rows without the label are left out. Predictions stay within the public range of the label.
    Where the moments are below their noise, the mean is predicted, `coef_` is 0 and NoisyResult is
    warned; where even the mean is below its noise, TooNoisy is raised.

    Examples
    --------
    >>> from sulq.learn import LinearRegression
    >>> LinearRegression(credits=50).fit(db, ["age"], "income").predict({"age": [40, 70]}).shape
    (2,)
    """

    _label: LabelKind = "number"
    _parameter_constraints: ClassVar[Constraints] = {
        "alpha": [Interval(0, 1e300, "[)")],
        "weights": [InstanceOf(Expression, "an expression in [0, 1]"), NONE],
    }

    def __init__(
        self,
        alpha: float = 0.0,
        weights: Expression | None = None,
        *,
        credits: Any = None,
        method: str = "auto",
        random_state: Any = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.alpha = alpha
        self.weights = weights
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    def _table(
        self,
        oracle: Oracle,
        features: Sequence[str] | Vector,
        label: object,
        where: Expression | None,
    ) -> FitData:
        table = super()._table(oracle, features, label, where)
        if self.weights is not None:  # a slip in it costs nothing
            oracle.quote(outer(weight_vector(self.weights), ones()), credits=1)
        known = col(_name(table)).is_not_null()
        return replace(table, where=known if where is None else where & known)

    def _plan(self, table: FitData) -> FitPlan:
        table, share = self._settled(table), table.share
        if self.method == "paper":
            rounds = len(self._pairs(len(_parts(table)) + 2))  # a constant, columns, the label
            step = FitStep("moments", share, rounds)
            return FitPlan("least squares, one question a pair of columns", (step,))
        if slopes_hopeless(table):
            return FitPlan("mean", (FitStep("mean", share),))
        steps = [FitStep("centre", 0.1 * share), FitStep("means", 0.05 * share)]
        steps.append(FitStep("clip", 0.06 * share))
        if scales_worth(table):
            steps.append(FitStep("spread", SCALE_COST * share))
        rest = share - sum(step.share for step in steps)
        steps += [FitStep("gram", 0.3 * rest), FitStep("cross", 0.25 * rest)]
        steps.append(FitStep("refine", 0.45 * rest, rounds=REFINEMENTS))
        return FitPlan("least squares, refined", tuple(steps))

    def _settled(self, table: FitData) -> FitData:
        """With all rows where that is public and no missing label shows through the noise."""
        size = table.oracle.size
        labelled = isinstance(table.where, Operation) and table.where.name == "not_null"
        if size is None or table.oracle.schema.unit != "row" or not labelled:
            return table
        if size - table.rows > 3 * table.rows_error:
            return table
        return replace(table, rows=float(size), rows_error=0.0)

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        table = self._settled(table)
        if table.signal < LEAST_SIGNAL:
            self._nothing(table, table.rows)
        if self.method == "paper":
            self._learn_paper(table, budget)
            return
        weight = weight_vector(self.weights)
        if budget.plan.method == "mean":
            self._only_mean(table, budget, weight, None)
            return
        means = find_means(table, budget, weight, self.weights is not None)
        scales = None
        if any(step.name == "spread" for step in budget.plan.steps):
            found = estimate_scales(table, budget, weight, means)
            means = find_means_again(table, budget, weight, means, found)
            scales = found.features
        view = estimate_clips(table, budget, weight, means, scales)
        if scales is None:  # the radius stands for the scales
            alike = np.full(table.width, view.radius / math.sqrt(table.width))
            means = find_means_again(table, budget, weight, means, Scales(alike, view.clip))
            view = replace(view, means=means)
        rows = view.rows if self.weights is None else crossed(weight, view.rows)
        gram = Gram(*budget.sums("gram", table.outer(rows, view.rows)))
        gram = Gram((gram.value + gram.value.T) / 2, gram.error)
        cross, error, view = view.cross_moment(budget)
        # clipped rows weigh less in the Gram matrix than in the drift
        apart = means.rows * (1 - 0.4 * (1 - view.whole)) * np.outer(view.drift, view.drift)
        gram = Gram(gram.value - apart, gram.error)
        if above_noise(gram, cross, error) < SIGNAL_NEEDED:
            self._only_mean(table, budget, weight, view.means)
            return
        slopes = Slopes.first(gram, cross, error, self._penalty(table, view))
        clip = view.clip * _residual_clip(view.inside)
        for _ in range(REFINEMENTS):
            slope, error, view = view.residual_moment(budget, slopes.value, clip)
            slopes = slopes.refined(slope, error)
        self._set(table, view, slopes)

    def _penalty(self, table: FitData, view: CentredData) -> Array:
        """alpha per coordinate: a user's coefficient is a slope over the width of its column."""
        _, width = table.features.units
        spread = width if view.scales is None else width * view.scales
        return np.asarray(float(self.alpha) / spread**2)

    def _set(self, table: FitData, view: CentredData, slopes: Slopes) -> None:
        """From slopes in scales to user units."""
        scales = np.ones(table.width) if view.scales is None else view.scales
        errors = np.sqrt(np.maximum(np.diag(slopes.noise), 0.0)) / scales
        level = view.level(slopes.value)
        self._say(table, view.means.features, level, slopes.value / scales, errors)
        self.r2_ = None
        if view.variance > 0:
            self.r2_ = min(max(slopes.explained(view.means.rows) / view.variance, 0.0), 1.0)

    def _nothing(self, table: FitData, rows: float) -> None:
        self._too_noisy(
            f"about {rows:,.0f} rows against a noise of {table.unit:,.1f} rows a count: not even"
            f" the mean of {_name(table)} can be told; about {10 * table.unit:,.0f} rows or"
            f" {10 * table.unit / rows:,.1f} times the epsilon would be needed"
        )

    def _only_mean(
        self, table: FitData, budget: FitBudget, weight: Vector, known: Means | None
    ) -> None:
        """All that is left is spent on the mean: an honest constant beats noisy slopes."""
        step = "mean" if known is None else "refine"
        both = concat(columns([_name(table)], [0.5]), scaled(ones(), 0.5))
        found, error = budget.sums(step, table.outer(weight, both), budget.left)
        counts, errors = [2 * float(found[0, 1])], [2 * error]
        if self.weights is None:
            counts, errors = [*counts, table.rows], [*errors, table.rows_error]
        precision = np.maximum(errors, 1e-9) ** -2.0
        rows = max(float(precision @ counts / precision.sum()), 1.0)
        if rows < LEAST_SIGNAL * table.unit <= table.rows:
            self._nothing(table, rows)
        offsets = [0.0, float(found[0, 0]) / rows]
        errors = [PRIOR_SCALE, error / rows]
        if known is not None:
            told = PRIOR_SCALE**2 / (PRIOR_SCALE**2 + known.target_error**2)
            offsets.append((known.target - 0.5) / told)
            errors.append(known.target_error)
        precision = np.maximum(errors, 1e-12) ** -2.0
        mean = float(np.clip(0.5 + precision @ offsets / precision.sum(), 0, 1))
        none = np.zeros(table.width)
        centre = table.features.middle if known is None else known.features
        self._say(table, centre, mean, none, none)
        self.r2_ = 0.0
        self._doubt(
            f"the slopes are below their noise (about {table.rows:,.0f} rows, noise"
            f" {table.unit:,.1f} rows a count): predicting the mean; more rows, a larger epsilon or"
            " fewer features would help"
        )

    def _say(
        self, table: FitData, centre: Array, mean: float, slopes: Array, errors: Array
    ) -> None:
        assert table.label is not None and table.label.number is not None  # noqa: S101
        low, high = (float(end) for end in table.label.number.range)
        _, width = table.features.units
        self._centre = centre
        self.mean_ = table.features.to_user(centre)
        self._slopes = slopes
        self._mean = mean
        self._range = (low, high)
        self.coef_ = slopes * (high - low) / width
        self.coef_error_ = errors * (high - low) / width
        self.intercept_ = (
            low + (high - low) * mean - float(self.coef_ @ table.features.to_user(centre))
        )

    # --- as the papers do it --------------------------------------------------------------------

    def _pairs(self, count: int) -> list[tuple[int, int]]:
        """Which moments are asked: not the label's own square, nor the number of rows again."""
        known = {(count - 1, count - 1)} | ({(0, 0)} if self.weights is None else set())
        return [
            pair for pair in combinations_with_replacement(range(count), 2) if pair not in known
        ]

    def _learn_paper(self, table: FitData, budget: FitBudget) -> None:
        """Every pair of columns is one question, on public bounds alone, without clip or shrink."""
        parts = [*_parts(table), columns([_name(table)], [0])]
        weight = weight_vector(self.weights)
        vectors = [ones(), *parts]
        blocks: dict[tuple[int, int], Array] = {(0, 0): np.array([[table.rows]])}
        errors = []
        for i, j in self._pairs(len(vectors)):
            left = vectors[i] if self.weights is None else crossed(weight, vectors[i])
            found, error = budget.sums("moments", table.outer(left, vectors[j]))
            blocks[i, j], blocks[j, i] = found, found.T
            errors.append(error)
        last = len(parts)
        rows = max(float(blocks[0, 0][0, 0]), 1.0)
        size = range(1, last)
        mean = np.hstack([blocks[0, j][0] for j in size]) / rows
        target = float(blocks[0, last][0, 0]) / rows
        gram = np.block([[blocks[i, j] for j in size] for i in size]) / rows
        cross = np.vstack([blocks[i, last] for i in size])[:, 0] / rows
        gram = (gram + gram.T) / 2 - np.outer(mean, mean)
        _, width = table.features.units
        gram += np.diag(float(self.alpha) / rows / width**2)
        least = float(np.linalg.eigvalsh(gram)[0])
        noise = max(errors) / rows
        none = np.zeros(table.width)
        self.r2_ = None
        if least <= noise and noise > 0:
            self._say(table, mean, min(max(target, 0.0), 1.0), none, none)
            self._too_noisy(
                f"the least eigenvalue of the moments is {least:.3g}, their noise {noise:.3g}:"
                f" about {math.ceil(noise / max(abs(least), 1e-9)) + 1} times the rows or epsilon"
                ' would be needed; method="auto" needs less'
            )
            return
        inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
        slopes = inverse @ (cross - mean * target)
        spread = noise * math.sqrt(1 + float(slopes @ slopes))
        self._say(table, mean, target, slopes, spread * np.sqrt(np.diag(inverse @ inverse)))

    # --- public rows ----------------------------------------------------------------------------

    def _summary(self) -> Summary:
        return NumberCoefficients(
            name=type(self).__name__,
            facts={"intercept": float(self.intercept_)},
            keys=tuple(self._features.keys),
            widths=self._features.units[1],
            matrix=np.atleast_2d(self.coef_),
            errors=getattr(self, "coef_error_", None),
        )

    def _tested(self, public: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the predictions for public test rows, to be drawn against the true numbers."""
        if not public:
            return ()
        if len(public) != 2 or any(part is None for part in public):
            raise InvalidQuery("predicted against true needs both: plot(X_test, y_test)")
        found, true = (np.asarray(x, np.float64) for x in (self.predict(public[0]), public[1]))
        if len(found) != len(true):
            raise InvalidQuery(
                f"got {len(found)} rows and {len(true)} labels; want as many of both"
            )
        return (NumberTest(true, found),)

    def predict(self, rows: Any) -> Array:
        """Predictions for public rows, within the label's public range."""
        moved = self._coordinates(rows, getattr(self, "_centre", None)) - self._centre
        low, high = self._range
        return np.asarray(low + (high - low) * np.clip(self._mean + moved @ self._slopes, 0, 1))


def _residual_clip(inside: float) -> float:
    """In clips of the target: below 1 where noise is loud, without bound as it vanishes."""
    return max(1 - 0.4 * (1 - inside), 0.01 / max(1 - inside, 1e-6))


def _name(table: FitData) -> str:
    assert table.label is not None  # noqa: S101
    return str(table.label.source)


def _parts(table: FitData) -> list[Vector]:
    """The features one by one."""
    features = table.features
    if features.vector is None:
        return [columns([name]) for name in features.names]
    unit = np.eye(features.width)
    return [project(features.vector, [published(row)]) for row in unit]
