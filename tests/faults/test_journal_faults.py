"""Faults under the receipts journal: nothing leaves that is not in it, or is charged twice."""

from __future__ import annotations

import errno
import json
import os
import signal

import pytest
from tests.kernel.ledger.publishing import ask, credits, pay, publish, spent

from sulq.errors import Refused
from sulq.kernel.ledger import failpoints
from sulq.kernel.ledger.backup import Backup, back_up, restore
from sulq.kernel.ledger.receipts_journal import read_journal

WRITE, SYNC = os.pwrite, os.fdatasync
ASKS = 4


@pytest.fixture
def second(tmp_path):
    directory = tmp_path / "second"
    directory.mkdir()
    return directory / "receipts"


class FullDisk:
    """Fails at the `at`-th write, or sync, of the journal, and from then on until it is emptied."""

    def __init__(self, second, kind, at, monkeypatch):
        self.second, self.kind, self.left, self.full = second, kind, at, False
        monkeypatch.setattr(os, "pwrite", self.pwrite)
        monkeypatch.setattr(os, "fdatasync", self.fdatasync)

    def hit(self, handle, call):
        mine = self.second.exists() and os.path.samestat(os.fstat(handle), self.second.stat())
        if not mine or self.kind not in (call, f"short {call}"):
            return False
        self.left -= 1
        self.full |= self.left <= 0
        return self.full

    def pwrite(self, handle, data, offset):
        if self.hit(handle, "write"):
            if self.kind == "short write":
                return WRITE(handle, data[: len(data) // 2], offset)
            raise OSError(errno.ENOSPC, "full")
        return WRITE(handle, data, offset)

    def fdatasync(self, handle):
        if self.hit(handle, "sync"):
            raise OSError(errno.EIO, "failed")
        SYNC(handle)

    def emptied(self):
        self.left, self.full = 10**9, False


@pytest.mark.parametrize("kind", ["write", "short write", "sync"])
@pytest.mark.parametrize("at", [2, 3, 4, 5])  # the first is the opening
def test_a_full_disk_between_charge_and_reply(path, second, monkeypatch, kind, at):
    """The charge stands, the reply does not leave, and a retry gets the stored bytes."""
    publish(path, receipts=second).close()
    with monkeypatch.context() as patch:
        disk = FullDisk(second, kind, at, patch)
        journal = publish(path)
        released = {}
        for number in range(ASKS):
            try:
                entry = ask(journal, f"q{number}", values=(number,), key=f"k{number}")
                released[entry.digest] = (entry.values, entry.receipt.to_json())
            except Refused as refusal:
                said = str(refusal)
                break
        assert said == (
            "a write failed and the ledger is closed: the charge may stand; reopen and ask again"
            " with the same key"
        )
        for closed in (lambda: pay(journal, "more"), journal.statement):
            with pytest.raises(Refused, match="closed"):
                closed()
        with pytest.raises(Refused, match=r"could not be written"):
            publish(path)  # still full: stays closed, whoever tries
        disk.emptied()
        journal = publish(path)
        for number in range(ASKS):
            again = ask(journal, f"q{number}", values=(-1,), key=f"k{number}")
            values, receipt = released.get(again.digest, (again.values, again.receipt.to_json()))
            assert (again.values, again.receipt.to_json()) == (values, receipt)
            assert again.receipt.to_json() in second.read_text().splitlines()
        stored = {entry.digest: entry.values for entry in journal.entries()}
        assert spent(journal) == credits(ASKS)
        assert len(stored) == ASKS
        found = read_journal(second, journal.statement().ledger, [journal.public_key])
        assert found.whole and found.live and found.last.seq == journal.head
        journal.close()


def test_an_answer_that_was_stored_and_not_released_is_the_one_a_retry_gets(
    path, second, monkeypatch
):
    publish(path, receipts=second).close()
    with monkeypatch.context() as patch:
        disk = FullDisk(second, "write", 3, patch)
        journal = publish(path)
        entry = pay(journal, "q", key="k")
        with pytest.raises(Refused):
            journal.settle(entry, [42])
        disk.emptied()
        journal = publish(path)
        assert pay(journal, "q", key="k").values == (42,)
        assert spent(journal) == credits(1)
        journal.close()


STEPS = ["admitted", "committed", "journalled", "anchored"]


def rounds(path, second, dice_steps):
    """Kill a child at each step in turn; what it released is noted by one write each."""
    notes_path = path.with_name("notes")
    for number, (step, countdown) in enumerate(dice_steps):
        child = os.fork()
        if child == 0:
            left = [countdown]

            def die(reached, step=step, left=left):
                if reached == step:
                    left[0] -= 1
                    if not left[0]:
                        os.kill(os.getpid(), signal.SIGKILL)

            try:
                failpoints.on_step = die
                notes = os.open(notes_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                journal = publish(path, receipts=second, cap=credits(100))
                for turn in range(6):
                    entry = ask(journal, f"{number}-{turn}", values=(turn,))
                    os.write(notes, (entry.receipt.to_json() + "\n").encode())
                journal.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        yield notes_path.read_text().splitlines() if notes_path.exists() else []


def check(second, released):
    """Whatever left is in the journal."""
    lines = set(second.read_text("ascii", "replace").splitlines()) if second.exists() else set()
    assert set(released) <= lines


def test_killed_at_each_step_everything_released_is_in_the_journal(path, second):
    plan = [(step, countdown) for step in STEPS for countdown in (2, 5)]
    for released in rounds(path, second, plan):
        check(second, released)
    journal = publish(path, receipts=second, cap=credits(100))
    found = read_journal(second, journal.statement().ledger, [journal.public_key])
    assert found.whole and found.last.seq == journal.head
    charged = sum(1 for _ in journal.entries())
    assert spent(journal) == credits(charged)
    assert len(released) <= charged
    journal.close()


@pytest.mark.parametrize("step", STEPS)
def test_killed_after_a_backup_and_restored_elsewhere(path, second, tmp_path, monkeypatch, step):
    """The machine dies at a step and is never seen again; its second disk is."""
    publish(path, receipts=second, cap=credits(100)).close()
    back_up([path], tmp_path / "b")
    (released,) = list(rounds(path, second, [(step, 4)]))
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "other"))
    with Backup(tmp_path / "b") as backup:
        found = restore(backup, "people", tmp_path / "restored", journal=second)
    assert not found.found.burnt
    paid = sum(int(part[0]) for line in released for part in json.loads(line)["receipt"]["charges"])
    after = found.after["people"].spent.credits
    assert paid <= after <= paid + credits(1).credits  # one may have been in flight
    journal = publish(tmp_path / "restored", receipts=second, cap=credits(100))
    ask(journal, "goes on")
    journal.close()


@pytest.mark.slow
def test_two_hundred_rounds(path, second):
    plan = [(STEPS[number % 4], 1 + number % 11) for number in range(200)]
    for released in rounds(path, second, plan):
        check(second, released)
