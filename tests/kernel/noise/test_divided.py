"""Shares of a Laplace draw: the law in other ways, its draws, and that shares add up. V.4

Statistical false alarms: 1e-6 per test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import kv
from scipy.stats import nbinom

from sulq.kernel.noise import laws, sampler
from sulq.kernel.noise.entropy import OsBits
from sulq.kernel.noise.intervals import half_width
from sulq.kernel.noise.laws import DiscreteLaplace, DividedLaplace, Law, law_from_json
from sulq.kernel.noise.sampler import draw

Follows = Callable[[Sequence[int], Law], None]
LAWS = [
    DividedLaplace(Fraction(1, 3), Fraction(1, 2)),
    DividedLaplace(Fraction(1), Fraction(1, 2)),
    DividedLaplace(Fraction(7, 3), Fraction(1, 3)),
    DividedLaplace(Fraction(20), Fraction(1, 10)),
    DividedLaplace(Fraction(40), Fraction(5, 4)),
    DividedLaplace(Fraction(9), Fraction(5)),
]


def by_convolution(law: DividedLaplace, most: int) -> np.ndarray:
    """P(0), P(1), ...: sum over j of NB(j) NB(j + t), from another library's negative binomial."""
    reach = int(float(law.scale) * 80) + 60
    chances = nbinom.pmf(
        np.arange(reach + most), float(law.shape), -math.expm1(-float(1 / law.scale))
    )
    return np.array([np.dot(chances[:reach], chances[t : t + reach]) for t in range(most)])


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_chances_are_those_of_two_negative_binomials(law: DividedLaplace) -> None:
    most = int(6 * law.scale) + 3
    found = [law.pmf(t) for t in range(most)]
    np.testing.assert_allclose(found, by_convolution(law, most), rtol=1e-9)
    assert law.pmf(-2) == law.pmf(2)
    tails = [law.tail(h) for h in range(most)]
    inside = np.cumsum([found[0], *(2 * chance for chance in found[1:])])
    np.testing.assert_allclose(tails, 1 - inside, rtol=1e-7, atol=1e-12)
    square = sum(2 * t * t * law.pmf(t) for t in range(1, int(100 * law.scale) + 50))
    assert law.variance() == pytest.approx(square, rel=1e-9)
    assert law_from_json(law.to_json()) == law


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(30)])
@pytest.mark.parametrize("parts", [2, 3, 5])
def test_shares_add_up_to_one_laplace_draw(scale: Fraction, parts: int) -> None:
    share, whole = DividedLaplace(scale, Fraction(1, parts)), DiscreteLaplace(scale)
    reach = int(80 * scale) + 40
    one = np.array([share.pmf(t) for t in range(-reach, reach + 1)])
    total = one
    for _ in range(parts - 1):
        total = np.convolve(total, one)
    middle = len(total) // 2
    np.testing.assert_allclose(
        total[middle : middle + 20], [whole.pmf(t) for t in range(20)], rtol=1e-9
    )
    same = DividedLaplace(scale, Fraction(1))
    assert [same.pmf(t) for t in range(9)] == pytest.approx([whole.pmf(t) for t in range(9)])
    assert same.tail(4) == pytest.approx(whole.tail(4))


def test_golden_values() -> None:
    """Two shares of one draw at a = 1/2: the square of ((1 - a)^2 / ...)^(1/2), by hand."""
    scale = 1 / Fraction(math.log(2))
    half, whole = DividedLaplace(scale, Fraction(1, 2)), DividedLaplace(scale, Fraction(1))
    assert whole.pmf(0) == pytest.approx(1 / 3) and whole.pmf(1) == pytest.approx(1 / 6)
    # (1/2) sum over j of (C(2j, j) / 8^j)^2 = K(1/2) / pi, the complete elliptic integral
    assert half.pmf(0) == pytest.approx(1.685750354812596 / math.pi, rel=1e-12)
    assert half.variance() == pytest.approx(2) and whole.variance() == pytest.approx(4)


@pytest.mark.sample(2)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_follow_the_law(law: DividedLaplace, assert_follows: Follows) -> None:
    assert_follows(draw(law, int(20_000 / max(1, 3 * law.shape))), law)


@pytest.mark.sample(1)
@pytest.mark.parametrize("parts", [2, 3])
def test_sums_of_drawn_shares_follow_laplace(parts: int, assert_follows: Follows) -> None:
    scale = Fraction(12)
    shares = [draw(DividedLaplace(scale, Fraction(1, parts)), 10_000) for _ in range(parts)]
    assert_follows([sum(each) for each in zip(*shares, strict=True)], DiscreteLaplace(scale))


def test_on_a_fine_grid_too() -> None:
    """The empirical distribution of sums of three shares, within the band of DKW at 1e-6."""
    scale, count = Fraction(10**12, 7), 1_500
    shares = [draw(DividedLaplace(scale, Fraction(1, 3)), count) for _ in range(3)]
    found = np.sort([sum(each) / float(scale) for each in zip(*shares, strict=True)])
    below = np.where(found < 0, np.exp(found) / 2, 1 - np.exp(-found) / 2)
    steps = np.arange(count + 1) / count
    far = max(np.max(np.abs(steps[1:] - below)), np.max(np.abs(steps[:-1] - below)))
    assert far < math.sqrt(math.log(2 / 1e-6) / (2 * count))


@pytest.mark.parametrize("shape", [Fraction(1, 2), Fraction(4, 3), Fraction(5)])
def test_the_continuous_tail_is_a_little_wider(
    shape: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = DividedLaplace(Fraction(1000), shape)
    places = [0, 1, 50, 700, 3000, 9000, 20_000]
    exact = [law.tail(h) for h in places]
    chances = [law.pmf(h) for h in places[1:]]
    monkeypatch.setattr(laws, "DIVIDED_FINE", 1)
    for h, wanted in zip(places, exact, strict=True):
        assert wanted <= law.tail(h) <= wanted * (1 + 2e-3) + (h < 2) * 0.1
    assert [law.pmf(h) for h in places[2:]] == pytest.approx(chances[1:], rel=1e-4)
    fine = DividedLaplace(Fraction(2**40), shape)
    x, order = 2.5, float(shape) - 0.5  # the density by the Bessel function of another library
    density = 2**-order / math.sqrt(math.pi) / math.gamma(float(shape)) * x**order * kv(order, x)
    assert fine.pmf(int(2.5 * 2**40)) * 2**40 == pytest.approx(density, rel=1e-9)


def test_a_bar_over_the_sum_of_two_is_the_bar_of_their_shapes() -> None:
    two = DividedLaplace(Fraction(2**30), Fraction(3, 4))
    whole = DividedLaplace(Fraction(2**30), Fraction(3, 2))
    assert half_width(((1.0, two), (1.0, two)), 0.95) == pytest.approx(
        whole.half_width(0.95), rel=1e-4
    )


def test_the_coins_behind_it() -> None:
    """Candidates and the odds 2/e, against exact binomial bounds at 1e-6."""
    source, count = OsBits(), 20_000
    means = [sampler._poisson(2, 5, source) for _ in range(count)]
    none = sum(value == 0 for value in means)
    for hits, chance in (
        (none, math.exp(-0.4)),
        (sum(value == 1 for value in means), 0.4 * math.exp(-0.4)),
        (sum(sampler._two_over_e(source) for _ in range(count)), 2 / math.e),
    ):
        assert abs(hits - count * chance) < 5.2 * math.sqrt(count * chance * (1 - chance))
