"""Releases under assumptions: declared first, inside one set of the menu, every cap divided. M.9"""

from __future__ import annotations

import shutil

import pytest
from tests.kernel.ledger.publishing import ask, credits, pay, publish, spent
from tests.kernel.ledger.stores import put_back, save

from sulq.errors import BudgetSpent, Refused
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.ledger.recovery import recover

NOISE = '{"guarantee":"noiseless, under assumptions"}'
MENU = (("a", "b"), ("b", "c"))


def released(journal, question, analyst=OWNER):
    return journal.release(
        question=question, digest=f"exact-{question}", noise=NOISE, analyst=analyst
    )


def declared(place=":memory:", divisor=4):
    journal = publish(place)
    journal.declare(MENU, divisor, "terms")
    return journal


def test_the_first_release_divides_every_cap_once():
    journal = declared()
    assert journal.remaining(OWNER).credits == credits(10).credits
    assert not released(journal, "a").answered
    assert journal.remaining(OWNER).credits == credits(10).credits // 4
    released(journal, "b")
    found = journal.statement()
    assert (found.released, found.divisor) == (2, 4)
    assert found.cap.credits == credits(10).credits // 4
    assert found.cap.delta == publish(":memory:").statement().cap.delta
    pay(journal, "x")
    pay(journal, "y")
    with pytest.raises(BudgetSpent):
        pay(journal, "z")


def test_what_is_spent_and_granted_must_fit_the_divided_cap():
    journal = declared()
    for name in "xy":
        pay(journal, name)
    released(journal, "a")  # 4 x 2 <= 10
    journal = declared()
    pay(journal, "x")
    journal.grant("ann", credits(2))
    with pytest.raises(BudgetSpent, match=r"multiplies what noisy answers cost by 4"):
        released(journal, "a")
    assert journal.statement().divisor == 1
    assert journal.released == frozenset()


def test_only_one_set_of_the_menu_is_released():
    journal = declared()
    released(journal, "b")
    released(journal, "c")
    with pytest.raises(Refused, match="in no set of them"):
        released(journal, "a")
    with pytest.raises(Refused, match="not declared"):
        released(journal, "d")
    assert journal.released == {"b", "c"}


def test_nothing_is_declared_after_a_noisy_answer_nor_twice():
    journal = publish(":memory:")
    pay(journal, "x")
    with pytest.raises(Refused, match="must not be chosen after seeing one"):
        journal.declare(MENU, 4, "terms")
    with pytest.raises(Refused, match="not declared"):
        released(journal, "a")
    with pytest.raises(Refused, match="already"):
        declared().declare(MENU, 4, "terms")


def test_a_release_is_stored_once_and_survives_reopening(place):
    journal = declared(place)
    first = journal.settle(released(journal, "a"), [41])
    assert journal.settle(first, [99]).values == (41,)
    journal.close()
    journal = publish(place)
    again = released(journal, "a")
    assert (again.values, again.receipt.to_json()) == ((41,), first.receipt.to_json())
    assert "under assumptions" in again.receipt.body["noise"]
    assert journal.declaration.menu == MENU
    assert journal.statement().divisor == 4
    assert [entry.question for entry in journal.entries()] == ["a"]


def test_an_analyst_without_a_grant_gets_nothing():
    journal = declared()
    with pytest.raises(Refused, match="no grant"):
        released(journal, "a", analyst="eve")


def test_a_lost_release_burns_even_with_its_receipt(place):
    journal = declared(place)
    journal.close()
    saved = save(place)
    journal = publish(place)
    receipt = journal.settle(released(journal, "a"), [41]).receipt.to_json()
    journal.close()
    put_back(place, saved)
    assert recover(place, [receipt]).burnt
    assert spent(publish(place)) == credits(10)


def test_an_unanswered_release_is_closed_by_a_recovery(path, tmp_path):
    """A second draw of a top-up would be a second look, and no later payment covers it."""
    journal = declared(path)
    released(journal, "a")
    journal.close()
    shutil.copy(path, tmp_path / "backup")
    journal = publish(path)
    receipt = ask(journal, "x").receipt.to_json()
    journal.close()
    shutil.copy(tmp_path / "backup", path)
    assert not recover(path, [receipt]).burnt
    journal = publish(path)
    with pytest.raises(Refused, match="lost when the ledger was recovered"):
        released(journal, "a")
    assert journal.statement().divisor == 4


def lose(place, act):
    """What `act` does to the ledger is lost, and the ledger recovered without receipts."""
    saved = save(place)
    journal = publish(place)
    act(journal)
    journal.close()
    put_back(place, saved)
    assert recover(place).burnt
    return publish(place)


def test_after_a_recovery_nothing_more_is_released(place):
    """A second draw of a top-up, or another set of the menu: whatever was lost may be out."""
    journal = declared(place)
    first = journal.settle(released(journal, "b"), [41])
    journal.close()
    journal = lose(place, lambda j: j.settle(released(j, "a"), [7]))
    for question in ("a", "c"):
        with pytest.raises(Refused, match="exact release is closed"):
            released(journal, question)
    assert released(journal, "b").values == first.values  # a repeat says nothing new
    assert journal.statement().released == 1


def test_after_a_recovery_nothing_is_declared(place):
    journal = publish(place)
    journal.close()
    journal = lose(place, lambda j: j.declare(MENU, 4, "terms"))
    with pytest.raises(Refused, match="exact release is closed"):
        journal.declare(MENU, 4, "terms")


def test_a_statement_says_that_a_release_may_be_lost(place):
    facts = {"schema": "{}", "promise": '{"epsilon":"1"}', "assumptions": "{}"}
    with_assumptions = publish(place, facts=facts)
    assert not with_assumptions.statement().maybe_released
    ask(with_assumptions, "x")
    with_assumptions.close()
    saved = save(place)
    with_assumptions = publish(place, facts=facts)
    ask(with_assumptions, "y")
    with_assumptions.close()
    put_back(place, saved)
    recover(place)
    found = publish(place, facts=facts)
    assert found.statement().maybe_released
    found.close()
