"""The receipts journal: synced before anybody is answered, and never believed beyond its word."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from tests.kernel.ledger.publishing import ONE, ask, credits, pay, publish, raised, spent
from tests.kernel.ledger.test_outside import release

from sulq.errors import Refused
from sulq.kernel.ledger import recovery
from sulq.kernel.ledger.inspect import inspect
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.ledger.receipts_journal import file_identity, read_journal
from sulq.kernel.ledger.recovery import recover


@pytest.fixture
def second(tmp_path):
    """A second disk, as far as a test has one."""
    directory = tmp_path / "second"
    directory.mkdir()
    return directory / "people.receipts"


def lines(journal_file):
    return [json.loads(line) for line in journal_file.read_text("ascii").splitlines()]


def read(journal_file, journal):
    return read_journal(journal_file, journal.statement().ledger, [journal.public_key])


def test_a_receipt_is_there_before_the_answer_leaves(path, second):
    journal = publish(path, receipts=second)
    receipt = ask(journal, "q", values=(123456789,)).receipt.to_json()
    assert receipt in second.read_text().splitlines()
    assert second.stat().st_mode & 0o777 == 0o600
    found = read(second, journal)
    assert (found.last.seq, found.whole, found.live) == (journal.head, True, True)
    assert set(found.claims) == set(range(2, journal.head + 1))


def test_everybody_who_pays_has_a_receipt_in_it(path, second):
    journal = publish(path, receipts=second)
    for name in ("ann", "bob"):
        journal.grant(name, credits(2))
    entry = pay(journal, "q")
    pay(journal, "q", analyst="ann")  # before there is an answer
    journal.settle(entry, [1])
    pay(journal, "q", analyst="bob")  # after
    pay(journal, "q", analyst="bob", key="again")
    held = {one["receipt"]["analyst"] for one in lines(second) if "receipt" in one}
    assert held == {"owner", "ann", "bob"}
    assert sum("receipt" in one for one in lines(second)) == 3
    inspect(path)
    for name in ("owner", "ann", "bob"):
        got = [entry.receipt.to_json() for entry in journal.entries(name)]
        assert got[0] in second.read_text().splitlines()


def test_nothing_of_an_answer_or_row_is_in_it(path, second):
    journal = publish(path, receipts=second, fingerprint="f1nger")
    ask(journal, "q", values=(987654321012345,))
    text = second.read_text()
    assert "987654321012345" not in text
    assert "f1nger" not in text
    marks = [one["mark"] for one in lines(second) if "mark" in one]
    assert {name for mark in marks for name in mark} == {
        *("format", "ledger", "file", "since", "seq", "hash", "events")
    }
    assert all("question" not in json.dumps(mark) for mark in marks)


def test_whoever_opens_the_ledger_writes_the_journal(path, second):
    publish(path, receipts=second).close()
    journal = publish(path)  # nobody names it
    assert ask(journal, "q").receipt.to_json() in second.read_text().splitlines()
    with pytest.raises(Refused, match="tables of one ledger have one journal"):
        publish(path, receipts=second.with_name("other"))
    journal.close()


def test_access_that_ends_is_journalled_too(path, second):
    journal = publish(path, receipts=second)
    journal.grant("ann", credits(1))
    journal.close()
    ledger = Ledger.attach(path, "people")
    ledger.revoke("ann")
    assert read(second, ledger).kinds[ledger.head] == "revoke"


def test_tables_of_a_ledger_share_one(path, second):
    one = publish(path, receipts=second)
    two = publish(path, name="others", receipts=second)
    ask(one, "q")
    ask(two, "q")
    assert {entry["receipt"]["table"] for entry in lines(second) if "receipt" in entry} == {
        *("people", "others")
    }


def test_memory_and_server_have_none(second):
    with pytest.raises(Refused, match="in memory"):
        publish(":memory:", receipts=second)
    with pytest.raises(Refused, match="PostgreSQL has no receipts journal"):
        publish("postgresql://nowhere/db?ledger=x", receipts=second)


def test_a_missing_journal_is_not_begun_anew(path, second):
    """An unmounted disk must not look like a new journal."""
    publish(path, receipts=second).close()
    second.unlink()
    for given in ({}, {"receipts": second}):
        with pytest.raises(Refused, match="is its disk mounted"):
            publish(path, **given)
    journal = publish(path, receipts=second.with_name("new"))
    ask(journal, "q")
    journal.close()
    with pytest.raises(Refused, match="no directory"):
        publish(path, receipts=second.parent / "nowhere" / "file")


def test_a_journal_that_another_follows_proves_no_end(path, second):
    journal = publish(path, receipts=second)
    ask(journal, "q")
    journal.close()
    journal = publish(path, receipts=second.with_name("new"))
    assert not read(second, journal).live
    assert read(second.with_name("new"), journal).live


def test_a_copy_is_known_as_one(path, second, tmp_path):
    journal = publish(path, receipts=second)
    copy = tmp_path / "copy"
    shutil.copy2(second, copy)
    assert read(second, journal).live
    assert not read(copy, journal).live
    assert file_identity(copy) != file_identity(second)
    os.link(second, tmp_path / "link")
    assert file_identity(tmp_path / "link") == file_identity(second)


def test_another_ledger_does_not_write_it(path, second, tmp_path):
    publish(path, receipts=second).close()
    with pytest.raises(Refused, match="belongs to another ledger"):
        publish(tmp_path / "other.ledger", receipts=second)


def test_one_process_writes_it(path, second, tmp_path):
    journal = publish(path, receipts=second)
    with pytest.raises(Refused, match="receipts journal cannot be used"):
        publish(tmp_path / "other.ledger", receipts=second)
    journal.close()


def test_whoever_finds_it_longer_is_closed(path, second):
    """The fence: a restore elsewhere has written to it."""
    journal = publish(path, receipts=second)
    ask(journal, "q")
    with second.open("ab") as file:
        file.write(b"x\n")
    with pytest.raises(Refused, match="the charge may stand"):
        ask(journal, "r")
    with pytest.raises(Refused, match="closed"):
        ask(journal, "r")


def test_a_journal_that_was_moved_or_deleted_closes_the_ledger(path, second):
    journal = publish(path, receipts=second)
    entry = pay(journal, "q", key="k")
    second.rename(second.with_name("away"))
    with pytest.raises(Refused, match="the charge may stand"):
        journal.settle(entry, [4])
    with pytest.raises(Refused, match="is its disk mounted"):
        publish(path)
    second.with_name("away").rename(second)
    journal = publish(path)
    assert pay(journal, "q", key="k").values == (4,)
    assert spent(journal) == ONE


@pytest.mark.parametrize("torn", [b"", b"{", b'{"mark":{}}\n', b"\0" * 100_000, b"x\n" * 40_000])
def test_a_torn_end_is_written_again(path, second, torn):
    journal = publish(path, receipts=second)
    ask(journal, "q")
    journal.close()
    whole = second.read_bytes()
    with second.open("ab") as file:
        file.write(torn)
    journal = publish(path)
    assert second.read_bytes() == whole
    found = read(second, journal)
    assert found.whole and found.last.seq == journal.head


def test_what_a_crash_left_out_is_caught_up(path, second):
    journal = publish(path, receipts=second)
    ask(journal, "q")
    before = second.read_bytes()
    ask(journal, "r")
    after = second.read_bytes()
    journal.close()
    second.write_bytes(before)
    journal = publish(path)
    found = read(second, journal)
    assert found.whole and found.last.seq == journal.head
    receipts = [line for line in second.read_text().splitlines() if '"receipt"' in line]
    assert receipts == [line for line in after.decode().splitlines() if '"receipt"' in line]


def test_a_rolled_back_ledger_is_refused_by_the_journal_alone(path, second, state, tmp_path):
    """Ledger and state directory went back together: the journal has seen more."""
    publish(path, receipts=second).close()
    shutil.copy(path, tmp_path / "backup")
    shutil.copytree(state, tmp_path / "state-backup")
    journal = publish(path)
    ask(journal, "q")
    journal.close()
    shutil.rmtree(state)
    shutil.copytree(tmp_path / "state-backup", state)
    shutil.copy(tmp_path / "backup", path)
    with pytest.raises(Refused, match=r"journal.*has seen events"):
        publish(path)
    found = recover(path)
    assert (found.burnt, found.proved) == (False, 1)
    journal = publish(path)
    assert spent(journal) == ONE
    assert read(second, journal).live


def rolled_back(path, second, tmp_path, work):
    """The ledger from before `work`, with the anchor and the journal from after it."""
    journal = publish(path, receipts=second)
    journal.grant("ann", credits(2))
    ask(journal, "kept")
    journal.close()
    shutil.copy(path, tmp_path / "backup")
    journal = publish(path)
    journal = work(journal) or journal
    journal.close()
    shutil.copy(tmp_path / "backup", path)


def test_the_journal_accounts_for_what_receipts_cannot(path, second, tmp_path):
    """Grants, reservations, plans, unanswered charges: no receipt names their numbers."""

    def work(journal):
        ask(journal, "a", analyst="ann")
        journal.grant("bob", credits(3))
        ask(journal, "b", analyst="bob")
        pay(journal, "unanswered", key="k")
        pay(journal, "unanswered", key="k")
        journal.reserve("owner", credits(1)).close()
        journal.revoke("bob")

    rolled_back(path, second, tmp_path, work)
    found = recover(path)
    assert (found.burnt, found.proved) == (False, 3)
    assert found.lost_kinds == ("grant", "revoke")
    journal = publish(path)
    assert spent(journal) == credits(4)
    assert journal.remaining("ann") == ONE
    with pytest.raises(Refused, match="no grant"):
        pay(journal, "c", analyst="bob")
    assert pay(journal, "unanswered").charged == {"": ONE}


CHANGES = {
    "amend": lambda journal: journal.amend(raised()),
    "outside": lambda journal: journal.outside(release(1)) and None,
    "close": lambda journal: journal.close_for_good() and None,
}


@pytest.mark.parametrize("kind", CHANGES)
def test_what_changes_the_promise_burns(path, second, tmp_path, kind):
    rolled_back(path, second, tmp_path, CHANGES[kind])
    found = recover(path)
    assert found.burnt
    assert any(repr(kind) in why for why in found.reasons)


@pytest.mark.parametrize("harm", ["cut", "edited", "dropped", "old", "swapped", "copied"])
def test_a_journal_that_was_changed_accounts_for_nothing_more(path, second, tmp_path, state, harm):
    copies = {}

    def work(journal):
        ask(journal, "a")
        copies["old"] = second.read_bytes()
        pay(journal, "unanswered")
        ask(journal, "c")

    rolled_back(path, second, tmp_path, work)
    written = second.read_text().splitlines(keepends=True)
    assert ['"receipt"' in line[:12] for line in written[-4:]] == [False, False, True, False]
    if harm == "cut":
        written = written[:-2]
    elif harm == "edited":
        written[-4] = written[-4].replace('"analyst":"owner"', '"analyst":"ownex"')
    elif harm == "dropped":
        del written[-4]
    elif harm == "swapped":  # every line is there: only the order, and no anchor that tells the end
        written[-1], written[-4] = written[-4], written[-1]
        next(state.glob("ledgers/*/anchor")).unlink()
    elif harm == "copied":
        shutil.copy(second, second.with_name("copy"))
        second.with_name("copy").rename(second)
        next(state.glob("ledgers/*/anchor")).unlink()
    if harm != "copied":
        second.write_bytes(copies["old"] if harm == "old" else "".join(written).encode())
    assert recover(path).burnt
    assert spent(publish(path, receipts=second.with_name("new"))) == credits(10)


def test_an_unreadable_journal_burns_and_stays(path, second, tmp_path):
    rolled_back(path, second, tmp_path, lambda journal: None)
    second.write_bytes(b"nothing\n")
    assert recover(path).burnt
    assert second.read_bytes() == b"nothing\n"


def test_recovering_twice_and_after_a_crash(path, second, tmp_path, monkeypatch):
    rolled_back(path, second, tmp_path, lambda journal: ask(journal, "a") and None)

    def crash(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(recovery.Evidence, "take_over", crash)
        with pytest.raises(KeyboardInterrupt):
            recover(path)
    with pytest.raises(Refused):
        publish(path)
    assert not recover(path).burnt
    assert not recover(path).burnt
    journal = publish(path)
    assert spent(journal) == credits(2)
    ask(journal, "new")
    assert read(second, journal).whole
    assert read(second, journal).last.seq == journal.head
