"""Privacy loss distributions: what T answers with a given integer noise cost, always from above.

For fixed-T calibration and reports only; the ledger never decides by them (G.1).
Proofs: docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sulq.errors import InvalidQuery
from sulq.kernel.noise.laws import CentredBinomial, DiscreteGaussian, DiscreteHuber, DiscreteLaplace

Array = NDArray[np.float64]

DEEPEST = 700.0
"""Outcomes rarer than e^-700 times the likeliest count as an infinite loss."""
GUARD = 1e-11
"""Added to every loss and, relatively, to every mass: more than the floats' own error."""
CUT = math.log(1e-15)
"""Tilted mass left outside the window of a composition; it counts as an infinite loss."""
FINENESS = 512
"""Grid steps per standard deviation of one loss."""
MOST_POINTS = 2**23


class Law(Protocol):
    """Integer noise, symmetric about 0 and log-concave."""

    def log_pmf(self, t: int) -> float: ...


@dataclass(frozen=True, slots=True, eq=False)
class PrivacyLoss:
    """Loss (lowest + i) * step with chance masses[i]; an infinite loss with chance `infinity`."""

    step: float
    lowest: int
    masses: Array
    infinity: float

    def delta(self, epsilon: float, times: int = 1) -> float:
        """Upper bound on delta(epsilon) of `times` answers: E[(1 - e^{epsilon - loss})_+]. TB.5"""
        if self.infinity >= 1:
            return 1.0
        never = -math.expm1(times * math.log1p(-self.infinity))
        if times == 1:
            excess = self._losses() - epsilon
            return min(1.0, never + float(self.masses @ -np.expm1(-np.maximum(excess, 0))))
        if epsilon >= times * self.step * (self.lowest + len(self.masses) - 1):
            return min(1.0, never)
        return min(1.0, never + self._composed(epsilon, times))

    def epsilon(self, delta: float, times: int = 1) -> float:
        """The smallest epsilon (to 1e-9, rounded up) that `times` answers keep at delta."""
        low, high = 0.0, times * self.step * (self.lowest + len(self.masses))
        if self.delta(high, times) > delta:
            return math.inf
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle, times) <= delta else (middle, high)
        return high

    def _losses(self) -> Array:
        return self.step * np.arange(self.lowest, self.lowest + len(self.masses), dtype=np.float64)

    def _composed(self, epsilon: float, times: int) -> float:
        """The finite part of delta: tilt, fold on a circle, FFT power, tilt back. TB.5"""
        held = np.flatnonzero(self.masses)
        losses, log_masses = self._losses()[held], np.log(self.masses[held])
        tilt = _chernoff_point(losses, log_masses, epsilon / times)
        growth = times * _log_moment(losses, log_masses, tilt)
        lowest, highest = _window(losses, log_masses, tilt, times)
        first = math.floor(lowest / self.step)
        length = _smooth_length(math.ceil(highest / self.step) - first + 1)
        # Wrapped mass only adds to what is counted: folding is pessimistic as it stands.
        tilted = np.exp(log_masses + tilt * losses - growth / times)
        spectrum = np.fft.rfft(np.bincount(held % length, weights=tilted, minlength=length))
        shares = np.fft.irfft(_power(spectrum, times), length)
        shares = np.roll(shares, times * self.lowest - first)  # first + i holds share i
        sums = self.step * (first + np.arange(length))
        above = sums > epsilon
        weights = np.exp(growth - tilt * sums[above]) * -np.expm1(epsilon - sums[above])
        counted = float(np.maximum(shares[above], 0) @ weights)
        error = 2**-52 * (times + math.log2(length))  # TB.5: relative 2-norm error of an FFT power
        floor = error * float(np.linalg.norm(shares)) * float(np.linalg.norm(weights))
        beyond = math.exp(min(0.0, growth - tilt * highest + CUT))
        return (counted + floor + beyond) * (1 + times * GUARD)  # for the exponents above


def loss_of(
    law: Law, shift: int = 1, *, step: float | None = None, fineness: int = FINENESS
) -> PrivacyLoss:
    """The loss of one answer whose sum may move by up to `shift` grid steps (TB.6).

    Connect the dots on a grid of losses (TB.5): exact at grid points, from above between them.
    """
    losses, masses, infinity = (
        _laplace_atoms(law, shift) if isinstance(law, DiscreteLaplace) else _atoms(law, shift)
    )
    if not len(losses):
        return PrivacyLoss(1.0, 0, np.zeros(1), 1.0)
    if step is None:
        spread = math.sqrt(float(masses @ (losses - masses @ losses) ** 2))
        wanted = max(spread / fineness, float(np.ptp(losses)) / MOST_POINTS, 1e-9)
        top = float(losses.max())
        points = math.ceil(top / wanted)  # a capped loss (Laplace, Huber) is a grid point
        step = top / points if points else wanted  # all losses may be zero: two coins, shift 2
    return connect_the_dots(losses + GUARD, masses, infinity, step)


def _atoms(law: Law, shift: int) -> tuple[Array, Array, float]:
    """Loss and chance of every outcome y: log pmf(y) - log pmf(y + shift); and of no return."""
    falls = log_weights(law, shift)
    radius = len(falls) - 1 - shift
    outcomes = np.arange(-radius, radius + 1)
    here, there = falls[np.abs(outcomes)], falls[np.abs(outcomes + shift)]
    weights = np.exp(here)
    total = float(weights.sum())  # a little too small, so masses are a little too large
    masses = weights / total * (1 + GUARD)
    possible = np.isfinite(there)
    infinity = float(masses[~possible].sum()) + _outside(falls, radius) / total
    return here[possible] - there[possible], masses[possible], infinity


def _laplace_atoms(law: DiscreteLaplace, shift: int) -> tuple[Array, Array, float]:
    """The same in closed form: only outcomes -shift < y < 0 lie between the two extreme losses."""
    rate = float(1 / law.scale)
    y = np.arange(-shift, 1, dtype=np.float64)
    masses = math.tanh(rate / 2) * np.exp(y * rate)
    masses[0] = math.exp(-shift * rate) / (1 + math.exp(-rate))
    masses[-1] = 1 / (1 + math.exp(-rate))
    return (shift + 2 * y) * rate, masses * (1 + GUARD), 0.0


def log_weights(law: Law, shift: int = 0) -> Array:
    """log pmf(t) - log pmf(0) at t = 0, 1, ... down to e^-700, and `shift` points more."""
    reach = 64
    while True:
        falls = _falls(law, reach + shift)
        deep = np.flatnonzero(falls[: reach + 1] < -DEEPEST)
        if len(deep):
            return falls[: int(deep[0]) + shift]
        if reach >= MOST_POINTS:
            raise InvalidQuery(
                "this noise is too wide for an exact account; take fewer credits, "
                "a larger epsilon, or noise='gaussian'"
            )
        reach *= 2


def _falls(law: Law, reach: int) -> Array:
    t = np.arange(reach + 1, dtype=np.float64)
    match law:
        case DiscreteGaussian():
            return -t * t / float(2 * law.sigma_squared)
        case DiscreteLaplace():
            return -t / float(law.scale)
        case DiscreteHuber():  # S4.14
            inner = np.minimum(t, float(law.knee))
            return -inner * (2 * t - inner) / float(2 * law.spread**2)
        case CentredBinomial():  # S0.5: the ratio of neighbours is (half - t + 1) / (half + t)
            half = law.coins // 2
            up = np.maximum(half - t[1:] + 1, 0)
            with np.errstate(divide="ignore"):
                ratios = np.log(up / (half + t[1:]))
            falls = np.zeros(reach + 1)
            falls[1:] = np.cumsum(ratios, dtype=np.longdouble)
            return falls
        case _:
            falls = np.array([law.log_pmf(i) for i in range(reach + 1)], dtype=np.float64)
            falls -= falls[0]
            return falls


def _outside(falls: Array, radius: int) -> float:
    """Twice the weight beyond `radius`: a geometric series, because the law is log-concave."""
    here, there = float(falls[radius]), float(falls[min(radius + 1, len(falls) - 1)])
    if there == -math.inf:
        return 0.0
    return 2 * math.exp(there) / -math.expm1(there - here)


def connect_the_dots(losses: Array, masses: Array, infinity: float, step: float) -> PrivacyLoss:
    """Each loss in [a, a + h] goes to a + h with weight (e^-a - e^-L)/(e^-a - e^-(a+h)). TB.5"""
    cells = np.floor(losses / step).astype(np.int64)
    upper = np.clip(np.expm1(cells * step - losses) / math.expm1(-step), 0, 1)
    lowest = int(cells.min())
    length = int(cells.max()) - lowest + 2
    grid = np.zeros(length)
    grid += np.bincount(cells - lowest, weights=masses * (1 - upper), minlength=length)
    grid += np.bincount(cells - lowest + 1, weights=masses * upper, minlength=length)
    return PrivacyLoss(step, lowest, grid, infinity)


def _log_moment(losses: Array, log_masses: Array, tilt: float) -> float:
    """log E[e^{tilt loss}] of the finite part."""
    powers = log_masses + tilt * losses
    top = float(powers.max())
    return top + math.log(float(np.exp(powers - top).sum()))


def _chernoff_point(losses: Array, log_masses: Array, mean: float) -> float:
    """The tilt >= 0 under which the mean loss is `mean`; any tilt is valid, this one is sharp."""

    def tilted_mean(tilt: float) -> float:
        powers = log_masses + tilt * losses
        shares = np.exp(powers - powers.max())
        return float(shares @ losses / shares.sum())

    low, high = 0.0, 1.0
    if tilted_mean(low) >= mean:
        return low
    while tilted_mean(high) < mean and high < 1e6:
        low, high = high, 2 * high
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if tilted_mean(middle) < mean else (low, middle)
    return low


def _window(losses: Array, log_masses: Array, tilt: float, times: int) -> tuple[float, float]:
    """Totals outside of which at most e^CUT of the tilted law lies on either side (Chernoff)."""
    growth = _log_moment(losses, log_masses, tilt)
    powers = np.exp(log_masses + tilt * losses - growth)
    mean = float(powers @ losses)
    spread = math.sqrt(times * float(powers @ (losses - mean) ** 2))
    lowest, highest = times * float(losses.min()), times * float(losses.max())
    for factor in (4.0, 8.0, 16.0):
        s = factor / max(spread, 1e-300)
        up = times * (_log_moment(losses, log_masses, tilt + s) - growth)
        down = times * (_log_moment(losses, log_masses, tilt - s) - growth)
        highest = min(highest, (up - CUT) / s)
        lowest = max(lowest, (CUT - down) / s)
    return lowest, highest


def _smooth_length(least: int) -> int:
    """2^k or 3 * 2^k, at least `least`: lengths the FFT likes."""
    if least > 8 * MOST_POINTS:
        raise InvalidQuery(
            "this composition is too long for an exact account; take fewer credits "
            "or noise='gaussian'"
        )
    power = 1 << max(1, (least - 1).bit_length())
    return power * 3 // 4 if power * 3 // 4 >= least and power >= 8 else power


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result *= base
        base = base * base
        exponent >>= 1
    return result
