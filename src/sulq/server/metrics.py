"""Counts of requests, for operators: by route and class of status. No data, no engine time."""

from __future__ import annotations

import threading
import time
from collections import Counter


class Metrics:
    """Thread-safe counts since the start."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock, self._start = threading.Lock(), time.monotonic()

    def count(self, route: str, status: int) -> None:
        with self._lock:
            self._counts[route, f"{status // 100}xx"] += 1

    def text(self) -> str:
        """In the Prometheus text format."""
        with self._lock:
            counts = sorted(self._counts.items())
        uptime = int(time.monotonic() - self._start)
        return "\n".join(
            [
                "# TYPE sulq_requests_total counter",
                *(
                    f'sulq_requests_total{{route="{route}",status="{status}"}} {number}'
                    for (route, status), number in counts
                ),
                "# TYPE sulq_uptime_seconds gauge",
                f"sulq_uptime_seconds {uptime}",
                "",
            ]
        )
