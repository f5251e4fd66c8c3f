"""Counts by the values of an open text column, which nobody declared: what is asked, proved safe.

A row has one key, its text cut to a fixed length, or none (NULL); so a row adds 1 to at most one
key, and to their total.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Column, Expression, lit
from sulq.kernel.query.sum_query import FORMAT, SumQuery, digest_of, rows_where
from sulq.kernel.schema.bind import NoiseGrid, bind
from sulq.kernel.schema.columns import Category, Schema
from sulq.kernel.schema.program import Condition, RowSums
from sulq.kernel.schema.study import refuse_study

LONGEST = 200
"""Characters of a key: longer texts count as their beginning."""
MOST_SHOWN = 10_000


@dataclass(frozen=True, slots=True)
class KeyCounts:
    """What an engine is asked: how many rows, of those in S, hold each key of a column."""

    column: str
    rows: Condition  # implies that the column is there
    longest: int = LONGEST


@dataclass(frozen=True, slots=True)
class BoundKeys:
    """A question for keys: its one spelling, its program, and which accounts it touches."""

    text: str
    digest: str
    program: KeyCounts
    accounts: tuple[int, ...]
    fine_unit: int  # fine steps of one row
    most: int
    notes: tuple[str, ...]


def bind_keys(
    column: object,
    where: Expression | None,
    most: int,
    schema: Schema,
    neighbours: str,
    grid: NoiseGrid,
    asked_before: bool = False,
) -> BoundKeys:
    """Prove a question for keys safe; `InvalidQuery` says what is wrong and the remedy.

    `asked_before` as for `bind`.
    """
    refuse_study(schema, "keys that nobody declared")
    name = column.name if isinstance(column, Column) else column
    if not isinstance(name, str):
        raise InvalidQuery(f"keys wants the name of an open text column, got {column!r:.60}")
    found = schema[name]
    if not isinstance(found, Category):
        raise InvalidQuery(
            f"{name} is no text: ask histogram({name!r}), which needs no threshold",
            reason=Reason.WRONG_TYPE,
            about={"column": name},
        )
    if found.values is not None:
        raise InvalidQuery(
            f"the values of {name} are declared: ask histogram({name!r}), which shows them all",
            reason=Reason.WRONG_TYPE,
            about={"column": name},
        )
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_SHOWN:
        raise InvalidQuery(f"most must be a whole number from 1 to {MOST_SHOWN}, got {most!r:.40}")
    asked = SumQuery((lit(1),), rows_where(where, Column(name).is_not_null()))
    bound = bind(asked, schema, neighbours, grid=grid, asked_before=asked_before)
    assert isinstance(bound.sums, RowSums)  # noqa: S101
    form = {
        "sulq": FORMAT,
        "keys": name,
        "rows": canonical.to_json(bound.query.rows),
        "most": most,
        "longest": LONGEST,
    }
    text = json.dumps(form, ensure_ascii=False, separators=(",", ":"))
    touched = [number for reach, numbers in bound.reach if reach.l1 for number in numbers]
    return BoundKeys(
        text,
        digest_of(text),
        KeyCounts(name, bound.sums.rows),
        tuple(touched),
        bound.terms[0].fine_unit,
        most,
        bound.notes,
    )
