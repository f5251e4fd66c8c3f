"""What a replica does not believe its server, and who may be a replica."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from tests.kernel.ledger.publishing import ONE, ask, credits, pay, publish, spent
from tests.kernel.ledger.replicas import Replica, kill
from tests.kernel.ledger.stores import new_place, put_back, save, sql
from tests.postgres_server import running
from tests.waiting import come

from sulq.errors import BudgetSpent, Refused
from sulq.kernel.ledger import shared
from sulq.kernel.ledger.inspect import inspect, verified_rows
from sulq.kernel.ledger.shared import join, share_key
from sulq.kernel.ledger.signing import new_key
from sulq.kernel.ledger.state_dir import is_shared, location_name, read_place

# -- what the server must not do ------------------------------------------------------------------


def test_a_restored_backup_is_noticed_by_every_replica(replicas):
    one, two = replicas
    with closing(one.open()) as journal:
        ask(journal, "q")
    saved = save(one.address)
    with closing(one.open()) as first, closing(two.open()) as second:
        ask(first, "r")
        ask(second, "s")
        spent(first)
    put_back(one.address, saved)
    for replica in replicas:
        with pytest.raises(Refused, match="rolled back"):
            replica.open()
    assert one.recover().burnt
    with pytest.raises(Refused, match="rolled back"):
        two.open()  # it has seen what the recovery jumped over
    two.recover()
    with closing(one.open()) as first, closing(two.open()) as second:
        assert spent(first) == spent(second) == credits(10)
        assert pay(second, "q").answered
        with pytest.raises(BudgetSpent):
            pay(first, "more")


def test_a_backup_restored_under_running_replicas_stops_them(replicas, monkeypatch):
    monkeypatch.setattr(shared, "PAUSE", 0.05)
    one, two = replicas
    saved = save(one.address)
    first, second = one.open(), two.open()
    ask(first, "q")
    # nobody asks the second one: it looks by itself
    come(lambda: second._shared._durable == first._shared._durable)
    put_back(one.address, saved)
    with pytest.raises(Refused, match=r"rolled back|closed"):
        pay(first, "r")
    with pytest.raises(Refused, match=r"rolled back|closed"):
        second.statement()
    for journal in (first, second):
        journal.close()
    for replica in replicas:
        with pytest.raises(Refused, match="rolled back"):
            replica.open()


def test_a_fork_is_noticed_by_whoever_saw_the_other_branch(replicas):
    one, two = replicas
    saved = save(one.address)
    with closing(one.open()) as first:
        ask(first, "q")
    put_back(one.address, saved)
    with closing(two.open()) as second:  # it had not seen more than the backup has
        for number in range(4):
            ask(second, f"r{number}")
    with pytest.raises(Refused, match="rolled back"):
        one.open()
    assert one.recover().burnt
    with closing(two.open()) as second:
        assert spent(second) == credits(10)


@pytest.mark.parametrize(
    "change",
    [
        "update events set noisy = '[8]' where noisy is not null",
        "update events set body = replace(body, 'ann', 'eve')",
        "delete from events where seq = 3",
        "update events set seal = null",
        "delete from events",
        "drop table events",
    ],
)
def test_a_changed_row_is_noticed_at_opening(replicas, change):
    one, _ = replicas
    with closing(one.open()) as journal:
        journal.grant("ann", ONE)
        ask(journal, "q", analyst="ann")
    sql(one.address, change)
    for replica in replicas:
        with pytest.raises(Refused):
            replica.open()
    with pytest.raises(Refused):
        inspect(one.address)


def test_a_row_changed_under_a_running_replica_is_never_handed_out(both, monkeypatch):
    one, two = both
    ask(one, "q", values=(7,))
    assert pay(two, "q").values == (7,)
    for journal in both:
        journal._shared.history._recent.clear()
    sql(
        one._shared._server._place.server + "&ledger=" + one._shared._server._place.name,
        "update events set noisy = '[8]' where noisy is not null",
    )
    with pytest.raises(Refused, match="does not verify"):
        pay(two, "q")
    with pytest.raises(Refused, match="does not verify"):
        list(one.entries())
    with pytest.raises(Refused):
        pay(one, "r")  # for good


def test_rows_that_the_key_did_not_seal_stop_a_running_replica(both):
    from sulq.kernel.ledger.signing import canonical, link

    one, two = both
    address = one._shared._server._place.server + "&ledger=" + one._shared._server._place.name
    seq, last = sql(address, "select seq, hash from events order by seq desc limit 1")[0]
    body = canonical(
        {"kind": "grant", "table": "people", "analyst": "eve", "credits": ["1", "0"], "at": 0}
    )
    row = (seq + 1, link(last, body), body, None, None)
    sql(address, "insert into events values (?, ?, ?, ?, ?)", row)
    for use in (lambda: pay(one, "q"), two.statement, two.statement):
        with pytest.raises(Refused, match=r"not written with its key|closed"):
            use()


# -- who may take part ----------------------------------------------------------------------------


def test_a_new_replica_needs_key_and_mark(replicas, tmp_path, monkeypatch):
    one, two = replicas
    new = Replica(one.address, tmp_path / "new")
    with pytest.raises(Refused, match=r"new replica.*sulq share-key.*sulq join"):
        new.open()
    new.join(two)
    with closing(new.open()) as journal:
        assert ask(journal, "q").answered


def test_the_mark_comes_with_the_key(replicas, tmp_path, monkeypatch):
    """A replica that never saw the ledger does not believe an old backup either."""
    one, _ = replicas
    saved = save(one.address)
    with closing(one.open()) as journal:
        ask(journal, "q")
    new = Replica(one.address, tmp_path / "new").join(one)
    put_back(one.address, saved)
    with pytest.raises(Refused, match="rolled back"):
        new.open()


def test_a_wrong_key_is_refused(replicas):
    _, two = replicas
    key = next(two.home.glob("ledgers/*/key"))
    key.unlink()
    new_key(key)
    with pytest.raises(Refused, match="not this ledger's"):
        two.open()


def test_a_key_file_is_private_whole_and_written_once(replicas, tmp_path):
    one, two = replicas
    file = tmp_path / "key"
    with one.here():
        share_key(one.address, file)
        assert file.stat().st_mode & 0o777 == 0o600
        with pytest.raises(Refused, match="already"):
            share_key(one.address, file)
    said = json.loads(file.read_text())
    bad = [{"anchor": "00" * 8192}, {"key": "00"}, {"ledger": "../x"}, {"ledger": "0" * 32}]
    for change in bad:
        file.write_text(json.dumps(said | change))
        with two.here(), pytest.raises(Refused, match="share-key"):
            join(one.address, file)
    with two.here(), pytest.raises(Refused, match="in use"):
        share_key(one.address.replace("ledger=", "ledger=z"), tmp_path / "other")


def test_joining_again_takes_no_mark_back(replicas, tmp_path):
    one, two = replicas
    file = tmp_path / "key"
    with one.here():
        share_key(one.address, file)
    saved = save(one.address)
    with closing(two.open()) as journal:
        ask(journal, "q")
    put_back(one.address, saved)
    with two.here():
        join(one.address, file)
    with pytest.raises(Refused, match="rolled back"):
        two.open()


def test_one_state_directory_is_one_replica(replicas):
    one, _ = replicas
    with closing(one.open()), pytest.raises(Refused, match=r"held by process.*SULQ_STATE"):
        one.open()


def test_every_replica_reads_the_same_data(address, tmp_path, monkeypatch):
    one, two = (Replica(address, tmp_path / name) for name in ("one", "two"))
    one.open(fingerprint="content").close()
    two.join(one)
    with pytest.raises(Refused, match="other data"):
        two.open(fingerprint="other content")
    two.open(fingerprint="content").close()
    bodies = " ".join(row.body for row in verified_rows(address))
    assert "content" not in bodies
    stamps = [json.loads(row.body).get("stamp") for row in verified_rows(address)]
    assert len([stamp for stamp in stamps if stamp]) == 1


def test_a_server_that_forgets_is_refused():
    pytest.importorskip("psycopg")
    with running(fsync="off") as server, pytest.raises(Refused, match="fsync"):
        publish(new_place(server))


def test_a_lazy_server_is_told_to_wait_for_its_disk(postgres, address):
    sql_off = "alter role postgres set synchronous_commit = off"
    import psycopg

    with psycopg.connect(postgres.url(), autocommit=True) as server:
        server.execute(sql_off)
        try:
            with closing(publish(address)) as journal:
                connection = journal._shared._server._connection
                assert connection.execute("show synchronous_commit").fetchone() == ("on",)
        finally:
            server.execute("alter role postgres reset synchronous_commit")


def test_a_role_that_may_only_add_is_enough(postgres, address, tmp_path):
    publish(address).close()
    table = read_place(address).table
    import psycopg

    with psycopg.connect(postgres.url(), autocommit=True) as server:
        server.execute("drop owned by replica" if _role(server) else "create role replica login")
        server.execute("grant usage on schema sulq to replica")
        server.execute(f"grant select on {table} to replica")
        weaker = address.replace("postgres@", "replica@")
        with pytest.raises(Refused, match="SELECT and INSERT"):
            publish(weaker)
        server.execute(f"grant insert on {table} to replica")
        with closing(publish(weaker)) as journal:
            assert ask(journal, "q").answered


def _role(server):
    return server.execute("select 1 from pg_roles where rolname = 'replica'").fetchone()


@pytest.mark.parametrize(
    "bad",
    [
        "postgresql://h/d",
        "postgresql://h/d?ledger=",
        "postgresql://h/d?ledger=A",
        "postgresql://h/?ledger=a",
        "postgresql://h/d/t?ledger=a",
        "postgresql://h/d?ledger=a&ledger=b",
        "postgresql://h/d?ledger=a%22b",
        "postgresql://h:x/d?ledger=a",
    ],
)
def test_an_address_names_one_ledger(bad):
    assert is_shared(bad)
    with pytest.raises(Refused, match="ledger"):
        publish(bad)


def test_a_place_is_known_without_its_password():
    found = read_place(
        "postgresql://ann:secret@db.example:5433/books?ledger=people&sslmode=require"
    )
    assert "secret" in found.server
    assert "ledger" not in found.server
    assert "sslmode=require" in found.server
    assert "secret" not in repr(found) + found.shown
    assert "ann" not in found.shown
    assert location_name(found.shown) == found.shown
    assert location_name("postgresql://bob@db.example:5433/books?ledger=people") == found.shown


def test_who_only_reads_has_seen_it_too(replicas):
    """What was told is behind the mark, also where another replica wrote it."""
    one, two = replicas
    saved = save(one.address)
    first, second = one.open(), two.open()
    ask(first, "q")
    assert spent(second) == ONE
    kill(second)  # closing would move the mark
    first.close()
    put_back(one.address, saved)
    with pytest.raises(Refused, match="rolled back"):
        two.open()


def test_a_fork_of_the_same_length_stops_a_running_replica(replicas, monkeypatch):
    monkeypatch.setattr(shared, "PAUSE", 60.0)  # it shall notice when it is asked
    one, two = replicas
    saved = save(one.address)
    first = one.open()
    ask(first, "q")
    put_back(one.address, saved)
    with closing(two.open()) as second:
        ask(second, "r")
    assert len(save(one.address)) == first._shared.history.mark.seq
    for use in (first.statement, lambda: pay(first, "s")):
        with pytest.raises(Refused, match="rolled back"):
            use()
    first.close()
