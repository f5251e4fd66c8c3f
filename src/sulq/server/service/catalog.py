"""The tables that are served, by name."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import apsw

from sulq.database import Database
from sulq.database.publish import broken, reopen
from sulq.errors import SulqError
from sulq.policy import TablePolicy
from sulq.server.errors import HttpProblem, not_found, out_of_order
from sulq.synthetic import dummy_source
from sulq.wire.replies import Reply


class Tables:
    """Names and their open databases. Thread-safe; a name is never given twice."""

    def __init__(
        self,
        databases: Mapping[str, Database],
        publish: Callable[[TablePolicy], Database] | None = None,
        policy: Path | None = None,
        waiting: Sequence[str] = (),
        sharing: Collection[str] = (),
    ) -> None:
        """`publish` publishes and opens a new table, which is then written into the file `policy`;
        `waiting` are tables which that file declares and nobody has published; `sharing` are those
        whose answers may be shared."""
        self._databases = dict(databases)
        self._lock = threading.Lock()
        self.publish, self.policy, self.waiting = publish, policy, tuple(waiting)
        self.sharing = frozenset(sharing)
        self.on_change: Callable[[], None] | None = None

    def names(self) -> list[str]:
        with self._lock:
            return sorted(self._databases)

    def taken(self) -> list[str]:
        """Names that no new table may have: of tables served, and of those declared."""
        return sorted({*self.names(), *self.waiting})

    def find(self, name: str) -> Database | None:
        with self._lock:
            return self._databases.get(name)

    def __getitem__(self, name: str) -> Database:
        found = self.find(name)
        if found is None:
            raise not_found("there is no table of this name here, or it is not for this token")
        return found

    def add(self, name: str, database: Database) -> None:
        """Serve one table more."""
        with self._lock:
            if name in self._databases:
                raise ValueError("this name is taken")
            self._databases[name] = database
        if self.on_change is not None:
            self.on_change()

    def close(self) -> None:
        """Release every ledger and engine."""
        with self._lock:
            databases, self._databases = list(self._databases.values()), {}
        for database in databases:
            database.close()


def id_of(database: Database) -> str:
    """What a token knows a published table by; amended or with new rows it stays the same one.

    Withdrawn and published again under its name it is another one, whoever withdrew it.
    """
    return database.ledger.identity


# Books that could not be written are opened again: once they can be, not all the time.


PAUSE = 1.0
"""Seconds between two attempts."""


class LedgerRecovery:
    """One attempt at a time for all tables. Thread-safe."""

    def __init__(self) -> None:
        self._lock, self._last = threading.Lock(), -PAUSE

    def restore(self, database: Database) -> None:
        """Return with books that can be written; a constant refusal if there are none."""
        if not broken(database):
            return
        with self._lock:
            if not broken(database):  # another request has seen to it
                return
            if time.monotonic() - self._last < PAUSE:
                raise out_of_order()
            try:
                reopen(database)
            except (SulqError, OSError, apsw.Error):  # still no room
                self._last = time.monotonic()
                raise out_of_order() from None


# Under which facts a table is asked: an amendment changes columns, bounds and prices.


R = TypeVar("R", bound=Reply)


def facts_of(database: Database) -> str:
    """A random id and how often the table was amended; it says nothing of any row."""
    return f"{database.ledger.header.version}.{database.ledger.generation}"


def check_facts(database: Database, given: str | None) -> None:
    """Refuse, free, what was made for other bounds: its answer would be read by them."""
    if given is not None and given != facts_of(database):
        raise HttpProblem(
            409,
            "table_amended",
            "this table was amended, and the request was made for it as it was",
            "connect again, or GET schema, then ask; nothing was charged",
        )


def with_version(reply: R, database: Database) -> R:
    """The reply, and the facts that it is to be read by."""
    return reply.model_copy(update={"facts_id": facts_of(database)})


# Tables of made-up rows: what is asked of them is free and means nothing.


ROWS = 10_000
MOST_ASKED = 8
"""Questions of one made-up table: each looks through the ones before it, so a new one is made."""


class SandboxTables:
    """One for each published table, under its schema and promise. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, Database] = {}

    def of(self, name: str, real: Database) -> Database:
        """The one in use; a new one when it is spent, full, or the real one was amended."""
        with self._lock:
            held = self._held.get(name)
            if held is None or _worn(held, real):
                rows = dummy_source(real.schema, min(real.size or ROWS, ROWS))
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
