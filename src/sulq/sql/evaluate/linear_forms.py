"""Linear forms over noisy draws, their ratios, and sums and functions of those.

Post-processing of noisy answers only. A linear form knows which draws it rests on, so that what
two forms share cancels: x - x is 0 without error. Proofs: docs/proofs/error-bars.md.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar

from sulq.errors import InvalidQuery
from sulq.kernel.noise.intervals import (
    Draw,
    Ends,
    Form,
    Rounding,
    combined,
    draws_of,
    half_width,
    inside,
    ratio_interval,
    spread,
    told_spread,
)
from sulq.kernel.noise.laws import Law

ANYTHING: Ends = (-math.inf, math.inf)
MOST_CORNERS = 5
"""Sums of more ratios than this have 2^n corners too many, and take the plain bound."""

MOST_HALVES = 4_096
_HALVES: dict[tuple[int, float, float], tuple[Law | Rounding, float]] = {}
"""Half-widths by law, step and confidence: what a law is said to hold, known to all."""


def looked_up(form: Form, confidence: float) -> float:
    """The half-width of a linear form. Cells of one question share law and step: found by them."""
    if len(form) != 1:
        return half_width(draws_of(form), confidence)
    ((scale, law),) = form.values()
    key = (id(law), scale, confidence)
    held = _HALVES.get(key)
    if held is None or held[0] is not law:
        if len(_HALVES) >= MOST_HALVES:
            _HALVES.clear()
        held = _HALVES[key] = (law, half_width(((scale, law),), confidence))
    return held[1]


def cut(ends: Ends, limits: Ends) -> Ends:
    """An interval within what is possible."""
    low, high = limits
    return min(max(ends[0], low), high), max(min(ends[1], high), low)


def product_ends(left: Ends, right: Ends) -> Ends:
    """Every product of two numbers in these intervals."""
    corners = [0.0 if 0.0 in (x, y) else x * y for x in left for y in right]
    return min(corners), max(corners)


def quotient_ends(left: Ends, right: Ends) -> Ends:
    """Every quotient; anything where the divisor may be 0."""
    low, high = right
    if low <= 0 <= high:
        return ANYTHING
    return product_ends(left, (1 / high, 1 / low))


@dataclass(frozen=True, slots=True)
class Quotient:
    """weight * top / bottom, with intervals that hold the true ratio and the true bottom."""

    weight: float
    top: float
    top_form: Form
    bottom: float
    bottom_form: Form
    ratio_ends: Ends
    bottom_ends: Ends

    @property
    def slack(self) -> Ends:
        """How far the true term may be from the noisy one."""
        at = self.top / self.bottom if self.bottom else 0.0
        low, high = sorted(self.weight * (end - at) for end in self.ratio_ends)
        return low, high

    @property
    def shrinks(self) -> Ends | None:
        """What noisy bottom / true bottom may be; None where the true one may be 0."""
        least, most = self.bottom_ends
        if least <= 0 <= most:
            return None
        low, high = sorted((self.bottom / least, self.bottom / most))
        return low, high


def straight_ends(parts: Sequence[Quotient], confidence: float) -> Ends:
    """How far the true sum of w top / bottom may be from the noisy one: (below, above).

    With r the true ratio, B the true bottom and g = bottom / B, the sum of w (top - r bottom) / B
    is noise alone, linear in the draws: in size at most h(g). It is the sum of -g y, where y is
    how far the true term is from the noisy one. So the sum of y is at most the largest with
    sum of g y <= h(g) and each y within its slack, over all possible g. For a fixed g that is a
    knapsack; over g the worst is at a corner or at g = 1 (docs/proofs/error-bars.md).
    """
    slacks = [part.slack for part in parts]
    most = sum(high for _, high in slacks)
    least = sum(low for low, _ in slacks)
    ranges = [part.shrinks for part in parts]
    if len(parts) > MOST_CORNERS or not math.isfinite(most - least) or None in ranges:
        return least, most
    corners = {tuple(1.0 for _ in parts), *itertools.product(*(r for r in ranges if r))}
    below = above = 0.0
    for corner in corners:
        half = _linear_half(parts, corner, confidence)
        above = max(above, _knapsack(corner, slacks, half))
        below = max(below, _knapsack(corner, [(-high, -low) for low, high in slacks], half))
    return max(-below, least), min(above, most)


def _linear_half(parts: Sequence[Quotient], shrinks: Sequence[float], confidence: float) -> float:
    """The half-width of the sum of w (top - r bottom) / B, at the widest r allows (peakedness)."""
    reach: dict[object, Ends] = {}
    laws: dict[object, Law | Rounding] = {}
    for part, shrink in zip(parts, shrinks, strict=True):
        per = part.weight * shrink / part.bottom
        low, high = part.ratio_ends
        for form, ends in (
            (part.top_form, (per, per)),
            (part.bottom_form, (-low * per, -high * per)),
        ):
            for name, (scale, law) in form.items():
                first, last = sorted(scale * end for end in ends)
                before = reach.get(name, (0.0, 0.0))
                reach[name], laws[name] = (before[0] + first, before[1] + last), law
    widest = {name: (max(abs(low), abs(high)), laws[name]) for name, (low, high) in reach.items()}
    return half_width(draws_of(widest), confidence)


def _knapsack(costs: Sequence[float], slacks: Sequence[Ends], most: float) -> float:
    """The largest sum of y in slacks with sum of cost * y <= most; costs are positive."""
    total = sum(high for _, high in slacks)
    excess = sum(cost * high for cost, (_, high) in zip(costs, slacks, strict=True)) - most
    for cost, (low, high) in sorted(zip(costs, slacks, strict=True), reverse=True):
        if excess <= 0:
            break
        less = min(high - low, excess / cost)
        total, excess = total - less, excess - cost * less
    return total


# What follows when numbers lie in intervals: products, quotients, sums of weighted ratios.


UNKNOWN = "too few rows match to tell"


class Estimate(ABC):
    """A value, its standard error (None where it has no use), an interval, and a note."""

    __slots__ = ()

    combine: ClassVar[Callable[[str, Estimate, Estimate], Estimate]]
    """The rules of + - * /, set where every kind of estimate is known (`arithmetic`)."""

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
    def public(self) -> bool:
        """Whether it has no noise: by what it rests on, however narrow an interval is."""
        return not self.rests_on

    @property
    def unrounded(self) -> Estimate:
        """The same without rounding to whole numbers: what arithmetic goes on with."""
        return self

    def unread(self, confidence: float = 0.95) -> bool:
        """Whether the interval is all that is possible, so that the value says nothing."""
        if not math.isfinite(self.value):
            return True
        ends, least = self.interval(confidence), self.possible
        return (
            not self.public
            and ends == least
            and ends[0] < ends[1]
            and all(map(math.isfinite, ends))
        )

    @property
    def atoms(self) -> tuple[Estimate, ...]:
        """The estimates whose intervals, holding together, make this one's hold."""
        return (self,)

    def ends(self, held: dict[int, Ends]) -> Ends:
        """The interval given those of the atoms, by id."""
        return held[id(self)]

    def __add__(self, other: Estimate | float) -> Estimate:
        return Estimate.combine("+", self, as_estimate(other))

    def __radd__(self, other: float) -> Estimate:
        return Estimate.combine("+", as_estimate(other), self)

    def __sub__(self, other: Estimate | float) -> Estimate:
        return Estimate.combine("-", self, as_estimate(other))

    def __rsub__(self, other: float) -> Estimate:
        return Estimate.combine("-", as_estimate(other), self)

    def __mul__(self, other: Estimate | float) -> Estimate:
        return Estimate.combine("*", self, as_estimate(other))

    def __rmul__(self, other: float) -> Estimate:
        return Estimate.combine("*", as_estimate(other), self)

    def __truediv__(self, other: Estimate | float) -> Estimate:
        return Estimate.combine("/", self, as_estimate(other))

    def __rtruediv__(self, other: float) -> Estimate:
        return Estimate.combine("/", as_estimate(other), self)

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
    constant: float = math.nan
    ranges: Mapping[object, Ends] = field(default_factory=lambda: MappingProxyType({}))
    """What each true sum may be, in its steps; not known of a draw that is missing here."""
    whole: bool = False
    """A count: shown as a whole number. What is made of it rests on the draw itself."""

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
        size = float(step)  # type: ignore[arg-type]
        ranges = {name: (low / size, high / size)}
        return cls(float(value), {name: (size, law)}, (low, high), 0.0, ranges)

    @classmethod
    def exact(cls, value: float) -> Noisy:
        """A public number."""
        number = float(value)
        return cls(number, limits=(number, number), constant=number)

    @property
    def value(self) -> float:
        return nearest(self.number) if self.whole else self.number

    @property
    def unrounded(self) -> Estimate:
        return replace(self, whole=False) if self.whole else self

    @property
    def standard_error(self) -> float:
        """Of the number that is told: of a count with its rounding."""
        return (told_spread if self.whole else spread)(draws_of(self.draws))

    @property
    def rests_on(self) -> frozenset[Hashable]:
        return frozenset(self.draws)

    @property
    def possible(self) -> Ends:
        return self.limits

    def interval(self, confidence: float = 0.95) -> Ends:
        """The law's own for one draw; for several the law of their sum (`noise.tails`)."""
        check(confidence)
        half = looked_up(self.draws, confidence)
        ends = inside(self.number, (self.number - half, self.number + half), self.limits)
        return outwards(ends) if self.whole else ends

    def plus(self, other: Noisy, weight: float = 1.0) -> Noisy:
        """self + weight * other."""
        found = combined(self.draws, weight, other.draws)
        draws: dict[object, Draw] = {name: draw for name, draw in found.items() if draw[0]}
        low, high = sorted((weight * end if weight else 0.0) for end in other.limits)
        limits = (self.limits[0] + low, self.limits[1] + high)
        number = self.number + weight * other.number
        if not draws:
            limits = (number, number)
        constant = self.constant + weight * other.constant
        ranges = MappingProxyType({**self.ranges, **other.ranges})
        return Noisy(number, MappingProxyType(draws), limits, constant, ranges)

    @property
    def least(self) -> float:
        """The least the true value can be, draw by draw; not a number where that is not known."""
        found = self.constant
        for name, (scale, _) in self.draws.items():
            found += min(scale * end for end in self.ranges.get(name, ANYTHING))
        return found

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
        halfway = self.bottom.draws and math.isfinite(high - low)  # by 0, for all to see: NULL
        return (low + high) / 2 if halfway else math.nan

    @property
    def standard_error(self) -> float | None:
        """First order: the spread of (top - value bottom) / bottom; None where unknown."""
        if not self._known:
            return None
        at = self.top.number / self.bottom.number
        error = spread(draws_of(combined(self.top.draws, -at, self.bottom.draws))) / abs(
            self.bottom.number
        )
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
        check(confidence)
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


class Compound(Estimate):
    """An estimate made of others."""

    __slots__ = ()

    @property
    @abstractmethod
    def made_of(self) -> tuple[Estimate, ...]: ...

    @abstractmethod
    def bounds(self, parts: list[Ends]) -> Ends:
        """What it can be while its parts lie in these intervals."""

    @property
    def note(self) -> str:
        return "; ".join(dict.fromkeys(part.note for part in self.made_of if part.note))

    @property
    def rests_on(self) -> frozenset[Hashable]:
        return frozenset().union(*(part.rests_on for part in self.made_of))

    @property
    def possible(self) -> Ends:
        return self.bounds([part.possible for part in self.made_of])

    @property
    def atoms(self) -> tuple[Estimate, ...]:
        found = {id(atom): atom for part in self.made_of for atom in part.atoms}
        return tuple(found.values())

    def ends(self, held: dict[int, Ends]) -> Ends:
        return self.bounds([part.ends(held) for part in self.made_of])


@dataclass(frozen=True, slots=True, eq=False)
class Made(Compound):
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
    def made_of(self) -> tuple[Estimate, ...]:
        return self.parts

    def bounds(self, parts: list[Ends]) -> Ends:
        return self.bounding(*parts)

    def interval(self, confidence: float = 0.95) -> Ends:
        check(confidence)
        return inside(self.value, together(self, confidence), self.possible)


def together(made: Estimate, confidence: float) -> Ends:
    """Bonferroni: what follows while every atom lies in its own interval."""
    atoms = [atom for atom in made.atoms if atom.rests_on]
    each = 1 - (1 - confidence) / max(1, len(atoms))
    return made.ends({id(atom): atom.interval(each) for atom in made.atoms})


def nearest(number: float) -> float:
    """The nearest whole number; what is not finite stays."""
    return math.floor(number + 0.5) if math.isfinite(number) else number


def outwards(ends: Ends) -> Ends:
    """Whole ends, away from each other, so that the interval holds at least as often."""
    low, high = ends
    return (
        math.floor(low) if math.isfinite(low) else low,
        math.ceil(high) if math.isfinite(high) else high,
    )


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
    least = 0.0 if top.limits[0] >= 0 <= bottom.limits[0] else -math.inf
    most = 1.0 if least == 0 and bottom.plus(top, -1.0).least >= 0 else math.inf  # a part of it
    limits = (least if low is None else low, most if high is None else high)
    if not bottom.draws and bottom.number:
        scaled = top.times(1 / bottom.number)
        return Noisy(scaled.number, scaled.draws, cut(scaled.limits, limits))
    return Ratio(top, bottom, limits)


def check(confidence: float) -> None:
    """A share of 1, exclusive."""
    if not 0 < confidence < 1:
        raise InvalidQuery(f"confidence got {confidence!r}; want a number between 0 and 1")


# --- sums of weighted ratios --------------------------------------------------------------------

SIDE_SHARE = 1 / 10
"""The part of the allowed misses that a sum of ratios spends on bounding its curvature."""

Term = tuple[float, Estimate]


@dataclass(frozen=True, slots=True, eq=False)
class Mix(Compound):
    """constant + sum of weight * atom, such as a difference of two means.

    Its interval is the linear one with the curvature of the ratios bounded
    (`bounds.straight_ends`); of other atoms Bonferroni's.
    """

    number: float
    terms: tuple[Term, ...]

    @property
    def value(self) -> float:
        return self.number + sum(weight * atom.value for weight, atom in self.terms)

    @property
    def made_of(self) -> tuple[Estimate, ...]:
        return tuple(atom for _, atom in self.terms)

    def bounds(self, parts: list[Ends]) -> Ends:
        low = high = self.number
        for (weight, _), part in zip(self.terms, parts, strict=True):
            first, last = sorted(weight * end for end in part)
            low, high = low + first, high + last
        return low, high

    def interval(self, confidence: float = 0.95) -> Ends:
        check(confidence)
        if len(self.terms) == 1:
            return self.bounds([self.terms[0][1].interval(confidence)])
        if not all(isinstance(atom, Noisy | Ratio) for _, atom in self.terms):
            return inside(self.value, together(self, confidence), self.possible)
        side = (1 - confidence) * SIDE_SHARE
        each = 1 - side / (2 * len(self.terms))
        one, parts = Noisy.exact(1.0), []
        for weight, atom in self.terms:
            top, bottom = (atom.top, atom.bottom) if isinstance(atom, Ratio) else (atom, one)
            assert isinstance(top, Noisy)  # noqa: S101
            held = atom.interval(each), bottom.interval(each)
            parts.append(
                Quotient(weight, top.number, top.draws, bottom.number, bottom.draws, *held)
            )
        if not all(part.bottom for part in parts):
            return self.possible
        number = self.number + sum(part.weight * part.top / part.bottom for part in parts)
        low, high = straight_ends(parts, confidence + side)
        return inside(number, (number + low, number + high), self.possible)
