from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.kernel.noise import vector_sampler
from sulq.kernel.noise.vector_sampler import exp_bounds

gammas = st.fractions(min_value=0, max_value=300, max_denominator=10**30)


@given(gammas, st.integers(1, 400), st.sampled_from([0, 32]))
def test_bounds_enclose_the_truth_and_are_tight(gamma: Fraction, bits: int, guard: int) -> None:
    """Without guard bits too, where a rounding to the wrong side would show."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_sampler, "GUARD_BITS", guard)
        low, high = exp_bounds(gamma, bits)
    with localcontext() as context:
        context.prec = 320  # Decimal.exp is correctly rounded
        exponent = Decimal(-gamma.numerator) / Decimal(gamma.denominator)
        truth = exponent.exp() * 2**bits
        slack = Decimal(10) ** -150
        assert low - slack <= truth <= high + slack
    if guard:
        assert high - low <= 2


def test_no_exponent_means_certainty() -> None:
    assert exp_bounds(Fraction(0), 53) == (1 << 53, 1 << 53)


def test_huge_exponents_are_cheap() -> None:
    assert exp_bounds(Fraction(2**300), 64) == (0, 1)


def test_negative_exponents_are_refused() -> None:
    with pytest.raises(ValueError, match="gamma >= 0"):
        exp_bounds(Fraction(-1, 3), 8)


def test_numpy_exp_is_as_accurate_as_the_proof_assumes() -> None:
    """Precondition of claim 3: relative error at most 2^-45 (stated by NumPy: a few 2^-53)."""
    points = np.concatenate([np.linspace(0, 30, 1500), np.geomspace(1e-18, 30, 1500)])
    for point, value in zip(points.tolist(), np.exp(-points).tolist(), strict=True):
        low, high = exp_bounds(Fraction(point), 200)
        computed = Fraction(value) * 2**200
        assert low * (1 - Fraction(1, 2**45)) <= computed <= high * (1 + Fraction(1, 2**45))
