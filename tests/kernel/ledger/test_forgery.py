"""Forged, forked and interrupted histories: never less is spent than was released."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.kernel.ledger.publishing import ONE, ask, credits, pay, publish, spent

from sulq.errors import BudgetSpent, Refused
from sulq.kernel.ledger import recovery
from sulq.kernel.ledger.events import LedgerEvent, RecoverEvent
from sulq.kernel.ledger.inspect import inspect
from sulq.kernel.ledger.recovery import recover
from sulq.kernel.ledger.signing import (
    START,
    ChainHead,
    canonical,
    link,
    new_key,
    sign_head,
    sign_receipt,
)


def publish_closing(path):
    return closing(publish(path))


def forge(path, body, *, keep=None, jump=1, key=None):
    """Append an event as anybody can who may write the file; `key` seals it."""
    connection = apsw.Connection(str(path))
    if keep is not None:
        connection.execute("delete from events where seq > ?", (keep,))
    seq, last = connection.execute("select max(seq), hash from events").fetchone()
    ledger = json.loads(connection.execute("select body from events where seq = 1").get)["ledger"]
    text = canonical(body | {"at": 0})
    mark = ChainHead(seq + jump, link(last, text))
    seal = sign_head(ledger, key, mark) if key is not None else None
    connection.execute("insert into events values (?, ?, ?, null, ?)", (*mark, text, seal))
    connection.close()


def forged_recovery(public_key):
    return RecoverEvent(public_key, burn=False, genuine=True, lost=(), told={}).to_body()


def free_charge(question):
    parts = {"analyst": "owner", "key": None, "digest": question, "noise": "n", "charges": []}
    asked = {"question": f'{{"ask":"{question}"}}', "share": ["0", "0"]}
    return {"kind": "charge", "table": "people"} | parts | asked


class Times:
    """Ledger and state directory, saved and put back together."""

    def __init__(self, path, state, kept):
        self.path, self.state, self.kept = path, state, kept
        shutil.copytree(state, kept)
        self.ledger = path.read_bytes()

    def back(self):
        shutil.rmtree(self.state)
        shutil.copytree(self.kept, self.state)
        self.path.write_bytes(self.ledger)


def test_a_backup_from_before_a_key_change_burns(path, tmp_path):
    """The intact anchor is signed by a key the old ledger does not know: that is no reason to
    forget what it has seen."""
    journal = publish(path)
    journal.close()
    old = path.read_bytes()
    next(Path(os.environ["SULQ_STATE"]).glob("ledgers/*/key")).unlink()
    assert recover(path).new_key
    journal = publish(path)
    pay(journal, "q")
    journal.close()
    path.write_bytes(old)
    assert recover(path).burnt
    with pytest.raises(BudgetSpent):
        pay(publish(path), "again")


def test_events_that_the_key_did_not_seal_are_refused_and_never_unspend(path):
    """Appended by somebody who can write the file but has no key: a free charge, a forged gap."""
    journal = publish(path)
    for number in range(10):
        pay(journal, f"q{number}")
    journal.close()
    for body, jump in (
        (free_charge("again"), 1),
        (forged_recovery(journal.public_key), 1),
        (forged_recovery(journal.public_key), 50),
    ):
        forge(path, body, jump=jump)
        with pytest.raises(Refused, match="not written with its key"):
            publish(path)
    assert recover(path).burnt
    assert publish(path).remaining("owner").credits == 0


def test_receipts_that_tell_two_stories_burn(path, tmp_path):
    state = Path(os.environ["SULQ_STATE"])
    journal = publish(path)
    journal.close()
    saved = tmp_path / "saved"
    shutil.copytree(state, saved)
    ledger = path.read_bytes()
    journal = publish(path)
    receipt = ask(journal, "other").receipt.to_json()
    journal.close()
    shutil.rmtree(state)
    shutil.copytree(saved, state)
    path.write_bytes(ledger)
    assert recover(path, [receipt]).burnt  # beyond what the anchor has seen: it was put back


def test_an_anchor_that_is_gone_is_told(place):
    publish(place).close()
    next(Path(os.environ["SULQ_STATE"]).glob("ledgers/*/anchor")).unlink()
    assert recover(place).anchor_missing


def test_a_forged_gap_exempts_nothing(path):
    """All answers cut off, a forged recovery in their place: every receipt is at hand."""
    journal = publish(path)
    keep = journal.statement().seq
    receipts = [ask(journal, f"q{number}").receipt.to_json() for number in range(10)]
    last = journal.statement().seq
    journal.close()
    forge(path, forged_recovery(journal.public_key), keep=keep, jump=last + 1 - keep)
    assert recover(path, receipts).burnt
    assert spent(publish(path)) == credits(10)


@pytest.mark.parametrize("key_lost", [False, True])
def test_a_key_that_the_file_alone_names_proves_nothing(path, state, key_lost):
    """Whoever can write the file names a key of their own and seals with it."""
    journal = publish(path)
    receipt = ask(journal, "q").receipt
    journal.close()
    own = new_key(None)
    forge(path, forged_recovery(own.public), key=own)
    forge(path, free_charge("free"), key=own)
    with pytest.raises(Refused):
        publish(path)
    if key_lost:
        next(state.glob("ledgers/*/key")).unlink()
    else:
        with pytest.raises(Refused, match="does not verify"):
            inspect(path)
    assert recover(path).burnt
    with publish_closing(path) as journal:
        assert spent(journal) == credits(10)
        with pytest.raises(BudgetSpent):
            pay(journal, "free")
    forged = sign_receipt(dict(receipt.body) | {"analyst": "mallory"}, own).to_json()
    with pytest.raises(Refused, match="does not verify"):
        inspect(path).confirm(forged)


def test_an_anchor_that_does_not_verify_burns(place, state):
    publish(place).close()
    next(state.glob("ledgers/*/anchor")).write_bytes(bytes(8192))
    found = recover(place)
    assert (found.burnt, found.anchor_missing) == (True, False)
    assert spent(publish(place)) == credits(10)


@pytest.mark.parametrize("order", [1, -1])
def test_two_receipts_of_one_number_burn(path, state, tmp_path, order):
    publish(path).close()
    times = Times(path, state, tmp_path / "saved")
    shown = []
    for question, price in (("a", 6), ("b", 1)):
        times.back()
        with publish_closing(path) as journal:
            shown.append(ask(journal, question, price=credits(price)).receipt.to_json())
    path.write_bytes(times.ledger)
    assert recover(path, shown[::order]).burnt
    assert spent(publish(path)) == credits(10)


def test_a_receipt_beyond_the_anchor_burns(path, state, tmp_path):
    """It comes from another history, of which the shown one may be a part."""
    publish(path).close()
    times = Times(path, state, tmp_path / "saved")
    with publish_closing(path) as journal:
        ask(journal, "a1", price=credits(5))
        shown = ask(journal, "a2").receipt.to_json()
    times.back()
    with publish_closing(path) as journal:
        ask(journal, "b")
    assert recover(path, [shown]).burnt
    assert spent(publish(path)) == credits(10)


def test_a_receipt_inside_an_earlier_gap_is_compared(path, state, tmp_path):
    publish(path).close()
    times = Times(path, state, tmp_path / "saved")
    with publish_closing(path) as journal:
        other = ask(journal, "other", price=credits(6)).receipt.to_json()
    times.back()
    with publish_closing(path) as journal:
        own = ask(journal, "own").receipt.to_json()
    path.write_bytes(times.ledger)
    assert not recover(path, [own]).burnt
    assert not recover(path, [own]).burnt
    with publish_closing(path) as journal:
        assert spent(journal) == ONE
    assert recover(path, [other]).burnt
    assert spent(publish(path)) == credits(10)


CRASHES = list(itertools.product([False, True], [False, True], ["append", "anchor", "note"]))


@pytest.mark.parametrize(("key_lost", "stale", "point"), CRASHES)
def test_a_crash_inside_recover_leaves_nothing_stuck(
    path, state, monkeypatch, key_lost, stale, point
):
    publish(path).close()
    old = path.read_bytes()
    with publish_closing(path) as journal:
        for number in range(6):
            ask(journal, f"q{number}")
    if stale:
        path.write_bytes(old)
    if key_lost:
        next(state.glob("ledgers/*/key")).unlink()
    if not stale and not key_lost:
        next(state.glob("ledgers/*/anchor")).unlink()

    def crash(*_, **__):
        raise KeyboardInterrupt

    where = {
        "append": "sulq.kernel.ledger.stores.sqlite.SqliteStore.append",
        "anchor": "sulq.kernel.ledger.recovery.new_anchor",
        "note": "sulq.kernel.ledger.recovery.remember",
    }[point]
    with monkeypatch.context() as patch:
        patch.setattr(where, crash)
        with pytest.raises(KeyboardInterrupt):
            recovery.recover(path)
    try:
        journal = publish(path)
    except Refused:
        recover(path)
        journal = publish(path)
    assert spent(journal) == credits(10 if stale else 6)


def test_a_ledger_cannot_name_a_place_for_its_files(path, tmp_path):
    publish(path).close()
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "key").write_text("precious")
    text = canonical(LedgerEvent(str(victim), "00" * 32).to_body())
    connection = apsw.Connection(str(path))
    connection.execute("delete from events")
    row = (link(START, text), text)
    connection.execute("insert into events values (1, ?, ?, null, null)", row)
    connection.close()
    for use in (recover, inspect, publish):
        with pytest.raises(Refused, match="does not verify"):
            use(path)
    assert [found.name for found in victim.iterdir()] == ["key"]
    assert (victim / "key").read_text() == "precious"


def test_another_ledger_at_this_path_is_not_recovered(path, tmp_path):
    publish(path).close()
    publish(tmp_path / "other").close()
    shutil.copy(tmp_path / "other", path)
    with pytest.raises(Refused, match="not the ledger that was there"):
        recover(path)


def test_a_table_whose_publication_was_lost_does_not_start_anew(path):
    """A backup from before the second table: its spending is gone, so it is over."""
    publish(path).close()
    old = path.read_bytes()
    with closing(publish(path, name="two", fingerprint="f")) as journal:
        ask(journal, "q", price=credits(10))
    path.write_bytes(old)
    assert recover(path).burnt
    with pytest.raises(Refused, match="published before"):
        publish(path, name="two", fingerprint="f")
