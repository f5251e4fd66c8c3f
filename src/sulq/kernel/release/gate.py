"""When an answer may be stored: at once, or when who serves it says so.

The ledger is read by others, and its order is a clock: an answer that is stored as soon as it is
computed tells how long the rows took. A server holds it until a public moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_until: ContextVar[Callable[[], None] | None] = ContextVar("until", default=None)


@contextmanager
def held(until: Callable[[], None]) -> Iterator[None]:
    """What is asked in here, by this thread, is stored when `until` has returned."""
    token = _until.set(until)
    try:
        yield
    finally:
        _until.reset(token)


def hold() -> None:
    """Between the reading of rows and the storing of the answer."""
    until = _until.get()
    if until is not None:
        until()
