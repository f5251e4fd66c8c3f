"""Rows that belong to nobody, made from a schema alone: to write a notebook on, free.

They are uniform over what is declared, so no statistic of them means anything; the column
`sulq_dummy` says so in every row.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sulq.errors import InvalidQuery
from sulq.kernel.schema.columns import EPOCH, Category, Column, Flag, Number, Schema
from sulq.kernel.schema.study import Study

WATERMARK = "sulq_dummy"
MISSING = 0.02
"""Share of missing values, so that a notebook meets them before the real table does."""
MOST = 1_000_000
Values = NDArray[np.object_]


def dummy_rows(schema: Schema, rows: int, seed: int = 0) -> dict[str, Values]:
    """Columns of `rows` made-up rows within the declared bounds and values; reads no data."""
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MOST:
        raise InvalidQuery(f"rows must be a whole number from 1 to {MOST:,}, got {rows!r:.20}")
    random = np.random.default_rng(seed)
    found = {column.name: _values(column, rows, random) for column in schema.columns}
    if schema.unit != "row" and schema.unit not in found:
        found[schema.unit] = _list([i // schema.max_rows for i in range(rows)])
    found[WATERMARK] = _list([True] * rows)
    return found


def dummy_source(schema: Schema, rows: int, seed: int = 0) -> dict[str, Any]:
    """Made-up rows as `Database.open` takes them: of a study, those of each table by its name."""
    if not isinstance(schema, Study):
        return dict(dummy_rows(schema, rows, seed))
    found: dict[str, Any] = {schema.name: _of_table(schema, schema.columns, rows, seed)}
    found[schema.name][schema.unit] = _list(list(range(rows)))
    for number, table in enumerate(schema.tables, 1):
        made = _of_table(schema, table.columns, rows, seed + number)
        whose = np.random.default_rng(seed + number).integers(0, rows, rows)
        made[table.person or schema.unit] = _list(whose.tolist())
        found[table.name] = made
    return found


def _of_table(study: Study, columns: Sequence[Column], rows: int, seed: int) -> dict[str, Values]:
    return dummy_rows(Schema(*columns, bits=study.bits), rows, seed)


def _values(column: Column, rows: int, random: np.random.Generator) -> Values:
    made = _whole(column, rows, random)
    made[random.random(rows) < MISSING] = None
    return made


def _whole(column: Column, rows: int, random: np.random.Generator) -> Values:
    match column:
        case Flag():
            return _list((random.random(rows) < 0.5).tolist())
        case Category(values=None):
            made = random.integers(0, 100, rows).tolist()
            return _list(made if column.whole else [f"text {i}" for i in made])
        case Category(values=tuple(values)):
            return _list([values[i] for i in random.integers(0, len(values), rows)])
        case Number():
            return _list([_number(column, share) for share in random.random(rows)])
    raise InvalidQuery(f"{column.name} cannot be made up")


def _number(column: Number, share: float) -> int | float | datetime.date:
    low, high = column.range
    value = low + Fraction(share) * (high - low)
    if column.lattice is not None:
        value = low + round((value - low) / column.lattice) * column.lattice
    value = min(value, high)
    if column.kind == "date":
        return EPOCH.date() + datetime.timedelta(days=round(value))
    if column.kind == "datetime":
        return EPOCH + datetime.timedelta(seconds=round(value))
    return value.numerator if value.denominator == 1 else float(value)


def _list(values: list[object]) -> Values:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made
