"""Exact answers on PostgreSQL against the same statements by hand: CPU of server and client.

    python -m benchmarks.postgres [rows ...]

A server of its own, one process to a question, just-in-time compilation off. "raw" is the
statement an analyst would write without bounds; "raw, clamped" the same with the declared bounds.
Sums of ours are exact integers, theirs are floats. Figures are the least of several interleaved
runs; "proof" is what a question pays more if another transaction has written anything since the
last one, as a share of a count.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.postgres_server import MISSING, PostgresServer, programs, running

from benchmarks.engines import CASES, SCHEMA
from sulq.engines import Engine, open_engine
from sulq.query.expressions import col
from sulq.query.statistics import count
from sulq.query.sum_query import outer
from sulq.query.vectors import columns, concat, ones, scaled
from sulq.schema.binding import bind
from sulq.schema.columns import Number, Schema

REPEATS = 3
WIDE = tuple(f"x{i}" for i in range(10))
GRAM = Schema(*(Number(name, 0, 1) for name in WIDE))
TABLE = """
CREATE TABLE t AS SELECT random() * 110 AS age,
  CASE WHEN random() < 0.02 THEN NULL ELSE random() * 300000 END AS income,
  'region ' || CAST(floor(random() * 50) AS integer) AS region,
  'shop ' || CAST(floor(random() * 500) AS integer) AS shop FROM generate_series(1, {rows})
"""


def figures(rows: tuple[int, ...] = (1_000_000,)) -> list[tuple[str, float, str]]:
    """Ratios of CPU."""
    if programs() is None:
        print(MISSING)
        return []
    found: list[tuple[str, float, str]] = []
    with running(shared_buffers="1GB") as server:
        for number in rows:
            found += _compare(server, number)
    return found


def _compare(server: PostgresServer, rows: int) -> list[tuple[str, float, str]]:
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as raw:
        draws = ", ".join(f"random() AS {name}" for name in WIDE)
        raw.execute("DROP TABLE IF EXISTS t; DROP TABLE IF EXISTS w")
        raw.execute(TABLE.format(rows=rows))
        raw.execute(f"CREATE TABLE w AS SELECT {draws} FROM generate_series(1, {rows})")
        raw.execute("SET jit = off; SET max_parallel_workers_per_gather = 0")
        for table in ("t", "w"):
            raw.execute(f"VACUUM ANALYZE {table}")  # type: ignore[arg-type]
        engine = open_engine(server.url(table="t"), SCHEMA, threads=1)
        found = []
        for name, question, plain, clamped in CASES:
            program = bind(question, SCHEMA).sums
            found += _ratios(f"{name}, {rows:,} rows", engine, program, raw, plain, clamped)
        for width in (3, 10):
            found += _gram(server, raw, rows, width)
        found.append((f"proof, {rows:,} rows, to a filtered count", *_proof(engine, raw), "x"))
        engine.close()
    return found


def _gram(server: PostgresServer, raw: Any, rows: int, width: int) -> list[tuple[str, float, str]]:
    """Second moments of some columns, and a constant."""
    names = WIDE[:width]
    v = concat(scaled(ones(), 0.5), columns(list(names)))
    engine = open_engine(server.url(table="w"), GRAM, threads=1)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i:]]

    def moments(of: Callable[[str], str]) -> str:
        sums = ["count(*)", *(f"sum({of(a)})" for a in names)]
        return f"SELECT {', '.join(sums + [f'sum({of(a)} * {of(b)})' for a, b in pairs])} FROM w"

    plain = moments(lambda x: x)
    clamped = moments(lambda x: f"LEAST(GREATEST({x}, 0), 1)")
    program = bind(outer(v, v), GRAM).sums
    found = _ratios(
        f"{width + 1} x {width + 1} moments, {rows:,} rows", engine, program, raw, plain, clamped
    )
    engine.close()
    return found


def _cpu(connection: Any, work: Callable[[], object], repeats: int) -> float:
    """Seconds of the server's process and of ours."""
    stat = Path(f"/proc/{connection.info.backend_pid}/stat")

    def spent() -> float:
        user, system = stat.read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") + time.process_time()

    before = spent()
    for _ in range(repeats):
        work()
    return (spent() - before) / repeats


def _connection(engine: Any) -> Any:
    return engine._sessions._idle[-1].connection


def _ratios(
    what: str, engine: Engine, program: Any, raw: Any, plain: str, clamped: str, rounds: int = 3
) -> list[tuple[str, float, str]]:
    works: list[tuple[Any, Callable[[], object]]] = [
        (_connection(engine), lambda: engine.exact_sums(program)),
        (raw, lambda: raw.execute(plain).fetchall()),
        (raw, lambda: raw.execute(clamped).fetchall()),
    ]
    times = [[_cpu(connection, work, REPEATS) for connection, work in works] for _ in range(rounds)]
    ours, least, least_clamped = (min(column) for column in zip(*times, strict=True))
    return [
        (f"{what}, to raw", round(ours / least, 2), "x"),
        (f"{what}, to raw, clamped", round(ours / least_clamped, 2), "x"),
    ]


def _proof(engine: Engine, raw: Any, rounds: int = 3) -> tuple[float]:
    program = bind(count(where=col("age") >= 65), SCHEMA).sums

    def quiet() -> None:
        engine.exact_sums(program)

    def busy() -> None:
        raw.execute("SELECT pg_current_xact_id()")
        engine.exact_sums(program)

    times = [
        [_cpu(_connection(engine), work, REPEATS) for work in (quiet, busy)] for _ in range(rounds)
    ]
    without, also = (min(column) for column in zip(*times, strict=True))
    return (round(also / without - 1, 2),)


if __name__ == "__main__":
    for what, value, unit in figures(tuple(int(size) for size in sys.argv[1:]) or (1_000_000,)):
        print(f"{what:60} {value:6.2f} {unit}")
