"""Constraints on the parameters of learners, declared as scikit-learn declares them.

A learner says what each parameter may be in `_parameter_constraints`, a table from its name to a
list of constraints, one of which must hold. `Learner` checks all of them before it asks anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real

from sulq.errors import InvalidQuery


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from `least` to `most`."""

    least: int = 1
    most: float = math.inf

    def allows(self, value: object) -> bool:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return whole and self.least <= value <= self.most  # type: ignore[operator]

    def __str__(self) -> str:
        upto = "" if self.most == math.inf else f" to {self.most:,g}"
        return f"a whole number from {self.least}{upto}"


@dataclass(frozen=True, slots=True)
class Interval:
    """A number between `low` and `high`; `ends` says which of the two it may be: "[)", "(]"."""

    low: float
    high: float
    ends: str = "()"

    def allows(self, value: object) -> bool:
        if not isinstance(value, Real) or isinstance(value, bool):
            return False
        found = float(value)
        above = found >= self.low if self.ends[0] == "[" else found > self.low
        below = found <= self.high if self.ends[1] == "]" else found < self.high
        return above and below

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"a number {'from' if self.ends[0] == '[' else 'above'} {self.low:g}"
        return f"a number in {self.ends[0]}{self.low:g}, {self.high:g}{self.ends[1]}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of the listed values."""

    values: tuple[object, ...]

    def __init__(self, *values: object) -> None:
        object.__setattr__(self, "values", values)

    def allows(self, value: object) -> bool:
        return any(type(value) is type(known) and value == known for known in self.values)

    def __str__(self) -> str:
        said = [f'"{known}"' if isinstance(known, str) else repr(known) for known in self.values]
        return said[0] if len(said) == 1 else f"one of {', '.join(said)}"


@dataclass(frozen=True, slots=True)
class InstanceOf:
    """An object of a class, described by `text`; further checks need the table."""

    kind: type
    text: str

    def allows(self, value: object) -> bool:
        return isinstance(value, self.kind)

    def __str__(self) -> str:
        return self.text


Constraint = Whole | Interval | OneOf | InstanceOf
Constraints = Mapping[str, Sequence[Constraint]]
NONE = OneOf(None)


def check_parameter(name: str, value: object, constraints: Sequence[Constraint]) -> None:
    """Raise InvalidQuery, with the name, the value and what is wanted, if no constraint holds."""
    if not any(constraint.allows(value) for constraint in constraints):
        wanted = " or ".join(map(str, constraints))
        raise InvalidQuery(f"{name} must be {wanted}, got {value!r:.40}")
