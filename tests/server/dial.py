"""Time for tests: it stands still unless somebody waits, and the machine's speed is not in it."""

from __future__ import annotations

import asyncio
import threading

from tests.waiting import LONGEST

from sulq.server.scheduling import PreciseTimer


class Dial(PreciseTimer):
    """Who waits is there at once: waiting moves the hand to the moment that was waited for."""

    def __init__(self, moment: float = 1_000.0) -> None:
        super().__init__()
        self.moment = moment
        self._moving = threading.Lock()

    def now(self) -> float:
        return self.moment

    def take(self, seconds: float) -> None:
        """Work that takes so long."""
        with self._moving:
            self.moment += seconds

    def block(self, moment: float) -> None:
        with self._moving:
            self.moment = max(self.moment, moment)

    async def until(self, moment: float) -> None:
        self.block(moment)


class Stage(Dial):
    """A dial that the test moves: who waits waits until the hand has come there."""

    def __init__(self) -> None:
        super().__init__()
        self._due: list[tuple[float, threading.Event]] = []

    @property
    def waiting(self) -> int:
        """How many are waiting now."""
        with self._moving:
            return len(self._due)

    def move(self, moment: float) -> None:
        """The hand goes to `moment`, and whoever has waited for it or longer goes on."""
        with self._moving:
            self.moment = max(self.moment, moment)
            gone = [one for one in self._due if one[0] <= self.moment]
            self._due = [one for one in self._due if one[0] > self.moment]
        for _, come in gone:
            come.set()

    def step(self) -> None:
        """On to the moment of who waits for the earliest."""
        with self._moving:
            soonest = min(moment for moment, _ in self._due)
        self.move(soonest)

    def block(self, moment: float) -> None:
        come = threading.Event()
        with self._moving:
            if moment <= self.moment:
                return
            self._due.append((moment, come))
        assert come.wait(LONGEST), "the hand was not moved"

    async def until(self, moment: float) -> None:
        if moment > self.moment:
            await asyncio.get_running_loop().run_in_executor(None, self.block, moment)
