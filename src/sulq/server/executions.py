"""Executions: one reading of rows at a time for each question."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Executions:
    """Who asks what is being read waits for it. Thread-safe."""

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._under_way: set[str] = set()

    @contextmanager
    def alone(self, digests: frozenset[str]) -> Iterator[None]:
        with self._free:
            self._free.wait_for(lambda: not self._under_way & digests)
            self._under_way |= digests
        try:
            yield
        finally:
            with self._free:
                self._under_way -= digests
                self._free.notify_all()
