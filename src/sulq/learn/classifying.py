"""What every classifier shares: classes, predictions, and the majority when nothing more is known.

A classifier never answers worse than it can justify: where its answers are below their noise it
predicts the most frequent class, and says so.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from sulq.errors import InvalidQuery
from sulq.learn.estimator import Learner
from sulq.learn.features import Array
from sulq.learn.table import LabelKind

CLEAR = 1.65
"""Deviations above noise below which a classifier doubts itself: 1 in 20 by chance."""


def deviations(sums: Array, error: float, freedom: int) -> float:
    """How far noisy contrasts stand out of noise alone, by their sum of squares."""
    if error <= 0 or freedom <= 0:
        return math.inf
    return (float((sums**2).sum()) / error**2 - freedom) / math.sqrt(2 * freedom)


class ClassLearner(ClassifierMixin, Learner):  # type: ignore[misc]
    """A Learner that predicts a Category, a Flag or a condition."""

    _label: LabelKind = "classes"

    majority_: int | None = None
    """The place of the class that every row gets; None where more was learned."""

    def _scores(self, rows: Any) -> Array:
        """Log-odds up to a constant: one row per public row, one column per class."""
        raise NotImplementedError

    def _give_up(self, counts: Array, why: str) -> None:
        """Predict the most frequent class from noisy class counts, and say why."""
        self.majority_ = int(np.argmax(counts))
        held = np.maximum(counts, 1e-9)
        self.class_log_prior_ = np.log(held / held.sum())
        chosen = self.classes_.tolist()[self.majority_]
        self._doubt(f"{why}; predicting the most frequent class, {chosen!r}")

    def _doubt_unless(self, deviations: float) -> None:
        """Say so where what tells the classes apart is within its noise."""
        if self.majority_ is None and deviations < CLEAR:
            self._doubt(
                f"what tells the classes apart is {deviations:+.1f} deviations from noise alone:"
                " take the predictions for a guess, or bring more rows or credits"
            )

    def decision_function(self, rows: Any) -> Array:
        """Scores of public rows: of the second class if there are two, else one column each."""
        self._check_fitted()
        scores = self._all_scores(rows)
        if len(self.classes_) == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores

    def predict_log_proba(self, rows: Any) -> Array:
        scores = self._all_scores(rows)
        top = scores.max(axis=1, keepdims=True)
        return np.asarray(scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True)))

    def predict_proba(self, rows: Any) -> Array:
        """Class probabilities of public rows."""
        return np.asarray(np.exp(self.predict_log_proba(rows)))

    def predict(self, rows: Any) -> Any:
        """The likeliest class of each public row."""
        places = self._all_scores(rows).argmax(axis=1)
        return self.classes_[places]

    def _all_scores(self, rows: Any) -> Array:
        self._check_fitted()
        if self.majority_ is None:
            return self._scores(rows)
        count = len(self._coordinates(rows))
        scores = np.tile(self.class_log_prior_, (count, 1))
        scores[:, self.majority_] += 1e-9
        return scores

    def _codes(self, labels: Any) -> Array:
        """Public labels as places in `classes_`."""
        known = {value: place for place, value in enumerate(self.classes_.tolist())}
        found = np.asarray(labels).tolist()
        unknown = [value for value in found if value not in known]
        if unknown:
            raise InvalidQuery(f"labels must be among {list(known)[:20]}, got {unknown[0]!r:.40}")
        return np.array([known[value] for value in found])
