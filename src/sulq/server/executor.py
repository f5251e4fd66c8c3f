"""Run a request: in a worker thread, in order, with its reply sent on the table's clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from sulq.kernel.release.release import held
from sulq.server.auth.tokens import AT_TABLES, Caller, Role, require
from sulq.server.errors import HttpProblem, not_for_this_role
from sulq.server.idempotency import KeyedRequest, PreparedRequest, digest_of
from sulq.server.scheduling import CallerLimiter, Scheduler
from sulq.server.service.session import Service, TableSession

T = TypeVar("T")
SHARE = 4
"""One caller fills at most 1 / SHARE of the queue."""


class WorkerPool:
    """Threads for one kind of work, shared fairly by callers; a full queue refuses with 429."""

    def __init__(self, name: str, threads: int, each: int, most_waiting: int) -> None:
        """`each`: the most requests of one caller that run at once."""
        self._threads = ThreadPoolExecutor(threads, name)
        self._most, self.running = threads + most_waiting, 0
        self._fair = CallerLimiter(each, max(2 * threads, self._most // SHARE))

    @asynccontextmanager
    async def place(self, who: str) -> AsyncIterator[None]:
        """Wait until another request of this caller may run, and count it while it does."""
        if self.running >= self._most:
            raise too_many(1)
        self.running += 1
        try:
            async with self._fair.place(who):
                yield
        finally:
            self.running -= 1

    async def thread(self, work: Callable[..., T], *given: object) -> T:
        """Run blocking work in a thread, for a request that has its place."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: work(*given))

    async def run(self, who: str, work: Callable[..., T], *given: object) -> T:
        """Take a place for the caller, and run blocking work in a thread."""
        async with self.place(who):
            return await self.thread(work, *given)

    def close(self) -> None:
        """Finish what has begun, then end the threads."""
        self._threads.shutdown(wait=True)


class Workers:
    """The thread pools of the server: `answers` for what reads rows, `pages` for what does not.

    A price or a page never waits for rows to be read. A question begins when the scheduler says,
    and keeps its thread until a public moment, so that waiting tells no running time.
    """

    def __init__(self, threads: int, most_waiting: int, each: int = 4) -> None:
        self.answers = WorkerPool("sulq-answers", threads, each, most_waiting)
        self.pages = WorkerPool("sulq-pages", max(1, threads // 4), max(1, each // 2), most_waiting)
        self.scheduler = Scheduler()
        self._keys: dict[tuple[str, ...], tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def alone(self, *name: str) -> AsyncIterator[None]:
        """Let one request at a time run under a name: a second one with the same key waits."""
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
        """Finish what has begun, then end the threads."""
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


def session_for(*roles: Role) -> Callable[..., Awaitable[TableSession]]:
    """Return a route's dependency: the session of the caller at the table in the address.

    The caller has one of these roles there. Whether the token reaches the table is found out when
    the session is used, after the body of the request was read and checked: until then a table
    that it does not reach is as one that is not there.
    """
    known = Depends(require(*roles))

    async def open_session(request: Request, table: str, caller: Caller = known) -> TableSession:
        session = service_of(request).session(caller, table)
        if session.is_reached and session.caller.role not in roles:
            raise not_for_this_role(str(session.caller.role))
        return session

    open_session.roles = frozenset(roles)  # type: ignore[attr-defined]
    return open_session


Anybody = Annotated[TableSession, Depends(session_for(*AT_TABLES))]
Asker = Annotated[TableSession, Depends(session_for(Role.OWNER, Role.ANALYST))]
Reader = Annotated[TableSession, Depends(session_for(Role.OWNER, Role.AUDITOR))]
Owner = Annotated[TableSession, Depends(session_for(Role.OWNER))]


async def run_free(request: Request, work: Callable[..., T], *given: object) -> T:
    """Run blocking work that reads no row, off the event loop."""
    workers: Workers = request.app.state.workers
    return await workers.pages.run(_who(request), work, *given)


async def run_reading(request: Request, work: Callable[..., T], *given: object) -> T:
    """Run blocking work that reads rows and ends at a public moment, off the event loop."""
    workers: Workers = request.app.state.workers
    return await workers.answers.run(_who(request), work, *given)


def name_of(caller: Caller) -> str:
    """Return the name under which the requests of a caller are counted."""
    return f"{caller.role} {caller.name}"


def _who(request: Request) -> str:
    caller: Caller | None = getattr(request.state, "caller", None)
    return "" if caller is None else name_of(caller)


async def run_charged(
    request: Request, session: TableSession, key: str, prepare: Callable[[], PreparedRequest]
) -> bytes:
    """Answer a question over HTTP that may cost something: once per key, on the table's clock."""
    digest = digest_of(request.method, request.url.path, await request.body())
    workers: Workers = request.app.state.workers
    return await charged(workers, session, key, digest, prepare)


async def charged(
    workers: Workers,
    session: TableSession,
    key: str,
    digest: bytes,
    prepare: Callable[[], PreparedRequest],
) -> bytes:
    """Answer a question that may cost something: once per key, on the table's clock.

    A request waits three times: for an earlier one under the same key (`alone`), for others of its
    caller (`place`), and, once its price is known, for a lane among the questions that read rows
    (`turn`). `digest` is of the request, for which alone the key stands. `prepare` may refuse;
    then, and whatever else happens, the reply leaves on a tick of the table's clock. How many
    ticks, and from when on they are counted, follows from public facts.
    """
    who = name_of(session.caller)
    arrived = begun = workers.scheduler.now()
    _ = session.reached  # not found: there is no clock either
    clock = session.clock
    request = KeyedRequest(session.service.replies, session, key, digest)
    ticks = 1

    def find_or_prepare() -> bytes | PreparedRequest:
        return request.find() or prepare()

    def answer(prepared: PreparedRequest) -> bytes:
        nonlocal begun
        begun = clock.start(begun)
        with clock.execution(prepared.digests), held(lambda: clock.hold(begun, ticks)):
            return request.answer(prepared)

    try:
        async with (
            workers.alone(session.table, session.account, key),  # as replies are kept
            workers.answers.place(who),
        ):
            found = await workers.answers.thread(find_or_prepare)
            if isinstance(found, bytes):
                return found
            ticks = clock.ticks(*found.bounds)
            begun = await workers.scheduler.turn(who, arrived, clock.load(*found.bounds))
            return await workers.answers.thread(answer, found)
    finally:
        await clock.leave(begun, ticks)
