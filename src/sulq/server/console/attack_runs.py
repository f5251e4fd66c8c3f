"""Attacks on a made-up copy of a table: same promise, fictional rows, nothing of the owner's.

One run at a time, in a thread of its own, in ledgers that live in memory. Kept by promise.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sulq.attacks.finding import SHARE, Finding
from sulq.attacks.reconstruction import Point, sweep
from sulq.attacks.suite import FULL, QUICK, run
from sulq.attacks.target import ROW, SECRET, Bits, Target
from sulq.database import Database
from sulq.errors import InvalidQuery
from sulq.oracle import Oracle
from sulq.schema.columns import Flag, Number, Schema
from sulq.schema.promise import Promise

ROWS = 1_000
QUESTIONS = 1_000
SIGMAS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 166.0)
WORDS = {
    "differencing": ("Difference", "Ask with and without one person, subtract"),
    "rewordings": ("Repeat", "Ask the same thing in many wordings, average"),
    "reconstruction": ("Rebuild", "Random groups, solve for every row"),
    "analysts": ("Pool", "Many accounts share what they got"),
    "denials": ("Refusals", "Watch what is refused, and what it costs"),
}
IDLE, RUNNING, DONE, FAILED = "idle", "running", "done", "failed"


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    words: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class Run:
    """Where a run stands."""

    state: str = IDLE
    lines: tuple[Line, ...] = ()
    points: tuple[Point, ...] = ()
    at: float = 0.0
    done: int = 0


class Attacks:
    """Runs by promise; thread-safe."""

    def __init__(self) -> None:
        self._runs: dict[Promise, Run] = {}
        self._lock, self._one = threading.Lock(), threading.Lock()

    def of(self, promise: Promise) -> Run:
        with self._lock:
            return self._runs.get(promise, Run())

    def begin(self, promise: Promise) -> Run:
        """Start, unless it runs already or another one does."""
        with self._lock:
            now = self._runs.get(promise, Run())
            if now.state == RUNNING or not self._one.acquire(blocking=False):
                return now
            self._runs[promise] = found = Run(RUNNING)
        threading.Thread(target=self._run, args=(promise,), daemon=True).start()
        return found

    def _run(self, promise: Promise) -> None:
        found = Run(FAILED)
        try:
            found = attacked(promise, lambda run: self._note(promise, run))
        finally:
            self._note(promise, found)
            self._one.release()

    def _note(self, promise: Promise, run: Run) -> None:
        with self._lock:
            self._runs[promise] = run


def attacked(promise: Promise, noted: Callable[[Run], None] = lambda _: None) -> Run:
    """Five attacks and the rebuilding at several sizes of noise."""
    target = made_up(promise)
    lines: list[Line] = []
    for name, (title, words) in WORDS.items():
        findings = run(target, [name], FULL if name == "differencing" else QUICK)
        shares = [one for one in findings if one.measure == SHARE and one.trials] or findings
        lines.append(Line(title, words, max(shares, key=lambda one: one.trials)))
        noted(Run(RUNNING, done=len(lines)))
    asked = min(promise.credits, QUESTIONS)
    points = sweep(target, asked, SIGMAS, tables=1).points
    return Run(DONE, tuple(lines), points, time.time(), len(lines))


def made_up(promise: Promise) -> Target:
    """A fictional table as often as it is wanted; every ledger is in memory, every row invented."""

    def publish(secrets: Bits) -> Oracle:
        bits = np.asarray(secrets, dtype=np.bool_)
        table = {ROW: np.arange(len(bits)), SECRET: bits}
        high = max(1, len(bits) - 1)
        schema = Schema(Number(ROW, 0, high, step=1, public=True), Flag(SECRET))
        return Database.open(table, schema, promise, ":memory:", name="fiction")

    return Target(promise, ROWS, publish, _shared)


def _shared(oracle: Oracle, number: int) -> Sequence[Oracle]:
    if not isinstance(oracle, Database):
        raise InvalidQuery(f"only a table has analysts, got a {type(oracle).__name__}")
    share = oracle.remaining / number
    names = [f"analyst {place + 1}" for place in range(number)]
    for name in names:
        oracle.grant(name, share)
    return [oracle.as_analyst(name) for name in names]
