"""Exact answers on Spark against the same statements written by hand: wall time, one local driver.

    python -m benchmarks spark [--full]

A driver with Spark's own defaults on two cores, started before the clock; both sides ask through
sessions of it, in turns. Sums of ours are exact integers, theirs are floats. 100 million rows come
last, get all kinds but moments, and by default only those that fit into the time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.spark_session import why_not

from benchmarks.cases import CASES, GROUPS, SCHEMA, Case, gram, grouped, groups, people
from benchmarks.timing import least, wall
from sulq.kernel.engines import open_engine
from sulq.kernel.schema.columns import Schema

SIZES = (1_000_000, 10_000_000)
MIDDLE, LARGE = 10_000_000, 100_000_000
SECONDS = 4.0
MINUTES = 9.0
"""No further kind is begun at 100 million rows that would end later."""
PARTITIONS = (2, 8, 32, 128)
EMPTY = (64, 1_024)
Line = dict[str, Any]


def measure(folder: Path, full: bool, sizes: tuple[int, ...] = SIZES) -> list[Line]:
    """Seconds of ours, raw and clamped: by size, by number of groups, by number of partitions."""
    reason = why_not()
    if reason is not None:
        return [{"missing": reason}]
    end = time.monotonic() + 60 * MINUTES * (6 if full else 1)
    middle = max(sizes)
    lines: list[Line] = []
    # The driver ends with its last table: one stays open.
    first: Any = open_engine(f"spark+local://{people(folder, min(sizes))}", SCHEMA, threads=2)
    for rows in sizes:
        lines += _compared(people(folder, rows), rows, (*CASES, gram(3)), SCHEMA)
    lines += _by_groups(groups(folder, middle), middle)
    session = first._session().newSession()
    lines += _empty_tasks(session)
    lines += _by_partitions(session, people(folder, middle), middle)
    if middle == MIDDLE:
        lines += _large(folder, lines, end)
    first.close()
    return lines


def _large(folder: Path, lines: list[Line], end: float) -> list[Line]:
    """The kinds that fit into the time, told by how long they took with a tenth of the rows."""
    left = end - time.monotonic() - 90  # to write the table, and to open it
    cases = []
    for case in CASES[:-1]:
        tenth = next(one for one in lines if (one["kind"], one["rows"]) == (case.name, MIDDLE))
        left -= 2 * 10 * (tenth["ours"] + tenth["raw"] + tenth["clamped"])
        if left < 0:
            break
        cases.append(case)
    unasked = [case.name for case in CASES[len(cases) :]]
    told = {"kind": "unasked", "rows": LARGE, "names": unasked}
    if not cases:
        return [told]
    schema = Schema(*SCHEMA.columns[:4])  # opening reads every declared column
    path = people(folder, LARGE, wide=False)
    return [*_compared(path, LARGE, cases, schema), told]


def _compared(path: Path, rows: int, cases: Iterable[Case], schema: Schema) -> Iterator[Line]:
    begun = time.perf_counter()
    engine: Any = open_engine(f"spark+local://{path}", schema, threads=2)
    yield {"kind": "opening", "rows": rows, "ours": time.perf_counter() - begun}
    raw = engine._session().newSession()
    raw.read.parquet(str(path)).createOrReplaceTempView("t")
    for case in cases:
        program = case.program
        works = [
            (wall, lambda p=program: engine.exact_sums(p)),
            (wall, lambda q=case.raw: raw.sql(q).collect()),
            (wall, lambda q=case.clamped: raw.sql(q).collect()),
        ]
        ours, plain, clamped = least(works, rounds=7, seconds=SECONDS)
        what = {"kind": case.name, "rows": rows, "threads": 2}
        yield what | {"ours": ours, "raw": plain, "clamped": clamped}
    engine.close()


def _by_groups(path: Path, rows: int) -> Iterator[Line]:
    for number in GROUPS:
        schema, program, statement = grouped(number)
        engine: Any = open_engine(f"spark+local://{path}", schema, threads=2)
        raw = engine._session().newSession()
        raw.read.parquet(str(path)).createOrReplaceTempView("t")
        works = [
            (wall, lambda e=engine, p=program: e.exact_sums(p)),
            (wall, lambda s=raw, q=statement: s.sql(q).collect()),
        ]
        ours, plain = least(works, rounds=5, seconds=SECONDS)
        engine.close()
        what = {"kind": "sum and count by group", "rows": rows, "threads": 2, "groups": number}
        yield what | {"ours": ours, "raw": plain}


def _empty_tasks(session: Any) -> Iterator[Line]:
    """Tasks with a row each: what starting one more costs the driver."""
    for number in EMPTY:
        statement = f"SELECT count(*) FROM range(0, {number}, 1, {number})"
        took = least([(wall, lambda q=statement: session.sql(q).collect())], 5, SECONDS)
        yield {"kind": "empty tasks", "rows": number, "tasks": number, "ours": took[0]}


def _by_partitions(session: Any, path: Path, rows: int) -> Iterator[Line]:
    """The clipped sum over the same rows in ever more files: what one more file costs."""
    for setting in ("maxPartitionBytes", "openCostInBytes"):  # a task for each file
        session.conf.set(f"spark.sql.files.{setting}", str(2**28))
    for number in PARTITIONS:
        several = str(path.with_name(f"parts-{rows}-{number}"))
        wanted = session.read.parquet(str(path)).select("age", "income").repartition(number)
        wanted.write.mode("overwrite").parquet(several)
        session.read.parquet(several).createOrReplaceTempView("t")
        took = least([(wall, lambda: session.sql(CASES[1].raw).collect())], 5, SECONDS)
        yield {"kind": "partitions", "rows": rows, "tasks": number, "ours": took[0]}
