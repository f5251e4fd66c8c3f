"""What released sums and public class sizes already say: no further release. S1.15 (1)

A sum is a consequence if, as a function of one row over the whole domain, it is a rational
combination of released ones and of constants per public class. Decided on the integer functions
themselves, never by comparing data. Proofs: docs/proofs/exact.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from sulq.errors import UnsafeExactly
from sulq.exact.domain import MOST_ROWS, Additions, columns_of, everything_in
from sulq.schema.bound import RowSums, cell_count
from sulq.schema.columns import Schema

Weights = dict[int, Fraction]
Constants = tuple[Fraction, ...]


def public_columns(programs: Sequence[RowSums], schema: Schema) -> tuple[str, ...]:
    """The public columns a batch reads, in the order in which `Domain` has them."""
    read = dict.fromkeys(name for program in programs for name in columns_of(program))
    return tuple(name for name in read if schema[name].public)


def consequence(
    released: Sequence[RowSums], asked: Sequence[RowSums], schema: Schema
) -> list[tuple[Weights, Constants]] | None:
    """For each sum asked: weights of released sums, and a constant for each public class.

    Classes are those of `Domain.of([*released, *asked], ...)`, in that order. None if some sum
    asked is no consequence, or if the domain is too large to tell.
    """
    programs = [*released, *asked]
    try:
        table = _table(programs, schema)
    except UnsafeExactly:
        return None
    if table is None:
        return None
    known, width = sum(map(_sums, released)), sum(map(_sums, programs))
    origins = [rows[0] for rows in table]
    # within a class the constant drops out of differences
    apart = {
        tuple(x - o for x, o in zip(row, origin, strict=True))
        for rows, origin in zip(table, origins, strict=True)
        for row in rows[1:]
    }
    solved = _solve(apart, known, width)
    if solved is None:
        return None
    return [
        (
            {i: w for i, w in enumerate(weights) if w},
            tuple(
                origin[j] - sum((w * x for w, x in zip(weights, origin, strict=False)), Fraction(0))
                for origin in origins
            ),
        )
        for j, weights in zip(range(known, width), solved, strict=True)
    ]


def evaluate(
    weights: Weights, constants: Constants, sums: Sequence[int], sizes: Sequence[int]
) -> int:
    """The sum asked, from the released sums and the public sizes of the classes."""
    value = sum((w * sums[i] for i, w in weights.items()), Fraction(0))
    value += sum((c * n for c, n in zip(constants, sizes, strict=True)), Fraction(0))
    assert value.denominator == 1  # noqa: S101  (it is the engine's integer sum)
    return value.numerator


def _sums(program: RowSums) -> int:
    return len(program.terms) * math.prod(map(cell_count, program.groups))


def _table(programs: Sequence[RowSums], schema: Schema) -> list[list[tuple[int, ...]]] | None:
    """For each public class, what each possible row adds; every different row once."""
    public = public_columns(programs, schema)
    read = dict.fromkeys(name for program in programs for name in columns_of(program))
    private = [name for name in read if name not in public]
    spans = [everything_in(schema[name]) for name in (*public, *private)]
    if math.prod(map(len, spans)) > MOST_ROWS:
        return None
    added = Additions(programs)
    found = []
    for given in product(*spans[: len(public)]):
        row = dict(zip(public, given, strict=True))
        rows: dict[tuple[int, ...], None] = {}
        for values in product(*spans[len(public) :]):
            row.update(zip(private, values, strict=True))
            rows[added(row)] = None
        found.append(list(rows))
    return found


def _solve(rows: set[tuple[int, ...]], known: int, width: int) -> list[tuple[Fraction, ...]] | None:
    """Weights of the first `known` columns that give each later one in every row."""
    echelon: dict[int, tuple[int, ...]] = {}
    for row in rows:
        left = row
        while (pivot := next((i for i, x in enumerate(left) if x), None)) is not None:
            if pivot >= known:
                return None  # the released sums do not move, one that is asked does
            if pivot not in echelon:
                echelon[pivot] = left
                break
            head = echelon[pivot]
            left = _primitive(
                tuple(head[pivot] * x - left[pivot] * y for x, y in zip(left, head, strict=True))
            )
    found = []
    for j in range(known, width):
        weights = [Fraction(0)] * known
        for pivot in sorted(echelon, reverse=True):  # back substitution; free weights are 0
            head = echelon[pivot]
            rest = sum((head[i] * weights[i] for i in range(pivot + 1, known)), Fraction(0))
            weights[pivot] = (head[j] - rest) / head[pivot]
        found.append(tuple(weights))
    return found


def _primitive(row: tuple[int, ...]) -> tuple[int, ...]:
    common = math.gcd(*row)
    return tuple(x // common for x in row) if common > 1 else row
