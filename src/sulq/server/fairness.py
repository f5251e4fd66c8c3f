"""Fairness: a caller's own requests wait for each other, not everybody for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from sulq.server.problems import Problem

INSIDE = 4
"""One caller holds at most this part of the threads: most of them wait for a public moment."""


class Place:
    """A turn to work that is also one of the caller's own; both are given back together."""

    def __init__(self, turns: threading.Semaphore, own: asyncio.Semaphore) -> None:
        self._turns, self._own, self._left = turns, own, False
        self._loop = asyncio.get_running_loop()

    def acquire(self) -> None:
        self._turns.acquire()

    def release(self) -> None:
        """From the thread that works."""
        self._turns.release()
        with suppress(RuntimeError):  # the loop has ended: nobody waits any more
            self._loop.call_soon_threadsafe(self.leave)

    def leave(self) -> None:
        """On the event loop; once."""
        if not self._left:
            self._left = True
            self._own.release()


@dataclass(slots=True)
class _Own:
    working: asyncio.Semaphore
    inside: asyncio.Semaphore
    waiting: int = 0


class Fairness:
    """By caller, on one event loop: so many work at once, so many are in threads, so many wait."""

    def __init__(self, working: int, inside: int, waiting: int) -> None:
        self._working, self._inside, self._waiting = working, inside, waiting
        self._callers: dict[str, _Own] = {}

    @asynccontextmanager
    async def place(self, who: str, turns: threading.Semaphore) -> AsyncIterator[Place]:
        own = self._callers.get(who)
        if own is None:
            own = _Own(asyncio.Semaphore(self._working), asyncio.Semaphore(self._inside))
            self._callers[who] = own
        if own.waiting >= self._waiting:
            raise _too_many()
        own.waiting += 1
        try:
            async with own.inside:
                await own.working.acquire()
                place = Place(turns, own.working)
                try:
                    yield place
                finally:
                    place.leave()
        finally:
            own.waiting -= 1
            if not own.waiting:
                del self._callers[who]


def _too_many() -> Problem:
    return Problem(
        429,
        "too_many",
        "too many requests of this caller at once",
        "wait 1 s and send it again with the same key",
        headers={"Retry-After": "1"},
    )
