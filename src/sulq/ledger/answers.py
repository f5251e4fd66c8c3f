"""Noisy integers as they are stored, once: text, and the hash that the chain holds of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from operator import index


def to_text(values: Iterable[int]) -> str:
    """Decimal integers with commas; anything that is not an integer is a TypeError."""
    return ",".join(str(index(value)) for value in values)


def from_text(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


def fingerprint(text: str) -> str:
    """The hash of a noisy answer; it says nothing of the rows beyond the answer itself."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()
