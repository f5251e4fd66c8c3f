"""What a pure answer costs in either currency, and the noise of alerts and choices."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.errors import InvalidQuery
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.accounting.gaussian import gaussian_mu, pure_epsilon, pure_mu, tail_quantile
from sulq.kernel.accounting.mechanisms import (
    above_threshold,
    credits_for,
    epsilon_for,
    noisy_choice,
    pure_losses,
)
from sulq.kernel.schema.promise import Promise

GAUSSIAN = calibrate(Promise(1, "1e-6", 100))
LAPLACE = calibrate(Promise(1, queries=100))
AMOUNTS = st.fractions(min_value=Fraction(1, 1000), max_value=100)


@pytest.mark.parametrize(
    ("mu", "epsilon"),
    [(0.1253090122, 0.1), (0.6238925921, 0.5), (1.2320353853, 1.0), (3.3406837122, 3.0)],
)
def test_golden_values_read_backwards(mu: float, epsilon: float) -> None:
    assert float(pure_epsilon(mu)) == pytest.approx(epsilon, abs=2e-10)  # M.4


def test_the_whole_of_a_usual_promise_buys_little() -> None:
    """M.4: inside mu(1, 1e-6) = 0.2367 there is room for epsilon = 0.189."""
    mu = gaussian_mu(1, Fraction(1, 10**6))
    assert float(pure_epsilon(mu)) == pytest.approx(0.189, abs=5e-4)
    assert float(epsilon_for(Fraction(100), GAUSSIAN)) == pytest.approx(0.189, abs=5e-4)


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=30))
def test_there_and_back_is_on_the_safe_side(mu: Fraction) -> None:
    epsilon = pure_epsilon(mu)
    assert epsilon > 0
    assert pure_mu(epsilon) <= mu * (1 + Fraction(1, 2**36))
    assert pure_mu(epsilon * (1 + Fraction(1, 2**30))) > mu


def test_nothing_buys_nothing() -> None:
    assert pure_epsilon(0) == 0
    for calibration in (GAUSSIAN, LAPLACE):
        with pytest.raises(InvalidQuery, match="too few"):
            epsilon_for(Fraction(1, 10**60), calibration)


@given(AMOUNTS)
def test_laplace_credits_are_epsilon(credits: Fraction) -> None:
    assert epsilon_for(credits, LAPLACE) == credits / 100  # S4.13
    assert credits_for(credits / 100, LAPLACE) == credits


@given(AMOUNTS)
def test_what_credits_buy_costs_no_more(credits: Fraction) -> None:
    price = credits_for(epsilon_for(credits, GAUSSIAN), GAUSSIAN)
    assert price <= credits * (1 + Fraction(1, 2**36))  # pure_mu rounds up by so much
    assert price >= credits * (1 - Fraction(1, 2**30))


@pytest.mark.parametrize("noise", ["binomial", "huber"])
def test_laws_of_fixed_blocks_take_no_pure_answers(noise: str) -> None:
    with pytest.raises(InvalidQuery, match=r"G\.1\.5"):
        epsilon_for(Fraction(1), calibrate(Promise(1, "1e-6", 10, noise)))


def test_accounts_pay_for_how_far_their_rows_reach() -> None:
    widths = [(Fraction(1), (0,)), (Fraction(1, 2), (1, 2)), (Fraction(0), (3,))]
    (full, _), (half, numbers) = pure_losses(widths, Fraction(10), 1, LAPLACE)
    assert (full.credits_fraction, half.credits_fraction, numbers) == (10, 5, (1, 2))
    (full, _), (half, _) = pure_losses(widths, Fraction(10), 1, GAUSSIAN)
    assert full.credits_fraction == 10
    assert float(half.credits_fraction) == pytest.approx(2.5, rel=1e-3)  # mu is nearly linear
    (_, _), (half, _) = pure_losses(widths, Fraction(10), 5, GAUSSIAN)
    assert float(half.credits_fraction) == pytest.approx(2.5, rel=1e-3)


@given(AMOUNTS, st.integers(1, 1000), st.integers(1, 2**40))
def test_an_alerts_parts_add_up_to_its_price(epsilon: Fraction, firings: int, width: int) -> None:
    first, fresh = above_threshold(Fraction(width), epsilon, firings)
    assert width / first.scale + 2 * firings * width / fresh.scale == epsilon  # M.2


def test_noise_of_a_choice() -> None:
    assert noisy_choice(Fraction(3), Fraction(1, 2), one_way=False).scale == 12  # M.3
    assert noisy_choice(Fraction(3), Fraction(1, 2), one_way=True).scale == 6


@pytest.mark.parametrize(("delta", "z"), [("1/1000000", 4.7534243088), ("1/10", 1.2815515655)])
def test_quantiles_of_the_normal_tail(delta: str, z: float) -> None:
    assert float(tail_quantile(Fraction(delta))) == pytest.approx(z, abs=1e-9)
