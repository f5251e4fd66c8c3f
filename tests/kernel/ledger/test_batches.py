"""Several questions as one: all are charged, or none; a key stands for the whole."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernel.ledger.publishing import ONE, ask, credits, pay, publish, spent
from tests.kernel.ledger.stores import store_of
from tests.kernel.ledger.test_reservations import forget_process

from sulq.errors import BudgetSpent, InvalidQuery, Refused
from sulq.kernel.ledger.accounts import NOTHING
from sulq.kernel.ledger.budget import Budgets
from sulq.kernel.ledger.events import PricedRequest
from sulq.kernel.ledger.recovery import recover
from sulq.kernel.ledger.state import ATTEMPTS


def priced(name, price=ONE, accounts=("",)):
    question = f'{{"ask":"{name}"}}'
    return PricedRequest(question, name, "n", dict.fromkeys(accounts, price), price)


def batch(journal, *questions, analyst="owner", key=None):
    found = [one if isinstance(one, PricedRequest) else priced(one) for one in questions]
    return journal.charge_all(found, analyst=analyst, key=key)


def settled(journal, entries, first=7):
    missing = [entry for entry in entries if not entry.answered]
    return journal.settle_all([(entry, (first + i,)) for i, entry in enumerate(missing)])


def test_all_are_charged_and_answered_in_order(journal):
    entries = batch(journal, "a", "b", "c")
    assert [entry.digest for entry in entries] == ["a", "b", "c"]
    assert [entry.charged for entry in entries] == [{"": ONE}] * 3
    assert spent(journal) == credits(3)
    stored = settled(journal, entries)
    assert [entry.values for entry in stored] == [(7,), (8,), (9,)]
    assert all(entry.receipt is not None for entry in stored)
    assert [entry.values for entry in batch(journal, "c", "a")] == [(9,), (7,)]
    assert spent(journal) == credits(3)


def test_none_is_charged_if_the_last_does_not_fit(journal):
    before = journal.statement().head
    with pytest.raises(BudgetSpent, match="costs 4 credits, 2 are left"):
        batch(journal, priced("a", credits(4)), priced("b", credits(4)), priced("c", credits(4)))
    assert journal.statement().head == before
    assert spent(journal) == NOTHING
    assert not journal.paid("owner", "a", "n")
    batch(journal, priced("a", credits(5)), priced("b", credits(5)))  # exactly
    assert spent(journal) == credits(10)


def test_none_is_charged_if_one_is_refused_for_another_reason(journal):
    ask(journal, "b")
    other = priced("b")._replace(question="something else")
    with pytest.raises(Refused, match="same digest"):
        batch(journal, "a", other)
    with pytest.raises(Refused, match="same digest"):
        batch(journal, "c", priced("c")._replace(question="something else"))
    with pytest.raises(InvalidQuery):
        batch(journal, "a", priced("d")._replace(share=3))
    assert spent(journal) == ONE


def test_twice_in_one_batch_is_charged_once(journal):
    first, _, second = batch(journal, "a", "b", "a")
    assert first.seq == second.seq
    assert spent(journal) == credits(2)


def test_an_analysts_share_pays_for_all_or_none(journal):
    journal.grant("ann", credits(3))
    ask(journal, "old")
    with pytest.raises(BudgetSpent, match="of ann's share"):
        batch(journal, "a", "old", priced("b", credits(2)), analyst="ann")
    assert journal.remaining("ann") == credits(3)
    batch(journal, "a", "old", "b", analyst="ann")  # new to ann: old costs the share, no account
    assert journal.remaining("ann") == NOTHING
    assert spent(journal) == credits(3)


def test_a_batch_is_paid_from_a_reservation(journal):
    aside = journal.reserve("owner", credits(4))
    with pytest.raises(BudgetSpent, match="of what was reserved"):
        batch(aside, priced("a", credits(3)), priced("b", credits(2)))
    assert aside.remaining("owner") == credits(4)
    batch(aside, priced("a", credits(3)), "b")
    assert aside.remaining("owner") == NOTHING
    aside.close()
    assert journal.remaining("owner") == credits(6)


accounts = ("x", "y", "z")
prices = st.dictionaries(st.sampled_from(accounts), st.integers(0, 6).map(credits))


@given(st.lists(prices, min_size=1, max_size=5), st.lists(prices, max_size=4))
def test_a_batch_is_admitted_exactly_when_its_questions_one_by_one_are(asked, before):
    together = publish(":memory:", accounts=accounts)
    alone = publish(":memory:", accounts=accounts)
    for journal in (together, alone):
        for place, charged in enumerate(before):
            with suppress(BudgetSpent):
                pay(journal, f"before{place}", charges=charged)
    start = together.statement()
    questions = [
        PricedRequest(f"q{i}", f"q{i}", "n", charged, ONE) for i, charged in enumerate(asked)
    ]
    try:
        for question in questions:
            pay(alone, question.digest, question=question.question, charges=question.charges)
        fits = True
    except BudgetSpent:
        fits = False
    try:
        together.charge_all(questions, analyst="owner")
        assert fits
        assert together.statement().accounts == alone.statement().accounts
    except BudgetSpent:
        assert not fits
        assert together.statement() == start
    together.close()
    alone.close()


def test_a_key_stands_for_the_whole(journal):
    entries = batch(journal, "a", "b", key="k")
    stored = settled(journal, entries)
    again = batch(journal, "a", "b", key="k")
    assert [entry.values for entry in again] == [entry.values for entry in stored]
    assert journal.planned("owner", "k") == (("a", "n", ()), ("b", "n", ()))
    for other in (("a",), ("a", "c"), ("b", "a"), ("a", "b", "c")):
        with pytest.raises(Refused, match="used for something else"):
            batch(journal, *other, key="k")
    with pytest.raises(Refused, match="used for another question or plan"):
        pay(journal, "a", key="k")
    pay(journal, "one", key="single")
    with pytest.raises(Refused, match="used for something else"):
        batch(journal, "one", key="single")
    journal.grant("ann", credits(2))
    batch(journal, "a", "b", analyst="ann", key="k")  # keys are each analyst's own
    assert spent(journal) == credits(3)


def test_a_refused_batch_leaves_its_key_unused(journal):
    with pytest.raises(BudgetSpent):
        batch(journal, "a", priced("b", credits(10)), key="k")
    assert journal.planned("owner", "k") is None
    batch(journal, "a", "b", key="k")


def test_at_most_three_attempts(journal):
    for _ in range(ATTEMPTS):
        entries = batch(journal, "a", "b", key="k")
        assert not any(entry.answered for entry in entries)
    with pytest.raises(Refused, match="3 attempts"):
        batch(journal, "a", "b", key="k")
    settled(journal, entries)
    assert all(entry.answered for entry in batch(journal, "a", "b", key="k"))
    assert spent(journal) == credits(2)


def test_it_replays(place):
    journal = publish(place)
    entries = batch(journal, "a", "b", key="k")
    journal.settle(entries[0], (5,))
    forget_process(journal)
    again = publish(place)
    first, second = batch(again, "a", "b", key="k")
    assert (first.values, second.answered) == ((5,), False)
    assert spent(again) == credits(2)
    settled(again, [second])
    again.close()
    again = publish(place)
    assert [entry.values for entry in batch(again, "a", "b", key="k")] == [(5,), (7,)]


def test_after_a_recovery_an_unanswered_batch_is_not_drawn_again_for_nothing(place, state):
    """Its answers may have been released and lost. G.3.5"""
    journal = publish(place)
    settled(journal, batch(journal, "a"))
    batch(journal, "a", "b", key="k")
    journal.close()
    next(state.glob("ledgers/*/anchor")).unlink()
    recover(place)
    again = publish(place)
    with pytest.raises(Refused, match="lost when the ledger was recovered"):
        batch(again, "a", "b", key="k")
    before = spent(again)
    batch(again, "a", "b", key="new")
    assert spent(again) == before + ONE  # b, a second time


def test_a_batch_is_one_transaction(place, monkeypatch):
    sizes, append = [], store_of(place).append

    def counted(self, rows):
        sizes.append([json.loads(row.body)["kind"] for row in rows])
        append(self, rows)

    journal = publish(place)
    monkeypatch.setattr(store_of(place), "append", counted)
    entries = batch(journal, "a", "b", "c", key="k")
    settled(journal, entries)
    journal.close()
    assert sizes == [["plan", "charge", "charge", "charge"], ["answer", "answer", "answer"]]


def test_what_is_admitted_is_what_is_spent(journal, monkeypatch):
    """Each question is planned once, when it is admitted; its event spends that very plan."""
    plan, planned, spend, booked = Budgets.plan, [], Budgets.spend, []

    def noted(self, *asked):
        planned.append(plan(self, *asked))
        return planned[-1]

    def spending(self, admitted):
        if self is journal._table.budgets:  # not the copy on which a batch is tried out
            booked.append(admitted)
        spend(self, admitted)

    monkeypatch.setattr(Budgets, "plan", noted)
    monkeypatch.setattr(Budgets, "spend", spending)
    pay(journal, "a")
    batch(journal, "b", "c")
    assert len(planned) == 3
    assert [id(one) for one in booked] == [id(one) for one in planned]


def test_a_charge_that_was_not_admitted_is_not_booked(journal, monkeypatch):
    admit = Budgets.admit
    cheaper = lambda self, *asked: replace(admit(self, *asked), parts=())  # noqa: E731
    monkeypatch.setattr(Budgets, "admit", cheaper)
    with pytest.raises(Refused):
        pay(journal, "a")
    assert not journal._shared.usable


def test_what_fails_in_the_middle_of_adding_writes_nothing(place, monkeypatch):
    """A fault of ours, not a refusal: the writer stops, and the chain has none of the batch."""
    journal = publish(place)
    add, seen = journal._shared.add, []

    def failing(body, noisy=None, admitted=None):
        seen.append(body)
        if len(seen) == 2:
            raise InvalidQuery("no loss")
        return add(body, noisy)

    monkeypatch.setattr(journal._shared, "add", failing)
    with pytest.raises(Refused, match="a write failed"):
        batch(journal, "a", "b")
    again = publish(place)
    assert spent(again) == NOTHING


def test_settling_all_refuses_before_it_stores(journal):
    entries = batch(journal, "a", "b")
    foreign = replace(entries[1], digest="zzz")
    with pytest.raises(Refused, match="not open"):
        journal.settle_all([(entries[0], (1,)), (foreign, (2,))])
    assert not batch(journal, "a")[0].answered
    assert [one.values for one in settled(journal, entries)] == [(7,), (8,)]
    assert [one.values for one in journal.settle_all([(entries[0], (99,))])] == [(7,)]


def test_batches_that_race_are_each_whole(place):
    """32 threads with batches of three, for a cap of forty."""
    journal = publish(place, cap=credits(40))
    gate, whole, problems = threading.Barrier(32), [], []

    def act(me):
        gate.wait()
        try:
            whole.append(len(batch(journal, *(f"{me}-{i}" for i in range(3)))))
        except BudgetSpent:
            pass
        except BaseException as problem:  # noqa: BLE001 - reported by the main thread
            problems.append(problem)

    threads = [threading.Thread(target=act, args=(me,)) for me in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert whole == [3] * 13
    assert spent(journal) == credits(39)


def test_the_desk_needs_the_trial(journal, monkeypatch):
    """The control: without counting one before the next, the batch passes the cap."""
    monkeypatch.setattr(Budgets, "copy", lambda self: Budgets(self.names, self.cap))
    with pytest.raises(BudgetSpent):
        batch(journal, priced("a", credits(6)), priced("b", credits(6)))
    pay(journal, "c", price=credits(6))
    batch(journal, priced("a", credits(6)))
    assert not spent(journal).within(credits(10))
