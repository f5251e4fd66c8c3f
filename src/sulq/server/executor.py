"""Requests off the event loop, in order, and replies on the table's clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from fastapi import Request

from sulq.kernel.release.gate import held
from sulq.server.auth.tokens import Caller
from sulq.server.errors import HttpProblem
from sulq.server.idempotency import digest_of
from sulq.server.scheduling import CallerLimiter, Scheduler
from sulq.server.service.request import PreparedRequest
from sulq.server.service.service import Service, ledger_name

T = TypeVar("T")
SHARE = 4
"""Of what may wait, one caller has at most this part."""


class WorkerPool:
    """Threads for one kind of work, shared fairly; who would wait too long is sent away."""

    def __init__(self, name: str, threads: int, each: int, most_waiting: int) -> None:
        """`each`: how many requests of one caller are worked on at once."""
        self._threads = ThreadPoolExecutor(threads, name)
        self._most, self.running = threads + most_waiting, 0
        self._fair = CallerLimiter(each, max(2 * threads, self._most // SHARE))

    @asynccontextmanager
    async def place(self, who: str) -> AsyncIterator[None]:
        """Among the requests of a caller that are worked on."""
        if self.running >= self._most:
            raise too_many(1)
        self.running += 1
        try:
            async with self._fair.place(who):
                yield
        finally:
            self.running -= 1

    async def thread(self, work: Callable[..., T], *given: object) -> T:
        """Blocking work of whoever has a place."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: work(*given))

    async def run(self, who: str, work: Callable[..., T], *given: object) -> T:
        """Blocking work, in a thread, for a caller."""
        async with self.place(who):
            return await self.thread(work, *given)

    def close(self) -> None:
        """What has begun is finished."""
        self._threads.shutdown(wait=True)


class Workers:
    """What reads rows has threads of its own, begins by the timetable, and keeps its thread until
    a public moment.

    So nothing that can be seen at once, a price or a page, ever waits for rows to be read; and a
    question that waits for another begins at a moment that tells no running time.
    """

    def __init__(self, threads: int, most_waiting: int, each: int = 4) -> None:
        self.answers = WorkerPool("sulq-answers", threads, each, most_waiting)
        self.pages = WorkerPool("sulq-pages", max(1, threads // 4), max(1, each // 2), most_waiting)
        self.timetable = Scheduler()
        self._keys: dict[tuple[str, ...], tuple[asyncio.Lock, int]] = {}

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
        self.answers.close()
        self.pages.close()


def too_many(seconds: float) -> HttpProblem:
    wait = max(1, round(seconds))
    return HttpProblem(
        429,
        "too_many",
        "too many requests at once",
        f"wait {wait} s and send it again with the same key",
        headers={"Retry-After": str(wait)},
    )


def service_of(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


async def run_free(request: Request, work: Callable[..., T], *given: object) -> T:
    """Blocking work that reads no row, off the event loop."""
    workers: Workers = request.app.state.workers
    return await workers.pages.run(_who(request), work, *given)


async def run_reading(request: Request, work: Callable[..., T], *given: object) -> T:
    """Blocking work that reads rows, and ends at a public moment."""
    workers: Workers = request.app.state.workers
    return await workers.answers.run(_who(request), work, *given)


def name_of(caller: Caller) -> str:
    """Under which name a caller waits."""
    return f"{caller.role} {caller.name}"


def _who(request: Request) -> str:
    caller: Caller | None = getattr(request.state, "caller", None)
    return "" if caller is None else name_of(caller)


async def run_charged(
    request: Request,
    caller: Caller,
    table: str,
    key: str,
    understand: Callable[[], PreparedRequest],
) -> bytes:
    """Answer a question that may cost something: once per key, on the table's clock.

    `understand` may refuse; then, and whatever else happens, the reply leaves on a tick. How many
    ticks, and from when on they are counted, follows from public facts.
    """
    service, who = service_of(request), name_of(caller)
    workers: Workers = request.app.state.workers
    arrived = begun = workers.timetable.now()
    service.known(caller, table)  # not found: there is no clock either
    clock = service.clock(table)
    digest = digest_of(request.method, request.url.path, await request.body())
    ticks = 1

    def understood() -> PreparedRequest | bytes:
        return service.kept(caller, table, key, digest) or understand()

    def work(asked: PreparedRequest) -> bytes:
        nonlocal begun
        begun = clock.start(begun)
        with clock.execution(asked.digests), held(lambda: clock.hold(begun, ticks)):
            return service.once(caller, table, key, digest, asked)

    try:
        async with (
            workers.alone(table, ledger_name(caller), key),  # as replies are kept
            workers.answers.place(who),
        ):
            asked = await workers.answers.thread(understood)
            if isinstance(asked, bytes):
                return asked
            ticks = clock.ticks(*asked.bounds)
            begun = await workers.timetable.turn(who, arrived, clock.load(*asked.bounds))
            return await workers.answers.thread(work, asked)
    finally:
        await clock.leave(begun, ticks)
