"""Numbers with error bars: what an aggregate of SQL is, and what can be made of it.

Post-processing of noisy answers only. Proofs: docs/proofs/error-bars.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

from sulq.errors import InvalidQuery
from sulq.noise.ratios import Ends, combined, draws_of, inside, variance_interval
from sulq.noise.tails import spread
from sulq.sql.arithmetic import as_ratio
from sulq.sql.bounds import ANYTHING
from sulq.sql.forms import (
    UNKNOWN,
    Estimate,
    Made,
    Mix,
    Noisy,
    Ratio,
    as_estimate,
    check,
    nearest,
    outwards,
    ratio,
)

__all__ = [
    "Estimate", "Made", "Mix", "Noisy", "Ratio", "Stated", "Variance", "as_estimate",
    "as_ratio", "mean", "power", "product", "ratio", "root", "variance",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Stated(Estimate):
    """An estimate whose interval is known elsewhere, such as a quantile's."""

    number: float
    stating: Callable[[float], Ends]
    limits: Ends = ANYTHING
    names: frozenset[Hashable] = frozenset()
    said: str = ""
    rank: Callable[[float], float] | None = None
    """Of a quantile: how far off its rank may be, as a share of the rows, at a confidence."""
    whole: bool = False
    """A count: shown as a whole number."""
    exact: bool = False
    """Made of sums without noise."""

    @property
    def public(self) -> bool:
        return self.exact or not self.names

    @property
    def value(self) -> float:
        return nearest(self.number) if self.whole else self.number

    @property
    def unrounded(self) -> Estimate:
        return replace(self, whole=False) if self.whole else self

    @property
    def note(self) -> str:
        return self.said

    @property
    def rests_on(self) -> frozenset[Hashable]:
        return self.names

    @property
    def possible(self) -> Ends:
        return self.limits

    def interval(self, confidence: float = 0.95) -> Ends:
        check(confidence)
        low, high = self.stating(confidence)
        ends = inside(self.number, (float(low), float(high)), self.limits)
        return outwards(ends) if self.whole else ends


@dataclass(frozen=True, slots=True, eq=False)
class Variance(Estimate):
    """The variance of x in [low, high] from count, total of x and total of x^2."""

    sums: tuple[Noisy, Noisy, Noisy]
    low: float
    high: float

    @property
    def value(self) -> float:
        n, total, square = (form.number for form in self.sums)
        if n <= 0:
            return self.possible[1] / 2
        at = total / n
        error = spread(draws_of(combined(self.sums[1].draws, -at, self.sums[0].draws))) / n
        found = square / n - at**2 + error**2  # S0.8: the square of a noisy mean is too large
        return min(max(found, 0.0), self.possible[1])

    @property
    def note(self) -> str:
        return UNKNOWN if self.interval() == self.possible else ""

    @property
    def rests_on(self) -> frozenset[Hashable]:
        return frozenset().union(*(form.rests_on for form in self.sums))

    @property
    def possible(self) -> Ends:
        return 0.0, ((self.high - self.low) / 2) ** 2

    def interval(self, confidence: float = 0.95) -> Ends:
        check(confidence)
        if self.sums[0].number <= 0:
            return self.possible
        numbers, forms = zip(*((form.number, form.draws) for form in self.sums), strict=True)
        return variance_interval(numbers, forms, confidence, self.low, self.high)


def product(left: Estimate, right: Estimate) -> Estimate:
    """left * right."""
    return left * right


def power(x: Estimate, exponent: int) -> Estimate:
    """x^exponent, a whole number from 1."""
    if exponent < 1:
        raise InvalidQuery(f"a power got the exponent {exponent!r}; want a whole number from 1")

    def bounds(ends: Ends) -> Ends:
        low, high = sorted(_power(end, exponent) for end in ends)
        return (0.0 if exponent % 2 == 0 and ends[0] < 0 < ends[1] else low), high

    return Made((x,), lambda value: _power(value, exponent), bounds)


def root(x: Estimate) -> Estimate:
    """The square root; of a negative value 0, for what is estimated is not negative."""
    return Made(
        (x,),
        lambda value: math.sqrt(max(value, 0.0)) if value == value else value,
        lambda ends: (math.sqrt(max(ends[0], 0.0)), math.sqrt(max(ends[1], 0.0))),
    )


def mean(count: Noisy, centred: Noisy, middle: float, low: float, high: float) -> Estimate:
    """The mean from a count and the total of (x - middle), x in [low, high]."""
    return ratio(centred, count, low=low - middle, high=high - middle) + middle


def variance(
    count: Noisy, centred: Noisy, square: Noisy, low: float, high: float, middle: float = 0.0
) -> Estimate:
    """The variance of x in [low, high] from a count, totals of x - middle and of its square."""
    return Variance((count, centred, square), low - middle, high - middle)


def _power(x: float, exponent: int) -> float:
    try:
        return float(x**exponent)
    except OverflowError:
        return math.inf if x > 0 or exponent % 2 == 0 else -math.inf
