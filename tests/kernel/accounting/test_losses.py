"""Losses add exactly, prices round up, caps round down; the pure ones compose as proved."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.errors import InvalidQuery
from sulq.kernel.accounting.loss import (
    CREDIT,
    DELTA,
    Loss,
    composed_delta,
    composed_epsilon,
    coupling_factor,
    coupling_slack,
)

amounts = st.fractions(min_value=0, max_value=10**6)
steps = st.integers(0, 2**200)


@given(amounts, st.fractions(min_value=0, max_value=1))
def test_a_price_is_never_below_what_it_is_for_and_less_than_one_step_above(
    credits: Fraction, delta: Fraction
) -> None:
    loss = Loss.of(credits, delta)
    assert 0 <= loss.credits_fraction - credits < Fraction(1, CREDIT)
    assert 0 <= loss.delta_fraction - delta < Fraction(1, DELTA)


@given(amounts, st.fractions(min_value=0, max_value=1))
def test_a_cap_is_never_above_what_it_is_for(credits: Fraction, delta: Fraction) -> None:
    cap = Loss.cap(credits, delta)
    assert 0 <= credits - cap.credits_fraction < Fraction(1, CREDIT)
    assert 0 <= delta - cap.delta_fraction < Fraction(1, DELTA)


@given(steps, steps, steps, steps)
def test_addition_is_exact(a: int, b: int, c: int, d: int) -> None:
    total = Loss(a, b) + Loss(c, d)
    assert total == Loss(a + c, b + d)
    assert total.credits_fraction == Loss(a, b).credits_fraction + Loss(c, d).credits_fraction
    assert Loss(a, b) + Loss.zero() == Loss(a, b)


def test_both_parts_must_fit() -> None:
    cap = Loss(10, 10)
    assert Loss(10, 10).within(cap)
    assert not Loss(11, 0).within(cap)
    assert not Loss(0, 11).within(cap)


@pytest.mark.parametrize("wrong", [-1, 1.0, True, None])
def test_only_whole_steps_that_are_not_negative(wrong: object) -> None:
    with pytest.raises(InvalidQuery, match="whole number"):
        Loss(wrong, 0)  # type: ignore[arg-type]
    with pytest.raises(InvalidQuery, match="whole number"):
        Loss(0, wrong)  # type: ignore[arg-type]


def test_the_coupling_slack_of_a_fine_grid() -> None:
    assert coupling_slack(Fraction(7)) == Fraction(21, 7000)
    with pytest.raises(InvalidQuery, match="so much precision"):
        coupling_slack(Fraction(99, 100))


@given(st.fractions(min_value=Fraction(1, 1000), max_value=1000))
def test_the_coupling_factor_is_one_plus_e_to_the_epsilon_from_above(epsilon: Fraction) -> None:
    factor = coupling_factor(epsilon)
    logarithm = math.log(factor.numerator) - math.log(factor.denominator)
    exact = float(epsilon) + math.log1p(math.exp(-float(epsilon)))
    assert logarithm == pytest.approx(exact, rel=1e-12)
    # e^x > its Taylor sums: a rigorous lower bound on what the factor must exceed
    term, taylor = Fraction(1), Fraction(1)
    for k in range(1, 12):
        term = term * epsilon / k
        taylor += term
    assert factor > 1 + taylor


def direct_composition(mechanisms: int, epsilon: float, total: float) -> float:
    """The same formula term by term in floats."""
    return (
        sum(
            math.comb(mechanisms, i)
            * max(0.0, math.exp(i * epsilon) - math.exp(total + (mechanisms - i) * epsilon))
            for i in range(mechanisms + 1)
        )
        / (1 + math.exp(epsilon)) ** mechanisms
    )


@given(st.integers(1, 12), st.floats(0.01, 1), st.floats(0, 5))
def test_composition_is_the_sum_of_its_terms(mechanisms: int, epsilon: float, total: float) -> None:
    expected = direct_composition(mechanisms, epsilon, total)
    assert composed_delta(mechanisms, epsilon, total) == pytest.approx(
        expected, rel=1e-9, abs=1e-13
    )


@given(st.integers(1, 12), st.floats(0.01, 1), st.floats(1e-9, 0.2))
def test_the_composed_epsilon_keeps_delta(mechanisms: int, epsilon: float, delta: float) -> None:
    total = composed_epsilon(mechanisms, epsilon, delta)
    assert total <= mechanisms * epsilon * (1 + 1e-12)
    assert composed_delta(mechanisms, epsilon, total) <= delta * (1 + 1e-12) + 1e-300
