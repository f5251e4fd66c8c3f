"""Functions of one row with many outputs: the two sides of `outer(left, right)`.

A vector is data: names, public numbers and conditions. It knows no schema; `schema` proves it safe
and turns it into integers. Columns are scaled to [0, 1] by their public bounds first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any
from typing import Literal as OneOf

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query import canonical
from sulq.kernel.query.canonical import number_of
from sulq.kernel.query.expressions import (
    Column,
    Expression,
    Literal,
    Operation,
    as_expression,
    col,
    column_or_expression,
)

MOST_NUMBERS = 200_000
"""Public numbers (centres, weights, edges) in one vector."""
NODE_WEIGHT = 10
"""A node of an expression weighs as much as so many numbers: engines must plan it."""
MOST_PARTS = 4_096
DEEPEST = 16

Numbers = tuple[Fraction, ...]
Matrix = tuple[Numbers, ...]
Loss = OneOf["linear", "logistic", "hinge"]


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """A function of one row with many outputs."""

    depth: int = field(init=False, repr=False)
    numbers: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = [getattr(self, name) for name in parameters(type(self))]
        inner = list(_vectors_in(given))
        own = sum(map(_count, given))
        depth = 1 + max((part.depth for part in inner), default=0)
        numbers = own + sum(part.numbers for part in inner)
        if depth > DEEPEST:
            raise InvalidQuery(
                f"a vector may be {DEEPEST} levels deep: flatten it", reason=Reason.TOO_LARGE
            )
        if numbers > MOST_NUMBERS:
            raise InvalidQuery(
                f"a vector may hold {MOST_NUMBERS} parts and numbers: shorten it",
                reason=Reason.TOO_LARGE,
            )
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "numbers", numbers)


def parameters(kind: type[Vector]) -> tuple[str, ...]:
    """The names of what a kind of vector is made of."""
    return tuple(field.name for field in fields(kind) if field.init)


def _vectors_in(values: Iterable[object]) -> Iterable[Vector]:
    for value in values:
        if isinstance(value, Vector):
            yield value
        elif isinstance(value, tuple):
            yield from _vectors_in(value)


def _count(value: object) -> int:
    """Numbers and expression nodes, for the size limit."""
    if isinstance(value, tuple):
        return sum(map(_count, value))
    return NODE_WEIGHT * value.nodes if isinstance(value, Expression) else 1


@dataclass(frozen=True, slots=True, eq=False)
class Ones(Vector):
    """The constant 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns(Vector):
    """Columns in [0, 1], minus `centre`, shrunk into the ball of radius `clip`."""

    names: tuple[str, ...]
    centre: Numbers | None
    clip: Fraction | None


@dataclass(frozen=True, slots=True, eq=False)
class OneHot(Vector):
    """1 at the column's declared value, 0 elsewhere."""

    column: str
    other: bool


@dataclass(frozen=True, slots=True, eq=False)
class Bins(Vector):
    """1 at the bin [edge, next edge) that holds the number; the last bin is closed."""

    of: Expression | Vector
    edges: tuple[Literal, ...]
    other: bool


@dataclass(frozen=True, slots=True, eq=False)
class Cells(Vector):
    """1 at the first condition that is true."""

    conditions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Project(Vector):
    """matrix @ vector."""

    vector: Vector
    matrix: Matrix


@dataclass(frozen=True, slots=True, eq=False)
class Clipped(Vector):
    """The vector, shrunk into the ball of radius `clip`."""

    vector: Vector
    clip: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class Nearest(Vector):
    """1 at the nearest centre; ties go to the first."""

    vector: Vector
    centres: Matrix


@dataclass(frozen=True, slots=True, eq=False)
class FromNearest(Vector):
    """The vector minus its nearest centre, shrunk into the ball of radius `clip`."""

    vector: Vector
    centres: Matrix
    clip: Fraction | None


@dataclass(frozen=True, slots=True, eq=False)
class Margin(Vector):
    """1 where y <weights, vector> <= at_most, with y = +-1 for a true or false label."""

    vector: Vector
    label: Expression
    weights: Numbers
    at_most: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class Signed(Vector):
    """y vector, with y = +-1 for a true or false label; 0 where the label is missing."""

    vector: Vector
    label: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Residual(Vector):
    """The slope of a loss in its score, so that residual (x) vector sums to the gradient."""

    vector: Vector
    weights: Matrix
    label: Expression
    kind: Loss
    clip: Fraction | None


@dataclass(frozen=True, slots=True, eq=False)
class Softmax(Vector):
    """Shares exp(score) / sum of exp(score), one score <weights, vector> per row of weights."""

    vector: Vector
    weights: Matrix


@dataclass(frozen=True, slots=True, eq=False)
class Norm(Vector):
    """The Euclidean length of a vector, as a vector of one."""

    vector: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Squares(Vector):
    """Every coordinate squared."""

    vector: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Crossed(Vector):
    """All products of a coordinate of `left` with one of `right`."""

    left: Vector
    right: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Concat(Vector):
    """Vectors end to end."""

    parts: tuple[Vector, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Scaled(Vector):
    """factor * vector."""

    vector: Vector
    factor: Fraction


# What a vector is made of: names, public numbers and conditions. Built by `query.vectors`.


LARGEST = 2**40
SMALLEST = Fraction(1, 2**80)


def ones() -> Vector:
    """The constant 1: `outer(ones(), v)` is the plain sum of v."""
    return Ones()


def columns(
    names: Sequence[str],
    centre: Sequence[object] | object | None = None,
    clip: object | None = None,
) -> Vector:
    """Numbers scaled to [0, 1] by their bounds, Flags 0/1, Categories one-hot by declared values.

    `centre` (one number per coordinate, or one for all) is taken off. A missing value takes the
    centre; unless told, 1/2, and for a Category of K values 1/K each. `clip` bounds the norm.
    """
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise InvalidQuery(f"columns takes a list of column names, got {names!r:.60}")
    read = tuple(col(name).name for name in names)
    if len(set(read)) != len(read):
        raise InvalidQuery("columns takes every name once")
    middle = None if centre is None else _numbers(centre, "centre")
    return Columns(read, middle, None if clip is None else _positive(clip, "clip"))


def one_hot(column: str, other: bool = False) -> Vector:
    """A Category or Flag as 0/1 coordinates; `other` adds one for missing and undeclared."""
    return OneHot(col(column).name, bool(other))


def bins(of: str | Expression | Vector, edges: Sequence[object], other: bool = False) -> Vector:
    """The bin of a column, an expression or a vector of one coordinate such as `norm(v)`."""
    if isinstance(edges, str) or not hasattr(edges, "__iter__"):
        raise InvalidQuery(f"edges must be a list of numbers, got {type(edges).__name__}")
    read = [as_expression(edge) for edge in edges]
    literals = tuple(edge for edge in read if isinstance(edge, Literal))
    if len(literals) != len(read) or len(read) < 2:
        raise InvalidQuery("edges must be at least two numbers or dates")
    return Bins(of if isinstance(of, Vector) else column_or_expression(of), literals, bool(other))


def cells(*conditions: Expression) -> Vector:
    """1 at the first condition that is true, so cells never overlap; all 0 if none is."""
    if not 1 <= len(conditions) <= MOST_PARTS:
        raise InvalidQuery(f"cells takes 1 to {MOST_PARTS} conditions, got {len(conditions)}")
    return Cells(tuple(as_expression(condition) for condition in conditions))


def project(vector: Vector, matrix: Sequence[Sequence[object]]) -> Vector:
    """matrix @ vector: one row of numbers per new coordinate."""
    return Project(_vector(vector), _matrix(matrix, "matrix"))


def clipped(vector: Vector, clip: object) -> Vector:
    """The vector, shrunk into the ball of radius `clip` where it is longer."""
    return Clipped(_vector(vector), _positive(clip, "clip"))


def nearest(vector: Vector, centres: Sequence[Sequence[object]]) -> Vector:
    """One-hot of the nearest public centre; ties go to the first."""
    return Nearest(_vector(vector), _matrix(centres, "centres"))


def from_nearest(
    vector: Vector, centres: Sequence[Sequence[object]], clip: object | None = None
) -> Vector:
    """The vector minus its nearest centre, at most `clip` long."""
    radius = None if clip is None else _positive(clip, "clip")
    return FromNearest(_vector(vector), _matrix(centres, "centres"), radius)


def margin(
    vector: Vector, label: str | Expression, weights: Sequence[object], at_most: object = 0
) -> Vector:
    """1 where y <weights, vector> <= at_most; y is +1 where `label` is true, -1 where false."""
    threshold = _number_of(at_most, "at_most")
    read = _numbers(weights, "weights")
    return Margin(_vector(vector), column_or_expression(label), read, threshold)


def signed(vector: Vector, label: str | Expression) -> Vector:
    """+vector where `label` is true, -vector where it is false, 0 where it is missing."""
    return Signed(_vector(vector), column_or_expression(label))


def residual(
    vector: Vector,
    weights: Sequence[object] | Sequence[Sequence[object]],
    label: str | Expression,
    kind: Loss = "linear",
    clip: object | None = None,
) -> Vector:
    """The slope of a loss in its score <weights, vector>; 0 where the label is missing.

    linear: score - y, y in [0, 1]. logistic: 1/(1+exp(-score)) - y. hinge: -y where y score < 1,
    y = +-1. Logistic with one row of weights per declared value of a Category: softmax - one-hot.
    """
    if kind not in ("linear", "logistic", "hinge"):
        raise InvalidQuery(f"kind must be linear, logistic or hinge, got {kind!r:.40}")
    rows = weights if _is_matrix(weights) else [weights]
    radius = None if clip is None else _positive(clip, "clip")
    if radius is not None and kind != "linear":
        raise InvalidQuery(f"a {kind} residual is bounded already; clip belongs to linear")
    read = _matrix(rows, "weights")
    if len(read) > 1 and kind != "logistic":
        raise InvalidQuery(f"a {kind} residual takes one list of weights, got {len(read)}")
    return Residual(_vector(vector), read, column_or_expression(label), kind, radius)


def softmax(vector: Vector, weights: Sequence[Sequence[object]]) -> Vector:
    """Soft assignment: exp(score) as shares of their sum, one row of weights per coordinate."""
    return Softmax(_vector(vector), _matrix(weights, "weights"))


def norm(vector: Vector) -> Vector:
    """The length of a vector, for `bins`."""
    return Norm(_vector(vector))


def squares(vector: Vector) -> Vector:
    """Every coordinate squared."""
    return Squares(_vector(vector))


def crossed(left: Vector, right: Vector) -> Vector:
    """All products of two vectors' coordinates; of two one-hots, the one-hot of the pair."""
    return Crossed(_vector(left), _vector(right))


def concat(*vectors: Vector) -> Vector:
    """Vectors end to end."""
    flat: list[Vector] = []
    for vector in vectors:
        read = _vector(vector)
        flat.extend(read.parts if isinstance(read, Concat) else [read])
    if not 1 <= len(flat) <= MOST_PARTS:
        raise InvalidQuery(f"concat takes 1 to {MOST_PARTS} vectors, got {len(flat)}")
    return flat[0] if len(flat) == 1 else Concat(tuple(flat))


def scaled(vector: Vector, factor: object) -> Vector:
    """factor * vector."""
    number, inner = _number_of(factor, "factor"), _vector(vector)
    if number == 0:
        raise InvalidQuery("scaled takes a factor that is not 0; leave the vector out instead")
    if isinstance(inner, Scaled):
        number, inner = number * inner.factor, inner.vector
    return inner if number == 1 else Scaled(inner, number)


# --- reading public numbers ---------------------------------------------------------------------


def _vector(value: object) -> Vector:
    if isinstance(value, Vector):
        return value
    raise InvalidQuery(f"want a vector such as columns([...]), got {type(value).__name__}")


def _number_of(value: object, name: str) -> Fraction:
    number = number_of(as_expression(value))
    if number is None or abs(number) > LARGEST or 0 < abs(number) < SMALLEST:
        raise InvalidQuery(f"{name} must be a number within +-2^40, got {value!r:.60}")
    return number


def _positive(value: object, name: str) -> Fraction:
    number = _number_of(value, name)
    if number <= 0:
        raise InvalidQuery(f"{name} must be above 0, got {value!r:.60}")
    return number


def _listed(value: object, name: str) -> list[Any]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise InvalidQuery(f"{name} must be a list, got {type(value).__name__}")
    found = list(value)
    if not 1 <= len(found) <= MOST_NUMBERS:
        raise InvalidQuery(f"{name} must hold 1 to {MOST_NUMBERS} values, got {len(found)}")
    return found


def _numbers(value: object, name: str) -> Numbers:
    listed = _listed(value, name) if hasattr(value, "__iter__") else [value]
    return tuple(_number_of(number, name) for number in listed)


def _is_matrix(value: object) -> bool:
    return all(hasattr(row, "__iter__") for row in _listed(value, "weights"))


def _matrix(value: object, name: str) -> Matrix:
    rows = tuple(_numbers(_listed(row, name), name) for row in _listed(value, name))
    if len({len(row) for row in rows}) != 1:
        raise InvalidQuery(f"the rows of {name} must have one length")
    return rows


# A vector as JSON, read back as the same vector; and its one spelling. A closed list of kinds.


_SHORT = re.compile(r"-?\d{1,60}(\.\d{1,60})?(e[+-]?\d{1,2})?|-?\d{1,60}/\d{1,60}")

KINDS: dict[str, tuple[type[Vector], Callable[..., Vector]]] = {
    "ones": (Ones, ones),
    "columns": (Columns, columns),
    "one_hot": (OneHot, one_hot),
    "bins": (Bins, bins),
    "cells": (Cells, lambda conditions: cells(*conditions)),
    "project": (Project, project),
    "clipped": (Clipped, clipped),
    "nearest": (Nearest, nearest),
    "from_nearest": (FromNearest, from_nearest),
    "margin": (Margin, margin),
    "signed": (Signed, signed),
    "residual": (Residual, residual),
    "softmax": (Softmax, softmax),
    "norm": (Norm, norm),
    "squares": (Squares, squares),
    "crossed": (Crossed, crossed),
    "concat": (Concat, lambda parts: concat(*parts)),
    "scaled": (Scaled, scaled),
}
_NAME = {kind: name for name, (kind, _) in KINDS.items()}


def vector_to_json(vector: Vector) -> list[Any]:
    """The vector as JSON-ready values: its kind, then its fields."""
    fields = {name: _write(getattr(vector, name)) for name in parameters(type(vector))}
    return [_NAME[type(vector)], fields]


def _write(value: object) -> Any:
    match value:
        case Vector():
            return vector_to_json(value)
        case Expression():
            return canonical.to_json(value)
        case Fraction():
            return spelled(value)
        case tuple():
            return [_write(part) for part in value]
    return value


def spelled(number: Fraction) -> str:
    """A decimal where one is exact and short, else a ratio; equal numbers, equal texts."""
    if number.denominator == 1:
        return str(number.numerator)
    short = repr(number.numerator / number.denominator)
    return short if _SHORT.fullmatch(short) and Fraction(short) == number else str(number)


def vector_from_json(form: Any, depth: int = 0) -> Vector:
    """Read `vector_to_json` back; refuses everything outside the language."""
    if not _is_vector(form) or depth > DEEPEST or form[0] not in KINDS:
        raise InvalidQuery(f"a vector is a list of a kind and its fields; kinds: {sorted(KINDS)}")
    name, fields = form
    kind, build = KINDS[name]
    names = parameters(kind)
    if set(fields) != set(names):
        raise InvalidQuery(f"a {name} vector has the fields {sorted(names)}")
    try:
        return build(**{field: FIELDS[field](fields[field], depth + 1) for field in names})
    except (TypeError, AttributeError):
        raise InvalidQuery(f"a field of a {name} vector has the wrong kind") from None


def _is_vector(form: Any) -> bool:
    return (
        isinstance(form, list)
        and len(form) == 2
        and isinstance(form[0], str)
        and isinstance(form[1], Mapping)
    )


def _text(value: Any, depth: int) -> str:
    if not isinstance(value, str):
        raise InvalidQuery(f"a vector wants a text here, got {type(value).__name__}")
    return value


def _flag(value: Any, depth: int) -> bool:
    if not isinstance(value, bool):
        raise InvalidQuery(f"a vector wants true or false here, got {type(value).__name__}")
    return value


def _fraction(value: Any, depth: int) -> Fraction:
    if not isinstance(value, str) or not _SHORT.fullmatch(value):
        raise InvalidQuery("the numbers of a vector are texts such as '0.5' or '1/3'")
    try:
        return Fraction(value)
    except ZeroDivisionError:
        raise InvalidQuery("a number of a vector divides by 0") from None


def _expression(value: Any, depth: int) -> Expression:
    return canonical.from_json(value)


def _list_of(read: Callable[[Any, int], Any]) -> Callable[[Any, int], list[Any]]:
    def listed(value: Any, depth: int) -> list[Any]:
        if not isinstance(value, list) or len(value) > MOST_NUMBERS:
            raise InvalidQuery(f"a vector wants a list of at most {MOST_NUMBERS} values here")
        return [read(part, depth) for part in value]

    return listed


def _optional(read: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    return lambda value, depth: None if value is None else read(value, depth)


def _numbers_or_rows(value: Any, depth: int) -> list[Any]:
    nested = isinstance(value, list) and value and isinstance(value[0], list)
    return _list_of(_list_of(_fraction) if nested else _fraction)(value, depth)


def _vector_or_expression(value: Any, depth: int) -> Vector | Expression:
    return vector_from_json(value, depth) if _is_vector(value) else _expression(value, depth)


FIELDS: dict[str, Callable[[Any, int], Any]] = {
    "names": _list_of(_text),
    "column": _text,
    "kind": _text,
    "other": _flag,
    "centre": _optional(_list_of(_fraction)),
    "clip": _optional(_fraction),
    "at_most": _fraction,
    "factor": _fraction,
    "weights": _numbers_or_rows,
    "matrix": _list_of(_list_of(_fraction)),
    "centres": _list_of(_list_of(_fraction)),
    "edges": _list_of(_expression),
    "conditions": _list_of(_expression),
    "label": _expression,
    "of": _vector_or_expression,
    "vector": vector_from_json,
    "left": vector_from_json,
    "right": vector_from_json,
    "parts": _list_of(vector_from_json),
}


def canonical_vector(vector: Vector) -> Vector:
    """The same vector with every condition and expression in its one spelling."""
    changes: dict[str, Any] = {}
    for name in parameters(type(vector)):
        value = getattr(vector, name)
        changes[name] = _canonical(value, condition=name == "conditions")
    return replace(vector, **changes)


def _canonical(value: object, condition: bool) -> Any:
    match value:
        case Vector():
            return canonical_vector(value)
        case Literal() | Column() if not condition:
            return value
        case Expression():
            is_condition = isinstance(value, Operation) and value.name in canonical.CONDITIONS
            if is_condition and not condition and _holds_null(value):
                # a label is also asked where it is false, which canonical truth would not keep
                raise InvalidQuery("a label has no NULL in it; leave it out")
            return canonical.truth(value) if condition or is_condition else canonical.value(value)
        case tuple():
            return tuple(_canonical(part, condition) for part in value)
    return value


def _holds_null(expression: Expression) -> bool:
    if isinstance(expression, Operation):
        return any(_holds_null(operand) for operand in expression.operands)
    return isinstance(expression, Literal) and expression.value is None
