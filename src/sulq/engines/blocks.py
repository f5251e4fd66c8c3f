"""Outer products on blocks of rows: exact integers at BLAS speed.

Coordinates are whole numbers held in binary64. Binding proved that no intermediate passes 2^52,
and a slice has so few rows that no sum of products passes 2^53: every step is exact, in any
order of addition. Totals go on in 64-bit and then in Python integers.
Proof: docs/proofs/vectors.md, claims 10 and 11.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sulq.engines.proved import Impossible, all_within
from sulq.engines.score_steps import Floats
from sulq.engines.vector_steps import Block, Choice, Part, Step, compiled
from sulq.schema.vectors import BlockSums, Leaf

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
