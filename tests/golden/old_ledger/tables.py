"""The tables of the old ledger, and what was asked of them. Public names only."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from sulq import (
    Category,
    Database,
    Flag,
    Number,
    Promise,
    Schema,
    col,
    count,
    histogram,
    mean,
    quantiles,
    total,
    variance,
)
from sulq.answers.statistics import count_persons
from sulq.exact import Assumptions

SCHEMAS = {
    "people": Schema(
        Number("age", 0, 120, step=1),
        Number("income", 0, 500_000),
        Flag("smoker"),
        Category("city", ["Oslo", "Paris"], public=True),
        Category("note"),
        Number("visits", 0, 10, step=1),
    ),
    "town": Schema(Number("visits", 0, 10, step=1), Flag("ill"), unit="person", max_rows=2),
    "bits": Schema(Flag("ill")),
    "done": Schema(Number("x", 0, 20, step=1)),
    "gone": Schema(Number("x", 0, 20, step=1)),
    "lost": Schema(Number("x", 0, 20, step=1)),
}
PROMISES = {
    "people": Promise(epsilon=1, delta="1e-6", credits=300),
    "town": Promise(epsilon=1, delta="1e-6", credits=200, neighbours="add-remove"),
    "bits": Promise(epsilon=1, delta="1e-6", credits=50),
    "done": Promise(epsilon=2, credits=40),
    "gone": Promise(epsilon=1, credits=20),
    "lost": Promise(epsilon=1, delta="1e-6", credits=20),
}
FIRST = {
    "people": {"schema": Schema(*SCHEMAS["people"].columns[:-1])},
    "done": {"promise": Promise(epsilon=1, credits=20)},
    "gone": {"schema": Schema(Number("x", 0, 15, step=1))},
}
"""What these were published with; `SCHEMAS` and `PROMISES` have what they were amended to."""
EXACTLY = Assumptions(4, "1e-3", 0, {"ill": Fraction(1, 5)})

PAID: dict[str, dict[str, Any]] = {
    "people": {
        "count": count(where=col("age") >= 65),
        "total": total(col("income").clip(0, 100_000), where=col("smoker")),
        "mean": mean("age"),
        "variance": variance("age", where=col("city") == "Oslo"),
        "histogram": histogram("smoker"),
        "quantiles": quantiles("income", [0.25, 0.75]),
    },
    "town": {"persons": count_persons(where=col("ill")), "total": total("visits")},
    "bits": {"count": count(where=col("ill"))},
    "done": {"count": count(where=col("x") > 5)},
}
"""Asked at 2 credits each, of the tables as they are now."""
NEW = {
    "people": count(where=col("income") > 77_000),
    "town": count(where=col("visits") == 3),
}
"""Never asked."""


def ledger_of(name: str) -> str:
    return "lost.ledger" if name == "lost" else "old.ledger"


def opened(directory: Path, name: str, **more: Any) -> Database:
    """A table of this folder, or of a copy of it."""
    exactly = EXACTLY if name == "bits" else None
    terms = {"schema": SCHEMAS[name], "promise": PROMISES[name], "exactly": exactly} | more
    return Database.open(
        directory / f"{name}.csv",
        ledger=directory / ledger_of(name),
        name=name,
        **terms,
    )
