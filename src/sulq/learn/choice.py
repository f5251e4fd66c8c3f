"""Classifier: picks the method from public facts and, where there is signal to spare, privately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sulq.learn.classifying import ClassLearner
from sulq.learn.discriminant import LinearDiscriminant, directions
from sulq.learn.estimator import learned_within
from sulq.learn.features import Array
from sulq.learn.logistic import LogisticRegression
from sulq.learn.public_grid import PublicGrid
from sulq.learn.spending import Plan, Purse, Step
from sulq.learn.table import Table
from sulq.learn.tree import DecisionTree
from sulq.learn.votes import hits

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
    """The classifier to start with: it chooses the method, and answers the majority before noise.

    `method="auto"` decides by public facts (rows over noise, coordinates, classes, kinds of
    columns); with much signal it tries methods on a part of the credits, counts their hits, and
    gives the rest to the winner. Or name one of the methods.

    Learned: `estimator_` (the classifier it chose), `trials_` (hits of each method tried).
    """

    _methods = ("auto", *METHODS)

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

    def _plan(self, table: Table) -> Plan:
        tried = self._candidates(table)
        if len(tried) == 1:
            inner = self._made(tried[0])._plan(table)
            return Plan(tried[0], inner.steps, (*inner.notes, *self._advice(table)))
        shares = [Step(f"try {name}", TRIAL * table.share) for name in tried]
        judging = Step("judge", JUDGING * table.share)
        rest = table.share - sum(step.share for step in (*shares, judging))
        return Plan("choose", (*shares, judging, Step("winner", rest)))

    def _candidates(self, table: Table) -> list[str]:
        """By public facts: one method, or several to be tried."""
        if self.method != "auto":
            return [self.method]
        if not table.gaussian and directions(table) < LOUD:
            return ["grid"]
        binary = table.label is not None and table.label.binary
        if table.features.vector is None and table.signal >= (CLEAR_TWO if binary else CLEAR_MANY):
            return ["logistic", "tree"]
        return ["logistic"] if binary and directions(table) >= SHARP else ["discriminant"]

    def _advice(self, table: Table) -> list[str]:
        if not table.gaussian or directions(table) >= 1.5:
            return []
        return ["so few rows for this promise: one with noise='laplace' would serve better"]

    def _made(self, name: str) -> ClassLearner:
        return METHODS[name](random_state=self.random_state, on_noise="warn", progress=False)

    def _learn(self, table: Table, purse: Purse) -> None:
        tried = self._candidates(table)
        self.trials_: tuple[Trial, ...] = ()
        if len(tried) == 1:
            self.estimator_ = self._made(tried[0])
            self.estimator_._remember(table)
            self.estimator_.method_ = purse.plan.method
            self.estimator_._learn(table, purse)
        else:
            self._try(table, purse, tried)
        self.majority_ = self.estimator_.majority_
        if self.majority_ is not None:
            self.class_log_prior_ = self.estimator_.class_log_prior_
        for note in self.estimator_.notes_:
            self._note(note)

    def _try(self, table: Table, purse: Purse, tried: list[str]) -> None:
        fitted = {name: self._fitted(name, table, purse, TRIAL * table.share) for name in tried}
        counted, error, classes = hits(
            table, purse, list(fitted.values()), purse.plan.share("judge")
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
            self.estimator_._give_up(classes, "no method hits more rows than the majority class")
            return
        self.estimator_ = self._fitted(best.method, table, purse, purse.left)
        self.method_ = best.method

    def _fitted(self, name: str, table: Table, purse: Purse, share: float) -> ClassLearner:
        """A method learned on a share of the credits, from a purse of its own."""
        learner = self._made(name)
        learned_within(learner, table, purse, share)
        return learner

    def _scores(self, rows: Any) -> Array:
        return self.estimator_._all_scores(rows)
