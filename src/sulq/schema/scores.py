"""Labels and scores: margins, residuals and soft assignments, all in integers.

A score is <weights, v> in steps of 2^-e, exact: weights are rounded once, on the finest grid on
which no score can pass 2^50.
"""

from __future__ import annotations

import math
from fractions import Fraction

from sulq.errors import InvalidQuery
from sulq.query import canonical
from sulq.query.expressions import Column, Expression
from sulq.query.vector_values import Matrix, Numbers
from sulq.schema import vectors as nodes
from sulq.schema.bound import CategoryCells, Chosen, Condition, Fixed, Integer
from sulq.schema.columns import Category, Number
from sulq.schema.ranges import mentioned
from sulq.schema.rows import RowBinder
from sulq.schema.unit_columns import STEP, numbered
from sulq.schema.vector_bounds import Sized, doublings, one_hot_of, reach, shifted, sized
from sulq.schema.vectors import BITS, FULL, Projected

ROOM = 2**50
MOST_SCORE_BITS = 45
MISSING = -1


def scores(v: Sized, weights: Matrix) -> tuple[Projected, int]:
    """One score per row of weights, and e: a unit of the score is 2^e."""
    rough = max(reach(v, row) for row in weights) * v.step
    most = MOST_SCORE_BITS if rough == 0 else min(MOST_SCORE_BITS, doublings(rough, ROOM))
    for bits in range(most, nodes.TABLE_BITS - 1, -1):
        matrix = tuple(
            tuple(math.floor(w * v.step * 2**bits + Fraction(1, 2)) for w in row) for row in weights
        )
        if max(reach(v, row) for row in matrix) < ROOM:
            return Projected(v.node, matrix, 0), bits
    raise InvalidQuery("the weights are too large: a score could pass 2^40; scale them down")


class ScoreBinder:
    """Binds what needs a label or a score."""

    def __init__(self, rows: RowBinder, hidden: frozenset[str]) -> None:
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
        leaf = Chosen(true, Fixed(1), Chosen(false, Fixed(-1), Fixed(0)))
        return leaf, any(name in self.hidden for name in mentioned(true, false))

    def margin(self, v: Sized, label: Expression, weights: Numbers, at_most: Fraction) -> Sized:
        score, bits = scores(v, (weights,))
        sign, private = self.sign(label)
        edge = min(max(math.floor(at_most * 2**bits), -2 * ROOM), 2 * ROOM)
        node = nodes.Within(score, sign, edge)
        return one_hot_of(node, 1, [f"margin <= {float(at_most):g}"], v.private or private)

    def signed(self, v: Sized, label: Expression) -> Sized:
        sign, private = self.sign(label)
        sides = [max(-low, high) for low, high in zip(v.lows, v.highs, strict=True)]
        return sized(
            nodes.Flipped(v.node, sign),
            v.step,
            [-side for side in sides],
            sides,
            v.keys,
            v.private or private,
            norm_squared=v.norm_squared,
            norm_one=v.norm_one,
            exact=v.exact,
        )

    def softmax(self, v: Sized, weights: Matrix) -> Sized:
        score, bits = scores(v, weights)
        count = len(weights)
        return sized(
            nodes.Shares(score, bits),
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
        self, v: Sized, weights: Matrix, label: Expression, kind: str, clip: Fraction | None
    ) -> Sized:
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

    def _linear(self, v: Sized, weights: Matrix, label: Expression, clip: Fraction | None) -> Sized:
        exact, bits = scores(v, weights)
        down = max(0, bits - BITS)
        score = Projected(v.node, exact.matrix, down)
        step = Fraction(1, 2 ** (bits - down))
        target, most, private = self._target(label)
        if step != STEP:
            raise InvalidQuery("the weights are too large for a linear residual; scale them down")
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
        leaf = Chosen(true, Fixed(FULL), Chosen(false, Fixed(0), Fixed(MISSING)))
        return leaf, FULL, any(name in self.hidden for name in mentioned(true, false))

    def _classes(self, v: Sized, weights: Matrix, column: object) -> Sized:
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
        node = nodes.SharesSlope(nodes.Shares(score, bits), label)
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
