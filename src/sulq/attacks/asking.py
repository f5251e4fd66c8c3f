"""Questions that attacks share: everybody's bit at once, and public signs that reword it.

`row` is public, so a histogram over it costs what a count costs: one answer tries every person.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sulq.answers.oracle import Answer, Oracle
from sulq.attacks.target import ROW, SECRET
from sulq.errors import InvalidQuery
from sulq.kernel.accounting.pricing import COARSE
from sulq.kernel.query.expressions import Expression, col, hashed, lit
from sulq.kernel.query.sum_query import Group, SumQuery, group
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.columns import Number
from sulq.kernel.schema.program import PRIME, HashedBit
from sulq.kernel.schema.promise import Promise

Floats = NDArray[np.float64]
ALONE = lit(1)


def cells(oracle: Oracle, width: int = 1) -> Group:
    """Cells of `width` neighbouring rows; the last one takes what is left over."""
    number = max(1, _last(oracle) // width)
    return group(col(ROW).clip(0, number * width), bins=number)


def everybody(oracle: Oracle, term: Expression = ALONE, width: int = 1) -> SumQuery:
    """Everybody's bit in a cell of its own, or the sums over so many neighbours."""
    return SumQuery((term,), col(SECRET), (cells(oracle, width),))


def told(answer: Answer) -> Floats:
    """The noisy sums of all cells but the last, which holds more rows than the others."""
    return np.ravel(np.asarray(answer.value, dtype=np.float64))[:-1]


def signed(seed: int) -> Expression:
    """+1 or -1 of a row, public: it makes a new question of an old one and hides nothing."""
    return 2 * hashed(ROW, seed) - 1


def signs(oracle: Oracle, seeds: Iterable[int], rows: int) -> NDArray[np.int8]:
    """What `signed(seed)` is on rows 0, 1, ..., one line per seed: anybody can work it out."""
    wanted = tuple(hashed(ROW, seed) for seed in seeds)
    number = np.arange(rows, dtype=np.int64)
    found = np.empty((len(wanted), rows), dtype=np.int8)
    for start in range(0, len(wanted), 1000):
        question = SumQuery(wanted[start : start + 1000])
        for place, term in enumerate(bind(question, oracle.schema).terms, start):
            assert isinstance(term.value, HashedBit)  # noqa: S101
            power = np.zeros(rows, dtype=np.int64)
            for coefficient in term.value.coefficients:
                power = (power * number + coefficient) % PRIME
            found[place] = 2 * (power % 2) - 1
    return found


def part_of(promise: Promise, parts: int) -> Fraction | None:
    """What each of so many questions may cost to use the whole promise; None: the unit price."""
    if promise.noise in COARSE:
        return None
    return Fraction(promise.credits * 2**32 // parts, 2**32)


def most_parts(promise: Promise, wanted: int) -> int:
    """So many questions as wanted; noise of one size allows no more than there are credits."""
    return min(wanted, promise.credits) if promise.noise in COARSE else wanted


def right_bits(noisy: Sequence[float] | NDArray[Any], secrets: NDArray[np.bool_]) -> int:
    """How many of the first bits are on the right side of one half."""
    guessed = np.asarray(noisy) > 0.5
    return int(np.sum(guessed == secrets[: len(guessed)]))


def _last(oracle: Oracle) -> int:
    column = oracle.schema[ROW]
    if not isinstance(column, Number) or column.range[0] != 0:
        raise InvalidQuery(f"attacks need {ROW!r}, a public Number from 0 with step 1")
    return int(column.range[1])
