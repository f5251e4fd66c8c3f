"""How far off a sum of independent noisy draws may be.

A draw is (scale, law): `scale` user units per grid step, with its sign. Floats, for error bars
only. Proofs: docs/proofs/error-bars.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sulq.noise.distributions import (
    CentredBinomial,
    DiscreteGaussian,
    DiscreteLaplace,
    DividedLaplace,
    Law,
    NoNoise,
)


@dataclass(frozen=True, slots=True)
class Rounding:
    """Rounding to the nearest step: at most half of one, whatever draws it depends on."""

    def variance(self) -> float:
        """As if any part of a step were as likely."""
        return 1 / 12


Draw = tuple[float, Law | Rounding]
Draws = tuple[Draw, ...]
Drawn = tuple[tuple[float, Law], ...]

POINTS, COARSE_POINTS = 1 << 10, 1 << 11
"""How many waves the inversion adds up; those of a coarse law come back at whole turns."""
FEWEST = 1e-4
"""Below this chance the inversion's own error counts; bounds are added up instead."""
HALVINGS = 30
FINE = 10_000
"""So many steps wide, a discrete Laplace law is the continuous one for every purpose of a bar."""


def spread(draws: Draws | Drawn) -> float:
    """The standard deviation of the sum of independent draws."""
    squares: dict[int, float] = {}  # by law: many draws share one
    for scale, law in draws:
        squares[id(law)] = squares.get(id(law), 0.0) + scale * scale
    laws = {id(law): law for _, law in draws}
    return math.sqrt(sum(square * laws[own].variance() for own, square in squares.items()))


def told_spread(draws: Draws | Drawn) -> float:
    """The standard deviation of a count, which is told as a whole number: with its rounding where
    it is one draw of Laplace noise on a fine grid. S2.6"""
    if len(draws) == 1:
        scale, law = draws[0]
        if isinstance(law, DiscreteLaplace) and is_fine(law):
            return rounded_spread(abs(scale) * float(law.scale))
    return spread(draws)


def rounded_spread(scale: float) -> float:
    """The standard deviation of round(X), X of a Laplace law. S2.6

    Its variance is the sum over k > 0 of (2k - 1) P(|X| > k - 1/2) = sqrt(q) (1 + q) / (1 - q)^2,
    q = exp(-1/scale).
    """
    q = math.exp(-1 / scale)
    return math.sqrt(math.exp(-1 / (2 * scale)) * (1 + q)) / -math.expm1(-1 / scale)


@lru_cache(maxsize=4096)
def half_width(draws: Draws, confidence: float) -> float:
    """An h with P(|sum of draws| <= h) >= confidence; the smallest for one draw."""
    drawn, rounding = _drawn(draws)
    return _half_width(drawn, confidence) + rounding


def _half_width(draws: Drawn, confidence: float) -> float:
    if not draws:
        return 0.0
    if len(draws) == 1:
        scale, law = draws[0]
        return abs(scale) * law.half_width(confidence)
    if gaussian(draws):
        return z_of(confidence) * _smeared_spread(draws) + grain_of(draws) / 2
    if 1 - confidence < FEWEST:
        share = 1 - (1 - confidence) / len(draws)
        return sum(abs(scale) * law.half_width(share) for scale, law in draws)
    low, high = 0.0, spread(draws)
    while _chance_beyond(draws, high) > 1 - confidence:
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _chance_beyond(draws, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def chance_beyond(draws: Draws, distance: float) -> float:
    """P(|sum of draws| >= distance), or a little more."""
    drawn, rounding = _drawn(draws)
    return _chance_beyond(drawn, distance - rounding)


def _chance_beyond(draws: Drawn, distance: float) -> float:
    if distance <= 0:
        return 1.0
    if not draws:
        return 0.0
    if len(draws) == 1:
        scale, law = draws[0]
        return law.tail(math.ceil(distance / abs(scale) * (1 - 1e-12)) - 1)
    grain = grain_of(draws)
    if distance <= grain / 2:
        return 1.0
    distance -= grain / 2  # P(|S| > x + r/2) <= P(|S + rU| > x), U uniform on [-1/2, 1/2]
    if gaussian(draws):
        return math.erfc(distance / _smeared_spread(draws) / math.sqrt(2))
    if (two := _two_laplaces(draws, distance, grain)) is not None:
        return two
    return _inverted(draws, distance, grain)


@lru_cache(maxsize=256)
def z_of(confidence: float) -> float:
    """The two-sided normal quantile: erfc(z / sqrt 2) = 1 - confidence, by halving."""
    low, high = 0.0, 40.0
    while low < (middle := (low + high) / 2) < high:
        outside = math.erfc(middle / math.sqrt(2))
        low, high = (middle, high) if outside > 1 - confidence else (low, middle)
    return high


def noisy(draws: Draws) -> Draws:
    """The draws that have noise."""
    return tuple((scale, law) for scale, law in draws if scale and not isinstance(law, NoNoise))


def _drawn(draws: Draws) -> tuple[Drawn, float]:
    """The noisy draws, and how far their rounding may reach: P(|S + r| > x) <= P(|S| > x - |r|)."""
    drawn = [(scale, law) for scale, law in noisy(draws) if not isinstance(law, Rounding)]
    reach = sum(abs(scale) for scale, law in draws if isinstance(law, Rounding)) / 2
    return tuple(drawn), reach


def gaussian(draws: Draws | Drawn) -> bool:
    """Whether every draw is Gaussian and not coarser than its grid."""
    return all(isinstance(law, DiscreteGaussian) and law.sigma_squared >= 1 for _, law in draws)


def is_fine(law: Law, weight: Fraction = Fraction(1)) -> bool:
    """Whether a draw is too wide to tell its steps, and those of a grid in which it has this
    weight, from a continuous law's."""
    if not isinstance(law, DiscreteLaplace | DividedLaplace):
        return True
    return law.scale * min(abs(weight), Fraction(1)) >= FINE


def is_rounded(parts: Iterable[tuple[Fraction, Law]]) -> bool:
    """Whether rounding a weighted sum of draws to a step of the grid counts.

    It does where a weight is not whole and the grid is about as coarse as the noise. S2.6
    """
    known = [(weight, law) for weight, law in parts if not isinstance(law, NoNoise)]
    return any(weight.denominator != 1 for weight, _ in known) and not any(
        is_fine(law, weight) or abs(weight) >= FINE for weight, law in known
    )


def grain_of(draws: Draws | Drawn) -> float:
    """The coarsest step."""
    return max(abs(scale) for scale, _ in draws)


def _smeared_spread(draws: Drawn) -> float:
    return math.hypot(spread(draws), grain_of(draws) / math.sqrt(12))


def _two_laplaces(draws: Drawn, distance: float, grain: float) -> float | None:
    """(p^2 e^(-x/p) - q^2 e^(-x/q)) / (p^2 - q^2) for scales p >= q; None if not two fine ones."""
    scales = [abs(s) * float(law.scale) for s, law in draws if isinstance(law, DiscreteLaplace)]
    if len(draws) != 2 or len(scales) != 2 or min(scales) < FINE * grain:
        return None
    q, p = sorted(scales)
    if p - q < 1e-9 * p:
        return math.exp(-distance / p) * (1 + distance / (p + q))
    late = -math.expm1(-distance * (p - q) / (p * q))
    return min(1.0, math.exp(-distance / p) * (1 + q * q * late / ((p - q) * (p + q))))


def _inverted(draws: Drawn, distance: float, grain: float) -> float:
    """1 - (2/pi) sum of phi(u) sin(u x) / u at the middles of equal steps of u.

    The sum is smeared by a uniform law as wide as `grain`, whose waves are 0 where those of draws
    on one coarse grid come back.
    """
    deviation = spread(draws)
    points = POINTS if 64 * grain < deviation else COARSE_POINTS
    places: NDArray[np.float64] = np.arange(points, dtype=np.float64) + 0.5
    turns = places * (2 * math.pi / (2 * distance + 20 * deviation + grain))
    phi = np.sinc(turns * (grain / 2 / math.pi))
    alike = Counter((abs(scale), id(law)) for scale, law in draws)
    laws = {id(law): law for _, law in draws}
    for (scale, own), times in alike.items():
        phi *= _wave(laws[own], turns * scale) ** times
    inside = 2 / math.pi * float(np.sum(phi * np.sin(turns * distance) / places))
    return min(max(1 - inside, 0.0), 1.0)


def _wave(law: Law, angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """The characteristic function E cos(angle N)."""
    match law:
        case NoNoise():
            return np.ones_like(angles)
        case DiscreteGaussian(sigma_squared=v) if v >= 1:
            around = np.remainder(angles + math.pi, 2 * math.pi) - math.pi
            wave: NDArray[np.float64] = np.exp(-float(v) / 2 * around**2)
            return wave
        case DiscreteLaplace(scale=scale):
            steep = math.sinh(min(float(1 / (2 * scale)), 300.0))
            return 1 / (1 + (np.sin(angles / 2) / steep) ** 2)
        case DividedLaplace(scale=scale, shape=shape):
            wave = _wave(DiscreteLaplace(scale), angles) ** float(shape)
            return wave
        case CentredBinomial(coins=coins):
            wave = np.exp(coins * np.log(np.maximum(np.abs(np.cos(angles / 2)), 1e-300)))
            return wave
    parts, waves = _wave_table(law)
    read: NDArray[np.float64] = np.interp(np.remainder(angles, 2 * math.pi), parts, waves)
    return read


@lru_cache(maxsize=16)
def _wave_table(law: Law) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The characteristic function at equal angles around the circle, from the law's chances."""
    reach = law.half_width(1 - 1e-9)
    size = 1 << max(16, (32 * reach).bit_length())
    chances = np.zeros(size)
    for t in range(-reach, reach + 1):
        chances[t % size] += law.pmf(t)
    waves = np.fft.fft(chances).real
    return np.linspace(0.0, 2 * math.pi, size + 1), np.append(waves, waves[0])
