"""A value with its error bars, and the noise that the bars are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sulq.kernel.noise.intervals import Draw as FormDraw
from sulq.kernel.noise.intervals import (
    Form,
    combined,
    draws_of,
    is_fine,
    told_spread,
    z_of,
)
from sulq.kernel.noise.intervals import half_width as sum_half_width
from sulq.kernel.noise.laws import DiscreteGaussian, Law
from sulq.kernel.reuse.estimate import SAME, LinearEstimate
from sulq.kernel.schema.bind import BoundQuery, BoundTerm

Floats = NDArray[np.float64]
Value = int | float | Floats
Interval = tuple[Value, Value]
Draw = tuple[int, int, Fraction, Law]
"""A stored noisy integer, by its receipt and place, its weight in a sum, and its law."""


class Mixture(NamedTuple):
    """The stored draws that every derived sum is made of; for `exact` see `LinearEstimate`.

    `apart`: no two sums share a draw, so that they are read as fresh ones are.
    """

    sums: tuple[tuple[Draw, ...], ...]
    exact: bool
    apart: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A value with its standard error, and its interval at any confidence."""

    value: Value
    standard_error: float | Floats
    interval: Callable[[float], Interval]
    keys: tuple[object, ...] = ()
    distributions: NDArray[Any] | None = None
    """Of a tree: one `Distribution` per cell of the other groups."""
    mixture: Mixture | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """What is known of the error before asking: None where it depends on the data."""

    standard_error: float | Floats | None
    half_width: Callable[[float], float | Floats | None]
    note: str = ""
    laws: tuple[Law, ...] = ()
    rank: Callable[[float | None, float], float] | None = None
    """Of a tree: how far off a quantile's rank may be, in rows, by share (None: an end's) and
    confidence."""


class Noise(Protocol):
    """The noise of the sums of one question, in user units.

    A statistic reads its bars from this alone, so that it does not matter whether every sum has
    a draw of its own (`FreshNoise`) or several rest on the same stored answers (`SharedNoise`).
    """

    @property
    def bound(self) -> BoundQuery:
        """The question."""

    @property
    def laws(self) -> tuple[Law, ...]:
        """A law for each term; where noise is shared, a Gaussian as wide as its widest sum."""

    @property
    def independent(self) -> bool:
        """Return whether every sum has a draw of its own, by the law of its term."""

    def form(self, place: int) -> Form:
        """The draws of one sum by name: what two sums share has the same name."""

    def half_width(self, place: int, confidence: float) -> Fraction | float:
        """Return the half-width of one sum's interval."""

    def half_widths(self, confidence: float) -> Floats:
        """Return the half-widths of all sums, cell after cell."""

    def spreads(self) -> Floats:
        """Return the standard errors of all sums, cell after cell."""

    def spread(self, *weights: float) -> float:
        """Return the standard error of a weighted total of the first sums."""

    def count_spread(self) -> float:
        """The standard error of the first sum, told as a whole number. S2.6"""

    def running_spreads(self) -> Floats:
        """The standard errors of the totals of the first 0, 1, 2, ... sums."""

    def running_half_widths(self, confidence: float) -> Floats:
        """The half-widths of the intervals of those totals."""


@dataclass(frozen=True, slots=True, eq=False)
class FreshNoise:
    """Noise drawn for this question alone: each sum has its own draw, by the law of its term."""

    bound: BoundQuery
    laws: tuple[Law, ...]
    independent = True

    def form(self, place: int) -> Form:
        at = place % len(self.laws)
        return {place: (float(self.bound.terms[at].fine_step), self.laws[at])}

    def half_width(self, place: int, confidence: float) -> Fraction | float:
        at = place % len(self.laws)
        return self.laws[at].half_width(confidence) * self.bound.terms[at].fine_step

    def half_widths(self, confidence: float) -> Floats:
        each = [float(self.half_width(place, confidence)) for place in range(len(self.laws))]
        return np.tile(each, self.bound.cells)

    def _each(self) -> list[float]:
        pairs = zip(self.bound.terms, self.laws, strict=True)
        return [spread_of(term, law) for term, law in pairs]

    def spreads(self) -> Floats:
        return np.tile(self._each(), self.bound.cells)

    def spread(self, *weights: float) -> float:
        return math.hypot(*(w * own for w, own in zip(weights, self._each(), strict=False)))

    def count_spread(self) -> float:
        return told_spread(((float(self.bound.terms[0].fine_step), self.laws[0]),))

    def running_spreads(self) -> Floats:
        return self._each()[0] * np.sqrt(np.arange(self.bound.cells + 1))

    def running_half_widths(self, confidence: float) -> Floats:
        return running_half_widths(
            self.bound.terms[0], self.laws[0], self.bound.cells + 1, confidence
        )


@dataclass(frozen=True, eq=False)
class SharedNoise:
    """Noise of sums that follow from stored answers: two of them may rest on the same draw."""

    found: LinearEstimate
    _halves: dict[float, Floats] = field(default_factory=dict, init=False)
    independent = False

    @property
    def bound(self) -> BoundQuery:
        return self.found.bound

    @property
    def laws(self) -> tuple[Law, ...]:
        return self.found.worst()

    @cached_property
    def _covariance(self) -> Floats:
        return self.found.covariance()

    def half_widths(self, confidence: float) -> Floats:
        if confidence not in self._halves:  # asked of cell after cell
            places = range(len(self.found.estimates))
            halves = [self.found.half_width(place, confidence) for place in places]
            self._halves[confidence] = np.array(halves)
        return self._halves[confidence]

    def form(self, place: int) -> Form:
        return self.found.form(place)

    def half_width(self, place: int, confidence: float) -> float:
        return self.found.half_width(place, confidence)

    def spreads(self) -> Floats:
        found: Floats = np.sqrt(np.diag(self._covariance))
        return found

    def spread(self, *weights: float) -> float:
        w, size = np.array(weights), len(weights)
        return math.sqrt(max(0.0, float(w @ self._covariance[:size, :size] @ w)))

    def count_spread(self) -> float:
        return self.spread(1.0)

    def running_spreads(self) -> Floats:
        below = np.tri(len(self._covariance) + 1, len(self._covariance), -1)
        squares = np.einsum("ij,jk,ik->i", below, self._covariance, below)
        found: Floats = np.sqrt(np.maximum(squares, 0.0))
        return found

    def running_half_widths(self, confidence: float) -> Floats:
        """By the law of all draws of a total, unless they are Gaussian.

        Sums of draws of their own, with five significant bits in their number; those between take
        the next larger, which has their draws and more.
        """
        if self.found.gaussian:
            return z_of(confidence) * self.running_spreads()
        forms = [self.found.form(place) for place in range(len(self.found.estimates))]
        apart = sum(map(len, forms)) == len(set().union(*forms))
        halves, below = np.zeros(len(forms) + 1), dict[object, FormDraw]()
        for number, form in enumerate(forms, 1):
            below = combined(below, 1.0, form)
            spare = max(0, number.bit_length() - 5) if apart else 0
            if number % (1 << spare) == 0 or number == len(forms):
                halves[number] = sum_half_width(draws_of(below), confidence) * (1 + SAME)
        for number in range(len(forms) - 1, 0, -1):
            halves[number] = halves[number] or halves[number + 1]
        return halves


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredSums:
    """The stored noisy integers of a question with their noise, ready to be read."""

    noise: Noise
    values: Sequence[int]
    size: int | None
    """How many of what is counted there are at most: rows, or persons."""

    @property
    def bound(self) -> BoundQuery:
        return self.noise.bound

    def exact(self) -> Fraction:
        """Return the first sum in user units."""
        return self.values[0] * self.bound.terms[0].fine_step

    def estimates(self) -> Floats:
        """Return the sums in user units, shaped (cells, terms)."""
        steps = [term.fine_step for term in self.bound.terms]
        exact = [float(v * steps[place % len(steps)]) for place, v in enumerate(self.values)]
        return np.array(exact, dtype=np.float64).reshape(-1, len(steps))

    def limits(self) -> tuple[float, float]:
        """The least and the most that the first sum can be."""
        if self.size is None:
            return -math.inf, math.inf
        term = self.bound.terms[0]
        low, high = min(0.0, float(term.low)), max(0.0, float(term.high))
        return self.size * low, self.size * high


def spread_of(term: BoundTerm, law: Law) -> float:
    """Return the standard deviation of one noisy sum in user units."""
    return law.standard_deviation() * float(term.fine_step)


def around(
    estimate: Fraction | float, half: Fraction | float, least: float, most: float
) -> tuple[Fraction | float, Fraction | float]:
    """An interval within what is possible, around the estimate moved to where it can be.

    It holds all that a plain cut leaves, and does not shrink to one point where noise went too
    far: a count of -225 +- 48 is 0 to 48. docs/proofs/error-bars.md, section 7.
    """
    near = min(max(estimate, least), most)
    return max(near - half, least), min(near + half, most)


def running_half_widths(term: BoundTerm, law: Law, count: int, confidence: float) -> Floats:
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
