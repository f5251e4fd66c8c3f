"""A small table that tests publish."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sulq import Category, Database, Flag, Number, Promise, Schema

SCHEMA = Schema(
    Number("age", 0, 120, step=1),
    Number("income", 0, 500_000),
    Flag("smoker"),
    Category("city", ["Oslo", "Paris"], public=True),
    Category("blood", ["A", "B", "0"]),
)


def frame(rows: int = 2_000, seed: int = 7) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": random.integers(0, 100, rows),
            "income": random.gamma(2, 20_000, rows).round(2),
            "smoker": random.random(rows) < 0.25,
            "city": random.choice(["Oslo", "Paris"], rows),
            "blood": random.choice(["A", "B", "0"], rows),
            "secret": random.integers(0, 10**9, rows),
        }
    )


def publish(
    source: Any = None,
    schema: Schema = SCHEMA,
    promise: Promise | None = None,
    ledger: str | Path = ":memory:",
    **more: Any,
) -> Database:
    data = frame() if source is None else source
    chosen = promise or Promise(epsilon=1, delta="1e-6", queries=100)
    return Database.open(data, schema, chosen, ledger, **({"publish": True} | more))
