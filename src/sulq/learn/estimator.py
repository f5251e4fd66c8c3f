"""Learner: scikit-learn's conventions over an Oracle. Count, plan, ask, learn, in one place."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Self

import numpy as np

from sulq.errors import InvalidQuery, TooNoisy
from sulq.learn import plots
from sulq.learn.checks import whole
from sulq.learn.features import Array
from sulq.learn.spending import FitQuote, Plan, Purse, cap_of, default_notes
from sulq.learn.table import COUNT_SHARE, LabelKind, Table
from sulq.oracle import Credits, Oracle
from sulq.query.expressions import Expression
from sulq.query.statistics import count
from sulq.query.vector_values import Vector
from sulq.schema.columns import Schema

try:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
except ImportError as missing:  # pragma: no cover
    raise ImportError("learning needs scikit-learn: pip install 'sulq[learn]'") from missing


class NoisyResult(UserWarning):
    """What was learned is partly below its noise; the message says what and what would help."""


class Learner(BaseEstimator):  # type: ignore[misc]
    """What every learner shares. A subclass says how it plans and what it makes of the answers.

    Parameters all learners take: `credits` caps the spending (default: a tenth of what is left; of
    a ledger in memory, all of it), `method` ("auto", or "paper" for the papers' own algorithm),
    `random_state` seeds starts, never noise; `on_noise` is "raise" (TooNoisy) or "warn";
    `progress` shows a bar (default: on a terminal).
    """

    _label: LabelKind = "none"
    _methods: tuple[str, ...] = ("auto", "paper")

    credits: Any
    method: str
    random_state: Any
    on_noise: str
    progress: bool | None
    notes_: tuple[str, ...]

    # --- what a subclass writes -----------------------------------------------------------------

    def _plan(self, table: Table) -> Plan:
        """The questions and their shares, from public facts (and the noisy row count) only."""
        raise NotImplementedError

    def _learn(self, table: Table, purse: Purse) -> None:
        """Ask through the purse, set the learned attributes."""
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
        with Purse(oracle, table.cap, type(self).__name__, self.progress) as purse:
            try:
                purse.follow(Plan("count", ()))
                table = table.counted(purse)
                purse.follow(self._plan(table))
                self.method_ = purse.plan.method
                self._remember(table)
                self._learn(table, purse)
            except BaseException:
                self._forget()  # half a model is none
                raise
            finally:
                self.credits_ = Credits(purse.spent)
                self.receipts_ = tuple(purse.receipts)
                self.reused_ = tuple(purse.reused)
        self.notes_ = (*said, *purse.plan.notes, *self.notes_)
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
            whole("rows", rows)
        table = self._table(oracle, features, label, where).supposing(rows)
        plan = self._plan(table).with_notes(default_notes(oracle, self.credits))
        if not table.public_rows:
            assumed = f"supposing {table.rows:,.0f} rows" + ("" if rows else "; say rows=...")
            plan = plan.with_notes([f"{COUNT_SHARE:.0%} of it counts the rows", assumed])
        return FitQuote(table.cap, oracle.remaining - table.cap, plan)

    def _table(
        self,
        oracle: Oracle,
        features: Sequence[str] | Vector,
        label: object,
        where: Expression | None,
    ) -> Table:
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
        if self.method not in self._methods:
            raise InvalidQuery(f"method must be one of {list(self._methods)}, got {self.method!r}")
        if self.on_noise not in ("raise", "warn"):
            raise InvalidQuery(f'on_noise must be "raise" or "warn", got {self.on_noise!r}')
        try:
            np.random.default_rng(self.random_state)
        except (TypeError, ValueError):
            raise InvalidQuery(
                f"random_state must be None or a whole number from 0, got {self.random_state!r:.40}"
            ) from None
        cap = cap_of(oracle, self.credits)
        table = Table.of(oracle, features, label, self._label, where, cap)
        for condition in (label, where):
            if isinstance(condition, Expression):  # refused here, or not at all
                oracle.quote(count(where=condition), credits=cap)
        return table

    def _forget(self) -> None:
        """A fit begins anew: nothing of an earlier one stays."""
        for name in set(vars(self)) - set(self.get_params(deep=False)):
            delattr(self, name)

    def _remember(self, table: Table) -> None:
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

    # --- a picture ------------------------------------------------------------------------------

    def plot(self, *public: Any, title: str | None = None, **options: Any) -> Any:
        """An Altair chart of what was learned; of public rows and labels too, where given.

        `sulq.learn.plots.save(chart, path)` writes it as .svg, .png or .html.
        """
        self._check_fitted()
        return plots.plot(self, *public, title=title, **options)


def learned_within(learner: Learner, table: Table, purse: Purse, share: float) -> None:
    """Let another learner learn on a share of the credits; what it pays is paid from `purse`."""
    credits = purse.credits(share)
    part = replace(table, cap=credits / Fraction(table.share))
    with Purse(purse.oracle, credits, type(learner).__name__, False) as own:
        own.follow(learner._plan(part))
        learner.method_ = own.plan.method
        learner._remember(part)
        try:
            learner._learn(part, own)
        finally:
            purse.spent += own.spent
            purse.receipts += own.receipts
            purse.reused += own.reused
