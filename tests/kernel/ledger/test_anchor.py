from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.kernel.ledger.signing import (
    SLOT,
    USED,
    Anchor,
    ChainHead,
    latest_head,
    new_anchor,
    new_key,
)


@pytest.fixture
def anchor(tmp_path):
    key = new_key(None)
    path = tmp_path / "anchor"
    new_anchor(path, "id", key, ChainHead(0, bytes(32)), replace=False)
    return path, key


def mark(seq):
    return ChainHead(seq, bytes([seq]) * 32)


def test_the_furthest_mark_counts(anchor):
    path, key = anchor
    opened = Anchor(path, "id", key)
    for seq in range(1, 6):
        opened.move(mark(seq))
        assert latest_head(path.read_bytes(), "id", [key.public]) == mark(seq)
    assert path.stat().st_size == 2 * SLOT
    opened.close()


@pytest.mark.parametrize("kept", range(0, USED, 7))
def test_a_torn_write_leaves_the_mark_before(anchor, kept):
    path, key = anchor
    opened = Anchor(path, "id", key)
    opened.move(mark(1))
    before = path.read_bytes()
    opened.move(mark(2))
    after = path.read_bytes()
    torn = before[:SLOT] + after[SLOT : SLOT + kept] + before[SLOT + kept :]
    assert latest_head(torn, "id", [key.public]) == mark(1)


def test_neither_another_key_nor_another_ledger_counts(anchor):
    path, key = anchor
    assert latest_head(path.read_bytes(), "other", [key.public]) is None
    assert latest_head(path.read_bytes(), "id", [new_key(None).public]) is None


@given(st.binary(max_size=2 * SLOT))
def test_rubbish_is_no_mark(content):
    assert latest_head(content, "id", [new_key(None).public]) is None
