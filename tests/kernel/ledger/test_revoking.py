"""Taking a share back and turning a table off: what was spent stays spent."""

from __future__ import annotations

from contextlib import closing

import pytest
from tests.kernel.ledger.publishing import ONE, ask, credits, line, pay, publish, raised, spent

from sulq.errors import InvalidQuery, Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger.header import REASON


def test_a_revoked_share_returns_and_what_was_spent_stays(journal):
    journal.grant("ann", credits(6))
    ask(journal, "a", analyst="ann")
    assert journal.remaining("owner") == credits(4)
    journal.revoke("ann", "left the project")
    assert journal.remaining("owner") == credits(9)
    assert spent(journal) == ONE
    found = line(journal, "ann")
    assert (found.granted, found.spent, found.revoked.reason) == (ONE, ONE, "left the project")


def test_a_revoked_name_gets_nothing_not_even_what_it_had(journal):
    journal.grant("ann", credits(6))
    ask(journal, "a", analyst="ann", key="k")
    open_entry = pay(journal, "b", analyst="ann")
    journal.revoke("ann")
    for use in (
        lambda: pay(journal, "new", analyst="ann"),
        lambda: pay(journal, "a", analyst="ann"),
        lambda: pay(journal, "a", analyst="ann", key="k"),
        lambda: journal.charge_all([], analyst="ann") or pay(journal, "a", analyst="ann"),
        lambda: journal.reserve("ann", ONE),
        lambda: journal.check_asker("ann"),
    ):
        with pytest.raises(Refused, match=r"'ann' was revoked.*sulq grant ann"):
            use()
    with pytest.raises(Refused, match="what was charged stands") as late:
        journal.settle(open_entry, [1])
    assert late.value.charged_unknown
    assert journal.remaining("ann") == Loss(0, 0)
    assert ask(journal, "b").values == (7,)  # the owner may still have it, under the same charge
    assert spent(journal) == credits(2)


def test_a_new_grant_goes_on_with_the_same_history(journal):
    journal.grant("ann", credits(6))
    first = ask(journal, "a", analyst="ann", key="k")
    journal.revoke("ann")
    journal.grant("ann", credits(2))
    assert line(journal, "ann").granted == credits(3)
    assert line(journal, "ann").revoked is None
    again = ask(journal, "a", analyst="ann", key="k", values=(9,))
    assert (again.values, again.share_charged) == (first.values, Loss(0, 0))
    assert journal.remaining("ann") == credits(2)


def test_reservations_of_a_revoked_analyst_end_and_others_stay(journal):
    journal.grant("ann", credits(4))
    mine, others = journal.reserve("ann", credits(3)), journal.reserve("owner", credits(2))
    journal.revoke("ann")
    with pytest.raises(Refused):
        pay(mine, "a", analyst="ann")
    assert pay(others, "a").charged
    assert journal.remaining("owner") == credits(8)
    mine.close()
    others.close()
    assert journal.remaining("owner") == credits(9)


def test_only_somebody_with_a_share_is_revoked_and_once(journal):
    for wrong in ("owner", "bob", ""):
        with pytest.raises(Refused):
            journal.revoke(wrong)
    journal.grant("ann", credits(4))
    journal.revoke("ann", "first")
    head = journal.head
    journal.revoke("ann", "second")
    assert journal.head == head
    assert line(journal, "ann").revoked.reason == "first"


def test_a_reason_is_bounded_text(journal):
    journal.grant("ann", ONE)
    for bad in ("x" * (REASON + 1), 3, "\ud800"):
        for use in (journal.close_for_good, lambda reason: journal.revoke("ann", reason)):
            with pytest.raises(InvalidQuery, match="reason"):
                use(bad)
        with pytest.raises(InvalidQuery, match="reason"):
            raised(reason=bad)


# --- close --------------------------------------------------------------------------------------


def test_a_closed_table_answers_what_was_paid_for_and_nothing_else(place):
    with closing(publish(place)) as journal:
        journal.grant("ann", credits(5))
        journal.grant("bob", credits(1))
        first = ask(journal, "a", analyst="ann", key="k")
        pay(journal, "unanswered", analyst="ann")
        open_entry = pay(journal, "open")
        aside = journal.reserve("ann", ONE)
        journal.close_for_good("the study is over")
        head = journal.head
        for use in (
            lambda: pay(journal, "new"),
            lambda: pay(journal, "free", price=Loss(0, 0)),
            lambda: pay(journal, "a", analyst="bob"),
            lambda: pay(journal, "unanswered", analyst="ann"),
            lambda: journal.grant("ann", ONE),
            lambda: journal.revoke("ann"),
            lambda: journal.reserve("owner", ONE),
            lambda: journal.declare([["q"]], 2, "terms"),
            lambda: journal.release(question="q", digest="q", noise="n", analyst="owner"),
            lambda: journal.settle(open_entry, [1]),
            lambda: journal.amend(raised()),
            lambda: journal.check_asker("ann"),
        ):
            with pytest.raises(Refused, match=r"closed for good.*the study is over"):
                use()
        with pytest.raises(Refused, match="ended"):
            pay(aside, "a", analyst="ann")
        aside.close()
        again = [pay(journal, "a", analyst="ann", key=key) for key in (None, "k", "other")]
        assert [entry.values for entry in again] == [first.values] * 3
        assert again[0].receipt == first.receipt
        assert journal.head == head  # nothing was written
        assert journal.remaining("owner") == journal.remaining("ann") == Loss(0, 0)
        assert journal.close_for_good("again").reason == "the study is over"
    with closing(publish(place)) as journal:
        assert journal.statement().closed.reason == "the study is over"
        assert pay(journal, "a", analyst="ann").values == first.values
        with pytest.raises(Refused, match="closed for good"):
            pay(journal, "new")


def test_a_batch_of_stored_answers_stays_readable(journal):
    entries = [ask(journal, name) for name in ("a", "b")]
    parts = dict.fromkeys(journal.header.accounts, ONE)
    batch = [(f'{{"ask":"{name}"}}', name, "n", parts, ONE, ()) for name in ("a", "b", "a")]
    journal.close_for_good()
    again = journal.charge_all(batch, analyst="owner", key="k")
    assert [entry.seq for entry in again] == [entries[0].seq, entries[1].seq, entries[0].seq]
    batch.append(('{"ask":"c"}', "c", "n", parts, ONE, ()))
    with pytest.raises(Refused, match="closed for good"):
        journal.charge_all(batch, analyst="owner")


# --- amend --------------------------------------------------------------------------------------
