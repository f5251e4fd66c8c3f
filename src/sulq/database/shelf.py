"""Stored answers for derivations, read from the ledger each time they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sulq.accounting.pricing import laws_of
from sulq.derivation.store import Stored
from sulq.ledger.drawn import drawn, numbers_of
from sulq.ledger.journal import Journal


@dataclass(frozen=True, slots=True)
class Shelf:
    """One table's."""

    ledger: Journal

    def read(self, numbers: Sequence[int]) -> list[Stored]:
        return [
            Stored(
                it.record.seq, it.question, it.record.digest, laws_of(it.record.noise), it.values
            )
            for it in drawn(self.ledger, numbers)
        ]

    def draws(self, digest: str) -> list[int]:
        return numbers_of(self.ledger, digest)
