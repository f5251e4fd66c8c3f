"""Files that somebody made to break a parser: the parent survives, and says that it cannot read."""

from __future__ import annotations

import ctypes
import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from tests.kernel.engines.test_workbooks import workbook
from tests.people import SCHEMA, frame

from sulq import Database, InvalidQuery, Number, Promise, Schema, count
from sulq.kernel.engines.duckdb import quarantine
from sulq.kernel.engines.duckdb.csv_files import CsvFile
from sulq.kernel.engines.duckdb.quarantine import check_file
from sulq.kernel.engines.duckdb.workbooks import XlsxFile

PROMISE = Promise(1, "1e-6", 100)


@pytest.fixture
def bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every reader dies, as by a fault of a parser."""
    monkeypatch.setattr(quarantine, "CHILD", "import os; os.abort()")


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "people.parquet"
    frame(500).to_parquet(path)
    return path


@pytest.mark.slow
def test_a_whole_file_is_read(parquet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(parquet.parent)
    check_file(parquet.name, SCHEMA)
    check_file(str(parquet), SCHEMA)
    check_file(frame(5), SCHEMA)  # no file: nothing to do


def test_no_compiled_file_of_ours_is_cut_short(
    parquet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child may not write, so it must not try: half a compiled file breaks the next start."""
    seen: list[list[str]] = []
    run = subprocess.run
    monkeypatch.setattr(
        quarantine.subprocess, "run", lambda words, **more: seen.append(words) or run(words, **more)
    )
    check_file(parquet, SCHEMA)
    assert "B" in seen[0][1]


def test_a_reader_that_dies_is_a_file_that_cannot_be_read(parquet: Path, bomb: None) -> None:
    with pytest.raises(InvalidQuery, match=r"people.parquet cannot be read: the process") as said:
        check_file(parquet, SCHEMA)
    assert said.value.__cause__ is None


def test_growth_survives_it_and_nothing_is_recorded(
    parquet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    place, cut = tmp_path / "ledger", tmp_path / "cut.parquet"
    cut.write_bytes(parquet.read_bytes()[:-7])
    with Database.open(frame(300), SCHEMA, PROMISE, place, name="t", publish=True) as db:
        head = db.ledger.statement().head
        with pytest.raises(InvalidQuery, match="not a readable Parquet"):
            db.grow(cut, reason="more")
        with monkeypatch.context() as bomb:
            bomb.setattr(quarantine, "CHILD", "import os; os.abort()")
            with pytest.raises(InvalidQuery, match="cannot be read"):
                db.grow(parquet, reason="more")
            with pytest.raises(InvalidQuery, match="cannot be read"):
                Database.open(parquet, SCHEMA, PROMISE, place, name="t", grown_from=True)
        assert db.ledger.statement().head == head
        assert db.ask(count()).credits >= 0
        with db.grow(parquet, reason="more") as grown:
            assert grown.size == 500


def test_pages_that_only_a_question_would_read_are_read(parquet: Path) -> None:
    """The footer is whole and a page is not: found before a question is charged."""
    content = bytearray(parquet.read_bytes())
    for at in range(8, len(content) // 2):
        content[at] ^= 0x55
    parquet.write_bytes(bytes(content))
    with pytest.raises(InvalidQuery, match=r"cannot be read"):
        check_file(parquet, SCHEMA)


def test_the_words_of_the_rules_are_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,income\n1,2\n3,4,5,6\n")
    schema = Schema(Number("age", 0, 9), Number("income", 0, 9))
    with pytest.raises(InvalidQuery, match="line 3"):
        check_file(CsvFile(path), schema)


def test_a_workbook_is_read(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    path = workbook(tmp_path / "book.xlsx", one=[["x"], [1], [2]])
    check_file(XlsxFile(path, sheet="one"), Schema(Number("x", 0, 9)))


def test_a_reader_that_never_ends_is_ended(parquet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "SECONDS", 0.05)
    with pytest.raises(InvalidQuery, match="cannot be read"):
        check_file(parquet, SCHEMA)


PROBE = """
import os, socket, sys
from sulq.kernel.engines.duckdb import quarantine
quarantine._confine(0)
told = [name for name in os.environ if name.startswith(("SULQ", "AWS", "PG"))]
try:
    with open(sys.argv[1], "w") as file:
        file.write("x" * 10)
    told.append("wrote")
except OSError:
    pass
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[2])), 2)
    told.append("connected")
except OSError:
    pass
print(told)
"""


def test_the_child_has_neither_files_to_write_nor_a_network(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        path = os.pathsep.join(filter(None, sys.path))
        said = subprocess.run(
            [sys.executable, "-B", "-c", PROBE, str(tmp_path / "written"), port],
            env={"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
    assert "wrote" not in said.stdout, said
    child = os.fork()  # may processes here give the network up?
    if child == 0:
        os._exit(ctypes.CDLL(None).unshare(0x50000000) != 0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        assert "connected" not in said.stdout


# --- made-up files ------------------------------------------------------------------------------

FUZZ = """
import sys, random, pathlib, os
from sulq.kernel.schema.columns import Schema
from sulq.kernel.engines.duckdb.engine import open_duckdb
from sulq.errors import SulqError
import json
folder, facts = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
for path in sorted(folder.iterdir()):
    child = os.fork()
    if child == 0:
        code = 9
        try:
            open_duckdb(path, Schema.from_json(facts)).read_through()
            code = 0
        except SulqError:
            code = 3
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(path.name, status, flush=True)
"""


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Bytes changed, cut, doubled or moved, most of them where a Parquet file keeps its footer."""
    found = bytearray(content)
    for _ in range(rng.choice([1, 2, 8, 40])):
        near = rng.random() < 0.6
        first = max(0, len(found) - 900) if near else 0
        at = rng.randrange(first, len(found))
        match rng.randrange(5):
            case 0:
                found[at] = rng.randrange(256)
            case 1:
                found[at : at + 4] = rng.choice([b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\xff" * 8])
            case 2:
                del found[at : at + rng.choice([1, 3, 64])]
            case 3:
                found[at:at] = found[at : at + rng.choice([1, 8, 200])]
            case _:
                found[at] ^= 1 << rng.randrange(8)
        if len(found) < 16:
            break
    return bytes(found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_no_file_makes_the_reader_say_more_than_that(kind: str, tmp_path: Path) -> None:
    """600 files: each is read, refused with our own words, or ends its own child."""
    base = tmp_path / f"base.{kind}"
    small = frame(60)
    small.to_parquet(base) if kind == "parquet" else small.to_csv(base, index=False)
    rng, folder = random.Random(kind), tmp_path / "made"
    folder.mkdir()
    for number in range(600):
        (folder / f"{number:04}.{kind}").write_bytes(mutated(base.read_bytes(), rng))
    said = subprocess.run(
        [sys.executable, "-c", FUZZ, str(folder), json.dumps(SCHEMA.to_json())],
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    ended = [line.split() for line in said.stdout.splitlines()]
    assert len(ended) == 600, said.stderr[-500:]
    assert {int(code) for _, code in ended} <= {0, 3, -6, -8, -9, -11}, ended
    assert pd.Series([code for _, code in ended]).value_counts().to_dict()
