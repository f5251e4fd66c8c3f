"""Books that could not be written are opened again: once they can be, not all the time."""

from __future__ import annotations

import threading
import time

import apsw

from sulq.database import Database
from sulq.database.reopening import broken, reopen
from sulq.errors import SulqError
from sulq.server.problems import out_of_order

PAUSE = 1.0
"""Seconds between two attempts."""


class Order:
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
