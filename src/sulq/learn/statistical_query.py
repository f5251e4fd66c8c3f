"""The statistical-query oracle and learners written only on it. S0.10, S4.11, S4.12

`stat(oracle, predicate, tau)` is the share of rows with a property, within tau. Whatever learns
from such shares alone (Kearns 1998) learns privately here: conjunctions, decision lists, and any
`SQLearner` of your own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import and_
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sulq.answers.oracle import Oracle, Quote
from sulq.answers.statistics import count
from sulq.errors import InvalidQuery, TooNoisy
from sulq.formatting import decimal_left, decimal_text
from sulq.kernel.query.expressions import Expression, as_expression, col
from sulq.kernel.query.sum_query import Statistic
from sulq.kernel.query.vectors import cells, ones
from sulq.kernel.schema.columns import Category, Flag
from sulq.learn.budget import FitBudget, FitPlan, FitStep
from sulq.learn.dataset import FitData
from sulq.learn.estimator import ClassLearner
from sulq.learn.features import Array
from sulq.learn.parameters import NONE, Constraints, Interval, OneOf, Whole, check_parameter
from sulq.learn.summaries import Clauses, Summary


@dataclass(frozen=True, slots=True)
class Stat:
    """The share of rows with a property: within `tau` of the table's, with this confidence."""

    value: float
    tau: float
    confidence: float
    credits: Fraction
    receipts: tuple[Any, ...]

    def __float__(self) -> float:
        return self.value


def stat(
    oracle: Oracle,
    predicate: Expression,
    tau: float,
    *,
    confidence: float = 0.99,
    queries: int = 1,
    rows: int | None = None,
) -> Stat:
    """The share of rows where `predicate` is true, within tau. One question, not many. S4.11

    `queries` such shares hold together with this confidence. Under add-remove (or a person unit)
    the number of rows is private: state a public lower bound, `rows`; it is counted too.
    """
    questions, half, each = _questions(oracle, predicate, tau, confidence, queries, rows)
    quotes = stat_quote(oracle, predicate, tau, **_terms(confidence, queries, rows))
    _affordable(oracle, questions, quotes, half, each)
    answers = [oracle.ask(question, within=half, confidence=each) for question in questions]
    total = float(answers[1]) if len(answers) > 1 else float(oracle.size or 1)
    value = min(max(float(answers[0]) / max(total, 1.0), 0.0), 1.0)
    paid = sum((answer.credits for answer in answers), Fraction(0))
    held = tau
    if rows is not None and len(answers) > 1 and total < rows:  # fewer than stated: say how much
        held = min(2 * half / max(total - half, half), 1.0)
    return Stat(value, held, confidence, paid, tuple(answer.receipt for answer in answers))


def _terms(confidence: float, queries: int, rows: int | None) -> dict[str, Any]:
    return {"confidence": confidence, "queries": queries, "rows": rows}


def _affordable(
    oracle: Oracle,
    questions: Sequence[Statistic],
    quotes: Sequence[Quote],
    half: float,
    confidence: float,
) -> None:
    """Raise TooNoisy before anything is charged if these quotes cost more than is left.

    What would do is read off the half-width that the credits left would buy.
    """
    due, left = sum((quote.credits for quote in quotes), Fraction(0)), oracle.remaining
    if due <= left:
        return
    factor = math.inf
    if left > 0:
        each = left / len(questions)
        bars = (oracle.quote(one, credits=each).interval(confidence) for one in questions)
        factor = max(float(high) for _, high in bars) / half
    raise TooNoisy(
        f"this tolerance costs {decimal_left(due)} credits, {decimal_text(left)} are left:"
        f" {factor:.3g} times the rows, the epsilon or the tau would do"
    )


def stat_quote(
    oracle: Oracle,
    predicate: Expression,
    tau: float,
    *,
    confidence: float = 0.99,
    queries: int = 1,
    rows: int | None = None,
) -> list[Quote]:
    """What `stat` would ask, priced; free."""
    questions, half, each = _questions(oracle, predicate, tau, confidence, queries, rows)
    return [oracle.quote(question, within=half, confidence=each) for question in questions]


def _questions(
    oracle: Oracle,
    predicate: Expression,
    tau: float,
    confidence: float,
    queries: int,
    rows: int | None,
) -> tuple[list[Any], float, float]:
    """The questions, the half-width each may be off by, and with what confidence."""
    check_parameter("tau", tau, [Interval(0, 1)])
    check_parameter("confidence", confidence, [Interval(0, 1)])
    check_parameter("queries", queries, [Whole()])
    check_parameter("rows", rows, [Whole(), NONE])
    failure = (1 - confidence) / queries
    asked = count(where=as_expression(predicate))
    if oracle.size is not None and oracle.schema.unit == "row":
        return [asked], tau * oracle.size, 1 - failure
    if rows is None:
        raise InvalidQuery("the number of rows is private here; state a lower bound with rows=")
    # |(S+a)/(n+b) - S/n| <= (|a|+|b|)/(n+b) <= tau for |a|, |b| <= tau n / (2 + tau)
    return [asked, count()], tau * rows / (2 + tau), 1 - failure / 2


def repetitions(variance: float, tau: float, rows: int, queries: int, failure: float) -> int:
    """How often to ask at this variance so that all shares are within tau. S4.11, corrected"""
    return math.ceil(2 * variance * math.log(2 * queries / failure) / (tau * rows) ** 2)


def least_rows(epsilon: float, delta: float, taus: Sequence[float], failure: float) -> float:
    """The rows that suffice for all these tolerances, with T >= 2 q and the papers' noise. S4.12"""
    total = math.fsum(tau**-2 for tau in taus)
    logs = math.log(1 / delta) * math.log(2 * len(taus) / failure)
    return math.sqrt(8 * logs * total) / epsilon


# The statistical-query oracle: shares of rows within a tolerance, and their price. S0.10, S4.11


__all__ = [
    "Clause",
    "Conjunction",
    "DecisionList",
    "Literal",
    "SQLearner",
    "Stat",
    "least_rows",
    "repetitions",
    "stat",
    "stat_quote",
]

Bits = NDArray[np.bool_]
Ask = Callable[[Expression], float]
CHECK_SHARE = 0.1
"""Of the credits, for how often the clauses are right."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A column has a value, or has not."""

    column: str
    value: Any
    positive: bool = True

    @property
    def condition(self) -> Expression:
        held: Expression = (
            col(self.column) if self.value is True else col(self.column) == self.value
        )
        return held if self.positive else ~held

    def holds(self, rows: Any) -> Bits:
        """On public rows; a missing value is neither."""
        given = np.asarray(rows[self.column], dtype=object)
        known = np.array([value is not None and value == value for value in given], dtype=np.bool_)
        return np.asarray(known & ((given == self.value) == self.positive), dtype=np.bool_)

    def __str__(self) -> str:
        name = self.column if self.value is True else f"{self.column}={self.value}"
        return name if self.positive else f"not {name}"


@dataclass(frozen=True, slots=True)
class Clause:
    """If all of `given` hold, predict `then`."""

    given: tuple[Literal, ...]
    then: bool

    def __str__(self) -> str:
        return f"if {' and '.join(map(str, self.given)) or 'anything'}: {self.then}"


class SQLearner(ClassLearner):
    """The base of learners that see only shares of rows: subclass it and write `search`.

    Parameters
    ----------
    tau : float, optional
        The tolerance of each share. Without it, what the credits buy.
    confidence : float
        The chance that all shares hold together.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    clauses_ : list of Clause
        Clauses in the order they are tried.
    otherwise_ : bool
        The prediction if no clause holds.
    tau_ : float
        The tolerance that was reached.
    accuracy_, accuracy_error_ : float
        The share of rows predicted rightly, from one last question, and its error.
    classes_, majority_ : ndarray, and int or None
        The classes, and the place of the one that every row gets where noise hides the rest.

    Notes
    -----
    Where the most frequent class is right more often than the clauses, it is predicted, with a
    NoisyResult warning.

    Examples
    --------
    >>> from sulq.learn import SQLearner
    >>> from sulq.learn.statistical_query import Clause
    >>> class BestLiteral(SQLearner):
    ...     def questions(self, literals):
    ...         return 2 * len(literals)
    ...     def search(self, ask, literals, label):
    ...         def right(literal):
    ...             return ask(literal.condition & label) + ask(~literal.condition & ~label)
    ...         return [Clause((max(literals, key=right),), True)], False
    >>> BestLiteral(credits=50).quote(db, ["blood"], "smoker").method
    'statistical queries'
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "tau": [Interval(0, 1), NONE],
        "confidence": [Interval(0, 1)],
        "method": [OneOf("auto")],
    }

    def __init__(
        self,
        tau: float | None = None,
        confidence: float = 0.95,
        *,
        credits: Any = None,
        method: str = "auto",
        random_state: int | None = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.tau = tau
        self.confidence = confidence
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    # --- what a learner of your own writes ------------------------------------------------------

    def questions(self, literals: Sequence[Literal]) -> int:
        """At most so many shares will be asked."""
        raise NotImplementedError

    def search(
        self, ask: Ask, literals: Sequence[Literal], label: Expression
    ) -> tuple[list[Clause], bool]:
        """Clauses in the order they are tried, and what to say if none holds."""
        raise NotImplementedError

    # --- the rest ---------------------------------------------------------------------------------

    def _plan(self, table: FitData) -> FitPlan:
        assert table.label is not None  # noqa: S101
        if not table.label.binary:
            raise InvalidQuery("a statistical-query learner predicts yes or no: two classes")
        asked = self.questions(literals_of(table))
        check = CHECK_SHARE * table.share
        steps = (FitStep("share", table.share - check, asked), FitStep("check", check))
        return FitPlan("statistical queries", steps)

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        assert table.label is not None  # noqa: S101
        literals = literals_of(table)
        asked = self.questions(literals)
        share = budget.plan.share("share")
        failure = (1 - self.confidence) / asked
        half = self._half_width(table, budget, literals[0].condition, share, failure)
        reached = half / table.rows
        if self.tau is not None and reached > self.tau:
            factor = reached / self.tau
            raise TooNoisy(
                f"{asked} shares within {self.tau:g} need {factor:.2g} times the rows or"
                f" {factor**2:.2g} times the credits; these reach {reached:.2g}"
            )
        if self.tau is not None:  # no finer than asked for: what is left stays unspent
            power = 2 if table.gaussian else 1
            share *= (reached / self.tau) ** power
            reached = self.tau
        self.tau_ = min(reached, 1.0)

        def ask(predicate: Expression) -> float:
            kept = predicate if table.where is None else predicate & table.where
            answer = budget.ask("share", count(where=kept), share)
            return min(max(float(answer) / table.rows, 0.0), 1.0)

        self.clauses_, self.otherwise_ = self.search(ask, literals, table.label.truth())
        self._compare(table, budget)

    def _compare(self, table: FitData, budget: FitBudget) -> None:
        """Rows right and wrong under every clause, in one question; the majority if it is better.

        A row stands where its first clause holds, so the cells exclude each other. V.3
        """
        assert table.label is not None  # noqa: S101
        yes, no = table.label.truth(1), table.label.truth(0)
        split: list[Expression] = []
        for clause in self.clauses_:
            held = _all([literal.condition for literal in clause.given])
            split += [yes, no] if held is None else [held & yes, held & no]
        counts, error = budget.sums("check", table.outer(ones(), cells(*split, yes, no)))
        said = [*(clause.then for clause in self.clauses_), self.otherwise_]
        found = counts[0].reshape(-1, 2)
        right = sum(pair[0] if then else pair[1] for pair, then in zip(found, said, strict=True))
        total = max(float(found.sum()), 1.0)
        self.accuracy_ = min(max(float(right) / total, 0.0), 1.0)
        self.accuracy_error_ = min(error * math.sqrt(len(said)) / total, 1.0)
        classes = np.array([found[:, 1].sum(), found[:, 0].sum()])
        if right + self.accuracy_error_ * total < classes.max():
            self.give_up(classes, f"the clauses are right on {self.accuracy_:.0%} of the rows")
        elif self.tau_ > 0.25:
            self._doubt(f"each share is only known within {self.tau_:.2g}: take this for a guess")

    def _half_width(
        self, table: FitData, budget: FitBudget, question: Expression, share: float, failure: float
    ) -> float:
        quote = table.oracle.quote(count(where=question), credits=budget.credits(share))
        half = quote.interval(1 - failure)[1]
        return 0.0 if half is None else float(np.max(half))

    def _scores(self, rows: Any) -> Array:
        self._coordinates(rows)  # checks the columns
        table = _frame(rows, self._features.names)
        count_ = len(table[self._features.names[0]])
        said = np.full(count_, self.otherwise_)
        open_ = np.full(count_, True)
        for clause in self.clauses_:
            held = open_.copy()
            for literal in clause.given:
                held &= literal.holds(table)
            said[held] = clause.then
            open_ &= ~held
        return np.column_stack([~said, said]).astype(np.float64)

    def _summary(self) -> Summary:
        lines = tuple(self.export_text().splitlines())
        return Clauses(name=type(self).__name__, lines=lines, tau=float(self.tau_))

    def export_text(self) -> str:
        """The clauses as text."""
        return "\n".join([*map(str, self.clauses_), f"else: {self.otherwise_}"])


class Conjunction(SQLearner):
    """Learn a conjunction: the label is true where all of some literals are.

    Parameters
    ----------
    tau, confidence
        As for `SQLearner`.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    clauses_, otherwise_, tau_, accuracy_, accuracy_error_, classes_, majority_
        As for `SQLearner`.

    Notes
    -----
    A literal stays if the label is hardly ever true where the literal is false (Kearns).

    Examples
    --------
    >>> from sulq.learn import Conjunction
    >>> Conjunction(credits=50).quote(db, ["blood"], "smoker").method
    'statistical queries'
    """

    def questions(self, literals: Sequence[Literal]) -> int:
        return len(literals)

    def search(
        self, ask: Ask, literals: Sequence[Literal], label: Expression
    ) -> tuple[list[Clause], bool]:
        misses = {literal: ask(~literal.condition & label) for literal in literals}
        allowed = max(self.tau_, 0.25 / max(len(literals), 1))
        kept = tuple(literal for literal in literals if misses[literal] <= allowed)
        return [Clause(kept, True)], False


class DecisionList(SQLearner):
    """Learn a decision list: the first literal that holds decides.

    Parameters
    ----------
    tau, confidence
        As for `SQLearner`.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    clauses_, otherwise_, tau_, accuracy_, accuracy_error_, classes_, majority_
        As for `SQLearner`.

    Notes
    -----
    The literal whose rows are most of one class is chosen, again and again.

    Examples
    --------
    >>> from sulq.learn import DecisionList
    >>> DecisionList(credits=50).quote(db, ["blood"], "smoker").method
    'statistical queries'
    """

    def questions(self, literals: Sequence[Literal]) -> int:
        return 2 * len(literals) * self._length(literals)

    def _length(self, literals: Sequence[Literal]) -> int:
        return min(4, len({literal.column for literal in literals}))

    def search(
        self, ask: Ask, literals: Sequence[Literal], label: Expression
    ) -> tuple[list[Clause], bool]:
        left: Expression | None = None
        clauses: list[Clause] = []
        free = list(literals)
        then = False
        for _ in range(self._length(literals)):
            seen = []
            for literal in free:
                here = literal.condition if left is None else left & literal.condition
                covered, positive = ask(here), ask(here & label)
                error = min(positive, covered - positive) if covered > 0 else 0.0
                seen.append((covered - 3 * max(error, 0.0) - 3 * self.tau_, covered, positive))
            best = max(range(len(free)), key=lambda i: seen[i])
            worth, covered, positive = seen[best]
            if worth <= 0:
                break
            literal = free.pop(best)
            clauses.append(Clause((literal,), bool(positive > covered / 2)))
            then = not clauses[-1].then
            left = ~literal.condition if left is None else left & ~literal.condition
            free = [
                other
                for other in free
                if other.column != literal.column or other.value != literal.value
            ]
            if not free:
                break
        return clauses, then


def literals_of(table: FitData) -> list[Literal]:
    """Every literal of the features: a Flag is true or not, a Category has a value or not."""
    found = []
    for name in table.features.names:
        column = table.oracle.schema[name]
        if isinstance(column, Flag):
            found += [Literal(name, True), Literal(name, True, False)]
        elif isinstance(column, Category):
            for value in column.values or ():
                found += [Literal(name, value), Literal(name, value, False)]
        else:
            raise InvalidQuery(
                f"{name} is a Number; statistical-query learners take Flags and Categories"
            )
    if not found:
        raise InvalidQuery("features must be named columns")
    return found


def _all(conditions: Sequence[Expression]) -> Expression | None:
    """Their conjunction; None of nothing."""
    return reduce(and_, conditions) if conditions else None


def _frame(rows: Any, names: Sequence[str]) -> Any:
    """Columns by name, of a frame or of an array in the order of fit."""
    if hasattr(rows, "columns") or hasattr(rows, "keys"):
        return rows
    table = np.asarray(rows, dtype=object)
    return {name: table[:, place] for place, name in enumerate(names)}
