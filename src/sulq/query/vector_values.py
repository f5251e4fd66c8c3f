"""What a vector is made of: names, public numbers and conditions. Built by `query.vectors`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Literal as OneOf

from sulq.errors import InvalidQuery
from sulq.query.expressions import Expression, Literal

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
            raise InvalidQuery(f"a vector may be {DEEPEST} levels deep: flatten it")
        if numbers > MOST_NUMBERS:
            raise InvalidQuery(f"a vector may hold {MOST_NUMBERS} parts and numbers: shorten it")
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
