"""Vector programs compiled to NumPy: one function per node, buffers made once.

A dense part is an array (coordinates, rows) of whole numbers in binary64; a one-hot part is the
row's coordinate number, -1 for none. Proof of exactness: docs/proofs/vectors.md, claim 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sulq.engines.score_steps import (
    Floats,
    Indexes,
    classes,
    hinge,
    linear,
    lines,
    logistic,
    shares,
    within,
)
from sulq.schema import vectors as nodes
from sulq.schema.bound import CategoryCells, FlagCells
from sulq.schema.vectors import Leaf, Node, UnitLeaf

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
            case nodes.Constant(values):
                filled = np.repeat(np.array(values, np.float64)[:, None], self.most, axis=1)
                return lambda block: [filled[:, : block.rows]]
            case nodes.Coordinates(leaves, offsets):
                return self._coordinates(leaves, offsets)
            case nodes.Picked(cells, count):
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
            case nodes.Joined(parts):
                return self._joined(parts)
            case nodes.Closest():
                return self._closest(node)
            case nodes.Paired(left, right, bits):
                return self._paired(left, right, bits)
            case nodes.Projected(of, matrix, bits):
                return self._projected(of, np.array(matrix, np.float64), bits)
            case nodes.Rescaled(of, factor, bits):
                inner = self._compiled(of)
                return lambda block: [_rescaled(part, factor, bits) for part in inner(block)]
            case nodes.Shrunk(of, bound):
                dense = self._dense(of)
                return lambda block: [_shrunk(dense(block), float(bound))]
            case nodes.FromClosest(of, closest):
                return self._from_closest(of, closest)
            case nodes.Length(of):
                dense = self._dense(of)
                return lambda block: [_root_down(_squares_sum(dense(block)))[None, :]]
            case nodes.Squared(of, bits):
                dense = self._dense(of)
                return lambda block: [_shifted(np.square(dense(block)), bits)]
        return self._labelled(node)

    def _labelled(self, node: Node) -> Step:
        match node:
            case nodes.Flipped(of, sign):
                dense, y = self._dense(of), self._leaf(sign)
                return lambda block: [dense(block) * y(block)]
            case nodes.Within(score, sign, at_most):
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
            case nodes.Shares(of, bits):
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

    def _closest(self, node: nodes.Closest) -> Step:
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

    def _from_closest(self, of: Node, closest: nodes.Closest) -> Step:
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
