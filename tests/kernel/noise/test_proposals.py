from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteHuber, DiscreteLaplace, proposal_for
from sulq.kernel.noise.vector_sampler import exact_gamma, plan_for

ratios = st.fractions(min_value=Fraction(1, 1000), max_value=2**52, max_denominator=10**6)
shaped = st.one_of(
    st.builds(DiscreteGaussian, ratios),
    st.builds(DiscreteLaplace, ratios),
    st.builds(DiscreteHuber, ratios, ratios),
)


def psi(law: DiscreteGaussian | DiscreteLaplace | DiscreteHuber, y: int) -> Fraction:
    """-log of the law's weight at y >= 0, from its definition."""
    match law:
        case DiscreteGaussian(v):
            return y * y / (2 * v)
        case DiscreteLaplace(b):
            return y / b
        case DiscreteHuber(s, c):
            return y * y / (2 * s * s) if y <= c else c * y / (s * s) - c * c / (2 * s * s)


@given(shaped, st.integers(0, 2**60), st.integers(0, 100))
def test_proposal_times_acceptance_is_the_law_exactly(
    law: DiscreteGaussian | DiscreteLaplace | DiscreteHuber, place: int, high: int
) -> None:
    """Claims 2 and 3, as an identity of fractions: the exponents differ by one constant."""
    proposal = proposal_for(law)

    def single(y: int) -> Fraction:
        penalty = proposal.penalty
        return y / proposal.scale + (Fraction(*penalty.ratio(y)) if penalty else 0)

    plan = plan_for(proposal)
    assume(plan is not None)
    assert plan is not None
    low = place % (1 << plan.shift)
    y = low + (high << plan.shift)
    blocked = high * plan.ratio + exact_gamma(proposal, low, y)
    assert single(y) - psi(law, y) == single(0) - psi(law, 0)
    assert blocked == single(y)
    assert exact_gamma(proposal, low, y) >= 0


def acceptance(law: DiscreteGaussian | DiscreteLaplace | DiscreteHuber) -> float:
    proposal = proposal_for(law)
    penalty = 0.0 if proposal.penalty is None else float(Fraction(*proposal.penalty.ratio(0)))
    return DiscreteLaplace(proposal.scale).pmf(0) * math.exp(-penalty) / law.pmf(0)


@given(shaped)
def test_acceptance_stays_high(law: DiscreteGaussian | DiscreteLaplace | DiscreteHuber) -> None:
    assert acceptance(law) > 0.4


@pytest.mark.parametrize("knee", [5, 10, 11, 20, 50, 100])
def test_huber_acceptance_does_not_starve_beyond_the_spread(knee: int) -> None:
    assert acceptance(DiscreteHuber(Fraction(10), Fraction(knee))) > 0.5


def test_scales_beyond_64_bits_have_no_plan() -> None:
    assert plan_for(proposal_for(DiscreteGaussian(Fraction(2**110)))) is not None
    assert plan_for(proposal_for(DiscreteGaussian(Fraction(2**114)))) is None
