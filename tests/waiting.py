"""Waiting in tests: for what comes, as long as it takes; a time that has passed proves nothing."""

from __future__ import annotations

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
