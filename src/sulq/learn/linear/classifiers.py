"""LogisticRegression and LinearSVC: a noisy moment, a Gram matrix, then rounds of L-BFGS.

Two classes: sum (sigma(w v) - t) v = sum (sigma(w v) - 1/2) v - sum (t - 1/2) v. The second sum
holds the label and is asked once, as a signed sum; rounds ask the first alone. Each has half the
price of the whole, and no round pays for the label again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from sulq.kernel.query.sum_query import outer
from sulq.kernel.query.vectors import concat, ones, project, residual, signed, softmax
from sulq.learn.budget import FitBudget, FitPlan, FitStep
from sulq.learn.dataset import FitData, Label
from sulq.learn.estimator import ClassLearner
from sulq.learn.features import Array, published
from sulq.learn.linear.newton import (
    CAUTION,
    GramEstimate,
    Preconditioner,
    Standardised,
    estimate_gram,
    evidence,
    first_weights,
    lbfgs,
    standardise,
)
from sulq.learn.parameters import NONE, Constraints, Interval, OneOf, Whole
from sulq.learn.summaries import Summary

DOUBT = {True: 2.0, False: -2.0}
"""Deviations by which the label's moments must pass their noise, if there is a clear majority."""
CLEAR_MAJORITY = 1.3


@dataclass(frozen=True)
class ClassProblem:
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
    _parameter_constraints: ClassVar[Constraints] = {
        "C": [Interval(0, math.inf), NONE],
        "max_iter": [Whole(0)],
        "method": [OneOf("auto")],
    }

    def _plan(self, table: FitData) -> FitPlan:
        return newton_plan(table, int(self.max_iter))

    def _solve(
        self, budget: FitBudget, view: Standardised, gram: GramEstimate, problem: ClassProblem
    ) -> None:
        """Rounds as planned; then coef_, intercept_, coef_error_: one row, or one a class."""
        self.n_iter_ = rounds_of(budget.plan)
        caution = CAUTION * problem.noise * math.sqrt(view.width)
        metric = Preconditioner.of(gram, problem.curvature, problem.penalty, caution)
        weights, begun = problem.start, 0
        for stage, ask in enumerate(problem.stages, start=1):
            done = self.n_iter_ * stage // len(problem.stages)
            weights = lbfgs(weights, ask, metric, done - begun)
            begun = done
        self._view, self._weights = view, weights
        offset, width = self._features.units
        slopes, intercepts = view.per_coordinate(weights)
        self.coef_ = slopes / width
        self.intercept_ = intercepts - self.coef_ @ offset
        self.coef_error_ = metric.errors(problem.noise)[:, 1:] * view.scale / width

    def _judge(self, clear: float, counts: Array, error: float, table: FitData) -> None:
        """Fall back to the majority where the label's moments are no more than noise.

        Equal classes lose nothing by a guess; a majority is not given up for noise.
        """
        self.majority_ = None
        usual = max(float(counts.mean()), 0.0)
        ahead = float(counts.max()) - error > CLEAR_MAJORITY * usual
        if clear < DOUBT[ahead]:
            self.give_up(
                counts,
                f"the features' moments with the label are {clear:+.1f} deviations from what noise"
                f" alone gives ({table.rows:,.0f} rows, {table.unit:.3g} noise on a count)",
            )
        self._doubt_unless(clear)

    def _summary(self) -> Summary:
        return self._coefficients(self.coef_error_)

    def _scores(self, rows: Any) -> Array:
        v = self._view.of(self._coordinates(rows, self._view.centre))
        scores = v @ self._weights.T
        return np.hstack([-scores / 2, scores / 2]) if len(self._weights) == 1 else scores


def newton_plan(table: FitData, most: int) -> FitPlan:
    """Centre, radius, label moments; then the Gram matrix and rounds, where they can tell."""
    rounds = round_count(table, most)
    share = table.share
    gram = gram_share(table)
    look = [FitStep("centre", 0.08 * share), FitStep("clip", 0.04 * share)]
    if rounds == 0:
        look += [FitStep("moments", (0.88 - gram) * share)]
    else:
        gram /= 2
        look += [FitStep("moments", 0.28 * share)]
    if gram:
        look += [FitStep("gram", gram * share)]
    if rounds:
        look += [FitStep("rounds", (0.6 - gram) * share, rounds)]
    return FitPlan("newton" if rounds else "least squares" if gram else "moments", tuple(look))


def gram_share(table: FitData) -> float:
    """What the Gram matrix gets: nothing while its noise hides an average eigenvalue."""
    width = table.width
    loud = math.sqrt(2.0) if table.replace else 1.0  # V.3
    if not table.gaussian:
        loud *= width
    clear = table.signal / loud / width**1.5
    if clear < 0.5:
        return 0.0
    return 0.4 if math.isinf(clear) else 0.4 * clear**2 / (clear**2 + 2.0)


def rounds_of(plan: FitPlan) -> int:
    return sum(step.rounds for step in plan.steps if step.name == "rounds")


def clearness(table: FitData) -> float:
    """Rows of a class over the noise of a whole vector; twice as loud under replace."""
    width = table.width + 1
    loud = math.sqrt(width) if table.gaussian else float(width)  # L2, or L1
    classes = len(table.label.classes) if table.label is not None else 2
    return table.signal / loud * (2 / classes) / (2 if table.replace else 1)


def round_count(table: FitData, most: int) -> int:
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


# What LogisticRegression and LinearSVC share: the plan, the rounds, weights in user units.


LOGISTIC_C = 10.0
MOST_EXPLAINED = 0.8
"""Of the label's variance: where a moment estimate says more, its noise speaks."""


class LogisticRegression(LinearClassifier):
    """Logistic regression: linear log-odds of two classes, softmax for more.

    Parameters
    ----------
    C : float, optional
        The inverse of the ridge, as in scikit-learn: the loss gets |w|^2 / (2 C), w per coordinate
        scaled by its bounds, without the intercept. Without it, 10. Noise adds a ridge of its own.
    max_iter : int
        The most rounds.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    coef_, intercept_ : ndarray
        Weights per user unit, and the constant: one row for two classes, else one for each.
    coef_error_ : ndarray
        The standard error that noise gives a weight.
    n_iter_ : int
        The number of rounds.
    classes_ : ndarray
        The classes.
    majority_ : int or None
        The place of the class that every row gets where noise hides the rest.

    Notes
    -----
    One noisy moment with the label, one noisy Gram matrix as preconditioner, then L-BFGS rounds
    whose iterates are averaged by their noise.

    Examples
    --------
    >>> from sulq.learn import LogisticRegression
    >>> model = LogisticRegression(credits=50, max_iter=3).fit(db, ["age", "income"], "smoker")
    >>> model.predict({"age": [40], "income": [30_000]}).shape    # public rows
    (1,)
    """

    def __init__(
        self,
        C: float | None = None,
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

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        assert table.label is not None  # noqa: S101
        view = standardise(table, budget)
        learn = self._learn_two if table.label.binary else self._learn_many
        learn(table, budget, view, table.label)

    def _learn_two(
        self, table: FitData, budget: FitBudget, view: Standardised, label: Label
    ) -> None:
        truth = label.truth()
        sums, error = budget.sums("moments", table.outer(ones(), signed(view.held, truth)))
        moments, error = sums / 2, error / 2
        gram = estimate_gram(table, budget, view)
        begun = first_weights(moments, error, gram, 0.25)
        shown = gram.value / gram.rows
        explained = float((begun @ shown * begun).sum()) / 4
        start = begun / (1 - min(explained, MOST_EXPLAINED))
        scores = float((start @ shown * start).sum())
        # the mean of sigma' over scores of this mean square, normal and centred
        curvature = np.array([0.25 / math.sqrt(1 + math.pi * min(scores, 30.0) / 8)])
        penalty = view.penalty(1 / (LOGISTIC_C if self.C is None else self.C))
        rows = table.labelled

        def ask(w: Array) -> tuple[Array, float]:
            shares = softmax(view.scored, published([np.zeros(view.width), w[0]]))
            half = project(shares, [[-0.5, 0.5]])
            found, wrong = budget.sums("rounds", outer(half, view.held, rows=rows))
            return found - moments + penalty * w, wrong

        noise = error
        if rounds_of(budget.plan):
            whole = budget.plan.share("rounds") * rounds_of(budget.plan)
            noise = math.hypot(error, budget.error(outer(ones(), view.held), whole) / 2)
        self._solve(budget, view, gram, ClassProblem(start, (ask,), curvature, penalty, noise))
        lead = float(moments[0, 0]) / view.bias
        counts = view.labelled / 2 + np.array([-lead, lead])
        self._judge(evidence(moments, error, gram), counts, error / view.bias, table)

    def _learn_many(
        self, table: FitData, budget: FitBudget, view: Standardised, label: Label
    ) -> None:
        sums, error = budget.sums("moments", table.outer(label.one_hot(), view.held))
        counts = sums[:, 0] / view.bias
        shares = np.maximum(counts, view.rows / (20 * len(sums)))
        shares = shares / shares.sum()
        gram = estimate_gram(table, budget, view)
        # shares of classes as linear in v; d share = share (1 - share) d score
        begun = first_weights(sums - sums.mean(axis=0), error, gram, 1.0)
        bend = float((shares * (1 - shares)).mean())
        shown = gram.value / gram.rows
        explained = float((begun @ shown * begun).sum()) / len(sums) / bend
        explained = min(max(explained, 0.0), MOST_EXPLAINED)
        start = begun / (bend * (1 - explained))
        penalty = view.penalty(1 / (LOGISTIC_C if self.C is None else self.C))

        def ask(w: Array) -> tuple[Array, float]:
            slopes = residual(view.scored, published(w), str(label.source), "logistic")
            found, wrong = budget.sums("rounds", table.outer(slopes, view.held))
            return found + penalty * w, wrong

        noise = error
        if rounds_of(budget.plan):
            whole = budget.plan.share("rounds") * rounds_of(budget.plan)
            noise = math.sqrt(2) * budget.error(outer(ones(), view.held), whole)
        curvature = shares * (1 - shares) * (1 - explained)
        self._solve(budget, view, gram, ClassProblem(start, (ask,), curvature, penalty, noise))
        self._judge(evidence(sums, error), counts, error / view.bias, table)


# LinearSVC: the hinge loss, one class against the rest, by the rounds of logistic regression.
#
# The hinge's corner is rounded: softplus(a (1 - y z)) / a has the slope -y sigma(a (1 - y z)), a
# logistic residual of the score a (z - y). Its sharpness a grows as the noise falls: the loss is
# off by at most log 2 / a a row, and only near the corner.


SVC_C = 1.0
SHARPNESS = (3.0, 10.0, 30.0, 100.0, 300.0)
PATIENCE = 30
"""Rounds that pay for one more stage of sharpness."""
CURVATURE = 0.4
"""How the rounded hinge bends over all rows: about the density of y z at 1."""


class LinearSVC(LinearClassifier):
    """A linear support vector machine; for more than two classes, each against the rest.

    Parameters
    ----------
    C : float, optional
        As in scikit-learn: minimise |w|^2 / 2 + C times the sum of hinges, w per coordinate scaled
        by its bounds, without the intercept. Without it, 1.
    max_iter : int
        The most rounds.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    coef_, intercept_ : ndarray
        Weights per user unit, and the constant: one row for two classes, else one for each.
    coef_error_ : ndarray
        The standard error that noise gives a weight.
    n_iter_ : int
        The number of rounds.
    classes_ : ndarray
        The classes.
    majority_ : int or None
        The place of the class that every row gets where noise hides the rest.

    Notes
    -----
    The hinge is rounded to a logistic slope whose sharpness grows as the noise falls; the rounds
    are those of LogisticRegression.

    Examples
    --------
    >>> from sulq.learn import LinearSVC
    >>> model = LinearSVC(credits=50, max_iter=3).fit(db, ["age", "income"], "smoker")
    >>> model.coef_.shape
    (1, 2)
    """

    def __init__(
        self,
        C: float | None = None,
        *,
        max_iter: int = 300,
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

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        assert table.label is not None  # noqa: S101
        label = table.label
        truths = [label.truth(place) for place in range(len(label.classes))]
        view = standardise(table, budget)
        if label.binary:
            truths = truths[1:]
            sums, error = budget.sums("moments", table.outer(ones(), signed(view.held, truths[0])))
            moments, noise = sums, error
            lead = float(sums[0, 0]) / view.bias / 2
            counts = view.labelled / 2 + np.array([-lead, lead])
        else:
            sums, error = budget.sums("moments", table.outer(label.one_hot(), view.held))
            moments, noise = 2 * sums - sums.sum(axis=0), error * math.sqrt(len(sums))
            counts = sums[:, 0] / view.bias
        gram = estimate_gram(table, budget, view)
        clear = evidence(sums, error, gram)
        begun = first_weights(moments, noise, gram, 1.0)
        penalty = view.penalty(1 / (SVC_C if self.C is None else self.C))
        rounds = rounds_of(budget.plan)

        def ask(sharpness: float, w: Array) -> tuple[Array, float]:
            slopes = []
            for weights, truth in zip(w, truths, strict=True):
                scored = concat(view.scored, signed(ones(), truth))
                both = published(sharpness * np.append(weights, -1.0))
                slopes.append(residual(scored, both, truth, "logistic"))
            found, wrong = budget.sums("rounds", table.outer(concat(*slopes), view.held))
            return found + penalty * w, wrong

        if rounds:
            whole = budget.plan.share("rounds") * rounds
            noise = budget.error(outer(ones(), view.held), whole) * math.sqrt(len(truths))
        curvature = np.full(len(truths), CURVATURE)
        stages = tuple(partial(ask, sharpness) for sharpness in SHARPNESS[: 1 + rounds // PATIENCE])
        self._solve(budget, view, gram, ClassProblem(begun, stages, curvature, penalty, noise))
        self._judge(clear, counts, error / view.bias, table)
