"""Perceptron: add up the rows on the wrong side, again and again. S4.9

Each round is one question: for every class the sum of y v over the rows whose margin y <w, v> is
small. Rows are seen from their centre and clipped; the paper's own algorithm is method="paper".
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from sulq.errors import InvalidQuery
from sulq.kernel.query.expressions import Expression
from sulq.kernel.query.vectors import concat, margin, ones, signed
from sulq.learn.budget import FitBudget, FitPlan, FitStep
from sulq.learn.dataset import FitData, Label
from sulq.learn.estimator import ClassLearner
from sulq.learn.features import Array, published
from sulq.learn.linear.classifiers import clearness, rounds_of
from sulq.learn.linear.newton import Standardised, evidence, isotropic_gram, standardise
from sulq.learn.parameters import NONE, Constraints, Interval, Whole
from sulq.learn.summaries import Summary

ROUNDS = 8
MOST_ROUNDS = 60
LEAST_CLEAR = 1.5
"""Below it one sum of labelled rows takes all the credits."""
MARGIN = 0.02
"""Rows this close to the border count as wrong, in units of the longest row."""
STEP, FADE = 4.0, 0.3
FAILURE = 0.01
DOUBT = 2.0


class Perceptron(ClassLearner):
    """A linear border between two classes; for more, each class against the rest.

    Parameters
    ----------
    max_iter : int, optional
        The number of rounds. Without it, as many as the noise allows.
    margin : float, optional
        With `method="paper"`: a margin that unit weights leave every row (1, coordinates - middle).
        Theorem 3's stop rule then bounds the rounds by 6.25 |row|^2 / margin^2.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    coef_, intercept_ : ndarray
        Weights per user unit, and the constant: one row for two classes, else one for each.
    n_iter_ : int
        The number of rounds.
    classes_, majority_ : ndarray, and int or None
        The classes, and the place of the one that every row gets where noise hides the rest.

    Notes
    -----
    `method="paper"` starts at 0 and adds the mean of the misclassified rows until too few are left
    to tell (S4.9, two classes).

    Examples
    --------
    >>> from sulq.learn import Perceptron
    >>> Perceptron(max_iter=3, credits=50).fit(db, ["age", "income"], "smoker").coef_.shape
    (1, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "max_iter": [Whole(), NONE],
        "margin": [Interval(1e-9, math.inf, "[)"), NONE],
    }

    def __init__(
        self,
        max_iter: int | None = None,
        *,
        margin: float | None = None,
        credits: Any = None,
        method: str = "auto",
        random_state: int | None = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.max_iter = max_iter
        self.margin = margin
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    def _plan(self, table: FitData) -> FitPlan:
        assert table.label is not None  # noqa: S101
        rounds = self.max_iter
        share = table.share
        if self.method == "paper":
            if not table.label.binary:
                raise InvalidQuery(
                    'method="paper" separates two classes; use method="auto" or LogisticRegression'
                )
            return FitPlan("paper", (FitStep("rounds", share, 2 * (rounds or ROUNDS)),))
        look = (FitStep("centre", 0.08 * share), FitStep("clip", 0.04 * share))
        clear = clearness(table)
        if clear < LEAST_CLEAR:
            return FitPlan("sum", (*look, FitStep("first", 0.88 * share)))
        if rounds is None:
            rounds = MOST_ROUNDS
            if math.isfinite(clear):
                rounds = round(min(MOST_ROUNDS, ROUNDS * max(1.0, math.log10(clear) / 1.5)))
        each = 0.88 * share / (rounds + 1)
        both = (FitStep("first", each), FitStep("rounds", each * rounds, rounds))
        return FitPlan("averaged", (*look, *both))

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        assert table.label is not None  # noqa: S101
        if self.method == "paper":
            self._learn_as_the_paper(table, budget, table.label)
            return
        truths = _truths(table.label)
        view = standardise(table, budget)
        signs = concat(*(signed(ones(), truth) for truth in truths))
        sums, error = budget.sums("first", table.outer(signs, view.held))
        self._judge(table, view, sums, error)
        scale = view.rows * view.radius
        weights = sums / scale
        kept, averaged = [weights], rounds_of(budget.plan)
        for t in range(averaged):
            wrong = concat(
                *(
                    signed(margin(view.scored, truth, published(w), MARGIN * view.radius), truth)
                    for truth, w in zip(truths, weights, strict=True)
                )
            )
            step, _ = budget.sums("rounds", table.outer(wrong, view.held))
            weights = weights + STEP / (1 + FADE * t) * step / scale
            kept.append(weights)
        self.n_iter_ = averaged
        weights = np.mean(kept[len(kept) // 2 :], axis=0)
        slopes, intercepts = view.per_coordinate(weights)
        self._set(slopes, intercepts, view.centre)

    def _judge(self, table: FitData, view: Standardised, sums: Array, error: float) -> None:
        """Fall back to the majority where the sums of labelled rows are no more than noise."""
        self.majority_ = None
        by_class, each = sums, error
        if len(sums) > 2:  # rows of a class minus the others, as rows of a class
            by_class, each = (sums + sums.sum(axis=0) / (2 - len(sums))) / 2, error / 2
        clear = evidence(by_class, each, isotropic_gram(view))
        lead = sums[:, 0] / view.bias  # rows of a class minus the others
        counts = (view.labelled + lead) / 2
        noise = error / view.bias / 2
        if len(counts) == 1:
            noise = 0.0  # two classes: a wrong guess can cost the whole majority
            counts = np.array([view.labelled - counts[0], counts[0]])
        if clear >= DOUBT:
            return
        why = (
            f"the sums of labelled rows are {clear:+.1f} deviations from noise alone"
            f" ({table.rows:,.0f} rows, {table.unit:.3g} noise on a count)"
        )
        if float(counts.max()) > 1.3 * float(counts.mean()) + noise:
            self.give_up(counts, why)
        else:  # classes about equal: a guess loses nothing
            self._doubt(f"{why}; take this for a guess")

    # --- the paper's own --------------------------------------------------------------------------

    def _learn_as_the_paper(self, table: FitData, budget: FitBudget, label: Label) -> None:
        """S_j: the rows with y <w, x> <= 0. w += (sum of y x over S_j) / |S_j|, both noisy."""
        truth = label.truth()
        vector = concat(ones(), table.features.as_vector(table.features.middle))
        weights = np.zeros(table.width + 1)
        rounds = budget.plan.rounds // 2
        self.majority_ = None
        self.n_iter_ = 0
        for _ in range(rounds):
            wrong = margin(vector, truth, published(weights), 0)
            count, count_error = budget.sums("rounds", table.outer(wrong, ones()))
            question = table.outer(wrong, signed(vector, truth))
            error = budget.error(question, budget.plan.share("rounds"))
            if count[0, 0] <= least_wrong(error, count_error, len(weights), self.margin, rounds):
                break
            sums, _ = budget.sums("rounds", question)
            weights = weights + sums[0] / count[0, 0]
            self.n_iter_ += 1
        if self.n_iter_ == 0:
            self._doubt(
                "the first round's count is below its noise: every row gets the first class"
            )
        slopes = weights[None, 1:]
        intercepts = weights[:1] - slopes @ table.features.middle
        self._set(slopes, intercepts, table.features.middle)

    def _set(self, slopes: Array, intercepts: Array, centre: Array) -> None:
        offset, width = self._features.units
        self._centre, self._slopes, self._intercepts = centre, slopes, intercepts
        self.coef_ = slopes / width
        self.intercept_ = intercepts - self.coef_ @ offset

    def _summary(self) -> Summary:
        return self._coefficients()

    def _scores(self, rows: Any) -> Array:
        scores = self._coordinates(rows, self._centre) @ self._slopes.T + self._intercepts
        return np.hstack([-scores / 2, scores / 2]) if scores.shape[1] == 1 else scores


def _truths(label: Label) -> list[Expression]:
    """One condition for two classes, else one for each."""
    if label.binary:
        return [label.truth()]
    return [label.truth(place) for place in range(len(label.classes))]


def least_wrong(
    error: float, count_error: float, width: int, margin: float | None, rounds: int
) -> float:
    """How many wrong rows a round needs, all rounds but with probability FAILURE. S4.9

    Their number within 1/4: 4 count_error sqrt(2 ln(4 r/beta)). Their mean within margin/8:
    8 error (sqrt d + sqrt(2 ln(2 r/beta))) / margin. Rows times labels are signed: `error` is of
    that range, R_eff = 4 R under replace.
    """
    number = 4 * count_error * math.sqrt(2 * math.log(4 * rounds / FAILURE))
    if margin is None:
        return number
    length = math.sqrt(width) + math.sqrt(2 * math.log(2 * rounds / FAILURE))
    return max(number, 8 * error * length / margin)
