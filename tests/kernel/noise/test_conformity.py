"""The test behind a replay: valid ratios, honest scores, and the power to see what goes wrong."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from sulq.database import audit
from sulq.database.audit import (
    Coincidences,
    Conformity,
    at_least,
    log_ratios,
    noise_tail,
    score,
    score_from,
)
from sulq.kernel.noise.laws import CentredBinomial, DiscreteGaussian, DiscreteHuber, DiscreteLaplace
from sulq.kernel.noise.sampler import draw_noise

FINE = DiscreteGaussian(Fraction(2**70, 3))
FINE_LAPLACE = DiscreteLaplace(Fraction(2**34))
COARSE = [
    DiscreteGaussian(Fraction(7, 3)),
    DiscreteGaussian(Fraction(900)),
    DiscreteLaplace(Fraction(7, 2)),
    DiscreteHuber(Fraction(10), Fraction(15)),
    CentredBinomial(400),
    CentredBinomial(6000),
]
LAWS = [FINE, FINE_LAPLACE, *COARSE]


def failed(questions, law):
    found = Conformity()
    for residuals in questions:
        found.add(residuals, [law] * len(residuals))
    return found.failed


def samples(law, count, width=1):
    draws = draw_noise([law] * (count * width))
    return [draws[i : i + width] for i in range(0, count * width, width)]


@pytest.mark.parametrize("law", COARSE, ids=str)
def test_ratios_are_fair_bets_under_the_claimed_law(law):
    """The expected ratio is at most 1, or Ville's bound would not hold."""
    far = law.half_width(1 - 1e-13)
    values = range(-far, far + 1)
    chances = np.array([law.pmf(value) for value in values])
    ratios = np.array([log_ratios(value, law) for value in values])
    assert (chances @ np.exp(ratios) <= 1 + 1e-6).all()
    assert (chances @ np.exp(ratios) >= 0.5).all()  # and they are ratios of whole laws


@pytest.mark.sample(1)
@pytest.mark.parametrize("law", [FINE, FINE_LAPLACE], ids=["gaussian", "laplace"])
def test_fine_laws_have_the_ratios_of_their_densities(law):
    far = law.half_width(1 - 1e-12)
    values = [round(far * i / 20_000) for i in range(-20_000, 20_001)]
    chances = np.array([law.pmf(value) for value in values])
    ratios = np.array([log_ratios(value, law) for value in values])
    whole = chances.sum()
    expected = chances @ np.exp(ratios) / whole
    assert (expected < 1 + 1e-3).all()
    near = [audit.SIZES.index(size) for size in (0.5, 0.8, 1.25)]
    assert np.allclose(expected[near], 1, atol=1e-3)
    size = audit.SIZES.index(0.5)
    exact = audit.resized(law, 0.5).log_pmf(values[9_000]) - law.log_pmf(values[9_000])
    assert math.isclose(ratios[9_000][size], exact, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_scores_hold_the_true_chance(law):
    step = max(1, round(law.standard_deviation() / 3))
    for value in range(-9 * step, 10 * step, step):
        low, high = score(value, law)
        upto = 1 - at_least(value + 1, law) if value >= 0 else noise_tail(-value - 1, law) / 2
        assert math.erfc(-high / math.sqrt(2)) / 2 >= upto * (1 - 1e-6)
        assert math.erfc(-low / math.sqrt(2)) / 2 <= upto
        assert -high <= score(-value, law)[0] + 1e-6 <= score(-value, law)[1] + 1e-6


def test_coins_added_up_once_are_the_law_s_own_tails():
    law = CentredBinomial(400)
    assert [noise_tail(far, law) for far in (-1, 0, 3, 40, 199, 200, 500)] == [
        law.tail(far) for far in (-1, 0, 3, 40, 199, 200, 500)
    ]


def test_a_draw_seen_only_above_a_threshold_has_a_standard_score():
    law, least = DiscreteGaussian(Fraction(400)), 15
    values = range(least, least + 200)
    whole = sum(law.pmf(value) for value in values)
    below = 0.0
    for value in values:
        low, high = score_from(value, least, law)
        assert math.erfc(-low / math.sqrt(2)) / 2 <= below / whole + 1e-6
        below += law.pmf(value)
        assert math.erfc(-high / math.sqrt(2)) / 2 >= below / whole - 1e-6


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_what_is_drawn_passes(law):
    """False alarm 1e-9 by its proof; here it is only seen not to cry wolf."""
    assert not failed(samples(law, 2_000), law)
    assert not failed(samples(law, 200, width=6), law)


def test_alarms_are_as_rare_as_promised(monkeypatch):
    """At a part of 1 % each, ten tests may fail 10 %: 300 runs, false alarm 1e-6."""
    monkeypatch.setattr(audit, "PART", 0.01)
    law = DiscreteGaussian(Fraction(50))
    alarms = sum(failed(samples(law, 200), law) for _ in range(300))
    assert alarms <= binom.isf(1e-6, 300, 0.1)


HALF = {"half the spread": lambda r: math.floor(r / 2 + 0.5), "none": lambda r: 0}


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("name", HALF)
def test_too_little_noise_fails(law, name):
    """At 200 but for Laplace, whose size is told half as well: 77 nats of 26 at 400."""
    number = 400 if isinstance(law, DiscreteLaplace) else 200
    assert failed([[HALF[name](r[0])] for r in samples(law, number)], law)


@pytest.mark.parametrize("law", [FINE, DiscreteGaussian(Fraction(900))], ids=["fine", "coarse"])
def test_a_fifth_short_fails_at_2000(law):
    """Expected evidence 2,000 (0.32 - 0.18) = 86 nats or more against 26: missed with 1e-9."""
    assert failed([[round(r[0] * 4 / 5)] for r in samples(law, 2_000)], law)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda r, sd: [round(sd)],
        lambda r, sd: [r[0] + round(sd)],
        lambda r, sd: [r[0] - round(sd)],
        lambda r, sd: [3 * r[0]],
        lambda r, sd: [abs(r[0])],
        lambda r, sd: [round(sd / 2) if r[0] > 0 else -round(sd / 2)],
    ],
    ids=["constant", "shifted up", "shifted down", "wide", "one side", "two points"],
)
@pytest.mark.parametrize("law", [FINE, FINE_LAPLACE, CentredBinomial(6000)], ids=str)
def test_other_laws_fail_at_200(law, spoil):
    sd = law.standard_deviation()
    assert failed([spoil(r, sd) for r in samples(law, 200)], law)


def test_a_draw_used_twice_fails():
    once = samples(FINE, 200)
    assert failed(once + once, FINE)
    wide = samples(FINE, 200, width=3)
    assert failed([*wide, wide[17]], FINE)
    longer = [*wide[17], *samples(FINE, 1)[0]]
    assert failed([*wide, longer], FINE)  # the beginning is enough


def test_one_draw_for_all_cells_of_a_question_fails():
    assert failed([r * 5 for r in samples(FINE, 200)], FINE)


def test_a_few_answers_without_noise_are_seen_among_many():
    assert failed(samples(FINE, 5_000) + [[0]] * 2, FINE)
    assert failed([*samples(FINE, 500, width=2), [0, 0]], FINE)


@pytest.mark.slow
def test_wide_questions_do_not_drown_narrow_ones():
    broken = [[r[0] // 2] for r in samples(FINE, 400)]
    assert failed(samples(FINE, 10, width=3_000) + broken, FINE)


def test_one_stray_fails():
    sd = round(FINE.standard_deviation())
    assert failed([*samples(FINE, 300), [14 * sd]], FINE)
    assert failed([*samples(CentredBinomial(400), 300), [201]], CentredBinomial(400))


def test_coarse_draws_may_meet_by_chance():
    found = Coincidences()
    for _ in range(1_000):
        found.saw(True, 0.9)
    assert not found.too_many
    for _ in range(1_000):
        found.saw(True, 1e-9)
    assert found.too_many


def test_single_chances_add_up():
    found = Conformity()
    for _ in range(1_000):
        found.add_chance(0.5)
    assert not found.failed
    found.add_chance(1e-18)
    assert found.failed
