"""Classifier: picks the method from public facts and, where there is signal to spare, privately."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from sulq.kernel.query.vectors import Vector, bins, concat, crossed, project
from sulq.kernel.schema.columns import Category
from sulq.learn.budget import FitBudget, FitPlan, FitStep
from sulq.learn.dataset import FitData
from sulq.learn.discriminant import LinearDiscriminant, directions
from sulq.learn.estimator import ClassLearner, deviations, learn_by, learned_within
from sulq.learn.features import Array, Features, published
from sulq.learn.linear.classifiers import LogisticRegression
from sulq.learn.parameters import Constraints, OneOf
from sulq.learn.summaries import Summary
from sulq.learn.tree import DecisionTree


def hits(
    table: FitData, budget: FitBudget, learners: list[ClassLearner], share: float
) -> tuple[Array, float, Array]:
    """Noisy counts of right predictions of each, their error, and of rows in each class.

    One question of predicted class by label, for all of them; their tables' diagonals are the hits.
    """
    assert table.label is not None  # noqa: S101
    classes = len(table.label.classes)
    votes = concat(*(learner.as_choice() for learner in learners))
    found, error = budget.sums("judge", table.outer(votes, table.label.one_hot()), share)
    tables = found.reshape(len(learners), classes, classes)
    right = np.trace(tables, axis1=1, axis2=2)
    return right, error * float(np.sqrt(classes)), tables.sum(axis=1).mean(axis=0)


# PublicGrid: classes counted once in cells that public facts alone drew. For the tiniest budgets.
#
# A row touches one cell, so a pure promise counts it with the noise of one count; nothing is spent
# on finding where to split. Where a few hundred rows meet epsilon 0.1, no learned split does
# better.


QUARTERS = (0.25, 0.5, 0.75)
LEVELS = 4


class PublicGrid(ClassLearner):
    """Quarters of the mean of all Numbers and Flags, crossed with random halves of four columns.

    `random_state` draws the columns and where they are cut. Learned: `splits_` (weights and cuts
    of each axis, in coordinates), `counts_` (cells x classes), `count_error_`.
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "method": [OneOf("auto")],
    }

    def __init__(
        self,
        *,
        credits: Any = None,
        method: str = "auto",
        random_state: Any = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    def _plan(self, table: FitData) -> FitPlan:
        return FitPlan("grid", (FitStep("cells", table.share),))

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        assert table.label is not None  # noqa: S101
        self.splits_ = draw(table.features, np.random.default_rng(self.random_state))
        grid = reduce(crossed, (axis(table.features, *split) for split in self.splits_))
        counts, error = budget.sums("cells", table.outer(grid, table.label.one_hot()))
        self.counts_, self.count_error_ = counts, error
        self.majority_ = None
        apart = counts - counts.mean(axis=1, keepdims=True)
        self._doubt_unless(deviations(apart, error, len(counts) * (counts.shape[1] - 1)))

    def _summary(self) -> Summary:
        return self._class_shares(np.log(np.maximum(self.counts_.sum(axis=0), 1e-300)))

    def _scores(self, rows: Any) -> Array:
        coordinates = self._coordinates(rows)
        cell = np.zeros(len(coordinates), dtype=np.intp)
        for weights, cuts in self.splits_:
            part = np.searchsorted(np.asarray(cuts), coordinates @ np.asarray(weights), "right")
            cell = cell * (len(cuts) + 1) + part
        held = np.maximum(self.counts_, 0.0) + max(self.count_error_, 0.5)
        # a cell below its noise keeps the order of its counts, which log of the held would lose
        order = np.argsort(np.argsort(self.counts_, axis=1), axis=1)
        return np.asarray((np.log(held / held.sum(axis=1, keepdims=True)) + 1e-9 * order)[cell])


Split = tuple[list[float], list[float]]


def draw(features: Features, random: np.random.Generator) -> list[Split]:
    """The mean of all numbers in quarters; then random columns, cut near their middle."""
    blocks = _blocks(features)
    alone = [start for start, stop in blocks if stop - start == 1]
    splits: list[Split] = []
    if alone:
        mean = np.zeros(features.width)
        mean[alone] = 1 / len(alone)
        low, high = float(features.low @ mean), float(features.high @ mean)
        splits.append((published(mean), published([low + q * (high - low) for q in QUARTERS])))
    if len(blocks) == 1 and splits:
        return splits
    for place in random.permutation(len(blocks))[:LEVELS]:
        start, stop = blocks[place]
        weights = np.zeros(features.width)
        if stop - start == 1:
            weights[start] = 1.0
            low, high = float(features.low[start]), float(features.high[start])
            cut = low + (high - low) * random.uniform(0.2, 0.8)
        else:
            half = random.permutation(np.arange(start, stop))[: (stop - start) // 2]
            weights[half] = 1.0
            cut = 0.75  # a missing value is 1/K each, half of it in all
        splits.append((published(weights), published([cut])))
    return splits


def _blocks(features: Features) -> list[tuple[int, int]]:
    """(start, stop) of each column's coordinates."""
    if features.vector is not None:
        return [(place, place + 1) for place in range(features.width)]
    found: list[tuple[int, int]] = []
    start = 0
    for name in features.names:
        column = features.schema[name]
        wide = len(column.values or ()) if isinstance(column, Category) else 1
        found.append((start, start + wide))
        start += wide
    return found


def axis(features: Features, weights: list[float], cuts: list[float]) -> Vector:
    """Which side of the cuts a row's weighted sum lies on, one-hot."""
    reach = float(np.abs(weights) @ np.maximum(np.abs(features.low), np.abs(features.high))) + 1
    ends = published([-reach, *cuts, reach])
    return bins(project(features.as_vector(), [weights]), ends)


# A classifier's prediction inside a question, and how many rows several of them hit.


METHODS: dict[str, type[ClassLearner]] = {
    "discriminant": LinearDiscriminant,
    "logistic": LogisticRegression,
    "tree": DecisionTree,
    "grid": PublicGrid,
}
TRIAL = 0.15
"""Of the credits, for each method that is tried before one is chosen."""
JUDGING = 0.05
"""Of the credits, for counting the trials' hits."""
LOUD = 4.0
"""Below this many directions, a pure promise counts public cells."""
SHARP = 35.0
"""From this many directions, gradients tell two classes apart better than moments do."""
CLEAR_TWO, CLEAR_MANY = 8_000.0, 3_000.0
"""Rows over the noise of a count from which methods are tried against each other: a trial on a
part of the credits favours what learns fast, so two classes are left to gradients for longer."""


@dataclass(frozen=True)
class Trial:
    """What one method reached: hits among the rows, noisy."""

    method: str
    hits: float
    error: float


class Classifier(ClassLearner):
    """The classifier to start with: it chooses the method, and predicts the majority before noise.

    Parameters
    ----------
    method : {"auto", "discriminant", "logistic", "tree", "grid"}
        "auto" decides by public facts: rows over noise, coordinates, classes, kinds of columns.
        Where there is much signal it tries methods on a part of the credits, counts their hits, and
        gives the rest to the winner.
    credits, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    estimator_ : ClassLearner
        The classifier that was chosen.
    trials_ : tuple of Trial
        The noisy hits of each method that was tried.
    classes_, majority_ : ndarray, and int or None
        The classes, and the place of the one that every row gets where noise hides the rest.

    Notes
    -----
    Hits are counted by one question of predicted class by label.

    Examples
    --------
    >>> from sulq.learn import Classifier
    >>> Classifier(method="tree", credits=50).quote(db, ["age", "blood"], "smoker").method
    'tree'
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "method": [OneOf("auto", *METHODS)],
    }

    def __init__(
        self,
        *,
        credits: Any = None,
        method: str = "auto",
        random_state: Any = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    def _plan(self, table: FitData) -> FitPlan:
        tried = self._candidates(table)
        if len(tried) == 1:
            inner = self._made(tried[0])._plan(table)
            return FitPlan(tried[0], inner.steps, (*inner.notes, *self._advice(table)))
        shares = [FitStep(f"try {name}", TRIAL * table.share) for name in tried]
        judging = FitStep("judge", JUDGING * table.share)
        rest = table.share - sum(step.share for step in (*shares, judging))
        return FitPlan("choose", (*shares, judging, FitStep("winner", rest)))

    def _candidates(self, table: FitData) -> list[str]:
        """By public facts: one method, or several to be tried."""
        if self.method != "auto":
            return [self.method]
        if not table.gaussian and directions(table) < LOUD:
            return ["grid"]
        binary = table.label is not None and table.label.binary
        if table.features.vector is None and table.signal >= (CLEAR_TWO if binary else CLEAR_MANY):
            return ["logistic", "tree"]
        return ["logistic"] if binary and directions(table) >= SHARP else ["discriminant"]

    def _advice(self, table: FitData) -> list[str]:
        if not table.gaussian or directions(table) >= 1.5:
            return []
        return ["so few rows for this promise: one with noise='laplace' would serve better"]

    def _made(self, name: str) -> ClassLearner:
        return METHODS[name](random_state=self.random_state, on_noise="warn", progress=False)

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        tried = self._candidates(table)
        self.trials_: tuple[Trial, ...] = ()
        if len(tried) == 1:
            self.estimator_ = self._made(tried[0])
            learn_by(self.estimator_, table, budget)
        else:
            self._try(table, budget, tried)
        self.majority_ = self.estimator_.majority_
        if self.majority_ is not None:
            self.class_log_prior_ = self.estimator_.class_log_prior_
        for note in self.estimator_.notes_:
            self._note(note)

    def _try(self, table: FitData, budget: FitBudget, tried: list[str]) -> None:
        fitted = {name: self._fitted(name, table, budget, TRIAL * table.share) for name in tried}
        counted, error, classes = hits(
            table, budget, list(fitted.values()), budget.plan.share("judge")
        )
        self.trials_ = tuple(
            Trial(name, float(count), error) for name, count in zip(tried, counted, strict=True)
        )
        best = max(self.trials_, key=lambda trial: trial.hits)
        self._note(
            "chosen by noisy hits: "
            + ", ".join(f"{t.method} {t.hits / table.rows:.3f}" for t in self.trials_)
            + f" (+-{error / table.rows:.3f})"
        )
        if best.hits < float(classes.max()) - error:
            self.estimator_ = fitted[best.method]
            self.estimator_.give_up(classes, "no method hits more rows than the majority class")
            return
        self.estimator_ = self._fitted(best.method, table, budget, budget.left)
        self.method_ = best.method

    def _fitted(self, name: str, table: FitData, budget: FitBudget, share: float) -> ClassLearner:
        """A method learned on a share of the credits, from a budget of its own."""
        learner = self._made(name)
        learned_within(learner, table, budget, share)
        return learner

    def summary(self) -> Summary:
        """Return the summary of the classifier that was chosen, and its name among the facts."""
        self._check_fitted()
        found = self.estimator_.summary()
        chosen = {"chosen": type(self.estimator_).__name__} if self.majority_ is None else {}
        return replace(found, facts=chosen | found.facts)

    def _scores(self, rows: Any) -> Array:
        return self.estimator_.class_scores(rows)
