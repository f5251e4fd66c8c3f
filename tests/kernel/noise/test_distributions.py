from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from sulq.errors import InvalidQuery
from sulq.kernel.noise.laws import (
    CentredBinomial,
    DiscreteGaussian,
    DiscreteHuber,
    DiscreteLaplace,
    Law,
    NoNoise,
    law_from_json,
)

SMALL_LAWS: list[Law] = [
    DiscreteGaussian(Fraction(1, 20)),
    DiscreteGaussian(Fraction(9, 10)),
    DiscreteGaussian(Fraction(1)),
    DiscreteGaussian(Fraction(25)),
    DiscreteGaussian(Fraction(12345, 7)),
    DiscreteLaplace(Fraction(1, 3)),
    DiscreteLaplace(Fraction(10)),
    DiscreteLaplace(Fraction(101, 7)),
    DiscreteHuber(Fraction(10), Fraction(20)),
    DiscreteHuber(Fraction(3, 2), Fraction(1, 4)),
    DiscreteHuber(Fraction(5), Fraction(77, 2)),
    CentredBinomial(2),
    CentredBinomial(400),
]
HUGE_LAWS: list[Law] = [
    DiscreteGaussian(Fraction(2**100)),
    DiscreteGaussian(Fraction(2**128)),
    DiscreteLaplace(Fraction(2**100)),
    DiscreteHuber(Fraction(2**100), Fraction(2**101)),
    DiscreteHuber(Fraction(2**128), Fraction(1, 2**128)),
    CentredBinomial(2**100),
]


def weight(law: Law, t: int) -> float:
    """The unnormalised law, straight from its definition."""
    match law:
        case DiscreteGaussian(v):
            return math.exp(-float(t * t / (2 * v)))
        case DiscreteLaplace(b):
            return math.exp(-float(abs(t) / b))
        case DiscreteHuber(s, c):
            inside = t * t / (2 * s * s)
            outside = c * abs(t) / (s * s) - c * c / (2 * s * s)
            return math.exp(-float(inside if abs(t) <= c else outside))
        case CentredBinomial(coins):
            return math.comb(coins, coins // 2 + t) / 2**coins if abs(t) <= coins // 2 else 0.0
        case NoNoise():
            return float(t == 0)


@pytest.mark.parametrize("law", SMALL_LAWS, ids=str)
def test_moments_pmf_tail_and_half_width_equal_brute_force(law: Law) -> None:
    reach = 60 + int(60 * law.standard_deviation())
    weights = {t: weight(law, t) for t in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    variance = math.fsum(t * t * w for t, w in weights.items()) / total
    assert law.variance() == pytest.approx(variance, rel=1e-11)
    assert law.standard_deviation() == pytest.approx(math.sqrt(variance), rel=1e-11)
    for t in range(0, reach // 2, max(1, reach // 80)):  # beyond, brute force is cut short
        assert law.pmf(t) == law.pmf(-t) == pytest.approx(weights[t] / total, rel=1e-11, abs=1e-300)
        if weights[t] > 1e-300:
            assert law.log_pmf(t) == pytest.approx(math.log(weights[t] / total), rel=1e-11)
        outside = 2 * math.fsum(weights[u] for u in range(t + 1, reach + 1)) / total
        assert law.tail(t) == pytest.approx(outside, rel=1e-10, abs=1e-300)
    assert law.tail(-1) == 1.0
    for confidence in (0.01, 0.3, 0.5, 0.9, 0.95, 0.999, 1 - 1e-9):
        h, inside = 0, weights[0]
        while total - inside > (1 - confidence) * total * (1 + 1e-14):
            h += 1
            inside += 2 * weights[h]
        assert law.half_width(confidence) == h


def test_golden_values() -> None:
    huber = DiscreteHuber(Fraction(10), Fraction(20))  # S4.14
    assert huber.variance() == pytest.approx(108.03045246236005, rel=1e-14)
    assert huber.pmf(0) == pytest.approx(0.03955835337819247, rel=1e-14)
    acceptance = DiscreteLaplace(Fraction(5)).pmf(0) * math.exp(-2) / huber.pmf(0)
    assert acceptance == pytest.approx(0.34097972059750886, rel=1e-14)
    tenth = DiscreteLaplace(Fraction(10)).standard_deviation()  # S2.6
    assert tenth == pytest.approx(14.136244785430435, rel=1e-14)
    assert DiscreteLaplace(Fraction(1)).standard_deviation() == pytest.approx(
        1.3569624860015788, rel=1e-14
    )
    assert CentredBinomial(400).standard_deviation() == 10.0  # S0.4
    # TB.4: the discrete Gaussian's own privacy profile, from its pmf
    for variance, shift, epsilon, delta in (
        (25, 1, 0.5, 0.0004977630312883066),
        (1, 1, 1.0, 0.14135133940562192),
        (400, 4, 0.5, 0.0005116035904145254),
    ):
        law = DiscreteGaussian(Fraction(variance))
        span = range(-800, 801)
        gaps = (law.pmf(t) - math.exp(epsilon) * law.pmf(t + shift) for t in span)
        assert math.fsum(max(0.0, gap) for gap in gaps) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("sigma", [1, 10, 100])
def test_distance_to_the_rounded_gaussian_keeps_the_stated_bound(sigma: int) -> None:
    """TB.8: TV <= 0.021 / sigma^2."""
    law = DiscreteGaussian(Fraction(sigma**2))
    distance = 0.0
    for t in range(1, 12 * sigma):
        rounded = norm.sf((t - 0.5) / sigma) - norm.sf((t + 0.5) / sigma)
        distance += abs(law.pmf(t) - rounded)
    distance += abs(law.pmf(0) - (1 - 2 * norm.sf(0.5 / sigma))) / 2
    golden = {1: 0.0164981, 10: 0.0201258, 100: 0.0201638}
    assert distance * sigma**2 == pytest.approx(golden[sigma], rel=1e-4)


@pytest.mark.parametrize("variance", [300**2, 1000**2, 5000**2])
def test_long_sums_match_term_by_term_sums(variance: int) -> None:
    """The Euler-Maclaurin branch of gaussian_mass, down to tails of 1e-17."""
    law = DiscreteGaussian(Fraction(variance))
    sigma = math.isqrt(variance)
    total = math.sqrt(2 * math.pi * variance)
    for z in (0, 1, 3, 6, 8):
        h = z * sigma
        terms = (math.exp(-t * t / (2 * variance)) for t in range(h + 1, h + 40 * sigma))
        assert law.tail(h) == pytest.approx(2 * math.fsum(terms) / total, rel=1e-10, abs=0)


def test_huber_far_from_the_origin_matches_term_by_term_sums() -> None:
    s, c = 900, 20000
    law = DiscreteHuber(Fraction(s), Fraction(c))
    core = [math.exp(-t * t / (2 * s * s)) for t in range(1, c + 1)]
    squares = math.fsum(t * t * w for t, w in enumerate(core, 1))
    total = 1 + 2 * math.fsum(core)
    assert law.variance() == pytest.approx(2 * squares / total, rel=1e-11)
    wide = DiscreteHuber(Fraction(s), Fraction(9000))
    beyond = [weight(wide, t) for t in range(8001, 30000)]
    assert wide.tail(8000) == pytest.approx(2 * math.fsum(beyond) / total, rel=1e-9, abs=0)
    close = DiscreteHuber(Fraction(10**4), Fraction(10**4))
    flat = (min(t, 10**4) for t in range(1, 6 * 10**5))
    weights = [math.exp(-m * (2 * t - m) / 2e8) for t, m in enumerate(flat, 1)]
    total = 1 + 2 * math.fsum(weights)
    second = 2 * math.fsum(t * t * w for t, w in enumerate(weights, 1)) / total
    assert close.variance() == pytest.approx(second, rel=1e-11)


@pytest.mark.parametrize("coins", [4098, 10**5, 10**8])
def test_binomial_tail_is_a_close_upper_bound(coins: int) -> None:
    law = CentredBinomial(coins)
    for z in (0.1, 1, 2, 3, 5):
        h = int(z * law.standard_deviation())
        truth = 2 * binom.sf(coins // 2 + h, coins, 0.5)
        assert truth * (1 - 1e-9) <= law.tail(h) <= truth * (1 + (z * z + 2) / (3 * coins) + 1e-9)
        assert law.pmf(h) == pytest.approx(binom.pmf(coins // 2 + h, coins, 0.5), rel=1e-7)
    h = law.half_width(0.95)
    assert 2 * binom.sf(coins // 2 + h, coins, 0.5) <= 0.05
    assert 2 * binom.sf(coins // 2 + h - 2, coins, 0.5) > 0.05
    assert law.tail(coins // 2) == 0.0
    assert law.pmf(coins // 2 + 1) == 0.0
    assert law.log_pmf(coins // 2) == pytest.approx(-coins * math.log(2))


def test_binomial_half_width_takes_an_exact_tie() -> None:
    assert CentredBinomial(2).half_width(0.5) == 0  # P(0) is exactly one half
    assert CentredBinomial(2).half_width(0.5000001) == 1


@pytest.mark.parametrize("law", HUGE_LAWS, ids=lambda law: type(law).__name__)
def test_huge_laws_report_without_overflow(law: Law) -> None:
    h = law.half_width(0.95)
    assert 1.9 < h / law.standard_deviation() < 2.2
    assert law.tail(h) <= 0.05
    assert law.tail(int(h * 0.99)) > 0.05
    assert 0.39 < law.pmf(0) * law.standard_deviation() < 0.71
    assert law.pmf(2**2000) == 0.0
    assert law.tail(2**700) == 0.0


def test_tiny_laws_are_almost_no_noise() -> None:
    for law in (DiscreteGaussian(Fraction(1, 2**100)), DiscreteLaplace(Fraction(1, 2**100))):
        assert law.variance() == 0.0
        assert law.half_width(1 - 1e-15) == 0
        assert law.pmf(0) == 1.0


def test_no_noise_is_exact() -> None:
    law = NoNoise()
    assert (law.variance(), law.standard_deviation(), law.half_width(0.999)) == (0.0, 0.0, 0)
    assert (law.pmf(0), law.pmf(1), law.log_pmf(0), law.log_pmf(1)) == (1.0, 0.0, 0.0, -math.inf)
    assert (law.tail(0), law.tail(-1)) == (0.0, 1.0)


@pytest.mark.parametrize("law", [*SMALL_LAWS, *HUGE_LAWS, NoNoise()], ids=lambda law: str(law)[:60])
def test_json_round_trip_is_exact(law: Law) -> None:
    assert law_from_json(law.to_json()) == law


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=2**100))
def test_json_keeps_every_fraction(value: Fraction) -> None:
    assert law_from_json(DiscreteGaussian(value).to_json()) == DiscreteGaussian(value)
    assert law_from_json(DiscreteHuber(value, 1 / value).to_json()) == DiscreteHuber(
        value, 1 / value
    )


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"law": "cauchy"},
        {"law": "gaussian"},
        {"law": "gaussian", "sigma_squared": 4},
        {"law": "gaussian", "sigma_squared": "0.5"},
        {"law": "gaussian", "sigma_squared": "1e999999999"},
        {"law": "gaussian", "sigma_squared": "1/0"},
        {"law": "gaussian", "sigma_squared": "-1/2"},
        {"law": "gaussian", "sigma_squared": "1/2", "seed": 7},
        {"law": "binomial", "coins": "4"},
        {"law": "binomial", "coins": True},
    ],
)
def test_other_json_is_refused(value: dict[str, str | int]) -> None:
    with pytest.raises(InvalidQuery):
        law_from_json(value)


@pytest.mark.parametrize("value", [0.5, Fraction(0), Fraction(-1), Fraction(2**129), "1/2", True])
def test_parameters_must_be_exact_positive_and_bounded(value: Fraction) -> None:
    for make in (DiscreteGaussian, DiscreteLaplace, lambda v: DiscreteHuber(v, Fraction(1))):
        with pytest.raises(InvalidQuery, match=r"want a Fraction|more noise than can be drawn"):
            make(value)


@pytest.mark.parametrize("coins", [0, 1, 3, -2, 2.0, True])
def test_coins_must_be_even(coins: int) -> None:
    with pytest.raises(InvalidQuery, match="even whole number"):
        CentredBinomial(coins)


def test_whole_numbers_become_fractions() -> None:
    assert DiscreteGaussian(4) == DiscreteGaussian(Fraction(4))  # type: ignore[arg-type]


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_confidence_lies_between_zero_and_one(confidence: float) -> None:
    for law in (*SMALL_LAWS, NoNoise()):
        with pytest.raises(InvalidQuery, match="confidence"):
            law.half_width(confidence)
