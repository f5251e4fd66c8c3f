"""A fault at every write and every sync: nothing is released uncharged, and the ledger reopens."""

from __future__ import annotations

import os
import shutil

import apsw
import pytest
from tests.faults.disk import Disk
from tests.kernel.ledger.publishing import ask, credits, pay, publish

from sulq.errors import Refused
from sulq.kernel.ledger.inspect import inspect
from sulq.kernel.ledger.stores import sqlite

ASKS = 5
CHECKPOINT_OFTEN = "wal_autocheckpoint=4"
PRAGMAS = (*sqlite.PRAGMAS[:3], CHECKPOINT_OFTEN)


@pytest.fixture
def template(tmp_path, state):
    """A published table, so that faults fall on charges and answers."""
    path = tmp_path / "template" / "people.ledger"
    path.parent.mkdir()
    journal = publish(path)
    ask(journal, "before")
    journal.close()
    shutil.copytree(state, tmp_path / "template" / "state")
    return path


class Run:
    """One ledger on a faulty disk: what was released, and what a restart finds."""

    def __init__(self, path, disk, monkeypatch, pragmas=PRAGMAS):
        self.released, self.furthest = {}, 0
        with monkeypatch.context() as patch:
            patch.setattr(
                sqlite, "open_connection", lambda name: apsw.Connection(name, vfs=disk.name)
            )
            patch.setattr(sqlite, "PRAGMAS", pragmas)
            journal = publish(path)
            patch.setattr(os, "pwrite", disk.pwrite)
            patch.setattr(os, "fdatasync", disk.fdatasync)
            disk.armed = True
            for number in range(ASKS):
                try:
                    entry = ask(journal, f"q{number}", values=(number,), key=f"k{number}")
                    self.released[entry.digest] = entry.values
                    self.furthest = entry.receipt.body["answer"]
                except Refused:
                    break
            disk.armed = False
            journal.close()
        self.violations = self._restart(path)

    def _restart(self, path):
        try:
            seen = inspect(path).anchor
            if seen is None or seen.seq < self.furthest:
                return ["the anchor has not seen what was released"]
            journal = publish(path)
        except Refused as refusal:
            return [str(refusal)]
        found = list(journal.entries())
        kept = {entry.digest: entry.values for entry in found if entry.answered}
        wrong = [name for name, values in self.released.items() if kept.get(name) != values]
        charged = len({entry.digest for entry in found})
        if journal.statement().spent != credits(charged):
            wrong.append("spent is not the sum of the charges")
        if charged > 1 + len(self.released) + 1:
            wrong.append("more than the one in flight was charged and not released")
        for number in range(ASKS):  # and it works on: everything can be asked, once
            entry = ask(journal, f"q{number}", values=(-1,), key=f"k{number}")
            if entry.values != self.released.get(entry.digest, entry.values):
                wrong.append(f"a second draw of {entry.digest}")
        if journal.statement().spent != credits(1 + ASKS):
            wrong.append("charged twice")
        journal.close()
        return wrong


def every_fault(template, state, monkeypatch, kind, pragmas=PRAGMAS, **how):
    """Runs for the fault at call 1, 2, ... until it no longer happens."""
    path = template.parent.parent / "people.ledger"
    for at in range(1, 1000):
        shutil.copy(template, path)
        shutil.rmtree(state)
        shutil.copytree(template.parent / "state", state)
        disk = Disk(kind, at, **how)
        run = Run(path, disk, monkeypatch, pragmas)
        if not disk.fired:
            assert len(run.released) == ASKS
            assert run.violations == []
            return
        yield run
    raise AssertionError("the fault never stopped")


@pytest.mark.parametrize("sticky", [False, True])
@pytest.mark.parametrize("kind", ["full", "sync"])
def test_a_full_disk_or_failed_sync_releases_nothing_uncharged(
    template, state, monkeypatch, kind, sticky
):
    runs = list(every_fault(template, state, monkeypatch, kind, sticky=sticky))
    assert len(runs) >= 2 * ASKS * 2
    assert [run.violations for run in runs if run.violations] == []
    assert any(len(run.released) < ASKS for run in runs)


@pytest.mark.sample(1)
@pytest.mark.parametrize("loss", [1.0, 0.5])
def test_a_power_cut_loses_nothing_that_was_released(template, state, monkeypatch, loss):
    runs = list(every_fault(template, state, monkeypatch, "power", loss=loss))
    assert len(runs) >= 4 * ASKS * 2
    assert [run.violations for run in runs if run.violations] == []


@pytest.mark.slow
def test_without_sync_the_power_cut_is_noticed(template, state, monkeypatch):
    """The control: the same runs with synchronous=off must go wrong."""
    careless = ("locking_mode=exclusive", "journal_mode=wal", "synchronous=off", CHECKPOINT_OFTEN)
    runs = every_fault(template, state, monkeypatch, "power", careless)
    assert any(run.violations for run in runs if run.released)


def test_after_a_failed_write_the_ledger_is_closed(path, monkeypatch):
    disk = Disk("full", 1)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "open_connection", lambda name: apsw.Connection(name, vfs=disk.name))
        journal = publish(path)
        disk.armed = True
        with pytest.raises(Refused, match="the charge may stand; reopen"):
            pay(journal, "q")
        disk.armed = False
        with pytest.raises(Refused, match="closed"):
            pay(journal, "r")
        with pytest.raises(Refused, match="closed"):
            journal.statement()
        again = publish(path)
        ask(again, "q")


def test_a_short_write_of_the_anchor_releases_nothing(path, monkeypatch):
    journal = publish(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda *_: 3)
        with pytest.raises(Refused):
            pay(journal, "q")
    again = publish(path)
    assert pay(again, "q").charged == {}
