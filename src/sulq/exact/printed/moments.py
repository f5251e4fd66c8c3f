"""Second moments of a batch on a table: what the printed checks read, and a certificate never does.

Exact functions of the data: for fictional tables or the owner's own eyes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from sulq.errors import InvalidQuery
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.program import (
    Always,
    BoundChoice,
    FirstOf,
    Fixed,
    Integer,
    Multiplied,
    RowSums,
)

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums of g_i and of g_i g_j over n rows, where one row moves a sum by at most 1."""

    rows: int
    sums: tuple[Fraction, ...]
    products: tuple[tuple[Fraction, ...], ...]

    @classmethod
    def of_values(cls, values: Sequence[Sequence[float | Fraction]]) -> Moments:
        """From g_i(row), one list to a question."""
        exact = [[Fraction(value) for value in line] for line in values]
        products = tuple(
            tuple(sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0)) for y in exact)
            for x in exact
        )
        return cls(len(exact[0]), tuple(sum(line, Fraction(0)) for line in exact), products)

    @property
    def covariance(self) -> Array:
        """X X^T of the centred rows, n V with V = E[aa^T] - tau tau^T (minus: S1.5)."""
        n = max(self.rows, 1)
        return np.array(
            [
                [float(p - self.sums[i] * self.sums[j] / n) for j, p in enumerate(line)]
                for i, line in enumerate(self.products)
            ]
        )

    def only(self, places: Sequence[int]) -> Moments:
        """The moments of some of the questions."""
        return Moments(
            self.rows,
            tuple(self.sums[i] for i in places),
            tuple(tuple(self.products[i][j] for j in places) for i in places),
        )

    def share(self, place: int) -> float | None:
        """How often a question that is 0 or 1 on every row is 1; None for other questions."""
        counted = self.products[place][place] == self.sums[place]
        return float(self.sums[place] / self.rows) if counted and self.rows else None


def moments_program(questions: Sequence[BoundQuery]) -> RowSums:
    """One pass over the rows: every g_i, then every g_i g_j with i <= j."""
    values = _values(questions)
    pairs = combinations_with_replacement(values, 2)
    return RowSums(Always(), (*values, *(Multiplied(a, b) for a, b in pairs)))


def read_moments(questions: Sequence[BoundQuery], rows: int, sums: Sequence[int]) -> Moments:
    """What the engine added up for `moments_program`, in units of the most a row can change."""
    units = [max(1, term.unit) for question in questions for term in question.terms]
    m = len(units)
    found = iter(sums[m:])
    products = [[Fraction(0)] * m for _ in units]
    for i, j in combinations_with_replacement(range(m), 2):
        products[i][j] = products[j][i] = Fraction(next(found), units[i] * units[j])
    first = (Fraction(value, unit) for value, unit in zip(sums[:m], units, strict=True))
    return Moments(rows, tuple(first), tuple(map(tuple, products)))


def _values(questions: Sequence[BoundQuery]) -> list[Integer]:
    found: list[Integer] = []
    for question in questions:
        program = question.sums
        if not isinstance(program, RowSums) or program.groups:
            raise InvalidQuery("ask each group by itself: an exact batch holds plain sums")
        for term in program.terms:
            found.append(BoundChoice(program.rows, FirstOf(term, Fixed(0)), Fixed(0)))
    return found
