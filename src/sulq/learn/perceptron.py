"""Perceptron: sums of the rows on the wrong side, as the papers do and as it works best.

method="paper" is Theorem 3 with its bound and its stop rule corrected (S4.9): start at 0, add the
mean of the misclassified rows, stop when they are too few for their noise. Rows times labels are
signed, so their sums cost twice per coordinate what rows in [0, 1] would under replace.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sulq.errors import InvalidQuery
from sulq.learn.classifying import ClassLearner
from sulq.learn.descent import View, evidence, find_view
from sulq.learn.features import Array, published
from sulq.learn.linear_classes import clearness, rounds_of
from sulq.learn.spending import Plan, Purse, Step
from sulq.learn.table import Table
from sulq.query.expressions import Expression
from sulq.query.vectors import concat, crossed, margin, ones, signed

CLOSE = 0.02
"""Rows with a margin up to this count as wrong; rows are at most 1 long."""
ROUNDS = 8
FAILURE = 0.01
"""Probability that the stop rule's noise bounds fail in some round."""


class Perceptron(ClassLearner):
    """Rosenblatt's perceptron on noisy sums; more than two classes each against the rest.

    `margin` is what method="paper" supposes of rows (1, coordinates in [0, 1]) and unit weights: it
    then makes at most 6.25 |row|^2 / margin^2 rounds. `max_iter` caps the rounds.
    Learned: `coef_`, `intercept_` in user units, `n_iter_`.
    """

    def __init__(
        self,
        *,
        margin: float = 0.1,
        max_iter: int = 100,
        credits: Any = None,
        method: str = "auto",
        random_state: Any = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.margin = margin
        self.max_iter = max_iter
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    def _plan(self, table: Table) -> Plan:
        if isinstance(self.max_iter, bool) or not isinstance(self.max_iter, int):
            raise InvalidQuery(f"max_iter must be a whole number, got {self.max_iter!r:.40}")
        if not 0 < self.margin < math.inf:
            raise InvalidQuery(f"margin must be above 0, got {self.margin!r:.40}")
        most, share = max(self.max_iter, 0), table.share
        if self.method == "paper":
            if table.label is not None and not table.label.binary:
                raise InvalidQuery(
                    "the papers' perceptron tells two classes apart; this label has"
                    f" {len(table.label.classes)}: use method='auto' or LogisticRegression"
                )
            rounds = min(
                most, most_rounds(table.features.radius(np.zeros(table.width)), self.margin)
            )
            rounds = max(rounds, 1)
            return Plan(
                "paper", (Step("counts", share / 4, rounds), Step("sums", 0.75 * share, rounds))
            )
        rounds = min(most, ROUNDS if math.isfinite(table.signal) else most)
        if clearness(table) < 1.5:
            rounds = 0
        look = (Step("centre", 0.08 * share), Step("clip", 0.04 * share))
        if not rounds:
            return Plan("sum", (*look, Step("moments", 0.88 * share)))
        each = 0.88 * share / (rounds + 1)
        both = (Step("moments", each), Step("rounds", each * rounds, rounds))
        return Plan("perceptron", (*look, *both))

    def _learn(self, table: Table, purse: Purse) -> None:
        assert table.label is not None  # noqa: S101
        self.majority_ = None
        truths = [table.label.truth(place) for place in range(len(table.label.classes))]
        if self.method == "paper":
            self._learn_as_paper(table, purse, truths[1])
            return
        view = find_view(table, purse)
        truths = truths[1:] if len(truths) == 2 else truths
        asked = [signed(ones(), truth) for truth in truths]
        sums, error = purse.sums("moments", table.outer(concat(*asked), view.held))
        unit = 1 / (view.radius * view.rows)  # weights of rows at most 1 long, per row
        weights = sums * unit
        self.n_iter_ = rounds_of(purse.plan)
        seen = [weights]
        for turn in range(self.n_iter_):
            wrong = [
                crossed(margin(view.scored, truth, published(w), CLOSE * view.radius), side)
                for w, truth, side in zip(weights, truths, asked, strict=True)
            ]
            found, _ = purse.sums("rounds", table.outer(concat(*wrong), view.held))
            weights = weights + 4 / (1 + 0.3 * turn) * unit * found
            seen.append(weights)
        self._publish(table, view, np.mean(seen[len(seen) // 2 :], axis=0))
        clear = evidence(sums[:1] if len(sums) == 1 else sums, error)
        if clear < -2.0:
            counts = view.rows / 2 + sums[:, 0] / view.bias / 2
            held = counts if len(counts) > 1 else np.array([view.rows - counts[0], counts[0]])
            self._give_up(held, "the sums of labelled rows are no more than their noise")

    def _learn_as_paper(self, table: Table, purse: Purse, truth: Expression) -> None:
        """w += sum of wrong rows / their number, while they are enough to tell. S4.9"""
        zero = np.zeros(table.width)
        rows = concat(ones(), table.features.as_vector(zero))
        weights = np.zeros(table.width + 1)
        rounds = purse.plan.steps[0].rounds
        self.n_iter_ = 0
        self.stopped_ = False
        for _ in range(rounds):
            wrong = margin(rows, truth, published(weights), 0)
            counted, count_error = purse.sums("counts", table.outer(ones(), wrong))
            few = float(counted[0, 0])
            query = table.outer(wrong, signed(rows, truth))
            noise = purse.error(query, purse.plan.share("sums"))
            if few < least_wrong(noise, count_error, len(weights), self.margin, rounds):
                self.stopped_ = True
                break
            found, _ = purse.sums("sums", query)
            weights = weights + found[0] / few
            self.n_iter_ += 1
        if self.n_iter_ == 0 and not self.stopped_:
            self._too_noisy("no round was paid for; raise credits= or max_iter=")
        view = View(zero, np.ones(table.width), 1.0, 1.0, 1.0, table.rows, rows, rows)
        self._publish(table, view, weights[None])
        if self.n_iter_ == 0:
            self._give_up(
                np.array([1.0, 1.0]),
                "too few rows for the noise of the first round"
                f" ({table.rows:,.0f} rows, {table.unit:.3g} noise on a count)",
            )

    def _publish(self, table: Table, view: View, weights: Array) -> None:
        self._view, self._weights = view, weights
        offset, width = self._features.units
        slopes, intercepts = view.per_coordinate(weights)
        self.coef_ = slopes / width
        self.intercept_ = intercepts - self.coef_ @ offset

    def _scores(self, rows: Any) -> Array:
        v = self._view.of(self._coordinates(rows, self._view.centre))
        scores = v @ self._weights.T
        return np.hstack([-scores / 2, scores / 2]) if len(self._weights) == 1 else scores


def most_rounds(longest: float, margin: float) -> int:
    """6.25 B^2 / margin^2, B the longest row with its constant 1. S4.9"""
    return math.ceil(6.25 * (longest**2 + 1) / margin**2)


def least_wrong(noise: float, count_error: float, width: int, margin: float, rounds: int) -> float:
    """The wrong rows a round needs for a noise of margin/8 in their mean, and 1/4 in their number.

    8 noise (sqrt d + sqrt(2 ln(2 r/beta))) / margin and 4 count_error sqrt(2 ln(4 r/beta)). S4.9
    """
    tail = math.sqrt(width) + math.sqrt(2 * math.log(2 * rounds / FAILURE))
    count = 4 * count_error * math.sqrt(2 * math.log(4 * rounds / FAILURE))
    return max(8 * noise * tail / margin, count, 1.0)
