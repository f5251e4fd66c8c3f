"""Credits that callers have set aside: kept in memory, given back when done, idle or stopped."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sulq.database.database import Reserved
from sulq.errors import InvalidQuery
from sulq.server.errors import not_found

LEAST = Fraction(1, 1000)
"""Credits: each reservation is two events in the books, for good."""


def check_reserved(credits: Fraction) -> None:
    if credits < LEAST:
        raise InvalidQuery(f"a reservation has at least {float(LEAST):g} credits; got less")


@dataclass(slots=True)
class _Held:
    table: str
    analyst: str
    oracle: Reserved
    used: float


class Reservations:
    """By name; only who made one may use or end it. Thread-safe."""

    def __init__(self, idle: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._idle, self._clock, self._lock = idle, clock, threading.Lock()
        self._held: dict[str, _Held] = {}

    def add(self, table: str, analyst: str, oracle: Reserved) -> str:
        self.sweep()
        name = secrets.token_urlsafe(12)
        with self._lock:
            self._held[name] = _Held(table, analyst, oracle, self._clock())
        return name

    def get(self, name: str, table: str, analyst: str) -> Reserved:
        self.sweep()
        with self._lock:
            held = self._held.get(name)
            if held is None or (held.table, held.analyst) != (table, analyst):
                raise not_found("there is no such reservation; it may have ended")
            held.used = self._clock()
            return held.oracle

    def end(self, name: str, table: str, analyst: str) -> None:
        """Give back what is left."""
        oracle = self.get(name, table, analyst)
        with self._lock:
            self._held.pop(name, None)
        oracle.close()

    def sweep(self) -> None:
        """End those that nobody has used for long."""
        before = self._clock() - self._idle
        with self._lock:
            ended = [name for name, held in self._held.items() if held.used < before]
            oracles = [self._held.pop(name).oracle for name in ended]
        for oracle in oracles:
            oracle.close()

    def close(self) -> None:
        with self._lock:
            oracles = [held.oracle for held in self._held.values()]
            self._held.clear()
        for oracle in oracles:
            oracle.close()
