"""The cap is reached and never passed; a repeat shows nothing new."""

from __future__ import annotations

import pytest
from tests.attacks.broken import AnsweredTwice, LateCharge, Textbook, broken
from tests.attacks.sandbox import honest

from sulq.attacks.concurrency import overspending, races, repeating, together
from sulq.kernel.schema.promise import Promise

PROMISE = Promise(1, queries=100)


def test_a_late_charge_is_caught() -> None:
    finding = overspending(broken(LateCharge, PROMISE), rounds=2)
    assert finding.reached > finding.bound == 100
    assert finding.broken
    assert "2 of 2" in finding.note


def test_fresh_noise_for_free_is_caught() -> None:
    finding = repeating(broken(AnsweredTwice, PROMISE))
    assert finding.reached == 9  # three of four, three times
    assert finding.broken


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "promise",
    [
        PROMISE,
        Promise(1, "1e-6", queries=100),
        Promise(1, "1e-6", queries=7, noise="huber"),
        Promise(1, "1e-6", queries=1, noise="binomial"),
    ],
    ids=str,
)
def test_the_database_spends_all_and_no_more(promise: Promise) -> None:
    spent, again = races(honest(promise), rounds=2)
    assert spent.reached == spent.bound == promise.credits
    assert not spent.broken
    assert again.reached == 0
    assert again.trials >= 4


def test_a_locked_account_passes() -> None:
    assert not any(finding.broken for finding in races(broken(Textbook, PROMISE), rounds=1))


def test_together_starts_all() -> None:
    seen: list[int] = []
    together(seen.append, 5)
    assert sorted(seen) == [0, 1, 2, 3, 4]
