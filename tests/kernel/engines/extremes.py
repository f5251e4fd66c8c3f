"""Questions with clips, steps, bounds and constants from 10^-60 to 10^30, and what must hold.

A question is refused by `bind`, for nothing and on every engine alike, or every engine gives the
reference's integers, row by row, and no row moves them further than was proved.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import pyarrow as pa
from tests.kernel.engines import reference
from tests.kernel.query.random_vectors import VectorMaker

from sulq import Category, Flag, InvalidQuery, Number, Schema, col, lit, when
from sulq.answers.statistics import count, histogram, mean, total, variance
from sulq.kernel.query.expressions import Expression
from sulq.kernel.query.sum_query import Statistic, outer
from sulq.kernel.schema import program as b
from sulq.kernel.schema.bind import BoundQuery, bind
from sulq.kernel.schema.vector_program import BlockSums

ROWS = 14
SCHEMA = Schema(
    Number("row", 0, ROWS, step=1, public=True),
    Number("income", 0, 500_000),
    Number("n", -4, 4, step=1),
    Number("x", -100, 100),
    Number("tiny", 0, 1e-30),  # as a mass in kilograms
    Number("point", 0, Fraction(12, 10**36)),  # whole numbers, declared with a range like that
    Number("fine", -1, 1, step=Fraction(1, 10**40)),
    Number("wide", -(2**53), 2**53),
    Number("far", 2**52, 2**52 + 1),
    Number("cents", 0, 1000, step=Fraction(1, 100)),
    Category("code", [0, 1, -7, 2**62]),
    Flag("ill"),
    bits=31,
)
TYPES = {
    "row": (pa.int32(), "integer"),
    "income": (pa.int64(), "bigint"),
    "n": (pa.int64(), "bigint"),
    "x": (pa.float64(), "double precision"),
    "tiny": (pa.float64(), "double precision"),
    "point": (pa.int64(), "bigint"),
    "fine": (pa.int32(), "integer"),
    "wide": (pa.int64(), "bigint"),
    "far": (pa.int64(), "bigint"),
    "cents": (pa.float64(), "double precision"),
    "code": (pa.int64(), "bigint"),
    "ill": (pa.bool_(), "boolean"),
}
NUMBERS = tuple(c.name for c in SCHEMA.columns if isinstance(c, Number) and not c.public)


def rows(seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    whole = [None, 0, 0, 1, -1, 2, 3, 4, 250_000, 499_999, 500_000, 2**52, 2**52 + 1, 2**53]
    return [
        {
            "row": number,
            "income": rng.choice(whole),
            "n": rng.choice([*whole[:8], -4]),
            "x": rng.choice([None, math.nan, math.inf, 0.0, 1e-35, 5e-324, 0.1, 99.5, -1e-12]),
            "tiny": rng.choice([None, 0.0, 1e-31, 5e-31, 1e-30, 1.0, -1.0]),
            "point": rng.choice(whole[:6]),
            "fine": rng.choice(whole[:6]),
            "wide": rng.choice([*whole, 2**63 - 1, -(2**63)]),
            "far": rng.choice(whole),
            "cents": rng.choice([None, 0.01, 0.0, 12.34, 999.99, 1e9]),
            "code": rng.choice([None, 0, 1, -7, 2**62, 5]),
            "ill": rng.choice([None, True, False]),
        }
        for number in range(ROWS)
    ]


def table(content: list[dict[str, Any]]) -> pa.Table:
    held = {name: [row[name] for row in content] for name in TYPES}
    return pa.table(held, pa.schema([(name, kind) for name, (kind, _) in TYPES.items()]))


# --- questions ----------------------------------------------------------------------------------


def number(rng: random.Random) -> Fraction:
    """From 10^-60 to 10^30, of either sign, round or not; 0 now and then."""
    if rng.random() < 0.1:
        return Fraction(0)
    size = Fraction(10) ** rng.randint(-60, 29) * rng.choice([1, Fraction(rng.uniform(1, 10)), 3])
    return size if rng.random() < 0.7 else -size


def clipped(rng: random.Random, of: Expression) -> Expression:
    """About 0 or about a value that rows hold, as narrow or as wide as may be."""
    width = abs(number(rng))
    if rng.random() < 0.6:  # most of them are answered
        width = Fraction(2) ** rng.randint(-30, 40)
    start = rng.choice([0, 0, 1, 250_000, 2**52, Fraction(1, 10**31), -width, -width / 3])
    return of.clip(start, start + width)


def expression(rng: random.Random, depth: int) -> Expression:
    if depth <= 0:
        column: Expression = col(rng.choice(NUMBERS))
        return clipped(rng, column) if rng.random() < 0.6 else column
    left = expression(rng, depth - 1)
    match rng.randrange(9):
        case 0:
            return left + expression(rng, depth - 1) * number(rng)
        case 1:
            return left * expression(rng, depth - 1)
        case 2:
            return left - number(rng)
        case 3:
            return clipped(rng, left)
        case 4:
            return left / (clipped(rng, expression(rng, 0)) + abs(number(rng)) + 1)
        case 5:
            return when(condition(rng)).then(left).otherwise(expression(rng, depth - 1))
        case 6:
            return abs(left)
        case 7:
            return left * left
        case _:
            return left * number(rng)


def condition(rng: random.Random) -> Expression:
    subject, edge = expression(rng, 0), number(rng)
    return rng.choice(
        [
            subject < edge,
            subject >= edge,
            subject == edge,
            subject.isin([edge, number(rng), 0]),
            subject < expression(rng, 0) * edge,
            col("code").isin([1, 2**62, 2**63 - 1]),
            col("ill"),
            lit(True),
        ]
    )


def question(rng: random.Random) -> Statistic:
    where = condition(rng)
    value = expression(rng, rng.choice([0, 1, 1, 2]))
    match rng.randrange(6):
        case 0:
            return count(where=where)
        case 1:
            edges = sorted({number(rng) for _ in range(rng.choice([2, 5, 20]))} | {-1, Fraction(7)})
            return histogram(value, edges=edges, where=where, other=rng.random() < 0.5)
        case 2:
            return variance(value, where=where)
        case 3:
            return mean(value, where=where)
        case _:
            return total(value, where=where)


def questions(seed: int, wanted: int) -> Iterator[BoundQuery]:
    """So many that are accepted; what is refused is refused by `bind`, with its reason."""
    rng, found = random.Random(seed), 0
    for _ in range(3 * wanted + 30):
        try:
            bound = bind(question(rng), SCHEMA)
        except InvalidQuery:
            continue
        yield bound
        found += 1
        if found == wanted:
            return
    raise AssertionError("nearly everything is refused: such a test shows nothing")


# --- what must hold -----------------------------------------------------------------------------


def row_by_row(program: b.RowSums) -> b.RowSums:
    """The same sums for each row by itself."""
    rows_ = b.BinCells(b.Quantised("row", 0.0, float(ROWS), 1.0), tuple(range(ROWS + 1)), False)
    return replace(program, groups=(rows_, *program.groups))


def check(engine: Any, bound: BoundQuery, content: list[dict[str, Any]]) -> None:
    """The engine's integers are the reference's, and two rows differ by no more than was proved."""
    program = bound.sums
    assert isinstance(program, b.RowSums)
    each = row_by_row(program)
    found = engine.exact_sums(each)
    assert found == reference.exact_sums(each, content), bound.text
    assert engine.exact_sums(program) == reference.exact_sums(program, content), bound.text
    width = len(found) // ROWS
    added = [found[at : at + width] for at in range(0, len(found), width)]
    units = [term.unit for term in bound.terms] * (width // len(bound.terms))
    worst = max(moved.l2_squared for moved, _ in bound.reach)
    for one, two in combinations(added, 2):
        moved = [a - c for a, c in zip(one, two, strict=True)]
        assert not any(m for m, unit in zip(moved, units, strict=True) if not unit), bound.text
        square = sum(Fraction(m, unit) ** 2 for m, unit in zip(moved, units, strict=True) if unit)
        assert square <= worst, bound.text


# --- vectors ------------------------------------------------------------------------------------


class ExtremeVectors(VectorMaker):
    """Weights, centres, factors and matrices of any size."""

    def number(self) -> float:
        usual = super().number()
        return usual if self.rng.random() < 0.6 else float(number(self.rng))


def outer_products(seed: int, wanted: int) -> Iterator[BlockSums]:
    """So many that are accepted."""
    rng = random.Random(seed)
    maker = ExtremeVectors(SCHEMA, rng, [*NUMBERS, "code", "ill"])
    for _ in range(wanted):
        left = maker.vector()
        right = left if rng.random() < 0.3 else maker.vector()
        program = bind(outer(left, right, maker.condition()), SCHEMA).sums
        assert isinstance(program, BlockSums)
        yield program
