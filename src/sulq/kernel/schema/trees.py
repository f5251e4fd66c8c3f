"""A distribution as a tree of counts: cells, pairs of cells, pairs of pairs, up to two halves.

Each level is a histogram, so one row moves each by what it moves the finest (V.3). Level l of L
carries noise of variance R / w_l with sum w_l <= 1 and w_l ~ 1.1^l: the whole tree costs what one
histogram costs. Halves and 1.1 are what leaves the worst quantile least uncertain, to 2 % between
16 and 65,536 cells (docs/proofs/trees.md). The shape is part of the question's format.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from sulq.kernel.schema.program import RowSums
from sulq.kernel.schema.sensitivity import Sensitivity

T = TypeVar("T")
SCALE = 2**20
"""Steps per row: how finely the levels' weights are kept."""
GROWTH = Fraction(11, 10)


@dataclass(frozen=True, slots=True)
class CountTree:
    """The shape over so many cells; `even` for noise that has only one size."""

    leaves: int
    even: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """Nodes per level, from the top."""
        found = [self.leaves]
        while found[-1] > 2:
            found.append((found[-1] + 1) // 2)
        return tuple(reversed(found))

    @property
    def scale(self) -> int:
        return 1 if self.even else SCALE

    @property
    def units(self) -> tuple[int, ...]:
        """What one row counts as, in 1/scale: noise grows with it. Rounded up, so safe."""
        if self.even:
            return (1,) * len(self.sizes)
        return tuple(_root_up(self.scale**2 / weight) for weight in self.weights)

    @property
    def weights(self) -> list[Fraction]:
        """The share of the price that each level takes: sum 1."""
        raw = [GROWTH**level for level in range(len(self.sizes))]
        return [weight / sum(raw) for weight in raw]

    def along(self, per_level: Sequence[T]) -> list[T]:
        """What belongs to each level, for every node of one tree."""
        return [own for own, size in zip(per_level, self.sizes, strict=True) for _ in range(size)]

    def sensitivity(self, leaves: Sensitivity) -> Sensitivity:
        """Of the whole tree, from the finest level's: the levels' changes add up. V.3"""
        steps = [Fraction(self.scale, unit) for unit in self.units]
        squares = Fraction(len(steps)) if self.even else Fraction(1)  # sum w_l <= 1
        return Sensitivity(
            leaves.l1 * _short(sum(steps, Fraction(0))),
            leaves.l2_squared * squares,
            leaves.coordinates * len(steps),
        )

    def counts(self, cells: Sequence[int]) -> list[int]:
        """All nodes of the trees over these cells, tree after tree, each from the top."""
        found: list[int] = []
        for start in range(0, len(cells), self.leaves):
            levels = [list(cells[start : start + self.leaves])]
            for size in reversed(self.sizes[:-1]):
                levels.append(list(_pairs(levels[-1], size)))
            for level in reversed(levels):
                found += level
        return found


@dataclass(frozen=True, slots=True)
class TreeSums:
    """What an engine is asked: a tree of counts over the last group's cells, per other cell."""

    cells: RowSums
    tree: CountTree


def _pairs(counts: Sequence[int], size: int) -> Iterator[int]:
    for node in range(size):
        yield sum(counts[2 * node : 2 * node + 2])


def _root_up(square: Fraction) -> int:
    """The least whole number whose square is at least this."""
    wanted = math.ceil(square)
    root = math.isqrt(wanted)
    return root if root * root == wanted else root + 1


def _short(number: Fraction) -> Fraction:
    """Rounded up to 2^-20: prices stay short."""
    return Fraction(math.ceil(number * 2**20), 2**20)
