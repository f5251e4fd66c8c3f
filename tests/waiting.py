"""Waiting in tests: for what comes, as long as it takes; and work that is counted, not timed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

LONGEST = 120.0
"""Seconds of real time after which a test gives up on what should come, on whatever machine."""


def come(true: Callable[[], object], what: str = "what should come did not") -> None:
    """Return once `true()`; fail only after so long that no busy machine is to blame."""
    until = time.monotonic() + LONGEST
    while not true():
        assert time.monotonic() < until, what
        time.sleep(0.005)


def calls(work: Callable[[], object]) -> int:
    """How many functions `work` calls in this thread: its length, on whatever machine."""
    found, before = [0], sys.getprofile()

    def see(frame: object, event: str, about: object) -> None:
        found[0] += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found[0]
