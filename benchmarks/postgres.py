"""Exact answers on PostgreSQL against the same statements by hand: CPU of server and client.

    python -m benchmarks postgres [--full]

A server of its own, one process to a question, just-in-time compilation off. Sums of ours are
exact integers, theirs are floats. "proof" is what a question pays more if another transaction has
written anything since the last one, as a share of a count.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.postgres_server import MISSING, running
from tests.postgres_server import programs as postgres_programs

from benchmarks.cases import CASES, GROUPS, SCHEMA, WIDE, gram, grouped
from benchmarks.timing import Work, least
from sulq.kernel.engines import Engine, open_engine

SIZES = (1_000_000, 10_000_000)
MIDDLE = 1_000_000
SECONDS = 20.0
DRAWS = ", ".join(f"floor(random() * 1000) / 1000 AS {name}" for name in WIDE)
PEOPLE = f"""
CREATE UNLOGGED TABLE t AS SELECT random() * 110 AS age,
  CASE WHEN random() < 0.02 THEN NULL ELSE random() * 300000 END AS income,
  'region ' || CAST(floor(random() * 50) AS integer) AS region,
  'shop ' || CAST(floor(random() * 500) AS integer) AS shop, {DRAWS}
FROM generate_series(1, {{rows}})
"""
KEYS = ", ".join(
    f"'k' || CAST(floor(random() * {count}) AS integer) AS g{count}"
    for count in sorted({count for columns in GROUPS.values() for count in columns})
)
GROUPED = f"""
CREATE UNLOGGED TABLE t AS SELECT random() * 300000 AS income, {KEYS}
FROM generate_series(1, {{rows}})
"""
Line = dict[str, Any]


def measure(folder: Path, full: bool, sizes: tuple[int, ...] = SIZES) -> list[Line]:
    """Seconds of ours, raw and clamped, by size and by number of groups."""
    if postgres_programs() is None:
        return [{"missing": MISSING}]
    lines: list[Line] = []
    with running(shared_buffers="2GB", max_wal_size="8GB") as server:
        for rows in sizes:
            lines += _compared(server, rows)
        lines += _by_groups(server, min(MIDDLE, max(sizes)))
    return lines


def _table(raw: Any, statement: str) -> None:
    raw.execute("DROP TABLE IF EXISTS t")
    raw.execute(statement)
    raw.execute("VACUUM ANALYZE t")
    raw.execute("SET jit = off; SET max_parallel_workers_per_gather = 0")


def _compared(server: Any, rows: int) -> Iterator[Line]:
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as raw:
        _table(raw, PEOPLE.format(rows=rows))
        engine = open_engine(server.url(table="t"), SCHEMA, threads=1)
        for case in (*CASES, gram(3)):
            ours, plain, clamped = _least(engine, case.program, raw, rows, case.raw, case.clamped)
            what = {"kind": case.name, "rows": rows, "threads": 1}
            yield what | {"ours": ours, "raw": plain, "clamped": clamped}
        yield _proof(engine, raw, rows)
        engine.close()


def _by_groups(server: Any, rows: int) -> Iterator[Line]:
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as raw:
        _table(raw, GROUPED.format(rows=rows))
        for number in GROUPS:
            schema, program, statement = grouped(number)
            engine = open_engine(server.url(table="t"), schema, threads=1)
            ours, plain = _least(engine, program, raw, rows, statement)
            engine.close()
            what = {"kind": "sum and count by group", "rows": rows, "threads": 1, "groups": number}
            yield what | {"ours": ours, "raw": plain}


def _cpu(work: Work, connection: Any, repeats: int) -> float:
    """Seconds of the server's process, which its clock tells in hundredths, and of ours."""
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


def _least(engine: Engine, program: Any, raw: Any, rows: int, *statements: str) -> list[float]:
    engine.exact_sums(program)  # leaves a connection to look at
    repeats = min(5, max(1, 5_000_000 // rows))
    mine = partial(_cpu, connection=_connection(engine), repeats=repeats)
    theirs = partial(_cpu, connection=raw, repeats=repeats)
    asked = [(theirs, lambda q=q: raw.execute(q).fetchall()) for q in statements]
    return least([(mine, lambda: engine.exact_sums(program)), *asked], rounds=7, seconds=SECONDS)


def _proof(engine: Engine, raw: Any, rows: int) -> Line:
    program = CASES[0].program
    repeats = min(5, max(1, 5_000_000 // rows))
    clock = partial(_cpu, connection=_connection(engine), repeats=repeats)

    def busy() -> None:
        raw.execute("SELECT pg_current_xact_id()")
        engine.exact_sums(program)

    times = least([(clock, busy), (clock, lambda: engine.exact_sums(program))], 5, SECONDS / 2)
    what = {"kind": "count after a foreign write, to one without", "rows": rows, "threads": 1}
    return what | {"ours": times[0], "raw": times[1]}
