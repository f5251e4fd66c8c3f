"""No engine widens what it is given: the types of every node, as its own plan says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kernel.engines import extremes, programs, tables, typed
from tests.kernel.engines import test_blocks as vectors
from tests.kernel.engines import test_person_sums as person_programs
from tests.kernel.engines import test_persons as persons
from tests.kernel.engines.test_proved import plant
from tests.postgres_server import NO_DRIVER, PostgresServer
from tests.spark_session import spark_url

from sulq.answers.statistics import total
from sulq.kernel.engines import open_engine
from sulq.kernel.engines.rows import row_values_select
from sulq.kernel.engines.sql.compile import (
    TABLE,
    person_statement,
    row_select,
    small_outer,
    statement,
)
from sulq.kernel.schema import program as b
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.columns import Schema

UNIT = Schema(*persons.COLUMNS, unit="who", max_rows=3)


def statements(places: Any, seed: int, count: int) -> Iterator[tuple[str, int]]:
    """The suite's programs over the awkward table, as SQL, and how many columns each gives."""
    rng = random.Random(seed)
    for number in range(count):
        program = programs.program(rng, tables.FACTS)
        asked = statement(program, places, 60)
        yield asked.sql, len(program.groups) + max(1, len(asked.reach))
        if number % 4 == 0:  # few rows make sums of DOUBLE, many sums of BIGINT
            asked = statement(program, places, 2**40)
            yield asked.sql, len(program.groups) + max(1, len(asked.reach))
    for outer in vectors.programs(seed, count // 8):
        sql, place = row_select(outer, places, TABLE)
        yield sql, max([0, *place.values()]) + 1
        small = small_outer(outer, 60)
        if small is not None:
            asked = statement(small.sums, places, 60)
            yield asked.sql, max(1, len(asked.reach))


def extreme_statements(places: Any, seed: int, count: int) -> Iterator[tuple[str, int]]:
    for bound in extremes.questions(seed, count):
        assert isinstance(bound.sums, b.RowSums)
        asked = statement(bound.sums, places, 60)
        yield asked.sql, len(bound.sums.groups) + max(1, len(asked.reach))


def test_on_duckdb() -> None:
    engine = open_engine(tables.table(tables.rows(1, 40)), tables.SCHEMA)
    for sql, _ in statements(engine.places, 1, 100):
        assert typed.bad_on_duckdb(engine._connection, sql) == [], sql
    rng = random.Random(2)
    for _ in range(10):
        sql = row_values_select(programs.program(rng, tables.FACTS), engine.places, TABLE).sql
        assert typed.bad_on_duckdb(engine._connection, sql) == [], sql
    engine.close()
    engine = open_engine(extremes.table(extremes.rows(1)), extremes.SCHEMA)
    for sql, _ in extreme_statements(engine.places, 5, 40):
        assert typed.bad_on_duckdb(engine._connection, sql) == [], sql
    engine.close()
    engine = open_engine(pa.Table.from_pylist(persons.content(1)), UNIT)
    for program in person_programs.programs(1, 20):
        sql = person_statement(program, engine.places, 60).sql
        plain = sql.replace("CAST(0 AS HUGEINT)", "")
        assert "HUGEINT" in plain and typed.bad_on_duckdb(engine._connection, sql) == [], sql
    engine.close()


def test_the_walk_sees_what_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old emitter's statements, one of them with a factor past 2^63, one past 2^127."""
    schema = extremes.SCHEMA
    engine = open_engine(extremes.table(extremes.rows(1)), schema)
    from sulq import col

    plant(monkeypatch)
    for width, told in ((1e-20, "HUGEINT"), (1e-40, "DOUBLE")):
        asked = bind(total(col("income").clip(0, width)), schema, asked_before=True)
        assert isinstance(asked.sums, b.RowSums)
        sql = statement(asked.sums, engine.places, 10**9).sql
        assert any(told in said for said in typed.bad_on_duckdb(engine._connection, sql))
    engine.close()


def walk_postgres(server: PostgresServer, url: str, schema: Schema, found: Any) -> None:
    psycopg = pytest.importorskip("psycopg", reason=NO_DRIVER)
    engine = open_engine(url, schema)
    with (
        psycopg.connect(server.url(), autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        rows = f"{engine.source.with_rows} SELECT * FROM {TABLE}"
        cursor.execute(f"CREATE TEMP VIEW {TABLE} AS {rows}")
        for sql, width in found(engine.source.places):
            assert typed.bad_on_postgres(cursor, sql, width) == [], sql
        wrong = "SELECT sum(CAST(5 AS BIGINT) * 4835703278458516698824704), sum(c0 * 1.5)"
        assert len(typed.bad_on_postgres(cursor, f"{wrong} FROM {TABLE}", 2)) > 1
    engine.close()


def test_on_postgresql(postgres: PostgresServer) -> None:
    from tests.kernel.engines.postgres_tables import AWKWARD, fill, storable

    url = fill(postgres, "typed", AWKWARD, storable(tables.rows(1, 40)))
    walk_postgres(postgres, url, tables.SCHEMA, lambda places: statements(places, 1, 100))
    types = {name: kind for name, (_, kind) in extremes.TYPES.items()}
    # another table: the server drops the views of a closed connection in its own time
    url = fill(postgres, "extreme_typed", types, extremes.rows(1))
    walk_postgres(postgres, url, extremes.SCHEMA, lambda places: extreme_statements(places, 5, 40))


def walk_spark(folder: Path, seed: int, count: int) -> None:
    """What the gate runs a part of, in test_spark.py."""
    tables.parquet(tables.rows(1, 40), folder / "typed.parquet")
    engine: Any = open_engine(spark_url(folder / "typed.parquet"), tables.SCHEMA)
    for sql, _ in statements(engine.source.places, seed, count):
        assert typed.bad_on_spark(engine._session(), sql) == [], sql
    wrong = "SELECT sum(shiftright(c4 * 4835703278458516698824704, 3)) FROM people AS people"
    assert len(typed.bad_on_spark(engine._session(), wrong)) > 1
    engine.close()
    pq.write_table(extremes.table(extremes.rows(1)), folder / "extreme_typed.parquet")
    engine = open_engine(spark_url(folder / "extreme_typed.parquet"), extremes.SCHEMA)
    for sql, _ in extreme_statements(engine.source.places, seed, count):
        assert typed.bad_on_spark(engine._session(), sql) == [], sql
    engine.close()


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_on_spark(tmp_path: Path) -> None:
    walk_spark(tmp_path, 1, 60)
