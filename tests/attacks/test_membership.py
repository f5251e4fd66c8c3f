"""Membership: who is in the group is told by exact means, and not by the product's."""

from __future__ import annotations

import math

import pytest
from tests.attacks.fictional import broken, near, phi, within

from sulq.attacks.trackers import membership
from sulq.kernel.schema.promise import Promise
from sulq.sandbox import sandbox

NOISES = [
    Promise(4, "1e-6", 400),
    Promise(4, 0, 400),
    Promise(4, "1e-6", 400, "binomial"),
]


def law(rows: int, attributes: int, sigma: float) -> float:
    """A member adds 1; the others n/2 (+-1)^2, the noise sigma^2, over the attributes."""
    return phi(0.5 / math.sqrt((rows / 2 + sigma**2) / attributes))


@pytest.mark.sample(1)
@pytest.mark.parametrize("promise", NOISES, ids=lambda promise: promise.noise)
def test_the_product_holds(promise: Promise) -> None:
    with sandbox(promise, 2000) as target:
        found = membership(target)
        assert within(found), found
        assert found.credits == 400
        assert found.note == "400 attributes"


@pytest.mark.slow
def test_exact_means_tell_members() -> None:
    """n = 400, 1000 attributes: about 0.86 of all guesses; many attributes tell all."""
    with sandbox(Promise(1, "1e-6", 1000), 400) as target:
        found = membership(broken(target, 0))
        assert near(found, law(400, 1000, 0)) and found.broken
    with sandbox(Promise(1, "1e-6", 1000), 50) as target:
        assert membership(broken(target, 0)).reached >= 0.96


@pytest.mark.slow
def test_noise_hides_members_at_its_law() -> None:
    with sandbox(Promise(1, "1e-6", 500), 2000) as target:
        found = membership(broken(target, 30))
        assert near(found, law(2000, 500, 30))


def test_fewer_attributes_get_the_same_promise() -> None:
    with sandbox(NOISES[0], 500) as target:
        found = membership(target, 50)
        assert found.note == "50 attributes"
        assert found.credits == pytest.approx(400)
        assert within(found)


@pytest.mark.slow
@pytest.mark.parametrize("promise", NOISES, ids=lambda promise: promise.noise)
def test_the_product_holds_at_length(promise: Promise) -> None:
    with sandbox(promise, 50_000) as target:
        found = membership(target)
        assert found.trials == 50_000
        assert within(found), found
