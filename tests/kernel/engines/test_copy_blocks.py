"""The binary form of COPY, in pieces of any size; what is not of that form is refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.errors import EngineFailed
from sulq.kernel.engines.postgres import engine as file
from sulq.kernel.engines.postgres.engine import END, SIGNATURE, copy_blocks

HEAD = SIGNATURE + bytes(8)


def row(x: float, n: int) -> bytes:
    return struct.pack(">hididq", 2, 8, x, 8, 0.0, 0)[: 2 + 4 + 8] + struct.pack(">iq", 8, n)


def read(text: bytes, size: int) -> list[tuple[float, int]]:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    found = []
    for block in copy_blocks(pieces, [True, False]):
        assert [column.dtype for column in block] == [np.float64, np.int64]
        found += list(zip(*(column.tolist() for column in block), strict=True))
    return found


ROWS = st.lists(
    st.tuples(st.floats(allow_nan=False), st.integers(-(2**63), 2**63 - 1)), max_size=20
)


@given(ROWS, st.integers(1, 200), st.integers(1, 500))
def test_rows_come_back_whatever_the_pieces(
    rows: list[tuple[float, int]], size: int, parsed: int
) -> None:
    old, file.BYTES = file.BYTES, parsed
    try:
        assert read(HEAD + b"".join(row(*r) for r in rows) + END, size) == rows
    finally:
        file.BYTES = old


@pytest.mark.parametrize(
    "text",
    [
        b"",
        HEAD,
        HEAD + row(1.0, 2),
        HEAD + row(1.0, 2)[:-1] + END,
        b"PGCOPX" + HEAD[6:] + END,
        HEAD[:-1] + b"\x01" + END,
        HEAD + struct.pack(">hiqiq", 3, 8, 1, 8, 2) + END,
        HEAD + struct.pack(">hiqiq", 2, 8, 1, 4, 2) + END,
        HEAD + struct.pack(">hiiqi", 2, -1, 8, 2, 0) + END,  # a NULL
        HEAD + END + row(1.0, 2),
    ],
)
def test_what_is_not_of_the_form_is_refused(text: bytes) -> None:
    with pytest.raises(EngineFailed):
        read(text, 7)
