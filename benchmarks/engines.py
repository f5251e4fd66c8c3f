"""Exact integer sums against DuckDB's own float aggregates: user CPU, warm, same file, same run.

    python -m benchmarks.engines [rows ...]

A row of `figures` is (what, ratio, unit). "raw" is the statement an analyst would write without
bounds; "raw, clamped" the same statement with the declared bounds as LEAST and GREATEST.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb

from sulq.engines import open_engine
from sulq.schema.bound import (
    Always,
    CategoryCells,
    Chosen,
    Compared,
    Fixed,
    Greater,
    Lesser,
    Missing,
    Quantised,
    RowSums,
)
from sulq.schema.columns import Category, Number, Schema

REGIONS = tuple(f"region {i}" for i in range(50))
SHOPS = tuple(f"shop {i}" for i in range(500))
SCHEMA = Schema(
    Number("age", 0, 120),
    Number("income", 0, 500_000),
    Category("region", REGIONS),
    Category("shop", SHOPS),
)
PER_UNIT = 2.0**24 / 500_000
AGE = Quantised("age", 0.0, 120.0, 2.0**24 / 120)
INCOME = Quantised("income", 0.0, 500_000.0, PER_UNIT)
CLIPPED = Greater(Lesser(INCOME, Fixed(int(200_000 * PER_UNIT))), Fixed(0))
OLD = Compared("<=", Fixed(int(65 * 2**24 / 120)), AGE)
THERE = Chosen(Missing(INCOME, negated=True), Fixed(1), Fixed(0))

CLAMPED = "LEAST(GREATEST(income, 0), 500000)"
CASES: tuple[tuple[str, RowSums, str, str], ...] = (
    (
        "filtered count",
        RowSums(OLD, (Fixed(1),)),
        "SELECT count(*) FROM t WHERE age >= 65",
        "SELECT count(*) FROM t WHERE LEAST(GREATEST(age, 0), 120) >= 65",
    ),
    (
        "clipped sum",
        RowSums(Always(), (CLIPPED,)),
        "SELECT sum(LEAST(GREATEST(income, 0), 200000)) FROM t",
        f"SELECT sum(LEAST(GREATEST({CLAMPED}, 0), 200000)) FROM t",
    ),
    (
        "filtered mean",
        RowSums(OLD, (THERE, INCOME)),
        "SELECT avg(income) FROM t WHERE age >= 65",
        f"SELECT avg({CLAMPED}) FROM t WHERE age >= 65",
    ),
    (
        "50-group count",
        RowSums(Always(), (Fixed(1),), (CategoryCells("region", REGIONS, False),)),
        "SELECT region, count(*) FROM t GROUP BY region",
        "SELECT region, count(*) FROM t GROUP BY region",
    ),
    (
        "500-group sum and count",
        RowSums(Always(), (INCOME, Fixed(1)), (CategoryCells("shop", SHOPS, False),)),
        "SELECT shop, sum(income), count(*) FROM t GROUP BY shop",
        f"SELECT shop, sum({CLAMPED}), count(*) FROM t GROUP BY shop",
    ),
)


def write(path: Path, rows: int) -> Path:
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            "COPY (SELECT random() * 110 AS age,"
            " CASE WHEN random() < 0.02 THEN NULL ELSE random() * 300000 END AS income,"
            " 'region ' || CAST(floor(random() * 50) AS INTEGER) AS region,"
            " 'shop ' || CAST(floor(random() * 500) AS INTEGER) AS shop"
            f" FROM range({rows})) TO '{path}' (FORMAT parquet)"
        )
    return path


def user_cpu(work: Callable[[], object], repeats: int) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    for _ in range(repeats):
        work()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_utime - before) / repeats


def figures(rows: tuple[int, ...] = (1_000_000, 10_000_000)) -> list[tuple[str, float, str]]:
    """Ratios of user CPU, each the least of several interleaved runs."""
    found: list[tuple[str, float, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for count in rows:
            path = write(Path(folder) / f"{count}.parquet", count)
            found += _compare(path, count)
    return found


def _compare(path: Path, count: int, rounds: int = 7) -> list[tuple[str, float, str]]:
    found = []
    repeats = max(1, 20_000_000 // count)
    with duckdb.connect() as raw:
        raw.execute(f"SET threads = 2; CREATE VIEW t AS FROM read_parquet('{path}')")
        engine = open_engine(path, SCHEMA, threads=2)
        for name, program, plain, clamped in CASES:
            works: list[Callable[[], object]] = [
                lambda p=program: engine.exact_sums(p),  # type: ignore[misc]
                lambda q=plain: raw.execute(q).fetchall(),  # type: ignore[misc]
                lambda q=clamped: raw.execute(q).fetchall(),  # type: ignore[misc]
            ]
            times = [[user_cpu(work, repeats) for work in works] for _ in range(rounds)]
            exact, least, least_clamped = (min(column) for column in zip(*times, strict=True))
            what = f"{name}, {count:,} rows"
            found.append((f"{what}, to raw", round(exact / least, 2), "x"))
            found.append((f"{what}, to raw, clamped", round(exact / least_clamped, 2), "x"))
        engine.close()
    return found


if __name__ == "__main__":
    sizes = tuple(int(size) for size in sys.argv[1:]) or (1_000_000, 10_000_000)
    for what, value, unit in figures(sizes):
        print(f"{what:55} {value:6.2f} {unit}")
