"""Tables of made-up rows: what is asked of them is free and means nothing."""

from __future__ import annotations

import threading

from sulq.database import Database
from sulq.dummies import dummy_rows

ROWS = 10_000
MOST_ASKED = 8
"""Questions of one made-up table: each looks through the ones before it, so a new one is made."""


class MadeUp:
    """One for each published table, under its schema and promise. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, Database] = {}

    def of(self, name: str, real: Database) -> Database:
        """The one in use; a new one when it is spent, full, or the real one was amended."""
        with self._lock:
            held = self._held.get(name)
            if held is None or _worn(held, real):
                rows = dummy_rows(real.schema, min(real.size or ROWS, ROWS))
                held = Database.open(rows, real.schema, real.promise, ":memory:", name=name)
                self._held[name] = held
            return held

    def close(self) -> None:
        with self._lock:
            for held in self._held.values():
                held.close()


def _worn(held: Database, real: Database) -> bool:
    return (
        held.remaining < held.promise.credits / 2
        or held.statement().statement.entries >= MOST_ASKED
        or held.schema != real.schema
    )
