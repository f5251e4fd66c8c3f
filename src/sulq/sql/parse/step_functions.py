"""Functions of one number or moment that are constant between public edges.

The month of a day, FLOOR(x / 10), LN(x) on a lattice: all that is needed of such a function is
where it changes and what it is between. It becomes comparisons with constants and choices between
constants, which the kernel has; no engine's own function ever sees a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query.expressions import Expression, Literal, as_expression, operation

MOST_STEPS = 4_096
"""Edges of one function; each takes some five parts of the at most 25,000 of an expression."""
MOST_STEPS_TOGETHER = 12_288
"""Edges of all functions of one statement: a quote is free, so its work has an end."""
MOST_WORK = 400_000
"""Parts of expressions that are worked out for one statement: more would take too long."""


@dataclass(slots=True)
class Tabulations:
    """The tables made while one statement is read: what is said of them, and the work left."""

    notes: list[str] = field(default_factory=list)
    left: int = MOST_WORK
    steps_left: int = MOST_STEPS_TOGETHER


TABULATIONS: ContextVar[Tabulations | None] = ContextVar("tabulations", default=None)


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """A row expression, held so that sqlglot's tree does not look into it."""

    of: Expression


class Ready(exp.Expression, exp.Condition):
    """A part of a statement that is read already: its row expression in `read`."""

    arg_types: ClassVar = {"read": True}


def ready(of: Expression) -> Ready:
    return Ready(read=Read(of))


@dataclass(frozen=True, slots=True, eq=False)
class StepFunction:
    """labels[i] where edges[i] <= base < edges[i + 1]; NULL where base is.

    The edges cover all that base can be: below the first is as the first, above the last as it.
    """

    base: Expression
    edges: tuple[object, ...]
    labels: tuple[object, ...]
    nullable: bool = True  # whether base can be NULL

    def merged(self) -> StepFunction:
        """Without edges between equal labels."""
        kept = [0] + [
            at + 1
            for at, (a, b) in enumerate(pairwise(self.labels))
            if (type(a), a) != (type(b), b)
        ]
        edges = (*(self.edges[at] for at in kept), self.edges[-1])
        kept_labels = tuple(self.labels[at] for at in kept)
        return StepFunction(self.base, edges, kept_labels, self.nullable)

    def mapped(self, change: Callable[[object], object]) -> StepFunction:
        found = tuple(map(change, self.labels))
        return StepFunction(self.base, self.edges, found, self.nullable).merged()

    def number(self, nullable: bool = True) -> Expression:
        """The function as a number of the row."""
        values = [as_expression(label) for label in self.labels]
        if not all(
            isinstance(v, Literal) and isinstance(v.value, int | Fraction | None) for v in values
        ):
            raise InvalidQuery(
                "a text or a day stands where a number is wanted; group by it or compare it",
                reason=Reason.WRONG_TYPE,
            )
        return stepped(self.base, self.edges, values, nullable)

    def condition(self, test: Callable[[object], bool | None]) -> Expression:
        """Where `test` of the label is true; NULL where the base is, or where the test is."""
        truths = self.mapped(test)
        if all(label is None for label in truths.labels):
            return operation("eq", self.base, None)
        if None in truths.labels:
            codes = truths.mapped(lambda label: None if label is None else int(bool(label)))
            return operation("eq", codes.number(), 1)
        whole = [
            part
            for part in (
                self._within(truths.edges, at)
                for at, label in enumerate(truths.labels)
                if label is True
            )
            if part is not None
        ]
        if len(whole) < sum(1 for label in truths.labels if label is True):
            return operation("eq", self.base, self.base)  # true wherever there is a value
        if not whole:
            return operation("lt", self.base, self.base)
        return whole[0] if len(whole) == 1 else operation("or", *whole)

    def _within(self, edges: tuple[object, ...], at: int) -> Expression | None:
        """base in the run `at`; None where that is everything."""
        parts = []
        if at > 0:
            parts.append(operation("le", edges[at], self.base))
        if at < len(edges) - 2:
            parts.append(operation("lt", self.base, edges[at + 1]))
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else operation("and", *parts)


def stepped(
    base: Expression, edges: Sequence[object], values: Sequence[Expression], nullable: bool
) -> Expression:
    """A choice between constants by the place of `base`, halved so that it is not deep."""
    check_steps(len(values))
    _spend_steps(len(values))

    def between(first: int, last: int) -> Expression:
        if first == last:
            return values[first]
        middle = (first + last + 1) // 2
        below = operation("lt", base, edges[middle])
        return operation("choose", below, between(first, middle - 1), between(middle, last))

    found = between(0, len(values) - 1)
    if not nullable:
        return found
    return operation("choose", base.is_null(), None, found)


def check_steps(count: int) -> None:
    if count > MOST_STEPS:
        raise InvalidQuery(
            f"{count:,} steps, at most {MOST_STEPS:,}; narrow the range with CLAMP, or take a"
            " coarser unit",
            reason=Reason.TOO_LARGE,
        )


def _spend_steps(count: int) -> None:
    """Take the steps of one function from those that the statement has left."""
    made = TABULATIONS.get()
    if made is None:
        return
    made.steps_left -= count
    if made.steps_left < 0:
        raise InvalidQuery(
            f"the functions of this statement have more than {MOST_STEPS_TOGETHER:,} steps; ask"
            " them in several statements, or narrow a range with CLAMP",
            reason=Reason.TOO_LARGE,
        )
