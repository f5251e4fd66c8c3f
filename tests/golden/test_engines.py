"""The recorded answers, from rows that lie elsewhere: Parquet, a vault, PostgreSQL, Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.golden import inside
from tests.golden.questions import ASKED
from tests.golden.records import plain, read
from tests.golden.world import PROMISES, TYPES, rows, table
from tests.postgres_server import MISSING, PostgresServer, programs, running
from tests.spark_session import spark_session, spark_url, why_not

from sulq import Database
from sulq.kernel.engines.duckdb.vault import VaultEngine

STORED = {
    "int64": "bigint",
    "double": "double precision",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
    "bool": "boolean",
    "string": "text",
}


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "people.parquet"
    pq.write_table(table(), path)
    return path


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    if programs() is None:
        pytest.skip(MISSING)
    with running() as server:
        yield server


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    session = spark_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


def check(source: Any, promise: str, ledger: str | Path = ":memory:", **more: Any) -> None:
    """Every question in the order of the records; its answer is the recorded one."""
    recorded, (schema, promised) = read("questions"), PROMISES[promise]
    wanted = {name: recorded[name]["under"][promise].get("value") for name in ASKED}
    table = Database.open(source, schema, promised, ledger, name="people", **more)
    with inside.quiet(), table as db:
        assert isinstance(db.engine, VaultEngine) == ("vault" in more)
        got = {
            name: plain(db.ask(asked).value)
            for name, asked in ASKED.items()
            if wanted[name] is not None
        }
    assert got == {name: value for name, value in wanted.items() if value is not None}


def test_a_parquet_file(parquet: Path) -> None:
    check(str(parquet), "pure")


@pytest.mark.parametrize("promise", ["pure", pytest.param("gaussian", marks=pytest.mark.slow)])
def test_a_vault(parquet: Path, promise: str, tmp_path: Path) -> None:
    check(str(parquet), promise, tmp_path / "ledger", publish=True, vault=True)


@pytest.mark.slow
@pytest.mark.parametrize("promise", ["pure", "person"])
def test_postgresql(postgres: PostgresServer, promise: str) -> None:
    from tests.kernel.engines.postgres_tables import fill

    held = rows()
    types = {name: STORED[str(kind)] for name, kind in TYPES.items()}
    listed = [dict(zip(held, row, strict=True)) for row in zip(*held.values(), strict=True)]
    check(fill(postgres, "people", types, listed), promise)


@pytest.mark.slow
@pytest.mark.parametrize("promise", ["pure", "person"])
def test_spark(spark: Any, parquet: Path, promise: str) -> None:
    check(spark_url(parquet), promise)
