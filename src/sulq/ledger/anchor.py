"""The high-water mark outside the ledger: how far the chain had come at the last release.

Two slots are written in turn, so a torn write leaves the one before. The anchor is written after
the commit: the ledger may be ahead of it, never behind (G.3.7).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sulq.errors import Refused
from sulq.ledger.keys import SIGNATURE, Key, is_signed
from sulq.ledger.state import write_private

MARK = struct.Struct(">8sQ32s")
MAGIC = b"sulqmark"
SLOT = 4096  # a page of its own for each slot
USED = MARK.size + SIGNATURE


class Mark(NamedTuple):
    """The chain's last number and hash."""

    seq: int
    hash: bytes


class Anchor:
    """An open anchor file. One write and one sync per commit."""

    def __init__(self, path: Path, ledger: str, key: Key) -> None:
        self._ledger, self._key, self._slot = ledger, key, 0
        try:
            self._handle = os.open(path, os.O_RDWR)
        except OSError:
            raise Refused(
                f"the anchor {path} is lost or cannot be written: is SULQ_STATE the directory that"
                " this ledger was made with? If it is truly lost, `sulq recover` opens the ledger"
                " at the most that can be proved spent"
            ) from None

    def move(self, mark: Mark, seal: bytes | None = None) -> None:
        """Durable when it returns; an error means that nothing may be released."""
        slot = seal or sealed(self._ledger, self._key, mark)
        try:
            if os.pwrite(self._handle, slot, self._slot * SLOT) != len(slot):
                raise OSError("short write")
            os.fdatasync(self._handle)
        except OSError:
            raise Refused("the anchor could not be written") from None
        self._slot = 1 - self._slot

    def settle(self, mark: Mark) -> None:
        """Both slots the same: then damage to one loses nothing."""
        self.move(mark)
        self.move(mark)

    def close(self) -> None:
        os.close(self._handle)


def new_anchor(path: Path, ledger: str, key: Key, mark: Mark, *, replace: bool) -> None:
    slot = sealed(ledger, key, mark).ljust(SLOT, b"\0")
    if not write_private(path, slot + slot, replace=replace):
        raise Refused(f"there is an anchor already at {path}")


def furthest(content: bytes, ledger: str, publics: Sequence[str]) -> Mark | None:
    """The furthest mark in an anchor's bytes that one of `publics` signed, if any."""
    marks = (_mark(content[start : start + USED], ledger, publics) for start in (0, SLOT))
    return max((mark for mark in marks if mark is not None), default=None)


def is_sealed(seal: bytes | None, ledger: str, mark: Mark, publics: Sequence[str]) -> bool:
    """True if one of `publics` signed that the chain had come to `mark`."""
    return seal is not None and _mark(seal, ledger, publics) == mark


def sealed(ledger: str, key: Key, mark: Mark) -> bytes:
    """The mark, signed: kept with the batch it ends, and in the anchor."""
    content = MARK.pack(MAGIC, *mark)
    return content + key.sign(content + ledger.encode())


def _mark(slot: bytes, ledger: str, publics: Sequence[str]) -> Mark | None:
    content, signature = slot[: MARK.size], slot[MARK.size :]
    if len(slot) != USED or not content.startswith(MAGIC):
        return None
    if not any(is_signed(content + ledger.encode(), signature, public) for public in publics):
        return None
    _, seq, digest = MARK.unpack(content)
    return Mark(seq, digest)
