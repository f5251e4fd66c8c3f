"""VectorBinder: a vector over declared columns becomes an integer program with proved norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from sulq.errors import InvalidQuery
from sulq.query import canonical
from sulq.query import vector_values as asked
from sulq.query.expressions import Column, Expression, Literal
from sulq.query.vector_values import Matrix, Vector
from sulq.schema import vectors as nodes
from sulq.schema.bound import CategoryCells, Chosen, FirstOf, Fixed, FlagCells, Integer
from sulq.schema.columns import Category, Flag, Schema
from sulq.schema.projections import projected
from sulq.schema.ranges import mentioned
from sulq.schema.rows import RowBinder
from sulq.schema.scores import ScoreBinder
from sulq.schema.unit_columns import UnitColumns
from sulq.schema.vector_bounds import (
    MOST,
    ROOM,
    Sized,
    change_one,
    change_squared,
    constant_of,
    joint_step,
    one_hot_of,
    placed,
    product_one,
    product_squared,
    reach,
    rescaled,
    rounded_one,
    rounded_square,
    settled,
    shifted,
    sized,
)

MOST_COORDINATES = 100_000
MOST_WIDTH = 250_000
MOST_DENSE = 2_048
"""Coordinates of a vector that is multiplied by a matrix or compared with centres."""
CHUNK = 32
"""Conditions in one leaf."""


class VectorBinder:
    """Binds vectors on one schema."""

    def __init__(self, schema: Schema, asked_before: bool = False) -> None:
        self.schema = schema
        self.rows = RowBinder(schema, asked_before)
        public = [c.name for c in schema.columns if c.public and schema.unit == "row"]
        self.hidden = frozenset(c.name for c in schema.columns) - frozenset(public)
        self.scores = ScoreBinder(self.rows, self.hidden)
        self.width = 0  # coordinates of all vectors bound, the inner ones too

    def bind(self, vector: Vector) -> Sized:
        """The vector within 2^20 steps per coordinate."""
        found = settled(self._bind(vector))
        self.width += len(found)
        if len(found) > MOST_COORDINATES:
            raise InvalidQuery(f"a vector has at most {MOST_COORDINATES} coordinates")
        if self.width > MOST_WIDTH:
            raise InvalidQuery(
                f"the vectors of a question have at most {MOST_WIDTH} coordinates together,"
                " the inner ones counted too; take fewer"
            )
        return found

    def _bind(self, vector: Vector) -> Sized:
        match vector:
            case asked.Ones():
                return constant_of([1], [Fraction(1)], Fraction(1))
            case asked.Columns(names, centre, clip):
                return _clip(UnitColumns(self.schema, self.hidden).bound(names, centre), clip)
            case asked.OneHot(column, other):
                return self._one_hot(column, other)
            case asked.Bins(of, edges, other):
                return self._bins(of, edges, other)
            case asked.Cells(conditions):
                return self._cells(conditions)
            case asked.Project(inner, matrix):
                return projected(self._dense(inner, len(matrix[0]), "matrix"), matrix)
            case asked.Clipped(inner, clip):
                return _clip(self.bind(inner), clip)
            case asked.Nearest(inner, centres):
                v = self._dense(inner, len(centres[0]), "centres")
                keys = [f"nearest {i}" for i in range(len(centres))]
                return one_hot_of(_closest(v, centres), len(centres), keys, v.private)
            case asked.FromNearest(inner, centres, clip):
                v = self._dense(inner, len(centres[0]), "centres")
                return _clip(_from_nearest(v, _closest(v, centres)), clip)
            case asked.Margin(inner, label, weights, at_most):
                v = self._dense(inner, len(weights), "weights")
                return self.scores.margin(v, label, weights, at_most)
            case asked.Signed(inner, label):
                return self.scores.signed(self.bind(inner), label)
            case asked.Residual(inner, rows, label, kind, clip):
                v = self._dense(inner, len(rows[0]), "weights")
                return self.scores.residual(v, rows, label, kind, clip)
            case asked.Softmax(inner, rows):
                return self.scores.softmax(self._dense(inner, len(rows[0]), "weights"), rows)
            case asked.Norm(inner):
                return _norm(self.bind(inner))
            case asked.Squares(inner):
                return _squares(self.bind(inner))
            case asked.Crossed(left, right):
                return _crossed(self.bind(left), self.bind(right))
            case asked.Concat(parts):
                return _concat([self.bind(part) for part in parts])
            case asked.Scaled(inner, factor):
                return _scaled(self.bind(inner), factor)
        raise InvalidQuery(f"not a vector: {type(vector).__name__}")

    def _dense(self, vector: Vector, wanted: int, name: str) -> Sized:
        v = self.bind(vector)
        if len(v) > MOST_DENSE:
            raise InvalidQuery(f"{name} goes with at most {MOST_DENSE} coordinates, got {len(v)}")
        if len(v) != wanted:
            raise InvalidQuery(f"{name} has {wanted} numbers a row, the vector {len(v)}")
        return v

    def _private(self, *parts: Integer) -> bool:
        return any(name in self.hidden for name in mentioned(*parts))

    def _one_hot(self, name: str, other: bool) -> Sized:
        column = self.schema[name]
        private = name in self.hidden
        if isinstance(column, Flag):
            values: tuple[object, ...] = (False, True)
            cells: CategoryCells | FlagCells = FlagCells(name, other)
        elif isinstance(column, Category) and column.values is not None:
            values = tuple(column.values)
            cells = CategoryCells(name, values, other)  # type: ignore[arg-type]
        else:
            kind = "open text: declare its values" if isinstance(column, Category) else "a Number"
            raise InvalidQuery(f"{name} is {kind}; one_hot takes declared values, bins takes edges")
        keys = [f"{name}={value}" for value in values] + ([f"{name}=*"] if other else [])
        return one_hot_of(nodes.Picked(cells, len(keys)), len(keys), keys, private)

    def _bins(self, of: Expression | Vector, edges: tuple[Literal, ...], other: bool) -> Sized:
        if isinstance(of, Vector):
            v = self.bind(of)
            if len(v) != 1:
                raise InvalidQuery(f"bins takes one number, the vector has {len(v)}")
            numbers = [self.rows.literal(edge, "number") for edge in edges]
            places, on_grid = [number / v.step for number in numbers], True
            low, high, private = v.lows[0], v.highs[0], v.private
            subject: Integer | nodes.Node = v.node
            name = "value"
        else:
            value = self.rows.number(of)
            name = of.name if isinstance(of, Column) else canonical.spelling(of)
            numbers = [self.rows.literal(edge, value.kind) for edge in edges]
            places, on_grid = [number / value.step for number in numbers], value.exact
            low, high, private = value.low, value.high, self._private(value.node)
            subject = FirstOf(value.node, Fixed(low - 2))
        if any(a >= b for a, b in pairwise(numbers)):
            raise InvalidQuery("edges must increase")
        rule = math.ceil if on_grid else _nearest
        steps = [rule(place) for place in places[:-1]]
        steps.append((math.floor if on_grid else _nearest)(places[-1]) + 1)  # the last is closed
        steps = [min(max(step, low - 1), high + 1) for step in steps]
        texts = [f"{float(number):g}" for number in numbers]
        keys = [f"{name} in [{a}, {b})" for a, b in pairwise(texts)]
        keys += [f"{name} in no bin"] if other else []
        return one_hot_of(nodes.Binned(subject, tuple(steps), other), len(keys), keys, private)

    def _cells(self, conditions: Sequence[Expression]) -> Sized:
        bound = [self.rows.condition(canonical.truth(condition)) for condition in conditions]
        leaves = []
        for start in range(0, len(bound), CHUNK):
            leaf: Integer = Fixed(CHUNK)
            for place, condition in reversed(list(enumerate(bound[start : start + CHUNK]))):
                leaf = Chosen(condition, Fixed(place), leaf)
            leaves.append(leaf)
        keys = [f"cell {i}" for i in range(len(bound))]
        node = nodes.First(tuple(leaves), CHUNK, len(bound))
        return one_hot_of(node, len(bound), keys, self._private(*leaves))


def _nearest(number: Fraction) -> int:
    return math.floor(number + Fraction(1, 2))


def _clip(v: Sized, clip: Fraction | None) -> Sized:
    if clip is None:
        return v
    v = settled(v)
    bound = math.floor(clip / v.step)
    if bound < 1:
        raise InvalidQuery(f"clip {float(clip):g} is below one step of the vector; take more")
    if v.norm_squared <= bound**2:
        return v
    if sum(max(-low, high) ** 2 for low, high in zip(v.lows, v.highs, strict=True)) >= ROOM:
        raise InvalidQuery("too many coordinates to clip; use fewer, or scale the vector down")
    return sized(
        nodes.Shrunk(v.node, bound),
        v.step,
        [max(min(low, 0), -bound) for low in v.lows],
        [min(max(high, 0), bound) for high in v.highs],
        v.keys,
        v.private,
        norm_squared=bound**2,
        norm_one=v.norm_one,
        indicator=v.indicator,
        exact=False,
    )


def _closest(v: Sized, centres: Matrix) -> nodes.Closest:
    rounded = tuple(tuple(_nearest(c / v.step) for c in row) for row in centres)
    largest = max(2 * reach(v, row) + sum(c * c for c in row) for row in rounded)
    if largest >= ROOM:
        raise InvalidQuery("a centre lies far outside the vector's range; move it closer")
    return nodes.Closest(v.node, rounded, largest)


def _from_nearest(v: Sized, closest: nodes.Closest) -> Sized:
    columns = list(zip(*closest.centres, strict=True))
    return sized(
        nodes.FromClosest(v.node, closest),
        v.step,
        [low - max(column) for low, column in zip(v.lows, columns, strict=True)],
        [high - min(column) for high, column in zip(v.highs, columns, strict=True)],
        v.keys,
        v.private,
        exact=v.exact,
    )


def _norm(v: Sized) -> Sized:
    if sum(max(-low, high) ** 2 for low, high in zip(v.lows, v.highs, strict=True)) >= ROOM:
        raise InvalidQuery("too many coordinates for a norm; use fewer, or scale the vector down")
    most = math.isqrt(v.norm_squared)
    return sized(nodes.Length(v.node), v.step, [0], [most], ["norm"], v.private, exact=False)


def _squares(v: Sized) -> Sized:
    bits = max(0, (v.largest**2).bit_length() - nodes.BITS - 1)
    least = [0 if a <= 0 <= b else min(a * a, b * b) for a, b in zip(v.lows, v.highs, strict=True)]
    most = [max(a * a, b * b) for a, b in zip(v.lows, v.highs, strict=True)]
    return sized(
        nodes.Squared(v.node, bits),
        v.step**2 * 2**bits,
        [shifted(x, bits) for x in least],
        [shifted(x, bits) for x in most],
        [f"{key} squared" for key in v.keys],
        v.private,
        norm_squared=rounded_square(v.norm_squared**2, bits, len(v), 1),
        norm_one=rounded_one(v.norm_squared, bits, len(v), 1),
        exact=v.exact and not bits,
    )


def _crossed(left: Sized, right: Sized) -> Sized:
    largest, size = left.largest * right.largest, len(left) * len(right)
    if size > MOST_COORDINATES:
        raise InvalidQuery(f"crossed makes {size} coordinates, at most {MOST_COORDINATES}")
    bits = 0 if largest <= MOST else largest.bit_length() - nodes.BITS - 1
    ends = [
        sorted(a * b for a in left_ends for b in right_ends)
        for left_ends in zip(left.lows, left.highs, strict=True)
        for right_ends in zip(right.lows, right.highs, strict=True)
    ]
    norm_squared, norm_one = product_squared(left, right), product_one(left, right)
    wide_squared, wide_one = change_squared(left, right), change_one(left, right)
    if bits:
        norm_squared = rounded_square(norm_squared, bits, size, 1)
        norm_one = rounded_one(norm_one, bits, size, 1)
        wide_squared = rounded_square(wide_squared, bits, size, 2)
        wide_one = rounded_one(wide_one, bits, size, 2)
    return sized(
        nodes.Paired(left.node, right.node, bits),
        left.step * right.step * 2**bits,
        [shifted(pair[0], bits) for pair in ends],
        [shifted(pair[-1], bits) for pair in ends],
        [f"{a}, {b}" for a in left.keys for b in right.keys],
        left.private or right.private,
        indicator=left.indicator and right.indicator,
        exact=left.exact and right.exact and not bits,
        norm_squared=norm_squared,
        norm_one=norm_one,
        wide_squared=wide_squared,
        wide_one=wide_one,
    )


def _concat(parts: list[Sized]) -> Sized:
    step = joint_step(parts)
    alike = [placed(part, step) for part in parts]
    inner: list[nodes.Node] = []
    for part in alike:
        inner.extend(part.node.parts if isinstance(part.node, nodes.Joined) else [part.node])
    constants = [part.constant for part in alike]
    known = [c for c in constants if c is not None]
    return sized(
        nodes.Joined(tuple(inner)),
        step,
        [low for part in alike for low in part.lows],
        [high for part in alike for high in part.highs],
        [key for part in alike for key in part.keys],
        any(part.private for part in alike),
        norm_squared=sum(part.norm_squared for part in alike),
        norm_one=sum(part.norm_one for part in alike),
        wide_squared=sum(part.wide_squared for part in alike),
        wide_one=sum(part.wide_one for part in alike),
        exact=all(part.exact for part in alike),
        constant=sum(known, ()) if len(known) == len(constants) else None,
    )


def _scaled(v: Sized, factor: Fraction) -> Sized:
    """A factor changes the size of a step, and perhaps the sign: nothing is rounded."""
    constant = None if v.constant is None else tuple(c * factor for c in v.constant)
    step = v.step * abs(factor)
    if factor > 0:
        return replace(v, step=step, constant=constant)
    if constant is not None:
        numbers = [-low for low in v.lows]
        return replace(constant_of(numbers, constant, step), keys=v.keys)
    return rescaled(v, -1, 0, step)
