"""How integer SQL is spelled on PostgreSQL, and how a declared column is read there.

PostgreSQL raises where others give a value: a product of floats that vanishes, a numeric beyond
binary64, a difference of infinite dates. Each such value is told apart first, so that no row can
make a statement fail. docs/proofs/postgresql.md.

| declared            | may be                                    | becomes              |
| Number              | integers, real, double precision, numeric | integer or FLOAT8    |
| Number with dates   | date, timestamp with or without time zone | days, rounded down   |
| Number with times   | timestamp (UTC), date                     | seconds, FLOAT8      |
| Category of texts   | text, varchar, char, an enum              | text, bytewise order |
| Category of numbers | integers                                  | BIGINT               |
| Flag                | boolean, integers (1, 0, else NULL)       | boolean              |
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sulq.errors import InvalidQuery
from sulq.kernel.engines.duckdb.physical import Read
from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.schema.columns import Category, Column, Flag, Number

INTEGERS = {"int2", "int4", "int8"}
TEXTS = {"text", "varchar", "bpchar"}
TIMES = {"timestamp", "timestamptz"}
PERSON_TYPES = INTEGERS | TEXTS | {"uuid"}
LONGEST_NUMERIC = 300
"""A numeric(p, s) with at most so many digits is a binary64 number, never beyond or below them."""
ZERO_BELOW = 2.0**-500


class PostgresDialect(Dialect):
    """PostgreSQL's spelling, for a session as `postgres_session` sets it up."""

    @staticmethod
    def real(value: float) -> str:
        return f"CAST('{value!r}' AS FLOAT8)"

    @staticmethod
    def wide(sql: str) -> str:
        return f"CAST({sql} AS NUMERIC)"

    @staticmethod
    def double(sql: str) -> str:
        return f"CAST({sql} AS FLOAT8)"

    @staticmethod
    def streamed(sql: str) -> str:
        return f"COALESCE(CAST({sql} AS FLOAT8), CAST('NaN' AS FLOAT8))"

    @staticmethod
    def flag_bit(flag: str) -> str:
        return f"CAST(CAST({flag} AS INTEGER) AS BIGINT)"

    @staticmethod
    def floor_shift(value: str, bits: int) -> str:
        return f"({Dialect.bigint(value)} >> CAST({bits} AS INTEGER))"

    @staticmethod
    def rounded(x: str, per_unit: float) -> str:
        """A product may vanish only if per_unit < 1: those x have the leaf 0 and are told apart."""
        rounded = f"FLOOR({x} * {PostgresDialect.real(per_unit)} + {PostgresDialect.real(0.5)})"
        if per_unit >= 1:
            return rounded
        tiny = PostgresDialect.real(ZERO_BELOW / per_unit)
        return f"CASE WHEN abs({x}) < {tiny} THEN {PostgresDialect.real(0.0)} ELSE {rounded} END"

    @staticmethod
    def whole_sum(value: str, largest: int, rows: int) -> str:
        return f"COALESCE(sum({Dialect.bigint(value)}), {PostgresDialect.wide('0')})"

    @staticmethod
    def truncated_division(over: str, under: str) -> str:
        return f"({over} / {under})"

    @staticmethod
    def wide_division(over: str, under: str) -> str:
        return f"div({over}, {under})"

    @staticmethod
    def can_hold(value: str) -> bool:
        return "\x00" not in value

    @staticmethod
    def like(column: str, pattern: str) -> str:
        if not PostgresDialect.can_hold(pattern):
            return f"{column} <> {column}"  # false, and NULL where the column is
        return f"{column} LIKE {Dialect.text(pattern)} ESCAPE ''"

    @staticmethod
    def declared_only(column: str, values: Sequence[str] | Sequence[int]) -> str:
        known = ", ".join(
            Dialect.text(v) if isinstance(v, str) else Dialect.integer(v) for v in values
        )
        return f"CASE WHEN {column} IN ({known}) THEN CAST({column} AS TEXT) END"

    @staticmethod
    def place_among(column: str, values: Sequence[str] | Sequence[int]) -> str:
        """One binary search in a constant."""
        places = json.dumps({str(v): i for i, v in enumerate(values)}, ensure_ascii=False)
        known = Dialect.text(places)
        found = f"CAST({known} AS JSONB) ->> CAST({column} AS TEXT)"
        return f"COALESCE(CAST(({found}) AS BIGINT), {Dialect.integer(-1)})"

    @staticmethod
    def text_hash(column: str) -> str:
        return f"CAST(CAST('x' || substr(md5({column}), 1, 7) AS BIT(28)) AS BIGINT)"

    @staticmethod
    def part_of(key: str, parts: int) -> str:
        low = f"hashtextextended({key}, {Dialect.integer(0)}) & {Dialect.integer(2**30 - 1)}"
        return f"({low}) % {Dialect.integer(parts)}"

    fence = " OFFSET CAST('0' AS BIGINT)"  # as a constant of its own type it lets workers in
    counts_by_test = True
    text_type = "TEXT"


# --- reading columns ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Held:
    """A column as the catalogue describes it."""

    name: str
    number: int
    kind: str
    """Its type's name, that of the type below for a domain, "enum" for every enum."""
    modifier: int
    computed: bool
    """Worked out when it is read, so that its value is in no stored row."""
    labels: str
    """An enum's values, which may be renamed without touching a row."""


def read_held(column: Column, held: Held) -> Read:
    """The expression for a declared column, and what it holds."""
    x = Dialect.name(column.name)
    match column:
        case Number(kind="number"):
            read, wanted = _number(x, held), "numbers"
        case Number(kind="date"):
            read, wanted = _days(x, held.kind), "dates or timestamps"
        case Number():
            read, wanted = _seconds(x, held.kind), "timestamps or dates"
        case Category(integers=True):
            code: Read = (f"CAST({x} AS BIGINT)", "code")
            read, wanted = code if held.kind in INTEGERS else None, "integers"
        case Category():
            text: Read = (text_sql(x), "text")
            read, wanted = text if held.kind in TEXTS | {"enum"} else None, "text"
        case Flag():
            read, wanted = _flag(x, held.kind), "booleans or integers"
    if read is None:
        raise InvalidQuery(
            f"column {column.name!r} is declared to hold {wanted} but the table has {held.kind}"
            " there; declare it otherwise or convert it"
        )
    return read


def text_sql(x: str) -> str:
    """Text compared and ordered by its bytes, whatever the column's collation."""
    return f'(CAST({x} AS TEXT) COLLATE "C")'


def person_sql(x: str, held: Held) -> str:
    if held.kind not in PERSON_TYPES:
        raise InvalidQuery(f"the person column {held.name!r} must hold integers or text")
    return x if held.kind in INTEGERS else text_sql(x)


def _number(x: str, held: Held) -> Read | None:
    if held.kind in INTEGERS:
        return x, "whole"
    if held.kind == "float8":
        return x, "real"
    if held.kind == "float4":
        return f"CAST({x} AS FLOAT8)", "real"
    if held.kind == "numeric":
        return _binary64(x, held.modifier), "real"
    return None


def _binary64(x: str, modifier: int) -> str:
    """A numeric as the nearest FLOAT8; beyond them infinite, below them 0."""
    plain = f"CAST({x} AS FLOAT8)"
    digits, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    if modifier >= 4 and digits <= LONGEST_NUMERIC and scale <= LONGEST_NUMERIC:
        return plain  # NaN is one of both types; infinity is none of numeric(p, s)
    return (
        f"CASE WHEN abs({x}) < 1e300 THEN CASE WHEN abs({x}) > 1e-300 THEN {plain}"
        f" WHEN {x} IS NOT NULL THEN {PostgresDialect.real(0.0)} END"
        f" WHEN {x} = CAST('NaN' AS NUMERIC) THEN {PostgresDialect.real(float('nan'))}"
        f" WHEN {x} > 0 THEN {PostgresDialect.real(float('inf'))}"
        f" WHEN {x} < 0 THEN {PostgresDialect.real(float('-inf'))} END"
    )


def _utc(x: str, kind: str) -> str:
    return f"({x} AT TIME ZONE 'UTC')" if kind == "timestamptz" else x


def _days(x: str, kind: str) -> Read | None:
    if kind not in TIMES | {"date"}:
        return None
    day = x if kind == "date" else f"CAST({_utc(x, kind)} AS DATE)"
    return _since_1970(day), "whole"


def _since_1970(day: str) -> str:
    """Infinite days are beyond every bound, on their side."""
    return (
        f"CASE WHEN isfinite({day}) THEN CAST({day} - DATE '1970-01-01' AS BIGINT)"
        f" WHEN {day} > DATE '1970-01-01' THEN {Dialect.integer(2**62)}"
        f" WHEN {day} IS NOT NULL THEN {Dialect.integer(-(2**62))} END"
    )


def _seconds(x: str, kind: str) -> Read | None:
    if kind == "date":
        days = _since_1970(x)
        return f"CAST({days} AS FLOAT8) * {PostgresDialect.real(86400.0)}", "real"
    if kind in TIMES:
        return f"date_part('epoch', {_utc(x, kind)})", "real"
    return None


def _flag(x: str, kind: str) -> Read | None:
    if kind == "bool":
        return x, "flag"
    if kind in INTEGERS:
        return f"CASE WHEN {x} = 1 THEN TRUE WHEN {x} = 0 THEN FALSE END", "flag"
    return None
