"""VectorBinder: a vector over declared columns becomes an integer program with proved norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query import canonical
from sulq.kernel.query import vectors as asked
from sulq.kernel.query.expressions import Column, Expression, Literal
from sulq.kernel.query.vectors import Matrix, Numbers, Vector
from sulq.kernel.schema import vector_program as nodes
from sulq.kernel.schema.bind_rows import RowBinder
from sulq.kernel.schema.columns import Category, Flag, HiddenColumns, Known, Number, Schema
from sulq.kernel.schema.norms import (
    MOST,
    ROOM,
    BoundVector,
    change_one,
    change_squared,
    constant_of,
    doublings,
    joint_step,
    one_hot_of,
    placed,
    power_below,
    product_one,
    product_squared,
    reach,
    rescaled,
    root_up,
    rounded_one,
    rounded_square,
    settled,
    shifted,
    sized,
)
from sulq.kernel.schema.program import (
    BoundChoice,
    CategoryCells,
    Condition,
    FirstOf,
    Fixed,
    FlagCells,
    Integer,
    OfTable,
    rows_of_table,
)
from sulq.kernel.schema.ranges import World, mentioned, truth_of
from sulq.kernel.schema.sensitivity import Sensitivity, profiles
from sulq.kernel.schema.unit_columns import STEP, UnitColumns, numbered
from sulq.kernel.schema.vector_program import BITS, FULL, BlockSums, Projected

LARGEST_GRAM = 2_048
MATRIX_BITS = 25


def projected(v: BoundVector, matrix: Matrix) -> BoundVector:
    """floor((P v + half) / 2^bits) with P = matrix rounded, outputs within 2^20."""
    rough = max(reach(v, row) for row in matrix) * v.step
    if rough == 0:
        raise InvalidQuery("project wants a matrix that is not all 0")
    step = power_below(rough / (MOST // 2))
    entry = max(abs(m) for row in matrix for m in row) * v.step / step
    for bits in range(min(40, doublings(entry, 2**MATRIX_BITS)), -1, -1):
        rounded = [[_project_nearest(m * v.step * 2**bits / step) for m in row] for row in matrix]
        if max(reach(v, row) for row in rounded) < ROOM // 2:
            break
    else:
        raise InvalidQuery(
            "the numbers of the matrix differ too much from the vector's; scale it",
            reason=Reason.NEEDS_BOUNDS,
        )
    ends = []
    for row in rounded:
        pairs = [(m * a, m * b) for m, a, b in zip(row, v.lows, v.highs, strict=True)]
        if v.indicator:  # one column of the matrix, or none
            low = min(0, *(min(pair) for pair in pairs))
            high = max(0, *(max(pair) for pair in pairs))
        else:
            most = root_up(sum(m * m for m in row) * v.norm_squared)
            low = max(sum(min(pair) for pair in pairs), -most)
            high = min(sum(max(pair) for pair in pairs), most)
        ends.append((shifted(low, bits), shifted(high, bits)))
    stretch = _largest_stretch(rounded)
    size = len(rounded)
    norm_squared = rounded_square(stretch * v.norm_squared, bits, size, 1)
    if v.indicator:
        norm_squared = min(norm_squared, _longest_column(v, rounded, bits))
    return sized(
        nodes.Projected(v.node, tuple(map(tuple, rounded)), bits),
        step,
        [low for low, _ in ends],
        [high for _, high in ends],
        [f"projection {i}" for i in range(size)],
        v.private,
        norm_squared=norm_squared,
        norm_one=None,
        wide_squared=rounded_square(stretch * v.wide_squared, bits, size, 2),
        exact=False,
    )


def _longest_column(v: BoundVector, matrix: list[list[int]], bits: int) -> int:
    """The largest |P v|^2 where v has at most one coordinate that is not 0."""
    found = 0
    for column, low, high in zip(zip(*matrix, strict=True), v.lows, v.highs, strict=True):
        ends = [(abs(shifted(m * low, bits)), abs(shifted(m * high, bits))) for m in column]
        found = max(found, sum(max(pair) ** 2 for pair in ends))
    return found


def _largest_stretch(matrix: list[list[int]]) -> int:
    """A bound on the largest |P v|^2 / |v|^2, added up in Python's integers, which never wrap.

    The sum of squares; the largest row sum of P P', whose entries stay within 2^61 (2^11 products
    of two numbers within 2^25); or the largest row sum of P times its largest column sum.
    """
    squares: int = sum(x * x for row in matrix for x in row)
    if max(len(matrix), len(matrix[0])) <= LARGEST_GRAM:
        rows = np.array(matrix, dtype=np.int64)
        largest: int = max(_row_sums(rows @ rows.T))
        return min(squares, largest)
    across: int = max(sum(map(abs, row)) for row in matrix)
    down: int = max(sum(map(abs, column)) for column in zip(*matrix, strict=True))
    return min(squares, across * down)


def _row_sums(gram: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> list[int]:
    return [sum(map(abs, row)) for row in gram.tolist()]


def _project_nearest(number: Fraction) -> int:
    return math.floor(number + Fraction(1, 2))


# Labels and scores: margins, residuals and soft assignments, all in integers.
#
# A score is <weights, v> in steps of 2^-e, exact: weights are rounded once, on the finest grid on
# which no score can pass 2^50.


SCORE_ROOM = 2**50
MOST_SCORE_BITS = 45
MISSING = -1


def scores(v: BoundVector, weights: Matrix) -> tuple[Projected, int]:
    """One score per row of weights, and e: a unit of the score is 2^e."""
    rough = max(reach(v, row) for row in weights) * v.step
    most = MOST_SCORE_BITS if rough == 0 else min(MOST_SCORE_BITS, doublings(rough, SCORE_ROOM))
    for bits in range(most, nodes.TABLE_BITS - 1, -1):
        matrix = tuple(
            tuple(math.floor(w * v.step * 2**bits + Fraction(1, 2)) for w in row) for row in weights
        )
        if max(reach(v, row) for row in matrix) < SCORE_ROOM:
            return Projected(v.node, matrix, 0), bits
    raise InvalidQuery(
        "the weights are too large: a score could pass 2^40; scale them down",
        reason=Reason.NEEDS_BOUNDS,
    )


class ScoreBinder:
    """Binds what needs a label or a score."""

    def __init__(self, rows: RowBinder, hidden: HiddenColumns) -> None:
        self.rows = rows
        self.hidden = hidden

    def conditions(self, label: Expression) -> tuple[Condition, Condition]:
        """Where the label is true, and where it is false."""
        return (
            self.rows.condition(canonical.truth(label)),
            self.rows.condition(canonical.truth(label, False)),
        )

    def sign(self, label: Expression) -> tuple[Integer, bool]:
        """+1, -1, or 0 where the label is missing; and whether it is private."""
        true, false = self.conditions(label)
        leaf = BoundChoice(true, Fixed(1), BoundChoice(false, Fixed(-1), Fixed(0)))
        return leaf, any(name in self.hidden for name in mentioned(true, false))

    def margin(
        self, v: BoundVector, label: Expression, weights: Numbers, at_most: Fraction
    ) -> BoundVector:
        score, bits = scores(v, (weights,))
        sign, private = self.sign(label)
        edge = min(max(math.floor(at_most * 2**bits), -2 * SCORE_ROOM), 2 * SCORE_ROOM)
        node = nodes.BoundMargin(score, sign, edge)
        return one_hot_of(node, 1, [f"margin <= {float(at_most):g}"], v.private or private)

    def signed(self, v: BoundVector, label: Expression) -> BoundVector:
        sign, private = self.sign(label)
        sides = [max(-low, high) for low, high in zip(v.lows, v.highs, strict=True)]
        return sized(
            nodes.BoundSigned(v.node, sign),
            v.step,
            [-side for side in sides],
            sides,
            v.keys,
            v.private or private,
            norm_squared=v.norm_squared,
            norm_one=v.norm_one,
            exact=v.exact,
        )

    def softmax(self, v: BoundVector, weights: Matrix) -> BoundVector:
        score, bits = scores(v, weights)
        count = len(weights)
        return sized(
            nodes.BoundSoftmax(score, bits),
            STEP,
            [0] * count,
            [FULL] * count,
            [f"share {i}" for i in range(count)],
            v.private,
            norm_squared=FULL**2,  # the shares are not negative and add up to 2^18 at most
            norm_one=FULL,
            exact=False,
        )

    def residual(
        self, v: BoundVector, weights: Matrix, label: Expression, kind: str, clip: Fraction | None
    ) -> BoundVector:
        column = self.rows.schema[label.name] if isinstance(label, Column) else None
        if isinstance(column, Category) or len(weights) > 1:
            return self._classes(v, weights, column)
        if kind == "linear":
            return self._linear(v, weights, label, clip)
        score, bits = scores(v, weights)
        sign, private = self.sign(label)
        private = private or v.private
        if kind == "hinge":
            node: nodes.Node = nodes.HingeSlope(score, sign, bits)
            return sized(node, Fraction(1), [-1], [1], ["residual"], private)
        node = nodes.LogisticSlope(score, sign, bits)
        return sized(node, STEP, [-FULL], [FULL], ["residual"], private, exact=False)

    def _linear(
        self, v: BoundVector, weights: Matrix, label: Expression, clip: Fraction | None
    ) -> BoundVector:
        exact, bits = scores(v, weights)
        down = max(0, bits - BITS)
        score = Projected(v.node, exact.matrix, down)
        step = Fraction(1, 2 ** (bits - down))
        target, most, private = self._target(label)
        if step != STEP:
            raise InvalidQuery(
                "the weights are too large for a linear residual; scale them down",
                reason=Reason.NEEDS_BOUNDS,
            )
        largest = shifted(reach(v, exact.matrix[0]), down) + 1 + most
        if clip is not None:
            largest = min(largest, max(1, math.floor(clip / STEP)))
        node = nodes.LinearSlope(score, target, MISSING, largest)
        hidden = private or v.private
        return sized(node, STEP, [-largest], [largest], ["residual"], hidden, exact=False)

    def _target(self, label: Expression) -> tuple[Integer, int, bool]:
        """The label in [0, 2^18], or MISSING; its largest value; whether it is private."""
        if isinstance(label, Column):
            column = self.rows.schema[label.name]
            if isinstance(column, Number):
                return *numbered(column, MISSING), column.name in self.hidden
        true, false = self.conditions(label)
        leaf = BoundChoice(true, Fixed(FULL), BoundChoice(false, Fixed(0), Fixed(MISSING)))
        return leaf, FULL, any(name in self.hidden for name in mentioned(true, false))

    def _classes(self, v: BoundVector, weights: Matrix, column: object) -> BoundVector:
        if not isinstance(column, Category) or column.values is None:
            raise InvalidQuery(
                "several rows of weights want a label that is a Category with declared values"
            )
        values = tuple(column.values)
        if len(weights) != len(values):
            raise InvalidQuery(
                f"{column.name} has {len(values)} values: want as many rows of weights,"
                f" got {len(weights)}"
            )
        score, bits = scores(v, weights)
        label = CategoryCells(column.name, values, False)  # type: ignore[arg-type]
        node = nodes.SharesSlope(nodes.BoundSoftmax(score, bits), label)
        count = len(values)
        return sized(
            node,
            STEP,
            [-FULL] * count,
            [FULL] * count,
            [f"{column.name}={value}" for value in values],
            v.private or column.name in self.hidden,
            norm_squared=2 * FULL**2,  # u = 2^18 - p_y: the others add up to u at most
            norm_one=2 * FULL,
            exact=False,
        )


# A vector times a public matrix, in integers, with proved norms.


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
        self.hidden = HiddenColumns(_public(schema))
        self.scores = ScoreBinder(self.rows, self.hidden)
        self.width = 0  # coordinates of all vectors bound, the inner ones too

    def bind(self, vector: Vector) -> BoundVector:
        """The vector within 2^20 steps per coordinate."""
        found = settled(self._bind(vector))
        self.width += len(found)
        if len(found) > MOST_COORDINATES:
            raise InvalidQuery(
                f"a vector has at most {MOST_COORDINATES} coordinates", reason=Reason.TOO_LARGE
            )
        if self.width > MOST_WIDTH:
            raise InvalidQuery(
                f"the vectors of a question have at most {MOST_WIDTH} coordinates together,"
                " the inner ones counted too; take fewer",
                reason=Reason.TOO_LARGE,
            )
        return found

    def _bind(self, vector: Vector) -> BoundVector:
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

    def _dense(self, vector: Vector, wanted: int, name: str) -> BoundVector:
        v = self.bind(vector)
        if len(v) > MOST_DENSE:
            raise InvalidQuery(
                f"{name} goes with at most {MOST_DENSE} coordinates, got {len(v)}",
                reason=Reason.TOO_LARGE,
            )
        if len(v) != wanted:
            raise InvalidQuery(f"{name} has {wanted} numbers a row, the vector {len(v)}")
        return v

    def _private(self, *parts: Integer) -> bool:
        return any(name in self.hidden for name in mentioned(*parts))

    def _one_hot(self, name: str, other: bool) -> BoundVector:
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
        return one_hot_of(nodes.BoundOneHot(cells, len(keys)), len(keys), keys, private)

    def _bins(
        self, of: Expression | Vector, edges: tuple[Literal, ...], other: bool
    ) -> BoundVector:
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

    def _cells(self, conditions: Sequence[Expression]) -> BoundVector:
        bound = [self.rows.condition(canonical.truth(condition)) for condition in conditions]
        leaves = []
        for start in range(0, len(bound), CHUNK):
            leaf: Integer = Fixed(CHUNK)
            for place, condition in reversed(list(enumerate(bound[start : start + CHUNK]))):
                leaf = BoundChoice(condition, Fixed(place), leaf)
            leaves.append(leaf)
        keys = [f"cell {i}" for i in range(len(bound))]
        node = nodes.First(tuple(leaves), CHUNK, len(bound))
        return one_hot_of(node, len(bound), keys, self._private(*leaves))


def _nearest(number: Fraction) -> int:
    return math.floor(number + Fraction(1, 2))


def _clip(v: BoundVector, clip: Fraction | None) -> BoundVector:
    if clip is None:
        return v
    v = settled(v)
    bound = math.floor(clip / v.step)
    if bound < 1:
        raise InvalidQuery(
            f"clip {float(clip):g} is below one step of the vector; take more",
            reason=Reason.NEEDS_BOUNDS,
        )
    if v.norm_squared <= bound**2:
        return v
    if sum(max(-low, high) ** 2 for low, high in zip(v.lows, v.highs, strict=True)) >= ROOM:
        raise InvalidQuery(
            "too many coordinates to clip; use fewer, or scale the vector down",
            reason=Reason.TOO_LARGE,
        )
    return sized(
        nodes.BoundClipped(v.node, bound),
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


def _closest(v: BoundVector, centres: Matrix) -> nodes.BoundNearest:
    rounded = tuple(tuple(_nearest(c / v.step) for c in row) for row in centres)
    largest = max(2 * reach(v, row) + sum(c * c for c in row) for row in rounded)
    if largest >= ROOM:
        raise InvalidQuery(
            "a centre lies far outside the vector's range; move it closer",
            reason=Reason.NEEDS_BOUNDS,
        )
    return nodes.BoundNearest(v.node, rounded, largest)


def _from_nearest(v: BoundVector, closest: nodes.BoundNearest) -> BoundVector:
    columns = list(zip(*closest.centres, strict=True))
    return sized(
        nodes.BoundFromNearest(v.node, closest),
        v.step,
        [low - max(column) for low, column in zip(v.lows, columns, strict=True)],
        [high - min(column) for high, column in zip(v.highs, columns, strict=True)],
        v.keys,
        v.private,
        exact=v.exact,
    )


def _norm(v: BoundVector) -> BoundVector:
    if sum(max(-low, high) ** 2 for low, high in zip(v.lows, v.highs, strict=True)) >= ROOM:
        raise InvalidQuery(
            "too many coordinates for a norm; use fewer, or scale the vector down",
            reason=Reason.TOO_LARGE,
        )
    most = math.isqrt(v.norm_squared)
    return sized(nodes.BoundNorm(v.node), v.step, [0], [most], ["norm"], v.private, exact=False)


def _squares(v: BoundVector) -> BoundVector:
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


def _crossed(left: BoundVector, right: BoundVector) -> BoundVector:
    largest, size = left.largest * right.largest, len(left) * len(right)
    if size > MOST_COORDINATES:
        raise InvalidQuery(
            f"crossed makes {size} coordinates, at most {MOST_COORDINATES}", reason=Reason.TOO_LARGE
        )
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
        nodes.BoundCrossed(left.node, right.node, bits),
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


def _concat(parts: list[BoundVector]) -> BoundVector:
    step = joint_step(parts)
    alike = [placed(part, step) for part in parts]
    inner: list[nodes.Node] = []
    for part in alike:
        inner.extend(part.node.parts if isinstance(part.node, nodes.BoundConcat) else [part.node])
    constants = [part.constant for part in alike]
    known = [c for c in constants if c is not None]
    return sized(
        nodes.BoundConcat(tuple(inner)),
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


def _scaled(v: BoundVector, factor: Fraction) -> BoundVector:
    """A factor changes the size of a step, and perhaps the sign: nothing is rounded."""
    constant = None if v.constant is None else tuple(c * factor for c in v.constant)
    step = v.step * abs(factor)
    if factor > 0:
        return replace(v, step=step, constant=constant)
    if constant is not None:
        numbers = [-low for low in v.lows]
        return replace(constant_of(numbers, constant, step), keys=v.keys)
    return rescaled(v, -1, 0, step)


# outer(left, right): its program, its unit and how far one row or person can move it.
#
# In units of the largest product of two coordinates. Add-remove: |L||R|. Replace: the change of L
# (x) R while the row stays in S, and |L||R| where private columns decide whether it is in S, or
# how many rows a person has. A person of m rows moves m times as much (M.5). Proof:
# docs/proofs/vectors.md.


MOST_CELLS = 1_000_000


@dataclass(frozen=True, slots=True)
class BoundOuter:
    """Both sides with their norms, the program, and what it costs whom; rows per person."""

    left: BoundVector
    right: BoundVector
    program: BlockSums
    unit: int
    reach: tuple[tuple[Sensitivity, tuple[int, ...]], ...]
    rows_each: int

    @property
    def step(self) -> Fraction:
        """User units per integer."""
        return self.left.step * self.right.step

    @property
    def symmetric(self) -> bool:
        """The same vector on both sides: the answer is a symmetric matrix."""
        return self.left.node == self.right.node and self.left.step == self.right.step

    @property
    def rounding(self) -> Fraction:
        """How far one row's product may be off by rounding its coordinates, in user units."""
        steps = Fraction(0)
        if not self.left.exact:
            steps += Fraction(self.right.largest, 2)
        if not self.right.exact:
            steps += Fraction(self.left.largest, 2)
        return steps * self.step


def bind_outer(
    left: Vector,
    right: Vector,
    rows: Expression,
    schema: Schema,
    neighbours: str,
    asked_before: bool = False,
    of: OfTable | None = None,
) -> BoundOuter:
    """Prove both sides and price the matrix of their products."""
    binder = VectorBinder(schema, asked_before)
    one, two = binder.bind(left), binder.bind(right)
    if len(one) * len(two) > MOST_CELLS:
        raise InvalidQuery(
            f"the answer would have {len(one)} x {len(two)} numbers, at most {MOST_CELLS};"
            " take fewer coordinates",
            reason=Reason.TOO_LARGE,
        )
    condition = binder.rows.condition(rows)
    if of is not None:
        condition = rows_of_table(of, condition)
    largest = one.largest * two.largest
    shape = (len(one), len(two))
    program = BlockSums(condition, one.node, two.node, shape, largest, binder.width)
    reach = [
        (_moved(one, two, condition, given, schema, neighbours), accounts)
        for given, accounts in profiles(schema, list(mentioned(condition)))
    ]
    touched = any(moved.squared for moved, _ in reach)
    unit = largest if touched else 0
    if unit == 1 and not (one.nonnegative and two.nonnegative):
        unit = 2  # a product of -1, 0, 1 can move by 2
    return BoundOuter(
        one,
        two,
        program,
        unit,
        tuple((moved.in_units(unit, schema.max_rows), accounts) for moved, accounts in reach),
        schema.max_rows,
    )


def _public(schema: Schema) -> frozenset[str]:
    """Which rows of a person count depends on all their columns: then nothing is public."""
    if schema.unit != "row":
        return frozenset()
    return frozenset(column.name for column in schema.columns if column.public)


@dataclass(frozen=True, slots=True)
class _Moved:
    """The most one row of one public profile can change, in steps."""

    one: int
    squared: int
    coordinates: int

    def in_units(self, unit: int, rows: int) -> Sensitivity:
        if unit == 0:
            return Sensitivity(Fraction(0), Fraction(0), 0)
        return Sensitivity(
            Fraction(rows * self.one, unit),
            Fraction(rows**2 * self.squared, unit**2),
            rows * self.coordinates,
        )


def _moved(
    left: BoundVector,
    right: BoundVector,
    rows: Condition,
    given: dict[str, Known],
    schema: Schema,
    neighbours: str,
) -> _Moved:
    truth = truth_of(rows, World(_public(schema), given))
    if truth.verdict == "never":
        return _Moved(0, 0, 0)
    comes = _Moved(product_one(left, right), product_squared(left, right), _alive(left, right))
    if neighbours == "add-remove":
        return comes
    changes = _Moved(change_one(left, right), change_squared(left, right), 2 * comes.coordinates)
    if changes.squared == 0:
        changes = _Moved(0, 0, 0)
    if not truth.private and schema.one_each:  # how many rows a person has is private
        return changes
    return _Moved(
        max(comes.one, changes.one),
        max(comes.squared, changes.squared),
        max(comes.coordinates, changes.coordinates),
    )


def _alive(left: BoundVector, right: BoundVector) -> int:
    """How many products can differ from 0 on one row."""
    return _most(left) * _most(right)


def _most(v: BoundVector) -> int:
    if v.indicator:
        return 1
    return min(len(v), v.norm_one) if v.largest <= 1 else len(v)  # 0/1: the sum counts them
