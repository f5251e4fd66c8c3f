"""Functions of one row: columns, literals, arithmetic, comparison, choice.

An expression is a value: it knows no schema and reads no data. `binding` proves it safe.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn, Union

from sulq.errors import InvalidQuery, Reason

MOST_NODES = 25_000
"""Enough for a function of 4,096 steps, each of which takes some five parts."""
DEEPEST = 100

Plain = None | bool | int | Fraction | str | datetime.date | datetime.datetime
"""What a literal may hold; floats are read as the decimal number they print."""

Operand = Union["Expression", None, bool, int, float, str, Fraction, Decimal, datetime.date]

ARITY: dict[str, tuple[int, int]] = {
    "add": (2, MOST_NODES),
    "multiply": (2, MOST_NODES),
    "negate": (1, 1),
    "divide": (2, 2),
    "abs": (1, 1),
    "least": (2, MOST_NODES),
    "greatest": (2, MOST_NODES),
    "clip": (3, 3),
    "centred": (1, 1),
    "lt": (2, 2),
    "le": (2, 2),
    "eq": (2, 2),
    "ne": (2, 2),
    "among": (2, MOST_NODES),
    "not_among": (2, MOST_NODES),
    "like": (2, 2),
    "not_like": (2, 2),
    "is_null": (1, 1),
    "not_null": (1, 1),
    "and": (2, MOST_NODES),
    "or": (2, MOST_NODES),
    "not": (1, 1),
    "choose": (3, 3),
    "coalesce": (2, 2),
    "hashed": (2, 2),
}
"""Every operation there is, with the number of operands it takes."""


class Expression:
    """A function of one row. Combine with + - * /, comparisons, & | ~ and the methods below."""

    __slots__ = ()

    nodes: int
    depth: int

    # arithmetic
    def __add__(self, other: Operand) -> Expression:
        return _flat("add", self, other)

    def __radd__(self, other: Operand) -> Expression:
        return _flat("add", other, self)

    def __sub__(self, other: Operand) -> Expression:
        return _flat("add", self, operation("negate", other))

    def __rsub__(self, other: Operand) -> Expression:
        return _flat("add", other, operation("negate", self))

    def __mul__(self, other: Operand) -> Expression:
        return _flat("multiply", self, other)

    def __rmul__(self, other: Operand) -> Expression:
        return _flat("multiply", other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return operation("divide", self, other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return operation("divide", other, self)

    def __neg__(self) -> Expression:
        return operation("negate", self)

    def __abs__(self) -> Expression:
        return operation("abs", self)

    # comparison
    def __lt__(self, other: Operand) -> Expression:
        return operation("lt", self, other)

    def __le__(self, other: Operand) -> Expression:
        return operation("le", self, other)

    def __gt__(self, other: Operand) -> Expression:
        return operation("lt", other, self)

    def __ge__(self, other: Operand) -> Expression:
        return operation("le", other, self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return operation("eq", self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return operation("ne", self, other)

    __hash__ = object.__hash__

    # logic
    def __and__(self, other: Operand) -> Expression:
        return _flat("and", self, other)

    def __rand__(self, other: Operand) -> Expression:
        return _flat("and", other, self)

    def __or__(self, other: Operand) -> Expression:
        return _flat("or", self, other)

    def __ror__(self, other: Operand) -> Expression:
        return _flat("or", other, self)

    def __invert__(self) -> Expression:
        return operation("not", self)

    def __bool__(self) -> NoReturn:
        raise InvalidQuery("a condition has no truth value here; combine conditions with & | ~")

    # the rest of the language
    def clip(self, low: Operand, high: Operand) -> Expression:
        """The value, moved into [low, high]."""
        return operation("clip", self, low, high)

    def abs(self) -> Expression:
        """The value without its sign."""
        return operation("abs", self)

    def min(self, other: Operand) -> Expression:
        """The smaller of the two; NULL if either is."""
        return _flat("least", self, other)

    def max(self, other: Operand) -> Expression:
        """The larger of the two; NULL if either is."""
        return _flat("greatest", self, other)

    def between(self, low: Operand, high: Operand) -> Expression:
        """low <= value <= high."""
        return (self >= low) & (self <= high)

    def isin(self, values: Iterable[Operand]) -> Expression:
        """Whether the value is one of `values`."""
        if isinstance(values, str | Expression) or not isinstance(values, Iterable):
            raise InvalidQuery(f"isin takes a list of values, got {type(values).__name__}")
        listed = list(values)
        if not listed:
            raise InvalidQuery("isin takes at least one value, got none")
        return operation("among", self, *listed)

    def like(self, pattern: str) -> Expression:
        """SQL LIKE: % is any text, _ any one character."""
        return operation("like", self, pattern)

    def is_null(self) -> Expression:
        """Whether the value is missing."""
        return operation("is_null", self)

    def is_not_null(self) -> Expression:
        """Whether the value is there."""
        return operation("not_null", self)

    def coalesce(self, instead: Operand) -> Expression:
        """The value, or `instead` where it is missing."""
        return operation("coalesce", self, instead)


@dataclass(frozen=True, slots=True, eq=False)
class Column(Expression):
    """A column by name."""

    name: str
    nodes = 1
    depth = 1


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expression):
    """A constant."""

    value: Plain
    nodes = 1
    depth = 1


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Expression):
    """An operation of `ARITY` on its operands."""

    name: str
    operands: tuple[Expression, ...]
    nodes: int
    depth: int


def operation(name: str, *operands: object) -> Operation:
    """Build an operation; refuses trees too large or too deep to check."""
    read = tuple(as_expression(operand) for operand in operands)
    least, most = ARITY[name]
    if not least <= len(read) <= most:
        raise InvalidQuery(f"{name} takes {least} to {most} operands, got {len(read)}")
    nodes = 1 + sum(operand.nodes for operand in read)
    depth = 1 + max(operand.depth for operand in read)
    if nodes > MOST_NODES:
        raise InvalidQuery(
            f"an expression may have {MOST_NODES} parts, got {nodes}: shorten it",
            reason=Reason.TOO_LARGE,
        )
    if depth > DEEPEST:
        raise InvalidQuery(
            f"an expression may be {DEEPEST} levels deep: flatten or shorten it",
            reason=Reason.TOO_LARGE,
        )
    return Operation(name, read, nodes, depth)


def _flat(name: str, *operands: object) -> Operation:
    """An operation that may take many operands: nesting on the left is not depth."""
    parts: list[Expression] = []
    for operand in operands:
        read = as_expression(operand)
        if isinstance(read, Operation) and read.name == name:
            parts.extend(read.operands)
        else:
            parts.append(read)
    return operation(name, *parts)


def as_expression(value: object) -> Expression:
    """A literal for a plain value; an expression stays what it is."""
    if isinstance(value, Expression):
        return value
    if value is not None and hasattr(value, "item") and not hasattr(value, "__len__"):
        value = value.item()  # a NumPy scalar
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidQuery(f"a literal must be finite, got {value!r}; leave it out or clip")
        return Literal(Fraction(repr(value)))
    if isinstance(value, Decimal):
        if not value.is_finite() or abs(value.adjusted()) > 300:
            raise InvalidQuery(f"a literal must be finite and of usual size, got {value}")
        return Literal(Fraction(value))
    if isinstance(value, Fraction) and max(value.numerator, value.denominator).bit_length() > 1200:
        raise InvalidQuery("a literal has too many digits; round it", reason=Reason.TOO_LARGE)
    if isinstance(value, datetime.date):
        return Literal(_checked_date(value))
    if value is None or isinstance(value, bool | Fraction):
        return Literal(value)
    if isinstance(value, int):
        if abs(value) >= 2**63:
            raise InvalidQuery(
                "a whole number must fit in 64 bits; rescale the column", reason=Reason.TOO_LARGE
            )
        return Literal(value)
    if isinstance(value, str):
        if "\x00" in value or not _is_unicode(value):
            raise InvalidQuery("a text must be valid Unicode without NUL characters")
        return Literal(value)
    raise InvalidQuery(
        f"cannot use a {type(value).__name__} in an expression; use col(...), a number, a text,"
        " True/False, None or a date"
    )


def _checked_date(value: datetime.date) -> datetime.date:
    """A date that can be written down: pandas' NaT, for one, cannot."""
    try:
        same = type(value).fromisoformat(value.isoformat())
    except (ValueError, TypeError):
        same = None
    if same != value:
        raise InvalidQuery("a date literal must be a real date, got something else")
    return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def col(name: str | Column) -> Column:
    """The column called `name`; a column is itself."""
    if isinstance(name, Column):
        return name
    if not isinstance(name, str) or not name:
        raise InvalidQuery(f"a column is named by a text, got {name!r:.80}")
    return Column(name)


def lit(value: Operand) -> Expression:
    """A constant."""
    return as_expression(value)


def hashed(identity: Operand | str, seed: int) -> Expression:
    """A public pseudo-random bit of a public whole-numbered id, the same on every engine."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise InvalidQuery(f"hashed takes a whole seed from 0 to 2^63 - 1, got {seed!r}")
    return operation("hashed", column_or_expression(identity), seed)


def column_or_expression(x: object) -> Expression:
    """Builders take a column's name or an expression."""
    if isinstance(x, str):
        return col(x)
    if isinstance(x, Expression):
        return x
    raise InvalidQuery(f"want a column's name or an expression, got {type(x).__name__}")


@dataclass(frozen=True, slots=True)
class Choice:
    """`when(condition)`, waiting for its `then`."""

    condition: Expression

    def then(self, value: Operand) -> Chosen:
        return Chosen(self.condition, as_expression(value))


@dataclass(frozen=True, slots=True)
class Chosen:
    """`when(condition).then(value)`, waiting for its `otherwise`."""

    condition: Expression
    value: Expression

    def otherwise(self, value: Operand) -> Expression:
        return operation("choose", self.condition, self.value, value)


def when(condition: Expression) -> Choice:
    """`when(c).then(a).otherwise(b)`: a where c is true, else b (also where c is NULL)."""
    if not isinstance(condition, Expression):
        raise InvalidQuery(f"when takes a condition, got {type(condition).__name__}")
    return Choice(condition)
