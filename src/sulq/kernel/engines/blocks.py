"""Outer products on blocks of rows: exact integers at BLAS speed.

Coordinates are whole numbers held in binary64. Binding proved that no intermediate passes 2^52,
and a slice has so few rows that no sum of products passes 2^53: every step is exact, in any
order of addition. Totals go on in 64-bit and then in Python integers.
Proof: docs/proofs/vectors.md, claims 10 and 11.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sulq.kernel.engines.proved import Impossible, all_within
from sulq.kernel.schema import vector_program as nodes
from sulq.kernel.schema.program import CategoryCells, FlagCells
from sulq.kernel.schema.vector_program import (
    BITS,
    FULL,
    LINE_BITS,
    TABLE_BITS,
    TABLE_REACH,
    BlockSums,
    Leaf,
    Node,
    UnitLeaf,
)

Floats: TypeAlias = NDArray[np.float64]
Indexes: TypeAlias = NDArray[np.int64]
Table: TypeAlias = tuple[Indexes, Indexes]


def within(score: Floats, sign: Floats, at_most: float) -> Indexes:
    """0 where the margin is small, else -1."""
    return np.where((sign != 0.0) & (sign * score <= at_most), 0, -1)


def linear(score: Floats, label: Floats, missing: int, bound: float) -> Floats:
    slope = np.clip(score - label, -bound, bound)
    slope[label == missing] = 0.0
    return slope[None, :]


def hinge(score: Floats, sign: Floats, unit: float) -> Floats:
    return np.where(sign * score < unit, -sign, 0.0)[None, :]


def lines(table: tuple[int, ...]) -> Table:
    """Entries, and how much the next one differs."""
    entries = np.array(table, np.int64)
    return entries, np.append(np.diff(entries), 0)


def _tabled(score: Floats, bits: int, table: Table) -> Floats:
    """The table at `score`, a number from 0 on in steps of 2^-bits; straight between entries."""
    fine = TABLE_BITS + LINE_BITS
    place = np.floor(score * 2.0 ** (fine - bits)).astype(np.int64)
    entry, part = place >> LINE_BITS, place & ((1 << LINE_BITS) - 1)
    entries, slopes = table
    half = 1 << (LINE_BITS - 1)
    found: Indexes = entries[entry] + ((slopes[entry] * part + half) >> LINE_BITS)
    return found.astype(np.float64)


def logistic(score: Floats, sign: Floats, bits: int, table: Table) -> Floats:
    reach = TABLE_REACH * 2.0**bits
    slope = _tabled(np.clip(score, -reach, reach) + reach, bits, table)
    slope -= np.where(sign == 1.0, float(FULL), 0.0)
    slope[sign == 0.0] = 0.0
    return slope[None, :]


def shares(scores: Floats, bits: int, table: Table) -> Floats:
    below = np.minimum(scores.max(axis=0) - scores, TABLE_REACH * 2.0**bits)
    weights = _tabled(below, bits, table)
    parts: Floats = np.floor(weights * 2.0**BITS / weights.sum(axis=0))
    return parts


def classes(shares: Floats, label: Indexes) -> Floats:
    here: NDArray[Any] = label == np.arange(len(shares))[:, None]
    slope = shares - here * float(FULL)
    slope[:, label < 0] = 0.0
    return slope


# Vector programs compiled to NumPy: one function per node, buffers made once.
#
# A dense part is an array (coordinates, rows) of whole numbers in binary64; a one-hot part is the
# row's coordinate number, -1 for none. Proof of exactness: docs/proofs/vectors.md, claim 10.


PACKED = 2**52


@dataclass(frozen=True, slots=True)
class Choice:
    """`value` at one coordinate of each row."""

    index: Indexes
    width: int
    value: int = 1


Part: TypeAlias = Floats | Choice
Parts: TypeAlias = list[Part]


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows: an array per leaf, and the parts that were already worked out."""

    columns: Sequence[NDArray[np.generic]]
    rows: int
    known: dict[int, Parts]


Step: TypeAlias = Callable[[Block], Parts]


def compiled(node: Node, place: Mapping[Leaf, int], most: int, known: dict[object, Step]) -> Step:
    """The node as a function of a block of at most `most` rows; equal nodes are worked out once."""
    found = known.get(node)
    if found is None:
        plain = _Compiler(place, most, known).step(node)
        number = len(known)

        def found(block: Block) -> Parts:
            parts = block.known.get(number)
            if parts is None:
                parts = block.known[number] = plain(block)
            return parts

        known[node] = found
    return found


@dataclass(frozen=True, slots=True)
class _Compiler:
    place: Mapping[Leaf, int]
    most: int
    known: dict[object, Step]

    def step(self, node: Node) -> Step:
        match node:
            case nodes.BoundConstant(values):
                filled = np.repeat(np.array(values, np.float64)[:, None], self.most, axis=1)
                return lambda block: [filled[:, : block.rows]]
            case nodes.BoundColumns(leaves, offsets):
                return self._coordinates(leaves, offsets)
            case nodes.BoundOneHot(cells, count):
                index = self._index(cells)
                return lambda block: [Choice(index(block), count)]
            case nodes.Binned():
                return self._binned(node)
            case nodes.First():
                return self._first(node)
            case nodes.Looked(of, table):
                rows = np.array(table, np.float64).T.copy()
                inner = self._compiled(of)
                return lambda block: [rows[:, _chosen(inner(block)).index]]
            case nodes.BoundConcat(parts):
                return self._joined(parts)
            case nodes.BoundNearest():
                return self._closest(node)
            case nodes.BoundCrossed(left, right, bits):
                return self._paired(left, right, bits)
            case nodes.Projected(of, matrix, bits):
                return self._projected(of, np.array(matrix, np.float64), bits)
            case nodes.Rescaled(of, factor, bits):
                inner = self._compiled(of)
                return lambda block: [_rescaled(part, factor, bits) for part in inner(block)]
            case nodes.BoundClipped(of, bound):
                dense = self._dense(of)
                return lambda block: [_shrunk(dense(block), float(bound))]
            case nodes.BoundFromNearest(of, closest):
                return self._from_closest(of, closest)
            case nodes.BoundNorm(of):
                dense = self._dense(of)
                return lambda block: [_root_down(_squares_sum(dense(block)))[None, :]]
            case nodes.Squared(of, bits):
                dense = self._dense(of)
                return lambda block: [_shifted(np.square(dense(block)), bits)]
        return self._labelled(node)

    def _labelled(self, node: Node) -> Step:
        match node:
            case nodes.BoundSigned(of, sign):
                dense, y = self._dense(of), self._leaf(sign)
                return lambda block: [dense(block) * y(block)]
            case nodes.BoundMargin(score, sign, at_most):
                dense, y = self._dense(score), self._leaf(sign)
                return lambda block: [Choice(within(dense(block)[0], y(block), float(at_most)), 1)]
            case nodes.LinearSlope(score, label, missing, bound):
                dense, y = self._dense(score), self._leaf(label)
                return lambda block: [linear(dense(block)[0], y(block), missing, float(bound))]
            case nodes.LogisticSlope(score, sign, bits):
                dense, y = self._dense(score), self._leaf(sign)
                table = lines(nodes.logistic_table())
                return lambda block: [logistic(dense(block)[0], y(block), bits, table)]
            case nodes.HingeSlope(score, sign, bits):
                dense, y = self._dense(score), self._leaf(sign)
                return lambda block: [hinge(dense(block)[0], y(block), 2.0**bits)]
            case nodes.BoundSoftmax(of, bits):
                dense = self._dense(of)
                table = lines(nodes.decay_table())
                return lambda block: [shares(dense(block), bits, table)]
            case nodes.SharesSlope(of, label):
                dense, index = self._dense(of), self._index(label)
                return lambda block: [classes(dense(block), index(block))]
        raise TypeError(type(node).__name__)

    def _compiled(self, node: Node) -> Step:
        return compiled(node, self.place, self.most, self.known)

    def _dense(self, node: Node) -> Callable[[Block], Floats]:
        inner = self._compiled(node)

        def dense(block: Block) -> Floats:
            parts = inner(block)
            if len(parts) == 1:
                return _full(parts[0])
            return np.concatenate([_full(part) for part in parts])

        return dense

    def _leaf(self, leaf: Leaf) -> Callable[[Block], Floats]:
        place = self.place[leaf]
        return lambda block: block.columns[place].astype(np.float64, copy=False)

    def _index(self, cells: CategoryCells | FlagCells) -> Callable[[Block], Indexes]:
        place = self.place[cells]
        count = 2 if isinstance(cells, FlagCells) else len(cells.values)

        def index(block: Block) -> Indexes:
            found = block.columns[place].astype(np.int64, copy=False)
            return np.where(found < 0, count, found) if cells.other else found

        return index

    def _coordinates(self, leaves: Sequence[Leaf], offsets: Sequence[int]) -> Step:
        steps = [
            (self.place[leaf], leaf, offset) for leaf, offset in zip(leaves, offsets, strict=True)
        ]
        buffer = np.empty((len(steps), self.most))

        def coordinates(block: Block) -> Parts:
            rows = buffer[:, : block.rows]
            for row, (place, leaf, offset) in zip(rows, steps, strict=True):
                if isinstance(leaf, UnitLeaf):
                    quantised(leaf, block.columns[place], offset, row)  # type: ignore[arg-type]
                else:
                    np.subtract(block.columns[place], float(offset), out=row)
            return [rows]

        return coordinates

    def _binned(self, node: nodes.Binned) -> Step:
        edges = np.array(node.edges, np.float64)
        bins = len(edges) - 1
        outside = bins if node.other else -1
        is_leaf = isinstance(node.of, nodes.LEAVES)
        value = self._leaf(node.of) if is_leaf else self._dense(node.of)  # type: ignore[arg-type]

        def binned(block: Block) -> Parts:
            number = value(block).reshape(-1)
            index = np.searchsorted(edges, number, side="right") - 1
            index[(index < 0) | (index >= bins)] = outside
            return [Choice(index, bins + node.other)]

        return binned

    def _first(self, node: nodes.First) -> Step:
        places = [self.place[leaf] for leaf in node.leaves]

        def first(block: Block) -> Parts:
            index = np.full(block.rows, -1, np.int64)
            for number in range(len(places) - 1, -1, -1):
                found = block.columns[places[number]].astype(np.int64, copy=False)
                index = np.where(found < node.chunk, found + number * node.chunk, index)
            return [Choice(index, node.count)]

        return first

    def _joined(self, parts: Sequence[Node]) -> Step:
        inner = [self._compiled(part) for part in parts]

        def joined(block: Block) -> Parts:
            found: Parts = []
            run: list[Floats] = []
            for part in (part for step in inner for part in step(block)):
                if isinstance(part, Choice):
                    found += _merged(run)
                    run = []
                    found.append(part)
                else:
                    run.append(part)
            return found + _merged(run)

        return joined

    def _projected(self, of: Node, matrix: Floats, bits: int) -> Step:
        inner = self._compiled(of)
        dense = self._dense(of)
        padded = np.concatenate([matrix, np.zeros((len(matrix), 1))], axis=1)

        def projected(block: Block) -> Parts:
            parts = inner(block)
            only = parts[0]
            if len(parts) == 1 and isinstance(only, Choice):
                return [_shifted(padded[:, only.index] * only.value, bits)]
            return [_shifted(matrix @ dense(block), bits)]

        return projected

    def _closest(self, node: nodes.BoundNearest) -> Step:
        centres = np.array(node.centres, np.float64)
        count = len(centres)
        scale = 1 << (count - 1).bit_length()
        dense = self._dense(node.of)
        squares = np.square(centres).sum(axis=1)
        if (node.largest + 1) * scale > PACKED:
            return lambda block: [
                Choice((squares[:, None] - 2.0 * (centres @ dense(block))).argmin(axis=0), count)
            ]
        # the least of (distance, number), packed into one whole number
        matrix = -2.0 * scale * centres
        start = (squares * scale + np.arange(count))[:, None]

        def closest(block: Block) -> Parts:
            packed = matrix @ dense(block)
            packed += start
            least = packed.min(axis=0).astype(np.int64)
            return [Choice(least & (scale - 1), count)]

        return closest

    def _from_closest(self, of: Node, closest: nodes.BoundNearest) -> Step:
        dense, index = self._dense(of), self._compiled(closest)
        centres = np.array(closest.centres, np.float64).T.copy()
        return lambda block: [dense(block) - centres[:, _chosen(index(block)).index]]

    def _paired(self, left: Node, right: Node, bits: int) -> Step:
        one, two = self._compiled(left), self._compiled(right)
        dense_one, dense_two = self._dense(left), self._dense(right)

        def paired(block: Block) -> Parts:
            a, b = one(block), two(block)
            if len(a) == len(b) == 1 and isinstance(a[0], Choice) and isinstance(b[0], Choice):
                return [_pair(a[0], b[0], bits)]
            products = dense_one(block)[:, None, :] * dense_two(block)[None, :, :]
            return [_shifted(products.reshape(-1, block.rows), bits)]

        return paired


def quantised(leaf: UnitLeaf, column: Floats, offset: int, out: Floats) -> None:
    """scale * min(floor(clamp(x) * per_unit + 1/2), most) - offset, NaN as `instead`.

    Each step is one correctly rounded operation, as on every engine. docs/proofs/vectors.md
    """
    value = leaf.value
    least, most = np.minimum.reduce(column), np.maximum.reduce(column)  # NaN if there is one
    if least >= value.low and most <= value.high:
        np.multiply(column, value.per_unit, out=out)
    else:
        np.clip(column, value.low, value.high, out=out)
        out *= value.per_unit
    out += 0.5
    np.floor(out, out=out)
    if math.floor(value.high * value.per_unit + 0.5) > leaf.most:
        np.minimum(out, float(leaf.most), out=out)
    if leaf.scale != 1:
        out *= float(leaf.scale)
    if np.isnan(most):
        out[np.isnan(out)] = float(leaf.instead)
    out -= float(offset)


# --- parts --------------------------------------------------------------------------------------


def _chosen(parts: Parts) -> Choice:
    (part,) = parts
    assert isinstance(part, Choice)  # noqa: S101
    return part


def _full(part: Part) -> Floats:
    """The part as a matrix."""
    if not isinstance(part, Choice):
        return part
    here: NDArray[np.bool_] = part.index == np.arange(part.width)[:, None]
    return here.astype(np.float64) * float(part.value)


def _merged(run: list[Floats]) -> Parts:
    if len(run) < 2:
        return list(run)
    return [np.concatenate(run)]


def _pair(one: Choice, two: Choice, bits: int) -> Choice:
    index = one.index * two.width + two.index
    index[(one.index < 0) | (two.index < 0)] = -1
    value = one.value * two.value
    value = (value + (1 << (bits - 1))) >> bits if bits else value
    return Choice(index, one.width * two.width, value)


def _shifted(numbers: Floats, bits: int) -> Floats:
    """floor((numbers + 2^(bits-1)) / 2^bits), in place."""
    if bits:
        numbers += 2.0 ** (bits - 1)
        numbers *= 2.0**-bits
        np.floor(numbers, out=numbers)
    return numbers


def _rescaled(part: Part, factor: int, bits: int) -> Part:
    if isinstance(part, Choice):
        value = part.value * factor
        value = (value + (1 << (bits - 1))) >> bits if bits else value
        return Choice(part.index, part.width, value)
    return _shifted(part * float(factor), bits)


def _squares_sum(numbers: Floats) -> Floats:
    found: Floats = np.einsum("ij,ij->j", numbers, numbers)
    return found


def _root_down(squares: Floats) -> Floats:
    """floor(sqrt(s)) for whole s below 2^52: there the float root never reaches the next one."""
    root: Floats = np.floor(np.sqrt(squares))
    return root


def _shrunk(numbers: Floats, bound: float) -> Floats:
    """sign(v) floor(|v| bound / ceil(|v|_2)) where the norm is too large. G.4 rule 2c"""
    squares = _squares_sum(numbers)
    long = squares > bound * bound
    if not long.any():
        return numbers
    over = np.where(long, np.ceil(np.sqrt(squares)), bound)  # dividing by it changes nothing
    shrunk = numbers * bound
    shrunk /= over
    np.trunc(shrunk, out=shrunk)
    return shrunk


# Margins, residuals and soft assignments on a block of rows, in whole numbers.
#
# The logistic and the exponential are read from tables of integers, straight lines in between.


EXACT = 2**53
WORD = 2**62
MOST_ROWS = 8_192
"""Of a slice: what a step makes of them is still in the core's own cache for the next one."""
SLICE = 2**21
"""Numbers of a slice that are worked on at once: about what a core's cache holds."""
FEWEST_ROWS = 1_024
ROOM = 2**24
"""Numbers of a slice that may be held at once: 128 MB."""
FEW_CELLS = 32
"""Up to so many coordinates a one-hot is multiplied as a matrix, else counted."""


@dataclass(slots=True)
class Totals:
    """A running sum of exact matrices: binary64, then 64-bit, then Python integers."""

    largest: int
    near: Floats
    middle: NDArray[np.int64]
    far: list[int]
    near_rows: int = 0
    middle_rows: int = 0

    @classmethod
    def of(cls, size: int, largest: int) -> Totals:
        return cls(max(1, largest), np.zeros(size), np.zeros(size, np.int64), [])

    def make_room(self, rows: int) -> None:
        """Before `rows` more are added."""
        if (self.near_rows + rows) * self.largest > EXACT:
            if not -EXACT <= self.near.min() <= self.near.max() <= EXACT:
                raise Impossible
            if (self.middle_rows + self.near_rows) * self.largest > WORD:
                self._empty_middle()
            self.middle += self.near.astype(np.int64)
            self.middle_rows += self.near_rows
            self.near[:] = 0.0
            self.near_rows = 0
        self.near_rows += rows

    def _empty_middle(self) -> None:
        added = self.middle.tolist()
        self.far = [a + b for a, b in zip(self.far, added, strict=True)] if self.far else added
        self.middle[:] = 0
        self.middle_rows = 0

    def result(self) -> list[int]:
        self.make_room(EXACT // self.largest)
        self._empty_middle()
        return self.far


class OuterSums:
    """The program compiled: takes blocks of leaves, adds them up."""

    def __init__(self, program: BlockSums, place: Mapping[Leaf, int]) -> None:
        size = program.shape[0] + program.shape[1]
        exact = EXACT // max(1, program.largest)
        roomy = max(1, ROOM // max(1, program.width))  # what inner vectors need has a bound too
        self.rows = min(MOST_ROWS, exact, roomy, max(FEWEST_ROWS, SLICE // size))
        known: dict[object, Step] = {}
        self.left = compiled(program.left, place, self.rows, known)
        self.right = compiled(program.right, place, self.rows, known)
        self.shape = program.shape
        self.largest = program.largest
        self.totals = Totals.of(self.shape[0] * self.shape[1], self.largest)

    def add(self, columns: Sequence[NDArray[np.generic]]) -> None:
        """One block: an array per column, all of one length."""
        for start in range(0, len(columns[0]), self.rows):
            self._add([column[start : start + self.rows] for column in columns])

    def _add(self, columns: Sequence[NDArray[np.generic]]) -> None:
        rows = len(columns[0])
        block = Block(columns, rows, {})
        left, right = self.left(block), self.right(block)
        self.totals.make_room(rows)
        matrix = self.totals.near.reshape(self.shape)
        down = 0
        for one in left:
            across = 0
            for two in right:
                tile = matrix[down : down + width(one), across : across + width(two)]
                tile += product(one, two)
                across += width(two)
            down += width(one)

    def of(self, blocks: Iterable[Sequence[NDArray[np.generic]]]) -> list[int]:
        """The sums of all blocks, row by row of the matrix."""
        self.totals = Totals.of(self.shape[0] * self.shape[1], self.largest)
        rows = 0
        for block in blocks:
            self.add(block)
            rows += len(block[0])
        return all_within(self.totals.result(), self.largest * rows)


# --- products -----------------------------------------------------------------------------------


def width(part: Part) -> int:
    return part.width if isinstance(part, Choice) else len(part)


def product(one: Part, two: Part) -> Floats:
    """sum over rows of one (x) two."""
    if isinstance(one, Choice):
        if isinstance(two, Choice):
            return _pairs(one, two)
        return _grouped(one, two)
    if isinstance(two, Choice):
        return _grouped(two, one).T
    found: Floats = one @ two.T
    return found


def _pairs(one: Choice, two: Choice) -> Floats:
    cells = one.width * two.width
    pair = one.index * two.width + two.index
    pair[(one.index < 0) | (two.index < 0)] = cells
    counts = np.bincount(pair, minlength=cells + 1)[:cells]
    found = counts.reshape(one.width, two.width).astype(np.float64)
    return found * float(one.value * two.value)


def _grouped(one: Choice, two: Floats) -> Floats:
    if one.width <= FEW_CELLS:
        here = one.index == np.arange(one.width)[:, None]
        found: Floats = here.astype(np.float64) @ two.T
    else:
        cell = one.index + 1
        found = np.empty((one.width, len(two)))
        for number, row in enumerate(two):
            found[:, number] = np.bincount(cell, row, one.width + 1)[1:]
    return found if one.value == 1 else found * one.value
