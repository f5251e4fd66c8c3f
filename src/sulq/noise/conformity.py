"""Do residuals follow the laws that are claimed for them? One bit, wrong with chance 1e-9 at most.

Likelihood ratios against laws of another size or place, the empirical distribution, strays, and
equal draws. The 1e-9 holds for the whole life of a table, however often and whenever it is tested.
Nothing but `failed` may leave. Proof: docs/proofs/replay.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from sulq.noise.distributions import (
    EXACT_COINS,
    CentredBinomial,
    DiscreteGaussian,
    DiscreteHuber,
    DiscreteLaplace,
    DividedLaplace,
    Law,
    NoNoise,
)

FALSE_ALARM = 1e-9
TESTS = 11  # three on each of two pools, strays, three kinds of coincidence, single chances
PART = FALSE_ALARM / TESTS
SIZES = (0.125, 0.25, 0.5, 0.7, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0, 4.0)
PLACES = tuple(sign * far for far in (0.1, 0.2, 0.35, 0.6, 1.0, 2.0) for sign in (-1, 1))
TILTS = (1, 2, 3, 4, 6, 8, 10, 13, 18, 28)
FINE = 1 << 40  # variances from which a step is nothing
CARE = 1e-9  # scores are taken so much wider than computed

Ratios = NDArray[np.float64]
Score = tuple[float, float]
_normal = NormalDist()
_sizes, _places = np.array(SIZES), np.array(PLACES)


class Pool:
    """Draws in the order they came: how well other laws explain them, and their scores."""

    def __init__(self) -> None:
        self.scores: list[Score] = []
        self._ratios = np.zeros(len(SIZES) + len(PLACES))

    def add(self, drawn: int, law: Law, scored: Score) -> None:
        self._ratios += log_ratios(drawn, law)
        self.scores.append(scored)

    @property
    def explained(self) -> bool:
        """Whether one of the other laws, weighed equally, explains too much: Ville's bound."""
        most = float(self._ratios.max())
        if not math.isfinite(most):
            return most > 0
        mean = float(np.mean(np.exp(self._ratios - most)))
        return most + math.log(mean) > -math.log(PART)

    @property
    def misshapen(self) -> bool:
        """Dvoretzky-Kiefer-Wolfowitz with Massart's constant, one side at a time."""
        count = len(self.scores)
        if not count:
            return False
        low, high = np.sort(np.array(self.scores), axis=0).T
        steps = np.arange(1, count + 1) / count
        over = float(np.max(steps - _phi(high)))
        under = float(np.max(_phi(low) - steps + 1 / count))
        return 2 * count * max(0.0, over, under) ** 2 > math.log(count * (count + 1) / PART)


class Conformity:
    """Takes residuals in the order they were drawn; says at the end whether they can be so."""

    def __init__(self) -> None:
        self._all, self._first = Pool(), Pool()  # the second has one draw of each question
        self._broken = False
        self._chances = 0
        self._between, self._within, self._none = Coincidences(), Coincidences(), Coincidences()
        self._seen_one: set[int] = set()
        self._seen_two: set[tuple[int, int]] = set()

    def add(self, residuals: Sequence[int], laws: Sequence[Law]) -> None:
        """One question's residuals; none of the laws is without noise."""
        for place, (drawn, law) in enumerate(zip(residuals, laws, strict=True)):
            scored = score(drawn, law)
            self._all.add(drawn, law, scored)
            self._stray(scored)
            if place == 0:
                self._first.add(drawn, law, scored)
        tops = [law.log_pmf(0) for law in laws]
        self._none.saw(not any(residuals), math.exp(sum(tops)))
        self._compare(residuals, tops)
        seen: set[int] = set()
        for drawn, top in zip(residuals, tops, strict=True):
            if seen:
                self._within.saw(drawn in seen, len(seen) * math.exp(top))
            seen.add(drawn)

    def _compare(self, residuals: Sequence[int], tops: Sequence[float]) -> None:
        """The same draw for two questions; of wide ones the first two numbers tell."""
        if len(residuals) == 1:
            one = residuals[0]
            self._between.saw(one in self._seen_one, len(self._seen_one) * math.exp(tops[0]))
            self._seen_one.add(one)
            return
        two = (residuals[0], residuals[1])
        known = two in self._seen_two
        self._between.saw(known, len(self._seen_two) * math.exp(tops[0] + tops[1]))
        self._seen_two.add(two)

    def add_scores(self, scores: Sequence[Score]) -> None:
        """Scores that are standard normal, given all before them, if all is well."""
        for scored in scores:
            self._all.scores.append(scored)
            self._stray(scored)

    def _stray(self, scored: Score) -> None:
        """A score far out; the i-th may be out with chance PART / (i (i + 1))."""
        near, place = max(scored[0], -scored[1], 0.0), len(self._all.scores)
        self._broken |= math.erfc(near / math.sqrt(2)) * place * (place + 1) < PART

    def add_chance(self, chance: float) -> None:
        """Something happened that had at most this chance."""
        self._chances += 1
        self._broken |= chance * self._chances * (self._chances + 1) < PART

    def add_fault(self) -> None:
        """Something that cannot be."""
        self._broken = True

    @property
    def failed(self) -> bool:
        # every part is looked at, whatever another one says
        found = [self._broken]
        found += [met.too_many for met in (self._between, self._within, self._none)]
        for pool in (self._all, self._first):
            found += [pool.explained, pool.misshapen]
        return any(found)


class Coincidences:
    """Equal draws, counted against how likely they were: a supermartingale, and Ville's bound."""

    def __init__(self) -> None:
        self._met, self._expected = 0, 0.0

    def saw(self, equal: bool, chance: float) -> None:
        self._met += equal
        self._expected += min(1.0, chance)

    @property
    def too_many(self) -> bool:
        most = math.log(len(TILTS) / PART)
        return any(t * self._met - math.expm1(t) * self._expected > most for t in TILTS)


def log_ratios(drawn: int, law: Law) -> Ratios:
    """log P'(drawn) - log P(drawn) for laws P' of other sizes, then of other places."""
    match law:
        case DiscreteGaussian(sigma_squared=v) if v >= FINE:
            z = drawn / math.sqrt(v)
            sized = z * z / 2 * (1 - _sizes**-2) - np.log(_sizes)
            return np.concatenate([sized, _places * z - _places**2 / 2])
        case DiscreteLaplace(scale=b) if b * b >= FINE:
            far = drawn / float(b)
            sized = abs(far) * (1 - 1 / _sizes) - np.log(_sizes)
            return np.concatenate([sized, abs(far) - np.abs(far - _places * math.sqrt(2))])
    return _coarse_ratios(drawn, law)


@lru_cache(maxsize=1 << 14)
def _coarse_ratios(drawn: int, law: Law) -> Ratios:
    own = law.log_pmf(drawn)
    if own == -math.inf:
        return np.full(len(SIZES) + len(PLACES), math.inf)
    deviation = law.standard_deviation()
    sized = [resized(law, size).log_pmf(drawn) - own for size in SIZES]
    shifts = [round(place * deviation) for place in PLACES]
    placed = [law.log_pmf(drawn - shift) - own for shift in shifts]
    return np.array(sized + placed)


@lru_cache(maxsize=1 << 10)
def resized(law: Law, size: float) -> Law:
    """A law of the same form with so many times its spread, or one near it."""
    times = Fraction(size)
    match law:
        case DiscreteGaussian(sigma_squared=v):
            return DiscreteGaussian(v * times**2)
        case DiscreteLaplace(scale=b):
            return DiscreteLaplace(b * times)
        case DividedLaplace(scale=b, shape=shape):
            return DividedLaplace(b * times, shape)
        case DiscreteHuber(spread=spread, knee=knee):
            return DiscreteHuber(spread * times, knee * times)
        case CentredBinomial(coins=coins):
            return DiscreteGaussian(times**2 * coins / 4)
        case NoNoise():
            return law


@lru_cache(maxsize=1 << 14)
def score(drawn: int, law: Law) -> Score:
    """An interval that holds z for some u = Phi(z) between P(N < drawn) and P(N <= drawn)."""
    if isinstance(law, DiscreteGaussian) and law.sigma_squared >= FINE:
        spread = math.sqrt(law.sigma_squared)
        middle = drawn / spread
        return _wider(middle - 1 / spread, middle + 1 / spread, CARE)
    care = CARE
    if isinstance(law, CentredBinomial):
        care += 1 / law.coins  # beyond 2^12 coins the tail is a bound, z^2 / (3 coins) too large
    return _wider(_below(drawn - 1, law), _below(drawn, law), care)


def score_from(drawn: int, least: int, law: Law) -> Score:
    """As `score`, for a draw that is only seen if it is at least `least`."""
    whole = at_least(least, law)
    low, high = at_least(drawn, law) / whole, at_least(drawn + 1, law) / whole
    return _wider(-_quantile(low), -_quantile(high), 1e-6)


def at_least(value: int, law: Law) -> float:
    """P(N >= value)."""
    return tail(value - 1, law) / 2 if value > 0 else 1 - tail(-value, law) / 2


def tail(far: int, law: Law) -> float:
    """P(|N| > far); many coins are added up once."""
    if isinstance(law, CentredBinomial) and law.coins <= EXACT_COINS and far >= 0:
        tails = _coin_tails(law.coins)
        return tails[far] if far < len(tails) else 0.0
    return law.tail(far)


@lru_cache(maxsize=16)
def _coin_tails(coins: int) -> list[float]:
    half, whole = coins // 2, 1 << coins
    outside = accumulate(math.comb(coins, half + k) for k in range(half, 0, -1))
    return [2 * beyond / whole for beyond in outside][::-1]


def _below(value: int, law: Law) -> float:
    """z with Phi(z) = P(N <= value), by the smaller of the two tails."""
    if value < 0:
        return _quantile(tail(-value - 1, law) / 2)
    return -_quantile(tail(value, law) / 2)


def _quantile(chance: float) -> float:
    if chance <= 0:
        return -math.inf
    return math.inf if chance >= 1 else _normal.inv_cdf(chance)


def _wider(low: float, high: float, care: float) -> Score:
    return low - care * (1 + abs(low)), high + care * (1 + abs(high))


def _phi(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([math.erfc(-z / math.sqrt(2)) / 2 for z in scores])
