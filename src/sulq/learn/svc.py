"""LinearSVC: the hinge loss, one class against the rest, by the rounds of logistic regression.

The hinge's corner is rounded: softplus(a (1 - y z)) / a has the slope -y sigma(a (1 - y z)), a
logistic residual of the score a (z - y). Its sharpness a grows as the noise falls: the loss is off
by at most log 2 / a a row, and only near the corner.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from sulq.learn.descent import evidence, find_spread, find_view, first_weights
from sulq.learn.features import Array, published
from sulq.learn.linear_classes import LinearClassifier, Problem, rounds_of, strength
from sulq.learn.spending import Purse
from sulq.learn.table import Table
from sulq.query.sum_query import outer
from sulq.query.vectors import concat, ones, residual, signed

DEFAULT_C = 1.0
SHARPNESS = (3.0, 10.0, 30.0, 100.0, 300.0)
PATIENCE = 30
"""Rounds that pay for one more stage of sharpness."""
CURVATURE = 0.4
"""How the rounded hinge bends over all rows: about the density of y z at 1."""


class LinearSVC(LinearClassifier):
    """The widest margin between two classes; for more, each class against the rest.

    `C` is scikit-learn's: minimise |w|^2 / 2 + C * sum of hinges, w per bounds-scaled coordinate,
    not the intercept (default 1).
    Learned: `coef_`, `intercept_` in user units, `coef_error_` (noise only), `n_iter_`.
    """

    _methods = ("auto",)

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

    def _learn(self, table: Table, purse: Purse) -> None:
        assert table.label is not None  # noqa: S101
        label = table.label
        truths = [label.truth(place) for place in range(len(label.classes))]
        view = find_view(table, purse)
        if label.binary:
            truths = truths[1:]
            sums, error = purse.sums("moments", table.outer(ones(), signed(view.held, truths[0])))
            moments, noise = sums, error
            lead = float(sums[0, 0]) / view.bias / 2
            counts = view.labelled / 2 + np.array([-lead, lead])
        else:
            sums, error = purse.sums("moments", table.outer(label.one_hot(), view.held))
            moments, noise = 2 * sums - sums.sum(axis=0), error * math.sqrt(len(sums))
            counts = sums[:, 0] / view.bias
        spread = find_spread(table, purse, view)
        clear = evidence(sums, error, spread)
        begun = first_weights(moments, noise, spread, 1.0)
        penalty = view.penalty(1 / strength(self.C, DEFAULT_C))
        rounds = rounds_of(purse.plan)

        def ask(sharpness: float, w: Array) -> tuple[Array, float]:
            slopes = []
            for weights, truth in zip(w, truths, strict=True):
                scored = concat(view.scored, signed(ones(), truth))
                both = published(sharpness * np.append(weights, -1.0))
                slopes.append(residual(scored, both, truth, "logistic"))
            found, wrong = purse.sums("rounds", table.outer(concat(*slopes), view.held))
            return found + penalty * w, wrong

        if rounds:
            whole = purse.plan.share("rounds") * rounds
            noise = purse.error(outer(ones(), view.held), whole) * math.sqrt(len(truths))
        curvature = np.full(len(truths), CURVATURE)
        stages = tuple(partial(ask, sharpness) for sharpness in SHARPNESS[: 1 + rounds // PATIENCE])
        self._solve(purse, view, spread, Problem(begun, stages, curvature, penalty, noise))
        self._judge(clear, counts, error / view.bias, table)
