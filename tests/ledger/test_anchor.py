from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.ledger.anchor import SLOT, USED, Anchor, Mark, furthest, new_anchor
from sulq.ledger.keys import new_key


@pytest.fixture
def anchor(tmp_path):
    key = new_key(None)
    path = tmp_path / "anchor"
    new_anchor(path, "id", key, Mark(0, bytes(32)), replace=False)
    return path, key


def mark(seq):
    return Mark(seq, bytes([seq]) * 32)


def test_the_furthest_mark_counts(anchor):
    path, key = anchor
    opened = Anchor(path, "id", key)
    for seq in range(1, 6):
        opened.move(mark(seq))
        assert furthest(path.read_bytes(), "id", [key.public]) == mark(seq)
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
    assert furthest(torn, "id", [key.public]) == mark(1)


def test_neither_another_key_nor_another_ledger_counts(anchor):
    path, key = anchor
    assert furthest(path.read_bytes(), "other", [key.public]) is None
    assert furthest(path.read_bytes(), "id", [new_key(None).public]) is None


@given(st.binary(max_size=2 * SLOT))
def test_rubbish_is_no_mark(content):
    assert furthest(content, "id", [new_key(None).public]) is None
