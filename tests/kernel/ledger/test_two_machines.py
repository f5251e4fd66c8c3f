"""Machines that share a backup and a journal: what one has spent the other never spends again."""

from __future__ import annotations

import json
import shutil
from contextlib import closing

import pytest
from tests.kernel.ledger.publishing import ask, credits, pay, publish
from tests.kernel.ledger.test_backup import (  # noqa: F401
    Machine,
    lose,
    one,
    second,
    spend,
    two,
)

from sulq.errors import Refused
from sulq.kernel.ledger.inspect import inspect
from sulq.kernel.ledger.recovery import recover
from sulq.kernel.ledger.register import told_of
from sulq.kernel.ledger.signing import canonical


def test_a_new_journal_is_no_way_around_the_one_that_went_on_elsewhere(one, two, second, tmp_path):  # noqa: F811
    one.receipts = two.receipts = second
    spend(one, "a", "b")
    file = one.back_up(tmp_path / "b")
    two.restore(file)
    released = two.spend_all("two")
    one.receipts = tmp_path / "new"  # of the machine that came back to life
    with pytest.raises(Refused, match="has seen events"):
        released += one.spend_all("one")
    assert released == 8
    assert not one.receipts.exists()


def test_marks_of_a_key_that_the_backup_does_not_know_are_no_torn_end(one, two, second, tmp_path):  # noqa: F811
    one.receipts = two.receipts = second
    spend(one, "a", "b")
    file = one.back_up(tmp_path / "b")
    next(one.state.glob("ledgers/*/key")).unlink()
    assert recover(one.path).new_key
    assert one.spend_all("one") == 8
    found = two.restore(file)
    assert found.found.burnt
    with pytest.raises(Refused, match="has seen events"):  # it is the other machine's
        two.open()
    two.receipts = tmp_path / "new"
    assert two.spend_all("two") == 0
    assert spend(one, "a")  # whoever has the key goes on


def test_who_does_not_know_the_key_of_the_last_mark_does_not_cut_it_off(one, two, second, tmp_path):  # noqa: F811
    one.receipts = two.receipts = second
    spend(one, "a", "b")
    copy = tmp_path / "copy"
    shutil.copytree(one.home, copy)
    next(one.state.glob("ledgers/*/key")).unlink()
    recover(one.path)
    assert one.spend_all("one") == 8
    size = second.stat().st_size
    shutil.rmtree(one.home)
    copy.rename(one.home)
    with pytest.raises(Refused, match="has seen events"):
        one.spend_all("again")
    assert second.stat().st_size == size


def test_a_table_that_was_asked_after_the_backup_is_not_published_anew(one, two, second, tmp_path):  # noqa: F811
    one.receipts = two.receipts = second
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    journal = publish(one.path, name="other", fingerprint="g", receipts=second)
    ask(journal, "x", price=credits(10))
    journal.close()
    two.restore(file)
    with pytest.raises(Refused, match="was published before"):
        publish(two.path, name="other", fingerprint="g", receipts=second)


def test_the_noted_journal_is_asked_whatever_the_policy_names(one, second, tmp_path):  # noqa: F811
    one.receipts = second
    spend(one, "a")
    shutil.copy(one.path, tmp_path / "old")
    spend(one, "b", "c")
    lose(one)
    shutil.copy(tmp_path / "old", one.path)
    next(one.state.glob("ledgers/*/anchor")).unlink()
    recover(one.path, journal=tmp_path / "new")
    assert inspect(one.path).statements["people"].spent.credits_fraction >= 3


def test_what_is_public_of_data_for_good_is_in_the_backup(one, two, tmp_path):  # noqa: F811
    with closing(one.open()) as journal:
        journal.grant("ann", credits(1))
        journal.withdraw("wrong extract", "row")
    file = one.back_up(tmp_path / "b")
    two.restore(file)
    assert told_of("f") == "row"


def test_what_the_next_table_of_a_name_paid_is_not_booked_to_the_withdrawn_one(
    one,  # noqa: F811
    second,  # noqa: F811
    tmp_path,
):
    """Other accounts, another population: prices of the one say nothing of the other."""
    one.receipts = second
    with closing(one.open()) as journal:
        journal.withdraw()
    file = one.back_up(tmp_path / "b")
    journal = publish(
        one.path, fingerprint="f", receipts=second, accounts=("a", "b"), cap=credits(7)
    )
    pay(journal, "x")
    journal.close()
    lose(one)
    assert one.restore(file).found.burnt


def test_a_receipt_that_somebody_wrote_into_the_journal_proves_nothing(one, two, second, tmp_path):  # noqa: F811
    """The journal was begun after the backup: nothing of it tells what was spent in between."""
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    known = json.loads(spend(one, "b", "c", "d", "e")[0])["receipt"]
    one.receipts = two.receipts = second
    spend(one, "f")
    lines = second.read_text().splitlines(keepends=True)
    start = json.loads(lines[0])["mark"]["seq"]
    free = {"charges": [], "share": ["0", "0"], "answer_link": "00" * 32}
    forged = [
        canonical(
            {"receipt": {**known, **free, "seq": n, "answer": n + 1, "origin": n}}
            | {"signature": "00" * 64}
        )
        + "\n"
        for n in range(known["seq"], start, 2)
    ]
    second.write_text("".join([lines[0], *forged, *lines[1:]]))
    assert two.restore(file).found.burnt
    assert 6 + two.spend_all("two") <= 10
