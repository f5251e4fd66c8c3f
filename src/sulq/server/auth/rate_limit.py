"""How often a token may ask: a bucket for each, filled by the clock. Public facts only."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sulq.errors import InvalidQuery
from sulq.server.errors import HttpProblem

PERIODS = {"s": 1, "min": 60, "h": 3_600, "day": 86_400}
LARGEST = 1_000_000
_SPELLED = re.compile(r"(\d{1,7})\s*/\s*(s|min|h|day)")


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket: so many requests a period, of which all may come at once after a rest."""

    requests: int
    period: str

    def __post_init__(self) -> None:
        if self.period not in PERIODS or not 1 <= self.requests <= LARGEST:
            raise InvalidQuery(f"a rate is 1 to {LARGEST:,} requests per {'|'.join(PERIODS)}")

    @classmethod
    def of(cls, text: str) -> Rate:
        """Read "60/min"."""
        found = _SPELLED.fullmatch(text.strip()) if isinstance(text, str) else None
        if found is None:
            raise InvalidQuery(f"got the rate {text!r:.40}, wanted for instance 60/min, 5/s, 500/h")
        return cls(int(found[1]), found[2])

    @property
    def per_second(self) -> float:
        return self.requests / PERIODS[self.period]

    def __str__(self) -> str:
        return f"{self.requests}/{self.period}"


class Buckets:
    """What each token has left of its rate just now. Thread-safe; in memory of one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str, rate: Rate) -> float:
        """Take one request and return 0, or return the seconds until one is free."""
        now = self._clock()
        with self._lock:
            left, since = self._left.get(name, (float(rate.requests), now))
            left = min(float(rate.requests), left + (now - since) * rate.per_second)
            enough = left >= 1
            self._left[name] = (left - enough, now)
            return 0.0 if enough else (1 - left) / rate.per_second


def too_often(seconds: float, rate: Rate) -> HttpProblem:
    wait = max(1, math.ceil(seconds))
    return HttpProblem(
        429,
        "too_many",
        f"this token may send {rate.requests:,} requests per {rate.period}",
        f"wait {wait} s and send it again with the same key",
        headers={"Retry-After": str(wait)},
    )
