"""Columns as coordinates in [0, 1], in steps of 2^-18: the leaves of every vector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.schema.columns import Category, Flag, HiddenColumns, Number, Schema
from sulq.kernel.schema.norms import BoundVector, sized
from sulq.kernel.schema.program import (
    Added,
    BoundChoice,
    BoundScaled,
    CategoryCells,
    FirstOf,
    Fixed,
    FlagIs,
    Integer,
    Lesser,
    Quantised,
)
from sulq.kernel.schema.ranges import round_leaf
from sulq.kernel.schema.vector_program import (
    BITS,
    FULL,
    BoundColumns,
    BoundConcat,
    BoundOneHot,
    Looked,
    Node,
    UnitLeaf,
)

STEP = Fraction(1, FULL)
FARTHEST = 2**50
"""No leaf passes this: whole numbers and their halves are then exact in binary64."""
MOST_ONE_HOT = 512
"""Values of a Category inside `columns`; `one_hot` takes more."""


def grid_point(number: Fraction) -> int:
    steps: int = math.floor(number * FULL + Fraction(1, 2))
    return steps


EXACT_OFFSET = 2**51
"""Where a range begins, in steps of 2^-18 of it: beyond, binary64 would drop steps."""


def unit_leaf(column: Number) -> tuple[UnitLeaf, int, int]:
    """A Number's leaf, 2^18 steps over its range; where it starts; its length.

    A range that is narrow beside its distance from 0 gets fewer, larger steps.
    """
    low, high = column.range
    far = max(abs(low), abs(high)) / (high - low)
    coarse = 0
    while coarse < BITS and far * 2 ** (BITS - coarse) > FARTHEST:
        coarse += 1
    if far * 2 ** (BITS - coarse) > FARTHEST or far * 2**BITS > EXACT_OFFSET:
        raise InvalidQuery(
            f"{column.name}: its range is too narrow beside its distance from 0; shift the column"
        )
    per_unit = Fraction(2 ** (BITS - coarse)) / (high - low)
    bottom, top, scale = (n.numerator / n.denominator for n in (low, high, per_unit))
    node = Quantised(column.name, bottom, top, scale)
    start = round_leaf(node, bottom)
    length = min(round_leaf(node, top) - start, 2 ** (BITS - coarse))
    leaf = UnitLeaf(node, start + length, 2**coarse, start << coarse)
    return leaf, start << coarse, length << coarse


def numbered(column: Number, missing: int) -> tuple[Integer, int]:
    """A Number's steps above its low end, `missing` where there is none; and the largest."""
    leaf, start, length = unit_leaf(column)
    steps = BoundScaled(Lesser(leaf.value, Fixed(leaf.most)), leaf.scale)
    return FirstOf(Added((steps, Fixed(-start))), Fixed(missing)), length


class UnitColumns:
    """Collects coordinates, column by column."""

    def __init__(self, schema: Schema, hidden: HiddenColumns) -> None:
        self.schema = schema
        self.hidden = hidden
        self.lows: list[int] = []
        self.highs: list[int] = []
        self.keys: list[str] = []
        self.nodes: list[Node] = []
        self.norm_squared = self.norm_one = self.wide_squared = self.wide_one = 0
        self.exact = True

    def bound(self, names: Sequence[str], centre: Sequence[Fraction] | None) -> BoundVector:
        """The columns side by side, minus the centre."""
        width = sum(self._width(name) for name in names)
        if centre is not None and len(centre) not in (1, width):
            raise InvalidQuery(f"centre wants 1 or {width} numbers, got {len(centre)}")
        told = None if centre is None else list(centre) * (width if len(centre) == 1 else 1)
        for name in names:
            place = len(self.lows)
            here = None if told is None else told[place : place + self._width(name)]
            column = self.schema[name]
            if isinstance(column, Category):
                self._category(column, here)
            else:
                self._single(column, None if here is None else here[0])
        return sized(
            self.nodes[0] if len(self.nodes) == 1 else BoundConcat(tuple(self.nodes)),
            STEP,
            self.lows,
            self.highs,
            self.keys,
            any(name in self.hidden for name in names),
            norm_squared=self.norm_squared,
            norm_one=self.norm_one,
            wide_squared=self.wide_squared,
            wide_one=self.wide_one,
            exact=self.exact,
        )

    def _width(self, name: str) -> int:
        column = self.schema[name]
        if not isinstance(column, Category):
            return 1
        if column.values is None:
            raise InvalidQuery(
                f"{name} is {column.opened}, which has no coordinates; declare its values",
                reason=Reason.OPEN_TEXT,
                about={"column": name},
            )
        if len(column.values) > MOST_ONE_HOT:
            raise InvalidQuery(
                f"{name} has {len(column.values)} values, columns takes {MOST_ONE_HOT}; use one_hot"
            )
        return len(column.values)

    def _single(self, column: Number | Flag, centre: Fraction | None) -> None:
        if isinstance(column, Flag):
            start, length = 0, FULL
            middle = grid_point(centre or Fraction(0))
            instead = FULL // 2 if centre is None else middle
            leaf: Integer | UnitLeaf = BoundChoice(
                FlagIs(column.name, True),
                Fixed(FULL),
                BoundChoice(FlagIs(column.name, False), Fixed(0), Fixed(instead)),
            )
            self.exact = self.exact and (centre or Fraction(0)) * FULL == middle
        else:
            inner, start, length = unit_leaf(column)
            middle = grid_point(centre or Fraction(0))
            instead = length // 2 if centre is None else middle
            leaf = replace(inner, instead=start + instead)
            self.exact = False
        ends = (-middle, length - middle, instead - middle)
        low, high = min(ends), max(ends)
        side, width = max(-low, high), high - low if column.name in self.hidden else 0
        self._add(column.name, low, high, leaf, start + middle)
        self._grow(side**2, side, width**2, width)

    def _add(self, key: str, low: int, high: int, leaf: Integer | UnitLeaf, offset: int) -> None:
        self.lows.append(low)
        self.highs.append(high)
        self.keys.append(key)
        if self.nodes and isinstance(self.nodes[-1], BoundColumns):
            last = self.nodes.pop()
            assert isinstance(last, BoundColumns)  # noqa: S101
            self.nodes.append(BoundColumns((*last.leaves, leaf), (*last.offsets, offset)))
        else:
            self.nodes.append(BoundColumns((leaf,), (offset,)))

    def _category(self, column: Category, centre: Sequence[Fraction] | None) -> None:
        values = tuple(column.values or ())
        middle = [grid_point(c) for c in centre or [Fraction(0)] * len(values)]
        evenly = 0 if centre else grid_point(Fraction(1, len(values)))
        spread = [evenly] * len(values)
        table = [
            [(FULL if i == j else 0) - middle[j] for j in range(len(values))]
            for i in range(len(values))
        ]
        rows = [*table, spread]
        columns = list(zip(*rows, strict=True))
        self.lows += [min(column_) for column_ in columns]
        self.highs += [max(column_) for column_ in columns]
        self.keys += [f"{column.name}={value}" for value in values]
        if centre:
            on_grid = all(c * FULL == m for c, m in zip(centre, middle, strict=True))
            self.exact = self.exact and on_grid
        norm2 = max(sum(x * x for x in row) for row in rows)
        norm1 = max(sum(map(abs, row)) for row in rows)
        wide2 = wide1 = 0
        if column.name in self.hidden:  # two values differ in two places, a missing one in all
            gaps = [[x - y for x, y in zip(row, spread, strict=True)] for row in table]
            two = 2 if len(values) > 1 else 0
            wide2 = max(two * FULL**2, *(sum(x * x for x in gap) for gap in gaps))
            wide1 = max(two * FULL, *(sum(map(abs, gap)) for gap in gaps))
        self._grow(norm2, norm1, wide2, wide1)
        cells = CategoryCells(column.name, values, False)  # type: ignore[arg-type]
        picked = BoundOneHot(cells, len(values))
        self.nodes.append(Looked(picked, tuple(map(tuple, rows))))

    def _grow(self, norm2: int, norm1: int, wide2: int, wide1: int) -> None:
        self.norm_squared += norm2
        self.norm_one += norm1
        self.wide_squared += wide2
        self.wide_one += wide1
