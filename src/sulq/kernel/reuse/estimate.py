"""A derived answer: weights of stored noisy integers, its variance, and where it comes from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sulq.kernel.accounting.pricing import derived_text
from sulq.kernel.noise.intervals import Draw, Form, Rounding, half_width, is_fine, is_rounded, z_of
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace, Law, NoNoise
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.program import RowSums

POINTS = 2**15
STEP = 0.02
"""In standard deviations: aliases lie 2 pi / STEP of them away."""


@lru_cache(maxsize=4096)
def laplace_half_width(scales: tuple[float, ...], confidence: float) -> float:
    """The least h with P(|sum of Laplace(b)| <= h) >= confidence; errs upward."""
    spread = math.sqrt(2 * math.fsum(b * b for b in scales))
    if not spread:
        return 0.0
    if len(scales) == 1:
        return -scales[0] * math.log1p(-confidence)
    unit = np.array(scales) / spread
    low, high = 0.0, _chernoff(unit, confidence)
    t = STEP * np.arange(1, POINTS)
    wave = np.ones_like(t)
    for b in unit:
        wave /= 1 + (b * t) ** 2  # E exp(i t X) = 1 / (1 + b^2 t^2)
    error = 2 * float(wave[-1])
    if 1 - confidence <= 10 * error:
        return high * spread
    weights = wave / t
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        # P(|S| <= h) = 2/pi int sin(h t) / t E exp(i t S) dt, by the trapezoidal rule
        inside = (2 / math.pi) * STEP * (middle / 2 + float(np.sin(middle * t) @ weights))
        low, high = (low, middle) if inside - error >= confidence else (middle, high)
    return high * spread


def _chernoff(unit: np.ndarray, confidence: float) -> float:
    """2 exp(-s h) prod 1 / (1 - s^2 b^2) <= 1 - confidence, over a list of s."""
    s = np.linspace(0.02, 0.98, 49) / float(unit.max())
    rest = -np.log1p(-np.square(s[:, None] * unit)).sum(axis=1)
    return float(((math.log(2 / (1 - confidence)) + rest) / s).min())


# How far a sum of independent Laplace noises strays: its own law, not a normal one.


SAME = 1e-9
"""Variances that differ by less are one."""


class StoredDraws(NamedTuple):
    """One stored noisy integer, and its weight in an estimate."""

    seq: int
    place: int
    weight: Fraction
    value: int
    law: Law


def exact_variance(law: Law) -> Fraction:
    """Gaussian: its parameter; on the fine grid the law's variance is the same to 2^-40. TB.8"""
    match law:
        case NoNoise():
            return Fraction(0)
        case DiscreteGaussian(sigma_squared=size):
            return size
    return Fraction(law.variance())


@dataclass(frozen=True, slots=True, eq=False)
class LinearEstimate:
    """Every sum asked, on its fine grid: weighted stored integers, plus public sums.

    `public` is the program of the public sums, `constants` their factors (G.2.1). `exact`: the
    weights are fractions that give the sum asked on every piece. `alike`: the sums of one term
    have the same weights and laws, so that the first says it of all.
    """

    bound: BoundQuery
    estimates: Sequence[Sequence[StoredDraws]]
    constants: Sequence[dict[int, Fraction]]
    public: RowSums | None
    exact: bool
    alike: bool = False

    def places(self) -> list[list[int]]:
        """The sums of each term; where they are alike, the first of them."""
        layout = self.bound.layout
        found: list[list[int]] = [[] for _ in self.bound.terms]
        for place in range(len(layout) if self.alike else len(self.estimates)):
            found[layout[place % len(layout)]].append(place)
        return [own[:1] for own in found] if self.alike else found

    def _looked_at(self) -> list[int]:
        return [place for own in self.places() for place in own]

    def values(self, public_sums: Sequence[int]) -> tuple[int, ...]:
        """The estimates, rounded to the grid."""
        found = []
        for sources, constants in zip(self.estimates, self.constants, strict=True):
            parts = [(s.weight, s.value) for s in sources]
            parts += [(k, public_sums[i]) for i, k in constants.items()]
            whole = math.lcm(*(weight.denominator for weight, _ in parts))
            total = sum(w.numerator * (whole // w.denominator) * value for w, value in parts)
            found.append((2 * total + whole) // (2 * whole))
        return tuple(found)

    @property
    def sources(self) -> tuple[int, ...]:
        """The numbers of the stored answers used."""
        return tuple(sorted({s.seq for at in self._looked_at() for s in self.estimates[at]}))

    @property
    def noise(self) -> str:
        """Its name in the ledger: the answers it was made from."""
        return derived_text(self.sources)

    @property
    def repeat(self) -> bool:
        """True if this is one stored answer to the very question, as it is."""
        if len(self.sources) > 1:
            return False
        found = [(place, self.estimates[place]) for place in self._looked_at()]
        return all(
            len(sources) == 1 and sources[0].place == place and sources[0].weight == 1
            for place, sources in found
        )

    def variance(self, place: int) -> Fraction:
        """Of one sum, in steps of its fine grid squared."""
        found = sum(
            (s.weight**2 * exact_variance(s.law) for s in self.estimates[place]), Fraction(0)
        )
        if _rounded(self.estimates[place]):
            found += Fraction(1, 12)
        return found if self.exact else Fraction(float(found))

    def variances(self) -> list[list[Fraction]]:
        """By term, of its sums; where they are alike, of the first."""
        return [[self.variance(place) for place in own] for own in self.places()]

    @property
    def spread(self) -> Fraction:
        """The variances of all sums, added up."""
        times = [self.bound.layout.count(term) for term in range(len(self.bound.terms))]
        each = [sum(own, Fraction(0)) for own in self.variances()]
        if not self.alike:
            return sum(each, Fraction(0))
        whole = sum((k * one for k, one in zip(times, each, strict=True)), Fraction(0))
        return whole * (len(self.estimates) // len(self.bound.layout))

    def covariance(self) -> NDArray[np.float64]:
        """Of all sums, in user units: two of them may share stored answers."""
        steps = [float(self.bound.terms[number].fine_step) for number in self.bound.layout]
        columns: dict[tuple[int, int], int] = {}
        for sources in self.estimates:
            for s in sources:
                columns.setdefault((s.seq, s.place), len(columns))
        spread = np.zeros((len(self.estimates), len(columns)))
        for row, sources in enumerate(self.estimates):
            for s in sources:
                deviation = math.sqrt(exact_variance(s.law))
                unit = steps[row % len(steps)]
                spread[row, columns[s.seq, s.place]] = float(s.weight) * deviation * unit
        rounded = [_rounded(sources) for sources in self.estimates]
        units = np.array([steps[row % len(steps)] for row in range(len(rounded))])
        found: NDArray[np.float64] = spread @ spread.T
        found += np.diag(np.where(rounded, units**2 / 12, 0.0))
        return found

    def form(self, place: int) -> Form:
        """One sum in user units: its draws by receipt and place, and rounding where it counts."""
        step = float(self._step(place))
        sources = self.estimates[place]
        found: dict[object, Draw] = {
            (s.seq, s.place): (float(s.weight) * step, s.law) for s in sources
        }
        if _rounded(sources):
            found["rounded", place] = (step, Rounding())
        return found

    def half_width(self, place: int, confidence: float) -> float:
        """Of one sum, in user units; Gaussian noises add up to a Gaussian, Laplace ones do not."""
        step = float(self._step(place))
        noisy = [s for s in self.estimates[place] if not isinstance(s.law, NoNoise)]
        if all(isinstance(s.law, DiscreteLaplace) for s in noisy):
            if not all(is_fine(s.law, s.weight) for s in noisy):
                if any(s.weight.denominator != 1 for s in noisy):
                    return half_width(tuple(self.form(place).values()), confidence)
                steps = half_width(tuple((float(s.weight), s.law) for s in noisy), confidence)
                return math.floor(steps * (1 + SAME)) * step  # a whole number of steps, S2.6
            scales = [
                abs(float(s.weight * s.law.scale))
                for s in noisy
                if isinstance(s.law, DiscreteLaplace)
            ]
            return laplace_half_width(tuple(sorted(scales)), confidence) * step
        return z_of(confidence) * math.sqrt(self.variance(place)) * step

    @property
    def gaussian(self) -> bool:
        """Whether every draw is Gaussian, so that their sums are."""
        laws = {id(s.law): s.law for sources in self.estimates for s in sources}
        return all(isinstance(law, DiscreteGaussian | NoNoise) for law in laws.values())

    def _step(self, place: int) -> Fraction:
        layout = self.bound.layout
        return self.bound.terms[layout[place % len(layout)]].fine_step

    def laws(self) -> tuple[Law, ...] | None:
        """One law for each term, if the sums are as independent and alike as fresh answers."""
        used = [(s.seq, s.place) for at in self._looked_at() for s in self.estimates[at]]
        if len(set(used)) < len(used):
            return None
        found: list[Law] = []
        for places in self.places():
            law = _one([self._law(place) for place in places])
            if law is None:
                return None
            found.append(law)
        return tuple(found)

    def _law(self, place: int) -> Law | None:
        sources = self.estimates[place]
        if not sources:
            return NoNoise()
        if all(isinstance(s.law, DiscreteGaussian) for s in sources):
            return DiscreteGaussian(self.variance(place))
        if len(sources) > 1:
            return None
        weight, law = abs(sources[0].weight), sources[0].law
        if isinstance(law, DiscreteLaplace) and is_fine(law, weight):
            return DiscreteLaplace(law.scale * weight)
        return law if weight == 1 else None

    def worst(self) -> tuple[Law, ...]:
        """For each term a Gaussian law as wide as its widest sum."""
        widest = [max(own) for own in self.variances()]
        return tuple(DiscreteGaussian(size) if size else NoNoise() for size in widest)


def _rounded(sources: Sequence[StoredDraws]) -> bool:
    """Whether rounding to a step of the grid counts: shares of draws on whole numbers."""
    return is_rounded((s.weight, s.law) for s in sources)


def _one(laws: Sequence[Law | None]) -> Law | None:
    """Their common law."""
    first = laws[0]
    if first is None or all(law == first for law in laws):
        return first
    if all(isinstance(law, DiscreteGaussian) for law in laws):
        sizes = [law.sigma_squared for law in laws if isinstance(law, DiscreteGaussian)]
        if max(sizes) <= min(sizes) * (1 + Fraction(SAME)):
            return DiscreteGaussian(max(sizes))
    return None
