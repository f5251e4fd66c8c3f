"""Exact integer sums against DuckDB's own float aggregates: user CPU, warm, same file, same run.

python -m benchmarks duckdb [--full]
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.cases import CASES, GROUPS, SCHEMA, grouped, groups, people
from benchmarks.timing import least, repeated
from sulq.answers.statistics import count
from sulq.database import Database
from sulq.kernel.engines import open_engine
from sulq.kernel.query.expressions import col
from sulq.kernel.schema.promise import Promise

SIZES = (1_000_000, 10_000_000, 100_000_000)
THREADS = (1, 2)
MIDDLE = 10_000_000
SECONDS = 8.0
Line = dict[str, Any]


def measure(folder: Path, full: bool, sizes: tuple[int, ...] = SIZES) -> list[Line]:
    """Seconds of ours, raw and clamped: by size and threads, by number of groups, as whole asks."""
    lines: list[Line] = []
    middle = min(MIDDLE, max(sizes))
    for rows in sizes:
        path = people(folder, rows)
        for threads in THREADS if rows == middle or full else THREADS[-1:]:
            lines += compared(path, rows, threads)
        if rows <= middle:
            lines.append(asked(path, rows))
    lines += by_groups(groups(folder, middle), middle)
    return lines


def compared(path: Path, rows: int, threads: int) -> Iterator[Line]:
    with duckdb.connect() as raw:
        raw.execute(f"SET threads = {threads}; CREATE VIEW t AS FROM read_parquet('{path}')")
        engine = open_engine(path, SCHEMA, threads=threads)
        clock = repeated(min(20, max(1, 20_000_000 // rows)))
        for case in CASES:
            program = case.program
            ours, plain, clamped = least(
                [
                    (clock, lambda p=program: engine.exact_sums(p)),
                    (clock, lambda q=case.raw: raw.execute(q).fetchall()),
                    (clock, lambda q=case.clamped: raw.execute(q).fetchall()),
                ],
                rounds=7,
                seconds=SECONDS,
            )
            what = {"kind": case.name, "rows": rows, "threads": threads}
            yield what | {"ours": ours, "raw": plain, "clamped": clamped}
        engine.close()


def by_groups(path: Path, rows: int) -> Iterator[Line]:
    """The same sums by ever more declared groups."""
    for number in GROUPS:
        schema, program, statement = grouped(number)
        with duckdb.connect() as raw:
            raw.execute(f"SET threads = 2; CREATE VIEW t AS FROM read_parquet('{path}')")
            engine = open_engine(path, schema, threads=2)
            ours, plain = least(
                [
                    (repeated(1), lambda: engine.exact_sums(program)),  # noqa: B023
                    (repeated(1), lambda: raw.execute(statement).fetchall()),  # noqa: B023
                ],
                rounds=7,
                seconds=SECONDS,
            )
            engine.close()
        what = {"kind": "sum and count by group", "rows": rows, "threads": 2, "groups": number}
        yield what | {"ours": ours, "raw": plain}


def asked(path: Path, rows: int) -> Line:
    """Counts in a row, each a whole `ask`: bound, priced, charged, read, drawn, stored."""
    promise, questions = Promise(1, "1e-6", queries=10**6), 200_000_000 // rows
    questions = max(20, min(200, questions))
    with duckdb.connect() as raw, tempfile.TemporaryDirectory() as state:
        raw.execute(f"SET threads = 2; CREATE VIEW t AS FROM read_parquet('{path}')")
        os.environ["SULQ_STATE"] = state
        with Database.open(
            path, SCHEMA, promise, f"{state}/ledger", publish=True, vault=False
        ) as db:
            place = iter(range(10**9))

            def ours() -> None:
                for _ in range(questions):
                    db.ask(count(where=col("age") >= 20 + next(place) / 50))

            def theirs() -> None:
                for number in range(questions):
                    raw.execute(
                        f"SELECT count(*) FROM t WHERE age >= {20 + number / 50}"
                    ).fetchall()

            times = least([(repeated(1), ours), (repeated(1), theirs)], rounds=3, seconds=SECONDS)
    what = {"kind": "whole ask of a count", "rows": rows, "threads": 2}
    return what | {"ours": times[0] / questions, "raw": times[1] / questions}
