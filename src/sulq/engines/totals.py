"""What has to be added up: terms as sums of counts and of values, the rest in Python integers.

sum(2 x - 7) = 2 sum(x) - 7 count(x): scales and constants leave the engine's work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from sulq.engines.leaves import as_leaf
from sulq.schema.bound import (
    Added,
    AllOf,
    Always,
    Chosen,
    Condition,
    FirstOf,
    Fixed,
    FlagBit,
    FlagIs,
    Integer,
    Missing,
    RowSums,
    Scaled,
    Text,
)


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows make the condition true."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of a value over the rows where it is not NULL."""

    value: Integer


Aggregate: TypeAlias = Rows | Total
Mixture: TypeAlias = tuple[tuple[int, Aggregate], ...]
"""Integer multiples of aggregates, to be added."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The rows to read and, for every term, its mixture."""

    rows: Condition
    terms: tuple[Mixture, ...]

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Each aggregate once, in order of appearance."""
        return tuple(dict.fromkeys(part for term in self.terms for _, part in term))


def present(value: Integer) -> Missing:
    return Missing(value, negated=True)


def mixture(term: Integer) -> Mixture:
    match term:
        case Fixed(value=None):
            return ()
        case Fixed(value=int(constant)):
            return ((constant, Rows(Always())),) if constant else ()
        case Scaled(value=value, factor=factor):
            return _times(factor, mixture(value))
        case Added(parts=parts):
            constants = [p.value for p in parts if isinstance(p, Fixed)]
            others = [p for p in parts if not isinstance(p, Fixed)]
            known = [c for c in constants if c is not None]
            if len(others) == 1 and len(known) == len(constants):
                return (*mixture(others[0]), *_times(sum(known), _count(present(others[0]))))
        case FlagBit(column=column):
            return _count(FlagIs(column, True))
        case Chosen(condition=condition, then=Fixed(value=then), otherwise=Fixed(value=other)):
            extra = (then or 0) - (other or 0)
            return (*_times(extra, _count(condition)), *mixture(Fixed(other)))
        case FirstOf(value=value, instead=Fixed(value=instead)):
            missing = Missing(value, negated=False)
            return (*mixture(value), *_times(instead or 0, _count(missing)))
        case _:
            pass
    return ((1, Total(term)),)


def _times(factor: int, parts: Mixture) -> Mixture:
    return tuple((factor * weight, part) for weight, part in parts) if factor else ()


def _count(condition: Condition) -> Mixture:
    return ((1, Rows(condition)),)


def totals(program: RowSums) -> Totals:
    """The program's sums; rows that can add nothing are left out early where that is cheap."""
    terms = tuple(mixture(term) for term in program.terms)
    plain = Totals(program.rows, terms)
    values = {part.value for part in plain.aggregates if isinstance(part, Total)}
    leaf = as_leaf(next(iter(values))) if len(values) == 1 else None
    if leaf is None:
        return plain
    counts = {part for part in plain.aggregates if isinstance(part, Rows)}
    if counts - {Rows(present(value)) for value in values}:
        return plain
    held = Missing(Text(leaf.value.column), negated=True)
    return Totals(AllOf((program.rows, held)), terms)
