"""Exact answers on Spark against the same statements written by hand: wall time, one local driver.

    python -m benchmarks spark [--full]

A driver with Spark's own defaults on two cores, started before the clock; both sides ask through
sessions of it. Sums of ours are exact integers, theirs are floats. Wide moments of ours are worked
out on blocks (`mapInArrow`), theirs by SQL. By default 100 million rows get all kinds but moments.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.spark_session import why_not

from benchmarks.cases import CASES, GROUPS, SCHEMA, gram, grouped, groups, people
from benchmarks.timing import least, wall
from sulq.engines import open_engine
from sulq.schema.columns import Schema

SIZES = (1_000_000, 10_000_000, 100_000_000)
MIDDLE = 10_000_000
SECONDS = 8.0
PARTITIONS = (2, 8, 32, 128)
Line = dict[str, Any]


def measure(folder: Path, full: bool, sizes: tuple[int, ...] = SIZES) -> list[Line]:
    """Seconds of ours, raw and clamped: by size, by number of groups, by number of partitions."""
    reason = why_not()
    if reason is not None:
        return [{"missing": reason}]
    middle = min(MIDDLE, max(sizes))
    lines: list[Line] = []
    # The driver ends with its last table: one stays open.
    first: Any = open_engine(f"spark+local://{people(folder, min(sizes))}", SCHEMA, threads=2)
    for rows in sizes:
        lines += _compared(people(folder, rows), rows, full)
    lines += _by_groups(groups(folder, middle), middle)
    lines += _by_partitions(first._session().newSession(), people(folder, middle), middle)
    first.close()
    return lines


def _compared(path: Path, rows: int, full: bool) -> Iterator[Line]:
    begun = time.perf_counter()
    wide = rows <= MIDDLE or full  # opening reads every declared column
    schema = SCHEMA if wide else Schema(*SCHEMA.columns[:4])
    engine: Any = open_engine(f"spark+local://{path}", schema, threads=2)
    yield {"kind": "opening", "rows": rows, "ours": time.perf_counter() - begun}
    raw = engine._session().newSession()
    raw.read.parquet(str(path)).createOrReplaceTempView("t")
    for case in (*CASES, gram(3)):
        if "moments" in case.name and not wide:
            continue
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


def _by_partitions(session: Any, path: Path, rows: int) -> Iterator[Line]:
    """The clipped sum over the same rows in ever more files: what one more task costs."""
    for setting in ("maxPartitionBytes", "openCostInBytes"):  # a task for each file
        session.conf.set(f"spark.sql.files.{setting}", str(2**28))
    for number in PARTITIONS:
        several = str(path.with_name(f"parts-{rows}-{number}"))
        wanted = session.read.parquet(str(path)).select("age", "income").repartition(number)
        wanted.write.mode("overwrite").parquet(several)
        session.read.parquet(several).createOrReplaceTempView("t")
        took = least([(wall, lambda: session.sql(CASES[1].raw).collect())], 5, SECONDS)
        yield {"kind": "partitions", "rows": rows, "tasks": number, "ours": took[0]}
