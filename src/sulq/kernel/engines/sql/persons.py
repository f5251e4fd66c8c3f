"""A person unit: of each person's rows the first `max_rows` by a hash of their values count.

The hash is plain integer arithmetic, so every engine keeps the same rows in any row order:

    h = sum_i B^(i+1) code_i mod P,   order key = h (h (h + 7) + 5) mod P,   P = 2^31 - 1

code_i is 0 for NULL; else 1 plus: a Number's steps above its low end on a grid of 2^20, the
first 28 bits of MD5 of a text, an integer's residue mod P, 0 or 1 for a flag. Equal hashes are
ordered by the (clamped) values themselves, so what still ties is the same row to every question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.engines.sql.leaves import ColumnSql, column_leaf, leaf_sql
from sulq.kernel.schema.columns import Category, Column, Flag, Number, Schema
from sulq.kernel.schema.program import PRIME, Quantised

BASE = 1_103_515_245
STEPS = 2**20
FARTHEST = Fraction(2**62)


def hash_grid(column: Number) -> Quantised:
    """2^20 steps over the range; fewer where 2^62 would not hold how far from 0 they lie."""
    low, high = column.range
    per_unit = min(STEPS / (high - low), FARTHEST / max(abs(low), abs(high)))
    return Quantised(column.name, float(low), float(high), float(per_unit))


def code_sql(column: Column, place: ColumnSql) -> str:
    prime = Dialect.integer(PRIME)
    match column:
        case Number():
            leaf = column_leaf(hash_grid(column))
            code = f"{Dialect.bigint(leaf_sql(leaf, place)[0])} - {Dialect.integer(leaf.least)}"
        case Category() if place.kind == "text":
            code = place.dialect.text_hash(place.sql)
        case Category():
            code = Dialect.bigint(f"(({place.sql} % {prime}) + {prime}) % {prime}")
        case Flag():
            code = place.dialect.flag_bit(place.sql)
    return f"COALESCE({code} + {Dialect.integer(1)}, {Dialect.integer(0)})"


def told_sql(column: Column, place: ColumnSql) -> str:
    """The value as far as any question can tell it."""
    x, speak = place.sql, place.dialect
    if isinstance(column, Number):
        low, high = (float(bound) for bound in column.range)
        inside = speak.double(x)
        x = (
            f"CASE WHEN {inside} < {speak.real(low)} THEN {speak.real(low)}"
            f" WHEN {inside} <= {speak.real(high)} THEN {inside}"
            f" WHEN {inside} <= {place.infinity} THEN {speak.real(high)} END"
        )
    return x


def kept_rows_sql(schema: Schema, places: Mapping[str, ColumnSql], person: str, source: str) -> str:
    """SELECT of the rows that count, with only the declared columns and whose they are."""
    names = ", ".join(places[column.name].sql for column in schema.columns)
    placed = placed_rows_sql(schema.columns, places, person, source)
    kept = f"WHERE {PLACE} <= {schema.max_rows}"
    return f"SELECT {names}, {person} FROM ({placed}) AS ordered {kept}"


PLACE = "place_in_line"
"""Where a row stands among its person's rows in the hash order, from 1."""


def placed_rows_sql(
    columns: Sequence[Column], places: Mapping[str, ColumnSql], person: str, source: str
) -> str:
    """SELECT of the rows that have a person, each with its place among that person's rows."""
    read = [(column, places[column.name]) for column in columns]
    prime = Dialect.integer(PRIME)
    parts = [
        f"({code_sql(column, place)} * {Dialect.integer(pow(BASE, i + 1, PRIME))}) % {prime}"
        for i, (column, place) in enumerate(read)
    ]
    names = ", ".join(place.sql for _, place in read)
    seven, five = Dialect.integer(7), Dialect.integer(5)
    cubic = f"((((h + {seven}) * h) % {prime} + {five}) * h) % {prime}"
    ties = ", ".join(f"{told_sql(column, place)} ASC NULLS FIRST" for column, place in read)
    return (
        f"SELECT {names}, {person}, row_number() OVER"
        f" (PARTITION BY {person} ORDER BY {cubic}, {ties}) AS {PLACE}"
        f" FROM (SELECT {names}, {person}, ({' + '.join(parts)}) % {prime} AS h"
        f" FROM {source} WHERE {person} IS NOT NULL) AS hashed"
    )
