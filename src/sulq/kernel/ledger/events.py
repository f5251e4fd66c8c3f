"""The events of a chain, as JSON objects. Integers are decimal text; `table` names the table.

Besides these: `table` (header.py) publishes one, `repair` gives an unused table another header,
`amend` (changes.py) changes what is promised, and `outside` (changes.py) books what was released
elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger.accounts import AccountCharge, loss_to_json, to_json
from sulq.kernel.ledger.signing import Receipt
from sulq.kernel.ledger.stores.store import FORMAT


class ChargeRequest(NamedTuple):
    """A priced question: canonical text, its hash, the noise, and who pays what."""

    question: str
    digest: str
    noise: str
    parts: tuple[AccountCharge, ...]
    share: Loss
    analyst: str
    key: str | None
    release: bool = False  # under assumptions: the accounts pay by their caps, once
    reservation: int | None = None  # which pays for it
    sources: tuple[int, ...] = ()  # earlier answers that a draw is to be added to

    @property
    def name(self) -> tuple[str, str]:
        return self.digest, self.noise


class PricedRequest(NamedTuple):
    """One question of a batch, and what it costs: as `Journal.charge` takes it."""

    question: str
    digest: str
    noise: str
    charges: Mapping[str, Loss]
    share: Loss
    sources: tuple[int, ...] = ()  # earlier answers that its draw is to be added to


@dataclass(frozen=True, slots=True)
class Charge:
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


# What a caller of the ledger hands in and gets back.


Body = dict[str, Any]


def ledger_made(ledger: str, public_key: str) -> Body:
    """The first event."""
    return {"kind": "ledger", "format": FORMAT, "ledger": ledger, "public_key": public_key}


def charged(table: str, ask: ChargeRequest) -> Body:
    """Paid for, and executing from here on; a release pays by what later answers may cost."""
    return {
        "kind": "release" if ask.release else "charge",
        "table": table,
        "analyst": ask.analyst,
        "key": ask.key,
        "question": ask.question,
        "digest": ask.digest,
        "noise": ask.noise,
        "charges": to_json(ask.parts),
        "share": loss_to_json(ask.share),
        **_paid_from(ask),
    }


def _paid_from(ask: ChargeRequest) -> Body:
    """Named only where there is one: what older versions wrote stays as it is."""
    return {} if ask.reservation is None else {"reservation": ask.reservation}


def declared(table: str, menu: Sequence[Sequence[str]], divisor: int, terms: str) -> Body:
    """What may be released under assumptions, fixed before anything was answered. S1.14"""
    return {
        "kind": "declare",
        "table": table,
        "menu": [list(path) for path in menu],
        "divisor": str(divisor),
        "terms": terms,
    }


def answered(table: str, entry: int, values: str) -> Body:
    """`values` is the hash of the noisy integers, which are stored beside."""
    return {"kind": "answer", "table": table, "entry": entry, "values": values}


def repeated(table: str, entry: int, ask: ChargeRequest, share: Loss) -> Body:
    """An analyst got what was charged before; only the analyst's own share pays."""
    paid = loss_to_json(share)
    who: Body = {"analyst": ask.analyst, "key": ask.key, **_paid_from(ask)}
    return {"kind": "repeat", "table": table, "entry": entry, "share": paid, **who}


def retried(table: str, entry: int, ask: ChargeRequest) -> Body:
    """Another attempt at a charge that was never answered."""
    who: Body = {"analyst": ask.analyst, "key": ask.key}
    return {"kind": "retry", "table": table, "entry": entry, **who}


def planned(table: str, analyst: str, key: str, asks: Sequence[ChargeRequest]) -> Body:
    """An attempt at a whole batch under one key; its charges follow, or stand already."""
    named = [[ask.digest, ask.noise, list(ask.sources)] for ask in asks]
    return {"kind": "plan", "table": table, "analyst": analyst, "key": key, "questions": named}


def reserved(table: str, analyst: str, amount: Loss, replica: int | None = None) -> Body:
    """Set aside until a `return` names this event; `replica`: by which of several."""
    paid = loss_to_json(amount)
    whose: Body = {} if replica is None else {"replica": replica}
    return {"kind": "reserve", "table": table, "analyst": analyst, "amount": paid, **whose}


def returned(table: str, reservation: int, *, void: bool) -> Body:
    """A reservation has ended; `void`: it was found open when the ledger was opened."""
    return {"kind": "return", "table": table, "reservation": reservation, "void": void}


def granted(table: str, analyst: str, credits: Loss) -> Body:
    return {"kind": "grant", "table": table, "analyst": analyst, "credits": loss_to_json(credits)}


def revoked(table: str, analyst: str, reason: str) -> Body:
    """What is unspent of an analyst's grants goes back; the next one ends this."""
    return {"kind": "revoke", "table": table, "analyst": analyst, "reason": reason}


def closed(table: str, reason: str) -> Body:
    """The last event of a table."""
    return {"kind": "close", "table": table, "reason": reason}


def withdrawn(table: str, reason: str) -> Body:
    """The last event of a table that was never used; its name and data are free again."""
    return {"kind": "withdraw", "table": table, "reason": reason}


def recovered(
    public_key: str,
    *,
    burn: bool,
    genuine: bool,
    lost: Sequence[Mapping[str, Any]],
    told: Mapping[int, str],
) -> Body:
    """`lost` are proved prices of events that are gone, `told` what receipts say of their numbers;
    `burn` counts everything as spent; not `genuine`: its key did not seal the chain before."""
    return {
        "kind": "recover",
        "public_key": public_key,
        "burn": burn,
        "genuine": genuine,
        "lost": list(lost),
        "told": {str(number): claim for number, claim in told.items()},
    }
