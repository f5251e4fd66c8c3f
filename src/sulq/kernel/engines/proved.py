"""What leaves a driver: no word of its own, and no number that its proof rules out.

A driver's errors may quote rows, or the address with its password. So nothing of them is kept:
`silenced` is the only place that catches them, and our own words follow. docs/proofs/engines.md

What came back is held against what was proved: whole numbers, each within rows times its range. A
statement whose integers were proved cannot break these rules on any table, so whether it does
tells nothing of the rows. If one does, the emitter or the engine is wrong, and so may be every
other sum: nothing leaves, the charge stands, and the table is closed until it is opened again. The
first to meet it hears what any failure of the machine says, everybody after it the one constant
sentence below. docs/proofs/engines.md, claim 10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TypeVar

from sulq.errors import Refused

CLOSED = (
    "this table is closed: the engine gave a number that its proof rules out, so none is trusted;"
    " its owner should report it, and may open the table again. Nothing was charged"
)


T = TypeVar("T")


def silenced(work: Callable[[], T], said: Callable[[Exception], T | Exception]) -> T:
    """What `work` gives. If it fails: what is `said` of that, given back or, an error, raised.

    It is raised when the driver's error is let go, so no context, cause or frame leads there.
    """
    caught: list[Exception] = []
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - the one place: its own words may quote rows
        caught.append(error)
    found = said(caught.pop())
    if isinstance(found, Exception):
        raise found
    return found


class Impossible(Exception):
    """A number that no table can give. It carries nothing, and stays within the engine."""


class Guard:
    """Of one open table: whether everything that came back so far can be."""

    def __init__(self) -> None:
        self._closed = False

    def saw(self, error: Exception) -> None:
        """Whatever went wrong while rows were read."""
        if isinstance(error, Impossible):
            self._closed = True

    def check(self) -> None:
        """Before a charge: `Refused` if the table was closed."""
        if self._closed:
            raise Refused(CLOSED)


def whole(value: object) -> int:
    """An integer, or a decimal that is one; a float never, whatever it holds."""
    if type(value) is int:
        return value
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    raise Impossible


def within(value: object, least: int, most: int) -> int:
    """An integer from least to most."""
    found = whole(value)
    if not least <= found <= most:
        raise Impossible
    return found


def all_within(values: Sequence[int], largest: int) -> list[int]:
    """Integers of at most this size."""
    if values and not -largest <= min(values) <= max(values) <= largest:
        raise Impossible
    return list(values)
