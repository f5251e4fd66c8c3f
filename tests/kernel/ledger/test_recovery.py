"""Recovery only ever adds to what is spent."""

from __future__ import annotations

import shutil

import pytest
from tests.kernel.ledger.publishing import ONE, ask, credits, pay, publish, spent
from tests.kernel.ledger.stores import put_back, save

from sulq.errors import BudgetSpent, Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger.inspect import inspect
from sulq.kernel.ledger.recovery import recover

alone = pytest.mark.parametrize("place", ["file"], indirect=True)
"""Of a shared ledger nobody knows where it ended: what is lost burns, whatever receipts say."""


@pytest.fixture
def rolled_back(place):
    """Two answers in the backup, then three more that only receipts remember."""
    journal = publish(place)
    journal.grant("ann", credits(4))
    kept = [ask(journal, f"kept{number}").receipt.to_json() for number in range(2)]
    journal.close()
    saved = save(place)
    journal = publish(place)
    lost = [ask(journal, f"lost{n}", analyst="ann").receipt.to_json() for n in range(3)]
    journal.close()
    put_back(place, saved)
    with pytest.raises(Refused, match=r"rolled back.*sulq recover"):
        publish(place)
    return kept, lost


def test_without_receipts_everything_counts_as_spent(place, rolled_back):
    found = recover(place)
    assert (found.lost, found.burnt) == (6, True)
    journal = publish(place)
    assert spent(journal) == credits(10)
    assert journal.remaining("ann") == Loss(0, 0)
    with pytest.raises(BudgetSpent):
        pay(journal, "new")
    assert pay(journal, "kept1").answered


@alone
def test_receipts_for_all_that_is_lost_save_the_rest(place, rolled_back):
    kept, lost = rolled_back
    found = recover(place, kept + lost)
    assert (found.lost, found.proved, found.burnt) == (6, 3, False)
    journal = publish(place)
    assert spent(journal) == credits(5)
    assert journal.remaining("ann") == ONE
    assert journal.statement().recoveries == 1


def test_one_missing_receipt_burns(place, rolled_back):
    _, lost = rolled_back
    assert recover(place, lost[:2]).burnt
    assert spent(publish(place)) == credits(10)


@alone
def test_a_lost_answer_is_paid_for_again(place, rolled_back):
    """Its first draw was released; a second one under the same charge would be free."""
    kept, lost = rolled_back
    recover(place, kept + lost)
    journal = publish(place)
    again = pay(journal, "lost0")
    assert (again.answered, again.charged) == (False, {"": ONE})
    assert spent(journal) == credits(6)


def test_a_charge_whose_answer_was_lost_is_paid_for_again(path, tmp_path):
    journal = publish(path)
    entry = pay(journal, "q", key="k")
    journal.close()
    shutil.copy(path, tmp_path / "backup")
    journal = publish(path)
    receipt = journal.settle(entry, [1]).receipt.to_json()
    journal.close()
    shutil.copy(tmp_path / "backup", path)
    recover(path, [receipt])
    journal = publish(path)
    assert spent(journal) == ONE
    with pytest.raises(Refused, match="lost when the ledger was recovered"):
        pay(journal, "q", key="k")
    with pytest.raises(Refused, match="not open"):
        journal.settle(entry, [2])
    assert pay(journal, "q").charged == {"": ONE}


@alone
def test_numbers_are_never_used_twice(place, rolled_back):
    kept, lost = rolled_back
    recover(place, kept + lost)
    journal = publish(place)
    assert ask(journal, "new").seq == inspect(place).lost[0].stop + 1
    journal.close()
    found = inspect(place)
    found.confirm(kept[0])
    with pytest.raises(Refused, match="lost; a recovery counted it"):
        found.confirm(lost[0])
    assert not recover(place, kept + lost).burnt
    assert spent(publish(place)) == credits(6)


@pytest.mark.parametrize("what", ["anchor", "key"])
def test_a_lost_anchor_or_key_closes_until_recovery(place, state, what):
    journal = publish(place)
    old = ask(journal, "q").receipt.to_json()
    pay(journal, "unanswered")
    journal.close()
    next(state.glob(f"ledgers/*/{what}")).unlink()
    with pytest.raises(Refused, match=r"lost.*sulq recover"):
        publish(place)
    found = recover(place)
    assert (found.burnt, found.lost, found.new_key) == (False, 0, what == "key")
    journal = publish(place)
    assert spent(journal) == credits(2)
    assert pay(journal, "unanswered").charged == {"": ONE}
    journal.close()
    inspect(place).confirm(old)


def test_a_lost_state_directory_is_the_same(place, state):
    journal = publish(place, fingerprint="f")
    ask(journal, "q")
    journal.close()
    shutil.rmtree(state)
    with pytest.raises(Refused, match="lost"):
        publish(place, fingerprint="f")
    recover(place)
    assert spent(publish(place, fingerprint="f")) == ONE


def test_a_receipt_that_the_ledger_contradicts_burns(path, tmp_path, state):
    """The state directory and the ledger went back together: only a receipt remembers."""
    publish(path).close()
    shutil.copy(path, tmp_path / "backup")
    shutil.copytree(state, tmp_path / "state-backup")
    journal = publish(path)
    receipt = ask(journal, "q").receipt.to_json()
    journal.close()
    shutil.rmtree(state)
    shutil.copytree(tmp_path / "state-backup", state)
    shutil.copy(tmp_path / "backup", path)
    journal = publish(path)
    ask(journal, "other")
    journal.close()
    with pytest.raises(Refused, match="does not have what the receipt proves"):
        inspect(path).confirm(receipt)
    assert recover(path, [receipt]).burnt
    assert spent(publish(path)) == credits(10)


def test_recovering_a_sound_ledger_changes_nothing(place):
    journal = publish(place)
    entry = pay(journal, "q")
    before = journal.statement()
    with pytest.raises(Refused, match="open in this process"):
        recover(place)
    journal.close()
    assert not recover(place).burnt
    journal = publish(place)
    assert journal.statement() == before
    journal.settle(entry, [1])


def test_a_forged_or_foreign_receipt_is_refused(place, tmp_path):
    publish(place).close()
    other = publish(tmp_path / "other")
    with pytest.raises(Refused, match="does not verify"):
        recover(place, [ask(other, "q").receipt.to_json()])
    with pytest.raises(Refused, match="not a receipt"):
        recover(place, ["{}"])


def test_a_ledger_that_is_gone_cannot_be_recovered_nor_replaced(path):
    journal = publish(path)
    ask(journal, "q")
    journal.close()
    path.unlink()
    with pytest.raises(Refused, match="restore a backup"):
        recover(path)
    with pytest.raises(Refused, match="lost or empty"):
        publish(path)
    path.write_bytes(b"")
    with pytest.raises(Refused, match="lost or empty"):
        publish(path)
    with pytest.raises(Refused, match="empty"):
        recover(path)


def test_receipts_beyond_the_chain_burn_if_no_anchor_says_where_it_ended(place, rolled_back, state):
    _, lost = rolled_back
    next(state.glob("ledgers/*/anchor")).unlink()
    found = recover(place, lost[:1])
    assert (found.burnt, found.anchor_missing) == (True, True)
