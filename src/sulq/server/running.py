"""Requests off the event loop, in order, and replies on the table's clock."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from fastapi import Request

from sulq.database.holding import held
from sulq.server.access import Caller
from sulq.server.fairness import INSIDE, Fairness, Place
from sulq.server.problems import Problem
from sulq.server.replies import digest_of
from sulq.server.service import Asked, Service
from sulq.server.turns import give_up_turn, in_turn

T = TypeVar("T")
WAITING = 16
"""Threads for each that works: most of them hold an answer until its public moment."""


class Workers:
    """A bounded thread pool; who would wait too long is sent away instead."""

    def __init__(self, threads: int, most_waiting: int, each: int = 2) -> None:
        """`each`: how many requests of one caller work at once."""
        self._pool = ThreadPoolExecutor(threads * WAITING, "sulq")
        most = max(2 * threads, (threads + most_waiting) // INSIDE)
        self._fair = Fairness(each, threads * WAITING // INSIDE, most)
        self._turns = threading.BoundedSemaphore(threads)
        self._most, self._running = threads + most_waiting, 0
        self._keys: dict[tuple[str, ...], tuple[asyncio.Lock, int]] = {}

    async def run(self, work: Callable[..., T], *given: object, who: str = "") -> T:
        """Blocking work, in a thread, for a caller."""
        if self._running >= self._most:
            raise too_many(1)
        self._running += 1
        try:
            loop = asyncio.get_running_loop()
            async with self._fair.place(who, self._turns) as place:
                return await loop.run_in_executor(self._pool, self._worked, place, work, given)
        finally:
            self._running -= 1

    def _worked(self, place: Place, work: Callable[..., T], given: tuple[object, ...]) -> T:
        with in_turn(place):
            return work(*given)

    @asynccontextmanager
    async def alone(self, *name: str) -> AsyncIterator[None]:
        """One request at a time under a name: a second one with the same key waits here."""
        lock, users = self._keys.get(name, (asyncio.Lock(), 0))
        self._keys[name] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._keys.pop(name)
            if users > 1:
                self._keys[name] = (lock, users - 1)

    def close(self) -> None:
        """What has begun is finished."""
        self._pool.shutdown(wait=True)


def too_many(seconds: float) -> Problem:
    wait = max(1, round(seconds))
    return Problem(
        429,
        "too_many",
        "too many requests at once",
        f"wait {wait} s and send it again with the same key",
        headers={"Retry-After": str(wait)},
    )


def service_of(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


async def in_thread(request: Request, work: Callable[..., T], *given: object) -> T:
    """Blocking work of a request, off the event loop."""
    workers: Workers = request.app.state.workers
    caller: Caller | None = getattr(request.state, "caller", None)
    who = "" if caller is None else f"{caller.role} {caller.name}"
    return await workers.run(work, *given, who=who)


async def charged(
    request: Request, caller: Caller, table: str, key: str, understand: Callable[[], Asked]
) -> bytes:
    """Answer a question that may cost something: once per key, on the table's clock.

    `understand` may refuse; then, and whatever else happens, the reply leaves on a tick. How many
    ticks follows from public facts.
    """
    service, workers = service_of(request), request.app.state.workers
    arrived = time.monotonic()
    service.known(caller, table)  # not found: there is no clock either
    clock = service.clock(table)
    digest = digest_of(request.method, request.url.path, await request.body())
    ticks = 1

    def work() -> bytes:
        nonlocal ticks
        if (kept := service.kept(caller, table, key, digest)) is not None:
            return kept
        asked = understand()
        ticks = clock.ticks(*asked.bounds)

        def until() -> None:
            give_up_turn()
            clock.hold(arrived, ticks)

        with clock.execution(asked.digests), held(until):
            return service.once(caller, table, key, digest, asked)

    try:
        async with workers.alone(table, caller.name, str(caller.role), key):
            return await in_thread(request, work)
    finally:
        await clock.leave(arrived, ticks)
