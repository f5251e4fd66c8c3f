"""The papers' random delay of a reply, with its units mended, and what it costs. S4.5

One row may change the running time by at most t_max. A delay of variance t_max^2 R makes the time
of a reply a Gaussian answer of sensitivity 1 at variance R: it costs R_unit / R credits, as the
answer itself would. (Blum et al. print the variance as t_max R, which is no time squared.)
A delay cannot be negative: its mean is z standard deviations, and (1 + e^eps) Q(z) of delta pays
for the rest. Proof: docs/proofs/timing.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from sulq.accounting.calibration import Calibration
from sulq.accounting.gaussian import Exact, tail_quantile
from sulq.accounting.losses import Loss, coupling_factor, coupling_slack
from sulq.errors import InvalidQuery

GRID_BITS = 20
"""Times are whole multiples of t_max / 2^20."""
CLAMP_SHARE = Fraction(1, 4)
"""Of the delta that sampling may use up in a table's life: for delays that would be negative."""
LONGEST = 60


@dataclass(frozen=True, slots=True)
class Delay:
    """In grid steps: the noise's variance and the mean that is added; and what each reply costs."""

    longest: Fraction  # t_max, in seconds
    variance: Fraction  # R, in units of t_max^2
    quantile: Fraction  # z
    loss: Loss

    @property
    def step(self) -> Fraction:
        """Seconds."""
        return self.longest / (1 << GRID_BITS)

    @property
    def grid_variance(self) -> Fraction:
        """t_max^2 R, in steps^2."""  # S4.5
        return self.variance * (1 << 2 * GRID_BITS)

    @property
    def mean_steps(self) -> int:
        """z t_max sqrt(R), rounded up."""  # S4.5
        return math.isqrt(math.ceil(self.quantile**2 * self.grid_variance)) + 1

    @property
    def mean(self) -> float:
        """Seconds."""
        return float(self.mean_steps * self.step)

    @property
    def standard_deviation(self) -> float:
        """Seconds."""
        return float(self.longest) * math.sqrt(self.variance)


def delay_for(calibration: Calibration, longest: Exact, credits: Exact = 1) -> Delay:
    """The delay under which each timed reply costs `credits`; `longest` is t_max in seconds."""
    if calibration.promise.noise != "gaussian":
        raise InvalidQuery(
            "a random delay is Gaussian and needs a promise with gaussian noise; use the clock"
        )
    t_max, paid = Fraction(longest), Fraction(credits)
    if not 0 < t_max <= LONGEST or not 0 < paid <= calibration.credits:
        raise InvalidQuery(
            f"got {float(t_max):g} s that a row may add and {float(paid):g} credits for each"
            f" reply, wanted more than 0, at most {LONGEST} s and all credits"
        )
    variance = calibration.unit_variance / paid
    factor = coupling_factor(calibration.promise.epsilon)
    replies = calibration.credits / paid
    clamp = calibration.slack_cap * CLAMP_SHARE / replies  # S4.5: T (1 + e^eps) Q(z) in all
    slack = factor * coupling_slack(variance * (1 << 2 * GRID_BITS))  # TB.8
    return Delay(t_max, variance, tail_quantile(clamp / factor), Loss.of(paid, clamp + slack))


def timed(calibration: Calibration, delay: Delay) -> Calibration:
    """The same noise; every question that reads rows also pays for the time of its reply."""
    return replace(calibration, timing=delay.loss)
