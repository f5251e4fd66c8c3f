"""A small table with gaps, signs, days and odd letters, its schema, and DuckDB's view of it."""

from __future__ import annotations

import datetime
import random

import duckdb
import pyarrow

import sulq

CITIES = ["Oslo", "Paris", "São Paulo", "it's"]
FIRST = datetime.date(2023, 11, 15)
LOOKUPS = {
    "regions": {
        "key": ["Oslo", "Paris", "São Paulo", "Atlantis"],
        "name": ["North", "Middle", "South", "Nowhere"],
        "half": ["N", "N", "S", "S"],
        "cost": [1.5, 2, 3, 4],
    }
}

SCHEMA = sulq.Schema(
    sulq.Number("age", 0, 120, step=1),
    sulq.Number("income", 0, 1000),
    sulq.Number("balance", -50, 50, step=1),
    sulq.Number("seen", FIRST, datetime.date(2024, 3, 10)),
    sulq.Number("Blood Pressure", 60, 200, step=1),
    sulq.Category("city", CITIES),
    sulq.Category("grade", [1, 2, 3]),
    sulq.Category("comment"),
    sulq.Flag("smoker"),
    sulq.Flag("member"),
    sulq.Number("visited", datetime.datetime(2023, 11, 15), datetime.datetime(2024, 3, 10)),
)


def _visit(draw: random.Random) -> datetime.datetime:
    return datetime.datetime(2023, 11, 15) + datetime.timedelta(minutes=draw.randrange(160_000))


def rows(count: int = 400) -> pyarrow.Table:
    """Rows whose sums DuckDB gets exactly: incomes are quarters."""
    draw = random.Random(7)

    def gap(value: object, chance: float = 0.1) -> object:
        return None if draw.random() < chance else value

    return pyarrow.table(
        {
            "age": pyarrow.array([gap(draw.randint(0, 99)) for _ in range(count)], "int64"),
            "income": [gap(draw.randint(0, 4000) / 4) for _ in range(count)],
            "balance": pyarrow.array([draw.randint(-50, 50) for _ in range(count)], "int64"),
            "seen": pyarrow.array(
                [gap(FIRST + datetime.timedelta(days=draw.randint(0, 110))) for _ in range(count)],
                pyarrow.date32(),
            ),
            "Blood Pressure": pyarrow.array([draw.randint(80, 180) for _ in range(count)], "int64"),
            "city": [gap(draw.choice(CITIES)) for _ in range(count)],
            "grade": pyarrow.array([gap(draw.randint(1, 3)) for _ in range(count)], "int64"),
            "comment": [gap(draw.choice(["fine", "bad", "a%b", "ünïcode"])) for _ in range(count)],
            "smoker": [gap(draw.random() < 0.3) for _ in range(count)],
            "member": [draw.random() < 0.6 for _ in range(count)],
            "visited": pyarrow.array([gap(_visit(draw)) for _ in range(count)], "timestamp[us]"),
        }
    )


def duck(table: pyarrow.Table) -> duckdb.DuckDBPyConnection:
    """DuckDB with the same rows, the lookups, and what our spelling calls otherwise."""
    made = duckdb.connect()
    made.register("people", table)
    for name, columns in LOOKUPS.items():
        made.register(name, pyarrow.table(columns))
    made.execute(
        "CREATE MACRO clamp(x, a, b) AS CASE WHEN x < a THEN a WHEN x > b THEN b ELSE x END"
    )
    made.execute(
        "CREATE MACRO width_bucket(x, a, b, n) AS CASE WHEN x < a THEN 0 WHEN x >= b THEN n + 1"
        " ELSE CAST(floor((x - a) * n / (b - a)) AS INT) + 1 END"
    )
    return made
