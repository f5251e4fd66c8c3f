"""Learner: scikit-learn's conventions over an Oracle. Count, plan, ask, learn, in one place."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin

from sulq.answers.oracle import Credits, Oracle
from sulq.answers.statistics import count
from sulq.errors import InvalidQuery, TooNoisy
from sulq.kernel.query.expressions import Expression
from sulq.kernel.query.vectors import Vector, concat, nearest, ones, project
from sulq.kernel.schema.columns import Schema
from sulq.learn.budget import FitBudget, FitPlan, FitQuote, budget_of, default_notes
from sulq.learn.dataset import COUNT_SHARE, FitData, LabelKind
from sulq.learn.features import Array, published
from sulq.learn.parameters import (
    NONE,
    Constraints,
    InstanceOf,
    Interval,
    OneOf,
    Whole,
    check_parameter,
)
from sulq.learn.plotting import registry
from sulq.learn.summaries import ClassShares, ClassTest, Coefficients, Summary

try:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
except ImportError as missing:  # pragma: no cover
    raise ImportError("learning needs scikit-learn: pip install 'sulq[learn]'") from missing


class NoisyResult(UserWarning):
    """What was learned is partly below its noise; the message says what and what would help."""


class Learner(BaseEstimator):  # type: ignore[misc]
    """The base class of all learners: parameters, `quote`, `fit`, `summary` and `plot`.

    A learner asks an oracle for noisy sums and sees nothing else, so it needs no privacy proof of
    its own. It follows scikit-learn: parameters are stored untouched, what was learned ends in
    `_`. A subclass writes `_plan` (questions and their shares of the credits) and `_learn`.

    Parameters
    ----------
    credits : number, optional
        The most that a fit may spend. Without it, a tenth of what is left; of a ledger in memory,
        all of it.
    method : str
        "auto", or "paper" for the papers' own algorithm, where there is one.
    random_state : int or Generator, optional
        Seeds random starts. It never seeds noise.
    on_noise : {"raise", "warn"}
        What to do if the result is below its noise: raise TooNoisy, or warn with NoisyResult.
    progress : bool, optional
        Whether to show a progress bar. Without it, on a terminal.

    Attributes
    ----------
    credits_ : Fraction
        What the fit spent, also if it failed.
    receipts_, reused_ : tuple
        Receipts of the answers that were charged, and of stored answers that were free.
    method_ : str
        The algorithm that was used.
    notes_ : tuple of str
        What a user should know about this fit.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        The names of the columns.

    Notes
    -----
    A learned attribute holds noisy sums and what follows from them, nothing per row.

    Examples
    --------
    >>> from sulq.learn import PCA
    >>> PCA(credits=40).quote(db, ["age", "income"]).method    # free
    'gram'
    """

    _label: LabelKind = "none"
    _parameter_constraints: ClassVar[Constraints] = {
        "credits": [Interval(0, math.inf), NONE],
        "method": [OneOf("auto", "paper")],
        "random_state": [Whole(0), InstanceOf(np.random.Generator, "a numpy Generator"), NONE],
        "on_noise": [OneOf("raise", "warn")],
        "progress": [OneOf(True, False, None)],
    }

    credits: Any
    method: str
    random_state: Any
    on_noise: str
    progress: bool | None
    notes_: tuple[str, ...]

    # --- what a subclass writes -----------------------------------------------------------------

    def _plan(self, table: FitData) -> FitPlan:
        """The questions and their shares, from public facts (and the noisy row count) only."""
        raise NotImplementedError

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        """Ask through the budget, set the learned attributes."""
        raise NotImplementedError

    # --- the flow -------------------------------------------------------------------------------

    def fit(
        self,
        oracle: Oracle,
        features: Sequence[str] | Vector,
        label: str | Expression | None = None,
        *,
        where: Expression | None = None,
    ) -> Self:
        """Learn from an oracle: column names (or `PCA.as_vector()`), and the column to predict.

        `where` keeps the rows it is true for.
        """
        table = self._table(oracle, features, label, where)
        self._plan(table.supposing(None))  # wrong settings are refused before the rows are counted
        said = default_notes(oracle, self.credits)
        self._forget()
        with FitBudget(oracle, table.cap, type(self).__name__, self.progress) as budget:
            try:
                budget.follow(FitPlan("count", ()))
                table = table.counted(budget)
                budget.follow(self._plan(table))
                self.method_ = budget.plan.method
                self._remember(table)
                self._learn(table, budget)
            except BaseException:
                self._forget()  # half a model is none
                raise
            finally:
                self.credits_ = Credits(budget.spent)
                self.receipts_ = tuple(budget.receipts)
                self.reused_ = tuple(budget.reused)
        self.notes_ = (*said, *budget.plan.notes, *self.notes_)
        return self

    def quote(
        self,
        oracle: Oracle,
        features: Sequence[str] | Vector,
        label: str | Expression | None = None,
        *,
        where: Expression | None = None,
        rows: int | None = None,
    ) -> FitQuote:
        """What a fit would cost at most, and how it would be spent; free.

        Where the number of rows is private, `rows` states a guess that the plan rests on.
        """
        if rows is not None:
            check_parameter("rows", rows, [Whole()])
        table = self._table(oracle, features, label, where).supposing(rows)
        plan = self._plan(table).with_notes(default_notes(oracle, self.credits))
        if not table.public_rows:
            assumed = f"supposing {table.rows:,.0f} rows" + ("" if rows else "; state `rows`")
            plan = plan.with_notes([f"{COUNT_SHARE:.0%} of it counts the rows", assumed])
        return FitQuote(table.cap, oracle.remaining - table.cap, plan)

    def _table(
        self,
        oracle: Oracle,
        features: Sequence[str] | Vector,
        label: object,
        where: Expression | None,
    ) -> FitData:
        if not isinstance(getattr(oracle, "schema", None), Schema):
            raise InvalidQuery(
                'fit takes a published table and the names of its columns, fit(db, ["age", "income"'
                f'], "smoker"), got a {type(oracle).__name__}: a learner asks the table and never'
                " sees a row; publish the rows with Database.open"
            )
        if label is not None and not isinstance(label, str | Expression):
            raise InvalidQuery(
                f"the label is the name of a column or a condition, got a {type(label).__name__}:"
                " the values stay in the table"
            )
        self._check_parameters()
        cap = budget_of(oracle, self.credits)
        table = FitData.of(oracle, features, label, self._label, where, cap)
        for condition in (label, where):
            if isinstance(condition, Expression):  # refused here, or not at all
                oracle.quote(count(where=condition), credits=cap)
        return table

    @classmethod
    def parameter_constraints(cls) -> Constraints:
        """Return what each parameter may be: a class adds to its bases, or narrows them."""
        found: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            found |= vars(base).get("_parameter_constraints", {})
        return found

    def _check_parameters(self) -> None:
        """Raise InvalidQuery if a parameter breaks its constraints. Reads no table."""
        for name, constraints in self.parameter_constraints().items():
            check_parameter(name, getattr(self, name), constraints)

    def _forget(self) -> None:
        """A fit begins anew: nothing of an earlier one stays."""
        for name in set(vars(self)) - set(self.get_params(deep=False)):
            delattr(self, name)

    def _remember(self, table: FitData) -> None:
        """Public facts that prediction needs; nothing per row."""
        self.notes_ = ()
        self._features = table.features
        names = table.features.names if table.features.vector is None else table.features.keys
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        if table.label is not None and table.label.classes:
            self.classes_ = np.array(table.label.classes)

    # --- saying so ------------------------------------------------------------------------------

    def _note(self, text: str) -> None:
        """Something a user should know, not a failure."""
        self.notes_ = (*self.notes_, text)

    def _doubt(self, text: str) -> None:
        """Partly below the noise: kept as a note, and warned of."""
        self._note(text)
        warnings.warn(text, NoisyResult, stacklevel=4)

    def _too_noisy(self, text: str) -> None:
        """Below the noise: raise TooNoisy, or warn where the user asked for that."""
        if self.on_noise == "raise":
            raise TooNoisy(text)
        self._doubt(text)

    # --- public rows ----------------------------------------------------------------------------

    def _check_fitted(self) -> None:
        if not hasattr(self, "_features"):
            raise NotFittedError(f"{type(self).__name__} has not learned yet: call fit first")

    def _coordinates(self, rows: Any, missing: Array | None = None) -> Array:
        """Public rows as this learner's coordinates."""
        self._check_fitted()
        return self._features.encode(rows, missing)

    # --- a summary and a picture ----------------------------------------------------------------

    def summary(self) -> Summary:
        """Return what was learned: `records()` for a table, `facts`, and what a chart draws."""
        self._check_fitted()
        return self._summary()

    def _summary(self) -> Summary:
        raise InvalidQuery(f"{type(self).__name__} has no summary")

    def plot(self, *public: Any, title: str | None = None, **options: Any) -> Any:
        """Return an Altair chart of what was learned.

        `sulq.learn.plotting.registry.save(chart, path)` writes it as .svg, .png or .html.
        """
        return registry.plot(self.summary(), *self._tested(public), title=title, **options)

    def _tested(self, public: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the positional arguments of `plot` as the chart takes them."""
        return public


def learn_by(learner: Learner, table: FitData, budget: FitBudget) -> None:
    """Let another learner learn from a budget that already follows its plan."""
    learner.method_ = budget.plan.method
    learner._remember(table)
    learner._learn(table, budget)


def learned_within(learner: Learner, table: FitData, budget: FitBudget, share: float) -> None:
    """Let another learner learn on a share of the credits; what it pays is paid from `budget`."""
    credits = budget.credits(share)
    part = replace(table, cap=credits / Fraction(table.share))
    with FitBudget(budget.oracle, credits, type(learner).__name__, False) as own:
        own.follow(learner._plan(part))
        try:
            learn_by(learner, part, own)
        finally:
            budget.spent += own.spent
            budget.receipts += own.receipts
            budget.reused += own.reused


def largest(vector: Vector, weights: Array) -> Vector:
    """One-hot of the largest score: the nearest of t e_k, since |s - t e_k|^2 falls with s_k."""
    scaled = np.nan_to_num(weights / max(float(np.abs(weights).max()), 1e-300))
    if not np.round(scaled * 2**24).any():  # all scores are alike: the first class
        return project(ones(), np.eye(len(weights))[:, :1].tolist())
    return nearest(project(vector, published(scaled)), np.eye(len(weights)).tolist())


# What every classifier shares: classes, predictions, and the majority when nothing more is known.
#
# A classifier never answers worse than it can justify: where its answers are below their noise it
# predicts the most frequent class, and says so.


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

    def give_up(self, counts: Array, why: str) -> None:
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
        scores = self.class_scores(rows)
        if len(self.classes_) == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores

    def predict_log_proba(self, rows: Any) -> Array:
        scores = self.class_scores(rows)
        top = scores.max(axis=1, keepdims=True)
        return np.asarray(scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True)))

    def predict_proba(self, rows: Any) -> Array:
        """Class probabilities of public rows."""
        return np.asarray(np.exp(self.predict_log_proba(rows)))

    def predict(self, rows: Any) -> Any:
        """The likeliest class of each public row."""
        places = self.class_scores(rows).argmax(axis=1)
        return self.classes_[places]

    def summary(self) -> Summary:
        """Return what was learned; where that is below its noise, the shares of the classes."""
        self._check_fitted()
        if self.majority_ is None:
            return self._summary()
        predicts = {"predicts": self.classes_[self.majority_]}
        return self._class_shares(self.class_log_prior_, facts=predicts, notes=self.notes_)

    def _class_shares(self, logs: Array, **more: Any) -> ClassShares:
        held = np.exp(logs)
        shares = held / max(float(held.sum()), 1e-300)
        name = type(self).__name__
        return ClassShares(name=name, classes=tuple(self.classes_), shares=shares, **more)

    def _coefficients(self, errors: Array | None = None) -> Coefficients:
        """Return the summary of `coef_`: one row of weights for two classes, else one for each."""
        matrix = np.atleast_2d(self.coef_)
        return Coefficients(
            name=type(self).__name__,
            keys=tuple(self._features.keys),
            widths=self._features.units[1],
            matrix=matrix,
            errors=errors,
            classes=tuple(self.classes_[1:] if len(matrix) == 1 else self.classes_),
        )

    def _tested(self, public: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the classes and probabilities of public test rows, for a ROC curve."""
        if not public:
            return ()
        if len(public) != 2 or any(part is None for part in public):
            raise InvalidQuery("a ROC curve needs both: plot(X_test, y_test), of public rows")
        rows, labels = public
        truth, chances = self._codes(labels), self.predict_proba(rows)
        if len(truth) != len(chances):
            raise InvalidQuery(
                f"got {len(chances)} rows and {len(truth)} labels; want as many of both"
            )
        return (ClassTest(tuple(self.classes_), truth, chances),)

    def as_choice(self) -> Vector:
        """Return the predicted class as a one-hot vector, for use inside a question."""
        self._check_fitted()
        if self.majority_ is not None:
            chosen = np.eye(len(self.classes_))[:, self.majority_ : self.majority_ + 1]
            return project(ones(), chosen.tolist())
        return self._choice()

    def _choice(self) -> Vector:
        """From `coef_` and `intercept_` per user unit; two classes have one row of them."""
        offset, width = self._features.units
        coef, level = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        weights = np.column_stack([coef * width, level + coef @ offset])
        if len(weights) == 1:
            weights = np.vstack([-weights / 2, weights / 2])
        return largest(concat(self._features.as_vector(), ones()), weights)

    def class_scores(self, rows: Any) -> Array:
        """Return the score of each class for public rows; only their differences matter."""
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
