"""Structured logs: one JSON object a line. When, which route, how it ended, who; nothing else.

No value, no question, no token, no path as it was typed: a log must not become a second answer.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import traceback
from contextlib import suppress
from typing import Any, TextIO


class Log:
    """Lines to a stream; a stream that fails stops nothing."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream, self._lock = stream, threading.Lock()

    def write(self, event: str, **facts: Any) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": now, "event": event, **facts})
        with self._lock, suppress(OSError, ValueError):
            print(line, file=self._stream or sys.stderr, flush=True)


def place_of(error: BaseException) -> str:
    """Where something unforeseen happened: its class and line. Its message may quote anything."""
    frames = traceback.extract_tb(error.__traceback__)
    last = next(
        (f for f in reversed(frames) if "sulq" in f.filename), frames[-1] if frames else None
    )
    where = "" if last is None else f" at {last.filename.rpartition('sulq/')[2]}:{last.lineno}"
    return type(error).__name__ + where
