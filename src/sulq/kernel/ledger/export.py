"""The chain as a file: one event to a line, for whoever checks it without data and ledger.

A redacted file leaves out noisy values, and what others asked: such an event keeps its number, its
hash and its seal. The link over it then rests on the seal: see docs/guides/audit.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sulq.errors import Refused
from sulq.kernel.ledger.events import (
    MALFORMED,
    AmendEvent,
    AnswerEvent,
    ChargeEvent,
    CloseEvent,
    DeclareEvent,
    Event,
    GrantEvent,
    LedgerEvent,
    OutsideEvent,
    PlanEvent,
    PublishEvent,
    RecoverEvent,
    RepairEvent,
    RepeatEvent,
    ReserveEvent,
    RetryEvent,
    ReturnEvent,
    RevokeEvent,
    VersionEvent,
    WithdrawEvent,
    event_from,
    read_event,
)
from sulq.kernel.ledger.signing import (
    START,
    ChainHead,
    Receipt,
    canonical,
    check_signature,
    is_sealed,
    link,
    read_receipt,
)
from sulq.kernel.ledger.state import ChainState, unverified
from sulq.kernel.ledger.stores.store import Row

FORMAT = "sulq chain 1"
OPEN = (
    *(LedgerEvent, PublishEvent, DeclareEvent, ReturnEvent, AmendEvent, VersionEvent),
    *(OutsideEvent, CloseEvent, RecoverEvent, RepairEvent, WithdrawEvent),
)
"""Events that name no question that was asked; a recovery names the keys that signed since."""

GENUINE = "genuine"
NO_RECEIPT = "not a receipt"
NOT_SIGNED = "not signed by this table"
NOT_HERE = "signed, but not in this chain"
LATER = "signed, but later than this head"

REMEDIES = {
    GENUINE: "",
    NO_RECEIPT: "hand in the whole line as it was given out, unchanged",
    NOT_SIGNED: "it was changed, or another ledger made it: ask the owner for the public key and"
    " the receipt anew",
    NOT_HERE: "the chain was rolled back, changed or is another: keep this receipt, it is the"
    " proof, and ask the owner; `sulq recover` counts it as spent",
    LATER: "ask the owner for a newer head and chain",
}


def export(
    rows: Sequence[Row],
    *,
    table: str,
    redact: bool,
    analyst: str | None,
    everybody: bool = False,
) -> Iterator[str]:
    """The lines of a file; `analyst` sees the own events even if others' are left out, and an
    auditor `everybody`'s of the table, without noisy values."""
    events = [read_event(row.body) for row in rows]
    mine = _mine(rows, events, table, analyst, everybody)
    first = events[0]
    assert isinstance(first, LedgerEvent)  # noqa: S101
    yield canonical({"format": FORMAT, "ledger": first.ledger, "redacted": redact})
    for row, event in zip(rows, events, strict=True):
        line: dict[str, Any] = {"seq": row.seq, "hash": row.hash.hex()}
        own = event.table in (None, table)
        shown = own and (isinstance(event, OPEN) or row.seq in mine)
        if shown or not redact:
            line["body"] = row.body
        if row.noisy is not None and not redact:
            line["noisy"] = row.noisy
        if row.seal is not None:
            line["seal"] = row.seal.hex()
        yield canonical(line)


def _mine(
    rows: Sequence[Row],
    events: Sequence[Event],
    table: str,
    analyst: str | None,
    everybody: bool,
) -> set[int]:
    """The events of one analyst or of everybody, with the answers they got."""
    if analyst is None and not everybody:
        return set()
    named = [
        (row.seq, event)
        for row, event in zip(rows, events, strict=True)
        if (everybody or _analyst(event) == analyst) and event.table == table
    ]
    entries = {seq for seq, _ in named} | {
        event.entry for _, event in named if isinstance(event, RepeatEvent)
    }
    answers = {
        row.seq
        for row, event in zip(rows, events, strict=True)
        if isinstance(event, AnswerEvent) and event.entry in entries
    }
    return {seq for seq, _ in named} | answers


def _analyst(event: Event) -> str | None:
    """Return whose event it is; None for one of the table or of the ledger."""
    match event:
        case ChargeEvent() | RepeatEvent() | RetryEvent() | PlanEvent():
            return event.analyst
        case ReserveEvent() | GrantEvent() | RevokeEvent():
            return event.analyst
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain whose links, seals and last signature verified."""

    ledger: str
    public_keys: tuple[str, ...]
    hashes: dict[int, bytes]
    closed: int  # events of which only number and hash are shown
    linked_from: int  # every event after this number was computed again

    @property
    def last(self) -> int:
        return max(self.hashes)

    def place_of(self, head: str) -> int | None:
        """The number of the event with that hash."""
        wanted = head.strip().lower()
        return next((seq for seq, found in self.hashes.items() if found.hex() == wanted), None)

    def judge(self, line: str, upto: int | None = None) -> tuple[str, Receipt | None]:
        """What a receipt is worth by this chain, read as far as event `upto`."""
        said, receipt = judge_signature(line, self.public_keys)
        if receipt is None or said != GENUINE:
            return said, receipt
        seq = receipt.body["answer"]
        if upto is not None and seq > upto:
            return LATER, receipt
        known = self.hashes.get(seq, b"").hex() == receipt.body["answer_link"]
        return (GENUINE if known else NOT_HERE), receipt


def judge_signature(line: str, public_keys: Sequence[str]) -> tuple[str, Receipt | None]:
    """What a receipt is worth by its signature alone."""
    try:
        receipt = read_receipt(line)
    except Refused:
        return NO_RECEIPT, None
    try:
        check_signature(receipt, public_keys)
    except Refused:
        return NOT_SIGNED, receipt
    return GENUINE, receipt


def read_chain(lines: Iterable[str], public_key: str | None = None) -> Chain:
    """Check every link that can be checked, every seal, and who signed the last one."""
    rows, bodies = _parsed(lines)
    events = [None if body is None else _event(seq, body) for seq, body in bodies]
    ledger, keys, hashes, previous, linked_from = "", list[str](), {}, START, 0
    for place, (row, event) in enumerate(zip(rows, events, strict=True)):
        follows = row.seq - (rows[place - 1].seq if place else 0)
        if follows < 1 or (follows > 1 and not isinstance(event, RecoverEvent)):
            raise unverified(row.seq)
        if event is None:
            linked_from = row.seq
        elif row.hash != link(previous, row.body):
            raise unverified(row.seq)
        match event:
            case LedgerEvent():
                ledger = ledger or event.ledger
                keys.append(event.public_key)
            case RecoverEvent():
                keys = [*(keys if event.genuine else ()), event.public_key]
        if row.seal is not None and keys and not _sealed(row, ledger, keys):
            raise unverified(row.seq)
        hashes[row.seq] = previous = row.hash
    if not ledger or not _sealed(rows[-1], ledger, keys):
        raise Refused("the chain's last event is not signed by its ledger: the file was cut short")
    if public_key is not None:
        keys = [public_key.lower()]  # what the chain itself says of keys proves nothing
        if not _sealed(rows[-1], ledger, keys):
            raise Refused(
                "the chain's last event was signed with another key than the one given: it is"
                " another ledger's, somebody added to it, or the key was replaced at a recovery;"
                " ask the owner"
            )
    closed = sum(event is None for event in events)
    if not closed and not any(_stripped(*found) for found in zip(rows, events, strict=True)):
        ChainState().take(rows)  # prices and caps too: nothing was overspent
    return Chain(ledger, tuple(keys), hashes, closed, linked_from)


def _parsed(lines: Iterable[str]) -> tuple[list[Row], list[tuple[int, dict[str, Any] | None]]]:
    rows, bodies = [], []
    try:
        head, *found = (json.loads(line) for line in lines if line.strip())
        if head["format"] != FORMAT or not found:
            raise ValueError("another format")
        for line in found:
            body, seal = line.get("body"), line.get("seal")
            if not isinstance(line["seq"], int):
                raise TypeError("no number")
            row = Row(
                line["seq"],
                bytes.fromhex(line["hash"]),
                body or "",
                line.get("noisy"),
                None if seal is None else bytes.fromhex(seal),
            )
            rows.append(row)
            bodies.append((row.seq, None if body is None else dict(json.loads(body))))
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise Refused(
            f"this is not a chain of format {FORMAT!r}; `sulq ledger --export FILE` makes one"
        ) from None
    return rows, bodies


def _event(seq: int, body: dict[str, Any]) -> Event:
    try:
        return event_from(body)
    except MALFORMED:
        raise unverified(seq) from None


def _sealed(row: Row, ledger: str, keys: Sequence[str]) -> bool:
    return is_sealed(row.seal, ledger, ChainHead(row.seq, row.hash), keys)


def _stripped(row: Row, event: Event | None) -> bool:
    return isinstance(event, AnswerEvent) and row.noisy is None
