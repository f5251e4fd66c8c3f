"""Exact integer sums against DuckDB's own float aggregates: user CPU, warm, same file, same run.

    python -m benchmarks.engines [rows ...]

A row of `figures` is (what, ratio, unit). "raw" is the statement an analyst would write without
bounds; "raw, clamped" the same statement with the declared bounds as LEAST and GREATEST.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb

from sulq.database import Database
from sulq.engines import open_engine
from sulq.query.expressions import col, lit
from sulq.query.statistics import count, histogram, mean, total
from sulq.query.sum_query import SumQuery, group
from sulq.schema.binding import bind
from sulq.schema.columns import Category, Number, Schema
from sulq.schema.promise import Promise

REGIONS = tuple(f"region {i}" for i in range(50))
SHOPS = tuple(f"shop {i}" for i in range(500))
SCHEMA = Schema(
    Number("age", 0, 120),
    Number("income", 0, 500_000),
    Category("region", REGIONS),
    Category("shop", SHOPS),
)
CLAMPED = "LEAST(GREATEST(income, 0), 500000)"
OLD = col("age") >= 65
CASES: tuple[tuple[str, object, str, str], ...] = (
    (
        "filtered count",
        count(where=OLD),
        "SELECT count(*) FROM t WHERE age >= 65",
        "SELECT count(*) FROM t WHERE LEAST(GREATEST(age, 0), 120) >= 65",
    ),
    (
        "clipped sum",
        total(col("income").clip(0, 200_000)),
        "SELECT sum(LEAST(GREATEST(income, 0), 200000)) FROM t",
        f"SELECT sum(LEAST(GREATEST({CLAMPED}, 0), 200000)) FROM t",
    ),
    (
        "filtered mean",
        mean("income", where=OLD),
        "SELECT avg(income) FROM t WHERE age >= 65",
        f"SELECT avg({CLAMPED}) FROM t WHERE age >= 65",
    ),
    (
        "50-group count",
        histogram("region"),
        "SELECT region, count(*) FROM t GROUP BY region",
        "SELECT region, count(*) FROM t GROUP BY region",
    ),
    (
        "500-group sum and count",
        SumQuery((lit(1), col("income")), groups=(group("shop"),)),
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
            found += _asked(path, count)
    return found


def _asked(path: Path, rows: int, questions: int = 200) -> list[tuple[str, float, str]]:
    """200 counts in a row, each a whole `ask`: bound, priced, charged, read, drawn, stored."""
    promise = Promise(1, "1e-6", queries=10**6)
    with duckdb.connect() as raw, tempfile.TemporaryDirectory() as folder:
        raw.execute(f"SET threads = 2; CREATE VIEW t AS FROM read_parquet('{path}')")
        os.environ["SULQ_STATE"] = folder
        with Database.open(path, SCHEMA, promise, f"{folder}/ledger") as db:
            asked = iter(range(10**9))

            def ours() -> None:
                for _ in range(questions):
                    db.ask(count(where=col("age") >= 20 + next(asked) / 50))

            def theirs() -> None:
                for place in range(questions):
                    raw.execute(f"SELECT count(*) FROM t WHERE age >= {20 + place / 50}").fetchall()

            times = [(user_cpu(ours, 1), user_cpu(theirs, 1)) for _ in range(3)]
    ratio = min(a for a, _ in times) / min(b for _, b in times)
    return [(f"200 counts in a row, whole asks, {rows:,} rows, to raw", round(ratio, 2), "x")]


def _compare(path: Path, count: int, rounds: int = 7) -> list[tuple[str, float, str]]:
    found = []
    repeats = max(1, 20_000_000 // count)
    with duckdb.connect() as raw:
        raw.execute(f"SET threads = 2; CREATE VIEW t AS FROM read_parquet('{path}')")
        engine = open_engine(path, SCHEMA, threads=2)
        for name, question, plain, clamped in CASES:
            program = bind(question, SCHEMA).sums
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
