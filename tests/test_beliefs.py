"""What an adversary may believe: closed forms against adversaries who apply Bayes' rule.

Simulated adversaries choose two-point and mixture beliefs and adapt their questions. Every
statistical test rejects a correct program with probability below 1e-6 (exact binomial tail).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from sulq import InvalidQuery, Promise
from sulq.accounting.calibration import calibrate, meaning
from sulq.beliefs import (
    Observation,
    believed,
    conf,
    conf_bits,
    curve,
    is_safe,
    largest_move,
    most_moved_prior,
    move_of_copies,
    moved,
    posterior,
    pure_of_semantic,
    safe_for_unions,
    semantic_of_pure,
    worst,
    worst_so_far,
)
from sulq.noise.distributions import DiscreteLaplace

SHARES = st.floats(1e-6, 1 - 1e-6)


@given(p=SHARES, change=st.floats(-8, 8))
def test_confidence_and_back(p, change):
    assert believed(conf(p)) == pytest.approx(p, rel=1e-9)
    assert abs(moved(p, change) - p) <= largest_move(abs(change)) + 1e-12  # S0.1
    assert conf_bits(p) == pytest.approx(conf(p) / math.log(2))


def test_s01_s04_goldens():
    assert largest_move(1) == pytest.approx(0.2449186624, rel=1e-9)
    assert largest_move(math.log(2)) == pytest.approx(0.1715728753, rel=1e-9)
    prior = most_moved_prior(1)
    assert moved(prior, 1) - prior == pytest.approx(largest_move(1), rel=1e-12)
    assert moved(0.9, math.log(2)) == pytest.approx(18 / 19)  # S4.4, printed .945
    slope = (conf_bits(0.5 + 1e-6) - conf_bits(0.5 - 1e-6)) / 2e-6
    assert slope == pytest.approx(5.770780164, rel=1e-6)


def test_s02_unions_cost_twice_and_no_less():
    """The tight example: all atoms of f rise by e^delta, all others fall."""
    delta, atoms = 0.3, 10**4
    share = 1 / (1 + math.exp(delta))
    inside = {("in", i): share / atoms for i in range(atoms)}
    outside = {("out", i): (1 - share) / atoms for i in range(atoms)}
    before = {**inside, **outside}
    after = {k: p * math.exp(delta if k[0] == "in" else -delta) for k, p in before.items()}
    assert math.fsum(after.values()) == pytest.approx(1)
    one = ("in", 0)
    assert is_safe(before, after, 0.3001, {one})
    union = {k for k in before if k[0] == "in"}
    assert is_safe(before, after, safe_for_unions(0.3001), union)
    assert not is_safe(before, after, 0.599, union)


def test_s23_s24_semantic_both_ways():
    assert semantic_of_pure(1) == pytest.approx(0.2449186624, rel=1e-9)
    assert pure_of_semantic(0.1) == pytest.approx(0.4013413909, rel=1e-9)
    assert pure_of_semantic(semantic_of_pure(0.7)) == pytest.approx(0.7)
    assert move_of_copies(0.1, 100) == pytest.approx(0.9866142982, rel=1e-9)


def test_s24_copies_are_not_hidden():
    """A count over 100 copies of one bit moves a belief far beyond what one record could."""
    law = DiscreteLaplace(Fraction(10))
    seen = Observation(100, law, {0: 0, 1: 100})
    after = posterior({0: 0.5, 1: 0.5}, [seen])
    assert after[1] - 0.5 > semantic_of_pure(0.1)
    assert after[1] - 0.5 <= move_of_copies(0.1, 100)


def test_posterior_is_bayes_in_exact_numbers():
    """Geometric noise with ratio 3/5: two candidates one apart, the likelier one 5/3 as likely."""
    scale = Fraction(1) / Fraction(math.log(5 / 3))
    law = DiscreteLaplace(scale)
    after = posterior({"a": 0.5, "b": 0.5}, [Observation(4, law, {"a": 4, "b": 3})])
    assert after["a"] == pytest.approx(5 / 8, rel=1e-9)
    with pytest.raises(InvalidQuery, match="add up"):
        posterior({"a": 0.5}, [])


@given(prior=SHARES, epsilon=st.sampled_from([0.1, 1, 3]))
def test_pure_promise_bounds_every_posterior(prior, epsilon):
    """One question with the whole promise: no answer takes a belief past the bound."""
    bound = worst(Promise(epsilon), prior)
    law = DiscreteLaplace(Fraction(1) / Fraction(str(epsilon)))
    assert bound.except_for == 0
    for answer in range(-40, 41):
        after = posterior({0: 1 - prior, 1: prior}, [Observation(answer, law, {0: 0, 1: 1})])
        assert after[1] <= bound.posterior + 1e-12
    assert after[1] == pytest.approx(bound.posterior, rel=1e-6)  # and it is reached


@pytest.mark.parametrize("beliefs", ["two points", "mixture"])
@pytest.mark.parametrize("adaptive", [False, True])
def test_gaussian_promise_against_adaptive_adversaries(beliefs, adaptive):
    """T = 20 questions; the tail stays within its bound and the bound is not vacuous."""
    promise = Promise(1, Fraction(1, 100), queries=20)
    chance = 0.01
    bound = worst(promise, 0.4, except_for=chance)
    R = calibrate(promise).unit_standard_deviation ** 2
    random = np.random.default_rng(5)
    trials = 40_000
    candidates = np.array([0.0, 1.0]) if beliefs == "two points" else np.linspace(0, 1, 5)
    # prior of "the value is the last candidate" is .4; the rest is spread over the others
    log_prior = np.log(np.r_[np.full(len(candidates) - 1, 0.6 / (len(candidates) - 1)), 0.4])
    weights = np.tile(log_prior, (trials, 1))
    truth = candidates[-1]
    for _ in range(20):
        if adaptive:  # ask the question, or its mirror image, whichever splits better now
            mirrored = (weights[:, -1] - weights[:, 0] > 0)[:, None]
            sums = np.where(mirrored, 1 - candidates, candidates)
            true = np.where(mirrored[:, 0], 1 - truth, truth)
        else:
            sums, true = np.tile(candidates, (trials, 1)), np.full(trials, truth)
        answers = true + random.normal(0, math.sqrt(R), trials)
        weights += -((answers[:, None] - sums) ** 2) / (2 * R)
    odds = weights[:, -1] - np.logaddexp.reduce(weights[:, :-1], axis=1)
    gains = odds - conf(0.4)
    passed = int((gains > bound.change).sum())
    assert binom.sf(passed - 1, trials, chance) > 1e-6
    if beliefs == "two points":
        assert passed > 0.01 * chance * trials  # the bound is within reach


def test_goldens_of_a_usual_promise():
    promise = Promise(1, "1e-6", queries=100)
    said = worst(promise, 0.4)
    rho = float(meaning(calibrate(promise)).rho)
    assert said.change == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1e6)), rel=1e-9)
    assert 0.4 < said.posterior < 0.75
    assert "believed 40 %" in str(said)
    assert "everything this database will ever say" in str(said)


def test_what_is_spent_so_far_grows_to_the_promise_and_is_marked():
    promise = Promise(1, "1e-6")
    moves = [worst_so_far(promise, Fraction(c), 0.4).posterior for c in (0, 25, 50, 100)]
    assert moves[0] == 0.4
    assert moves == sorted(moves)
    assert moves[-1] == pytest.approx(worst(promise, 0.4).posterior)
    assert "indicative" in str(worst_so_far(promise, Fraction(25), 0.4))


def test_a_value_under_add_remove_is_two_steps_away():
    promise = Promise(1, neighbours="add-remove")
    assert worst(promise, 0.4).change == 1
    assert worst(promise, 0.4, about="value").change == 2
    gaussian = Promise(1, "1e-6", neighbours="add-remove")
    once, twice = worst(gaussian, 0.4), worst(gaussian, 0.4, about="value")
    assert twice.change > 1.9 * once.change
    with pytest.raises(InvalidQuery, match="presence"):
        worst(Promise(1), 0.4, about="presence")


@pytest.mark.parametrize("noise", ["binomial", "huber"])
def test_coarse_laws_state_their_tail(noise):
    promise = Promise(1, "1e-6", queries=10, noise=noise)
    said = worst(promise, 0.4)
    assert said.change <= 1.5
    assert 0 <= said.except_for < 1e-3


def test_curve_rises_and_stays_above_the_prior():
    points = curve(Promise(1, "1e-6"), 9)
    assert all(point.posterior > point.prior for point in points)
    assert [point.posterior for point in points] == sorted(point.posterior for point in points)


@pytest.mark.parametrize("prior", [-0.1, 1.1])
def test_wrong_beliefs_are_refused(prior):
    with pytest.raises(InvalidQuery, match="probability"):
        worst(Promise(1), prior)
