"""zCDP conversions: golden values, order of strength, agreement with dp-accounting."""

from __future__ import annotations

import math

import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st

from sulq.beliefs.comparison import simple_zcdp_epsilon, zcdp_delta, zcdp_epsilon, zcdp_rho
from sulq.kernel.accounting.gaussian import gaussian_delta

rhos = st.floats(1e-5, 20)
deltas = st.floats(1e-15, 0.1)


@given(rhos, deltas)
def test_tight_is_never_looser_than_simple(rho: float, delta: float) -> None:
    assert zcdp_epsilon(rho, delta) <= simple_zcdp_epsilon(rho, delta) * (1 + 1e-9)


@given(rhos, st.floats(0.01, 50))
def test_tight_still_covers_the_gaussian_itself(rho: float, epsilon: float) -> None:
    assert zcdp_delta(rho, epsilon) >= gaussian_delta(math.sqrt(2 * rho), epsilon) * (1 - 1e-12)


@given(rhos, deltas)
def test_delta_and_epsilon_are_inverse(rho: float, delta: float) -> None:
    epsilon = zcdp_epsilon(rho, delta)
    if epsilon > 0:
        assert zcdp_delta(rho, epsilon) == pytest.approx(delta, rel=1e-6)


@given(st.floats(0.05, 20), deltas)
def test_rho_keeps_the_promise(epsilon: float, delta: float) -> None:
    rho = zcdp_rho(epsilon, delta)
    assert zcdp_epsilon(rho, delta) <= epsilon
    assert zcdp_epsilon(rho * 1.001, delta) > epsilon


@pytest.mark.parametrize(("rho", "delta"), [(0.1, 1e-6), (0.02, 1e-9), (1.5, 1e-5)])
def test_agrees_with_dp_accounting_on_a_fine_grid_of_orders(rho: float, delta: float) -> None:
    best = 1 + math.sqrt(math.log(1 / delta) / rho)
    orders = [1 + (best - 1) * (0.5 + i / 4000) for i in range(4000)]
    theirs, _ = rdp_privacy_accountant.compute_epsilon(orders, [a * rho for a in orders], delta)
    assert zcdp_epsilon(rho, delta) == pytest.approx(theirs, rel=1e-5)
    assert zcdp_epsilon(rho, delta) <= theirs * (1 + 1e-9)
