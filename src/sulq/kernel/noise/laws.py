"""The laws of the noise: symmetric laws on the integers (grid steps), as frozen values.

Parameters are exact (int or Fraction); what a law reports is float, for analysis and error bars.
No randomness here. Proofs: docs/proofs/noise.md.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sulq.errors import InvalidQuery

REACH = 39  # exp(-39^2 / 2) is below the smallest float
SHORT = 1 << 13


def gaussian_mass(variance: Fraction, low: int, high: int | None = None) -> float:
    """The sum of exp(-t^2 / 2v) over low <= t <= high, for low >= 1 (high None: no end)."""
    spread = math.sqrt(variance)
    last = math.floor(REACH * spread) + 1
    if high is not None:
        last = min(last, high)
    if low > last:
        return 0.0
    if last - low < SHORT and last < 1 << 52:
        t = np.arange(low, last + 1, dtype=np.float64)
        return float(np.exp(-t * t / (2 * float(variance))).sum())
    beyond = 0.0 if high is None or high > last else _mass_from(spread, high + 0.5)
    return _mass_from(spread, low - 0.5) - beyond


def gaussian_square_mass(variance: Fraction, high: int) -> float:
    """The sum of t^2 exp(-t^2 / 2v) over 1 <= t <= high."""
    spread = math.sqrt(variance)
    last = min(math.floor(REACH * spread) + 1, high)
    if last < SHORT:
        t = np.arange(1, last + 1, dtype=np.float64)
        return float((t * t * np.exp(-t * t / (2 * float(variance)))).sum())
    edge = last + 0.5
    z = edge / spread
    fall = math.exp(-z * z / 2)
    integral = spread**2 * (
        spread * math.sqrt(math.pi / 2) * math.erf(z / math.sqrt(2)) - edge * fall
    )
    return integral - (2 * edge - edge * z * z) * fall / 24


def _mass_from(spread: float, start: float) -> float:
    """The sum over t = start + 1/2, ...: integral of f + f'/24 - 7 f'''/5760 at `start`."""
    z = start / spread
    fall = math.exp(-z * z / 2)
    integral = spread * math.sqrt(math.pi / 2) * math.erfc(z / math.sqrt(2))
    return integral - fall * (z / (24 * spread) + 7 * (3 * z - z**3) / (5760 * spread**3))


# Sums of exp(-t^2 / 2v) over integers: term by term when short, Euler-Maclaurin when long.
#
# The long form has a relative error below 1e-10 down to tails of 1e-17 (docs/proofs/noise.md,
# claim 5); it serves error bars, never a privacy decision.


LARGEST = 1 << 128
SAFETY = 1e-9  # half-widths take tails this much larger (relatively) than computed
EXACT_COINS = 1 << 12
DIVIDED_FINE = 1 << 10  # steps in the scale from which a divided law is taken for a continuous one


@dataclass(frozen=True, slots=True)
class NoNoise:
    """Always 0: for answers that are public."""

    def variance(self) -> float:
        return 0.0

    def standard_deviation(self) -> float:
        return 0.0

    def log_pmf(self, t: int) -> float:
        return 0.0 if t == 0 else -math.inf

    def pmf(self, t: int) -> float:
        return 1.0 if t == 0 else 0.0

    def tail(self, h: int) -> float:
        return 1.0 if h < 0 else 0.0

    def half_width(self, confidence: float) -> int:
        _check_confidence(confidence)
        return 0

    def to_json(self) -> dict[str, str | int]:
        return {"law": "none"}


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """P(t) ~ exp(-t^2 / (2 sigma_squared)); `sigma_squared` in grid steps squared. TB.4, TB.8"""

    sigma_squared: Fraction

    def __post_init__(self) -> None:
        _check_positive(self, "sigma_squared")

    def variance(self) -> float:
        """The variance of a draw: sigma_squared, and a little less on a coarse grid."""
        v = float(self.sigma_squared)
        if v < 1:
            return 2 * gaussian_square_mass(self.sigma_squared, 64) / self._normaliser()
        wave, slope = 1.0, 0.0  # Poisson summation: Z = sqrt(2 pi v) wave(v)
        for k in (1, 2):
            rate = 2 * math.pi**2 * k * k
            wave += 2 * math.exp(-rate * v)
            slope -= 2 * rate * math.exp(-rate * v)
        return v + 2 * v * v * slope / wave

    def standard_deviation(self) -> float:
        return math.sqrt(self.variance())

    def log_pmf(self, t: int) -> float:
        return -_exponent(t * t / (2 * self.sigma_squared)) - math.log(self._normaliser())

    def pmf(self, t: int) -> float:
        return math.exp(-_exponent(t * t / (2 * self.sigma_squared))) / self._normaliser()

    def tail(self, h: int) -> float:
        """P(|N| > h)."""
        if h < 0:
            return 1.0
        return min(1.0, 2 * gaussian_mass(self.sigma_squared, h + 1) / self._normaliser())

    def half_width(self, confidence: float) -> int:
        """The smallest h with P(|N| <= h) >= confidence."""
        return _half_width(self, confidence)

    def to_json(self) -> dict[str, str | int]:
        return {"law": "gaussian", "sigma_squared": _text(self.sigma_squared)}

    def _normaliser(self) -> float:
        v = float(self.sigma_squared)
        if v < 1:
            return 1 + 2 * gaussian_mass(self.sigma_squared, 1)
        wave = 1 + 2 * math.exp(-2 * math.pi**2 * v) + 2 * math.exp(-8 * math.pi**2 * v)
        return math.sqrt(2 * math.pi * v) * wave


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """P(t) = tanh(1 / (2 scale)) exp(-|t| / scale). S2.6"""

    scale: Fraction

    def __post_init__(self) -> None:
        _check_positive(self, "scale")

    def variance(self) -> float:
        return self.standard_deviation() ** 2

    def standard_deviation(self) -> float:
        """1 / (sqrt(2) sinh(1 / (2 scale))). S2.6"""
        half = float(1 / (2 * self.scale))
        return math.exp(-half) * math.sqrt(2) / -math.expm1(-2 * half)

    def log_pmf(self, t: int) -> float:
        return math.log(math.tanh(float(1 / (2 * self.scale)))) - _exponent(abs(t) / self.scale)

    def pmf(self, t: int) -> float:
        return math.tanh(float(1 / (2 * self.scale))) * math.exp(-_exponent(abs(t) / self.scale))

    def tail(self, h: int) -> float:
        """P(|N| > h) = 2 a^(h+1) / (1 + a), a = exp(-1/scale)."""
        if h < 0:
            return 1.0
        step = math.exp(-float(1 / self.scale))
        return 2 * math.exp(-_exponent((h + 1) / self.scale)) / (1 + step)

    def half_width(self, confidence: float) -> int:
        """The smallest h with P(|N| <= h) >= confidence."""
        return _half_width(self, confidence)

    def to_json(self) -> dict[str, str | int]:
        return {"law": "laplace", "scale": _text(self.scale)}


@dataclass(frozen=True, slots=True)
class DividedLaplace:
    """So many discrete Laplace draws added up, `shape` of them, which need not be whole. V.4

    A difference of two negative binomial (Polya) variables of that shape: P(t) is the coefficient
    of z^t in ((1 - a)^2 / ((1 - a z)(1 - a / z)))^shape, a = exp(-1/scale). Shapes add up, so r
    shares of shape 1/r are one Laplace draw, exactly. Proof: docs/proofs/noise.md, claim 6.
    """

    scale: Fraction
    shape: Fraction

    def __post_init__(self) -> None:
        _check_positive(self, "scale")
        _check_positive(self, "shape")

    def variance(self) -> float:
        return float(self.shape) * DiscreteLaplace(self.scale).variance()

    def standard_deviation(self) -> float:
        return math.sqrt(self.variance())

    def log_pmf(self, t: int) -> float:
        if self._coarse:
            chances, _ = _divided_table(self.scale, self.shape)
            chance = chances[abs(t)] if abs(t) < len(chances) else 0.0
        elif t == 0 and self.shape <= 1:  # where the density has its peak, or none
            chance = 1 - _divided_tail(Fraction(1, 2) / self.scale, self.shape)
        else:
            exponent = _divided_log_density(abs(t) / self.scale, self.shape)
            return exponent - math.log(self.scale)
        return math.log(chance) if chance > 0 else -math.inf

    def pmf(self, t: int) -> float:
        return math.exp(self.log_pmf(t))

    def tail(self, h: int) -> float:
        """P(|N| > h); from a scale of 1024 on that of the continuous law, half a step wider."""
        if h < 0:
            return 1.0
        if self._coarse:
            _, tails = _divided_table(self.scale, self.shape)
            return tails[min(h, len(tails) - 1)]
        return min(1.0, _divided_tail(h / self.scale, self.shape))

    def half_width(self, confidence: float) -> int:
        """The smallest h with P(|N| <= h) >= confidence, or half a step more."""
        return _half_width(self, confidence)

    def to_json(self) -> dict[str, str | int]:
        return {"law": "divided", "scale": _text(self.scale), "shape": _text(self.shape)}

    @property
    def _coarse(self) -> bool:
        return self.scale < DIVIDED_FINE


@dataclass(frozen=True, slots=True)
class DiscreteHuber:
    """P(t) ~ exp(-psi(|t|)): psi(x) = x^2/2s^2 up to c, then c x/s^2 - c^2/2s^2. S4.14

    s is `spread`, c is `knee`: Gaussian in the middle, Laplace beyond the knee.
    """

    spread: Fraction
    knee: Fraction

    def __post_init__(self) -> None:
        _check_positive(self, "spread")
        _check_positive(self, "knee")

    def variance(self) -> float:
        core_end = math.floor(self.knee)
        core = 2 * gaussian_square_mass(self.spread**2, core_end) / self._normaliser()
        first, decay = core_end + 1, math.exp(-self._slope())
        gap = -math.expm1(-self._slope())
        # mean square of first + G, G geometric with ratio `decay`
        square = first**2 + 2 * first * decay / gap + decay * (1 + decay) / gap**2
        return core + self.tail(core_end) * square

    def standard_deviation(self) -> float:
        return math.sqrt(self.variance())

    def log_pmf(self, t: int) -> float:
        return -self._psi(abs(t)) - math.log(self._normaliser())

    def pmf(self, t: int) -> float:
        return math.exp(-self._psi(abs(t))) / self._normaliser()

    def tail(self, h: int) -> float:
        """P(|N| > h)."""
        if h < 0:
            return 1.0
        return min(1.0, 2 * self._mass_from(h + 1) / self._normaliser())

    def half_width(self, confidence: float) -> int:
        """The smallest h with P(|N| <= h) >= confidence."""
        return _half_width(self, confidence)

    def to_json(self) -> dict[str, str | int]:
        return {"law": "huber", "spread": _text(self.spread), "knee": _text(self.knee)}

    def _slope(self) -> float:
        return float(self.knee / self.spread**2)

    def _psi(self, x: int) -> float:
        inner = min(Fraction(x), self.knee)
        return _exponent(inner * (2 * x - inner) / (2 * self.spread**2))

    def _mass_from(self, low: int) -> float:
        core_end = math.floor(self.knee)
        outer = max(low, core_end + 1)
        geometric = math.exp(-self._psi(outer)) / -math.expm1(-self._slope())
        return gaussian_mass(self.spread**2, low, core_end) + geometric

    def _normaliser(self) -> float:
        return 1 + 2 * self._mass_from(1)


@dataclass(frozen=True, slots=True)
class CentredBinomial:
    """Bin(coins, 1/2) - coins/2, `coins` even. S0.4

    Exact to the last bit up to 2^12 coins. Beyond, C(2n, n+k) / C(2n, n) = exp(-k^2/(n + 1/2) - e)
    with e >= 0 rising in k, so the discrete Gaussian of variance (coins + 1)/4 bounds the tail.
    """

    coins: int

    def __post_init__(self) -> None:
        coins = self.coins
        if type(coins) is not int or coins < 2 or coins % 2 or coins > LARGEST:
            raise InvalidQuery(
                f"binomial noise got {coins!r} coins; want an even whole number from 2 to 2^128 "
                "(an odd number would give half-integers): add one coin"
            )

    def variance(self) -> float:
        return self.coins / 4  # S0.4

    def standard_deviation(self) -> float:
        return math.sqrt(self.coins) / 2

    def log_pmf(self, t: int) -> float:
        half, k = self.coins // 2, abs(t)
        if k > half:
            return -math.inf
        if self.coins <= EXACT_COINS:
            return math.log(math.comb(self.coins, half + k)) - self.coins * math.log(2)
        if k == half:
            return -self.coins * math.log(2)
        return math.log(_central_chance(half)) - _binomial_fall(half, k)

    def pmf(self, t: int) -> float:
        if self.coins <= EXACT_COINS and abs(t) <= self.coins // 2:
            return math.comb(self.coins, self.coins // 2 + t) / (1 << self.coins)
        return math.exp(self.log_pmf(t))

    def tail(self, h: int) -> float:
        """P(|N| > h); beyond 2^12 coins an upper bound, too large by z^2/(3 coins) at z sigma."""
        half = self.coins // 2
        if h < 0:
            return 1.0
        if h >= half:
            return 0.0
        if self.coins <= EXACT_COINS:
            outside = sum(math.comb(self.coins, half + k) for k in range(h + 1, half + 1))
            return 2 * outside / (1 << self.coins)
        envelope = Fraction(self.coins + 1, 4)
        fall = float((h + 1) ** 2 / (2 * envelope))
        excess = max(0.0, _binomial_fall(half, h + 1) - fall) if h + 1 < half else 0.0
        mass = gaussian_mass(envelope, h + 1, half)
        return min(1.0, 2 * _central_chance(half) * mass * math.exp(-excess))

    def half_width(self, confidence: float) -> int:
        """The smallest h with P(|N| <= h) >= confidence."""
        if self.coins > EXACT_COINS:
            return _half_width(self, confidence)
        _check_confidence(confidence)
        half = self.coins // 2
        weight = inside = math.comb(self.coins, half)
        wanted, h = Fraction(confidence) * (1 << self.coins), 0
        while inside < wanted:
            weight = weight * (half - h) // (half + h + 1)
            inside += 2 * weight
            h += 1
        return h

    def to_json(self) -> dict[str, str | int]:
        return {"law": "binomial", "coins": self.coins}


Positive = DiscreteGaussian | DiscreteLaplace | DividedLaplace | DiscreteHuber
Law = NoNoise | Positive | CentredBinomial


def law_from_json(value: dict[str, str | int]) -> Law:
    """The law whose to_json() is `value`; exact round trip."""
    fields = {key: entry for key, entry in value.items() if key != "law"}
    match value.get("law"), sorted(fields):
        case "none", []:
            return NoNoise()
        case "gaussian", ["sigma_squared"]:
            return DiscreteGaussian(_fraction(fields["sigma_squared"]))
        case "laplace", ["scale"]:
            return DiscreteLaplace(_fraction(fields["scale"]))
        case "divided", ["scale", "shape"]:
            return DividedLaplace(_fraction(fields["scale"]), _fraction(fields["shape"]))
        case "huber", ["knee", "spread"]:
            return DiscreteHuber(_fraction(fields["spread"]), _fraction(fields["knee"]))
        case "binomial", ["coins"]:
            coins = fields["coins"]
            return CentredBinomial(coins if isinstance(coins, int) else -1)
    raise InvalidQuery(
        f"no noise law {value.get('law')!r} with fields {sorted(fields)}; want gaussian "
        "(sigma_squared), laplace (scale), divided (scale, shape), huber (spread, knee), "
        "binomial (coins) or none"
    )


def _text(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


def _fraction(text: str | int) -> Fraction:
    # a plain ratio only: "1e999999999" would be computed in full
    ratio = r"[0-9]{1,400}/[0-9]*[1-9][0-9]{0,400}"
    if isinstance(text, str) and len(text) <= 1000 and re.fullmatch(ratio, text):
        return Fraction(text)
    raise InvalidQuery(f"a parameter of the noise law got {text!r:.40}; want a text such as '7/2'")


def _check_positive(law: Positive, name: str) -> None:
    value = getattr(law, name)
    if type(value) is int:
        value = Fraction(value)
        object.__setattr__(law, name, value)
    if not isinstance(value, Fraction) or value <= 0:
        raise InvalidQuery(
            f"{name} of {type(law).__name__} got {value!r}; want a Fraction above 0 "
            "(floats are not exact: write Fraction(1, 10))"
        )
    check_size(value)


def check_size(value: Fraction) -> None:
    """Refuse a parameter outside what the samplers draw from, in the words of the asker."""
    if value > LARGEST:
        raise InvalidQuery("so little precision needs more noise than can be drawn; ask for more")
    if value < Fraction(1, LARGEST):
        raise InvalidQuery("so much precision needs less noise than can be drawn; ask for less")


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise InvalidQuery(f"confidence got {confidence!r}; want a number between 0 and 1")


@lru_cache(maxsize=1024)
def _half_width(law: Law, confidence: float) -> int:
    """The smallest h with tail(h) <= 1 - confidence, doubling then halving; errs upward only."""
    _check_confidence(confidence)
    allowed = (1 - confidence) / (1 + SAFETY)
    low, high = -1, 0
    while law.tail(high) > allowed:
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        if law.tail(middle) > allowed:
            low = middle
        else:
            high = middle
    return high


def _exponent(value: Fraction) -> float:
    return float(value) if value < 1 << 1000 else math.inf


def _central_chance(half: int) -> float:
    """C(2n, n) / 4^n for n = half > 2000, to 1e-16."""
    inverse = 1 / half
    series = 1 - inverse / 8 + inverse**2 / 128 + 5 * inverse**3 / 1024
    return series / math.sqrt(math.pi * half)


def _binomial_fall(half: int, k: int) -> float:
    """log of C(2n, n) / C(2n, n + k), n = half > k >= 0, by Stirling without cancellation."""
    y = k / half
    stirling = k * k / (6 * half * (half * half - k * k))
    return (half + 0.5) * math.log1p(-y * y) + 2 * k * math.atanh(y) + stirling


@lru_cache(maxsize=64)
def _divided_table(scale: Fraction, shape: Fraction) -> tuple[list[float], list[float]]:
    """P(t) and P(|N| > t) for t = 0, 1, ..., until nothing is left.

    a (t + 1 - s) P(t + 1) = (1 + a^2) t P(t) - a (t - 1 + s) P(t - 1), by the generating function:
    read downwards for the ratios P(t)/P(t - 1), which is how the falling solution is found.
    """
    a, s = math.exp(-min(float(1 / scale), 700.0)), float(shape)
    last = math.ceil(float(scale) * (100 + 20 * s)) + 2
    ratios, ratio = [0.0] * (last + 1), a
    for t in range(last, 0, -1):
        ratio = a * (t - 1 + s) / ((1 + a * a) * t - a * (t + 1 - s) * ratio)
        ratios[t] = ratio
    weights = [1.0]
    for ratio in ratios[1:]:
        weights.append(weights[-1] * ratio)
    beyond, tails = 0.0, [0.0] * len(weights)
    for t in range(last, 0, -1):
        beyond += 2 * weights[t]
        tails[t - 1] = beyond
    whole = beyond + 1
    return [weight / whole for weight in weights], [part / whole for part in tails]


def _divided_tail(x: Fraction, shape: Fraction) -> float:
    """P(|X| > x) of the continuous law of scale 1: normal with variance 2 G, G of a gamma law."""
    s, far = float(shape), float(x)
    if not far:
        return 1.0
    parts = [w * math.erfc(far * math.exp(-u / 2) / 2) for u, w in _gamma_places(s)]
    return math.fsum(parts)


def _divided_log_density(x: Fraction, shape: Fraction) -> float:
    """log of the continuous law's density at x, scale 1."""
    s, far = float(shape), _exponent(x)
    fours = [
        (math.log(w) - u / 2 - far * far / 4 * math.exp(-u)) for u, w in _gamma_places(s) if w > 0
    ]
    most = max(fours)
    if most == -math.inf:
        return most
    return most + math.log(math.fsum(math.exp(e - most) for e in fours) / math.sqrt(4 * math.pi))


@lru_cache(maxsize=64)
def _gamma_places(shape: float) -> tuple[tuple[float, float], ...]:
    """Places u = log g and weights that integrate over a gamma law: equal steps, whose error falls
    like exp(-pi^2/step)."""
    step, low = 0.25, -min(40 / shape, 700.0)
    places = [low + step * number for number in range(int((9 - low) / step))]
    gamma = math.lgamma(shape)
    return tuple((u, step * math.exp(shape * u - math.exp(u) - gamma)) for u in places)


# The one-sided law of a noisy choice: geometric on 0, 1, 2, ..., as a frozen value.
#
# Apart from the laws of `distributions`, which are symmetric and carry error bars: nothing drawn
# from this one is ever released. No randomness here. Proofs: docs/proofs/choosing.md.


@dataclass(frozen=True, slots=True)
class Geometric:
    """P(t) = (1 - a) a^t for t >= 0, a = exp(-1/scale): exponential noise on a grid. M.3"""

    scale: Fraction

    def __post_init__(self) -> None:
        value = self.scale
        if not isinstance(value, Fraction) or value <= 0:
            raise InvalidQuery(f"the scale of Geometric got {value!r}; want a Fraction above 0")
        check_size(value)

    def pmf(self, t: int) -> float:
        rate = float(1 / self.scale)
        return -math.expm1(-rate) * math.exp(-t * rate) if t >= 0 else 0.0

    def at_least(self, t: int) -> float:
        """P(N >= t)."""
        return math.exp(-float(t / self.scale)) if t > 0 else 1.0

    def to_json(self) -> dict[str, str | int]:
        return {"law": "geometric", "scale": f"{self.scale.numerator}/{self.scale.denominator}"}


# How a law is drawn: a discrete Laplace proposal and a penalty that is exactly rational.
#
# A law with P(y) ~ exp(-psi(|y|)) is drawn by proposing |y| with weight exp(-|y|/scale) and
# keeping it with probability exp(-penalty(|y|)), where psi(y) = y/scale + penalty(y) + constant.
# Proof: docs/proofs/noise.md, claim 2.


@dataclass(frozen=True, slots=True)
class Penalty:
    """penalty(y) = ((z - m)^2 + 2 (c - m)(y - z)) / (2 v), z = min(y, c), for y >= 0.

    m is `centre`, c is `knee` (None: infinite), v is `variance`. Canonne, Kamath, Steinke 2020
    for c infinite; S4.14 for m = c.
    """

    centre: Fraction
    knee: Fraction | None
    variance: Fraction
    step: int  # m and c are whole multiples of 1/step; the next two count them
    centre_steps: int
    knee_steps: int
    factor: int  # factor / divisor = 1 / (2 v step^2)
    divisor: int

    @classmethod
    def of(cls, centre: Fraction, knee: Fraction | None, variance: Fraction) -> Penalty:
        end = centre if knee is None else knee
        step = math.lcm(centre.denominator, end.denominator)
        scaling = 1 / (2 * variance * step * step)
        steps = int(centre * step), int(end * step)
        return cls(centre, knee, variance, step, *steps, scaling.numerator, scaling.denominator)

    def ratio(self, y: int) -> tuple[int, int]:
        """The penalty of y as integers (numerator, divisor)."""
        at = y * self.step
        if self.knee is None:
            return (at - self.centre_steps) ** 2 * self.factor, self.divisor
        inner = min(at, self.knee_steps)
        slope = self.knee_steps - self.centre_steps
        square = (inner - self.centre_steps) ** 2 + 2 * slope * (at - inner)
        return square * self.factor, self.divisor


@dataclass(frozen=True, slots=True)
class Proposal:
    """Propose y from the discrete Laplace of `scale`, keep it with exp(-penalty(|y|))."""

    scale: Fraction
    penalty: Penalty | None


@lru_cache(maxsize=256)
def proposal_for(law: DiscreteGaussian | DiscreteLaplace | DiscreteHuber) -> Proposal:
    """A proposal whose acceptance stays above 0.4 at every scale (laws are public values)."""
    match law:
        case DiscreteLaplace(scale):
            return Proposal(scale, None)
        case DiscreteGaussian(variance):  # sigma^2
            width = Fraction(math.isqrt(math.floor(variance)) + 1)
            return Proposal(width, Penalty.of(variance / width, None, variance))
        case DiscreteHuber(spread, knee):
            variance = spread * spread
            # S4.14 proposes with s^2/c; for c > s that starves, the Gaussian's width does not.
            width = variance / knee if knee <= spread else Fraction(math.floor(spread) + 1)
            return Proposal(width, Penalty.of(variance / width, knee, variance))
