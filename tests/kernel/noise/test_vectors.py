"""Draws by the vector. Statistical false alarms: 1e-6 per test."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from sulq.kernel.noise import sampler, vector_sampler
from sulq.kernel.noise.laws import (
    CentredBinomial,
    DiscreteGaussian,
    DiscreteHuber,
    DiscreteLaplace,
    Law,
    proposal_for,
)
from sulq.kernel.noise.sampler import draw
from sulq.kernel.noise.vector_sampler import exact_gamma, exp_bounds, plan_for

Follows = Callable[[Sequence[int], Law], None]

LAWS: list[Law] = [
    DiscreteGaussian(Fraction(1, 3)),
    DiscreteGaussian(Fraction(81, 4)),
    DiscreteGaussian(Fraction(10**4)),
    DiscreteLaplace(Fraction(1, 2)),
    DiscreteLaplace(Fraction(7, 3)),
    DiscreteLaplace(Fraction(1001, 10)),
    DiscreteHuber(Fraction(10), Fraction(20)),
    DiscreteHuber(Fraction(7, 2), Fraction(5, 3)),
    DiscreteHuber(Fraction(40), Fraction(123, 2)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_vector_draws_follow_the_law(law: Law, assert_follows: Follows) -> None:
    assert_follows(draw(law, 100_000), law)


@pytest.mark.slow
@pytest.mark.parametrize(
    "law",
    [LAWS[1], *(pytest.param(law, marks=pytest.mark.slow) for law in (LAWS[4], LAWS[7]))],
    ids=str,
)
def test_the_exact_way_alone_gives_the_same_law(
    law: Law, monkeypatch: pytest.MonkeyPatch, assert_follows: Follows
) -> None:
    """With endless doubt every decision is made by integers, none by floats."""
    monkeypatch.setattr(vector_sampler, "DOUBT", 2.0)
    monkeypatch.setattr(np, "exp", lambda x: np.full_like(x, 0.123))
    values = draw(law, 8_000)
    monkeypatch.undo()
    assert_follows(values, law)


def test_python_integers_take_over_where_64_bits_end(
    monkeypatch: pytest.MonkeyPatch, assert_follows: Follows
) -> None:
    monkeypatch.setattr(vector_sampler, "LARGEST_HIGH", 0)
    law = DiscreteGaussian(Fraction(50))
    values = draw(law, 50_000)
    assert all(type(value) is int for value in values)
    assert_follows(values, law)


def test_floats_are_not_asked_off_the_ladder(
    monkeypatch: pytest.MonkeyPatch, assert_follows: Follows
) -> None:
    """A ladder cut short, with wrong floats beyond it: the law stays."""
    law = DiscreteGaussian(Fraction(30))
    monkeypatch.setattr(vector_sampler, "LADDER_DEPTH", 0.4)
    plan = plan_for.__wrapped__(proposal_for(law))
    assert plan is not None
    end = len(plan.ladder) << plan.shift
    honest = vector_sampler._gamma
    monkeypatch.setattr(
        vector_sampler, "_gamma", lambda plan, low, y: np.where(y < end, honest(plan, low, y), 0.0)
    )
    assert_follows(vector_sampler.draw_many(plan, 8_000), law)


ratios = st.fractions(min_value=Fraction(1, 1000), max_value=2**50, max_denominator=10**6)
shaped = st.one_of(
    st.builds(DiscreteLaplace, ratios),
    st.builds(lambda sigma: DiscreteGaussian(sigma * sigma), ratios),
    st.builds(lambda s, kappa: DiscreteHuber(s, s * kappa), ratios, st.fractions(1 / 20, 12)),
)


@given(shaped, st.integers(0, 2**60), st.floats(0, 1))
def test_float_chances_are_as_accurate_as_the_proof_says(
    law: DiscreteGaussian | DiscreteLaplace | DiscreteHuber, place: int, rung: float
) -> None:
    """Claim 3: on the ladder the computed chance to keep lies within 2^-44 of the true one."""
    plan = plan_for(proposal_for(law))
    assert plan is not None
    low = place % (1 << plan.shift)
    magnitude = low + (int(rung * len(plan.ladder)) << plan.shift)
    floats = (np.array([value], dtype=np.float64) for value in (low, magnitude))
    computed = Fraction(float(np.exp(-vector_sampler._gamma(plan, *floats))[0])) * 2**100
    least, most = exp_bounds(exact_gamma(plan.proposal, low, magnitude), 100)
    assert least - 2**56 <= computed <= most + 2**56


@given(shaped)
def test_ladder_is_as_accurate_as_the_proof_says(
    law: DiscreteGaussian | DiscreteLaplace | DiscreteHuber,
) -> None:
    plan = plan_for(proposal_for(law))
    assert plan is not None
    rungs = len(plan.ladder)
    assert plan.ladder[0] < 2.0**-29 or rungs == 1
    for j in {1, rungs // 2 + 1, rungs}:
        least, most = exp_bounds(j * plan.ratio, 100)
        assert least - 2**56 <= Fraction(float(plan.ladder[rungs - j])) * 2**100 <= most + 2**56


def test_exact_geometric_walks_from_any_guess() -> None:
    ratio = Fraction(1, 10)
    prefix = int(math.exp(-1.25) * 2**53)  # between rungs 12 and 13
    for guess in (0, 11, 12, 13, 30):
        assert vector_sampler._exact_geometric(ratio, prefix, guess) == 12


@pytest.mark.sample(2)
@pytest.mark.parametrize("few", [True, False], ids=["single", "vector"])
@pytest.mark.parametrize("bits", [40, 50, 60])
def test_wide_draws_look_normal_down_to_the_last_bit(
    bits: int, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kolmogorov distance below the Dvoretzky-Kiefer-Wolfowitz-Massart bound; low bits fair."""
    if few:
        monkeypatch.setattr(sampler, "MANY", 10**9)
    n = 10_000 if few else 100_000
    values = draw(DiscreteGaussian(Fraction(2 ** (2 * bits), 3)), n)
    ranks = np.arange(1, n + 1) / n
    cdf = norm.cdf(np.sort(np.array([value / 2**bits for value in values])) * math.sqrt(3))
    distance = max(np.max(ranks - cdf), np.max(cdf - ranks + 1 / n))
    assert distance < math.sqrt(math.log(2 / 5e-7) / (2 * n))
    counts = Counter(value % 64 for value in values)
    for residue in range(64):
        seen = counts[residue]
        rare = min(binom.cdf(seen, n, 1 / 64), binom.sf(seen - 1, n, 1 / 64))
        assert rare > 5e-7 / 128


@pytest.mark.parametrize(
    "law",
    [
        DiscreteLaplace(Fraction(2**40 * 10, 7)),
        DiscreteHuber(Fraction(2**40), Fraction(2**41)),
        DiscreteHuber(Fraction(2**40, 3), Fraction(2**37)),
        CentredBinomial(7140 * 2**48),
    ],
    ids=str,
)
def test_wide_draws_follow_the_tail_of_their_law(law: Law) -> None:
    """P(|N| > h) at eight places, exact binomial tests, false alarm 1e-6 in all."""
    n = 20_000
    values = [abs(value) for value in draw(law, n)]
    for confidence in (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.999):
        h = law.half_width(confidence)
        outside = sum(value > h for value in values)
        chance = law.tail(h)
        rare = min(binom.cdf(outside, n, chance), binom.sf(outside - 1, n, chance))
        assert rare > 1e-6 / 16, (confidence, outside, n * chance)


@pytest.mark.slow
@pytest.mark.parametrize("exponent", range(20))
def test_ten_million_draws_follow_the_law(exponent: int, assert_follows: Follows) -> None:
    """20 scales from 1/2 to some 200 steps, 10^7 draws each; false alarm 1e-6 a scale."""
    law = DiscreteGaussian(Fraction(1, 4) * Fraction(187, 100) ** exponent)
    assert_follows(draw(law, 10_000_000), law)
