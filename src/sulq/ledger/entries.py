"""What a caller of the ledger hands in and gets back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sulq.accounting.losses import Loss
from sulq.ledger.charges import Part
from sulq.ledger.receipts import Receipt


class Ask(NamedTuple):
    """A priced question: canonical text, its hash, the noise, and who pays what."""

    question: str
    digest: str
    noise: str
    parts: tuple[Part, ...]
    share: Loss
    analyst: str
    key: str | None
    release: bool = False  # under assumptions: the accounts pay by their caps, once
    reservation: int | None = None  # which pays for it
    sources: tuple[int, ...] = ()  # earlier answers that a draw is to be added to

    @property
    def name(self) -> tuple[str, str]:
        return self.digest, self.noise


class Priced(NamedTuple):
    """One question of a batch, and what it costs: as `Journal.charge` takes it."""

    question: str
    digest: str
    noise: str
    charges: Mapping[str, Loss]
    share: Loss
    sources: tuple[int, ...] = ()  # earlier answers that its draw is to be added to


@dataclass(frozen=True, slots=True)
class Entry:
    """A question that is paid for, as one analyst has it; answered or still to be computed."""

    ledger: str
    seq: int
    table: str
    analyst: str
    key: str | None
    question: str
    digest: str
    noise: str
    charged: Mapping[str, Loss]  # what this call charged; empty for a repeat
    share_charged: Loss
    answered: bool = False
    values: tuple[int, ...] | None = None
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """An analyst's share after a grant."""

    seq: int
    analyst: str
    granted: Loss
    spent: Loss
