"""How integer SQL is spelled on Spark, and how a declared column is read there.

Texts are written as their bytes, so that no escape, variable or quote of Spark's parser can change
them. docs/proofs/spark.md.

| declared            | may be                                | becomes            |
| Number              | integers, float, double, decimal      | integer or DOUBLE  |
| Number with dates   | date, timestamp, timestamp_ntz        | days, rounded down |
| Number with times   | timestamp (UTC), timestamp_ntz, date  | seconds, DOUBLE    |
| Category of texts   | string, varchar                       | STRING, bytewise   |
| Category of numbers | integers, decimal(20,0)               | as it is           |
| Flag                | boolean, integers (1, 0, else NULL)   | BOOLEAN            |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sulq.errors import InvalidQuery
from sulq.kernel.engines.duckdb.physical import Read
from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.schema.columns import Category, Column, Flag, Number

INTEGERS = {"tinyint", "smallint", "int", "bigint"}
UNSIGNED = "decimal(20,0)"
"""What Spark makes of Parquet's unsigned 64-bit integers."""
TIMES = {"timestamp", "timestamp_ntz"}
BIGINT = 2**63


class SparkDialect(Dialect):
    """Spark's spelling, for a session as `spark_session` sets it up."""

    @staticmethod
    def text(value: str) -> str:
        return f"CAST(X'{value.encode().hex()}' AS STRING)"

    @staticmethod
    def name(value: str) -> str:
        return "`" + value.replace("`", "``") + "`"

    @staticmethod
    def table(name: str) -> str:
        """With its name said, as `people WHERE (c0)` would be `people` under another name."""
        return f"{name} AS {name}"

    @staticmethod
    def wide(sql: str) -> str:
        return f"CAST({sql} AS DECIMAL(38, 0))"

    @staticmethod
    def rounded(x: str, per_unit: float) -> str:
        """FLOOR gives a BIGINT, which a leaf fits."""
        scaled = f"{x} * {Dialect.real(per_unit)} + {Dialect.real(0.5)}"
        return f"CAST(FLOOR({scaled}) AS DOUBLE)"

    @staticmethod
    def whole_sum(value: str, largest: int, rows: int) -> str:
        whole = Dialect.bigint(value)
        if largest * rows < BIGINT:
            return f"COALESCE(sum({whole}), {Dialect.integer(0)})"
        summed = f"sum(CAST({whole} AS DECIMAL(20, 0)))"  # added up with 30 digits
        return f"COALESCE({summed}, CAST(0 AS DECIMAL(30, 0)))"

    @staticmethod
    def truncated_division(over: str, under: str) -> str:
        return f"({over} div {under})"

    @staticmethod
    def wide_division(over: str, under: str) -> str:
        return f"({over} div {under})"

    @staticmethod
    def floor_shift(value: str, bits: int) -> str:
        return f"shiftright({Dialect.bigint(value)}, CAST({bits} AS INT))"

    @staticmethod
    def can_hold(value: str) -> bool:
        return not any("\ud800" <= letter <= "\udfff" for letter in value)

    @staticmethod
    def like(column: str, pattern: str) -> str:
        if not SparkDialect.can_hold(pattern):
            return f"{column} <> {column}"  # false, and NULL where the column is
        first, *rest = pattern.split("%")
        if "_" not in pattern and sum(map(bool, (first, *rest))) <= 1:  # Spark compares bytes
            escape = next(m for m in map(chr, range(ord("!"), 0xD800)) if _unused(m, pattern))
            return f"{column} LIKE {SparkDialect.text(pattern)} ESCAPE '{escape}'"
        return f"{column} RLIKE {SparkDialect.text(_expression(first, rest))}"

    @staticmethod
    def declared_only(column: str, values: Sequence[str] | Sequence[int]) -> str:
        known = ", ".join(_literal(value) for value in values)
        return f"CASE WHEN {column} IN ({known}) THEN CAST({column} AS STRING) END"

    @staticmethod
    def place_among(column: str, values: Sequence[str] | Sequence[int]) -> str:
        """By halving; Spark orders texts by their bytes, which is the order of code points."""
        order = sorted(range(len(values)), key=lambda place: values[place])
        found = _search(column, [(_literal(values[place]), place) for place in order])
        none = Dialect.integer(-1)
        return Dialect.bigint(f"CASE WHEN {column} IS NULL THEN {none} ELSE {found} END")

    @staticmethod
    def text_hash(column: str) -> str:
        return f"CAST(conv(substr(md5({column}), 1, 7), 16, 10) AS BIGINT)"

    @staticmethod
    def part_of(key: str, parts: int) -> str:
        return f"pmod(xxhash64({key}), {Dialect.integer(parts)})"

    counts_by_test = True
    text_type = "STRING"


def _unused(mark: str, pattern: str) -> bool:
    return mark not in pattern and mark not in "%_'\\"


def _expression(first: str, rest: Sequence[str]) -> str:
    """LIKE in time pattern times text: Spark's own goes back over every % again and again.

    Between the ends each part is taken where it is found first, for good: further left leaves more
    for the others.
    """
    *middle, last = rest or [""]
    found = "".join(f"(?>.*?{_letters(part)})" for part in middle if part)
    return f"(?s)\\A{_letters(first)}{found}{'.*' if rest else ''}{_letters(last)}\\z"


def _letters(part: str) -> str:
    return "".join("." if letter == "_" else f"\\x{{{ord(letter):x}}}" for letter in part)


def _literal(value: str | int) -> str:
    return SparkDialect.text(value) if isinstance(value, str) else Dialect.integer(value)


def _search(column: str, known: Sequence[tuple[str, int]]) -> str:
    if len(known) == 1:
        value, place = known[0]
        here, none = Dialect.integer(place), Dialect.integer(-1)
        return f"CASE WHEN {column} = {value} THEN {here} ELSE {none} END"
    half = len(known) // 2
    left, right = _search(column, known[:half]), _search(column, known[half:])
    return f"CASE WHEN {column} < {known[half][0]} THEN {left} ELSE {right} END"


# --- reading columns ----------------------------------------------------------------------------


def read_held(column: Column, held: Mapping[str, str]) -> Read:
    """The expression for a declared column, given Spark's type of each, and what it holds."""
    x, kind = SparkDialect.name(column.name), held[column.name]
    match column:
        case Number(kind="number"):
            read, wanted = _number(x, kind), "numbers"
        case Number(kind="date"):
            read, wanted = _days(x, kind), "dates or timestamps"
        case Number():
            read, wanted = _seconds(x, kind), "timestamps or dates"
        case Category(integers=True):
            read, wanted = _code(x, kind, column.whole), "integers"
        case Category():
            text: Read = (x, "text")
            read, wanted = text if kind == "string" else None, "text"
        case Flag():
            read, wanted = _flag(x, kind), "booleans or integers"
    if read is None:
        raise InvalidQuery(
            f"column {column.name!r} is declared to hold {wanted} but the table has"
            f" {kind.split('<')[0]} there; declare it otherwise or convert it"
        )
    return read


def person_sql(name: str, kind: str) -> str:
    if kind not in INTEGERS | {"string", UNSIGNED}:
        raise InvalidQuery(f"the person column {name!r} must hold integers or text")
    return SparkDialect.name(name)


def _number(x: str, kind: str) -> Read | None:
    if kind in INTEGERS:
        return x, "whole"
    if kind == "double":
        return x, "real"
    if kind == "float" or kind.startswith("decimal("):
        return f"CAST({x} AS DOUBLE)", "real"
    return None


def _days(x: str, kind: str) -> Read | None:
    if kind == "date":
        return f"unix_date({x})", "whole"
    return (f"unix_date(CAST({x} AS DATE))", "whole") if kind in TIMES else None


def _seconds(x: str, kind: str) -> Read | None:
    if kind == "date":
        return f"CAST(unix_date({x}) AS DOUBLE) * {Dialect.real(86400.0)}", "real"
    if kind in TIMES:
        micros = f"unix_micros(CAST({x} AS TIMESTAMP))"
        return f"CAST({micros} AS DOUBLE) / {Dialect.real(1e6)}", "real"
    return None


def _code(x: str, kind: str, is_open: bool) -> Read | None:
    if kind in INTEGERS:
        return f"CAST({x} AS BIGINT)", "code"
    if is_open and kind == UNSIGNED:
        return f"CASE WHEN {x} <= {2**63 - 1} THEN CAST({x} AS BIGINT) END", "code"
    return (x, "code") if kind == UNSIGNED else None


def _flag(x: str, kind: str) -> Read | None:
    if kind == "boolean":
        return x, "flag"
    if kind in INTEGERS:
        return f"CASE WHEN {x} = 1 THEN TRUE WHEN {x} = 0 THEN FALSE END", "flag"
    return None
