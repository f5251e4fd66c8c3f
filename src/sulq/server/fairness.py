"""Fairness: a caller's own requests wait for each other, not everybody for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sulq.server.problems import Problem


@dataclass(slots=True)
class _Own:
    working: asyncio.Semaphore
    there: int = 0


class Fairness:
    """By caller, on one event loop: so many are worked on at once, so many may be there."""

    def __init__(self, working: int, most: int) -> None:
        self._working, self._most = working, most
        self._callers: dict[str, _Own] = {}

    @asynccontextmanager
    async def place(self, who: str) -> AsyncIterator[None]:
        own = self._callers.setdefault(who, _Own(asyncio.Semaphore(self._working)))
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


def _too_many() -> Problem:
    return Problem(
        429,
        "too_many",
        "too many requests of this caller at once",
        "wait 1 s and send it again with the same key",
        headers={"Retry-After": "1"},
    )
