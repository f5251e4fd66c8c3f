"""The noise keeps the promise, and no less would."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.kernel.accounting.calibration import answer_loss, calibrate, huber_law, meaning
from sulq.kernel.accounting.gaussian import gaussian_delta
from sulq.kernel.accounting.loss import coupling_factor, coupling_slack
from sulq.kernel.noise.laws import CentredBinomial, DiscreteHuber, DiscreteLaplace
from sulq.kernel.schema.promise import Promise


def test_two_hundred_counts_at_one_and_a_millionth() -> None:
    assert calibrate(Promise(1, 1e-6, 200)).unit_standard_deviation <= 59.8


@given(
    st.fractions(Fraction(1, 100), 20),
    st.integers(1, 12),
    st.integers(1, 10**6),
)
@settings(max_examples=16)
def test_gaussian_noise_keeps_delta_with_the_set_aside(
    epsilon: Fraction, digits: int, queries: int
) -> None:
    promise = Promise(epsilon, Fraction(1, 10**digits), queries)
    calibration = calibrate(promise)
    assert calibration.slack_cap == promise.delta / 1000
    assert (calibration.unit_variance * 2**20).denominator == 1
    assert calibration.mu_squared == queries / calibration.unit_variance
    mu = math.sqrt(calibration.mu_squared) * (1 - 1e-15)
    kept = Fraction(gaussian_delta(mu, epsilon)) + calibration.slack_cap
    assert kept <= promise.delta * (1 + Fraction(1, 10**9))
    less = queries / (calibration.unit_variance * Fraction(999, 1000) - Fraction(1, 2**19))
    if less > 0:
        assert Fraction(gaussian_delta(math.sqrt(less), epsilon)) > promise.delta * Fraction(9, 10)


def test_the_set_aside_pays_for_a_million_coordinates_on_the_fine_grid() -> None:
    calibration = calibrate(Promise(1, 1e-6))
    variance = calibration.unit_variance * 2**60  # 2^30 steps per unit
    spent = 10**6 * coupling_factor(Fraction(1)) * coupling_slack(variance)
    assert spent < calibration.slack_cap


@given(st.fractions(Fraction(1, 100), 20), st.integers(1, 1000))
def test_laplace_spends_exactly_epsilon(epsilon: Fraction, queries: int) -> None:
    calibration = calibrate(Promise(epsilon, queries=queries))
    assert calibration.unit_scale == queries / epsilon  # S4.13
    assert calibration.slack_cap == 0
    assert calibration.unit_variance >= DiscreteLaplace(calibration.unit_scale).variance()


@pytest.mark.parametrize(
    ("epsilon", "delta", "queries"), [(1, 1e-6, 100), (1, 1e-6, 1), (0.5, 1e-5, 7), (10, 0.01, 1)]
)
def test_the_coins_are_the_fewest_that_keep_the_promise(
    epsilon: float, delta: float, queries: int
) -> None:
    law = calibrate(Promise(epsilon, delta, queries, "binomial")).unit_law
    assert isinstance(law, CentredBinomial)
    fewer = CentredBinomial(law.coins - 2)
    assert answer_loss(law, queries).delta(epsilon, queries) <= delta
    assert answer_loss(fewer, queries).delta(epsilon, queries) > delta


def test_very_many_coins_are_within_a_part_in_ten_thousand() -> None:
    law = calibrate(Promise(0.1, 1e-9, 100, "binomial")).unit_law
    assert isinstance(law, CentredBinomial)
    fewer = CentredBinomial(law.coins * 9999 // 20000 * 2)
    assert answer_loss(law, 100).delta(0.1, 100) <= 1e-9
    assert answer_loss(fewer, 100).delta(0.1, 100) > 1e-9


@pytest.mark.sample(1)
@pytest.mark.parametrize("queries", [1, 3, 30])
def test_the_stitched_law_is_kept_and_its_neighbour_is_not(queries: int) -> None:
    law = huber_law(queries, Fraction(1), Fraction(1, 10**6))
    assert answer_loss(law, queries).delta(1, queries) <= 1e-6
    smaller = DiscreteHuber(law.spread * Fraction(998, 1000), law.knee * Fraction(998, 1000))
    assert answer_loss(smaller, queries).delta(1, queries) > 1e-6


def test_meaning_of_a_gaussian_promise() -> None:
    spelled = meaning(calibrate(Promise(1, 1e-6, 100)))
    assert (spelled.epsilon, spelled.delta) == (1, Fraction(1, 10**6))
    assert spelled.tail == pytest.approx(2.010004046723048e-05, rel=2e-3)  # TB.2, set-aside apart
    assert spelled.rho is not None
    assert spelled.mu_squared == 2 * spelled.rho
    rho = float(spelled.rho)
    chernoff = math.exp(-((1 - rho) ** 2) / (4 * rho))
    assert chernoff <= spelled.tail_any_belief <= 1.002 * chernoff  # type: ignore[operator]
    assert spelled.hard_cap is None


def test_meaning_of_a_loose_gaussian_promise_stays_a_probability() -> None:
    spelled = meaning(calibrate(Promise(1, 0.5, 1)))
    assert 0 < spelled.tail <= 1
    assert spelled.tail_any_belief == 1.0


def test_meaning_of_a_pure_promise_has_no_tail() -> None:
    spelled = meaning(calibrate(Promise(2)))
    assert (spelled.tail, spelled.tail_any_belief, spelled.hard_cap) == (0.0, 0.0, 2)


def test_meaning_of_coins_bounds_the_true_tail() -> None:
    """One answer of 80 coins: Pr[log k/(R-k+1) > 1] by enumeration, B = k - 1."""
    calibration = calibrate(Promise(1, 1e-6, 1, "binomial"))
    assert isinstance(calibration.unit_law, CentredBinomial)
    coins = calibration.unit_law.coins
    assert coins == 80
    exact = (
        sum(
            math.comb(coins, k - 1)
            for k in range(1, coins + 2)
            if k == coins + 1 or k > math.e * (coins - k + 1)
        )
        / 2**coins
    )
    spelled = meaning(calibration)
    assert exact <= spelled.tail <= 20 * exact
    assert spelled.hard_cap is None


def test_meaning_of_the_stitched_law_has_a_hard_cap() -> None:
    calibration = calibrate(Promise(1, 1e-6, 10, "huber"))
    assert isinstance(calibration.unit_law, DiscreteHuber)
    spelled = meaning(calibration)
    assert spelled.hard_cap is not None
    loss = answer_loss(calibration.unit_law, 10)
    assert loss.delta(float(spelled.hard_cap) * (1 + 2e-3), 10) < 1e-290
    assert loss.delta(float(spelled.hard_cap) * 0.8, 10) > 1e-290
    single = meaning(calibrate(Promise(1, 1e-6, 1, "huber")))
    assert single.hard_cap is not None
    assert (single.tail == 0) == (single.hard_cap <= 1)


def test_every_figure_the_ledger_uses_is_exact() -> None:
    promises = [Promise(1, 1e-6), Promise(1), Promise(1, 1e-6, 5, "binomial")]
    for calibration in map(calibrate, [*promises, Promise(1, 1e-6, 5, "huber")]):
        assert type(calibration.credits) is int
        for figure in (calibration.unit_variance, calibration.unit_scale, calibration.slack_cap):
            assert isinstance(figure, Fraction)
