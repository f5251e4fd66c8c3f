"""Exact answers on Spark against the same statements written by hand: wall time, one local driver.

    python -m benchmarks.spark [rows ...]

A driver with Spark's own defaults on two cores, started before the clock. "raw" is the statement an
analyst would write without bounds; "raw, clamped" the same with the declared bounds; both through
a session with Spark's defaults. Sums of ours are exact integers, theirs are floats. Figures are the
least of several interleaved runs. Wide moments are worked out on blocks (`mapInArrow`), theirs by
SQL.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
from tests.spark_session import why_not

from benchmarks.engines import CASES, SCHEMA, write
from sulq.engines import Engine, open_engine
from sulq.query.sum_query import outer
from sulq.query.vectors import columns, concat, ones, scaled
from sulq.schema.binding import bind
from sulq.schema.columns import Number, Schema

WIDE = tuple(f"x{i}" for i in range(20))
GRAM = Schema(*(Number(name, 0, 1) for name in WIDE))
ROUNDS = 5
Figure = tuple[str, float, str]


def figures(rows: tuple[int, ...] = (1_000_000,)) -> list[Figure]:
    """Ratios of wall time."""
    reason = why_not()
    if reason is not None:
        print(reason)
        return []
    found: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in rows:
            found += _compare(Path(folder), number)
    return found


def _compare(folder: Path, rows: int) -> list[Figure]:
    people = write(folder / f"people{rows}.parquet", rows)
    wide = _write_wide(folder / f"wide{rows}.parquet", rows)
    engine: Any = open_engine(f"spark+local://{people}", SCHEMA, threads=2)
    moments = open_engine(f"spark+local://{wide}", GRAM, threads=2)
    raw = engine._session().newSession()
    raw.read.parquet(str(people)).createOrReplaceTempView("t")
    raw.read.parquet(str(wide)).createOrReplaceTempView("w")
    found = []
    for name, question, plain, clamped in CASES:
        program = bind(question, SCHEMA).sums  # type: ignore[arg-type]
        found += _ratios(f"{name}, {rows:,} rows", engine, program, raw, plain, clamped)
    for width in (3, 10, 20):
        found += _gram(moments, raw, rows, width)
    moments.close()
    engine.close()
    return found


def _write_wide(path: Path, rows: int) -> Path:
    draws = ", ".join(f"random() AS {name}" for name in WIDE)
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {draws} FROM range({rows})) TO '{path}' (FORMAT parquet)")
    return path


def _gram(engine: Engine, raw: Any, rows: int, width: int) -> list[Figure]:
    """Second moments of some columns, and a constant."""
    names = WIDE[:width]
    v = concat(scaled(ones(), 0.5), columns(list(names)))
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i:]]

    def moments(of: Callable[[str], str]) -> str:
        sums = ["count(*)", *(f"sum({of(a)})" for a in names)]
        return f"SELECT {', '.join(sums + [f'sum({of(a)} * {of(b)})' for a, b in pairs])} FROM w"

    program = bind(outer(v, v), GRAM).sums
    what = f"{width + 1} x {width + 1} moments, {rows:,} rows"
    clamped = moments(lambda x: f"LEAST(GREATEST({x}, 0), 1)")
    return _ratios(what, engine, program, raw, moments(lambda x: x), clamped)


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _ratios(
    what: str, engine: Engine, program: Any, raw: Any, plain: str, clamped: str
) -> list[Figure]:
    works: list[Callable[[], object]] = [
        lambda: engine.exact_sums(program),
        lambda: raw.sql(plain).collect(),
        lambda: raw.sql(clamped).collect(),
    ]
    times = [[_seconds(work) for work in works] for _ in range(ROUNDS)]
    ours, least, least_clamped = (min(column) for column in zip(*times, strict=True))
    return [
        (f"{what}, ours", round(ours * 1000), "ms"),
        (f"{what}, to raw", round(ours / least, 2), "x"),
        (f"{what}, to raw, clamped", round(ours / least_clamped, 2), "x"),
    ]


if __name__ == "__main__":
    for what, value, unit in figures(tuple(int(size) for size in sys.argv[1:]) or (1_000_000,)):
        print(f"{what:60} {value:8.2f} {unit}")
