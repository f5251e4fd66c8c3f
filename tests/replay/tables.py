"""Tables with awkward rows, and their neighbours: a row or a person added, removed or replaced."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from tests.kernel.engines import extremes

from sulq import Category, Number, Schema

Row = dict[str, Any]

PRIVATE = [column for column in extremes.SCHEMA.columns if column.name != "row"]
TYPES = {name: kind for name, (kind, _) in extremes.TYPES.items()} | {"who": pa.int64()}
NOTES = [None, "flu", "asthma", "x" * 200, "it's; --", "ünï\U0001f600", ""]
TYPES |= {"note": pa.string(), "city": pa.string(), "arrives": pa.int64()}
TYPES |= {"ward": pa.int64()}
OPEN = (Category("note"), Category("ward", whole=True))

BY_ROW = Schema(
    Number("row", 0, 40, step=1, public=True),
    *PRIVATE,
    *OPEN,
    Category("city", ["Oslo", "Paris"]),
    bits=31,
)
ADD_REMOVE = Schema(*PRIVATE, *OPEN, Category("city", ["Oslo", "Paris"]), bits=31)
BY_PERSON = Schema(
    *PRIVATE, *OPEN, Category("city", ["Oslo", "Paris"]), unit="who", max_rows=2, bits=31
)


def a_row(rng: random.Random, number: int) -> Row:
    """Private values of every kind, the worst there are among them."""
    row = extremes.rows(rng.randrange(10**9))[0]
    huge = rng.choice([math.inf, -math.inf, math.nan, 1e308, -0.0, 5e-324])
    if rng.random() < 0.2:
        row["x"] = huge
    note = rng.choice(NOTES)
    return row | {
        "row": number,
        "who": number // 3,
        "note": note,
        "ward": None if note is None else len(note) * 2**53 - (note == "flu"),
        "city": rng.choice(["Oslo", "Paris", None, "?"]),
        "arrives": number // 5,  # in which version of the table
    }


def rows_of(rng: random.Random, number: int) -> list[Row]:
    return [a_row(rng, at) for at in range(number)]


def arrow(rows: Sequence[Row], names: Sequence[str] = tuple(TYPES)) -> pa.Table:
    held = {name: [row[name] for row in rows] for name in names}
    return pa.table(held, pa.schema([(name, TYPES[name]) for name in names]))


def several(rng: random.Random, who: int) -> list[Row]:
    """More rows of one person than count; all equal now and then, so that each adds as much."""
    rows = [a_row(rng, 0) | {"who": who} for _ in range(rng.randint(1, 5))]
    return [dict(rows[0]) for _ in rows] if rng.random() < 0.5 else rows


@dataclass(frozen=True)
class Relation:
    """Who is a neighbour: what is protected, and how the promise calls it."""

    name: str
    schema: Schema
    neighbours: str

    def near(self, rows: Sequence[Row], rng: random.Random) -> list[Row]:
        """A table that differs in one row, or in all rows of one person."""
        found = [dict(row) for row in rows]
        at = rng.randrange(len(found))
        if self.name == "persons":
            who = found[at]["who"]
            others = [row for row in found if row["who"] != who]
            if self.neighbours == "replace":  # the person stays, with other rows
                return others + several(rng, who)
            return others if rng.random() < 0.5 else found + several(rng, 999)
        if self.neighbours == "replace":
            found[at] = a_row(rng, found[at]["row"]) | {"row": found[at]["row"]}
            return found
        if rng.random() < 0.5:
            return found[:at] + found[at + 1 :]
        return [*found, a_row(rng, 0)]


REPLACE = Relation("rows", BY_ROW, "replace")
ADDED = Relation("rows", ADD_REMOVE, "add-remove")
PERSONS = Relation("persons", BY_PERSON, "add-remove")
RELATIONS = (REPLACE, ADDED, PERSONS)
