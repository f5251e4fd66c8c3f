"""When questions begin: by their public costs and by who came before, never by how long rows took.

A question that began when another has ended would carry that one's running time, and one that
shares the processor with too many would miss its tick. Proof: docs/proofs/timing.md.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

from sulq.server.departures import Departures

LANES = 2
"""Questions whose rows are read at once: with so many a tick has room, by `MARGIN` and `LEAD`."""


@dataclass(slots=True)
class _Own:
    order: asyncio.Lock = field(default_factory=asyncio.Lock)
    free: float = 0.0


class Timetable:
    """Lanes, each taken for a public time; a caller has one at a time. On one event loop."""

    def __init__(self, departures: Departures | None = None) -> None:
        self._lanes, self._departures = [0.0] * LANES, departures or Departures()
        self._callers: defaultdict[str, _Own] = defaultdict(_Own)

    def now(self) -> float:
        """The moment at which a request has arrived, on the timetable's clock."""
        return self._departures.now()

    async def turn(self, who: str, arrived: float, load: float) -> float:
        """Return when a question begins: the moment, on the timetable's clock."""
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
        """A lane for so many seconds; the one that has been idle for the shortest time."""
        idle = [free for free in self._lanes if free <= since]
        lane = self._lanes.index(max(idle) if idle else min(self._lanes))
        begun = max(since, self._lanes[lane])
        self._lanes[lane] = begun + load
        return begun
