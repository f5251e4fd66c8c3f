"""Back up, spend, restore, here and elsewhere: released <= budget over all machines together."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import tarfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from tests.kernel.ledger.publishing import ONE, ask, credits, pay, publish, spent
from tests.kernel.ledger.stores import put_back, save

from sulq.errors import BudgetSpent, Refused
from sulq.kernel.ledger import failpoints, recovery
from sulq.kernel.ledger.backup import Backup, back_up, restore
from sulq.kernel.ledger.header import PopulationMembership
from sulq.kernel.ledger.inspect import inspect
from sulq.kernel.ledger.recovery import recover


@dataclass
class Machine:
    """A home with a ledger and a state directory of its own."""

    home: Path
    monkeypatch: pytest.MonkeyPatch
    receipts: Path | None = None

    @property
    def path(self) -> Path:
        return self.home / "people.ledger"

    @property
    def state(self) -> Path:
        return self.home / "state"

    def here(self) -> None:
        self.home.mkdir(exist_ok=True)
        self.monkeypatch.setenv("SULQ_STATE", str(self.state))

    def open(self, **more):
        self.here()
        return publish(self.path, fingerprint="f", receipts=self.receipts, **more)

    def back_up(self, file: Path) -> Path:
        self.here()
        back_up([self.path], file)
        return file

    def restore(self, file: Path, receipts=(), **more):
        self.here()
        with Backup(file) as backup:
            return restore(backup, "people", self.path, receipts, journal=self.receipts, **more)

    def spend_all(self, name: str) -> int:
        """Ask until nothing is left; how many answers were released."""
        journal = self.open()
        released = 0
        try:
            for number in range(50):
                ask(journal, f"{name}{number}")
                released += 1
        except BudgetSpent:
            pass
        finally:
            journal.close()
        return released


@pytest.fixture
def one(tmp_path, monkeypatch):
    return Machine(tmp_path / "one", monkeypatch)


@pytest.fixture
def two(tmp_path, monkeypatch):
    return Machine(tmp_path / "two", monkeypatch)


@pytest.fixture
def second(tmp_path):
    directory = tmp_path / "second"
    directory.mkdir()
    return directory / "receipts"


def spend(machine, *names):
    journal = machine.open()
    found = [ask(journal, name).receipt.to_json() for name in names]
    journal.close()
    return found


def lose(machine):
    """The ledger's disk is gone; the state directory's is not."""
    for end in ("", "-wal", "-shm"):
        Path(f"{machine.path}{end}").unlink(missing_ok=True)


def test_a_backup_holds_what_is_needed_and_nothing_else(one, tmp_path):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    assert file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as archive:
        kinds = sorted({name.split("/", 1)[-1].split("-")[0] for name in archive.getnames()})
        modes = {member.mode for member in archive.getmembers()}
    assert modes == {0o600}
    assert [kind.split("/")[0] for kind in kinds] == [
        "backup.json",
        "data",
        "key",
        "ledger",
        "state",
    ]
    assert "anchor" not in " ".join(kinds)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".b")) == []
    with pytest.raises(Refused, match="already"):
        one.back_up(file)


def test_a_backup_while_the_ledger_is_in_use_has_its_log(one, two, tmp_path):
    """Most of a ledger in use is in its -wal file."""
    journal = one.open()
    for number in range(5):
        ask(journal, f"q{number}")
    assert Path(f"{one.path}-wal").stat().st_size > one.path.stat().st_size
    file = one.back_up(tmp_path / "here")  # by the process that holds it
    context = multiprocessing.get_context("spawn")
    other = context.Process(target=back_up, args=([one.path], tmp_path / "elsewhere"))
    other.start()
    other.join()
    assert other.exitcode == 0
    ask(journal, "still open")
    journal.close()
    for made in (file, tmp_path / "elsewhere"):
        with Backup(made) as backup:
            assert backup.ledgers[0].events == 2 + 2 * 5


def test_a_rolled_back_ledger_is_not_backed_up(one, tmp_path):
    spend(one, "a")
    shutil.copy(one.path, tmp_path / "old")
    spend(one, "b")
    shutil.copy(tmp_path / "old", one.path)
    with pytest.raises(Refused, match="rolled back"):
        one.back_up(tmp_path / "b")


def test_on_the_same_machine_with_nothing_asked_since_nothing_is_lost(one, tmp_path):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    lose(one)
    found = one.restore(file)
    assert (found.found.burnt, found.found.lost) == (False, 0)
    journal = one.open()
    assert spent(journal) == ONE
    assert pay(journal, "a").answered


def test_without_a_journal_the_rest_counts_as_spent(one, tmp_path):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    spend(one, "b")
    lose(one)
    tried = one.restore(file, dry_run=True)
    assert tried.found.burnt and tried.after["people"].spent == credits(10)
    assert not one.path.exists()
    assert one.restore(file).found.burnt
    journal = one.open()
    assert spent(journal) == credits(10)
    assert pay(journal, "a").answered  # what the backup has stays readable


def test_receipts_for_everything_since_save_the_rest_where_the_anchor_lives(one, tmp_path):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    held = spend(one, "b", "c")
    lose(one)
    assert one.restore(file, held).found.proved == 2
    assert spent(one.open()) == credits(3)


def test_on_a_second_machine_everything_counts_as_spent(one, two, tmp_path):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    released = 1 + len(spend(one, "b", "c"))
    found = two.restore(file)
    assert found.found.burnt
    assert any("nothing newer" in why for why in found.found.reasons)
    released += two.spend_all("two")
    released += one.spend_all("one")
    assert released == 10


def test_receipts_prove_no_end_on_a_second_machine(one, two, tmp_path):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    held = spend(one, "b")
    spend(one, "c")
    assert two.restore(file, held).found.burnt


@pytest.mark.parametrize("when", ["before", "after", "later"])
def test_an_anchor_copied_along_has_no_say(one, two, tmp_path, when):
    """As old as the backup, or newer than it and older than the ledger: a copy is a copy."""
    spend(one, "a")
    if when == "before":
        shutil.copytree(one.state, two.home / "state")
    file = one.back_up(tmp_path / "b")
    if when == "after":
        shutil.copytree(one.state, two.home / "state")
    released = 1 + len(spend(one, "b"))
    if when == "later":
        shutil.copytree(one.state, two.home / "state")
    assert two.restore(file).found.burnt
    assert released + one.spend_all("one") + two.spend_all("two") == 10


def test_restored_twice_from_one_backup(one, two, tmp_path, monkeypatch):
    three = Machine(tmp_path / "three", monkeypatch)
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    released = 1 + len(spend(one, "b"))
    for machine in (two, three):
        machine.restore(file)
    released += sum(machine.spend_all(machine.home.name) for machine in (two, three, one))
    assert released == 10


# -- with a journal -------------------------------------------------------------------------------


@pytest.fixture
def kept(one, two, second):
    one.receipts = two.receipts = second
    return second


def test_the_journal_on_the_same_machine(one, tmp_path, kept):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    journal = one.open()
    journal.grant("ann", credits(3))
    ask(journal, "b", analyst="ann")
    pay(journal, "unanswered")
    journal.close()
    lose(one)
    tried = one.restore(file, dry_run=True)
    assert (tried.found.burnt, tried.found.proved) == (False, 2)
    assert one.restore(file).found == tried.found
    assert spent(one.open()) == credits(3)


def test_the_journal_on_a_second_machine_fences_the_first(one, two, tmp_path, kept):
    """The second disk in another machine. The first one is not dead at all."""
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    released = 1 + len(spend(one, "b", "c"))
    assert not two.restore(file).found.burnt
    released += len(spend(two, "d"))
    with pytest.raises(Refused, match="restored elsewhere"):
        one.open()
    released += two.spend_all("two")
    assert released == 10


def test_a_first_machine_that_runs_keeps_the_journal(one, two, tmp_path, kept):
    journal = one.open()
    file = one.back_up(tmp_path / "b")
    ask(journal, "a")
    with pytest.raises(Refused, match="receipts journal cannot be used"):
        two.restore(file, wait=0.0)
    one.here()
    ask(journal, "b")
    journal.close()


def test_restored_twice_with_one_journal_the_last_one_goes_on(
    one, two, tmp_path, kept, monkeypatch
):
    three = Machine(tmp_path / "three", monkeypatch, kept)
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    two.restore(file)
    released = 1 + len(spend(two, "b", "c"))
    assert not three.restore(file).found.burnt
    journal = three.open()
    assert spent(journal) == credits(3)
    journal.close()
    with pytest.raises(Refused, match="restored elsewhere"):
        two.open()
    released += three.spend_all("three")
    assert released == 10


def test_a_copy_of_the_journal_proves_no_end(one, two, tmp_path, kept):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    released = 1 + len(spend(one, "b"))
    two.receipts = tmp_path / "copy"
    shutil.copy2(kept, two.receipts)
    assert two.restore(file).found.burnt
    assert released + one.spend_all("one") + two.spend_all("two") == 10


def test_the_journal_of_another_ledger_is_refused(one, two, tmp_path, kept):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    lose(one)
    other = publish(tmp_path / "other.ledger", receipts=tmp_path / "other.receipts")
    ask(other, "x")
    other.close()
    one.receipts = tmp_path / "other.receipts"
    with pytest.raises(Refused, match=r"is named: name the first one"):
        one.restore(file)
    assert not one.path.exists()


def test_a_table_published_since_burns(one, tmp_path, kept):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    other = one.open()
    more = publish(one.path, name="more")
    ask(more, "x")
    more.close()
    other.close()
    lose(one)
    assert one.restore(file).found.burnt
    with pytest.raises(Refused, match="was published before"):
        publish(one.path, name="more")


def test_a_population_pays_for_what_was_lost(one, tmp_path, kept):
    town = PopulationMembership("town", "{}", credits(10), Fraction(1), Fraction(1))
    journal = one.open(member=town)
    file = one.back_up(tmp_path / "b")
    ask(journal, "a")
    journal.close()
    lose(one)
    assert not one.restore(file).found.burnt
    one.open(member=town).close()
    other = publish(one.path, name="other", member=town, cap=credits(20))
    for number in range(9):
        ask(other, f"o{number}")
    with pytest.raises(BudgetSpent):
        ask(other, "o9")


# -- places, damage, crashes ----------------------------------------------------------------------


def test_a_ledger_that_is_whole_is_not_replaced(one, tmp_path):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    spend(one, "b")
    with pytest.raises(Refused, match="whole and has"):
        one.restore(file)


def test_a_damaged_ledger_goes_aside(one, tmp_path):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    one.path.write_bytes(b"ruined" * 1000)
    Path(f"{one.path}-wal").write_bytes(b"old log")
    found = one.restore(file)
    assert found.aside.read_bytes() == b"ruined" * 1000
    assert Path(f"{found.aside}-wal").read_bytes() == b"old log"
    assert spent(one.open()) == ONE


def test_another_ledger_in_the_place_stays(one, tmp_path):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    lose(one)
    shutil.rmtree(one.state / "paths")
    publish(one.path, name="other").close()
    with pytest.raises(Refused, match=r"another ledger|not the ledger"):
        one.restore(file)


def test_data_that_another_ledger_has_here_is_not_taken(one, two, tmp_path):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    two.here()
    publish(two.home / "mine.ledger", fingerprint="f").close()
    with pytest.raises(Refused, match="registered with another ledger"):
        two.restore(file)


@pytest.mark.parametrize("harm", ["cut", "flipped", "text"])
def test_a_damaged_backup_is_refused(one, tmp_path, harm):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    content = bytearray(file.read_bytes())
    if harm == "cut":
        content = content[: len(content) // 2]
    elif harm == "flipped":
        content[len(content) // 2] ^= 1
    else:
        content = bytearray(b"a table\n")
    file.write_bytes(content)
    lose(one)
    with pytest.raises(Refused, match="not a whole backup"):
        one.restore(file)
    assert not one.path.exists()


def test_the_register_comes_along(one, two, tmp_path):
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    two.restore(file)
    two.open().close()
    with pytest.raises(Refused, match="registered with another"):
        publish(two.home / "new.ledger", fingerprint="f")
    with pytest.raises(Refused, match="not what was published"):
        publish(two.path, fingerprint="other rows")


STEPS = ["state restored", "journal taken over", "ledger restored"]


@pytest.mark.sample(4)
@pytest.mark.parametrize("with_journal", [False, True])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("where", ["same", "second"])
def test_killed_in_a_restore(one, two, tmp_path, second, step, where, with_journal):
    if with_journal:
        one.receipts = two.receipts = second
    machine = one if where == "same" else two
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    spend(one, "b", "c")
    if where == "same":
        lose(one)
    child = os.fork()
    if child == 0:
        failpoints.on_step = lambda reached: (
            reached == step and os.kill(os.getpid(), signal.SIGKILL)
        )
        try:
            machine.restore(file)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    machine.here()
    with pytest.raises(Refused):  # whatever is there does not open by itself
        machine.open()
    try:
        machine.restore(file)
    except Refused as reason:  # it is in its place already
        assert "sulq recover" in str(reason)
        recover(machine.path, journal=machine.receipts)
    journal = machine.open()
    assert spent(journal) == credits(3 if with_journal else 10)
    journal.close()


def test_killed_in_a_backup(one, tmp_path):
    spend(one, "a")
    file = tmp_path / "backups" / "b"
    file.parent.mkdir()
    child = os.fork()
    if child == 0:
        failpoints.on_step = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        try:
            one.back_up(file)
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert not file.exists()
    one.back_up(file)
    assert spent(one.open()) == ONE


def test_keys_and_unanswered_questions_of_before_are_closed(one, tmp_path, kept):
    journal = one.open()
    pay(journal, "open", key="k")
    file = one.back_up(tmp_path / "b")
    journal.settle(pay(journal, "open", key="k"), [5])
    journal.close()
    lose(one)
    one.restore(file)
    journal = one.open()
    with pytest.raises(Refused, match="lost when the ledger was recovered"):
        pay(journal, "open", key="k")
    assert pay(journal, "open").charged == {"": ONE}
    assert spent(journal) == credits(2)


def test_the_chain_of_a_restored_ledger_verifies(one, two, tmp_path, kept):
    held = spend(one, "a")
    file = one.back_up(tmp_path / "b")
    lost = spend(one, "b")
    two.restore(file)
    spend(two, "c")
    found = inspect(two.path)
    assert found.anchored
    found.confirm(held[0])
    with pytest.raises(Refused, match="recovery counted it as spent"):
        found.confirm(lost[0])


def test_without_the_check_of_copies_the_budget_is_spent_twice(one, two, tmp_path, monkeypatch):
    """The control: an old anchor's word, if it were taken."""
    spend(one, "a")
    file = one.back_up(tmp_path / "b")
    shutil.copytree(one.state, two.home / "state")
    monkeypatch.setattr(recovery, "is_own", lambda _: True)
    two.restore(file)
    assert 1 + one.spend_all("one") + two.spend_all("two") > 10


def test_of_a_ledger_on_a_server_key_and_register_are_kept(address, tmp_path, monkeypatch):
    """The chain is PostgreSQL's to copy; what is lost of it counts as everything."""
    journal = publish(address, fingerprint="f")
    ask(journal, "a")
    (line,), problems = back_up([address], tmp_path / "b")
    saved = save(address)
    ask(journal, "b")
    journal.close()
    assert (line.on_server, problems) == (True, {})
    with tarfile.open(tmp_path / "b") as archive:
        assert not any(name.endswith("/ledger") for name in archive.getnames())
    with Backup(tmp_path / "b") as backup:
        with pytest.raises(Refused, match="on a PostgreSQL server"):
            restore(backup, "people", tmp_path / "file.ledger")
        monkeypatch.setenv("SULQ_STATE", str(tmp_path / "two"))
        put_back(address, saved)
        tried = restore(backup, "people", address, dry_run=True)
        assert tried.found.burnt
        found = restore(backup, "people", address)
    assert found.found.burnt
    journal = publish(address, fingerprint="f")
    assert spent(journal) == credits(10)
    journal.close()
