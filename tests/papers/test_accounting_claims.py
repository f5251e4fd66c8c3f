"""The papers' numbers about noise and loss, recomputed; each test names its claim."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sulq.beliefs.comparison import simple_zcdp_epsilon, zcdp_delta, zcdp_epsilon
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.accounting.gaussian import gaussian_delta, gaussian_mu, tail_delta, tail_mu
from sulq.kernel.accounting.loss import Loss, composed_delta, composed_epsilon, coupling_slack
from sulq.kernel.accounting.pld import Law, loss_of
from sulq.kernel.noise.laws import CentredBinomial, DiscreteGaussian, DiscreteHuber, DiscreteLaplace
from sulq.kernel.schema.promise import Promise

MILLIONTH = Fraction(1, 10**6)
LOG = math.log(10**6)


def near(value: float, relative: float = 1e-6) -> object:
    return pytest.approx(value, rel=relative)


def test_tb1_gaussian_profile() -> None:
    assert gaussian_delta(1, 1) == near(0.12693673750664392)
    assert float(gaussian_mu(1, MILLIONTH)) == near(0.2367043806634363)
    assert float(gaussian_mu(Fraction(1, 2), Fraction(1, 10**9))) == near(0.09368649681784169)
    assert gaussian_delta(0.2, 0.5) == near(0.0005125360831583336)  # sigma^2 = 25


def test_tb2_tail_and_hockey_stick_are_different_guarantees() -> None:
    mu = gaussian_mu(1, MILLIONTH)
    assert tail_delta(mu, 1) == near(2.010004046723048e-05)
    assert tail_delta(mu, 1) > 20 * gaussian_delta(mu, 1)


def test_tb3_zcdp() -> None:
    assert zcdp_delta(0.1, 1) == near(0.008933245771818369)
    assert zcdp_epsilon(0.1, MILLIONTH) == near(2.141938928385474)
    assert simple_zcdp_epsilon(0.1, MILLIONTH) == near(2.4507880004767997)


@pytest.mark.parametrize(
    ("law", "shift", "epsilon", "delta"),
    [
        (DiscreteGaussian(Fraction(25)), 1, 0.5, 0.0004977630312883066),  # TB.4
        (DiscreteGaussian(Fraction(1)), 1, 1.0, 0.14135133940562192),
        (DiscreteGaussian(Fraction(400)), 4, 0.5, 0.0005116035904145254),
        (CentredBinomial(1000), 1, 0.1, 0.0016188882184066736),  # S0.5
        (CentredBinomial(1000), 1, 0.2, 1.5329531451458052e-05),
        (DiscreteHuber(Fraction(10), Fraction(20)), 1, 0.1, 0.008245858757799677),  # S4.14
    ],
)
def test_tb4_s05_s414_exact_laws(law: Law, shift: int, epsilon: float, delta: float) -> None:
    ours = loss_of(law, shift, step=epsilon / 4096).delta(epsilon)
    assert ours == near(delta)
    assert ours >= delta * (1 - 1e-12)


def test_tb4_the_continuous_profile_does_not_cover_the_discrete_law() -> None:
    coarse = loss_of(DiscreteGaussian(Fraction(25))).delta(1.16421)
    assert coarse / gaussian_delta(0.2, 1.16421) == near(1.060975692479071, 1e-4)


def test_tb5_composition() -> None:
    coins = loss_of(CentredBinomial(1000), fineness=4096)
    assert coins.delta(1, 10) == near(1.7839844803997985e-08)  # S0.5
    stitched = loss_of(DiscreteHuber(Fraction(10), Fraction(20)), step=1 / 1000)
    assert stitched.delta(1, 10) == near(5.553279e-05)  # S4.14, its losses lie on this grid


def total_variation(sigma: float) -> float:
    """Between the discrete Gaussian and the rounded normal, both in grid steps."""
    reach = math.ceil(12 * sigma)
    t = np.arange(-reach, reach + 1)
    weights = np.exp(-(t**2) / (2 * sigma**2))
    edges = np.array([math.erfc((k - 0.5) / (sigma * math.sqrt(2))) / 2 for k in range(reach + 2)])
    cells = edges[:-1] - edges[1:]
    rounded = cells[np.abs(t)]
    return float(np.abs(weights / weights.sum() - rounded).sum() / 2)


def test_tb8_the_slack_covers_the_distance() -> None:
    """Swept where it is not proved: from 25 steps on docs/proofs/accounting.md shows it."""
    assert total_variation(1.0) == near(0.0164981, 1e-5)
    assert total_variation(10.0) * 100 == near(0.0201258, 1e-5)
    for sigma in np.arange(1, 26, 0.05):
        assert total_variation(float(sigma)) <= coupling_slack(Fraction(float(sigma)) ** 2)


def test_g1_prices_and_refusal_at_the_cap() -> None:
    """rho prices .005, .01, .02 against a cap of .5: spent after 20 + 20 + 10, then nothing."""
    unit = Fraction(1, 2)
    spent, cap = Loss.zero(), Loss.cap(unit)
    for count, variance in ((20, 100), (20, 50), (10, 25)):
        for _ in range(count):
            spent += Loss.of(unit / variance)
            rounding = Loss(50, 0)  # one step per price, rounded up
            assert spent.within(cap + rounding)
    assert float(spent.credits_fraction) == near(0.5)
    assert not (spent + Loss.of(unit / 100)).within(cap)
    assert simple_zcdp_epsilon(Fraction(1, 2), MILLIONTH) == near(5.756521769756932)


def test_s04_the_standard_deviation_of_the_coins() -> None:
    assert CentredBinomial(400).standard_deviation() == 10


def test_s05_fewest_coins() -> None:
    law = calibrate(Promise(1, 1e-6, 100, "binomial")).unit_law
    assert law == CentredBinomial(7140)
    gaussian = gaussian_delta(math.sqrt(4 / 1000), 0.2)
    assert gaussian == near(1.4876946851305516e-05)
    assert loss_of(CentredBinomial(1000)).delta(0.2) > gaussian  # coins cost more


def test_s41_theorem_1_as_printed_and_repaired() -> None:
    printed = 2 * 100 * LOG
    mu = math.sqrt(100 / printed)
    assert printed == near(2763.1021115928547)
    assert tail_delta(mu, 1) == near(1.2255370428592125e-07)
    assert gaussian_delta(mu, 1) == near(4.091192042587508e-09)
    assert 1 + 100 / (2 * printed) == near(1.0180956034126354)
    assert zcdp_epsilon(mu * mu / 2, MILLIONTH) == near(0.8530659767979271)
    assert float(100 / tail_mu(1, MILLIONTH) ** 2) == near(2358.44424515199)
    repaired = 100 * (math.sqrt(LOG + 1) + math.sqrt(LOG)) ** 2 / 2
    assert repaired == near(2862.2286663543987)
    assert simple_zcdp_epsilon(50 / repaired, MILLIONTH) == near(1)


@pytest.mark.parametrize(
    ("epsilon", "delta", "tail", "hockey_stick"),
    [
        (4.0, 0.1, 0.11237675993701651, 0.055476800848287634),
        (20.0, 1e-6, 0.0003980846662979804, 0.00020082896380042988),
        (2 * LOG, 1e-6, 0.004291133421581347, 0.0027157162306752167),
    ],
)
def test_s41_theorem_1_is_false_for_large_epsilon(
    epsilon: float, delta: float, tail: float, hockey_stick: float
) -> None:
    mu = epsilon / math.sqrt(2 * math.log(1 / delta))
    assert tail_delta(mu, epsilon) == near(tail)
    assert gaussian_delta(mu, epsilon) == near(hockey_stick)
    assert tail > delta


def test_s41_largest_epsilon_of_the_printed_theorem() -> None:
    edge = 5.28908551141837
    mu = edge / math.sqrt(2 * LOG)
    assert tail_delta(mu, edge) == near(1e-6)


def test_s43_the_noise_grows_with_the_root_of_the_questions() -> None:
    few, many = (calibrate(Promise(1, 1e-6, count)) for count in (100, 10_000))
    assert many.unit_standard_deviation == near(10 * few.unit_standard_deviation)


def test_s413_pure_laplace() -> None:
    assert calibrate(Promise(1, queries=10)).unit_variance == 200
    mu = float(gaussian_mu(1, MILLIONTH))
    assert 1 / (2 * mu**2) == near(8.923955858961866)  # 2 T^2 = T / mu^2


def test_s414_the_stitched_law() -> None:
    law = DiscreteHuber(Fraction(10), Fraction(20))
    assert law.variance() == near(108.03045246236005)
    assert law.pmf(0) == near(0.03955835337819247)
    loss = loss_of(law, step=1 / 1000)
    assert loss.delta(0.2 + 1e-9) < 1e-11  # e0 = c / s^2 = 0.2 is never passed
    assert loss.delta(0.19) > 1e-4


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("queries", "knee", "variance", "cap"),
    [
        (10, Fraction(7, 4), 166.11475158747294, 1.4624130706008522),
        (20, Fraction(2), 350.63537917441175, 2.2202671750926446),
        (50, Fraction(5, 2), 890.2957261649149, 4.227846157172315),
        (100, Fraction(3), 1784.1109216424932, 7.115294261124945),
    ],
)
def test_s415_the_stitched_law_beats_the_gaussian(
    queries: int, knee: Fraction, variance: float, cap: float
) -> None:
    """The table is of the continuous law; whole-number noise needs the same to 1e-3."""
    law = calibrate(Promise(1, 1e-6, queries, "huber")).unit_law
    assert isinstance(law, DiscreteHuber)
    assert law.knee == knee * law.spread
    assert law.variance() == near(variance, 1e-3)
    assert float(queries * law.knee / law.spread**2) == near(cap, 1e-3)
    assert law.variance() < queries / gaussian_mu(1, MILLIONTH) ** 2


def test_s415_one_question_on_whole_numbers_is_not_the_continuous_row() -> None:
    """Continuous: 2.244 at knee 1. On whole numbers a knee below 1 is Laplace but for 0."""
    law = calibrate(Promise(1, 1e-6, 1, "huber")).unit_law
    assert isinstance(law, DiscreteHuber)
    assert law.knee < 1
    assert DiscreteLaplace(Fraction(1)).variance() < law.variance() < 2.2444373791782195


def test_s25_composition_of_pure_answers() -> None:
    tenth = Fraction(1, 10)
    assert composed_delta(10, tenth, 0.5) == near(0.009929626917388853)
    assert composed_epsilon(10, tenth, MILLIONTH) == near(0.9993709057217588)
    assert composed_epsilon(100, tenth, MILLIONTH) == near(4.774567588107986)
    assert zcdp_epsilon(100 * tenth**2 / 2, MILLIONTH) == near(5.221534444530168)


def test_s25_geometric_noise_is_the_worst_pure_mechanism() -> None:
    """By one step its loss is +-eps only, so it meets the optimal composition exactly."""
    ours = loss_of(DiscreteLaplace(Fraction(10))).epsilon(1e-6, 100)
    assert ours == near(4.774567588107986)


def test_s26_the_discrete_laplace() -> None:
    assert DiscreteLaplace(Fraction(10)).standard_deviation() == near(14.136244785430435)
    assert DiscreteLaplace(Fraction(1)).standard_deviation() == near(1.3569624860015788)
    assert DiscreteLaplace(Fraction(1)).pmf(0) == near(math.tanh(0.5))


def test_m6_a_fixed_split_adds() -> None:
    """(e1, 0) and (e2, delta) as the product calibrates them: a Laplace and a Gaussian answer of
    one table, every pair of outcomes, at e1 + e2. And no noise is there for nothing."""
    steps = 16  # of a unit: the Gaussian on a fine grid
    for first, second, delta in ((0.5, 1, "1e-3"), (1, 0.5, "1e-2"), (2, 2, "1e-4")):
        pure = DiscreteLaplace(calibrate(Promise(first, queries=1)).unit_scale)
        promise = Promise(second, delta, 1)
        noisy = DiscreteGaussian(calibrate(promise).unit_variance * steps**2)
        one = np.array([[pure.pmf(t + s) for t in range(-60, 61)] for s in (0, 1)])
        reach = 8 * math.isqrt(int(noisy.sigma_squared)) + steps
        two = np.array([[noisy.pmf(t + s) for t in range(-reach, reach)] for s in (0, steps)])
        here, there = (np.outer(one[s], two[s]) for s in (0, 1))

        def lost(epsilon: float, here: Any = here, there: Any = there) -> float:
            return float(np.maximum(here - math.exp(epsilon) * there, 0).sum())

        assert lost(first + second) <= float(promise.delta) < lost(0.9 * (first + second))
