"""Noisy sums from the exact laws, many at a time, for judging intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from sulq.kernel.noise.laws import (
    CentredBinomial,
    DiscreteGaussian,
    DiscreteHuber,
    DiscreteLaplace,
    Law,
)
from sulq.kernel.noise.sampler import add_fresh_noise
from sulq.sql.evaluate.linear_forms import Estimate, Noisy

FALSE_ALARM = 1e-6
FINE = Fraction(1, 1 << 30)
Z = 1.959964


def law_of(noise: str, deviation: float) -> tuple[Law, Fraction]:
    """A law of about this standard deviation in user units, and its step."""
    exact = Fraction(deviation)
    match noise:
        case "gaussian":
            return DiscreteGaussian((exact / FINE) ** 2), FINE
        case "laplace":
            return DiscreteLaplace(exact / FINE / Fraction(math.sqrt(2))), FINE
        case "coarse laplace":
            return DiscreteLaplace(exact / Fraction(math.sqrt(2))), Fraction(1)
        case "coarse gaussian":
            return DiscreteGaussian(exact**2), Fraction(1)
        case "binomial":
            return CentredBinomial(2 * round(2 * deviation**2)), Fraction(1)
        case "huber":
            return DiscreteHuber(exact, exact), Fraction(1)
    raise AssertionError(noise)


def least_hits(draws: int, confidence: float) -> int:
    """A true interval holds fewer times than this with a chance below 1e-6 (binomial law)."""
    below, hits = 0.0, 0
    while True:
        ways = math.lgamma(draws + 1) - math.lgamma(hits + 1) - math.lgamma(draws - hits + 1)
        below += math.exp(
            ways + hits * math.log(confidence) + (draws - hits) * math.log1p(-confidence)
        )
        if below > FALSE_ALARM:
            return hits
        hits += 1


class Simulation:
    """The same true sums under fresh noise, again and again."""

    def __init__(
        self, truths: Sequence[float], laws: Sequence[tuple[Law, Fraction]], draws: int
    ) -> None:
        self.laws, self.draws = laws, draws
        whole = [round(Fraction(t) / step) for t, (_, step) in zip(truths, laws, strict=True)]
        self.values = add_fresh_noise(whole * draws, [law for law, _ in laws] * draws)

    def __iter__(self) -> Iterator[list[Noisy]]:
        width = len(self.laws)
        for place in range(self.draws):
            row = self.values[place * width : (place + 1) * width]
            yield [
                Noisy.draw(name, float(value * step), law, step)
                for name, (value, (law, step)) in enumerate(zip(row, self.laws, strict=True))
            ]

    def judge(
        self, build: Callable[..., Estimate], truth: float, confidence: float
    ) -> tuple[int, float]:
        """How often the interval holds the truth, and its mean width."""
        held, widths = 0, 0.0
        for sums in self:
            low, high = build(*sums).interval(confidence)
            held += low <= truth <= high
            widths += high - low
        return held, widths / self.draws
