"""Prices: joint, additive, per account, and never dependent on anything but the question."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.answers.statistics import count, histogram, mean, total, variance
from sulq.errors import InvalidQuery
from sulq.kernel.accounting.calibration import Calibration, calibrate
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.pricing import (
    check_askable,
    laws_of,
    noise_grid,
    price,
    smallest_noise,
    unit_cost,
)
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace, NoNoise
from sulq.kernel.query.expressions import col
from sulq.kernel.query.sum_query import Statistic
from sulq.kernel.schema.bind import BoundQuery, bind
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.kernel.schema.promise import Promise

SCHEMA = Schema(
    Number("x", 0, 1000), Flag("f"), Category("side", ["N", "S"], public=True), Category("c", ["a"])
)
GAUSSIAN = calibrate(Promise(1, "1e-6", queries=100))
LAPLACE = calibrate(Promise(1, queries=100))
QUESTIONS = [
    count(where=col("f")),
    total("x"),
    mean("x"),
    variance("x", where=col("f")),
    histogram("c", "f"),
    histogram("side", "f"),
]


def bound(question: Statistic, calibration: Calibration = GAUSSIAN) -> BoundQuery:
    neighbours = calibration.promise.neighbours
    return bind(question, SCHEMA, neighbours, grid=noise_grid(calibration))


@given(st.sampled_from(QUESTIONS), st.fractions(Fraction(1, 50), 50))
def test_a_gaussian_price_is_the_mu_squared_it_loses(
    question: Statistic, intensity: Fraction
) -> None:
    """credits / R_unit = sum over coordinates of (change / sigma)^2, exactly; rounded up."""
    b = bound(question)
    cost = price(b, GAUSSIAN, intensity)
    for (loss, accounts), (sensitivity, same) in zip(cost.losses, b.reach, strict=False):
        if not sensitivity.l2_squared:
            continue
        assert accounts == same
        law = next(law for law in cost.laws if isinstance(law, DiscreteGaussian))
        term = b.terms[cost.laws.index(law)]
        variance_in_units = law.sigma_squared / term.fine_unit**2
        mu_squared = sensitivity.l2_squared / variance_in_units
        exact = mu_squared * GAUSSIAN.unit_variance
        assert exact <= loss.credits_fraction < exact + Fraction(1, 2**63)
        assert loss.delta > 0  # TB.8


@given(st.sampled_from(QUESTIONS), st.fractions(Fraction(1, 50), 50))
def test_a_laplace_price_is_the_epsilon_it_loses(question: Statistic, intensity: Fraction) -> None:
    b = bound(question, LAPLACE)
    cost = price(b, LAPLACE, intensity)
    for loss, _ in cost.losses:
        assert loss.delta == 0
    law, term = cost.laws[0], b.terms[0]
    if isinstance(law, DiscreteLaplace):
        per_unit = term.fine_unit / law.scale  # epsilon of moving this term by one unit
        assert per_unit == intensity / LAPLACE.unit_scale
    assert cost.worst.credits_fraction >= unit_cost(b, LAPLACE) * intensity


def test_the_whole_budget_keeps_the_promise() -> None:
    """T unit questions lose exactly mu^2(T) <= mu(eps, delta)^2: cap and price are one currency."""
    cost = price(bound(count(where=col("f"))), GAUSSIAN, Fraction(1))
    cap = Loss.cap(GAUSSIAN.credits, GAUSSIAN.slack_cap)
    total_loss = Loss(0, 0)
    for _ in range(100):
        total_loss = total_loss + cost.worst
    assert total_loss.within(cap)
    assert not (total_loss + cost.worst).within(cap)


def test_golden_filter_prices() -> None:
    """G.1: R = 100, 50, 25 cost rho .005, .01, .02; 20 + 20 + 10 of them spend .5."""
    unit = Fraction(1, 200)  # rho of a unit question at R = 100
    b = bound(count(where=col("f")))
    costs = [price(b, GAUSSIAN, Fraction(i)).worst.credits_fraction * unit for i in (1, 2, 4)]
    assert costs == [Fraction("0.005"), Fraction("0.01"), Fraction("0.02")]
    assert 20 * costs[0] + 20 * costs[1] + 10 * costs[2] == Fraction("0.5")


def test_golden_strata_prices() -> None:
    """G.2: 3 on N at R=100, 2 on S at R=50, 1 on both at R=25: N .035, S .04."""
    spent: dict[int, Fraction] = {}
    unit = Fraction(1, 200)
    north, south = (count(where=(col("side") == s) & col("f")) for s in "NS")
    asked = [(north, 1)] * 3 + [(south, 2)] * 2 + [(count(where=col("f")), 4)]
    for question, intensity in asked:
        for loss, accounts in price(bound(question), GAUSSIAN, Fraction(intensity)).losses:
            for account in accounts:
                spent[account] = spent.get(account, Fraction(0)) + loss.credits_fraction * unit
    assert (spent[0], spent[1]) == (Fraction("0.035"), Fraction("0.04"))
    grouped = price(bound(histogram("side", where=col("f"))), GAUSSIAN, Fraction(1)).losses
    assert {loss.credits_fraction * unit for loss, _ in grouped} == {Fraction("0.005")}


def test_public_constants_carry_no_noise_and_cost_nothing() -> None:
    cost = price(bound(count(where=col("side") == "N")), GAUSSIAN, Fraction(1))
    assert cost.laws == (NoNoise(),)
    assert cost.losses == ()
    assert cost.worst == Loss(0, 0)


def test_noise_reads_back_from_its_text() -> None:
    for question in QUESTIONS:
        cost = price(bound(question), GAUSSIAN, Fraction(3, 7))
        assert laws_of(cost.noise) == cost.laws


@pytest.mark.parametrize("epsilon", ["0.01", "1", "10", "30", "40"])
@pytest.mark.parametrize("delta", ["1e-4", "1e-12"])
def test_slack_never_eats_a_useful_budget(epsilon: str, delta: str) -> None:
    """TB.8: T unit questions of a million cells stay within what is set aside."""
    calibration = calibrate(Promise(epsilon, delta, queries=1000))
    cost = price(bound(count(where=col("f")), calibration), calibration, Fraction(1))
    million = Loss(0, cost.worst.delta * 1_000_000)
    assert million.delta_fraction <= calibration.slack_cap


def test_smallest_noise_is_the_whole_budget_at_once() -> None:
    assert smallest_noise(GAUSSIAN) == pytest.approx(4.2268, abs=2e-3)
    assert smallest_noise(LAPLACE) == pytest.approx(2**0.5)


@pytest.mark.parametrize("noise", ["binomial", "huber"])
def test_coarse_laws_have_one_size_and_count_coordinates(noise: str) -> None:
    calibration = calibrate(Promise(1, "1e-6", queries=10, noise=noise))
    assert price(
        bound(histogram("c", "f"), calibration), calibration, Fraction(1)
    ).worst == Loss.of(Fraction(2))
    with pytest.raises(InvalidQuery, match="one size"):
        price(bound(count(where=col("f")), calibration), calibration, Fraction(2))
    with pytest.raises(InvalidQuery, match="0 or 1"):
        price(bound(total("x"), calibration), calibration, Fraction(1))


@pytest.mark.parametrize("epsilon", [80, 100, 1000])
def test_a_promise_that_its_slack_would_eat_is_refused_when_it_is_made(epsilon: int) -> None:
    with pytest.raises(InvalidQuery, match="hides nobody"):
        check_askable(calibrate(Promise(epsilon, "1e-6", 100)))
    check_askable(calibrate(Promise(60, "1e-6", 100)))
    check_askable(calibrate(Promise(epsilon, 0, 100)))
