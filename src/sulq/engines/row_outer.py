"""What every single row adds to a matrix of products: how much, and the sum over some of them.

For a filter per person, and nothing else. docs/proofs/individual.md, claim 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sulq.engines.blocks import OuterSums
from sulq.engines.row_values import Whole
from sulq.engines.score_steps import Floats
from sulq.engines.vector_steps import Block, Choice, Parts

UP = 1 + 2.0**-30
"""Covers the rounding of two sums of up to 2^20 squares, of their roots and of the product."""
MOST = 2.0**61

Blocks = Iterable[Sequence[NDArray[np.generic]]]


class RowOuter:
    """Blocks are read twice: who adds how much, then the sum over those who take part."""

    def __init__(self, sums: OuterSums, blocks: Callable[[], Blocks]) -> None:
        self._sums, self._blocks = sums, blocks

    def sizes(self) -> tuple[Whole, Whole]:
        """The numbers of the rows in S, and for each a whole number, at least |left| |right|.

        Each is a function of that row alone: the same operations in the same order, one by one.
        """
        rows, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for columns in self._blocks():
            rows.append(np.array(columns[0], np.int64))  # blocks are only lent
            for start in range(0, len(columns[0]), self._sums.rows):
                part = [column[start : start + self._sums.rows] for column in columns]
                block = Block(part, len(part[0]), {})
                left, right = _squared(self._sums.left(block)), _squared(self._sums.right(block))
                size = np.ceil(np.sqrt(left) * np.sqrt(right) * UP)
                found.append(np.minimum(size, MOST).astype(np.int64))
        return np.concatenate(rows), np.concatenate(found)

    def of(self, takes: NDArray[np.bool_]) -> list[int]:
        """The sums over the rows whose number is marked."""

        def chosen() -> Blocks:
            for columns in self._blocks():
                inside = takes[np.asarray(columns[0], np.int64)]
                yield [np.asarray(column)[inside] for column in columns]

        return self._sums.of(chosen())


def _squared(parts: Parts) -> Floats:
    """|vector|^2 of each row, coordinate by coordinate."""
    found: Floats | None = None
    for part in parts:
        if isinstance(part, Choice):
            found = _plus(found, np.where(part.index >= 0, float(part.value) ** 2, 0.0))
        else:
            for coordinate in part:
                found = _plus(found, coordinate * coordinate)
    assert found is not None  # noqa: S101 - a vector has a coordinate
    return found


def _plus(found: Floats | None, more: Floats) -> Floats:
    return more if found is None else found + more
