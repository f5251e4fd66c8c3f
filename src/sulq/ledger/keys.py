"""The ledger's signing key: Ed25519, one file in the state directory."""

from __future__ import annotations

from pathlib import Path

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from sulq.errors import Refused
from sulq.ledger.state import read_private, write_private

SIGNATURE = 64  # bytes


def new_key(path: Path | None) -> SigningKey:
    """A fresh key, kept at `path` (mode 0600) or, for a ledger in memory, nowhere."""
    key = SigningKey.generate()
    if path is not None and not write_private(path, key.encode(), replace=False):
        raise Refused(f"there is a signing key already at {path}")
    return key


def read_key(path: Path, public: str) -> SigningKey:
    """The key at `path`, if it is the one whose public half the ledger names."""
    seed = read_private(path)
    if seed is None:
        raise Refused(f"the signing key {path} is lost; `sulq recover` makes a new one")
    try:
        key = SigningKey(seed)
    except (TypeError, ValueError):
        raise Refused(
            f"the signing key {path} is damaged; restore it or run `sulq recover`"
        ) from None
    if public_text(key) != public:
        raise Refused(
            f"the signing key {path} is not this ledger's; restore the right one or run "
            "`sulq recover`"
        )
    return key


def public_text(key: SigningKey) -> str:
    return key.verify_key.encode().hex()


def signed(key: SigningKey, message: bytes) -> bytes:
    return key.sign(message).signature


def is_signed(message: bytes, signature: bytes, public: str) -> bool:
    try:
        VerifyKey(bytes.fromhex(public)).verify(message, signature)
    except (BadSignatureError, ValueError, TypeError):
        return False
    return True
