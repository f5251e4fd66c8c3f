"""The tables that are served, by name."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sulq.database import Database
from sulq.policy import TablePolicy
from sulq.server.problems import not_found


class Tables:
    """Names and their open databases. Thread-safe; a name is never given twice."""

    def __init__(
        self,
        databases: Mapping[str, Database],
        publish: Callable[[TablePolicy], Database] | None = None,
        policy: Path | None = None,
        waiting: Sequence[str] = (),
    ) -> None:
        """`publish` publishes and opens a new table, which is then written into the file `policy`;
        `waiting` are tables which that file declares and nobody has published."""
        self._databases = dict(databases)
        self._lock = threading.Lock()
        self.publish, self.policy, self.waiting = publish, policy, tuple(waiting)
        self.on_change: Callable[[], None] | None = None

    def names(self) -> list[str]:
        with self._lock:
            return sorted(self._databases)

    def taken(self) -> list[str]:
        """Names that no new table may have: of tables served, and of those declared."""
        return sorted({*self.names(), *self.waiting})

    def __getitem__(self, name: str) -> Database:
        with self._lock:
            found = self._databases.get(name)
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
