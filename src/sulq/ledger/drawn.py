"""Stored answers as a derivation reads them: nothing is signed, and nothing is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sulq.ledger import answers
from sulq.ledger.catalogue import Record, spacious
from sulq.ledger.journal import PAGE, Journal
from sulq.ledger.store import Row

ASKED = ("charge", "release", "repeat")


class Handed(NamedTuple):
    """A charge or repeat: who has which record by it."""

    seq: int
    analyst: str
    question: str
    record: Record


class Drawn(NamedTuple):
    """A stored answer."""

    analyst: str  # who paid first
    question: str
    record: Record
    values: tuple[int, ...]


def handed(ledger: Journal, after: int, until: int) -> Iterator[Handed]:
    """The table's charges and repeats with these numbers, oldest first."""

    def page() -> list[tuple[int, Handed | None]]:
        rows = ledger._book.page(after, min(PAGE, until - after))
        return [(row.seq, _handed(ledger, row)) for row in rows if row.seq <= until]

    while after < until and (found := ledger._book.read(page)):
        yield from (one for _, one in found if one is not None)
        after = found[-1][0]


def _handed(ledger: Journal, row: Row) -> Handed | None:
    body = json.loads(row.body)
    if body["kind"] not in ASKED or body["table"] != ledger.header.name:
        return None
    record = ledger._table.at(row.seq)
    asked = body if record.seq == row.seq else _body(ledger, record.seq)
    return Handed(row.seq, body["analyst"], asked["question"], record)


def drawn(ledger: Journal, numbers: Sequence[int]) -> list[Drawn]:
    """The answers that were charged first with these numbers."""

    def work() -> list[Drawn]:
        return [_drawn(ledger, number) for number in numbers]

    return ledger._book.read(work) if numbers else []


def _drawn(ledger: Journal, number: int) -> Drawn:
    record, body = ledger._table.at(number), _body(ledger, number)
    noisy = None if record.answer is None else ledger._book.row(record.answer).noisy
    return Drawn(body["analyst"], body["question"], record, answers.from_text(noisy or ""))


def _body(ledger: Journal, seq: int) -> Any:
    return json.loads(ledger._book.row(seq).body)


def record_of(ledger: Journal, digest: str, noise: str) -> Record | None:
    """What a question finds at this noise; it may not be durable yet."""
    with spacious():
        return ledger._table.catalogue.named((digest, noise))


def record_at(ledger: Journal, seq: int) -> Record | None:
    """As `record_of`, by the number of a charge or repeat."""
    with spacious():
        return ledger._table.catalogue.at(seq)


def numbers_of(ledger: Journal, digest: str) -> list[int]:
    """Of all charges for a question, oldest first."""
    with spacious():
        return ledger._table.catalogue.numbers(digest)
