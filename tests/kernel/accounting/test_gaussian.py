"""The Gaussian profile is right in every tail and always errs to the safe side."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr

from sulq.kernel.accounting.gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    pure_mu,
    tail_delta,
    tail_mu,
)

mpmath = pytest.importorskip("mpmath")


def reference(mu: float, epsilon: float) -> object:
    """Balle-Wang with 150 digits and another library's erfc."""
    with mpmath.workdps(150):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        root = mpmath.sqrt(2)
        return (
            mpmath.erfc((e / m - m / 2) / root)
            - mpmath.exp(e) * mpmath.erfc((e / m + m / 2) / root)
        ) / 2


@pytest.mark.parametrize("mu", [1e-3, 0.02, 0.2367, 1.0, 4.9, 30.0, 100.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.01, 0.5, 1.0, 10.0, 100.0, 1000.0])
def test_delta_matches_150_digits_and_is_never_below(mu: float, epsilon: float) -> None:
    exact = reference(mu, epsilon)
    ours = gaussian_delta(mu, epsilon)
    assert mpmath.mpf(ours) >= exact
    if exact > 1e-307:
        assert mpmath.mpf(ours) <= exact * (1 + mpmath.mpf(2) ** -51)
    else:
        assert 0 < ours < 1e-300


def test_deep_tails_end_in_the_smallest_float_not_in_zero() -> None:
    assert gaussian_delta(1e-6, 1000) == 5e-324
    assert gaussian_delta(0, 1) == 0.0


@given(st.floats(0.05, 20), st.floats(0, 20))
def test_delta_agrees_with_scipy(mu: float, epsilon: float) -> None:
    first = ndtr(mu / 2 - epsilon / mu)
    expected = first - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))
    assert gaussian_delta(mu, epsilon) == pytest.approx(
        expected, rel=1e-9, abs=1e-11 * first + 1e-300
    )


@given(st.floats(1e-3, 50), st.floats(1.0001, 3), st.floats(0, 200))
def test_delta_rises_with_mu_and_falls_with_epsilon(
    mu: float, factor: float, epsilon: float
) -> None:
    here = gaussian_delta(mu, epsilon)
    assert gaussian_delta(mu * factor, epsilon) >= here
    assert gaussian_delta(mu, epsilon + factor) <= here


@given(
    st.fractions(Fraction(1, 1000), 1000),
    st.integers(1, 300),
    st.fractions(Fraction(1, 9), 1),
)
def test_mu_keeps_the_promise_and_hardly_more_would_not(
    epsilon: Fraction, digits: int, lead: Fraction
) -> None:
    delta = lead / 10**digits
    mu = gaussian_mu(epsilon, delta)
    assert isinstance(mu, Fraction)
    assert Fraction(gaussian_delta(mu, epsilon)) <= delta * (1 + Fraction(1, 2**50))
    more = mu * (1 + Fraction(1, 2**40))
    assert Fraction(gaussian_delta(more, epsilon)) > delta


@given(st.floats(0.01, 20), st.floats(0.01, 10))
def test_there_and_back_is_on_the_safe_side(mu: float, epsilon: float) -> None:
    delta = gaussian_delta(mu, epsilon)
    if 1e-290 < delta < 1 - 1e-6:
        back = gaussian_mu(Fraction(epsilon), Fraction(delta))
        assert float(back) == pytest.approx(mu, rel=1e-6)
        safe = gaussian_epsilon(mu, delta)
        assert safe >= epsilon * (1 - 1e-9)
        assert gaussian_delta(mu, safe) <= delta


@given(st.floats(0.01, 20), st.floats(0, 50))
def test_the_tail_is_the_larger_guarantee(mu: float, epsilon: float) -> None:
    assert tail_delta(mu, epsilon) >= gaussian_delta(mu, epsilon)


@given(st.fractions(Fraction(1, 100), 50), st.integers(1, 200))
def test_the_largest_mu_of_the_tail_is_its_closed_form(epsilon: Fraction, digits: int) -> None:
    mu = tail_mu(epsilon, Fraction(1, 2 * 10**digits))
    with mpmath.workdps(60):
        z = mpmath.mpf(float(epsilon / mu - mu / 2))
        assert mpmath.erfc(z / mpmath.sqrt(2)) / 2 == pytest.approx(0.5 * 10.0**-digits, rel=1e-11)


@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [("0.1", 0.1253090122), ("0.5", 0.6238925921), ("1", 1.2320353853), ("3", 3.3406837122)],
)
def test_a_pure_answer_inside_a_gaussian_ledger(epsilon: str, mu: float) -> None:
    exact = Fraction(epsilon)
    price = pure_mu(exact)
    assert float(price) == pytest.approx(mu, rel=1e-9)  # M.4
    # G_mu must lie under randomised response: the kink is where they meet
    right = math.exp(exact) / (1 + math.exp(exact))
    assert ndtr(float(price) / 2) >= right * (1 - 1e-15)
