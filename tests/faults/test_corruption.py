"""Damage and tampering: refused, or without any effect on what is spent and stored."""

from __future__ import annotations

import json
import random
import re
import shutil

import apsw
import pytest
from tests.kernel.ledger.publishing import ask, credits, pay, publish

from sulq.errors import Refused
from sulq.kernel.ledger.signing import START, canonical, link


def snapshot(journal):
    return journal.statement(), list(journal.entries())


@pytest.fixture
def ledger(path, state):
    """Ten entries, one of them unanswered, a grant and a repeat; closed, one file."""
    journal = publish(path, cap=credits(100))
    journal.grant("ann", credits(5))
    for number in range(9):
        ask(journal, f"q{number}", values=(number, -number))
    pay(journal, "q9", analyst="ann", key="k")
    pay(journal, "q1", analyst="ann")
    expected = snapshot(journal)
    journal.close()
    return Damaged(path, state, expected)


class Damaged:
    """A ledger that is damaged again and again, each time from the sound one."""

    def __init__(self, path, state, expected):
        self.path, self.state, self.expected = path, state, expected
        self.whole = path.read_bytes()
        self.anchor = next(state.glob("ledgers/*/anchor"))
        self.mark = self.anchor.read_bytes()

    def outcome(self):
        """'refused' or 'same'; anything else is an error."""
        try:
            journal = publish(self.path, cap=credits(100))
        except Refused:
            return "refused"
        found = snapshot(journal)
        journal.close()
        assert found == self.expected
        return "same"

    def restore(self):
        self.path.write_bytes(self.whole)
        self.anchor.write_bytes(self.mark)

    def flipped(self, position, bit):
        self.restore()
        content = bytearray(self.whole)
        content[position] ^= 1 << bit
        self.path.write_bytes(content)
        return self.outcome()

    def truncated(self, length):
        self.restore()
        self.path.write_bytes(self.whole[:length])
        return self.outcome()

    def edited(self, *statements):
        self.restore()
        connection = apsw.Connection(str(self.path))
        for statement in statements:
            connection.execute(*statement if isinstance(statement, tuple) else (statement,))
        connection.close()
        return self.outcome()


def test_the_sound_ledger_opens_the_same(ledger):
    assert ledger.outcome() == "same"


def test_flipped_bytes_are_refused_or_without_effect(ledger):
    dice = random.Random(4)
    body = [found for found in range(len(ledger.whole)) if ledger.whole[found]]
    sample = [*range(100), *dice.sample(body, 200)]
    found = [ledger.flipped(position, dice.randrange(8)) for position in sample]
    assert found[100:].count("refused") > 80  # the others lie in free space


def test_every_byte_of_an_event_is_covered(ledger):
    """Each byte of one charge, one answer and one stored value."""
    for piece in (b'{"analyst":"ann"', b'"kind":"answer"', b"8,-8"):
        # Old copies may lie in free space; one of these is the live one.
        starts = [found.start() for found in re.finditer(re.escape(piece), ledger.whole)]
        for offset in range(len(piece)):
            assert "refused" in [ledger.flipped(start + offset, 0) for start in starts]


def test_a_key_of_the_tree_that_is_wrong_is_refused_when_the_ledger_is_opened(ledger):
    """A scan finds every row all the same; who asks for one by its number would not."""
    tree, pages = 5, range(4096, len(ledger.whole), 4096)
    (page,) = (found for found in pages if ledger.whole[found] == tree)
    cells = int.from_bytes(ledger.whole[page + 3 : page + 5])
    for number in range(cells):
        pointer = page + 12 + 2 * number
        cell = page + int.from_bytes(ledger.whole[pointer : pointer + 2])
        assert ledger.flipped(cell + 4, 2) == "refused"  # after the number of the page below


@pytest.mark.slow
def test_every_flipped_byte_is_refused_or_without_effect(ledger):
    for position in range(len(ledger.whole)):
        ledger.flipped(position, position % 8)


def test_truncation_is_refused(ledger):
    size = len(ledger.whole)
    for length in [*range(0, size, 997), *range(4096, size, 4096)]:
        # the end of the last page may hold nothing: then nothing is lost with it
        wanted = ("refused",) if length <= size - 4096 else ("refused", "same")
        assert ledger.truncated(length) in wanted


@pytest.mark.slow
def test_every_truncation_is_refused(ledger):
    size = len(ledger.whole)
    for length in range(size):
        wanted = ("refused",) if length <= size - 4096 else ("refused", "same")
        assert ledger.truncated(length) in wanted


EDITS = {
    "last deleted": ["delete from events where seq = (select max(seq) from events)"],
    "last ten deleted": ["delete from events where seq > (select max(seq) from events) - 10"],
    "one deleted": ["delete from events where seq = 7"],
    "first deleted": ["delete from events where seq = 1"],
    "all deleted": ["delete from events"],
    "table dropped": ["drop table events"],
    "one duplicated": [
        "insert into events select 99, hash, body, noisy, seal from events where seq = 7"
    ],
    "last repeated": [
        "insert into events select seq + 1, hash, body, noisy, seal from events "
        "where seq = (select max(seq) from events)"
    ],
    "two swapped": [
        "update events set seq = -1 where seq = 7",
        "update events set seq = 7 where seq = 8",
        "update events set seq = 8 where seq = -1",
    ],
    "bodies swapped": [
        "update events set body = (select body from events where seq = 12 - events.seq) "
        "where seq in (5, 7)"
    ],
    "an answer changed": ["update events set noisy = '8,-9' where noisy = '8,-8'"],
    "an answer removed": ["update events set noisy = null where noisy = '8,-8'"],
    "an answer planted": ["update events set noisy = '1' where seq = 2"],
    "a hash changed": ["update events set hash = zeroblob(32) where seq = 7"],
    "a price lowered": ["update events set body = replace(body, '18446744073709551616', '1')"],
    "rubbish": ["update events set body = '[1]' where seq = 7"],
    "nested too deep": [("update events set body = ? where seq = 7", ["[" * 100_000])],
    "not text": ["update events set body = 'é' where seq = 7"],
    "another application": ["pragma application_id = 1"],
    "a newer format": ["pragma user_version = 3"],
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_ledger_is_refused(ledger, edit):
    assert ledger.edited(*EDITS[edit]) == "refused"
    ledger.restore()
    assert ledger.outcome() == "same"


def test_a_chain_made_anew_is_refused_by_its_seal(ledger):
    """Lower a price and compute every later hash again: only the key could seal that."""
    connection = apsw.Connection(str(ledger.path))
    rows = connection.execute("select seq, body from events order by seq").fetchall()
    previous = START
    for seq, body in rows:
        found = json.loads(body)
        if seq == 4:
            assert found["kind"] == "charge"
            found["charges"][0][0] = "1"
        previous = link(previous, canonical(found))
        connection.execute(
            "update events set hash = ?, body = ? where seq = ?", (previous, canonical(found), seq)
        )
    connection.close()
    with pytest.raises(Refused, match="not written with its key"):
        publish(ledger.path, cap=credits(100))


def test_damage_to_the_anchor_is_refused_or_without_effect(ledger):
    found = set()
    for position in [*range(0, 112, 3), *range(4096, 4208, 3), 500, 5000]:
        ledger.restore()
        content = bytearray(ledger.mark)
        content[position] ^= 1
        ledger.anchor.write_bytes(content)
        found.add(ledger.outcome())
    assert found == {"same"}  # the other slot says the same
    for content in (b"", ledger.mark[:100], bytes(8192), ledger.mark[::-1]):
        ledger.restore()
        ledger.anchor.write_bytes(content)
        assert ledger.outcome() == "refused"


def test_a_wrong_or_damaged_key_is_refused(ledger, tmp_path, state):
    key = next(state.glob("ledgers/*/key"))
    own = key.read_bytes()
    publish(tmp_path / "other").close()
    other = next(found for found in state.glob("ledgers/*/key") if found != key).read_bytes()
    for content in (other, b"", own[:-1], bytes([own[0] ^ 1]) + own[1:]):
        key.write_bytes(content)
        assert ledger.outcome() == "refused"
    key.write_bytes(own)
    assert ledger.outcome() == "same"


def test_an_anchor_of_another_ledger_is_refused(ledger, tmp_path, state):
    publish(tmp_path / "other").close()
    other = next(found for found in state.glob("ledgers/*/anchor") if found != ledger.anchor)
    ledger.anchor.write_bytes(other.read_bytes())
    assert ledger.outcome() == "refused"


def test_a_ledger_swapped_for_another_is_refused(ledger, tmp_path):
    other = tmp_path / "other"
    publish(other, cap=credits(100)).close()
    shutil.copy(other, ledger.path)
    with pytest.raises(Refused, match="not the ledger that was there"):
        publish(ledger.path, cap=credits(100))


def test_the_log_of_a_crashed_ledger_may_lose_only_what_was_never_released(path, tmp_path, state):
    """Cut the write-ahead log at every frame: shorter than the anchor is refused."""
    journal = publish(path)
    for number in range(4):
        ask(journal, f"q{number}")
    names = ("people.ledger", "people.ledger-wal")
    files = {name: (path.parent / name).read_bytes() for name in names}
    shutil.copytree(state, tmp_path / "crashed")
    journal.close()
    log = files["people.ledger-wal"]
    found = []
    for length in [0, 10, *range(32, len(log), 4120), len(log)]:
        for name, content in files.items():
            (path.parent / name).write_bytes(content)
        (path.parent / "people.ledger-wal").write_bytes(log[:length])
        shutil.rmtree(state)
        shutil.copytree(tmp_path / "crashed", state)
        try:
            journal = publish(path)
        except Refused:
            found.append("refused")
        else:
            found.append(journal.statement().answered)
            journal.close()
    assert found == ["refused"] * (len(found) - 1) + [4]
