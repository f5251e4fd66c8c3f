"""Credits set aside: nobody else takes them, the rest comes back, and a crash loses none."""

from __future__ import annotations

import gc
import json
import shutil
from dataclasses import replace

import pytest
from tests.kernel.ledger.publishing import ONE, ask, credits, pay, publish, spent
from tests.kernel.ledger.stores import put_back, save, sql, store_of

from sulq.errors import BudgetSpent, InvalidQuery, Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger import file
from sulq.kernel.ledger.accounts import NOTHING
from sulq.kernel.ledger.inspect import inspect
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.ledger.recovery import recover
from sulq.kernel.ledger.stores.sqlite import SqliteStore


def left(journal, analyst="owner"):
    return journal.remaining(analyst)


def bodies(place):
    return [json.loads(body) for (body,) in sql(place, "select body from events order by seq")]


def forget_process(journal):
    """As if the process had died: the files are let go, nothing more is written."""
    shared = journal._shared
    shared._writer._broken = True
    shared._finish(False)


def test_what_is_reserved_is_spent_by_nobody_else_and_the_rest_comes_back(journal):
    aside = journal.reserve("owner", credits(6))
    assert left(journal) == credits(4)
    assert left(aside) == credits(6)
    with pytest.raises(BudgetSpent, match="kept for them"):
        pay(journal, "q", price=credits(5))
    ask(aside, "a", price=credits(2))
    assert (left(aside), left(journal), spent(journal)) == (credits(4), credits(4), credits(2))
    with pytest.raises(BudgetSpent, match="4 are left of what was reserved"):
        pay(aside, "b", price=credits(5))
    aside.close()
    assert left(journal) == credits(8)
    assert spent(journal) == credits(2)
    with pytest.raises(Refused, match="reservation has ended"):
        pay(aside, "c")
    with pytest.raises(Refused, match="reservation has ended"):
        aside.remaining("owner")
    aside.close()  # a second time is nothing


def test_grants_do_not_take_what_is_reserved(journal):
    aside = journal.reserve("owner", credits(6))
    with pytest.raises(Refused, match="4 are left"):
        journal.grant("ann", credits(5))
    journal.grant("ann", credits(4))
    assert journal.statement().granted_left == credits(4)
    ask(aside, "q", price=credits(6))  # every last one is there
    with pytest.raises(BudgetSpent):
        journal.reserve("owner", ONE)
    aside.close()


def test_an_analyst_reserves_out_of_the_share(journal):
    journal.grant("ann", credits(5))
    before = left(journal)
    aside = journal.reserve("ann", credits(3))
    assert left(journal) == before  # the share was kept from others anyhow
    assert (left(journal, "ann"), left(aside, "ann")) == (credits(2), credits(3))
    with pytest.raises(BudgetSpent, match="2 are left of ann's share"):
        pay(journal, "q", price=credits(3), analyst="ann")
    ask(aside, "q", analyst="ann")
    with pytest.raises(BudgetSpent, match="cannot be reserved, 2 are left"):
        journal.reserve("ann", credits(3))
    assert (left(journal, "ann"), left(aside, "ann")) == (credits(2), credits(2))
    aside.close()
    assert left(journal, "ann") == credits(4)


def test_only_its_holder_spends_from_it(journal):
    journal.grant("ann", credits(3))
    aside = journal.reserve("ann", credits(2))
    for who in ("owner", "bob"):
        with pytest.raises(Refused):
            pay(aside, "q", analyst=who)
    aside.close()
    with pytest.raises(Refused, match="no grant"):
        journal.reserve("bob", ONE)


def test_repeats_are_free_for_the_owner_and_paid_once_by_an_analyst(journal):
    journal.grant("ann", credits(3))
    ask(journal, "q")
    mine, theirs = journal.reserve("owner", credits(2)), journal.reserve("ann", credits(2))
    assert ask(mine, "q").share_charged == NOTHING
    assert left(mine) == credits(2)
    assert ask(theirs, "q", analyst="ann").share_charged == ONE
    assert ask(theirs, "q", analyst="ann").share_charged == NOTHING
    assert left(theirs, "ann") == ONE
    mine.close()
    theirs.close()
    assert left(journal, "ann") == credits(2)


def test_of_delta_there_may_be_less_than_wanted(place):
    journal = publish(place, cap=credits(10, delta=7))
    aside = journal.reserve("owner", credits(4, delta=100))
    assert left(aside) == credits(4, delta=7)
    assert left(journal) == credits(6, delta=0)
    aside.close()
    assert left(journal) == credits(10, delta=7)


def test_it_is_in_the_statement_and_in_the_chain(place):
    journal = publish(place)
    aside = journal.reserve("owner", credits(6))
    ask(aside, "q")
    (line,) = journal.statement().reservations
    assert (line.analyst, line.amount, line.left) == ("owner", credits(6), credits(5))
    assert line.at > 0
    assert journal.statement().reserved == credits(5)
    assert inspect(place).statements["people"].reservations == (line,)
    aside.close()
    assert journal.statement().reservations == ()
    journal.close()
    kinds = [(body["kind"], body.get("reservation")) for body in bodies(place)]
    seq = line.number
    assert kinds[-4:] == [("reserve", None), ("charge", seq), ("answer", None), ("return", seq)]


def test_without_a_reservation_the_events_are_as_they_were(place):
    """Ledgers of older versions, and receipts, know nothing of it."""
    journal = publish(place)
    plain = ask(journal, "q")
    aside = journal.reserve("owner", credits(2))
    paid = ask(aside, "r")
    aside.close()
    journal.close()
    found = {body["digest"]: body for body in bodies(place) if body["kind"] == "charge"}
    assert "reservation" not in found["q"]
    assert plain.receipt.body.keys() == paid.receipt.body.keys()


def test_after_a_crash_the_next_opening_gives_back_what_was_not_spent(place):
    journal = publish(place)
    aside = journal.reserve("owner", credits(6))
    ask(aside, "q", price=credits(2))
    pay(aside, "open", price=credits(1))  # charged, never answered: stays charged
    forget_process(journal)
    assert inspect(place).statements["people"].reserved == credits(3)  # looking ends nothing
    again = publish(place)
    assert again.statement().reservations == ()
    assert (spent(again), left(again)) == (credits(3), credits(7))
    again.close()
    assert bodies(place)[-1] | {"at": 0, "salt": ""} == {
        "kind": "return",
        "table": "people",
        "reservation": aside.reservation,
        "void": True,
        "at": 0,
        "salt": "",
    }
    assert spent(publish(place)) == credits(3)  # and replays


def test_another_view_of_an_open_ledger_ends_nobodys_reservation(place):
    journal = publish(place)
    aside = journal.reserve("owner", credits(6))
    other = publish(place)
    assert left(other) == credits(4)
    assert left(aside) == credits(6)
    second = publish(place, name="two")
    assert left(aside) == credits(6)
    for one in (second, other, aside, journal):
        one.close()


def test_all_tables_of_a_file_are_freed_whichever_is_opened(place):
    journal = publish(place)
    second = publish(place, name="two")
    aside = second.reserve("owner", credits(6))
    forget_process(journal)
    del aside
    again = publish(place)
    assert inspect(place).statements["two"].reserved == NOTHING
    again.close()


def test_a_crash_while_it_is_freed_is_mended_by_the_opening_after(place, monkeypatch):
    journal = publish(place)
    journal.reserve("owner", credits(6))
    forget_process(journal)

    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr(store_of(place), "append", fail)
        with pytest.raises(Refused):
            publish(place)
    again = publish(place)
    assert left(again) == credits(10)


def test_a_reservation_outlives_the_journal_it_came_from(place):
    journal = publish(place)
    aside = journal.reserve("owner", credits(6))
    journal.close()
    ask(aside, "q")
    aside.close()
    again = publish(place)  # the file was let go
    assert (spent(again), left(again)) == (ONE, credits(9))


def test_one_that_nobody_holds_any_more_goes_back(place):
    journal = publish(place)
    aside = journal.reserve("owner", credits(6))
    assert left(journal) == credits(4)
    del aside
    gc.collect()
    ask(journal, "q")  # jobs run in turn, so its end is done by now
    assert left(journal) == credits(9)


def test_none_inside_another(journal):
    aside = journal.reserve("owner", credits(6))
    with pytest.raises(Refused, match="reserve outside it"):
        aside.reserve("owner", ONE)
    aside.close()
    with pytest.raises(InvalidQuery, match="must be a Loss"):
        journal.reserve("owner", 3)


def test_a_lost_reservation_cannot_be_told_from_a_charge(place):
    """A number that no receipt names may have spent anything: everything counts as spent."""
    journal = publish(place)
    ask(journal, "a")
    journal.close()
    saved = save(place)
    journal = publish(place)
    journal.reserve("owner", credits(6))
    journal.close()
    put_back(place, saved)
    assert recover(place).burnt
    assert left(publish(place)) == NOTHING


def test_a_recovery_ends_reservations_and_counts_what_receipts_prove(path):
    """The end of the chain is lost with a charge from a reservation in it."""
    journal = publish(path)
    journal.grant("ann", credits(4))
    ours, anns = journal.reserve("owner", credits(3)), journal.reserve("ann", credits(3))
    forget_process(journal)
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", f"{path}.old{end}")
    lived = open_without_freeing(path)  # as if the process had lived on
    receipts = []
    for number, who in ((ours.reservation, "owner"), (anns.reservation, "ann")):
        lived._shared.enter()
        aside = Ledger(lived._shared, "people", number)
        receipts.append(ask(aside, f"q-{who}", price=credits(2), analyst=who).receipt.to_json())
        aside._forgotten.detach()
    forget_process(lived)
    for end in ("", "-wal"):
        shutil.copy(f"{path}.old{end}", f"{path}{end}")
    found = recover(path, receipts)
    assert (found.burnt, found.lost, found.proved) == (False, 4, 2)
    assert inspect(path).statements["people"].reservations == ()  # before anybody opens it
    again = publish(path)
    assert again.statement().reservations == ()
    assert spent(again) == credits(4)
    assert left(again, "ann") == credits(2)
    assert left(again) == credits(4)  # ten, less four spent, less what ann has left
    with pytest.raises(BudgetSpent):
        pay(again, "more", price=credits(5))


def open_without_freeing(path):
    """A journal on the chain as it is: what the first work of an opening ends stays open."""
    opened = file.open_ledger_file(path, 0.0, False)
    opened.left_open.clear()
    return Ledger(opened, "people")


@pytest.mark.parametrize(
    ("change", "of"),
    [
        ({"reservation": 3}, "charge"),  # of nobody
        ({"analyst": "ann"}, "charge"),  # of somebody else
        ({"share": [str(20 << 64), "0"]}, "charge"),  # more than it has
        ({"reservation": 99}, "return"),
        ({"amount": [str(20 << 64), "0"]}, "reserve"),  # more than there is
        ({"analyst": "bob"}, "reserve"),
    ],
)
def test_a_chain_that_no_honest_writer_makes_is_refused(path, change, of):
    from sulq.kernel.ledger.signing import START, canonical, link
    from sulq.kernel.ledger.state import ChainState

    journal = publish(path)
    journal.grant("ann", credits(1))
    aside = journal.reserve("owner", credits(6))
    ask(aside, "q")
    if of == "return":
        aside.close()
    forget_process(journal)
    store, head, rows = SqliteStore(path), START, []
    for row in store.rows():
        body = json.loads(row.body)
        text = canonical(body | (change if body["kind"] == of else {}))
        head = link(head, text)
        rows.append(row._replace(body=text, hash=head))
    store.close(tidy=False)
    with pytest.raises(Refused, match="does not verify"):
        ChainState().take(rows)


def test_a_price_below_its_parts_comes_out_of_what_is_free(place):
    """An earlier answer that was lost meanwhile: the reservation pays what was agreed, no more."""
    journal = publish(place)
    aside = journal.reserve("owner", credits(6))
    parts = {"": credits(4)}
    aside.charge(
        question="q", digest="q", noise="n", charges=parts, share=credits(1), analyst="owner"
    )
    assert (left(aside), left(journal), spent(journal)) == (credits(5), credits(1), credits(4))
    with pytest.raises(BudgetSpent, match="lifetime budget"):
        aside.charge(question="r", digest="r", noise="n", charges=parts, share=ONE, analyst="owner")
    assert replace(journal.statement().reservations[0], at=0).left == credits(5)
    assert Loss(1, 0).within(left(journal))
