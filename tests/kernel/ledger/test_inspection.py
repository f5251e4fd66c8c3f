from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.kernel.ledger.publishing import ask, credits, publish

from sulq.errors import Refused
from sulq.kernel.ledger import inspect as inspection
from sulq.kernel.ledger.inspect import inspect

LOOK = """
import sys
from sulq.kernel.ledger.inspect import inspect
found = inspect(sys.argv[1])
print(found.anchored, found.statements["people"].entries)
"""


def look(path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", LOOK, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return run.stdout.split()


def test_a_closed_ledger_is_read(path):
    journal = publish(path)
    receipt = ask(journal, "q").receipt.to_json()
    before = journal.statement()
    journal.close()
    files = {found.name: found.read_bytes() for found in path.parent.glob("people*")}
    found = inspect(path)
    assert found.statements == {"people": before}
    assert found.anchored
    found.confirm(receipt)
    assert {found.name: found.read_bytes() for found in path.parent.glob("people*")} == files


def test_a_ledger_open_here_is_read_and_stays_locked(path):
    journal = publish(path)
    ask(journal, "q")
    assert inspect(path).statements["people"] == journal.statement()
    assert inspect(path).anchored


def test_another_process_reads_while_this_one_writes(path):
    journal = publish(path, cap=credits(10**6))
    stop = threading.Event()
    asked = []

    def work():
        while not stop.is_set():
            asked.append(ask(journal, f"q{len(asked)}"))

    thread = threading.Thread(target=work)
    thread.start()
    seen, done = [], []
    try:
        for _ in range(2):
            before = len(asked)
            while len(asked) < before + 2:
                time.sleep(0.001)
            done.append(len(asked) - 1)
            seen.append(look(path))
    finally:
        stop.set()
        thread.join()
    assert {sound for sound, _ in seen} == {"True"}
    counts = [int(count) for _, count in seen]
    for known, count in zip(done, counts, strict=True):
        assert known <= count <= len(asked)  # what was answered before the look is in it


def test_an_anchor_ahead_of_the_ledger_is_told(path, tmp_path):
    journal = publish(path)
    journal.close()
    shutil.copy(path, tmp_path / "backup")
    journal = publish(path)
    ask(journal, "q")
    journal.close()
    shutil.copy(tmp_path / "backup", path)
    assert not inspect(path).anchored


def test_no_ledger_is_refused(path):
    with pytest.raises(Refused, match="no ledger"):
        inspect(path)
    path.write_bytes(b"rubbish")
    with pytest.raises(Refused):
        inspect(path)


def test_a_copy_torn_by_a_checkpoint_is_no_rollback(path, tmp_path, monkeypatch):
    """A busy holder folds its log away between the two copies: the first look is an old one."""
    publish(path).close()
    old = path.read_bytes()
    journal = publish(path)
    ask(journal, "q")
    journal.close()
    copies = []

    def copyfile(source, target):
        first = not copies and source == path
        copies.extend([source] if source == path else [])
        Path(target).write_bytes(old if first else source.read_bytes())

    monkeypatch.setattr(inspection.shutil, "copyfile", copyfile)
    assert inspect(path).anchored
    assert len(copies) == 2
