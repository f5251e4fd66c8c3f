"""outer(left, right): its program, its unit and how far one row or person can move it.

In units of the largest product of two coordinates. Add-remove: |L||R|. Replace: the change of
L (x) R while the row stays in S, and |L||R| where private columns decide whether it is in S, or
how many rows a person has.
A person of m rows moves m times as much (M.5). Proof: docs/proofs/vectors.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sulq.errors import InvalidQuery
from sulq.query.expressions import Expression
from sulq.query.vector_values import Vector
from sulq.schema.bound import Condition
from sulq.schema.columns import Schema
from sulq.schema.ranges import World, mentioned, truth_of
from sulq.schema.sensitivity import Sensitivity, profiles
from sulq.schema.strata import Known
from sulq.schema.vector_binding import VectorBinder
from sulq.schema.vector_bounds import (
    Sized,
    change_one,
    change_squared,
    product_one,
    product_squared,
)
from sulq.schema.vectors import BlockSums

MOST_CELLS = 1_000_000


@dataclass(frozen=True, slots=True)
class BoundOuter:
    """Both sides with their norms, the program, and what it costs whom; rows per person."""

    left: Sized
    right: Sized
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
) -> BoundOuter:
    """Prove both sides and price the matrix of their products."""
    binder = VectorBinder(schema, asked_before)
    one, two = binder.bind(left), binder.bind(right)
    if len(one) * len(two) > MOST_CELLS:
        raise InvalidQuery(
            f"the answer would have {len(one)} x {len(two)} numbers, at most {MOST_CELLS};"
            " take fewer coordinates"
        )
    condition = binder.rows.condition(rows)
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
    left: Sized,
    right: Sized,
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
    if not truth.private and schema.unit == "row":  # how many rows a person has is private
        return changes
    return _Moved(
        max(comes.one, changes.one),
        max(comes.squared, changes.squared),
        max(comes.coordinates, changes.coordinates),
    )


def _alive(left: Sized, right: Sized) -> int:
    """How many products can differ from 0 on one row."""
    return _most(left) * _most(right)


def _most(v: Sized) -> int:
    if v.indicator:
        return 1
    return min(len(v), v.norm_one) if v.largest <= 1 else len(v)  # 0/1: the sum counts them
