"""Functions of one row with many outputs: the two sides of `outer(left, right)`.

A vector is data: names, public numbers and conditions. It knows no schema; `schema` proves it safe
and turns it into integers. Columns are scaled to [0, 1] by their public bounds first.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sulq.errors import InvalidQuery
from sulq.query.canonical import _number
from sulq.query.expressions import (
    Expression,
    Literal,
    as_expression,
    col,
    column_or_expression,
)
from sulq.query.vector_values import (
    MOST_NUMBERS,
    MOST_PARTS,
    Bins,
    Cells,
    Clipped,
    Columns,
    Concat,
    Crossed,
    FromNearest,
    Loss,
    Margin,
    Matrix,
    Nearest,
    Norm,
    Numbers,
    OneHot,
    Ones,
    Project,
    Residual,
    Scaled,
    Signed,
    Softmax,
    Squares,
    Vector,
)

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
    number = _number(as_expression(value))
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
