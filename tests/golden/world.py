"""The table, the schemas and the promises that the golden records speak of. Public names only."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa

from sulq import Category, Flag, Number, Promise, Schema

ROWS = 240
COLUMNS = (
    Number("id", 0, 999, step=1, public=True),
    Number("age", 0, 120, step=1),
    Number("income", 0, 500_000),
    Number("score", -1, 1),
    Number("visits", 0, 3, step=1),
    Number("born", datetime.date(1920, 1, 1), datetime.date(2020, 12, 31)),
    Number("seen", datetime.datetime(2020, 1, 1), datetime.datetime(2024, 1, 1)),
    Flag("smoker"),
    Flag("ill"),
    Category("city", ["Oslo", "Paris"], public=True),
    Category("blood", ["A", "B", "0"]),
    Category("grade", [1, 2, 3]),
    Category("note"),
)
SCHEMA = Schema(*COLUMNS)
PERSONS = Schema(*COLUMNS, unit="person", max_rows=3)

PROMISES: dict[str, tuple[Schema, Promise]] = {
    "gaussian": (SCHEMA, Promise(epsilon=1, delta="1e-6", credits=10_000)),
    "small": (SCHEMA, Promise(epsilon="0.1", delta="1e-9", credits=2_500)),
    "pure": (SCHEMA, Promise(epsilon=2, credits=10_000, noise="laplace")),
    "add-remove": (
        SCHEMA,
        Promise(epsilon=1, delta="1e-6", credits=10_000, neighbours="add-remove"),
    ),
    "person": (PERSONS, Promise(epsilon=1, delta="1e-6", credits=100_000)),
}
"""Five promises: enough credits that every question can be asked once under each."""


def rows() -> dict[str, list[Any]]:
    """Rows by column: with missing values, NaN, and values outside bounds and declarations."""
    nan, inf = float("nan"), float("inf")
    strange: dict[int, Any] = {7: None, 31: nan, 57: inf, 101: -5.0, 160: 1e9}
    texts = ["cold", "cold again", "flu", "rare " + "x" * 80, None, "50%_'quoted'"]
    day, time = datetime.date(1925, 3, 1), datetime.datetime(2020, 2, 29, 12, 30)
    numbers = range(ROWS)
    return {
        "person": [i * 7 % 97 for i in numbers],
        "id": list(numbers),
        "age": [None if i % 41 == 0 else i * 7 % 130 - 3 for i in numbers],
        "income": [strange.get(i, (i * 7919 % 90_000) + 0.25) for i in numbers],
        "score": [None if i % 29 == 0 else (i * 37 % 401) / 200 - 1 for i in numbers],
        "visits": [i % 5 for i in numbers],
        "born": [None if i % 53 == 0 else day + datetime.timedelta(days=i * 149) for i in numbers],
        "seen": [time + datetime.timedelta(minutes=i * 6007) for i in numbers],
        "smoker": [None if i % 37 == 0 else i % 4 == 0 for i in numbers],
        "ill": [i % 9 == 0 for i in numbers],
        "city": [["Oslo", "Paris"][i * 5 % 3 % 2] for i in numbers],
        "blood": [["A", "B", "0", "AB", None][i % 5] for i in numbers],
        "grade": [[1, 2, 3, 4][i % 4] for i in numbers],
        "note": [texts[i % len(texts)] for i in numbers],
    }


TYPES = {
    "person": pa.int64(),
    "id": pa.int64(),
    "age": pa.int64(),
    "income": pa.float64(),
    "score": pa.float64(),
    "visits": pa.int64(),
    "born": pa.date32(),
    "seen": pa.timestamp("us"),
    "smoker": pa.bool_(),
    "ill": pa.bool_(),
    "city": pa.string(),
    "blood": pa.string(),
    "grade": pa.int64(),
    "note": pa.string(),
}


def table() -> pa.Table:
    """The rows as an Arrow table."""
    return pa.table({name: pa.array(held, TYPES[name]) for name, held in rows().items()})


def many() -> pa.Table:
    """Many rows of two bits: enough that their sums may be released as they are."""
    numbers = range(40_000)
    return pa.table({"ill": [i % 5 == 0 for i in numbers], "smoker": [i % 7 < 2 for i in numbers]})


LOOKUPS = {
    "regions": {"key": ["Oslo", "Paris"], "name": ["North", "South"], "half": ["a", "a"]},
}
