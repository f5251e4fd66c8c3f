"""GaussianMixture: expectation and maximisation over noisy sums; one question a round.

Responsibilities are a softmax of functions linear in (1, x, x^2), so a round is one product
softmax (x) (1, x, x^2): shares, means and variances of all components together (V.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sulq.errors import InvalidQuery
from sulq.kernel.query.vectors import concat, ones, scaled, softmax, squares
from sulq.learn.budget import FitBudget, FitPlan, FitStep
from sulq.learn.cluster.kmeans import KMeans
from sulq.learn.covariance import shrink
from sulq.learn.dataset import FitData
from sulq.learn.estimator import Learner, learned_within
from sulq.learn.features import Array, published
from sulq.learn.parameters import NONE, Constraints, OneOf, Whole
from sulq.learn.summaries import Groups, Summary

START_SHARE = 0.5
MOST_ROUNDS = 200
LEAST_VARIANCE = 1e-6
"""In squared bounds: far below what a grid of 2^-18 can tell."""


@dataclass(frozen=True)
class _Components:
    """Shares, means and variances in coordinates."""

    weights: Array
    means: Array
    variances: Array

    def scores(self, centre: Array) -> Array:
        """Rows of weights on (1, y, y^2), y = x - centre: log share + log density + constant."""
        moved = self.means - centre
        constant = (
            np.log(np.maximum(self.weights, 1e-12))
            - 0.5 * np.log(self.variances).sum(axis=1)
            - 0.5 * (moved**2 / self.variances).sum(axis=1)
        )
        linear, square = moved / self.variances, -0.5 / self.variances
        return np.column_stack([constant, linear, square])

    def log_joint(self, rows: Array) -> Array:
        """log share + log density of each component, on public rows in coordinates."""
        y = np.column_stack([np.ones(len(rows)), rows, rows**2])
        turns = 0.5 * rows.shape[1] * math.log(2 * math.pi)
        found: Array = y @ self.scores(np.zeros(rows.shape[1])).T - turns
        return found


class GaussianMixture(Learner):
    """A mixture of Gaussians whose axes are the coordinates.

    Parameters
    ----------
    n_components : int
        How many Gaussians.
    covariance_type : {"diag", "spherical"}
        One variance for each coordinate, or one for all of a component.
    means_init : array of shape (n_components, coordinates), optional
        Means in user units to start from, in place of KMeans on half of the credits.
    rounds : int, optional
        The number of rounds. Without it, as many as the noise allows.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    weights_, weights_error_ : ndarray
        Shares of the rows, and their standard errors.
    means_, means_error_ : ndarray of shape (n_components, coordinates)
        Means in user units, and their standard errors.
    covariances_ : ndarray of shape (n_components, coordinates)
        Variances in squared user units.
    n_iter_ : int
        The number of rounds.
    converged_ : bool
        Whether the last round moved nothing.

    Notes
    -----
    Expectation and maximisation; one question a round asks for all sums (V.3).

    Examples
    --------
    >>> from sulq.learn import GaussianMixture
    >>> model = GaussianMixture(2, rounds=2, credits=50, random_state=0, on_noise="warn")
    >>> model.fit(db, ["age", "income"]).means_.shape
    (2, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": [Whole()],
        "covariance_type": [OneOf("diag", "spherical")],
        "rounds": [Whole(), NONE],
        "method": [OneOf("auto")],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        covariance_type: str = "diag",
        means_init: Any = None,
        rounds: int | None = None,
        credits: Any = None,
        method: str = "auto",
        random_state: int | None = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.means_init = means_init
        self.rounds = rounds
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    def _plan(self, table: FitData) -> FitPlan:
        each = table.signal / (self.n_components * math.sqrt(table.width))
        grown = 2 + math.log2(1 + each / 20) if math.isfinite(each) else MOST_ROUNDS
        rounds = int(min(MOST_ROUNDS, grown)) if self.rounds is None else self.rounds
        start = START_SHARE * table.share
        if self.means_init is not None:
            start = 0.0
            self._given(table)
        steps = [FitStep("rounds", table.share - start, rounds)]
        if start:
            steps.insert(0, FitStep("start", start))
        return FitPlan("em", tuple(steps))

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        found = self._start(table, budget)
        rounds = budget.plan.steps[-1].rounds
        self.converged_ = False
        for done in range(rounds):
            before = found
            found, counts, error = self._round(table, budget, found)
            self.n_iter_ = done + 1
            if np.abs(found.means - before.means).max() < 1e-7:
                self.converged_ = True
                break
        self._judge(table, found, counts, error)
        features = table.features
        self._components = found
        self.weights_ = found.weights
        self.weights_error_ = np.full(self.n_components, error / table.rows)
        self.means_ = features.to_user(found.means)
        held = np.maximum(counts, max(error, 1e-9))[:, None]
        self.means_error_ = self._mean_error / held * features.units[1]
        self.covariances_ = found.variances * features.units[1] ** 2

    def _start(self, table: FitData, budget: FitBudget) -> _Components:
        features, k = table.features, self.n_components
        if self.means_init is not None:
            means = self._given(table)
            return _Components(np.full(k, 1 / k), means, np.full(means.shape, 1 / 12 / k))
        start = KMeans(k, random_state=self.random_state, on_noise=self.on_noise, progress=False)
        learned_within(start, table, budget, budget.plan.share("start"))
        offset, width = features.units
        means = (start.cluster_centers_ - offset) / width
        spread = max(float(start.inertia_), 0.0) / (table.rows * table.width)
        spread = min(max(spread, 1e-4), 1 / 12)
        shares = np.maximum(start.shares_, 0.5 / k)
        return _Components(shares / shares.sum(), means, np.full(means.shape, spread))

    def _given(self, table: FitData) -> Array:
        """The start that was given, in coordinates."""
        offset, width = table.features.units
        try:
            means = (np.asarray(self.means_init, dtype=np.float64) - offset) / width
        except (TypeError, ValueError):
            means = np.empty(0)
        if means.shape != (self.n_components, table.width) or not np.isfinite(means).all():
            raise InvalidQuery(
                f"means_init must hold {self.n_components} points of {table.width} finite numbers"
            )
        return means

    def _round(
        self, table: FitData, budget: FitBudget, now: _Components
    ) -> tuple[_Components, Array, float]:
        """Expectation inside the question, maximisation from its noisy sums."""
        features, width = table.features, table.width
        centre = np.clip(now.weights @ now.means, features.low, features.high)
        reach = features.radius(centre)
        if table.unit:  # rows beyond three deviations of every component are drawn in
            far = np.linalg.norm(now.means - centre, axis=1)
            spread = np.sqrt(now.variances.sum(axis=1))
            reach = min(reach, max(float((far + 3 * spread).max()), reach / 64))
        y = features.as_vector(centre, reach if table.unit else None)
        weight = reach / 2
        responsible = softmax(concat(ones(), y, squares(y)), published(now.scores(centre)))
        seen = concat(scaled(ones(), weight), y, scaled(squares(y), 1 / reach))
        sums, error = budget.sums("rounds", table.outer(responsible, seen))
        counts = sums[:, 0] / weight
        self._mean_error = error
        held = counts > 2 * error / weight
        solid = np.where(held, counts, 1.0)[:, None]
        offsets = sums[:, 1 : 1 + width] / solid
        means = now.means.copy()
        variances = now.variances.copy()
        for k in np.flatnonzero(held):
            step = centre + offsets[k] - now.means[k]
            means[k] = now.means[k] + shrink(step, error / solid[k, 0])
            second = sums[k, 1 + width :] * reach / solid[k, 0] - (means[k] - centre) ** 2
            blur = error * reach / solid[k, 0]
            variances[k] = np.maximum(second, LEAST_VARIANCE + min(blur, 1e-2))
        if self.covariance_type == "spherical":
            variances = np.repeat(variances.mean(axis=1, keepdims=True), width, axis=1)
        shares = np.maximum(counts, max(error / weight, 1e-12))
        means = np.clip(means, features.low, features.high)
        return _Components(shares / shares.sum(), means, variances), counts, error / weight

    def _judge(self, table: FitData, found: _Components, counts: Array, error: float) -> None:
        if error == 0:
            return
        lost = [str(k) for k in np.flatnonzero(counts < 2 * error)]
        if len(lost) == self.n_components:
            self._too_noisy(
                f"no component stands out: the largest holds {counts.max():.0f} rows, give or take"
                f" {error:.0f}; {2 * error * self.n_components / table.rows:.2g} times the rows,"
                " or fewer components"
            )
        elif lost:
            self._doubt(
                f"components {', '.join(lost)} hold fewer rows than noise would show; take"
                f" n_components={self.n_components - len(lost)}"
            )

    def _summary(self) -> Summary:
        return Groups(
            name=type(self).__name__,
            word="component",
            keys=tuple(self._features.keys),
            widths=self._features.units[1],
            centres=self.means_,
            centres_error=self.means_error_,
            shares=self.weights_,
            deviations=np.sqrt(np.maximum(self.covariances_, 0)),
        )

    # --- public rows ------------------------------------------------------------------------------

    def score_samples(self, rows: Any) -> Array:
        """Log density of public rows, in coordinates scaled by the bounds."""
        coordinates = self._coordinates(rows)
        joint = self._components.log_joint(coordinates)
        return np.asarray(np.logaddexp.reduce(joint, axis=1))

    def score(self, rows: Any, y: object = None) -> float:
        """The mean log density of public rows."""
        return float(self.score_samples(rows).mean())

    def predict_proba(self, rows: Any) -> Array:
        """Responsibilities on public rows."""
        coordinates = self._coordinates(rows)
        joint = self._components.log_joint(coordinates)
        return np.asarray(np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None]))

    def predict(self, rows: Any) -> Any:
        """The likeliest component of each public row."""
        coordinates = self._coordinates(rows)
        return self._components.log_joint(coordinates).argmax(axis=1)

    def sample(self, count: int = 1) -> Array:
        """Fictional rows from the mixture, in user units."""
        self._check_fitted()
        random = np.random.default_rng(self.random_state)
        chosen = random.choice(self.n_components, count, p=self.weights_)
        drawn = random.normal(
            self._components.means[chosen], np.sqrt(self._components.variances[chosen])
        )
        return self._features.to_user(drawn)
