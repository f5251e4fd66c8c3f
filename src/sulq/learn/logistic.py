"""LogisticRegression: one noisy moment with the label, one Gram matrix, then Newton rounds.

Two classes: sum (sigma(w v) - t) v = sum (sigma(w v) - 1/2) v - sum (t - 1/2) v. The second sum
holds the label and is asked once, as a signed sum; rounds ask the first alone. Each has half the
price of the whole, and no round pays for the label again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sulq.errors import InvalidQuery
from sulq.learn.classifying import ClassLearner
from sulq.learn.descent import Metric, Spread, View, descend, find_spread, find_view, first_weights
from sulq.learn.features import Array, published
from sulq.learn.spending import Plan, Purse, Step
from sulq.learn.table import Label, Table
from sulq.query.expressions import Expression
from sulq.query.sum_query import outer
from sulq.query.vectors import ones, project, residual, signed, softmax

DEFAULT_C = 10.0
MOST_EXPLAINED = 0.8
CAUTION = 0.25
DOUBT = 1.0


class LinearClassifier(ClassLearner):
    """Weights of v and what follows from them in user units."""

    def _publish(self, view: View, weights: Array, errors: Array) -> None:
        """coef_, intercept_, coef_error_: one row, or one a class if there are more than two."""
        self._view, self._weights = view, weights
        offset, width = self._features.units
        slopes, intercepts = view.per_coordinate(weights)
        self.coef_ = slopes / width
        self.intercept_ = intercepts - self.coef_ @ offset
        self.coef_error_ = errors[:, 1:] * view.scale / width

    def _scores(self, rows: Any) -> Array:
        v = self._view.of(self._coordinates(rows, self._view.centre))
        scores = v @ self._weights.T
        return np.hstack([-scores / 2, scores / 2]) if len(self._weights) == 1 else scores


class LogisticRegression(LinearClassifier):
    """Linear log-odds of two classes, softmax for more.

    `C` is scikit-learn's: the loss gets |w|^2 / (2 C), w per bounds-scaled coordinate, not the
    intercept (default 10). Noise adds its own shrinkage, which vanishes with it.
    Learned: `coef_`, `intercept_` in user units, `coef_error_` (noise only), `n_iter_`.
    """

    _methods = ("auto",)

    def __init__(
        self,
        C: float | None = None,  # noqa: N803  scikit-learn's name
        *,
        max_iter: int = 100,
        credits: Any = None,
        method: str = "auto",
        random_state: Any = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.C = C
        self.max_iter = max_iter
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    def _plan(self, table: Table) -> Plan:
        return newton_plan(table, self.max_iter)

    def _learn(self, table: Table, purse: Purse) -> None:
        assert table.label is not None  # noqa: S101
        penalty = 1 / strength(self.C, DEFAULT_C)
        view = find_view(table, purse)
        if table.label.binary:
            self._learn_two(table, purse, view, table.label, penalty)
        else:
            self._learn_many(table, purse, view, table.label, penalty)

    def _learn_two(
        self, table: Table, purse: Purse, view: View, label: Label, ridge: float
    ) -> None:
        truth = label.truth()
        sums, error = purse.sums("moments", table.outer(ones(), signed(view.held, truth)))
        moments, error = sums / 2, error / 2
        spread = find_spread(table, purse, view)
        start = first_weights(moments, error, spread, np.array([0.25]))
        shown = spread.value / spread.rows
        explained = float((start.weights @ shown * start.weights).sum()) / 4
        weights = start.weights / (1 - min(explained, MOST_EXPLAINED))
        scores = float((weights @ shown * weights).sum())
        curvature = np.array([0.25 / math.sqrt(1 + math.pi * min(scores, 30.0) / 8)])
        penalty = view.penalty(ridge)
        rows = labelled(label, table)

        def ask(w: Array) -> tuple[Array, float]:
            shares = softmax(view.scored, published([np.zeros(view.width), w[0]]))
            half = project(shares, [[-0.5, 0.5]])
            found, wrong = purse.sums("rounds", outer(half, view.held, rows=rows))
            return found - moments + penalty * w, wrong

        self._rounds(purse, view, spread, start.clear, weights, curvature, ask, penalty, error)
        if start.clear < DOUBT:
            share = float(moments[0, 0]) / view.bias / view.rows
            self._give_up(np.array([0.5 - share, 0.5 + share]) * view.rows, "below its noise")

    def _learn_many(
        self, table: Table, purse: Purse, view: View, label: Label, ridge: float
    ) -> None:
        sums, error = purse.sums("moments", table.outer(label.one_hot(), view.held))
        counts = np.maximum(sums[:, 0] / view.bias, view.rows / (20 * len(sums)))
        shares = counts / counts.sum()
        moments = sums - shares[:, None] * sums.sum(axis=0)
        spread = find_spread(table, purse, view)
        start = first_weights(moments, error, spread, shares)
        weights, explained = discriminants(start.weights, shares, spread)
        weights[:, 0] += np.log(shares) / view.bias
        penalty = view.penalty(ridge)
        source = label.source

        def ask(w: Array) -> tuple[Array, float]:
            slopes = residual(view.scored, published(w), source, "logistic")
            found, wrong = purse.sums("rounds", table.outer(slopes, view.held))
            return found + penalty * w, wrong

        curvature = shares * (1 - shares) * (1 - explained)
        self._rounds(purse, view, spread, start.clear, weights, curvature, ask, penalty, error)
        if start.clear < DOUBT:
            self._give_up(sums[:, 0] / view.bias, "below its noise")

    def _rounds(
        self,
        purse: Purse,
        view: View,
        spread: Spread,
        clear: float,
        weights: Array,
        curvature: Array,
        ask: Any,
        penalty: Array,
        error: float,
    ) -> None:
        self.n_iter_ = rounds_of(purse.plan)
        noise = error
        if self.n_iter_:
            each = purse.error(
                outer(ones(), view.held), purse.plan.share("rounds")
            ) / (2 if len(weights) == 1 else 1 / math.sqrt(2))
            noise = math.hypot(error if len(weights) == 1 else 0.0, each / math.sqrt(self.n_iter_))
        caution = CAUTION * noise * math.sqrt(view.width)
        metric = Metric.of(spread, curvature, penalty, caution)
        if self.n_iter_:
            weights = descend(weights, ask, metric, self.n_iter_)
        self._publish(view, weights, metric.errors(noise))


def discriminants(weights: Array, shares: Array, spread: Spread) -> tuple[Array, float]:
    """Least-squares weights as those of the Gaussian model: the spread within classes.

    With A = spread / rows and F = sqrt(shares) * weights, the spread between classes is A F'F A,
    and (A - A F'F A)^-1 A F' = F' (I - F A F')^-1: a matrix of one row a class.
    """
    shown = spread.value / spread.rows
    held = np.sqrt(shares)[:, None] * weights
    values, basis = np.linalg.eigh(held @ shown @ held.T)
    part = np.clip(values, 0.0, MOST_EXPLAINED)
    sharper = ((basis / (1 - part)) @ basis.T @ held) / np.sqrt(shares)[:, None]
    sharper[:, 0] -= 0.5 * (sharper @ shown * weights).sum(axis=1) / math.sqrt(shown[0, 0])
    return sharper, float(part.sum() / (len(weights) - 1))


def newton_plan(table: Table, most: int) -> Plan:
    """Centre, radius, label moments; then the Gram matrix and rounds, where they can tell."""
    clear = clearness(table)
    rounds = min(most, round_count(clear, most))
    share = table.share
    look = (Step("centre", 0.08 * share), Step("clip", 0.04 * share))
    if rounds == 0 and clear < 3:
        return Plan("moments", (*look, Step("moments", 0.88 * share)))
    if rounds == 0:
        both = (Step("moments", 0.5 * share), Step("gram", 0.38 * share))
        return Plan("least squares", (*look, *both))
    both = (Step("moments", 0.28 * share), Step("gram", 0.2 * share))
    return Plan("newton", (*look, *both, Step("rounds", 0.4 * share, rounds)))


def rounds_of(plan: Plan) -> int:
    return sum(step.rounds for step in plan.steps if step.name == "rounds")


def clearness(table: Table) -> float:
    """Rows over the noise of a whole vector: sqrt(d) coordinates, twice as loud under replace."""
    width = table.width + 1
    loud = math.sqrt(width) if table.gaussian else float(width)
    return table.signal / loud / (2 if table.replace else 1)


def round_count(clear: float, most: int) -> int:
    """More as the noise falls: about three for each factor of four."""
    if not math.isfinite(clear):
        return most
    return round(1.5 * math.log2(1 + clear / 10))


def labelled(label: Label, table: Table) -> Expression:
    """Rows of this fit that have a label."""
    known = label.truth(0)
    for place in range(1, len(label.classes)):
        known = known | label.truth(place)
    return known if table.where is None else known & table.where


def strength(given: float | None, default: float) -> float:
    """C, checked."""
    if given is None:
        return default
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < math.inf:
        raise InvalidQuery(f"C must be a number above 0, got {given!r:.40}")
    return float(given)
