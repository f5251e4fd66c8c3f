"""The random delay of a reply: its size, its price, and the printed mistake. S4.5"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from sulq.errors import InvalidQuery
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.accounting.gaussian import gaussian_delta, tail_delta, tail_quantile
from sulq.kernel.accounting.loss import Loss, coupling_factor
from sulq.kernel.accounting.mechanisms import CLAMP_SHARE, GRID_BITS, Delay, delay_for, timed
from sulq.kernel.schema.promise import Promise

PRINTED = Fraction(2763102112, 10**6)  # R of Theorem 1 for T = 100, (1, 1e-6)
CALIBRATION = calibrate(Promise(1, "1e-6", 100))


def near(value: float, tolerance: float = 1e-6) -> object:
    return pytest.approx(value, rel=tolerance)


def test_golden_values():
    """At the printed R, T = 100 and delta = 1e-6."""
    z = tail_quantile(Fraction(1, 10**8))  # delta / T
    assert float(z) == near(5.612001244174789)
    delay = Delay(Fraction(1), PRINTED, z, Loss.zero())
    assert delay.standard_deviation == near(52.56521769756932)  # t_max sqrt(R)
    assert delay.mean == near(5.612001244174789 * 52.56521769756932)
    fifth = Delay(Fraction(1, 5), PRINTED, z, Loss.zero())  # where t_max and its square differ
    assert fifth.standard_deviation == near(52.56521769756932 / 5)
    printed = delay.standard_deviation * math.log(100 / 1e-6)
    assert printed == near(968.2870934432793)  # sufficient, and three times too long
    assert 100 * tail_delta(1, float(z) + 0.5) <= 1e-6 * (1 + 1e-6)  # Q(z)


def test_the_printed_variance_is_no_variance():
    """t_max R in milliseconds: the time of 100 replies has mu 6.02 instead of sqrt(T/R)."""
    t_max, queries = 1000, 100
    right, wrong = t_max**2 * PRINTED, t_max * PRINTED
    assert math.sqrt(queries * t_max**2 / right) == near(math.sqrt(100 / PRINTED))
    mu = math.sqrt(queries * t_max**2 / wrong)
    assert mu == near(6.015912800670484)
    assert gaussian_delta(mu, 1) == near(0.9957142944182341)
    delay = Delay(Fraction(t_max, 1000), PRINTED, Fraction(6), Loss.zero())
    milliseconds = 1000 * delay.standard_deviation
    assert milliseconds**2 == near(float(right))  # ours is the right one


@pytest.mark.parametrize("credits", [Fraction(1, 4), 1, 3])
@pytest.mark.parametrize("longest", [Fraction(1, 1000), Fraction(1, 3), 10])
def test_a_reply_costs_as_much_as_a_question_of_its_noise(longest, credits):
    delay = delay_for(CALIBRATION, longest, credits)
    assert delay.loss.credits_fraction == credits
    # mu^2 of one reply: (t_max / sd)^2, as credits of the table's R
    squared = float(longest) ** 2 / delay.standard_deviation**2
    assert squared * float(CALIBRATION.unit_variance) == near(float(credits))
    assert delay.grid_variance == delay.variance * 4**GRID_BITS


def test_what_is_charged_covers_the_clamp_and_the_grid():
    """All the replies that fit into the budget use a quarter of the slack, and a little."""
    delay = delay_for(CALIBRATION, 1)
    factor = coupling_factor(CALIBRATION.promise.epsilon)
    steps = Fraction(delay.mean_steps)
    negative = tail_delta(
        1, float(steps / Fraction(math.isqrt(int(delay.grid_variance)) + 1)) + 0.5
    )
    assert negative * float(factor) <= float(delay.loss.delta_fraction)
    replies = CALIBRATION.credits
    allowed = CALIBRATION.slack_cap * CLAMP_SHARE
    assert allowed <= replies * delay.loss.delta_fraction <= allowed * Fraction(11, 10)


def test_mean_is_enough_standard_deviations():
    delay = delay_for(CALIBRATION, Fraction(1, 7))
    assert delay.mean_steps**2 >= delay.quantile**2 * delay.grid_variance
    assert delay.mean == near(float(delay.quantile) * delay.standard_deviation)


def test_only_the_price_changes():
    delay = delay_for(CALIBRATION, 1)
    assert replace(timed(CALIBRATION, delay), timing=Loss.zero()) == CALIBRATION
    assert CALIBRATION.timing == Loss.zero()


@pytest.mark.parametrize(("longest", "credits"), [(0, 1), (-1, 1), (61, 1), (1, 0), (1, 101)])
def test_what_makes_no_delay_is_refused(longest, credits):
    with pytest.raises(InvalidQuery, match="a row may add"):
        delay_for(CALIBRATION, longest, credits)


@pytest.mark.parametrize("promise", [Promise(1), Promise(1, "1e-6", 20, noise="binomial")])
def test_other_noise_has_no_such_delay(promise):
    with pytest.raises(InvalidQuery, match="gaussian"):
        delay_for(calibrate(promise), 1)
