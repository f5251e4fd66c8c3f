"""Turns: how many requests work at once. Who only waits for a public moment gives its turn up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Turns(Protocol):
    """What turns are taken from."""

    def acquire(self) -> object: ...
    def release(self) -> None: ...


class Turn:
    """One of a bounded number; given back once, at the latest at the end."""

    def __init__(self, turns: Turns) -> None:
        self._turns, self._has = turns, False

    def __enter__(self) -> Turn:
        self._turns.acquire()
        self._has = True
        return self

    def give_up(self) -> None:
        if self._has:
            self._has = False
            self._turns.release()

    def __exit__(self, *_: object) -> None:
        self.give_up()


_mine: ContextVar[Turn | None] = ContextVar("turn", default=None)


@contextmanager
def in_turn(turns: Turns) -> Iterator[None]:
    """Work of this thread, when it is its turn."""
    with Turn(turns) as turn:
        token = _mine.set(turn)
        try:
            yield
        finally:
            _mine.reset(token)


def give_up_turn() -> None:
    """This thread works no more, it waits."""
    turn = _mine.get()
    if turn is not None:
        turn.give_up()


class Executions:
    """One reading of rows at a time for each question: who asks the same meanwhile waits for it."""

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._under_way: set[str] = set()

    @contextmanager
    def alone(self, digests: frozenset[str]) -> Iterator[None]:
        with self._free:
            if self._under_way & digests:
                give_up_turn()
                self._free.wait_for(lambda: not self._under_way & digests)
            self._under_way |= digests
        try:
            yield
        finally:
            with self._free:
                self._under_way -= digests
                self._free.notify_all()
