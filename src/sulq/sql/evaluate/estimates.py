"""Numbers with error bars: what an aggregate of SQL is, and what can be made of it.

Post-processing of noisy answers only. Proofs: docs/proofs/error-bars.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

from sulq.answers.statistics import PairSums
from sulq.errors import InvalidQuery
from sulq.kernel.noise.intervals import Ends, combined, draws_of, inside, spread, variance_interval
from sulq.sql.evaluate.linear_forms import (
    ANYTHING,
    UNKNOWN,
    Estimate,
    Made,
    Mix,
    Noisy,
    Ratio,
    Term,
    as_estimate,
    check,
    nearest,
    outwards,
    product_ends,
    quotient_ends,
    ratio,
)


def terms_of(x: Estimate) -> tuple[float, tuple[Term, ...]]:
    """x as constant + weighted atoms."""
    if isinstance(x, Mix):
        return x.number, x.terms
    if isinstance(x, Noisy) and not x.draws:
        return x.number, ()
    return 0.0, ((1.0, x),)


def mixed(number: float, terms: tuple[Term, ...]) -> Estimate:
    """constant + weighted atoms as the simplest estimate: what is alike is put together."""
    linear = Noisy.exact(number)
    ratios: dict[object, list[tuple[float, Ratio]]] = {}
    others: dict[int, Term] = {}
    for weight, atom in terms:
        if not weight:
            continue
        if isinstance(atom, Noisy):
            linear = linear.plus(atom, weight)
        elif isinstance(atom, Ratio):
            alike = (atom.bottom.number, tuple(atom.bottom.draws.items()))
            ratios.setdefault(alike, []).append((weight, atom))
        else:
            others[id(atom)] = (others.get(id(atom), (0.0, atom))[0] + weight, atom)
    kept = [_one_bottom(alike) for alike in ratios.values()]
    kept += others.values()
    kept = [(weight, atom) for weight, atom in kept if weight and atom.rests_on]
    if not kept:
        return linear
    if linear.draws:
        return Mix(0.0, ((1.0, linear), *kept))
    if len(kept) == 1 and linear.number == 0 and kept[0][0] == 1:
        return kept[0][1]
    return Mix(linear.number, tuple(kept))


def _one_bottom(alike: list[tuple[float, Ratio]]) -> Term:
    """Ratios with one bottom are one ratio."""
    if len({id(atom) for _, atom in alike}) == 1:
        return sum(weight for weight, _ in alike), alike[0][1]
    top, limits = Noisy.exact(0.0), (0.0, 0.0)
    for weight, atom in alike:
        top = top.plus(atom.top, weight)
        low, high = sorted(weight * end for end in atom.limits)
        limits = (limits[0] + low, limits[1] + high)
    return (1.0, Ratio(top, alike[0][1].bottom, limits)) if top.draws else (0.0, top)


def as_ratio(x: Estimate) -> tuple[Noisy, Noisy] | None:
    """(top, bottom) where x is a ratio of linear forms: a scaled or shifted one is one too."""
    if isinstance(x, Noisy):
        return x, Noisy.exact(1.0)
    number, terms = terms_of(x)
    if len(terms) != 1:
        return None
    weight, atom = terms[0]
    if not isinstance(atom, Ratio):
        return None
    return atom.bottom.times(number).plus(atom.top, weight), atom.bottom


def combine(sign: str, left: Estimate, right: Estimate) -> Estimate:
    """left sign right: linear where it can be, one ratio where it can be, else from intervals."""
    if sign in "+-":
        number, terms = terms_of(left)
        more, others = terms_of(right)
        turn = 1.0 if sign == "+" else -1.0
        weighted = tuple((turn * weight, atom) for weight, atom in others)
        return mixed(number + turn * more, terms + weighted)
    plain = right if isinstance(right, Noisy) and not right.draws else None
    if sign == "*" and plain is None and isinstance(left, Noisy) and not left.draws:
        plain, left = left, right
    if plain is not None and (sign == "*" or plain.number):
        factor = plain.number if sign == "*" else 1 / plain.number
        number, terms = terms_of(left)
        return mixed(number * factor, tuple((weight * factor, atom) for weight, atom in terms))
    if sign == "/" and (one := _one_ratio(left, right)) is not None:
        return one
    return Made((left, right), _VALUES[sign], _BOUNDS[sign])


def _one_ratio(left: Estimate, right: Estimate) -> Estimate | None:
    """(a / n) / (b / n) is a / b; a / (b / n) is one only if a is a number."""
    over, under = as_ratio(left), as_ratio(right)
    if over is None or under is None:
        return None
    if _alike(over[1], under[1]):
        return ratio(over[0], under[0])
    if isinstance(left, Noisy) and not left.draws:
        return ratio(under[1].times(left.number), under[0])
    return None


def _alike(first: Noisy, second: Noisy) -> bool:
    return first.number == second.number and dict(first.draws) == dict(second.draws)


_VALUES: dict[str, Callable[..., float]] = {
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y if y else math.nan,
}
_BOUNDS: dict[str, Callable[..., Ends]] = {"*": product_ends, "/": quotient_ends}

Estimate.combine = combine

# + - * / of estimates: linear where it can be, one ratio where it can be, else from intervals.


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


@dataclass(frozen=True, slots=True, eq=False)
class PairEstimate(Estimate):
    """The covariance or the correlation of two values, from sums with noise."""

    sums: PairSums
    correlation: bool

    @property
    def value(self) -> float:
        return (self.sums.correlation() if self.correlation else self.sums.covariance())[0]

    @property
    def note(self) -> str:
        return UNKNOWN if self.interval() == self.possible else ""

    @property
    def rests_on(self) -> frozenset[Hashable]:
        return frozenset().union(*(form.keys() for form in self.sums.forms))

    @property
    def possible(self) -> Ends:
        most = 1.0 if self.correlation else self.sums.largest
        return -most, most

    def interval(self, confidence: float = 0.95) -> Ends:
        check(confidence)
        if self.correlation:
            return self.sums.correlation_ends(confidence)
        return self.sums.covariance_ends(confidence)


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
