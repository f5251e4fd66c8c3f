"""Privacy loss distributions: equal to the direct sum where exact, never below it anywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.errors import InvalidQuery
from sulq.kernel.accounting.gaussian import gaussian_delta
from sulq.kernel.accounting.loss import composed_delta, composed_epsilon
from sulq.kernel.accounting.pld import Law, log_weights, loss_of
from sulq.kernel.noise.laws import (
    CentredBinomial,
    DiscreteGaussian,
    DiscreteHuber,
    DiscreteLaplace,
    NoNoise,
)

LAWS: list[Law] = [
    DiscreteGaussian(Fraction(1)),
    DiscreteGaussian(Fraction(25)),
    DiscreteLaplace(Fraction(7, 3)),
    CentredBinomial(2),
    CentredBinomial(60),
    CentredBinomial(5000),
    DiscreteHuber(Fraction(10), Fraction(20)),
    DiscreteHuber(Fraction(1), Fraction(1, 2)),
]


def hockey_stick(law: Law, shift: int, epsilon: float, reach: int = 400) -> float:
    """sum over outcomes of (P(y) - e^epsilon P(y + shift))_+."""
    mass = [math.exp(law.log_pmf(t)) for t in range(reach + shift + 1)]
    return math.fsum(
        max(0.0, mass[abs(y)] - math.exp(epsilon) * mass[abs(y + shift)])
        for y in range(-reach, reach + 1)
    )


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_our_weights_are_the_law(law: Law) -> None:
    falls = log_weights(law)
    for t in range(0, len(falls), max(1, len(falls) // 50)):
        assert falls[t] == pytest.approx(law.log_pmf(t) - law.log_pmf(0), rel=1e-10, abs=1e-10)
    assert falls[-1] >= -700
    assert law.log_pmf(len(falls)) - law.log_pmf(0) < -700


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("shift", [1, 3])
def test_one_answer_equals_the_direct_sum_at_grid_points(law: Law, shift: int) -> None:
    loss = loss_of(law, shift)
    for index in (0, 1, 7, 100, 400, 700):
        epsilon = index * loss.step
        exact = hockey_stick(law, shift, epsilon)
        assert loss.delta(epsilon) == pytest.approx(exact, rel=1e-6, abs=1e-10)


def test_a_law_whose_only_finite_loss_is_zero() -> None:
    """Two coins moved by 2 meet in one value of equal mass: delta is the mass of the others."""
    assert 0.75 <= loss_of(CentredBinomial(2), 2).delta(1.0) <= 0.75 * (1 + 1e-10)


@given(
    st.sampled_from(LAWS),
    st.integers(1, 4),
    st.floats(0, 3),
    st.sampled_from([0.003, 0.02, 0.11, None]),
)
@settings(max_examples=24)
def test_one_answer_is_never_below_the_direct_sum(
    law: Law, shift: int, epsilon: float, step: float | None
) -> None:
    exact = hockey_stick(law, shift, epsilon)
    assert loss_of(law, shift, step=step).delta(epsilon) >= exact * (1 - 1e-12) - 1e-15


def composed_directly(law: Law, times: int, epsilon: float) -> float:
    """Every tuple of outcomes, no grid, no FFT."""
    weights = np.exp([law.log_pmf(t) for t in range(200)])
    support = np.arange(-150, 151)
    here = weights[np.abs(support)]
    there = weights[np.abs(support + 1)]
    p, q = np.array([1.0]), np.array([1.0])
    for _ in range(times):
        p, q = np.outer(p, here).ravel(), np.outer(q, there).ravel()
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("law", [*LAWS[:3], CentredBinomial(60), LAWS[-1]], ids=str)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.8, 2.0])
def test_two_answers_by_brute_force(law: Law, epsilon: float) -> None:
    exact = composed_directly(law, 2, epsilon)
    ours = loss_of(law, fineness=4096).delta(epsilon, 2)
    assert exact * (1 - 1e-9) <= ours <= exact * (1 + 1e-4) + 1e-12


def test_sixty_coins_twice() -> None:
    exact = 0.0028257604359459903  # S0.5, enumerated
    assert composed_directly(CentredBinomial(60), 2, 0.8) == pytest.approx(exact, rel=1e-9)
    ours = loss_of(CentredBinomial(60), fineness=2048).delta(0.8, 2)
    assert exact <= ours <= exact * (1 + 1e-6)


@pytest.mark.sample(1)
@pytest.mark.parametrize("times", [2, 10, 100])
def test_laplace_by_one_step_is_randomised_response(times: int) -> None:
    """Its loss is +-1/scale and nothing else, so the optimal composition is exact for it."""
    loss = loss_of(DiscreteLaplace(Fraction(10)))
    exact = composed_epsilon(times, Fraction(1, 10), Fraction(1, 10**6))
    assert loss.epsilon(1e-6, times) == pytest.approx(exact, rel=1e-8)
    assert loss.delta(0.05 * times, times) >= composed_delta(times, 0.1, 0.05 * times) * (1 - 1e-12)


@pytest.mark.parametrize(("epsilon", "times"), [(9, 100), (12, 100), (1, 10), (25, 400)])
def test_deep_tails_survive_the_fourier_transform(epsilon: float, times: int) -> None:
    """A fine discrete Gaussian against its continuous profile: down to 1e-100 and below."""
    law = DiscreteGaussian(Fraction(10_000))
    exact = gaussian_delta(math.sqrt(times) / 10, epsilon)
    ours = loss_of(law, 10).delta(epsilon, times)
    assert exact * (1 - 1e-4) <= ours <= exact * (1 + 2e-3)


@pytest.mark.parametrize(("sigma", "times"), [(5.0, 1), (5.0, 20), (20.0, 100)])
def test_the_discrete_gaussian_of_dp_accounting(sigma: float, times: int) -> None:
    """It rounds every loss up to its grid: true values lie between its two readings."""
    interval = 1e-4
    theirs = privacy_loss_distribution.from_discrete_gaussian_mechanism(
        sigma, value_discretization_interval=interval
    ).self_compose(times)
    ours = loss_of(DiscreteGaussian(Fraction(sigma) ** 2))
    for epsilon in (0.5, 1.0, 2.0):
        above = theirs.get_delta_for_epsilon(epsilon)
        below = theirs.get_delta_for_epsilon(epsilon + times * interval)
        assert (
            below * (1 - 1e-6) - 1e-12 <= ours.delta(epsilon, times) <= above * (1 + 1e-6) + 1e-12
        )


@pytest.mark.parametrize("times", [1, 30])
def test_the_discrete_laplace_of_dp_accounting(times: int) -> None:
    theirs = privacy_loss_distribution.from_discrete_laplace_mechanism(
        0.2, sensitivity=2, value_discretization_interval=1e-4
    ).self_compose(times)
    ours = loss_of(DiscreteLaplace(Fraction(5)), 2)
    for epsilon in (0.1, 0.3, 2.0):
        delta = theirs.get_delta_for_epsilon(epsilon)
        if delta > 1e-12:
            assert ours.delta(epsilon, times) == pytest.approx(delta, rel=2e-3)


def test_a_coarser_grid_of_losses_never_promises_more() -> None:
    law = CentredBinomial(1000)
    deltas = [loss_of(law, fineness=fineness).delta(1, 10) for fineness in (4096, 512, 64, 8)]
    assert deltas == sorted(deltas)


@given(st.sampled_from(LAWS), st.integers(1, 30), st.floats(1e-9, 0.3))
@settings(max_examples=10)
def test_the_reported_epsilon_keeps_delta(law: Law, times: int, delta: float) -> None:
    loss = loss_of(law, fineness=32)
    epsilon = loss.epsilon(delta, times)
    if epsilon < math.inf:
        assert loss.delta(epsilon, times) <= delta
    else:
        assert -math.expm1(times * math.log1p(-loss.infinity)) > delta


def test_finite_support_never_gives_pure_privacy() -> None:
    loss = loss_of(CentredBinomial(20))
    assert loss.delta(500.0) == pytest.approx(2**-20, rel=1e-9)
    assert loss.delta(500.0, 10) == pytest.approx(10 * 2**-20, rel=1e-4)
    assert loss.epsilon(1e-7) == math.inf


def test_no_noise_hides_nothing() -> None:
    assert loss_of(NoNoise()).delta(10.0) == 1.0
    assert loss_of(NoNoise()).delta(10.0, 5) == 1.0


@dataclass(frozen=True)
class OwnLaplace:
    """A law known only by its log_pmf."""

    def log_pmf(self, t: int) -> float:
        return math.log(math.tanh(0.25)) - abs(t) / 2


def test_any_law_with_a_log_pmf_will_do() -> None:
    known, own = loss_of(DiscreteLaplace(Fraction(2))), loss_of(OwnLaplace())
    assert own.delta(0.2) == pytest.approx(known.delta(0.2), rel=1e-9)
    assert own.delta(1.5, 7) == pytest.approx(known.delta(1.5, 7), rel=1e-6)


def test_a_law_too_wide_to_sum_is_refused_with_a_remedy() -> None:
    with pytest.raises(InvalidQuery, match="gaussian"):
        loss_of(DiscreteGaussian(Fraction(10**14)))
