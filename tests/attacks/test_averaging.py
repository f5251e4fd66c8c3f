"""Averaging: the ledger holds where a cache does not."""

from __future__ import annotations

import pytest
from tests.attacks.fictional import OPEN, TENTH, broken, near, phi, text, within

from sulq.attacks.asking import cells, signed, signs
from sulq.attacks.trackers import disguises, repeats, rewordings
from sulq.kernel.query.sum_query import SumQuery
from sulq.kernel.schema.promise import Promise
from sulq.sandbox import sandbox

PURE = Promise(4, 0, 100)
COARSE = Promise(4, "1e-6", 100, "huber")


def test_repeats_are_one_answer() -> None:
    """S1.20"""
    with sandbox(OPEN, 1000) as target:
        found = repeats(target, 10)
        assert within(found)
        assert (found.credits, found.note) == (1, "1 different answers")


def test_logic_in_other_words_is_one_answer() -> None:
    with sandbox(OPEN, 1000) as target:
        found = rewordings(target, 4)
        assert (found.credits, found.note) == (1, "1 different answers")


@pytest.mark.slow
def test_conditions_that_always_hold_are_seen_through() -> None:
    """A new text, but the same sums: the answer store knows them again, and there is one draw."""
    with sandbox(OPEN, 100) as target:
        found = rewordings(target, 24)
        assert found.credits == 1
        assert found.note == "1 different answers"
        assert within(found)


def test_wide_rewordings_are_paid_for_and_stay_within_the_bound() -> None:
    """Answers of hundreds of sums are not searched for: each new text is a new draw, and paid."""
    with sandbox(OPEN, 1000) as target:
        found = rewordings(target, 24)
        assert found.credits > 1
        assert within(found)


def test_public_signs_are_public() -> None:
    """What the attack works out is what the table says of itself, free and exact."""
    with sandbox(OPEN, 50) as target:
        oracle = target.publish(target.secrets(0))
        said = oracle.ask(SumQuery(tuple(map(signed, range(40))), groups=(cells(oracle),)))
        assert said.credits == 0
        assert (signs(oracle, range(40), 48) == said.value[:-1].T).all()


@pytest.mark.sample(1)
@pytest.mark.parametrize("promise", [OPEN, PURE, COARSE], ids=lambda promise: promise.noise)
def test_disguises_use_the_whole_promise(promise: Promise) -> None:
    with sandbox(promise, 3000) as target:
        found = disguises(target, 10)
        assert within(found)
        assert found.credits == pytest.approx(10 if promise.noise == "huber" else 100, rel=1e-8)
        if promise.noise == "gaussian":  # the bound is no fiction: this attack reaches it
            assert found.bound > 0.65
            assert near(found, found.bound)


@pytest.mark.slow
def test_fresh_noise_for_nothing_averages_out() -> None:
    """Reference 0.855 at 400 repeats with noise 10; the law says Phi(1) = 0.841."""
    with sandbox(TENTH, 1000) as target:
        found = repeats(broken(target, 10), 400)
        assert near(found, phi(1)) and found.broken
        assert near(found, 0.855)
        assert found.credits == 1


@pytest.mark.slow
def test_a_cache_of_texts_is_passed_by() -> None:
    """Reference 0.520 for repeats, 0.835 reworded past the cache."""
    with sandbox(TENTH, 1000) as target:
        cached = broken(target, 10, stored=text)
        same = repeats(cached, 20)
        assert near(same, phi(1 / 20)) and near(same, 0.520) and not same.broken
        other = rewordings(cached, 400)
        assert near(other, phi(1)) and near(other, 0.835) and other.broken


@pytest.mark.slow
def test_averages_at_length() -> None:
    with sandbox(TENTH, 20_000) as target:
        assert near(repeats(broken(target, 10), 400), phi(1))
        assert near(repeats(broken(target, 10, stored=text), 400), phi(1 / 20))


@pytest.mark.slow
@pytest.mark.parametrize("promise", [OPEN, PURE, COARSE], ids=lambda promise: promise.noise)
def test_the_product_holds_at_length(promise: Promise) -> None:
    with sandbox(promise, 50_002) as target:
        for found in (repeats(target, 5), rewordings(target, 12), disguises(target, 8)):
            assert found.trials == 50_000
            assert within(found), found
