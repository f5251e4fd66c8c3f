"""Small tables full of awkward values."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.kernel.engines.programs import Facts
from tests.kernel.engines.reference import Row

from sulq.kernel.schema.columns import Category, Flag, Number, Schema

CITIES = ("Oslo", "Paris", "", "O'Brien", "a%b", "back\\slash", "日本", 'quo"te', "a_b")
CODES = (0, 1, -1, 7, 2**62, -(2**63) + 1, 255)
AWKWARD = [
    None,
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    1e308,
    -1e308,
    2.5,
    3.5,
    -2.5,
    0.5,
    -0.5,
    99.99999999999999,
    100.0,
    math.nextafter(100.0, 200),
    math.nextafter(0.5, 0),
    math.nextafter(2.5, 0),
    math.nextafter(2.5, 9),
    1e15 + 0.5,
    float(2**53),
]
WHOLE = [None, 0, 1, -1, 2, 50, 99, 100, 101, -100, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63)]

SCHEMA = Schema(
    Number("x", -100, 100),
    Number("y", 0, 1_000_000),
    Number("z", -(2**53), 2**53),
    Number("n", 0, 120, step=1),
    Number("m", -(2**53), 2**53),
    Number("d", -1000, 1000),
    Number("small", -5, 300),
    Category("city", CITIES),
    Category("name"),
    Category("code", CODES),
    Flag("smoker"),
    Flag("bit"),
)
FACTS = Facts(
    numbers={
        "x": (-100.0, 100.0),
        "y": (0.0, 1e6),
        "z": (-(2.0**53), 2.0**53),
        "n": (0.0, 120.0),
        "m": (-(2.0**53), 2.0**53),
        "d": (-1000.0, 1000.0),
        "small": (-5.0, 300.0),
    },
    texts={"city": (*CITIES, "Atlantis"), "name": ("ann", "a\nb", "Ænn", "100%", "x" * 40)},
    codes={"code": (*CODES, 12345)},
    flags=("smoker", "bit"),
    edges=tuple(v for v in AWKWARD if v is not None and math.isfinite(v) and abs(v) < 1e16),
)


def rows(seed: int, count: int) -> list[Row]:
    rng = random.Random(seed)

    def real(low: float, high: float) -> float | None:
        if rng.random() < 0.5:
            return rng.choice(AWKWARD)
        x = rng.uniform(low - 1, high + 1)
        return rng.choice([x, round(x), round(x * 2) / 2, math.nextafter(round(x) + 0.5, 0)])

    return [
        {
            "x": real(-100, 100),
            "y": real(0, 1e6),
            "z": real(-(2.0**53), 2.0**53),
            "n": rng.choice(WHOLE[:10]) if rng.random() < 0.3 else rng.randrange(-5, 130),
            "m": rng.choice(WHOLE),
            "d": None if rng.random() < 0.1 else Decimal(rng.randrange(-(10**9), 10**9)) / 10**4,
            "small": None if rng.random() < 0.1 else rng.randrange(256),
            "city": rng.choice([None, "Atlantis", "oslo", *CITIES]),
            "name": rng.choice([None, "ann", "a\nb", "Ænn", "anna", "100%", "x" * 40, "nul\0nul"]),
            "code": rng.choice([None, 12345, -(2**63), *CODES]),
            "smoker": rng.choice([None, True, False]),
            "bit": rng.choice([None, 0, 1, 2, -1]),
        }
        for _ in range(count)
    ]


TYPES = pa.schema(
    [
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("z", pa.float64()),
        ("n", pa.int32()),
        ("m", pa.int64()),
        ("d", pa.decimal128(12, 4)),
        ("small", pa.uint8()),
        ("city", pa.string()),
        ("name", pa.string()),
        ("code", pa.int64()),
        ("smoker", pa.bool_()),
        ("bit", pa.int8()),
    ]
)


def table(content: list[Row]) -> pa.Table:
    columns = {name: [row[name] for row in content] for name in TYPES.names}
    return pa.table(columns, schema=TYPES)


def parquet(content: list[Row], path: Path) -> Path:
    pq.write_table(table(content), path, row_group_size=max(1, len(content) // 3))
    return path
