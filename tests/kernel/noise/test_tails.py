"""Tails of sums of draws against the exact convolution of their laws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sulq.kernel.noise.intervals import chance_beyond, half_width, spread, z_of
from sulq.kernel.noise.laws import (
    CentredBinomial,
    DiscreteGaussian,
    DiscreteHuber,
    DiscreteLaplace,
    Law,
    NoNoise,
)

LAWS: list[Law] = [
    CentredBinomial(64),
    DiscreteHuber(Fraction(4), Fraction(6)),
    DiscreteLaplace(Fraction(1, 2)),
    DiscreteLaplace(Fraction(3)),
    DiscreteGaussian(Fraction(1, 3)),
    DiscreteGaussian(Fraction(16)),
]


def convolved(law: Law, weight: int) -> tuple[np.ndarray, np.ndarray]:
    """The chances of |N - weight M|, with their places."""
    reach = law.half_width(1 - 1e-11)
    one = np.array([law.pmf(t) for t in range(-reach, reach + 1)])
    stretched = np.zeros(2 * reach * weight + 1)
    stretched[::weight] = one
    far = reach * (1 + weight)
    return np.convolve(one, stretched), np.abs(np.arange(-far, far + 1))


@pytest.mark.parametrize("weight", [1, 2, 3])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_sums_are_never_narrower_than_their_exact_law(law: Law, weight: int) -> None:
    chances, places = convolved(law, weight)
    draws = ((1.0, law), (-float(weight), law), (3.0, NoNoise()))
    for confidence in (0.5, 0.9, 0.95, 0.99, 0.999):
        half = half_width(draws, confidence)
        assert chances[places > half + 1e-9].sum() <= (1 - confidence) * (1 + 1e-3)
        best = next(h for h in range(len(places)) if chances[places > h].sum() <= 1 - confidence)
        assert half <= best * 1.02 + weight
    for distance in range(1, 12):
        exact = chances[places >= distance].sum()
        assert exact - 2e-5 <= chance_beyond(draws, float(distance)) <= 1


def test_two_fine_laplaces_have_a_formula() -> None:
    law, step = DiscreteLaplace(Fraction(5 << 30)), 2.0**-30
    for ratio in (1.0, 1.0 + 1e-10, 1.5, 80.0):
        h = half_width(((step, law), (-ratio * step, law)), 0.95)
        p, q = 5 * ratio, 5.0
        if ratio < 1.1:
            beyond = (1 + h / 10) * math.exp(-h / 5)
        else:
            beyond = (p * p * math.exp(-h / p) - q * q * math.exp(-h / q)) / (p * p - q * q)
        assert beyond == pytest.approx(0.05, rel=1e-5)


def test_many_draws_are_nearly_normal() -> None:
    draws = ((1.0, DiscreteLaplace(Fraction(1 << 20))),) * 200
    assert half_width(draws, 0.95) / spread(draws) == pytest.approx(z_of(0.95), rel=5e-3)


def test_rare_misses_are_bounded_by_the_parts() -> None:
    law = DiscreteLaplace(Fraction(1 << 20))
    assert half_width(((1.0, law), (1.0, law)), 1 - 1e-8) == 2 * law.half_width(1 - 5e-9)


def test_no_noise_is_no_distance() -> None:
    assert half_width(((2.0, NoNoise()), (0.0, LAWS[0])), 0.99) == 0
    assert chance_beyond((), 1.0) == 0
    assert chance_beyond(((1.0, LAWS[0]),), 0.0) == 1
