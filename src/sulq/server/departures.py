"""The time that replies keep: what it is now, and waking waiters at exact moments.

An event loop on epoll rounds its timers to whole milliseconds, counted from its last event: from
when the work was done. What leaves would carry that phase. A thread's timed wait does not.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
import time
from contextlib import suppress

IDLE = 5.0
"""Seconds without a waiter after which the thread ends; the next waiter starts another."""


class Departures:
    """Any number of coroutines, of any loops, waiting for their moments. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._number = itertools.count()
        self._running = False

    def now(self) -> float:
        """The moment on the monotonic clock, which all moments here are on."""
        return time.monotonic()

    def block(self, moment: float) -> None:
        """Return at `moment`, for a thread of its own; at once if it has passed."""
        time.sleep(max(0.0, moment - self.now()))

    async def until(self, moment: float) -> None:
        """Return at `moment`; at once if it has passed."""
        due: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._changed:
            heapq.heappush(self._waiting, (moment, next(self._number), due))
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="sulq-departures", daemon=True).start()
            elif self._waiting[0][2] is due:  # sooner than all others
                self._changed.notify()
        await due

    def _run(self) -> None:
        while (due := self._next()) is not None:
            with suppress(RuntimeError):  # its loop has ended meanwhile
                due.get_loop().call_soon_threadsafe(_wake, due)

    def _next(self) -> asyncio.Future[None] | None:
        """Wait for the earliest moment; None ends the thread."""
        with self._changed:
            while True:
                if not self._waiting:
                    if not self._changed.wait(IDLE) and not self._waiting:
                        self._running = False
                        return None
                elif (left := self._waiting[0][0] - self.now()) > 0:
                    self._changed.wait(left)
                else:
                    return heapq.heappop(self._waiting)[2]


def _wake(due: asyncio.Future[None]) -> None:
    if not due.done():  # the waiter may have gone
        due.set_result(None)
