"""A backup is taken at once while another process writes and folds its log all the time."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal

from tests.kernel.ledger.publishing import ask, credits, publish
from tests.waiting import come

from sulq.kernel.ledger import inspect
from sulq.kernel.ledger.backup import Backup, back_up
from sulq.kernel.ledger.stores import sqlite

OFTEN = (*sqlite.PRAGMAS[:3], "wal_autocheckpoint=4")


def write_on(path, written) -> None:
    sqlite.PRAGMAS = OFTEN
    journal = publish(path, cap=credits(10**6))
    number = 0
    while True:
        ask(journal, f"q{number}", values=tuple(range(2_000)))
        number += 1
        written.value = number


def test_every_backup_is_whole_at_the_first_try(path, tmp_path, monkeypatch):
    """While each file is copied the other process writes ten events more."""
    copy, written = shutil.copyfile, multiprocessing.Value("q", 0)

    def slowly(source, target):  # a large ledger on a slow disk
        before = written.value
        copy(source, target)
        come(lambda: written.value >= before + 10, "the other process stands still")

    monkeypatch.setattr(inspect.shutil, "copyfile", slowly)
    monkeypatch.setattr("sulq.kernel.ledger.backup.TRIES", 1)
    writer = multiprocessing.get_context("fork").Process(target=write_on, args=(path, written))
    writer.start()
    try:
        come(lambda: path.exists() and path.stat().st_size >= 200_000)
        seen = []
        for number in range(4):
            back_up([path], tmp_path / f"b{number}")
            with Backup(tmp_path / f"b{number}") as backup:
                seen.append(backup.ledgers[0].events)
        assert seen == sorted(seen)
        assert seen[0] < seen[-1]
    finally:
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
