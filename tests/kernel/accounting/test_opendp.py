"""OpenDP as a second opinion on the prices of single mechanisms and on the zCDP conversion."""

from __future__ import annotations

import warnings
from fractions import Fraction

import pytest

from sulq.beliefs.comparison import zcdp_epsilon
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")

SPACE = dp.atom_domain(T=int), dp.absolute_distance(T=int)


@pytest.mark.parametrize("scale", [2, 10, 250])
@pytest.mark.parametrize("shift", [1, 3])
def test_laplace_epsilon_agrees(scale: int, shift: int) -> None:
    theirs = dp.m.make_laplace(*SPACE, scale=float(scale)).map(shift)
    law = DiscreteLaplace(Fraction(scale))
    assert theirs == pytest.approx(law.log_pmf(0) - law.log_pmf(shift), rel=1e-9)


@pytest.mark.parametrize("sigma", [2, 10, 250])
@pytest.mark.parametrize("shift", [1, 3])
def test_gaussian_rho_agrees(sigma: int, shift: int) -> None:
    """TB.4: rho = shift^2 / (2 sigma^2) on the integers."""
    theirs = dp.m.make_gaussian(*SPACE, scale=float(sigma)).map(shift)
    law = DiscreteGaussian(Fraction(sigma**2))
    assert theirs == pytest.approx(shift**2 / (2 * float(law.sigma_squared)), rel=1e-9)


@pytest.mark.parametrize("sigma", [2, 10])
@pytest.mark.parametrize("delta", [1e-6, 1e-9])
def test_zcdp_conversion_agrees(sigma: int, delta: float) -> None:
    """TB.3, tight form: within 1e-4, and never below theirs by more."""
    measurement = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*SPACE, scale=float(sigma)))
    theirs = measurement.map(1).epsilon(delta)
    assert zcdp_epsilon(Fraction(1, 2 * sigma**2), delta) == pytest.approx(theirs, rel=1e-4)
