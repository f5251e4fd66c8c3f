"""A vector times a public matrix, in integers, with proved norms."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sulq.errors import InvalidQuery
from sulq.query.vector_values import Matrix
from sulq.schema import vectors as nodes
from sulq.schema.vector_bounds import (
    MOST,
    ROOM,
    Sized,
    doublings,
    power_below,
    reach,
    root_up,
    rounded_square,
    shifted,
    sized,
)

LARGEST_GRAM = 2_048
MATRIX_BITS = 25


def projected(v: Sized, matrix: Matrix) -> Sized:
    """floor((P v + half) / 2^bits) with P = matrix rounded, outputs within 2^20."""
    rough = max(reach(v, row) for row in matrix) * v.step
    if rough == 0:
        raise InvalidQuery("project wants a matrix that is not all 0")
    step = power_below(rough / (MOST // 2))
    entry = max(abs(m) for row in matrix for m in row) * v.step / step
    for bits in range(min(40, doublings(entry, 2**MATRIX_BITS)), -1, -1):
        rounded = [[_nearest(m * v.step * 2**bits / step) for m in row] for row in matrix]
        if max(reach(v, row) for row in rounded) < ROOM // 2:
            break
    else:
        raise InvalidQuery("the numbers of the matrix differ too much from the vector's; scale it")
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


def _longest_column(v: Sized, matrix: list[list[int]], bits: int) -> int:
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


def _nearest(number: Fraction) -> int:
    return math.floor(number + Fraction(1, 2))
