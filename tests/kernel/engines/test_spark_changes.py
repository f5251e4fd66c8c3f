"""A table of Spark that changes is noticed, what fails says one thing, no row is left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark_session import options, spark_url, why_not

import sulq.kernel.engines.spark.blocks as blocks_file
from sulq.answers.statistics import count
from sulq.database import Database
from sulq.database.facts import name_of
from sulq.errors import EngineFailed, InvalidQuery, Refused
from sulq.kernel.engines import Engine, open_engine
from sulq.kernel.engines.spark.session import read_address
from sulq.kernel.engines.sql.engine import Work
from sulq.kernel.query.expressions import col
from sulq.kernel.query.sum_query import outer
from sulq.kernel.query.vectors import columns
from sulq.kernel.schema import program as b
from sulq.kernel.schema.columns import Category, Number, Schema
from sulq.kernel.schema.promise import Promise

SCHEMA = Schema(Number("age", 0, 120), Category("city", ["a", "b"]))
WIDE = Schema(*(Number(f"x{i}", 0, 1) for i in range(12)))
COUNT = b.RowSums(b.Always(), (b.Fixed(1),))
CONSTANT = str(EngineFailed())
PROMISE = Promise(1, "1e-6", queries=1000)


def people(rows: int, first: float = 0.0) -> pa.Table:
    return pa.table(
        {
            "age": [first if i == 0 else float(i % 90) for i in range(rows)],
            "city": ["ab"[i % 2] for i in range(rows)],
            "secret": ["SECRET"] * rows,
        }
    )


def folder_of(tmp_path: Path) -> Path:
    folder = tmp_path / "people"
    folder.mkdir()
    for number in range(2):
        pq.write_table(people(150), folder / f"{number}.parquet")
    return folder


def said(error: BaseException) -> str:
    parts = []
    seen: BaseException | None = error
    while seen is not None:
        parts.append(f"{seen!r} {seen}")
        seen = seen.__cause__ or seen.__context__
    return " ".join(parts)


# --- changes ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_every_change_of_files_is_noticed(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    engine = open_engine(spark_url(folder), SCHEMA)
    assert engine.unchanged()
    assert engine.exact_sums(COUNT) == [300]
    (folder / "_SUCCESS").touch()  # no rows
    assert engine.unchanged()
    pq.write_table(people(1), folder / "2.parquet")
    assert not engine.unchanged()
    (folder / "2.parquet").unlink()
    assert engine.unchanged()
    kept = (folder / "0.parquet").stat().st_mtime_ns
    pq.write_table(people(150, first=7.0), folder / "0.parquet")
    os.utime(folder / "0.parquet", ns=(kept, kept + 10**9))
    assert not engine.unchanged()
    shutil.rmtree(folder)
    assert not engine.unchanged()
    with pytest.raises(EngineFailed):
        engine.exact_sums(COUNT)
    engine.close()


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_the_fingerprint_is_of_names_and_rows(tmp_path: Path) -> None:
    whole = people(100)
    tables = {
        "a": whole,
        "b": whole.take(list(range(99, -1, -1))),
        "c": whole.slice(1),
        "d": people(100, first=0.00001),
        "e": whole.set_column(0, "age", pa.array([None, *whole["age"].to_pylist()[1:]])),
    }
    prints = {}
    for name, table in tables.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
        engine = open_engine(spark_url(tmp_path / f"{name}.parquet"), SCHEMA)
        prints[name] = engine.fingerprint()
        engine.close()
    assert prints["a"] == prints["b"]
    assert len(set(prints.values())) == 4


@pytest.mark.slow
def test_a_table_of_the_catalogue(spark: Any, tmp_path: Path) -> None:
    spark.read.parquet(str(folder_of(tmp_path))).createOrReplaceTempView("given")
    spark.sql("CREATE DATABASE IF NOT EXISTS clinic")
    spark.sql("DROP TABLE IF EXISTS clinic.patients")
    spark.sql("CREATE TABLE clinic.patients USING parquet AS SELECT * FROM given")
    url = "spark+session://?table=clinic.patients"
    engine = open_engine(url, SCHEMA)
    assert engine.exact_sums(COUNT) == [300]
    assert engine.unchanged()
    spark.sql("INSERT INTO clinic.patients SELECT * FROM given LIMIT 1")
    assert not engine.unchanged()
    spark.sql("DROP TABLE clinic.patients")
    assert not engine.unchanged()
    engine.close()
    spark.sql("CREATE OR REPLACE TEMP VIEW seen AS SELECT 1 AS age, 'a' AS city")
    spark.sql("CREATE OR REPLACE VIEW clinic.seen AS SELECT 1 AS age, 'a' AS city")
    with pytest.raises(InvalidQuery, match="view"):
        open_engine("spark+session://?table=clinic.seen", SCHEMA)
    spark.sql("DROP VIEW clinic.seen")


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_a_ledger_knows_its_table_again(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    with Database.open(spark_url(folder), SCHEMA, PROMISE, tmp_path / "ledger", publish=True) as db:
        assert db.ledger.header.name == "people"
        db.ask(count())
        with pytest.raises(Refused, match="changed"):
            pq.write_table(people(1), folder / "2.parquet")
            db.ask(count(where=col("age") > 3))
    with pytest.raises(Refused):
        Database.open(spark_url(folder), SCHEMA, PROMISE, tmp_path / "ledger", publish=True)
    (folder / "2.parquet").unlink()
    with Database.open(spark_url(folder), SCHEMA, PROMISE, tmp_path / "ledger", publish=True) as db:
        db.ask(count(where=col("age") > 3))


# --- failures -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_an_error_of_spark_is_a_constant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A function that quotes the cell, and a worker that does."""
    engine: Any = open_engine(spark_url(folder_of(tmp_path)), SCHEMA)

    def quoting(session: Any) -> list[int]:
        session.sql("SELECT max(CAST(raise_error(secret) AS STRING)) FROM source_rows").collect()
        return [0]

    def raising(batches: Any) -> Any:
        raise ValueError(next(iter(batches)).to_pydict())

    def worker(session: Any) -> list[int]:
        rows = session.sql("SELECT secret FROM source_rows")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            failing = rows.mapInArrow(raising, "secret STRING")
        with pytest.raises(Exception, match="SECRET"):
            failing.collect()
        failing.collect()
        return [0]

    for work in (quoting, worker):
        monkeypatch.setattr(engine, "_work", lambda _, work=work: Work(1, work))
        with pytest.raises(EngineFailed) as caught:
            engine.exact_sums(COUNT)
        assert said(caught.value) == f"{caught.value!r} {CONSTANT}"
    assert "SECRET" not in "".join(capfd.readouterr())
    monkeypatch.undo()
    assert engine.exact_sums(COUNT) == [300]
    engine.close()


def wide_rows(path: Path, rows: int) -> Path:
    table = pa.table({f"x{i}": [(j % (i + 7)) / 16 for j in range(rows)] for i in range(12)})
    pq.write_table(table, path)
    return path


MOMENTS = outer(columns([f"x{i}" for i in range(12)]), columns([f"x{i}" for i in range(12)]))


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_a_worker_killed_mid_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The charge stands, the error is the constant, the same question then works."""
    path, note = wide_rows(tmp_path / "w.parquet", 500), tmp_path / "pid"
    real = blocks_file.partial_sums

    def waiting(program: Any, place: Any) -> Any:
        inner, at = real(program, place), str(note)

        def sums(batches: Any) -> Any:
            Path(at).write_text(str(os.getpid()))
            time.sleep(60)
            yield from inner(batches)

        return sums

    monkeypatch.setattr(blocks_file, "partial_sums", waiting)
    with Database.open(spark_url(path), WIDE, PROMISE, tmp_path / "ledger", publish=True) as db:
        before = db.statement().spent
        failed: list[BaseException] = []

        def ask() -> None:
            try:
                db.ask(MOMENTS, key="the-question")
            except Exception as error:  # noqa: BLE001
                failed.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        deadline = time.monotonic() + 90
        while not (note.exists() and note.read_text()):
            assert asking.is_alive() and time.monotonic() < deadline, failed
            time.sleep(0.02)
        os.kill(int(note.read_text()), signal.SIGKILL)
        asking.join()
        assert [str(error) for error in failed] == [CONSTANT]
        charged = db.statement().spent
        assert charged > before
        monkeypatch.undo()
        db.ask(MOMENTS, key="the-question")
        assert db.statement().spent == charged  # the same key, the same charge


DRIVER_KILLED = """
import os, signal, sys, threading, time
from tests.kernel.engines.test_spark_changes import *
import sulq.kernel.engines.spark.engine as engine_file

folder, extra = Path(sys.argv[1]), sys.argv[2]
path = wide_rows(folder / "w.parquet", 500)
url = f"spark+local://{path}?{extra}"
with Database.open(url, WIDE, PROMISE, folder / "ledger", publish=True) as db:
    from pyspark import SparkContext
    real, entered = engine_file.SparkEngine._execute, threading.Event()
    def slow(self, session, sql):
        entered.set()
        return session.sql("SELECT sum(hash(id)) FROM range(1000000000000)").collect()
    engine_file.SparkEngine._execute = slow
    failed = []
    def ask():
        try:
            db.ask(count(where=col("x1") > 0.3), key="the-question")
        except Exception as error:
            failed.append(error)
    before = db.statement().spent
    asking = threading.Thread(target=ask)
    asking.start()
    entered.wait()
    time.sleep(1)
    assert asking.is_alive()
    SparkContext._gateway.proc.kill()
    asking.join()
    assert [str(error) for error in failed] == [CONSTANT], failed
    charged = db.statement().spent
    assert charged > before
    engine_file.SparkEngine._execute = real
    db.ask(count(where=col("x1") > 0.3), key="the-question")
    assert db.statement().spent == charged
    db.ask(MOMENTS)
left = [at for at in (folder / "local").rglob("*") if at.is_file()]
print("DONE", len(left))
"""


@pytest.mark.slow
def test_a_driver_killed_mid_question(tmp_path: Path) -> None:
    """A driver of our own: the charge stands, and the next question starts another one."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    wanted = ("spark.driver.memory", "spark.driver.extraJavaOptions", "spark.local.dir")
    given = options(tmp_path / "local")
    small = {name: given[name] for name in wanted}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DRIVER_KILLED), str(tmp_path), urlencode(small)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"PYTHONPATH": f"src{os.pathsep}.", "SULQ_STATE": str(tmp_path / "s")},
    )
    assert "DONE" in done.stdout, done.stdout + done.stderr
    assert "SECRET" not in done.stdout + done.stderr


# --- addresses, complaints ----------------------------------------------------------------------


def test_addresses() -> None:
    local = read_address("spark+local:///data/my%20people.parquet?spark.driver.memory=4g")
    assert (local.kind, local.path, local.table) == ("local", "/data/my people.parquet", ())
    assert local.options == {"spark.driver.memory": "4g"}
    cluster = read_address("spark://h1:7077,h2:7077?table=db.people")
    assert (cluster.master, cluster.table) == ("spark://h1:7077,h2:7077", ("db", "people"))
    lake = read_address("spark://h:7077?path=s3a://b/people&format=delta")
    assert (lake.path, lake.format) == ("s3a://b/people", "delta")
    remote = read_address("sc://h:15002/;token=SECRET?table=people")
    assert (remote.kind, remote.master) == ("connect", "sc://h:15002/;token=SECRET")
    assert "SECRET" not in repr(remote)
    for wrong in (
        "spark://h:7077",
        "spark+local://",
        "spark+local:///p?table=t",
        "sc://?table=t",
        "spark+session://h?table=t",
        "spark://h?table=a..b",
        "spark://h?table=t&x=1",
        "sc://h?table=a%00b",
        "spark+local://people.parquet",
    ):
        with pytest.raises(InvalidQuery, match="a table of Spark is"):
            read_address(wrong)
    with pytest.raises(InvalidQuery, match="parquet, orc"):
        read_address("spark://h?path=/p&format=csv")
    with pytest.raises(InvalidQuery, match="driver is started"):
        read_address("sc://h?table=t&spark.executor.memory=1g")


def test_a_ledger_calls_the_table_by_its_own_name() -> None:
    assert name_of("spark+local:///data/people.parquet") == "people"
    assert name_of("spark://h:7077?table=db.people") == "people"
    assert name_of("sc://h:15002/;token=SECRET?path=s3a://bucket/a/people") == "people"


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_complaints_name_the_remedy_and_no_row(tmp_path: Path) -> None:
    def refused(url: str, schema: Schema, words: str) -> None:
        with pytest.raises((InvalidQuery, Refused), match=words) as caught:
            open_engine(url, schema)
        assert "SECRET" not in said(caught.value)

    url = spark_url(folder_of(tmp_path))
    refused(url, Schema(Number("nobody", 0, 1)), r"no column 'nobody'.*\['age', 'city', 'secret'\]")
    refused(url, Schema(Number("secret", 0, 1)), "hold numbers but the table has string")
    refused(url, Schema(Number("AGE", 0, 1)), "no column 'AGE'")
    refused(url, Schema(Number("age", 0, 1), unit="city2", max_rows=2), "no column 'city2'")
    refused(url, Schema(Category("city"), unit="age", max_rows=2), "integers or text")
    refused(spark_url(tmp_path / "SECRET"), SCHEMA, "cannot be read")
    refused("spark+session://?table=nothing", SCHEMA, "cannot be read")
    refused("spark://127.0.0.1:1?table=t", SCHEMA, "already uses another Spark")
    (tmp_path / "bad.parquet").write_bytes(b"SECRET" * 100)
    refused(spark_url(tmp_path / "bad.parquet"), SCHEMA, "cannot be read")
    pq.write_table(people(1).slice(1), tmp_path / "none.parquet")
    refused(spark_url(tmp_path / "none.parquet"), SCHEMA, "no rows")


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_many_threads_ask_at_once(tmp_path: Path) -> None:
    engine: Engine = open_engine(spark_url(folder_of(tmp_path)), SCHEMA)
    found: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: found.extend(engine.exact_sums(COUNT) for _ in range(2)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[300]] * 8
    engine.close()


def test_without_the_driver_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(Refused, match=r"pip install 'sulq\[spark\]'"):
        open_engine("spark+local:///people.parquet", SCHEMA)
