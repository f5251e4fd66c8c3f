"""The engine reaches no other file, writes none, and says nothing about rows."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import duckdb
import pytest
from tests.kernel.engines import reference, tables

from sulq.errors import EngineFailed
from sulq.kernel.engines.duckdb.engine import DuckDBEngine, open_duckdb
from sulq.kernel.schema import program as b

COUNT = b.RowSums(b.Always(), (b.Fixed(1),))


def locked(folder: Path) -> tuple[DuckDBEngine, duckdb.DuckDBPyConnection]:
    engine = open_duckdb(tables.parquet(tables.rows(1, 50), folder / "a.parquet"), tables.SCHEMA)
    return engine, engine._connection


@pytest.mark.parametrize(
    "attack",
    [
        "SELECT * FROM read_text('{other}')",
        "SELECT * FROM read_csv('{other}')",
        "SELECT * FROM sniff_csv('{other}')",
        "SELECT * FROM read_parquet('{folder}/b.parquet')",
        "SELECT * FROM glob('{folder}/*')",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "ATTACH '{folder}/new.db' AS d",
        "INSTALL httpfs",
        "LOAD httpfs",
        "EXPORT DATABASE '{folder}/dump'",
        "SET enable_external_access = true",
        "SET temp_directory = '{folder}'",
        "SET threads = 7",
        "RESET lock_configuration",
        "SELECT * FROM secret_frame",
        "SELECT secret FROM people",
    ],
)
def test_nothing_else_can_be_reached(attack: str, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    tables.parquet(tables.rows(2, 5), tmp_path / "b.parquet")
    secret_frame = tables.table(tables.rows(3, 5))
    engine, connection = locked(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(duckdb.Error):
        connection.execute(attack.format(other=other, folder=tmp_path)).fetchall()
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert secret_frame.num_rows == 5
    engine.close()


def test_loaded_tables_leave_no_way_back_to_their_source(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("x,secret\n1,2\n")
    schema = tables.Schema(tables.Number("x", 0, 9))
    engine = open_duckdb(path, schema)
    for query in (f"SELECT * FROM read_csv('{path}')", "SELECT * FROM source", "FROM frame"):
        with pytest.raises(duckdb.Error):
            engine._connection.execute(query).fetchall()
    engine.close()


def test_only_declared_columns_exist(tmp_path: Path) -> None:
    engine, connection = locked(tmp_path)
    described = connection.execute("DESCRIBE people").fetchall()
    assert [row[0] for row in described] == [f"c{i}" for i in range(len(tables.SCHEMA.columns))]
    engine.close()


def test_nothing_is_spilled_when_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    engine, connection = locked(tmp_path)
    assert connection.execute("SELECT current_setting('temp_directory')").fetchone() == ("",)
    engine.exact_sums(COUNT)
    engine.close()
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_a_failure_is_one_constant_message(tmp_path: Path) -> None:
    """A canary row makes DuckDB complain in its own words; none of them come out."""
    path = tables.parquet(tables.rows(1, 50), tmp_path / "a.parquet")
    engine = open_duckdb(path, tables.SCHEMA)
    engine._connection.execute(
        "CREATE OR REPLACE VIEW people AS SELECT CAST('CANARY' || 4711 AS BIGINT) AS c0"
    )
    program = b.RowSums(b.Always(), (b.Quantised("x", 0.0, 9.0, 1.0),))
    with pytest.raises(EngineFailed) as caught:
        engine.exact_sums(program)
    error = caught.value
    assert error.__cause__ is None and error.__context__ is None
    assert "CANARY" not in "".join(traceback.format_exception(error))
    assert str(error) == str(EngineFailed())
    path.unlink()
    with pytest.raises(EngineFailed):
        open_and_lose(tmp_path).exact_sums(COUNT)
    engine.close()


def open_and_lose(folder: Path) -> DuckDBEngine:
    engine, _ = locked(folder)
    engine.close()
    return engine


def test_close_twice_is_fine(tmp_path: Path) -> None:
    engine, _ = locked(tmp_path)
    engine.close()
    engine.close()


def test_many_threads_get_the_same_answer(tmp_path: Path) -> None:
    content = tables.rows(1, 50)
    engine, _ = locked(tmp_path)
    program = b.RowSums(b.Always(), (b.Quantised("y", 0.0, 1e6, 3.0), b.Fixed(1)))
    expected = reference.exact_sums(program, content)
    wrong: list[object] = []

    def work() -> None:
        for _ in range(20):
            try:
                found = engine.exact_sums(program)
            except EngineFailed as error:
                wrong.append(error)
                return
            if found != expected:
                wrong.append(found)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    engine.close()


def test_an_engine_left_open_is_silent_at_exit(tmp_path: Path) -> None:
    path = tables.parquet(tables.rows(1, 50), tmp_path / "a.parquet")
    code = (
        "from sulq.kernel.engines import open_engine; "
        "from sulq.kernel.schema.columns import Number, Schema;"
        f"e = open_engine({str(path)!r}, Schema(Number('x', 0, 9)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    assert (found.stdout, found.stderr) == (b"", b"")
