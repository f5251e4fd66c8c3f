"""How a law is drawn: a discrete Laplace proposal and a penalty that is exactly rational.

A law with P(y) ~ exp(-psi(|y|)) is drawn by proposing |y| with weight exp(-|y|/scale) and keeping
it with probability exp(-penalty(|y|)), where psi(y) = y/scale + penalty(y) + constant.
Proof: docs/proofs/noise.md, claim 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sulq.noise.distributions import DiscreteGaussian, DiscreteHuber, DiscreteLaplace


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
