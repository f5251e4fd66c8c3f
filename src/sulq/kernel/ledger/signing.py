"""What makes a ledger tamper-evident: canonical texts, the hash chain and Ed25519 signatures.

hash_k = SHA-256(hash_(k-1) || body_k).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import index
from pathlib import Path
from typing import Any, NamedTuple

from nacl.bindings import crypto_core_ed25519_is_valid_point, crypto_sign
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from sulq.errors import Refused
from sulq.kernel.ledger.header import TableHeader
from sulq.kernel.ledger.state_dir import read_private, write_private
from sulq.kernel.ledger.stores.store import Row

START = bytes(32)
SIGNATURE = 64  # bytes

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def canonical(value: Mapping[str, Any]) -> str:
    """The one JSON text of `value`: sorted keys, no spaces, ASCII."""
    return _encode(value)


def link(previous: bytes, body: str) -> bytes:
    """The hash of an event that follows `previous`."""
    return hashlib.sha256(previous + body.encode("ascii")).digest()


# Noisy integers as they are stored: a text, and the hash that the chain holds of it.


def stored_text(values: Iterable[int]) -> str:
    """Decimal integers with commas; anything that is not an integer is a TypeError."""
    return ",".join(str(index(value)) for value in values)


def stored_values(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


def fingerprint(text: str) -> str:
    """The hash of a noisy answer; it says nothing of the rows beyond the answer itself."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()


# The signing key: Ed25519, one file in the state directory.


class LedgerKey:
    """A signing key; `public` is its public half as text."""

    __slots__ = ("_secret", "public")

    def __init__(self, secret: bytes) -> None:
        public = SigningKey(secret).verify_key.encode()
        self._secret, self.public = secret + public, public.hex()

    @property
    def secret(self) -> bytes:
        """What a key file holds."""
        return self._secret[:32]

    def sign(self, message: bytes) -> bytes:
        return crypto_sign(message, self._secret)[:SIGNATURE]

    def stamp(self, message: bytes) -> str:
        """A mark of `message` that only who has the key can make or compare: a keyed hash."""
        own = hashlib.sha256(b"sulq stamp" + self._secret).digest()
        return hmac.new(own, message, hashlib.sha256).hexdigest()


def new_key(path: Path | None) -> LedgerKey:
    """A fresh key, kept at `path` (mode 0600) or, for a ledger in memory, nowhere."""
    secret = SigningKey.generate().encode()
    if path is not None and not write_private(path, secret, replace=False):
        raise Refused(f"there is a signing key already at {path}")
    return LedgerKey(secret)


def secret_at(path: Path) -> bytes:
    """The 32 secret bytes that a file of the state directory holds; made if there is none."""
    found = read_private(path)
    if found is None:
        write_private(path, secrets.token_bytes(32), replace=False)  # whoever is first
        found = read_private(path)
    if found is None or len(found) != 32:
        raise Refused(f"the state file {path} is damaged; restore it from a backup")
    return found


def read_key(path: Path, public: str) -> LedgerKey:
    """The key at `path`, if it is the one whose public half the ledger names."""
    secret = read_private(path)
    if secret is None:
        raise Refused(
            f"there is no signing key {path}: is SULQ_STATE the directory that this ledger was"
            " made with? If the key is truly lost, `sulq recover` makes a new one"
        )
    try:
        key = LedgerKey(secret)
    except ValueError:
        raise Refused(
            f"the signing key {path} is damaged; restore it or run `sulq recover`"
        ) from None
    if key.public != public:
        raise Refused(
            f"the signing key {path} is not this ledger's; restore the right one or run "
            "`sulq recover`"
        )
    return key


def key_at(path: Path) -> LedgerKey | None:
    """The key at `path`, if there is a whole one."""
    secret = read_private(path)
    try:
        return None if secret is None else LedgerKey(secret)
    except ValueError:
        return None


def replace_key(path: Path) -> LedgerKey:
    """A fresh key in the place of one that is lost, damaged or not this chain's."""
    secret = SigningKey.generate().encode()
    write_private(path, secret, replace=True)
    return LedgerKey(secret)


def passing_signer() -> LedgerKey:
    """A key for what is only tried out; kept nowhere."""
    return LedgerKey(SigningKey.generate().encode())


def is_signed(message: bytes, signature: bytes, public: str) -> bool:
    """Return whether the key signed the message. All verifiers agree on it: keys outside the group
    of prime order, of which some libraries take signatures that others refuse, sign nothing."""
    try:
        key = bytes.fromhex(public)
        VerifyKey(key).verify(message, signature)
    except (BadSignatureError, ValueError, TypeError):
        return False
    return _is_prime_order(key)


@lru_cache(maxsize=64)
def _is_prime_order(key: bytes) -> bool:
    return bool(crypto_core_ed25519_is_valid_point(key))


# The high-water mark outside the ledger: how far the chain had come at the last release.
#
# Two slots are written in turn, so a torn write leaves the one before. The anchor is written after
# the commit: the ledger may be ahead of it, never behind (G.3.7).


MARK = struct.Struct(">8sQ32s")
MAGIC = b"sulqmark"
SLOT = 4096  # a page of its own for each slot
USED = MARK.size + SIGNATURE


class ChainHead(NamedTuple):
    """The chain's last number and hash."""

    seq: int
    hash: bytes


class Anchor:
    """An open anchor file. One write and one sync per commit."""

    def __init__(self, path: Path, ledger: str, key: LedgerKey) -> None:
        self._ledger, self._key, self._slot = ledger, key, 0
        try:
            self._handle = os.open(path, os.O_RDWR)
        except OSError:
            raise Refused(
                f"the anchor {path} is lost or cannot be written: is SULQ_STATE the directory that"
                " this ledger was made with? If it is truly lost, `sulq recover` opens the ledger"
                " at the most that can be proved spent"
            ) from None

    def move(self, mark: ChainHead, seal: bytes | None = None) -> None:
        """Durable when it returns; an error means that nothing may be released."""
        slot = seal or sign_head(self._ledger, self._key, mark)
        try:
            if os.pwrite(self._handle, slot, self._slot * SLOT) != len(slot):
                raise OSError("short write")
            os.fdatasync(self._handle)
        except OSError:
            raise Refused("the anchor could not be written") from None
        self._slot = 1 - self._slot

    def settle(self, mark: ChainHead) -> None:
        """Both slots the same: then damage to one loses nothing."""
        self.move(mark)
        self.move(mark)

    def close(self) -> None:
        os.close(self._handle)


def new_anchor(path: Path, ledger: str, key: LedgerKey, mark: ChainHead, *, replace: bool) -> None:
    slot = sign_head(ledger, key, mark).ljust(SLOT, b"\0")
    if not write_private(path, slot + slot, replace=replace):
        raise Refused(f"there is an anchor already at {path}")


def latest_head(content: bytes, ledger: str, publics: Sequence[str]) -> ChainHead | None:
    """The furthest mark in an anchor's bytes that one of `publics` signed, if any."""
    marks = (_mark(content[start : start + USED], ledger, publics) for start in (0, SLOT))
    return max((mark for mark in marks if mark is not None), default=None)


def is_sealed(seal: bytes | None, ledger: str, mark: ChainHead, publics: Sequence[str]) -> bool:
    """True if one of `publics` signed that the chain had come to `mark`."""
    return seal is not None and _mark(seal, ledger, publics) == mark


def sign_head(ledger: str, key: LedgerKey, mark: ChainHead) -> bytes:
    """The mark, signed: kept with the batch it ends, and in the anchor."""
    content = MARK.pack(MAGIC, *mark)
    return content + key.sign(content + ledger.encode())


def _mark(slot: bytes, ledger: str, publics: Sequence[str]) -> ChainHead | None:
    content, signature = slot[: MARK.size], slot[MARK.size :]
    if len(slot) != USED or not content.startswith(MAGIC):
        return None
    if not any(is_signed(content + ledger.encode(), signature, public) for public in publics):
        return None
    _, seq, digest = MARK.unpack(content)
    return ChainHead(seq, digest)


# Receipts: what was charged and released, signed; they verify offline, without the ledger.


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


def sign_receipt(body: Mapping[str, Any], key: LedgerKey) -> Receipt:
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
