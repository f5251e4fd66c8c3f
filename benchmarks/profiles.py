"""Profiles of the five hottest paths: `python -m benchmarks profiles` writes docs/profiles.md.

cProfile, own time of functions; what an engine does in native code shows as one call. A profiler
makes Python look slower than it is: the times without it are beside the tables.
"""

from __future__ import annotations

import asyncio
import cProfile
import os
import pstats
import tempfile
import time
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import httpx

from benchmarks.cases import SCHEMA, people
from sulq.answers.statistics import count
from sulq.database import Database
from sulq.kernel.query.expressions import col, lit
from sulq.kernel.query.sum_query import SumQuery, group, outer
from sulq.kernel.query.vectors import columns
from sulq.kernel.schema.promise import Promise
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Role
from sulq.server.executor import WorkerPool
from sulq.server.limits import Settings
from sulq.server.middleware import Log
from sulq.server.service.catalog import Tables
from sulq.wire import question_json

TOP = 12
Line = dict[str, Any]


def measure(folder: Path, full: bool, rows: int = 1_000_000) -> list[Line]:
    path = people(folder, rows)
    before = os.environ.get("SULQ_STATE")
    with tempfile.TemporaryDirectory() as home:
        os.environ["SULQ_STATE"] = f"{home}/state"
        try:
            return [line | {"rows": rows} for line in _profiles(path, Path(home))]
        finally:
            os.environ.pop("SULQ_STATE")
            if before is not None:
                os.environ["SULQ_STATE"] = before


def _profiles(path: Path, home: Path) -> Iterator[Line]:
    promise = Promise(1, "1e-6", queries=10**6)
    number = iter(range(10**6))
    with Database.open(path, SCHEMA, promise, home / "ledger", publish=True) as db:
        age = col("age")
        grid = columns([f"x{k}" for k in range(10)], centre=0.5)
        asks: dict[str, tuple[int, Callable[[], object]]] = {
            "warm count": (50, lambda: db.ask(count(where=age >= 20 + next(number) / 100))),
            "group-by": (
                10,
                lambda: db.ask(
                    SumQuery(
                        (lit(1), col("income")),
                        rows=age >= 20 + next(number) / 100,
                        groups=(group("shop"),),
                    )
                ),
            ),
            "Gram matrix": (
                5,
                lambda: db.ask(outer(grid, grid, rows=age >= 20 + next(number) / 100)),
            ),
        }
        for name, (times, work) in asks.items():
            yield _profiled(name, times, work)
        yield _served(db)
    yield _profiled("opening and publishing", 5, lambda: _published(path, home, next(number)))


def _published(path: Path, home: Path, number: int) -> None:
    os.environ["SULQ_STATE"] = str(home / f"state{number}")
    Database.open(
        path, SCHEMA, Promise(1, "1e-6", 100), home / f"ledger{number}", publish=True
    ).close()


def _served(db: Database) -> Line:
    """A question over HTTP without the network: the application is called in this thread."""
    access = Access.open()
    token, place = access.lend("owner", Role.OWNER), iter(range(10**6))
    app = create_app(
        Tables({"people": db}), access, settings=Settings(pacing=False), log=Log(StringIO())
    )
    loop = asyncio.new_event_loop()
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")

    def ask() -> None:
        number = next(place)
        question = question_json(count(where=col("age") >= 60 + number / 1000))
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": f"profile-{number}"}
        asked = client.post("/v1/tables/people/ask", json={"question": question}, headers=headers)
        reply = loop.run_until_complete(asked)
        if reply.status_code != 200:
            raise SystemExit(reply.text)

    async def here(self: WorkerPool, work: Callable[..., Any], *given: object) -> Any:
        return work(*given)

    kept, WorkerPool.thread = WorkerPool.thread, here  # type: ignore[method-assign, assignment]
    try:
        return _profiled("a served ask", 50, ask)
    finally:
        WorkerPool.thread = kept  # type: ignore[method-assign]
        loop.run_until_complete(client.aclose())
        loop.close()
        access.close()


def _profiled(name: str, times: int, work: Callable[[], object]) -> Line:
    """Milliseconds of a call without the profiler, and the functions that took most with it."""
    work()
    begun, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        work()
    spent, used = time.perf_counter() - begun, time.process_time() - cpu
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(times):
        work()
    profile.disable()
    stats: Any = pstats.Stats(profile)
    whole = sum(entry[2] for entry in stats.stats.values())
    top = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:TOP]
    return {
        "path": name,
        "ms": 1000 * spent / times,
        "cpu_ms": 1000 * used / times,
        "top": [
            {"where": _where(*place), "calls": calls / times, "share": own / whole}
            for place, (_, calls, own, *_) in top
        ],
    }


def _where(file: str, line: int, function: str) -> str:
    """A function of ours by file, of a library by package, a built-in by name."""
    path = Path(file)
    for anchor in ("sulq", "site-packages"):
        if anchor in path.parts:
            at = len(path.parts) - 1 - path.parts[::-1].index(anchor)
            kept = path.parts[at + 1 :]
            return f"{'/'.join(kept)} {function}"
    return function if file == "~" else f"{path.name} {function}"
