"""Events and the chain that binds them: hash_k = SHA-256(hash_(k-1) || body_k)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

START = bytes(32)

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def canonical(value: Mapping[str, Any]) -> str:
    """The one JSON text of `value`: sorted keys, no spaces, ASCII."""
    return _encode(value)


def link(previous: bytes, body: str) -> bytes:
    """The hash of an event that follows `previous`."""
    return hashlib.sha256(previous + body.encode("ascii")).digest()
