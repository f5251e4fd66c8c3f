"""The six kinds of question that every engine is measured on, their raw SQL, and their table.

"raw" is the statement an analyst would write without bounds; "clamped" the same with the declared
bounds as LEAST and GREATEST, which is what a private answer needs in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from sulq.answers.statistics import count, histogram, mean, total
from sulq.kernel.query.expressions import col, lit
from sulq.kernel.query.sum_query import SumQuery, group, outer
from sulq.kernel.query.vectors import columns, concat, ones, scaled
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.columns import Category, Number, Schema

WIDE = tuple(f"x{i}" for i in range(10))
SCHEMA = Schema(
    Number("age", 0, 120),
    Number("income", 0, 500_000),
    Category("region", [f"region {i}" for i in range(50)]),
    Category("shop", [f"shop {i}" for i in range(500)]),
    *(Number(name, 0, 1) for name in WIDE),
)
CLAMPED = "LEAST(GREATEST(income, 0), 500000)"
OLD = col("age") >= 65
GROUPS = {10: (10,), 100: (100,), 1_000: (1_000,), 10_000: (10_000,), 100_000: (1_000, 100)}
"""Cells, and the columns they come from: a column declares at most 10,000 values."""


@dataclass(frozen=True)
class Case:
    """A question, and the statements it is compared with."""

    name: str
    question: Any
    raw: str
    clamped: str

    @property
    def program(self) -> Any:
        return bind(self.question, SCHEMA).sums


def moments(names: Iterable[str], of: Callable[[str], str]) -> str:
    """Count, sums and products of some columns, as SQL."""
    names = tuple(names)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i:]]
    sums = ["count(*)", *(f"sum({of(a)})" for a in names)]
    return f"SELECT {', '.join(sums + [f'sum({of(a)} * {of(b)})' for a, b in pairs])} FROM t"


def gram(width: int) -> Case:
    """Second moments of the first columns, and a constant."""
    v = concat(scaled(ones(), 0.5), columns(list(WIDE[:width])))
    return Case(
        f"{width + 1} x {width + 1} moments",
        outer(v, v),
        moments(WIDE[:width], lambda x: x),
        moments(WIDE[:width], lambda x: f"LEAST(GREATEST({x}, 0), 1)"),
    )


CASES = (
    Case(
        "filtered count",
        count(where=OLD),
        "SELECT count(*) FROM t WHERE age >= 65",
        "SELECT count(*) FROM t WHERE LEAST(GREATEST(age, 0), 120) >= 65",
    ),
    Case(
        "clipped sum",
        total(col("income").clip(0, 200_000)),
        "SELECT sum(LEAST(GREATEST(income, 0), 200000)) FROM t",
        f"SELECT sum(LEAST(GREATEST({CLAMPED}, 0), 200000)) FROM t",
    ),
    Case(
        "filtered mean",
        mean("income", where=OLD),
        "SELECT avg(income) FROM t WHERE age >= 65",
        f"SELECT avg({CLAMPED}) FROM t WHERE age >= 65",
    ),
    Case(
        "50-group count",
        histogram("region"),
        "SELECT region, count(*) FROM t GROUP BY region",
        "SELECT region, count(*) FROM t GROUP BY region",
    ),
    Case(
        "500-group sum and count",
        SumQuery((lit(1), col("income")), groups=(group("shop"),)),
        "SELECT shop, sum(income), count(*) FROM t GROUP BY shop",
        f"SELECT shop, sum({CLAMPED}), count(*) FROM t GROUP BY shop",
    ),
    gram(10),
)


def grouped(cells: int) -> tuple[Schema, Any, str]:
    """Sum and count by a column of so many declared values, or by two of them together."""
    names = [f"g{count}" for count in GROUPS[cells]]
    schema = Schema(
        Number("income", 0, 500_000),
        *(Category(f"g{count}", [f"k{i}" for i in range(count)]) for count in GROUPS[cells]),
    )
    question = SumQuery((lit(1), col("income")), groups=tuple(map(group, names)))
    keys = ", ".join(names)
    raw = f"SELECT {keys}, sum(income), count(*) FROM t GROUP BY {keys}"
    return schema, bind(question, schema).sums, raw


def people(folder: Path, rows: int, wide: bool = True) -> Path:
    """The table as Parquet, written once; it need not have the columns of moments."""
    draws = "".join(
        f", (hash(i, {k}) % 1000)::DOUBLE / 1000 AS {name}" for k, name in enumerate(WIDE)
    )
    whole = folder / f"people-{rows}.parquet"
    if not wide and not whole.exists():
        draws, whole = "", folder / f"people-{rows}-narrow.parquet"
    return _written(
        whole,
        "SELECT (hash(i, 20) % 1100000)::DOUBLE / 10000 AS age,"
        " CASE WHEN hash(i, 21) % 50 = 0 THEN NULL"
        " ELSE (hash(i, 22) % 30000000)::DOUBLE / 100 END AS income,"
        " 'region ' || (hash(i, 23) % 50) AS region, 'shop ' || (hash(i, 24) % 500) AS shop"
        f"{draws} FROM range({rows}) t(i)",
    )


def groups(folder: Path, rows: int) -> Path:
    """A number, and a column per number of groups."""
    counts = sorted({count for columns in GROUPS.values() for count in columns})
    keys = ", ".join(f"'k' || (hash(i, {count}) % {count}) AS g{count}" for count in counts)
    return _written(
        folder / f"groups-{rows}.parquet",
        f"SELECT (hash(i, 1) % 30000000)::DOUBLE / 100 AS income, {keys} FROM range({rows}) t(i)",
    )


def _written(path: Path, select: str) -> Path:
    if not path.exists():
        part = path.with_suffix(".part")
        with duckdb.connect() as connection:
            connection.execute("SET preserve_insertion_order = false")
            connection.execute(f"COPY ({select}) TO '{part}' (FORMAT parquet)")
        part.rename(path)
    return path
