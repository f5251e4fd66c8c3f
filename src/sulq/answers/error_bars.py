"""A value with its standard error and its interval: what every reading is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sulq.kernel.noise.intervals import half_width as sum_half_width
from sulq.kernel.noise.intervals import is_fine, told_spread, z_of
from sulq.kernel.noise.laws import DiscreteGaussian, Law
from sulq.kernel.schema.bind import BoundTerm

Value = int | float | NDArray[np.float64]
Interval = tuple[Value, Value]
Draw = tuple[int, int, Fraction, Law]
"""A stored noisy integer, by its receipt and place, its weight in a sum, and its law."""


class Mixture(NamedTuple):
    """What every derived sum is made of; `exact`: see Derivation.

    `apart`: each has draws of its own, so that they are read as fresh ones are.
    """

    sums: tuple[tuple[Draw, ...], ...]
    exact: bool
    apart: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A value with its standard error, and its interval at any confidence."""

    value: Value
    standard_error: float | NDArray[np.float64]
    interval: Callable[[float], Interval]
    keys: tuple[object, ...] = ()
    distributions: NDArray[Any] | None = None
    """Of a tree: one `Distribution` per cell of the other groups."""
    mixture: Mixture | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """What is known of the error before asking: None where it depends on the data."""

    standard_error: float | NDArray[np.float64] | None
    half_width: Callable[[float], float | NDArray[np.float64] | None]
    note: str = ""
    laws: tuple[Law, ...] = ()
    rank: Callable[[float | None, float], float] | None = None
    """Of a tree: how far off a quantile's rank may be, in rows, by share (None: an end's) and
    confidence."""


def spread_of(term: BoundTerm, law: Law) -> float:
    """The standard deviation of one noisy sum in user units."""
    return law.standard_deviation() * float(term.fine_step)


def count_spread(term: BoundTerm, law: Law) -> float:
    """The same of a count, which is told as a whole number. S2.6"""
    return told_spread(((float(term.fine_step), law),))


def term_half_width(term: BoundTerm, law: Law, confidence: float) -> float:
    return float(law.half_width(confidence) * term.fine_step)


def around(
    estimate: Fraction | float, half: Fraction | float, least: float, most: float
) -> tuple[Fraction | float, Fraction | float]:
    """An interval within what is possible, around the estimate moved to where it can be.

    It holds all that a plain cut leaves, and does not shrink to one point where noise went too
    far: a count of -225 +- 48 is 0 to 48. docs/proofs/error-bars.md, section 7.
    """
    near = min(max(estimate, least), most)
    return max(near - half, least), min(near + half, most)


def running_half_widths(
    term: BoundTerm, law: Law, count: int, confidence: float
) -> NDArray[np.float64]:
    """Half-widths, in user units, of sums of 0, 1, ..., `count` - 1 draws of one law.

    Fine laws: standard errors times `reach_of`. Laws on whole numbers: by the exact law of the sum
    (S2.6), at numbers of draws with five significant bits; those between take the next larger.
    """
    errors = spread_of(term, law) * np.sqrt(np.arange(count))
    if is_fine(law):
        return reach_of([law], confidence) * errors
    sizes: dict[int, float] = {0: 0.0}
    found = np.zeros(count)
    for number in range(1, count):
        spare = max(0, number.bit_length() - 5)
        rounded = -(-number >> spare) << spare
        if rounded not in sizes:
            sizes[rounded] = sum_half_width(((1.0, law),) * rounded, confidence)
        found[number] = math.floor(sizes[rounded])  # a whole number of steps
    return found * float(term.fine_step)


def reach_of(laws: Sequence[Law], confidence: float) -> float:
    """Standard errors to either side, for a mixture of draws: the normal's, or one draw's if more.

    A sum of Laplace draws lies between the two; neither alone covers both.
    """
    single = [law for law in laws if law.standard_deviation()]
    reaches = [
        law.half_width(confidence) / law.standard_deviation()
        for law in single
        if not isinstance(law, DiscreteGaussian)
    ]
    return max([z_of(confidence), *reaches])
