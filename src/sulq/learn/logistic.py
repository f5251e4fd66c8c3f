"""LogisticRegression: one noisy moment with the label, one Gram matrix, then Newton rounds.

Two classes: sum (sigma(w v) - t) v = sum (sigma(w v) - 1/2) v - sum (t - 1/2) v. The second sum
holds the label and is asked once, as a signed sum; rounds ask the first alone. Each has half the
price of the whole, and no round pays for the label again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sulq.learn.descent import View, evidence, find_spread, find_view, first_weights
from sulq.learn.features import Array, published
from sulq.learn.linear_classes import LinearClassifier, Problem, rounds_of, strength
from sulq.learn.spending import Purse
from sulq.learn.table import Label, Table
from sulq.query.sum_query import outer
from sulq.query.vectors import ones, project, residual, signed, softmax

DEFAULT_C = 10.0
MOST_EXPLAINED = 0.8
"""Of the label's variance: where a moment estimate says more, its noise speaks."""


class LogisticRegression(LinearClassifier):
    """Linear log-odds of two classes, softmax for more.

    `C` is scikit-learn's: the loss gets |w|^2 / (2 C), w per bounds-scaled coordinate, not the
    intercept (default 10). Noise adds its own shrinkage, which vanishes with it.
    Learned: `coef_`, `intercept_` in user units, `coef_error_` (noise only), `n_iter_`.
    """

    _methods = ("auto",)

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

    def _learn(self, table: Table, purse: Purse) -> None:
        assert table.label is not None  # noqa: S101
        view = find_view(table, purse)
        learn = self._learn_two if table.label.binary else self._learn_many
        learn(table, purse, view, table.label)

    def _learn_two(self, table: Table, purse: Purse, view: View, label: Label) -> None:
        truth = label.truth()
        sums, error = purse.sums("moments", table.outer(ones(), signed(view.held, truth)))
        moments, error = sums / 2, error / 2
        spread = find_spread(table, purse, view)
        begun = first_weights(moments, error, spread, 0.25)
        shown = spread.value / spread.rows
        explained = float((begun @ shown * begun).sum()) / 4
        start = begun / (1 - min(explained, MOST_EXPLAINED))
        scores = float((start @ shown * start).sum())
        # the mean of sigma' over scores of this mean square, normal and centred
        curvature = np.array([0.25 / math.sqrt(1 + math.pi * min(scores, 30.0) / 8)])
        penalty = view.penalty(1 / strength(self.C, DEFAULT_C))
        rows = table.labelled

        def ask(w: Array) -> tuple[Array, float]:
            shares = softmax(view.scored, published([np.zeros(view.width), w[0]]))
            half = project(shares, [[-0.5, 0.5]])
            found, wrong = purse.sums("rounds", outer(half, view.held, rows=rows))
            return found - moments + penalty * w, wrong

        noise = error
        if rounds_of(purse.plan):
            whole = purse.plan.share("rounds") * rounds_of(purse.plan)
            noise = math.hypot(error, purse.error(outer(ones(), view.held), whole) / 2)
        self._solve(purse, view, spread, Problem(start, (ask,), curvature, penalty, noise))
        lead = float(moments[0, 0]) / view.bias
        counts = view.labelled / 2 + np.array([-lead, lead])
        self._judge(evidence(moments, error, spread), counts, error / view.bias, table)

    def _learn_many(self, table: Table, purse: Purse, view: View, label: Label) -> None:
        sums, error = purse.sums("moments", table.outer(label.one_hot(), view.held))
        counts = sums[:, 0] / view.bias
        shares = np.maximum(counts, view.rows / (20 * len(sums)))
        shares = shares / shares.sum()
        spread = find_spread(table, purse, view)
        # shares of classes as linear in v; d share = share (1 - share) d score
        begun = first_weights(sums - sums.mean(axis=0), error, spread, 1.0)
        bend = float((shares * (1 - shares)).mean())
        shown = spread.value / spread.rows
        explained = float((begun @ shown * begun).sum()) / len(sums) / bend
        explained = min(max(explained, 0.0), MOST_EXPLAINED)
        start = begun / (bend * (1 - explained))
        penalty = view.penalty(1 / strength(self.C, DEFAULT_C))

        def ask(w: Array) -> tuple[Array, float]:
            slopes = residual(view.scored, published(w), str(label.source), "logistic")
            found, wrong = purse.sums("rounds", table.outer(slopes, view.held))
            return found + penalty * w, wrong

        noise = error
        if rounds_of(purse.plan):
            whole = purse.plan.share("rounds") * rounds_of(purse.plan)
            noise = math.sqrt(2) * purse.error(outer(ones(), view.held), whole)
        curvature = shares * (1 - shares) * (1 - explained)
        self._solve(purse, view, spread, Problem(start, (ask,), curvature, penalty, noise))
        self._judge(evidence(sums, error), counts, error / view.bias, table)
