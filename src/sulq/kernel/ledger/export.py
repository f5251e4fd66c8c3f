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
from sulq.kernel.ledger.chain import START, canonical, link
from sulq.kernel.ledger.signing import ChainHead, Receipt, check_signature, is_sealed, read_receipt
from sulq.kernel.ledger.state import ChainState, unverified
from sulq.kernel.ledger.stores.store import Row

FORMAT = "sulq chain 1"
OPEN = {
    *("ledger", "table", "declare", "return", "amend", "version", "outside", "close", "recover"),
    *("repair", "withdraw"),
}
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
    bodies = [json.loads(row.body) for row in rows]
    mine = _mine(rows, bodies, table, analyst, everybody)
    head = {"format": FORMAT, "ledger": bodies[0]["ledger"], "redacted": redact}
    yield canonical(head)
    for row, body in zip(rows, bodies, strict=True):
        line: dict[str, Any] = {"seq": row.seq, "hash": row.hash.hex()}
        own = body.get("table", table) == table
        shown = own and (body["kind"] in OPEN or row.seq in mine)
        if shown or not redact:
            line["body"] = row.body
        if row.noisy is not None and not redact:
            line["noisy"] = row.noisy
        if row.seal is not None:
            line["seal"] = row.seal.hex()
        yield canonical(line)


def _mine(
    rows: Sequence[Row],
    bodies: Sequence[dict[str, Any]],
    table: str,
    analyst: str | None,
    everybody: bool,
) -> set[int]:
    """The events of one analyst or of everybody, with the answers they got."""
    if analyst is None and not everybody:
        return set()
    named = [
        (row.seq, body)
        for row, body in zip(rows, bodies, strict=True)
        if (everybody or body.get("analyst") == analyst) and body.get("table") == table
    ]
    entries = {seq for seq, _ in named} | {
        body["entry"] for _, body in named if body["kind"] == "repeat"
    }
    answers = {
        row.seq
        for row, body in zip(rows, bodies, strict=True)
        if body["kind"] == "answer" and body["entry"] in entries
    }
    return {seq for seq, _ in named} | answers


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
    ledger, keys, hashes, previous, linked_from = "", list[str](), {}, START, 0
    for place, (row, body) in enumerate(zip(rows, bodies, strict=True)):
        follows = row.seq - (rows[place - 1].seq if place else 0)
        if follows < 1 or (follows > 1 and not (body and body["kind"] == "recover")):
            raise unverified(row.seq)
        if body is None:
            linked_from = row.seq
        elif row.hash != link(previous, row.body):
            raise unverified(row.seq)
        if body is not None and body["kind"] in ("ledger", "recover"):
            ledger = ledger or body["ledger"]
            keys = keys if body.get("genuine", True) else []
            keys.append(body["public_key"])
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
    closed = sum(body is None for body in bodies)
    if not closed and not any(_stripped(row, body) for row, body in zip(rows, bodies, strict=True)):
        ChainState().take(rows)  # prices and caps too: nothing was overspent
    return Chain(ledger, tuple(keys), hashes, closed, linked_from)


def _parsed(lines: Iterable[str]) -> tuple[list[Row], list[dict[str, Any] | None]]:
    rows, bodies = [], []
    try:
        head, *events = (json.loads(line) for line in lines if line.strip())
        if head["format"] != FORMAT or not events:
            raise ValueError("another format")
        for event in events:
            body, seal = event.get("body"), event.get("seal")
            if not isinstance(event["seq"], int):
                raise TypeError("no number")
            row = Row(
                event["seq"],
                bytes.fromhex(event["hash"]),
                body or "",
                event.get("noisy"),
                None if seal is None else bytes.fromhex(seal),
            )
            rows.append(row)
            bodies.append(None if body is None else dict(json.loads(body)))
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise Refused(
            f"this is not a chain of format {FORMAT!r}; `sulq ledger --export FILE` makes one"
        ) from None
    return rows, bodies


def _sealed(row: Row, ledger: str, keys: Sequence[str]) -> bool:
    return is_sealed(row.seal, ledger, ChainHead(row.seq, row.hash), keys)


def _stripped(row: Row, body: dict[str, Any] | None) -> bool:
    return body is not None and body["kind"] == "answer" and row.noisy is None
