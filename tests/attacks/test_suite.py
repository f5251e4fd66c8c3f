"""The suite: attacks by name, refusals told, and the product holding against all of it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sulq import BudgetSpent, InvalidQuery, Promise
from sulq.attacks import suite
from sulq.attacks.result import SHARE, AttackResult
from sulq.attacks.suite import ATTACKS, REFUSED, Attack, chosen, light, run, worst_light
from sulq.errors import EngineFailed
from sulq.sandbox import sandbox


def finding(name: str, reached: float = 0.5, bound: float = 0.6, trials: int = 100) -> AttackResult:
    return AttackResult(name, SHARE, reached, bound, 0.01, trials, Fraction(3))


def failing(error: Exception):
    def attempt(target):
        raise error

    return attempt


@pytest.fixture
def planted(monkeypatch):
    """A suite of three: one with effort, one with two findings, one that is refused."""
    attacks = (
        Attack("one", "little or much", lambda t: finding("one"), lambda t: finding("one", 0.55)),
        Attack("two", "twice", lambda t: [finding("a"), finding("b", 0.9)], lambda t: []),
        Attack("spent", "too much", *[failing(BudgetSpent("not enough is left"))] * 2),
    )
    monkeypatch.setattr(suite, "ATTACKS", attacks)
    return attacks


def test_findings_come_in_order_and_a_refusal_is_told(planted):
    found = run(None)
    assert [one.attack for one in found] == ["one", "a", "b", "spent"]
    refused = found[-1]
    assert (refused.measure, refused.trials, refused.note) == (REFUSED, 0, "not enough is left")
    assert not refused.broken
    assert light(refused) == "none"  # never green: nothing was tried


def test_effort_and_names_choose(planted):
    assert [one.reached for one in run(None, ["one"])] == [0.5]
    assert [one.reached for one in run(None, ["one"], "full")] == [0.55]
    assert [one.attack for one in run(None, ["two", "one"])] == ["one", "a", "b"]


def test_who_watches_sees_each_begin_and_end(planted):
    told = []
    run(None, None, "quick", lambda attack, found: told.append((attack.name, len(found))))
    assert told == [("one", 0), ("one", 1), ("two", 0), ("two", 2), ("spent", 0), ("spent", 1)]


def test_wrong_words_are_refused(planted):
    with pytest.raises(InvalidQuery, match="did you mean 'two'"):
        run(None, ["twoo"])
    with pytest.raises(InvalidQuery, match="effort must be"):
        run(None, effort="some")


def test_a_fault_is_not_taken_for_a_refusal(monkeypatch):
    broken = Attack("broken", "x", *[failing(EngineFailed())] * 2)
    monkeypatch.setattr(suite, "ATTACKS", (broken,))
    with pytest.raises(EngineFailed):
        run(None)


def test_the_worst_light_is_the_light_of_all():
    none, green = finding("n", trials=0), finding("g")
    amber, red = finding("a", 0.9, 0.95), finding("r", 0.64)
    assert [light(one) for one in (none, green, amber, red)] == ["none", "green", "amber", "red"]
    assert worst_light([none, green, amber, red]) == "red"
    assert worst_light([green, amber, none]) == "amber"
    assert worst_light([none, green]) == "green"
    assert worst_light([none]) == worst_light([]) == "none"


def twice(*attempts: list[AttackResult]):
    left = [*attempts]
    return lambda target: left.pop(0)


def test_chance_is_given_a_second_look_and_a_fault_is_not_forgiven():
    fine, high = finding("x", 0.58), finding("x", 0.64)
    assert high.broken
    for attempts, broken, said in [
        ([[fine]], False, ""),
        ([[high], [fine]], False, "a first attempt reached 0.640, a second did not pass the bound"),
        ([[high], [high]], True, "broken twice"),
    ]:
        (found,) = Attack("x", "x", twice(*attempts), twice()).findings(None, "quick")
        assert (found.broken, found.note) == (broken, said)


def test_of_several_findings_each_is_judged_by_its_own_two_attempts():
    fine, high = finding("x", 0.58), finding("x", 0.64)
    attack = Attack("x", "x", twice([fine, high, high], [high, high, fine]), twice())
    assert [one.broken for one in attack.findings(None, "quick")] == [False, True, False]


# --- the real suite ------------------------------------------------------------------------------


def test_names_are_words_and_each_says_what_it_tries():
    names = [attack.name for attack in ATTACKS]
    assert len(set(names)) == len(names) >= 10
    assert chosen() == ATTACKS
    assert all(name.replace("-", "").islower() for name in names)
    assert all(20 <= len(attack.tries) <= 90 for attack in ATTACKS)


SLOW = {"denials", "timing", "audit-tables"}
"""Seconds each; the whole suite is run by `make test-all`."""
FAR = 5.0
"""Standard errors that chance passes less often than once in a million."""


def exceeded(findings: list[AttackResult]) -> list[str]:
    return [str(one) for one in findings if one.reached > one.bound + FAR * one.error]


@pytest.mark.parametrize(
    "promise",
    [
        pytest.param(Promise(1, "1e-6", 100), marks=pytest.mark.slow),
        pytest.param(Promise(2, 0, 20), marks=pytest.mark.slow),
        pytest.param(Promise(1, "1e-6", 9, noise="huber"), marks=pytest.mark.slow),
    ],
    ids=lambda promise: promise.noise,
)
def test_the_product_holds_against_the_quick_suite(promise):
    names = [attack.name for attack in ATTACKS if attack.name not in SLOW]
    with sandbox(promise, 300) as target:
        found = run(target, names)
    assert exceeded(found) == []
    assert [one.attack for one in found if one.measure == REFUSED] == []
    assert all(one.credits <= promise.credits * 2 for one in found)  # two databases, else one
    assert sum(light(one) == "green" for one in found) >= len(names)


def test_what_a_promise_gives_away_is_amber():
    with sandbox(Promise(30, "1e-6", 10), 300) as target:
        found = run(target, ["disguises", "forks"])
    assert exceeded(found) == []
    assert worst_light(found) == "amber"
    assert found[0].reached > 0.9  # and the attack does take it


@pytest.mark.slow
@pytest.mark.parametrize("promise", [Promise(1, "1e-6", 1000), Promise(1, 0, 100)], ids=str)
def test_the_product_holds_against_the_full_suite(promise):
    with sandbox(promise, 1000) as target:
        found = run(target, [one.name for one in ATTACKS if one.name != "timing"], "full")
    assert exceeded(found) == []
