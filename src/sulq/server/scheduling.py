"""When questions begin: by their public costs and by who came before, never by how long rows took.

A question that began when another has ended would carry that one's running time, and one that
shares the processor with too many would miss its tick. Proof: docs/proofs/timing.md.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field

from sulq.server.errors import HttpProblem

# Timers that wake at exact moments. An event loop on epoll rounds its timers to whole milliseconds,
# counted from its last event: from when the work was done. A reply that left by such a timer would
# carry that phase. A thread's timed wait does not.

IDLE = 5.0
"""The timer thread ends after so many seconds without a waiter; the next waiter starts it again."""


class PreciseTimer:
    """A timer thread that wakes coroutines, of any event loop, at exact moments. Thread-safe."""

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
        """Wait for the earliest moment and return its waiter; None ends the thread."""
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


LANES = 2
"""How many questions read rows at once. A tick has room for so many, by `MARGIN` and `LEAD`."""


@dataclass(slots=True)
class _Own:
    order: asyncio.Lock = field(default_factory=asyncio.Lock)
    free: float = 0.0


class Scheduler:
    """Admit questions to LANES lanes, each for a public time, one at a time for each caller."""

    def __init__(self, departures: PreciseTimer | None = None) -> None:
        self._lanes, self._departures = [0.0] * LANES, departures or PreciseTimer()
        self._callers: defaultdict[str, _Own] = defaultdict(_Own)

    def now(self) -> float:
        """The moment at which a request has arrived, as `PreciseTimer.now`."""
        return self._departures.now()

    async def turn(self, who: str, arrived: float, load: float) -> float:
        """Return when a question begins, as `PreciseTimer.now`; until then the caller waits."""
        if not load:  # nothing here is on a clock
            return arrived
        own = self._callers[who]
        async with own.order:  # the next one of this caller takes no lane before it is its turn
            since = max(arrived, own.free)
            await self._departures.until(since)
            begun = self.take(since, load)
            own.free = begun + load
        await self._departures.until(begun)
        return begun

    def take(self, since: float, load: float) -> float:
        """Take the lane idle for the shortest time, for `load` seconds; return when it begins."""
        idle = [free for free in self._lanes if free <= since]
        lane = self._lanes.index(max(idle) if idle else min(self._lanes))
        begun = max(since, self._lanes[lane])
        self._lanes[lane] = begun + load
        return begun


# Fairness: a caller's own requests wait for each other, not everybody for them.


@dataclass(slots=True)
class _CallerShare:
    working: asyncio.Semaphore
    there: int = 0


class CallerLimiter:
    """Bound, for each caller, how many requests run at once and how many may wait."""

    def __init__(self, working: int, most: int) -> None:
        self._working, self._most = working, most
        self._callers: dict[str, _CallerShare] = {}

    @asynccontextmanager
    async def place(self, who: str) -> AsyncIterator[None]:
        own = self._callers.setdefault(who, _CallerShare(asyncio.Semaphore(self._working)))
        if own.there >= self._most:
            raise _too_many()
        own.there += 1
        try:
            async with own.working:
                yield
        finally:
            own.there -= 1
            if not own.there:
                del self._callers[who]


def _too_many() -> HttpProblem:
    return HttpProblem(
        429,
        "too_many",
        "too many requests of this caller at once",
        "wait 1 s and send it again with the same key",
        headers={"Retry-After": "1"},
    )


# One reading of rows at a time for each question.


class SingleFlight:
    """Coalesce reads: who asks what is being read waits for that read to end. Thread-safe."""

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
