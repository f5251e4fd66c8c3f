"""Least times of works done in turns, so that all of them see the same machine."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from functools import partial

Work = Callable[[], object]
Clock = Callable[[Work], float]


def user_cpu(work: Work, repeats: int = 1) -> float:
    """Seconds of user CPU of this process, all threads, for one of `repeats` calls."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    for _ in range(repeats):
        work()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_utime - before) / repeats


def wall(work: Work) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def least(works: Sequence[tuple[Clock, Work]], rounds: int, seconds: float) -> list[float]:
    """The least time of each work; at least two rounds, and no new one after so many seconds."""
    found = [[clock(work) for clock, work in works]]
    begun = time.perf_counter()
    while len(found) < 2 or (len(found) < rounds and time.perf_counter() - begun < seconds):
        found.append([clock(work) for clock, work in works])
    return [min(column) for column in zip(*found, strict=True)]


def repeated(repeats: int) -> Clock:
    return partial(user_cpu, repeats=repeats)
