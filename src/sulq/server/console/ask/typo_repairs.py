"""Slips of the pen in a statement, with what was perhaps meant, as buttons. No row is read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sulq.errors import SulqError
from sulq.server.console.ask.request import PricedStatement
from sulq.sql.plan.typos import revalued

MOST = 3


@dataclass(frozen=True, slots=True)
class Respelling:
    """What was perhaps meant: the word, and the statement with it."""

    word: str
    sql: str


PIECE = re.compile(r"'(?:[^']|'')*'|\w+")


def repair_of(sql: str, meant: str) -> Respelling:
    """What differs between a statement and the one that was perhaps meant."""
    pairs = zip(PIECE.findall(sql), PIECE.findall(meant), strict=False)
    return Respelling(next((new for old, new in pairs if old != new), "this"), meant)


def value_repairs(found: PricedStatement) -> tuple[Respelling, ...]:
    """Declared values near those of the text that nobody can have, if the price says so too."""
    made = []
    for word, meant in revalued(found.wish.text, found.oracle.schema):
        try:
            fewer = len(found.price(meant, found.credits).notes) < len(found.quote.notes)
        except SulqError:
            continue
        if fewer:
            made.append(Respelling(word, meant))
    return tuple(made[:MOST])
