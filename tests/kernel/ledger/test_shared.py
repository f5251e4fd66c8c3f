"""Several replicas on one ledger: one order of decisions, one value per question."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
from tests.kernel.ledger.publishing import ONE, ask, credits, pay, publish, spent
from tests.kernel.ledger.replicas import kill
from tests.kernel.ledger.stores import new_place
from tests.postgres_server import running
from tests.waiting import LONGEST, come

from sulq.errors import BudgetSpent, Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger import shared
from sulq.kernel.ledger.events import GrantEvent
from sulq.kernel.ledger.state_dir import read_place
from sulq.kernel.ledger.stores.postgres import PostgresStore
from sulq.kernel.ledger.stores.store import Interrupted

# -- one order ------------------------------------------------------------------------------------


def test_each_sees_at_once_what_the_other_did(both):
    one, two = both
    first = ask(one, "q", values=(5,))
    assert spent(two) == ONE
    again = pay(two, "q")
    assert (again.values, again.charged, again.receipt) == ((5,), {}, first.receipt)
    two.grant("ann", credits(3))
    assert one.remaining("owner") == credits(6)
    assert [entry.digest for entry in one.entries()] == ["q"]
    assert ask(one, "r", analyst="ann").answered
    assert two.remaining("ann") == credits(2)


def test_pages_end_where_the_look_before_them_ended(both, monkeypatch):
    """What another replica commits between the look and the page is not damage."""
    one, two = both
    ask(one, "q")
    looked = one._shared._server.since

    def then_somebody_writes(after):
        found = looked(after)
        ask(two, f"after {after}")
        return found

    monkeypatch.setattr(one._shared._server, "since", then_somebody_writes)
    listed = [entry.digest for entry in one.entries()]
    assert listed[0] == "q"
    assert listed == [entry.digest for entry in two.entries()][: len(listed)]
    monkeypatch.undo()
    assert ask(one, "r").answered


def test_both_compute_one_question_and_the_first_to_settle_wins(both):
    one, two = both
    first, second = pay(one, "q", key="k"), pay(two, "q", key="k")
    assert (first.charged, second.charged) == ({"": ONE}, {})
    won = two.settle(second, [2])
    lost = one.settle(first, [1])
    assert won.values == lost.values == (2,)
    assert won.receipt == lost.receipt
    assert spent(one) == spent(two) == ONE


def test_attempts_under_a_key_are_counted_over_all_replicas(both):
    one, two = both
    pay(one, "q", key="k")
    pay(two, "q", key="k")
    pay(one, "q", key="k")
    with pytest.raises(Refused, match="3 attempts"):
        pay(two, "q", key="k")


def test_the_last_credit_is_spent_once(both):
    one, two = both
    pay(one, "much", price=credits(9))
    got = []

    def take(journal, name):
        with suppress(BudgetSpent):
            got.append(pay(journal, name).digest)

    asked = [(journal, f"{number}") for number, journal in enumerate(both * 8)]
    threads = [threading.Thread(target=take, args=each) for each in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 1
    assert spent(one) == spent(two) == credits(10)


def test_a_change_of_the_owner_holds_everywhere_at_once(replicas, both):
    one, two = both
    one.grant("ann", credits(3))
    entry = pay(two, "q", analyst="ann")
    one.revoke("ann")
    with pytest.raises(Refused, match="revoked"):
        two.settle(entry, [1])
    with replicas[0].here():
        one.close_for_good("over")
    with pytest.raises(Refused, match="over"):
        pay(two, "r")


# -- reservations ---------------------------------------------------------------------------------


def test_opening_a_replica_ends_nobodys_reservation(replicas):
    one, two = replicas
    first = one.open()
    aside = first.reserve("owner", credits(4))
    second = two.open()
    pay(second, "other")
    assert second.remaining("owner") == credits(5)
    assert ask(aside, "q").answered
    aside.close()
    assert second.remaining("owner") == credits(8)
    first.close()
    second.close()


def test_what_a_killed_replica_set_aside_comes_back(replicas, monkeypatch):
    monkeypatch.setattr(shared, "PAUSE", 0.05)
    one, two = replicas
    first, second = one.open(), two.open()
    aside = first.reserve("owner", credits(6))
    ask(aside, "q")
    assert second.remaining("owner") == credits(4)
    kill(first)
    come(lambda: second.remaining("owner") == credits(9))  # without anybody asking
    assert spent(second) == ONE
    second.close()


def test_a_reservation_ended_too_early_is_refused_not_spent_twice(both, monkeypatch):
    """A replica that was taken for dead: its credits are somebody else's now."""
    monkeypatch.setattr(shared, "PAUSE", 0.0)
    one, two = both
    aside = one.reserve("owner", credits(10))
    monkeypatch.setattr(PostgresStore, "present", lambda _: set())
    pay(two, "all", price=credits(10))
    with pytest.raises(Refused, match="reservation"):
        pay(aside, "q")
    assert spent(one) == credits(10)


# -- broken connections ---------------------------------------------------------------------------


def cut(journal):
    """The server ends this replica's connection."""
    server = journal._shared._server
    process = server._connection.info.backend_pid
    found = read_place(server._place.server + "&ledger=x")
    import psycopg

    with psycopg.connect(found.server, autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s, 5000)", (process,))


def test_a_connection_that_died_between_two_questions_is_not_noticed(both):
    one, _ = both
    ask(one, "q")
    cut(one)
    assert spent(one) == ONE
    cut(one)
    assert ask(one, "r").answered


@pytest.mark.parametrize("reached", [False, True])
def test_a_commit_of_unknown_outcome_is_looked_up(both, monkeypatch, reached):
    """The connection breaks at the commit, before the server had it or after."""
    one, two = both
    append = PostgresStore.append

    def breaking(self, rows):
        if reached:
            append(self, rows)
        cut(one)
        self._drop()
        raise Interrupted(charged=False)

    with monkeypatch.context() as broken:
        broken.setattr(PostgresStore, "append", breaking)
        with pytest.raises(Interrupted, match="may stand") as told:
            pay(one, "q", key="k")
    assert told.value.charged_unknown
    assert spent(one) == spent(two) == (ONE if reached else credits(0))
    again = pay(one, "q", key="k")
    assert again.charged == ({} if reached else {"": ONE})
    assert one.settle(again, [4]).values == (4,)
    assert spent(one) == spent(two) == ONE
    assert one._shared.history.mark == two._shared.read(lambda: two._shared.history.mark)


def test_a_server_that_is_away_charges_nothing(tmp_path, monkeypatch):
    pytest.importorskip("psycopg")
    monkeypatch.setattr("sulq.kernel.ledger.stores.postgres.PATIENCE", 0.2)
    with running() as server:
        journal = publish(new_place(server))
        ask(journal, "q")
        server.halt()
        with pytest.raises(Interrupted, match="nothing was charged"):
            pay(journal, "r")
        with pytest.raises(Interrupted):
            journal.statement()
        server.resume()
        assert spent(journal) == ONE
        assert ask(journal, "r").answered
        journal.close()


def test_a_replica_that_stands_still_in_its_turn_loses_it(replicas):
    """The server ends its turn: sooner here than usual, and only for this turn of this replica.

    It stands still until the second one has been answered, which waits for the end of the turn.
    """
    one, two = replicas
    first, second = one.open(), two.open()
    told, begun, answered = [], threading.Event(), threading.Event()

    def still():
        line = first._shared._server._connection
        (usual,) = line.execute("SHOW idle_in_transaction_session_timeout").fetchone()
        told.append(usual)
        line.execute("SET idle_in_transaction_session_timeout = '200ms'")
        begun.set()
        answered.wait(LONGEST)

    def slow():
        with suppress(Refused):
            first._shared.submit(lambda: (still(), pending()))

    def pending():
        first._shared.add(GrantEvent("people", "eve", Loss(5, 0)))
        told.append("added")

    thread = threading.Thread(target=slow)
    thread.start()
    assert begun.wait(LONGEST)
    assert ask(second, "q").answered
    answered.set()
    thread.join()
    assert told == ["20s", "added"]
    assert [line.name for line in second.statement().analysts] == [
        line.name for line in first.statement().analysts
    ]
    assert spent(first) == ONE
    first.close()
    second.close()
