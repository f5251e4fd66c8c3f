"""Exact integer sums from a vault against DuckDB's float aggregates on the Parquet file: user CPU.

python -m benchmarks vault [--full]
"""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from benchmarks.cases import CASES, GROUPS, SCHEMA, grouped, groups, people
from benchmarks.timing import least, repeated
from sulq.answers.statistics import count
from sulq.database import Database
from sulq.kernel.engines import open_engine
from sulq.kernel.engines.duckdb.vault import VaultEngine, open_vault, write_vault
from sulq.kernel.query.expressions import col
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.promise import Promise

SIZES = (1_000_000, 10_000_000)
LARGEST = 100_000_000
THREADS = 2
SECONDS = 8.0
GOAL, ASK_GOAL = 0.9, 1.2
BITS = 31
"""The grid of a published table: finer than a schema's own."""
ANY_KEY = 20_261_118
Line = dict[str, Any]
T = TypeVar("T")


def measure(folder: Path, full: bool, sizes: tuple[int, ...] = SIZES) -> list[Line]:
    lines: list[Line] = []
    for rows in sizes + ((LARGEST,) if full else ()):
        path = people(folder, rows)
        lines += compared(path, rows)
        if rows <= max(SIZES):
            lines.append(asked(path, rows))
    lines += by_groups(groups(folder, min(sizes)), min(sizes))
    return lines


def cpu(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds of CPU, of the process and the system for it."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    found = work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, found


def vault_of(path: Path, schema: Schema) -> tuple[Path, VaultEngine, Line]:
    """A vault of the file, open, and what it took."""
    place = path.with_suffix(".vault")
    place.unlink(missing_ok=True)
    made, contents = cpu(lambda: write_vault(path, schema, place, ANY_KEY))
    opened, engine = cpu(lambda: open_vault(place, schema, contents, "", [], threads=THREADS))
    sizes = {"bytes": place.stat().st_size, "source": path.stat().st_size}
    return place, engine, {"kind": "making", "making": made, "opening": opened} | sizes


def compared(path: Path, rows: int) -> Iterator[Line]:
    schema = SCHEMA.on_grid(BITS)
    place, vault, made = vault_of(path, schema)
    direct = open_engine(path, schema, threads=THREADS)
    yield made | {"rows": rows}
    with duckdb.connect() as raw:
        raw.execute(f"SET threads = {THREADS}; CREATE VIEW t AS FROM read_parquet('{path}')")
        clock = repeated(min(5, max(1, 10_000_000 // rows)))
        for case in CASES:
            program = bind(case.question, schema).sums
            assert vault.exact_sums(program) == direct.exact_sums(program)
            ours, plain, slower = least(
                [
                    (clock, lambda p=program: vault.exact_sums(p)),
                    (clock, lambda q=case.raw: raw.execute(q).fetchall()),
                    (clock, lambda p=program: direct.exact_sums(p)),
                ],
                rounds=7,
                seconds=SECONDS,
            )
            times = {"ours": ours, "raw": plain, "direct": slower, "goal": GOAL}
            yield {"kind": case.name, "rows": rows} | times
    direct.close()
    vault.close()
    place.unlink()


def by_groups(path: Path, rows: int) -> Iterator[Line]:
    """Sum and count by ever more declared groups."""
    clock = repeated(5)
    for number in GROUPS:
        schema, program, statement = grouped(number)
        place, vault, _ = vault_of(path, schema)
        with duckdb.connect() as raw:
            raw.execute(f"SET threads = {THREADS}; CREATE VIEW t AS FROM read_parquet('{path}')")
            ours, plain = least(
                [
                    (clock, lambda: vault.exact_sums(program)),  # noqa: B023
                    (clock, lambda: raw.execute(statement).fetchall()),  # noqa: B023
                ],
                rounds=7,
                seconds=SECONDS,
            )
        vault.close()
        place.unlink()
        what = {"kind": f"sum and count by {number:,} groups", "rows": rows}
        yield what | {"ours": ours, "raw": plain, "goal": GOAL}


def asked(path: Path, rows: int) -> Line:
    """Counts in a row, each a whole `ask`: bound, priced, charged, read, drawn, stored."""
    promise, questions = Promise(1, "1e-6", queries=10**6), max(10, min(100, 100_000_000 // rows))
    with duckdb.connect() as raw, tempfile.TemporaryDirectory() as state:
        raw.execute(f"SET threads = {THREADS}; CREATE VIEW t AS FROM read_parquet('{path}')")
        os.environ["SULQ_STATE"] = state
        terms = (SCHEMA, promise, f"{state}/ledger")
        with Database.open(path, *terms, publish=True, vault=True) as db:
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
    what = {"kind": "whole ask of a count", "rows": rows, "goal": ASK_GOAL}
    return what | {"ours": times[0] / questions, "raw": times[1] / questions}
