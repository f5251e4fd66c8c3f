"""A fault at every write and sync of a reserved batch: it is whole or absent, nothing is lost."""

from __future__ import annotations

import os
import shutil

import apsw
import pytest
from tests.faults.disk import Disk
from tests.faults.test_disk import PRAGMAS
from tests.kernel.ledger.publishing import ask, credits, publish, spent
from tests.kernel.ledger.test_batches import batch, settled

from sulq.errors import Refused
from sulq.kernel.ledger.accounts import NOTHING
from sulq.kernel.ledger.stores import sqlite

NAMES = ("a", "b", "c")


@pytest.fixture
def template(tmp_path, state):
    path = tmp_path / "template" / "people.ledger"
    path.parent.mkdir()
    journal = publish(path)
    ask(journal, "before")
    journal.close()
    shutil.copytree(state, tmp_path / "template" / "state")
    return path


def attempt(path, disk, monkeypatch):
    """What was released of a batch out of a reservation, on a disk that fails."""
    released = {}
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "open_connection", lambda name: apsw.Connection(name, vfs=disk.name))
        patch.setattr(sqlite, "PRAGMAS", PRAGMAS)
        journal = publish(path)
        patch.setattr(os, "pwrite", disk.pwrite)
        patch.setattr(os, "fdatasync", disk.fdatasync)
        disk.armed = True
        try:
            aside = journal.reserve("owner", credits(6))
            for entry in settled(aside, batch(aside, *NAMES, key="k")):
                released[entry.digest] = entry.values
            aside.close()
        except Refused:
            pass
        disk.armed = False
        journal.close()
    return released


def violations(path, released):
    """After a restart: what is wrong, and whether the batch can be finished."""
    journal, wrong = publish(path), []
    kept = {entry.digest: entry.values for entry in journal.entries() if entry.digest in NAMES}
    if len(kept) not in (0, 3):
        wrong.append("a batch in part")
    if any(kept.get(name) != values for name, values in released.items()):
        wrong.append("released and not kept")
    if journal.statement().reserved != NOTHING:
        wrong.append("still reserved")
    if spent(journal) + journal.remaining("owner") != credits(10):
        wrong.append("credits lost or counted twice")
    entries = batch(journal, *NAMES, key="k")
    again = {entry.digest: entry.values for entry in entries if entry.answered}
    again |= {entry.digest: entry.values for entry in settled(journal, entries, first=70)}
    if any(again[name] != values for name, values in released.items()):
        wrong.append("a second draw")
    if spent(journal) != credits(4):
        wrong.append("charged twice")
    journal.close()
    return wrong


@pytest.mark.parametrize(
    ("kind", "how"), [("full", {}), ("sync", {}), ("power", {}), ("power", {"loss": 0.5})]
)
def test_at_every_fault_the_batch_is_whole_and_the_rest_comes_back(
    template, state, monkeypatch, kind, how
):
    path, found = template.parent.parent / "people.ledger", []
    for at in range(1, 500):
        shutil.copy(template, path)
        shutil.rmtree(state)
        shutil.copytree(template.parent / "state", state)
        disk = Disk(kind, at, **how)
        released = attempt(path, disk, monkeypatch)
        found.append(len(released))
        assert violations(path, released) == [], at
        if not disk.fired:
            break
    assert found[-1] == 3
    assert {0, 3} == set(found)
    assert len(found) > 8
