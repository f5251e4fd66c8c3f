"""The ledger's signing key: Ed25519, one file in the state directory."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path

from nacl.bindings import crypto_sign
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from sulq.errors import Refused
from sulq.ledger.state import read_private, write_private

SIGNATURE = 64  # bytes


class Key:
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


def new_key(path: Path | None) -> Key:
    """A fresh key, kept at `path` (mode 0600) or, for a ledger in memory, nowhere."""
    secret = SigningKey.generate().encode()
    if path is not None and not write_private(path, secret, replace=False):
        raise Refused(f"there is a signing key already at {path}")
    return Key(secret)


def secret_at(path: Path) -> bytes:
    """The 32 secret bytes that a file of the state directory holds; made if there is none."""
    found = read_private(path)
    if found is None:
        write_private(path, secrets.token_bytes(32), replace=False)  # whoever is first
        found = read_private(path)
    if found is None or len(found) != 32:
        raise Refused(f"the state file {path} is damaged; restore it from a backup")
    return found


def read_key(path: Path, public: str) -> Key:
    """The key at `path`, if it is the one whose public half the ledger names."""
    secret = read_private(path)
    if secret is None:
        raise Refused(
            f"there is no signing key {path}: is SULQ_STATE the directory that this ledger was"
            " made with? If the key is truly lost, `sulq recover` makes a new one"
        )
    try:
        key = Key(secret)
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


def key_at(path: Path) -> Key | None:
    """The key at `path`, if there is a whole one."""
    secret = read_private(path)
    try:
        return None if secret is None else Key(secret)
    except ValueError:
        return None


def replace_key(path: Path) -> Key:
    """A fresh key in the place of one that is lost, damaged or not this chain's."""
    secret = SigningKey.generate().encode()
    write_private(path, secret, replace=True)
    return Key(secret)


def passing_signer() -> Key:
    """A key for what is only tried out; kept nowhere."""
    return Key(SigningKey.generate().encode())


def is_signed(message: bytes, signature: bytes, public: str) -> bool:
    try:
        VerifyKey(bytes.fromhex(public)).verify(message, signature)
    except (BadSignatureError, ValueError, TypeError):
        return False
    return True
