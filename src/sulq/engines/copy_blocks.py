"""Blocks of rows from COPY ... (FORMAT BINARY): every field 8 bytes, so every row has one length.

A row is a count of fields (16 bits) and for each field its length (32 bits) and its bytes, all
big-endian; a header comes first, a count of -1 last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sulq.errors import EngineFailed

SIGNATURE = b"PGCOPY\n\xff\r\n\x00"
HEADER = len(SIGNATURE) + 8
END = b"\xff\xff"
LAST = (len(END), HEADER + len(END))
"""Lengths of the piece with the end, without rows that of the header too; no row has them."""
BYTES = 8 << 20
"""About so much is parsed at once."""


def pieces_of(copy: Any, connection: Any) -> Iterator[bytearray]:
    """What the driver hands out, by what has arrived: its own wait for each row costs most."""
    take = connection.pgconn.get_copy_data
    while piece := copy.read():
        held = bytearray(piece)
        while len(piece) not in LAST:  # after the end only the driver may ask
            size, piece = take(1)
            if size <= 0:
                break
            held += piece
        yield held


def copy_blocks(
    pieces: Iterable[bytes | bytearray | memoryview], reals: Sequence[bool]
) -> Iterator[list[NDArray[np.generic]]]:
    """One array per column: binary64 where `reals` says so, else 64-bit integers."""
    fields = [("count", ">i2")]
    for number, real in enumerate(reals):
        fields += [(f"size{number}", ">i4"), (f"value{number}", ">f8" if real else ">i8")]
    row = np.dtype(fields)
    headed = False
    for held in _gathered(pieces):
        if not headed:
            if len(held) < HEADER:
                continue
            if held[: len(SIGNATURE)] != SIGNATURE or any(held[len(SIGNATURE) : HEADER]):
                raise EngineFailed()
            del held[:HEADER]
            headed = True
        whole = len(held) // row.itemsize
        if whole:
            yield _columns(np.frombuffer(held, row, whole), reals)
            held[: whole * row.itemsize] = b""
    if not headed or held != END:
        raise EngineFailed()


def _gathered(pieces: Iterable[bytes | bytearray | memoryview]) -> Iterator[bytearray]:
    """One growing buffer, shown when it is large enough and at the end."""
    held = bytearray()
    for piece in pieces:
        held += piece
        if len(held) >= BYTES:
            yield held
    yield held


def _columns(rows: NDArray[np.void], reals: Sequence[bool]) -> list[NDArray[np.generic]]:
    if (rows["count"] != len(reals)).any():
        raise EngineFailed()
    found: list[NDArray[np.generic]] = []
    for number, real in enumerate(reals):
        if (rows[f"size{number}"] != 8).any():
            raise EngineFailed()
        found.append(rows[f"value{number}"].astype(np.float64 if real else np.int64))
    return found
