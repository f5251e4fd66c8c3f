"""Events and the chain that binds them: hash_k = SHA-256(hash_(k-1) || body_k)."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from operator import index
from pathlib import Path
from typing import Any

from sulq.kernel.ledger.index import IndexUnavailable

START = bytes(32)

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def canonical(value: Mapping[str, Any]) -> str:
    """The one JSON text of `value`: sorted keys, no spaces, ASCII."""
    return _encode(value)


def link(previous: bytes, body: str) -> bytes:
    """The hash of an event that follows `previous`."""
    return hashlib.sha256(previous + body.encode("ascii")).digest()


# Noisy integers as they are stored, once: text, and the hash that the chain holds of it.


def to_text(values: Iterable[int]) -> str:
    """Decimal integers with commas; anything that is not an integer is a TypeError."""
    return ",".join(str(index(value)) for value in values)


def from_text(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


def fingerprint(text: str) -> str:
    """The hash of a noisy answer; it says nothing of the rows beyond the answer itself."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()


# Every link of a chain by its number, in a file without a name: memory does not grow with it.


class Links:
    """The links of a chain by number, in an unnamed temporary file. Not thread-safe. Every failure
    is `IndexUnavailable`."""

    def __init__(self) -> None:
        try:
            self._file, path = tempfile.mkstemp(prefix="sulq-")
            weakref.finalize(self, os.close, self._file)
            Path(path).unlink()
        except OSError:
            raise IndexUnavailable from None
        self[0] = START

    def __setitem__(self, seq: int, link: bytes) -> None:
        try:
            written = os.pwrite(self._file, link, seq * len(START))
        except OSError:
            written = 0
        if written != len(link):
            raise IndexUnavailable

    def __getitem__(self, seq: int) -> bytes:
        """Return the link of event `seq`. An event that was never noted gives zero bytes, or no
        bytes after the end of the file: no real link equals either."""
        try:
            return os.pread(self._file, len(START), seq * len(START))
        except OSError:
            raise IndexUnavailable from None
