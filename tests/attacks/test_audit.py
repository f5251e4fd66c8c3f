"""The audit's own mathematics, and what it proves of honest and of short noise."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import beta, binom
from tests.attacks.broken import HalfNoise, Textbook, broken
from tests.attacks.sandbox import honest

from sulq.attacks.audit import (
    Draws,
    audit,
    audit_tables,
    beta_share,
    binomial_low,
    claimed_epsilon,
    delta_of,
    guessed_epsilon,
    lower_bound,
    lowest_bits,
    proved_epsilon,
    smallest_share,
    smallest_shortfall,
)
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.schema.promise import Promise

PURE = Promise(1, queries=1)
GAUSSIAN = Promise(1, "1e-6", queries=1)
SURE = 1 - 1e-6
"""An honest oracle fails an audit at this confidence less than once in a million runs."""


@pytest.mark.parametrize("trials", [1, 7, 1_000, 50_000])
@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.9, 1])
@pytest.mark.parametrize("alpha", [0.025, 1e-8])
def test_binomial_bounds_are_clopper_and_pearson_s(trials: int, share: float, alpha: float) -> None:
    hits = round(share * trials)
    wanted = beta.ppf(alpha, hits, trials - hits + 1) if hits else 0.0
    assert binomial_low(hits, trials, alpha) == pytest.approx(wanted, rel=1e-9)


def test_incomplete_beta_on_both_sides() -> None:
    for a, b, x in ((1, 1, 0.3), (2, 5, 0.9), (300, 20_000, 0.014), (20_000, 3, 0.9999)):
        assert beta_share(x, a, b) == pytest.approx(beta.cdf(x, a, b), rel=1e-9)
    assert (beta_share(0, 2, 3), beta_share(1, 2, 3)) == (0, 1)


def test_claims_are_the_promise_s() -> None:
    assert claimed_epsilon(PURE, Fraction(1)) == 1
    assert claimed_epsilon(Promise(1, queries=10), Fraction(1)) == pytest.approx(0.1)
    assert claimed_epsilon(GAUSSIAN, Fraction(1)) == pytest.approx(1, rel=1e-3)
    half = claimed_epsilon(Promise(1, "1e-6", queries=4), Fraction(1))
    assert half == pytest.approx(0.4752, abs=1e-3)  # half of mu(1, 1e-6), at 1e-6


@pytest.mark.parametrize("noise", ["binomial", "huber"])
def test_a_coarse_claim_lies_on_the_curve_of_its_law(noise: str) -> None:
    """(epsilon, delta) by the law itself: the largest gain over all half-lines."""
    promise = Promise(1, "1e-6", queries=2, noise=noise)
    law = calibrate(promise).unit_law
    assert law is not None
    chances = np.array([law.pmf(t) for t in range(-400, 401)])
    epsilon, delta = claimed_epsilon(promise, Fraction(1)), delta_of(promise, Fraction(1))
    gain = np.maximum(chances[1:] - math.exp(epsilon) * chances[:-1], 0).sum()
    assert gain == pytest.approx(delta, rel=1e-3)
    assert np.abs(np.diff(chances)).sum() / 2 == pytest.approx(2 * delta, rel=1e-3)


def test_what_an_event_proves() -> None:
    assert proved_epsilon(PURE, 0.0, 0.5, 0.5 / math.e) == pytest.approx(1)
    assert proved_epsilon(PURE, 0.0, 0.1, 0.2) == 0
    loose = Promise(1, "0.01", queries=1, noise="huber")
    assert proved_epsilon(loose, 0.01, 0.21, 0.1) == pytest.approx(
        math.log(2)
    )  # delta is taken off
    assert proved_epsilon(loose, 0.01, 0.005, 0.001) == 0
    # mu = 1 at any threshold: epsilon(mu = 1, 1e-6)
    for z in (-1.0, 0.0, 2.0):
        likely, rare = (0.5 * math.erfc((z + s) / math.sqrt(2)) for s in (0.0, 1.0))
        assert proved_epsilon(GAUSSIAN, 1e-6, likely, rare) == pytest.approx(4.886, abs=0.02)


def test_an_exact_value_is_an_event() -> None:
    """One answer in a hundred is the truth itself; the rest is far too noisy to tell."""
    random = np.random.default_rng(1)
    ones, zeros = random.normal(1, 100, 40_000), random.normal(0, 100, 40_000)
    assert lower_bound(PURE, Draws(ones, zeros, Fraction(1)), 0.95)[0] < 0.2
    ones[:400] = 1.0
    proved, event = lower_bound(PURE, Draws(ones, zeros, Fraction(1)), 0.95)
    assert proved > 3
    assert "1" in event


def test_lowest_binary_digits() -> None:
    values = np.array([0.0, 1.0, 6.0, 0.75, -(2.0**-30), 1 + 2.0**-52])
    assert lowest_bits(values).tolist() == [1024, 0, 1, -2, -30, -52]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "promise",
    [PURE, GAUSSIAN, *(Promise(1, "1e-6", queries=2, noise=n) for n in ("binomial", "huber"))],
    ids=lambda promise: promise.noise,
)
def test_the_database_keeps_what_it_claims(promise: Promise) -> None:
    finding = audit(honest(promise), rows=20_000, confidence=SURE)
    assert not finding.broken
    assert finding.trials == 20_000
    assert finding.reached < finding.bound


def test_the_audit_comes_near_the_truth_and_passes_it_where_noise_is_short() -> None:
    fair = audit(broken(Textbook, PURE), rows=20_000)
    assert 0.85 < fair.reached < 1 == fair.bound
    short = audit(broken(HalfNoise, PURE), rows=20_000)
    assert 1.85 < short.reached < 2
    assert short.broken
    assert "confidence 0.95" in short.note


@pytest.mark.slow
def test_scalars_are_audited_on_many_tables() -> None:
    loose = Promise(20, queries=1)
    good = audit_tables(honest(loose), tables=40)
    assert not good.broken
    assert good.reached > 0.5  # at epsilon 20 forty answers are enough to tell the bit
    assert good.trials == 40
    assert good.credits == 1


@pytest.mark.slow
@pytest.mark.parametrize("promise", [PURE, GAUSSIAN], ids=lambda promise: promise.noise)
def test_the_database_at_fifty_thousand_draws_a_side(promise: Promise) -> None:
    finding = audit(honest(promise), rows=200_000, confidence=SURE)
    assert not finding.broken
    # By the laws of both bounds 0.92 +- 0.01 (Laplace) and 0.79 +- 0.03 (Gaussian) are expected:
    # an audit that proves less than 0.6 here has lost its eyes.
    assert finding.reached > 0.6 * finding.bound


@pytest.mark.sample(1)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_guesses_prove_no_more_than_is_true_but_for_alpha(noise: str) -> None:
    """Exact: the chance that the guesses of an honest promise prove more than it says."""
    promise = Promise(1, "1e-6" if noise == "gaussian" else 0, queries=1)
    claimed, draws, alpha = claimed_epsilon(promise, Fraction(1)), 4_000, 0.01
    mu = calibrate(promise).mu_squared
    best = NormalDist().cdf(math.sqrt(mu) / 2) if mu else math.e / (1 + math.e)
    least = next(
        right
        for right in range(draws // 2, draws)
        if guessed_epsilon(promise, float(promise.delta), _guessed(right, draws), alpha) > claimed
    )
    assert binom.sf(least - 1, draws, best) <= alpha
    assert binom.sf(least - 4, draws, best) > alpha  # and it is not idle


def _guessed(right: int, draws: int) -> Draws:
    """So many right guesses, half of the bits 1."""
    values = np.zeros(draws)
    values[: min(right, draws // 2)] = 1  # of the ones
    values[draws // 2 : draws // 2 + max(0, draws - right)] = 1  # of the zeros: wrong
    return Draws(values[: draws // 2], values[draws // 2 :], Fraction(1))


@pytest.mark.slow
@pytest.mark.parametrize("promise", [Promise(1, queries=1), Promise(1, "1e-6", queries=1)], ids=str)
def test_an_audit_proves_eight_tenths_of_a_true_epsilon(promise: Promise, settled: None) -> None:
    finding = audit(honest(promise), confidence=SURE)
    assert 0.8 <= finding.reached <= finding.bound
    assert not finding.broken


@pytest.mark.parametrize(("promise", "expected"), [(PURE, 0.11), (GAUSSIAN, 0.15)], ids=str)
def test_the_smallest_fault_that_an_audit_sees(promise: Promise, expected: float) -> None:
    """By the exact laws: said to be seen, it is seen; a third of it is not."""
    short = smallest_shortfall(promise, Fraction(1), 120_000, 0.999)
    assert short == pytest.approx(expected, abs=0.021)
    found = []
    for part in (short, short / 3):
        rng, epsilon = np.random.default_rng(5), 1.0
        if promise is PURE:
            noise = rng.laplace(0, (1 - part) / epsilon, 120_000)
        else:
            mu = calibrate(promise).mu_squared
            assert mu is not None
            noise = rng.normal(0, (1 - part) / math.sqrt(mu), 120_000)
        bits = np.arange(120_000) % 2 == 1
        draws = Draws((noise + bits)[bits], (noise + bits)[~bits], Fraction(1))
        found.append(lower_bound(promise, draws, 0.999)[0])
    claimed = claimed_epsilon(promise, Fraction(1))
    assert found[0] > claimed > found[1]


def test_the_smallest_share_of_exact_answers_that_an_audit_sees() -> None:
    """The curator's attack (arXiv 2411.16516): noise that is right, but for a few answers."""
    share = smallest_share(1.0, 120_000, 0.999)
    assert share is not None and 5e-4 < share < 3e-3
    rng = np.random.default_rng(3)
    bits = np.arange(120_000) % 2 == 1
    values = bits + rng.laplace(0, 1, 120_000)
    proved = []
    for part in (share, share / 5):
        few = rng.random(120_000) < part
        told = np.where(few, bits, values)
        draws = Draws(told[bits], told[~bits], Fraction(1))
        proved.append(lower_bound(PURE, draws, 0.999)[0])
    assert proved[0] > 1 > proved[1]
