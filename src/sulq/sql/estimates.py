"""Numbers with error bars: linear forms over noisy draws, their ratios, and what is made of them.

Post-processing of noisy answers only. A linear form knows which draws it rests on, so that what
two forms share cancels: x - x is 0 without error. Proofs: docs/proofs/error-bars.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sulq.errors import InvalidQuery
from sulq.noise.distributions import Law
from sulq.noise.tails import Draw, Form, combined, half_width, ratio_interval, spread

Ends = tuple[float, float]
ANYTHING: Ends = (-math.inf, math.inf)
UNKNOWN = "too few rows match to tell"


class Estimate(ABC):
    """A value, its standard error (None where it has no use), an interval, and a note."""

    __slots__ = ()

    @property
    @abstractmethod
    def value(self) -> float: ...

    @property
    def standard_error(self) -> float | None:
        """About the spread of the value: half of the interval at 68.27 %; None where unbounded."""
        low, high = self.interval(0.6827)
        return (high - low) / 2 if math.isfinite(high - low) else None

    @property
    def note(self) -> str:
        return ""

    @property
    @abstractmethod
    def rests_on(self) -> frozenset[Hashable]:
        """The names of the draws behind it."""

    @property
    @abstractmethod
    def possible(self) -> Ends:
        """Where the true value must lie, whatever the rows."""

    @abstractmethod
    def interval(self, confidence: float = 0.95) -> Ends:
        """(low, high) that holds the true value this often or more."""

    @property
    def atoms(self) -> tuple[Estimate, ...]:
        """The estimates whose intervals, holding together, make this one's hold."""
        return (self,)

    def ends(self, held: dict[int, Ends]) -> Ends:
        """The interval given those of the atoms, by id."""
        return held[id(self)]

    def __add__(self, other: Estimate | float) -> Estimate:
        return _combine("+", self, as_estimate(other))

    def __radd__(self, other: float) -> Estimate:
        return _combine("+", as_estimate(other), self)

    def __sub__(self, other: Estimate | float) -> Estimate:
        return _combine("-", self, as_estimate(other))

    def __rsub__(self, other: float) -> Estimate:
        return _combine("-", as_estimate(other), self)

    def __mul__(self, other: Estimate | float) -> Estimate:
        return _combine("*", self, as_estimate(other))

    def __rmul__(self, other: float) -> Estimate:
        return _combine("*", as_estimate(other), self)

    def __truediv__(self, other: Estimate | float) -> Estimate:
        return _combine("/", self, as_estimate(other))

    def __rtruediv__(self, other: float) -> Estimate:
        return _combine("/", as_estimate(other), self)

    def __neg__(self) -> Estimate:
        return self * -1.0

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True, slots=True, eq=False)
class Noisy(Estimate):
    """constant + sum of weight * draw: exact in its draws, however often they are used."""

    number: float
    draws: Form = field(default_factory=lambda: MappingProxyType({}))
    limits: Ends = ANYTHING

    @classmethod
    def draw(
        cls,
        name: Hashable,
        value: float,
        law: Law,
        step: object,
        low: float = -math.inf,
        high: float = math.inf,
    ) -> Noisy:
        """One noisy sum: `step` user units per step of the law; [low, high] is possible."""
        return cls(float(value), MappingProxyType({name: (float(step), law)}), (low, high))  # type: ignore[arg-type]

    @classmethod
    def exact(cls, value: float) -> Noisy:
        """A public number."""
        return cls(float(value), limits=(float(value), float(value)))

    @property
    def value(self) -> float:
        return self.number

    @property
    def standard_error(self) -> float:
        return spread(tuple(self.draws.values()))

    @property
    def rests_on(self) -> frozenset[Hashable]:
        return frozenset(self.draws)

    @property
    def possible(self) -> Ends:
        return self.limits

    def interval(self, confidence: float = 0.95) -> Ends:
        """The law's own for one draw; for several the law of their sum (`noise.tails`)."""
        _check(confidence)
        half = half_width(tuple(self.draws.values()), confidence)
        return _cut((self.number - half, self.number + half), self.limits)

    def plus(self, other: Noisy, weight: float = 1.0) -> Noisy:
        """self + weight * other."""
        scales = combined(self.draws, weight, other.draws)
        names = [*self.draws, *(name for name in other.draws if name not in self.draws)]
        draws: dict[object, Draw] = {
            name: draw for name, draw in zip(names, scales, strict=True) if draw[0]
        }
        low, high = sorted((weight * end if weight else 0.0) for end in other.limits)
        limits = (self.limits[0] + low, self.limits[1] + high)
        number = self.number + weight * other.number
        if not draws:
            limits = (number, number)
        return Noisy(number, MappingProxyType(draws), limits)

    def times(self, factor: float) -> Noisy:
        return Noisy.exact(0.0).plus(self, factor)


@dataclass(frozen=True, slots=True, eq=False)
class Ratio(Estimate):
    """top / bottom with Fieller's interval, right at any count; see `ratio`."""

    top: Noisy
    bottom: Noisy
    limits: Ends = ANYTHING

    @property
    def value(self) -> float:
        low, high = self.limits
        if self._known:
            return min(max(self.top.number / self.bottom.number, low), high)
        return (low + high) / 2 if math.isfinite(high - low) else math.nan

    @property
    def standard_error(self) -> float | None:
        """First order: the spread of (top - value bottom) / bottom; None where unknown."""
        if not self._known:
            return None
        at = self.top.number / self.bottom.number
        error = spread(combined(self.top.draws, -at, self.bottom.draws)) / abs(self.bottom.number)
        return min(error, self.limits[1] - self.limits[0])

    @property
    def _known(self) -> bool:
        number = self.bottom.number
        return number != 0 and (number > 0 or self.bottom.limits[0] < 0)

    @property
    def note(self) -> str:
        return UNKNOWN if self.interval() == self.limits else ""

    @property
    def rests_on(self) -> frozenset[Hashable]:
        return self.top.rests_on | self.bottom.rests_on

    @property
    def possible(self) -> Ends:
        return self.limits

    def interval(self, confidence: float = 0.95) -> Ends:
        _check(confidence)
        if not self._known:
            return self.limits
        return ratio_interval(
            self.top.number,
            self.top.draws,
            self.bottom.number,
            self.bottom.draws,
            confidence,
            *self.limits,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Stated(Estimate):
    """An estimate whose interval is known elsewhere, such as a quantile's."""

    number: float
    stating: Callable[[float], Ends]
    limits: Ends = ANYTHING
    names: frozenset[Hashable] = frozenset()
    said: str = ""

    @property
    def value(self) -> float:
        return self.number

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
        _check(confidence)
        low, high = self.stating(confidence)
        return _cut((float(low), float(high)), self.limits)


@dataclass(frozen=True, slots=True, eq=False)
class Made(Estimate):
    """A function of other estimates.

    Its interval is what the function can take while every atom lies in its own interval, each at
    1 - (1 - confidence) / atoms (Bonferroni), so it holds at least as often as it says.
    """

    parts: tuple[Estimate, ...]
    function: Callable[..., float]
    bounding: Callable[..., Ends]

    @property
    def value(self) -> float:
        return self.function(*(part.value for part in self.parts))

    @property
    def note(self) -> str:
        return "; ".join(dict.fromkeys(part.note for part in self.parts if part.note))

    @property
    def rests_on(self) -> frozenset[Hashable]:
        return frozenset().union(*(part.rests_on for part in self.parts))

    @property
    def possible(self) -> Ends:
        return self.bounding(*(part.possible for part in self.parts))

    @property
    def atoms(self) -> tuple[Estimate, ...]:
        found = {id(atom): atom for part in self.parts for atom in part.atoms}
        return tuple(found.values())

    def ends(self, held: dict[int, Ends]) -> Ends:
        return self.bounding(*(part.ends(held) for part in self.parts))

    def interval(self, confidence: float = 0.95) -> Ends:
        _check(confidence)
        atoms = [atom for atom in self.atoms if atom.rests_on]
        each = 1 - (1 - confidence) / max(1, len(atoms))
        return self.ends({id(atom): atom.interval(each) for atom in self.atoms})


def as_estimate(number: Estimate | float) -> Estimate:
    """A plain number as a public one."""
    return number if isinstance(number, Estimate) else Noisy.exact(number)


def ratio(
    top: Noisy | float,
    bottom: Noisy | float,
    *,
    low: float | None = None,
    high: float | None = None,
) -> Estimate:
    """top / bottom. [low, high] is what is possible, and the interval where nothing is known."""
    top, bottom = (x if isinstance(x, Noisy) else Noisy.exact(x) for x in (top, bottom))
    limits = (-math.inf if low is None else low, math.inf if high is None else high)
    if not bottom.draws and bottom.number:
        scaled = top.times(1 / bottom.number)
        return Noisy(scaled.number, scaled.draws, _cut(scaled.limits, limits))
    return Ratio(top, bottom, limits)


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


def _check(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise InvalidQuery(f"confidence got {confidence!r}; want a number between 0 and 1")


def _cut(ends: Ends, limits: Ends) -> Ends:
    low, high = limits
    return min(max(ends[0], low), high), max(min(ends[1], high), low)


def _power(x: float, exponent: int) -> float:
    try:
        return float(x**exponent)
    except OverflowError:
        return math.inf if x > 0 or exponent % 2 == 0 else -math.inf


def _combine(sign: str, left: Estimate, right: Estimate) -> Estimate:
    """Linear where it is, Fieller for a ratio of linear forms, else from the parts' intervals."""
    if isinstance(left, Noisy) and isinstance(right, Noisy):
        if sign in "+-":
            return left.plus(right, 1.0 if sign == "+" else -1.0)
        if sign == "*" and not right.draws:
            return left.times(right.number)
        if sign == "*" and not left.draws:
            return right.times(left.number)
        if sign == "/":
            return ratio(left, right)
    if left is right and sign == "-":
        return Noisy.exact(0.0)
    return Made((left, right), _VALUES[sign], _BOUNDS[sign])


def _product_ends(left: Ends, right: Ends) -> Ends:
    corners = [0.0 if 0.0 in (x, y) else x * y for x in left for y in right]
    return min(corners), max(corners)


def _quotient_ends(left: Ends, right: Ends) -> Ends:
    low, high = right
    if low <= 0 <= high:
        return ANYTHING
    return _product_ends(left, (1 / high, 1 / low))


_VALUES: dict[str, Callable[..., float]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y if y else math.nan,
}
_BOUNDS: dict[str, Callable[..., Any]] = {
    "+": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "-": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "*": _product_ends,
    "/": _quotient_ends,
}
