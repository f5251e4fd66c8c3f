"""Replicas of a shared ledger, in this process and in others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from contextlib import closing, contextmanager
from pathlib import Path

from tests.kernel.ledger.publishing import credits, publish, spent
from tests.waiting import LONGEST

from sulq.kernel.ledger import file as book
from sulq.kernel.ledger.inspect import verified_rows
from sulq.kernel.ledger.recovery import recover
from sulq.kernel.ledger.shared import join, share_key


class Replica:
    """A replica in this process: a state directory and a book of its own."""

    def __init__(self, address: str, home: Path) -> None:
        self.address, self.home = address, home

    @contextmanager
    def here(self):
        before, books = os.environ["SULQ_STATE"], dict(book._books)
        book._books.clear()
        os.environ["SULQ_STATE"] = str(self.home)
        try:
            yield
        finally:
            os.environ["SULQ_STATE"] = before
            book._books.clear()
            book._books.update(books)

    def open(self, **changes):
        with self.here():
            return publish(self.address, **changes)

    def join(self, first: Replica) -> Replica:
        file = self.home.with_suffix(".key")
        with first.here():
            share_key(self.address, file)
        with self.here():
            join(self.address, file)
        file.unlink()
        return self

    def recover(self):
        with self.here():
            return recover(self.address)


def kill(journal):
    """As if its process had died: the connection and the locks go, nothing is written."""
    held = journal._shared
    held._writer._broken = True
    held._finish(False)


class Race:
    """Replicas in processes of their own, started together."""

    def __init__(self, address, homes, tmp_path, *, rounds, threads, cap):
        self.notes = [tmp_path / f"{home.name}.notes" for home in homes]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, "."])}
        self.processes = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.kernel.ledger.replica",
                    address,
                    home,
                    notes,
                    home.name,
                    str(rounds),
                    str(threads),
                    str(cap),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd=Path(__file__).parents[3],
            )
            for home, notes in zip(homes, self.notes, strict=True)
        ]
        for process in self.processes:
            assert process.stdout.readline() == b"ready\n", process.stderr.read()
        for process in self.processes:
            process.stdin.write(b"\n")
            process.stdin.flush()

    def told(self, number):
        """How many answers the clients of one have seen so far."""
        notes = self.notes[number]
        return notes.read_bytes().count(b"\n") if notes.exists() else 0

    def finish(self, *, killed=()):
        for number, process in enumerate(self.processes):
            _, talk = process.communicate(timeout=3 * LONGEST)
            assert number in killed or process.returncode == 0, talk.decode()

    def released(self):
        """What clients saw: for each question the values."""
        found = defaultdict(set)
        for notes in self.notes:
            for line in notes.read_text().splitlines() if notes.exists() else []:
                name, values = json.loads(line)
                found[name].add(tuple(values))
        return found


def homes_of(address, tmp_path, number, cap):
    first = Replica(address, tmp_path / "r0")
    first.open(cap=credits(cap)).close()
    others = [Replica(address, tmp_path / f"r{n}") for n in range(1, number)]
    return [first, *(other.join(first) for other in others)]


def check(address, released, replica, cap):
    """One value per question, each stored and charged, and the chain adds up."""
    assert all(len(values) == 1 for values in released.values())
    with closing(replica.open(cap=credits(cap), wait=5.0)) as journal:
        stored = {entry.digest: entry.values for entry in journal.entries() if entry.answered}
        assert {name: {stored[name]} for name in released} == released
        kinds = Counter(json.loads(row.body)["kind"] for row in verified_rows(address))
        assert spent(journal) == credits(kinds["charge"])
        assert spent(journal).within(credits(cap))
        return kinds
