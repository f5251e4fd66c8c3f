"""Pooling: shares lie inside one budget; databases of the same people add up."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.attacks.fictional import OPEN, TENTH, broken, near, phi, within

from sulq.attacks.pooling import analysts, databases
from sulq.attacks.result import ALARM, best_guess
from sulq.kernel.schema.promise import Promise
from sulq.sandbox import sandbox

PURE = Promise(4, 0, 100)
COARSE = Promise(4, "1e-6", 100, "binomial")


def test_one_answer_told_to_many_is_one_loss() -> None:
    with sandbox(OPEN, 1000) as target:
        found = analysts(target, 16)
        assert within(found)
        assert found.credits == Fraction(100, 16)
        assert found.note == "16 analysts, 1 different answers"


@pytest.mark.sample(1)
@pytest.mark.parametrize("promise", [OPEN, PURE, COARSE], ids=lambda promise: promise.noise)
def test_all_shares_together_are_one_budget(promise: Promise) -> None:
    with sandbox(promise, 2000) as target:
        found = analysts(target, 16, different=True)
        assert found.note == "16 analysts, 16 different answers"
        assert found.credits == pytest.approx(16 if promise.noise == "binomial" else 100)
        assert within(found), found
        if promise.noise == "gaussian":
            assert near(found, found.bound)


def test_a_ledger_for_each_analyst_is_passed() -> None:
    """Reference 0.662 for 64 analysts with noise 10; the law says Phi(8/20) = 0.655."""
    with sandbox(TENTH, 2000) as target:
        found = analysts(broken(target, 10), 64)
        assert near(found, phi(8 / 20)) and near(found, 0.662)
        assert found.broken and found.credits == 64


@pytest.mark.parametrize("promise", [OPEN, PURE], ids=lambda promise: promise.noise)
def test_databases_add_up_and_no_more(promise: Promise) -> None:
    """Each keeps its promise, together they pass it: 4-fold mu^2, 4-fold epsilon."""
    with sandbox(promise, 3000) as target:
        found = databases(target, 4)
        own = best_guess(promise, 100)
        assert within(found), found
        assert found.credits == 400
        assert "population account" in found.note
        if promise.noise == "gaussian":
            assert near(found, found.bound)
            assert found.reached > own + ALARM * found.error
            assert "is passed" in found.note


def test_one_database_alone_is_not_passed() -> None:
    with sandbox(OPEN, 1000) as target:
        found = databases(target, 1)
        assert within(found) and found.bound == best_guess(OPEN, 100)


@pytest.mark.slow
@pytest.mark.parametrize("promise", [OPEN, PURE, COARSE], ids=lambda promise: promise.noise)
def test_the_product_holds_at_length(promise: Promise) -> None:
    with sandbox(promise, 50_002) as target:
        for found in (
            analysts(target, 8),
            analysts(target, 8, different=True),
            databases(target, 4),
        ):
            assert found.trials == 50_000
            assert within(found), found
