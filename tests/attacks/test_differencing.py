"""Differencing: holds on the product, and finds every bit where answers are exact."""

from __future__ import annotations

import math

import pytest
from tests.attacks.fictional import OPEN, TENTH, broken, near, phi, within

from sulq.attacks.trackers import differencing, everybody_differenced, tracker
from sulq.kernel.schema.promise import Promise
from sulq.sandbox import sandbox

NOISES = [
    OPEN,
    Promise(4, 0, 100),
    Promise(4, "1e-6", 100, "binomial"),
    Promise(4, "1e-6", 100, "huber"),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize("promise", NOISES, ids=lambda promise: promise.noise)
def test_the_product_holds(promise: Promise) -> None:
    with sandbox(promise, 2000) as target:
        for found in (differencing(target), tracker(target), everybody_differenced(target)):
            assert within(found), found
            assert 0 < found.credits <= 100


def test_the_budget_ends_it() -> None:
    """Five credits: the whole and four others; five pairs of tracker questions, half public."""
    with sandbox(Promise(1, "1e-6", 5), 100) as target:
        found = differencing(target)
        assert (found.trials, found.credits) == (4, 2)
        assert (tracker(target).trials, tracker(target).credits) == (5, 1)


def test_exact_answers_give_everything_away() -> None:
    """Reference 1.000."""
    with sandbox(TENTH, 500) as target:
        exact = broken(target, 0)
        for found in (
            differencing(exact, 40),
            tracker(exact, 40),
            everybody_differenced(exact),
        ):
            assert found.reached == 1 and found.broken


def test_too_little_noise_is_seen_at_its_law() -> None:
    """Both histograms at half of the promise: sigma sqrt(2) each, 2 sigma on the difference."""
    with sandbox(TENTH, 4000) as target:
        found = everybody_differenced(broken(target, 1))
        assert found.trials == 1998
        assert near(found, phi(1 / 4)) and found.broken
        noisy = everybody_differenced(broken(target, 10))
        assert near(noisy, phi(1 / 40)) and not noisy.broken


def test_a_difference_is_noisier_than_its_parts() -> None:
    """Two unit answers with noise 10: Phi(1/(2 sqrt(200))) = 0.514, as in the reference."""
    assert phi(1 / (2 * math.sqrt(200))) == pytest.approx(0.514, abs=5e-4)
    with sandbox(TENTH, 200) as target:
        found = differencing(broken(target, 10), people=200)
        assert near(found, phi(1 / (2 * math.sqrt(200))))


@pytest.mark.slow
@pytest.mark.parametrize("promise", NOISES, ids=lambda promise: promise.noise)
def test_the_product_holds_at_length(promise: Promise) -> None:
    with sandbox(promise, 100_000) as target:
        found = everybody_differenced(target)
        assert found.trials >= 49_998
        assert within(found), found
