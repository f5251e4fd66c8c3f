"""Receipts: what was charged and released, signed; they verify offline, without the ledger."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sulq.errors import Refused
from sulq.ledger.answers import fingerprint
from sulq.ledger.chain import canonical
from sulq.ledger.header import TableHeader
from sulq.ledger.keys import Key, is_signed
from sulq.ledger.store import Row

FORMAT = "sulq receipt 1"
FIELDS = {
    *("format", "ledger", "table", "version", "neighbours", "seq", "origin", "analyst"),
    *("question", "digest", "noise", "charges", "share", "answer", "answer_link", "answer_hash"),
}


@dataclass(frozen=True, slots=True)
class Receipt:
    """A signed statement about one entry. It holds no draw, no true value and no hash of data."""

    body: Mapping[str, Any]
    signature: str

    @property
    def seq(self) -> int:
        return int(self.body["seq"])

    def to_json(self) -> str:
        return canonical({"receipt": self.body, "signature": self.signature})


class Proof(NamedTuple):
    """The events behind a receipt: `mine` gave it to the analyst, `origin` charged it first."""

    mine: Row
    origin: Row
    answer: Row


def receipt_body(ledger: str, header: TableHeader, proof: Proof) -> dict[str, Any]:
    got = json.loads(proof.mine.body)
    asked = got if proof.mine.seq == proof.origin.seq else json.loads(proof.origin.body)
    return {
        "format": FORMAT,
        "ledger": ledger,
        "table": header.name,
        "version": header.version,
        "neighbours": header.neighbours,
        "seq": proof.mine.seq,
        "origin": proof.origin.seq,
        "analyst": got["analyst"],
        "question": asked["question"],
        "digest": asked["digest"],
        "noise": asked["noise"],
        "charges": got.get("charges", []),
        "share": got["share"],
        "answer": proof.answer.seq,
        "answer_link": proof.answer.hash.hex(),
        "answer_hash": fingerprint(proof.answer.noisy or ""),
    }


def sign_receipt(body: Mapping[str, Any], key: Key) -> Receipt:
    return Receipt(body, key.sign(canonical(body).encode("ascii")).hex())


def read_receipt(text: str) -> Receipt:
    """The receipt in `text`, not yet verified."""
    try:
        found = json.loads(text)
        receipt = Receipt(found["receipt"], found["signature"])
        bytes.fromhex(receipt.signature)
        if receipt.body["format"] != FORMAT or receipt.body.keys() != FIELDS:
            raise ValueError("another format")
        if not all(type(receipt.body[name]) is int for name in ("seq", "origin", "answer")):
            raise ValueError("no numbers")
        if receipt.to_json() != text.strip():
            raise ValueError("more than was signed, or spelled otherwise")
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
        raise Refused(f"this is not a receipt of format {FORMAT!r}") from None
    return receipt


def verify_receipt(text: str, public_key: str) -> None:
    """Return if `public_key` signed exactly this receipt, else raise `Refused`."""
    check_signature(read_receipt(text), [public_key])


def check_signature(receipt: Receipt, public_keys: Iterable[str]) -> None:
    """`Refused` unless one of the keys signed it."""
    message, signature = canonical(receipt.body).encode("ascii"), bytes.fromhex(receipt.signature)
    if not any(is_signed(message, signature, public) for public in public_keys):
        raise Refused("the receipt does not verify: it was changed, or another ledger signed it")
