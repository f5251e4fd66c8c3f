"""What a release made elsewhere costs: both proved ways, and what is left keeps the promise."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.errors import InvalidQuery, Refused
from sulq.kernel.accounting.calibration import SET_ASIDE, calibrate
from sulq.kernel.accounting.gaussian import gaussian_delta
from sulq.kernel.accounting.outside import NONE, Taken, outside_price, total
from sulq.kernel.schema.promise import Promise

ZERO = Fraction(0)
GAUSS = calibrate(Promise(1, "1e-6", 100))
LAPLACE = calibrate(Promise(1))


def test_known_prices():
    assert outside_price(Fraction(1, 2), ZERO, NONE, LAPLACE).credits == 50  # S4.13
    # M.4: mu(.1) = 0.1253090122 against mu(1, .999e-6)^2 = 100 / R
    small = outside_price(Fraction(1, 10), ZERO, NONE, GAUSS)
    paid = 0.1253090122**2 * float(GAUSS.unit_variance)
    assert float(small.credits + small.stands) <= paid
    # 100 (1 - mu(.9)^2 / mu(1)^2) at .999 delta
    assert float(small.stands) == pytest.approx(17.77004, abs=1e-4)
    tiny = outside_price(Fraction(1, 100), ZERO, NONE, GAUSS)
    assert tiny.taken == NONE  # here the pure price is less
    assert float(tiny.credits) == pytest.approx(0.2803806, abs=1e-6)
    by_delta = outside_price(ZERO, Fraction(1, 10**7), NONE, GAUSS)
    assert (by_delta.credits, by_delta.taken) == (0, Taken(ZERO, Fraction(1, 10**7)))
    assert float(by_delta.stands) == pytest.approx(1.01479, abs=1e-4)


releases = st.tuples(
    st.fractions(0, Fraction(1, 2), max_denominator=50),
    st.sampled_from([ZERO, Fraction(1, 10**8), Fraction(3, 10**7)]),
)


@settings(max_examples=16, deadline=None)
@given(st.lists(releases, max_size=4))
def test_what_is_left_keeps_the_promise_with_everything_taken(found):
    """All remaining credits spent: (eps - e, .999 delta - d) still holds, or nothing is left."""
    before, spent, lost = NONE, ZERO, ZERO
    for epsilon, delta in found:
        price = outside_price(epsilon, delta, before, GAUSS)
        before = Taken(before.epsilon + price.taken.epsilon, before.delta + price.taken.delta)
        spent += price.credits + price.stands
        lost += price.credits
        assert price.stands >= 0
    left = GAUSS.credits - spent
    if left <= 0:
        return
    mu = Fraction(float((lost + left) / GAUSS.unit_variance) ** 0.5)
    epsilon = GAUSS.promise.epsilon - before.epsilon
    assert epsilon > 0
    allowed = GAUSS.promise.delta * (1 - SET_ASIDE) - before.delta
    assert gaussian_delta(mu, epsilon) <= allowed * (1 + Fraction(1, 10**6))


def test_two_releases_cost_what_their_sum_costs_at_once():
    one, half = Fraction(4, 10**7), Fraction(2, 10**7)
    at_once = outside_price(ZERO, one, NONE, GAUSS).stands
    first = outside_price(ZERO, half, NONE, GAUSS)
    second = outside_price(ZERO, half, first.taken, GAUSS)
    assert first.stands + second.stands == at_once
    assert second.stands > first.stands  # the same price twice would be too little


def test_a_delta_that_was_not_promised_takes_everything():
    assert outside_price(ZERO, Fraction(1, 10**9), NONE, LAPLACE).stands == 100
    assert outside_price(ZERO, GAUSS.promise.delta, NONE, GAUSS).stands == 100
    spent = outside_price(ZERO, GAUSS.promise.delta, NONE, GAUSS).taken
    assert outside_price(ZERO, Fraction(1, 10), spent, GAUSS).stands == 0


def test_a_larger_epsilon_than_promised_is_paid_in_full():
    price = outside_price(Fraction(3), ZERO, NONE, GAUSS)
    assert (price.taken, price.stands) == (NONE, 0)
    assert float(price.credits) == pytest.approx(3.3406837122**2 * float(GAUSS.unit_variance))


def test_totals_are_upper_bounds_and_tight_at_the_promise():
    kept = total(GAUSS, Fraction(100))
    assert kept.epsilon == 1
    assert 0.999e-6 < kept.delta <= 1e-6
    more = total(GAUSS, Fraction(120))
    assert more.epsilon == pytest.approx(1.1032, abs=1e-3)
    assert more.delta == pytest.approx(5.667e-6, rel=1e-3)
    # half a pure epsilon beside half the credits: added, not converted
    both = total(GAUSS, Fraction(50), Taken(Fraction(1, 2), ZERO))
    pure = outside_price(Fraction(3), ZERO, NONE, GAUSS).credits
    assert both.epsilon == pytest.approx(0.5 + total_epsilon(50), abs=1e-3)
    added = total(GAUSS, 50 + pure, NONE, (Fraction(3), pure))
    assert added.epsilon == pytest.approx(3 + total_epsilon(50), abs=1e-2)
    assert total(GAUSS, Fraction(10), Taken(ZERO, Fraction(1, 100))).epsilon is None
    assert total(LAPLACE, Fraction(120), Taken(ZERO, Fraction(1, 100))).delta >= 0.01


def total_epsilon(credits):
    """By the curve itself: the epsilon at delta 1e-6 of so many credits."""
    low, high = 0.0, 5.0
    mu = Fraction((credits / float(GAUSS.unit_variance)) ** 0.5)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(mu, middle) > 1e-6 else (low, middle)
    return high


def test_what_cannot_be_proved_is_refused():
    coins = calibrate(Promise(1, "1e-6", 4, "binomial"))
    with pytest.raises(Refused, match=r"G\.1\.5"):
        outside_price(Fraction(1, 2), ZERO, NONE, coins)
    for wrong in ((Fraction(-1), ZERO), (Fraction(2000), ZERO), (ZERO, Fraction(1))):
        with pytest.raises(InvalidQuery):
            outside_price(*wrong, NONE, GAUSS)
