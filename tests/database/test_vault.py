"""The vault of a table: made when it is published, told from any other file, made again when gone.

The rows are fictional, and no answer here is wrong because of a fault: it is refused, or right.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from sulq import Category, Database, Flag, Number, Promise, Schema, col, count, mean
from sulq.database import vault as vault_file
from sulq.database.vault import TableVault, check_vault
from sulq.errors import Refused
from sulq.kernel.engines.duckdb.vault import VaultEngine
from sulq.kernel.schema.bind import bind

SCHEMA = Schema(
    Number("age", 0, 120, step=1),
    Number("income", 0, 500_000),
    Flag("smoker"),
    Category("city", ["Oslo", "Paris"]),
)
PROMISE = Promise(epsilon=1, delta=1e-6, credits=1000)
QUESTION = mean(col("income").clip(0, 100_000), where=col("smoker") & (col("city") == "Oslo"))


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def written(path: Path, rows: int, seed: int = 0) -> Path:
    duckdb.execute(
        f"COPY (SELECT hash(i, {seed}) % 100 AS age, (hash(i, 2) % 50000000) / 100.0 AS income,"
        " hash(i, 3) % 5 = 0 AS smoker, CASE hash(i, 4) % 3 WHEN 0 THEN 'Oslo' WHEN 1 THEN 'Paris'"
        f" ELSE 'Rome' END AS city, 'n' || i AS name FROM range({rows}) t(i)) TO '{path}'"
    )
    return path


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return written(tmp_path / "people.parquet", 5_000)


def opened(
    people: Path, vault: bool | None = True, schema: Schema = SCHEMA, **more: object
) -> Database:
    ledger = people.with_name("people.ledger")
    return Database.open(
        people,
        schema,
        PROMISE,
        ledger,
        name="people",
        publish=True,
        vault=vault,
        **more,  # type: ignore[arg-type]
    )


def place_of(people: Path) -> TableVault:
    return TableVault(people.with_name("people.ledger"), "people")


def file_of(people: Path) -> Path:
    (found,) = place_of(people).folder.glob("*.duckdb")
    return found


def sums(db: Database) -> list[int]:
    return db.engine.exact_sums(bind(QUESTION, db.schema).sums)


def reads_vault(db: Database) -> bool:
    return isinstance(db.engine, VaultEngine)


def test_a_table_with_a_vault_answers_from_the_same_integers(people: Path) -> None:
    with opened(people, vault=False) as db:
        assert not reads_vault(db)
        expected = sums(db)
    with opened(people) as db:
        assert reads_vault(db)
        assert sums(db) == expected
        first = db.ask(QUESTION, credits=2)
        assert db.ask(QUESTION, credits=2).value == first.value  # the stored answer
        assert db.size == 5_000
    with opened(people) as db:  # and again from the file that is there
        assert reads_vault(db)
        assert sums(db) == expected
        assert db.ask(QUESTION, credits=2).value == first.value


def test_only_its_owner_can_read_it(people: Path, state: Path) -> None:
    opened(people).close()
    for found in (state / "vaults").rglob("*"):
        assert found.stat().st_mode & 0o077 == 0, found


def test_nothing_outside_the_state_directory_knows_its_digest(
    people: Path, state: Path, tmp_path: Path
) -> None:
    with opened(people) as db:
        db.ask(count())
    record = place_of(people).record()
    assert record is not None
    for found in tmp_path.rglob("*"):
        if found.is_file() and not found.is_relative_to(state):
            assert record.digest.encode() not in found.read_bytes(), found
    held = file_of(people).read_bytes()
    assert b"n4999" not in held  # a column that nobody declared


def test_a_file_that_is_gone_is_made_again(people: Path) -> None:
    with opened(people) as db:
        expected = sums(db)
    file_of(people).unlink()
    with opened(people) as db:
        assert reads_vault(db)
        assert sums(db) == expected
    shutil.rmtree(place_of(people).folder)
    with opened(people) as db:
        assert reads_vault(db)
        assert sums(db) == expected


def test_a_record_that_cannot_be_read_costs_time_only(people: Path) -> None:
    opened(people).close()
    (place_of(people).folder / "record.json").write_text('{"format": 1')
    with opened(people) as db:
        assert reads_vault(db)
    assert len(list(place_of(people).folder.glob("*.duckdb"))) == 1


def spoil(place: Path, at: int = 300_000) -> None:
    """Another byte, in the middle of the values."""
    with place.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def test_a_file_that_was_edited_closes_the_table(people: Path) -> None:
    opened(people).close()
    spoil(file_of(people))
    for _ in range(2):
        with pytest.raises(Refused, match="not the file that was made") as told:
            opened(people)
        assert str(file_of(people)) in str(told.value)
    file_of(people).unlink()  # the remedy that it names
    with opened(people) as db:
        assert reads_vault(db)


def test_the_vault_of_other_rows_is_refused(people: Path, tmp_path: Path) -> None:
    """Stale or swapped: another valid vault of the same schema and size."""
    opened(people).close()
    other = written(tmp_path / "other.parquet", 5_000, seed=9)
    elsewhere = Database.open(
        other, SCHEMA, PROMISE, tmp_path / "other.ledger", name="o", publish=True, vault=True
    )
    elsewhere.close()
    (swapped,) = TableVault(tmp_path / "other.ledger", "o").folder.glob("*.duckdb")
    shutil.copy(swapped, file_of(people))
    with pytest.raises(Refused, match="not the file that was made"):
        opened(people)


def test_a_copy_of_the_same_bytes_is_read_whole_once_and_taken(people: Path) -> None:
    """Restored from a backup of the state directory, say."""
    opened(people).close()
    place = file_of(people)
    content = place.read_bytes()
    place.unlink()
    place.write_bytes(content)
    place.chmod(0o600)
    before = place_of(people).record()
    with opened(people) as db:
        assert reads_vault(db)
    after = place_of(people).record()
    assert before is not None
    assert after is not None
    assert before.facts != after.facts
    assert before.digest == after.digest


def test_an_edit_that_keeps_size_time_and_header_is_found_in_the_background(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_file, "SETTLED", 0.0)
    opened(people).close()
    place, before = file_of(people), file_of(people).stat()
    spoil(place)
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    with opened(people) as db:
        db.engine.checked.wait(20)  # type: ignore[attr-defined]
        with pytest.raises(Refused, match="has changed"):
            db.ask(count())
        assert db.ledger.remaining("owner").credits_fraction == 1000
    with pytest.raises(Refused, match="not the file that was made"):
        check_vault(people.with_name("people.ledger"), "people")


def test_a_file_that_changes_while_it_is_open_closes_the_table(people: Path) -> None:
    with opened(people) as db:
        spoil(file_of(people))
        with pytest.raises(Refused, match="has changed"):
            db.ask(count())


def test_the_source_is_still_watched(people: Path) -> None:
    with opened(people) as db:
        written(people, 5_000, seed=4)
        with pytest.raises(Refused, match="has changed"):
            db.ask(count())


def test_a_large_table_has_one_unasked(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(people, vault=None) as db:
        assert not reads_vault(db)
    monkeypatch.setattr(vault_file, "LARGE", 5_000)
    with opened(people, vault=None) as db:
        assert reads_vault(db)
    with opened(people, vault=False) as db:
        assert not reads_vault(db)


def test_without_room_on_the_disk_the_source_itself_is_read(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_file, "LARGE", 1)
    usage = shutil.disk_usage(people.parent)
    full = type(usage)(usage.total, usage.used, 1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with opened(people, vault=None) as db:
        assert not reads_vault(db)
        db.ask(count(where=col("smoker")))
    with pytest.raises(Refused, match="MiB free"):
        opened(people)
    with opened(people, vault=None) as db:  # nothing was lost
        assert db.remaining == 999


CHILD = """
import os, resource, signal, sys, threading
from pathlib import Path
from tests.database import test_vault as here
from sulq.database import vault
from sulq.kernel.engines.duckdb import vault as writer

how, people = sys.argv[1], Path(sys.argv[2])
vault.LARGE = 1
def end(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if how == "while it is written":
    run = writer.run
    writer.run = lambda at, sql, why: end() if sql.startswith("CHECKPOINT") else run(at, sql, why)
if how == "before it is noted":
    vault.TableVault._write = end
if how == "disk":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
with here.opened(people, vault=None) as db:
    db.ask(here.count(where=here.col("smoker")))
    print(here.reads_vault(db), db.remaining)
"""


def child(how: str, people: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", CHILD, how, str(people)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("when", ["while it is written", "before it is noted"])
def test_killed_while_it_is_made_it_is_made_again(people: Path, when: str) -> None:
    assert child(when, people).returncode == -9
    assert place_of(people).record() is None
    assert list(place_of(people).folder.glob("*.duckdb"))  # what was begun
    with opened(people) as db:
        assert reads_vault(db)
        assert db.remaining == 1000
    assert len(list(place_of(people).folder.iterdir())) == 3  # lock, record, file


def test_a_disk_that_fills_up_meanwhile_costs_nothing(people: Path) -> None:
    done = child("disk", people)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "999"]
    assert not list(place_of(people).folder.glob("*.duckdb*"))


def test_new_rows_have_a_vault_of_their_own_and_the_old_one_goes(
    people: Path, tmp_path: Path
) -> None:
    with opened(people) as db:
        db.ask(count(where=col("smoker")))
        before = file_of(people)
        more = written(tmp_path / "more.parquet", 6_000)
        grown = db.grow(more)
        assert reads_vault(grown)
        assert grown.size == 6_000
        assert file_of(people) != before
        assert not before.exists()
        grown.close()


def test_another_grid_has_a_vault_of_its_own(people: Path) -> None:
    with opened(people) as db:
        wider = Promise(epsilon=2, delta=1e-6, credits=2000)
        amended = db.amend(promise=wider, schema=SCHEMA)
        assert reads_vault(amended)
        amended.close()


def test_a_withdrawn_table_leaves_none(people: Path) -> None:
    opened(people).withdraw()
    assert not list(place_of(people).folder.glob("*.duckdb"))
    assert place_of(people).record() is None


@pytest.mark.parametrize(
    ("source", "schema", "ledger", "words"),
    [
        ("frame", SCHEMA, "people.ledger", "made of a file"),
        ("file", SCHEMA, ":memory:", "in memory"),
        ("file", Schema(*SCHEMA.columns, unit="name", max_rows=2), "people.ledger", "persons"),
    ],
)
def test_what_can_have_none_says_why(
    source: str, schema: Schema, ledger: str, words: str, people: Path
) -> None:
    rows = people if source == "file" else duckdb.read_parquet(str(people)).to_arrow_table()
    place = ledger if ledger == ":memory:" else people.with_name(ledger)
    with pytest.raises(Refused, match=words):
        Database.open(rows, schema, PROMISE, place, name="people", publish=True, vault=True)
    Database.open(rows, schema, PROMISE, place, name="people", publish=True).close()
