"""What LogisticRegression and LinearSVC share: the plan, the rounds, weights in user units."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sulq.learn.checks import number, whole
from sulq.learn.classifying import ClassLearner
from sulq.learn.descent import CAUTION, Metric, Spread, View, descend
from sulq.learn.features import Array
from sulq.learn.spending import Plan, Purse, Step
from sulq.learn.table import Table

DOUBT = {True: 2.0, False: -2.0}
"""Deviations by which the label's moments must pass their noise, if there is a clear majority."""
CLEAR_MAJORITY = 1.3


@dataclass(frozen=True)
class Problem:
    """A loss as its rounds see it: where to start, what to ask stage by stage, how it bends."""

    start: Array
    stages: tuple[Callable[[Array], tuple[Array, float]], ...]
    curvature: Array
    penalty: Array
    noise: float
    """The standard error of the gradient over all rounds together."""


class LinearClassifier(ClassLearner):
    """Weights of v = (bias, scaled coordinates), and what follows from them in user units."""

    C: float | None
    max_iter: int

    def _plan(self, table: Table) -> Plan:
        strength(self.C)
        return newton_plan(table, whole("max_iter", self.max_iter, 0))

    def _solve(self, purse: Purse, view: View, spread: Spread, problem: Problem) -> None:
        """Rounds as planned; then coef_, intercept_, coef_error_: one row, or one a class."""
        self.n_iter_ = rounds_of(purse.plan)
        caution = CAUTION * problem.noise * math.sqrt(view.width)
        metric = Metric.of(spread, problem.curvature, problem.penalty, caution)
        weights, begun = problem.start, 0
        for stage, ask in enumerate(problem.stages, start=1):
            done = self.n_iter_ * stage // len(problem.stages)
            weights = descend(weights, ask, metric, done - begun)
            begun = done
        self._view, self._weights = view, weights
        offset, width = self._features.units
        slopes, intercepts = view.per_coordinate(weights)
        self.coef_ = slopes / width
        self.intercept_ = intercepts - self.coef_ @ offset
        self.coef_error_ = metric.errors(problem.noise)[:, 1:] * view.scale / width

    def _judge(self, clear: float, counts: Array, error: float, table: Table) -> None:
        """Fall back to the majority where the label's moments are no more than noise.

        Equal classes lose nothing by a guess; a majority is not given up for noise.
        """
        self.majority_ = None
        usual = max(float(counts.mean()), 0.0)
        ahead = float(counts.max()) - error > CLEAR_MAJORITY * usual
        if clear < DOUBT[ahead]:
            self._give_up(
                counts,
                f"the features' moments with the label are {clear:+.1f} deviations from what noise"
                f" alone gives ({table.rows:,.0f} rows, {table.unit:.3g} noise on a count)",
            )
        self._doubt_unless(clear)

    def _scores(self, rows: Any) -> Array:
        v = self._view.of(self._coordinates(rows, self._view.centre))
        scores = v @ self._weights.T
        return np.hstack([-scores / 2, scores / 2]) if len(self._weights) == 1 else scores


def newton_plan(table: Table, most: int) -> Plan:
    """Centre, radius, label moments; then the Gram matrix and rounds, where they can tell."""
    rounds = round_count(table, most)
    share = table.share
    gram = gram_share(table)
    look = [Step("centre", 0.08 * share), Step("clip", 0.04 * share)]
    if rounds == 0:
        look += [Step("moments", (0.88 - gram) * share)]
    else:
        gram /= 2
        look += [Step("moments", 0.28 * share)]
    if gram:
        look += [Step("gram", gram * share)]
    if rounds:
        look += [Step("rounds", (0.6 - gram) * share, rounds)]
    return Plan("newton" if rounds else "least squares" if gram else "moments", tuple(look))


def gram_share(table: Table) -> float:
    """What the Gram matrix gets: nothing while its noise hides an average eigenvalue."""
    width = table.width
    loud = math.sqrt(2.0) if table.replace else 1.0  # V.3
    if not table.gaussian:
        loud *= width
    clear = table.signal / loud / width**1.5
    if clear < 0.5:
        return 0.0
    return 0.4 if math.isinf(clear) else 0.4 * clear**2 / (clear**2 + 2.0)


def rounds_of(plan: Plan) -> int:
    return sum(step.rounds for step in plan.steps if step.name == "rounds")


def clearness(table: Table) -> float:
    """Rows of a class over the noise of a whole vector; twice as loud under replace."""
    width = table.width + 1
    loud = math.sqrt(width) if table.gaussian else float(width)  # L2, or L1
    classes = len(table.label.classes) if table.label is not None else 2
    return table.signal / loud * (2 / classes) / (2 if table.replace else 1)


def round_count(table: Table, most: int) -> int:
    """None where one estimate needs all the credits; then about three for each factor of four.

    The sum of two classes' rounds holds no label and is cheap: it pays earlier, and in more rounds.
    """
    clear = clearness(table)
    least, fewest = (4.0, 6) if table.label is not None and table.label.binary else (8.0, 3)
    if clear < least:
        return 0
    if math.isinf(clear):
        return most
    return min(most, max(fewest, round(1.5 * math.log2(1 + clear / 10))))


def strength(given: float | None, default: float = 1.0) -> float:
    """C, checked."""
    return default if given is None else number("C", given, 0, math.inf)
