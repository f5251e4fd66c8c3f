"""How a declared column is read from what a file or frame holds: one SQL expression, no errors.

| declared            | may be                                         | becomes            |
| Number              | integers, FLOAT, DOUBLE, DECIMAL               | BIGINT or DOUBLE   |
| Number with dates   | DATE, TIMESTAMP                                | days, rounded down |
| Number with times   | TIMESTAMP (UTC without or with a zone), DATE   | seconds, DOUBLE    |
| Category of texts   | VARCHAR, ENUM                                  | VARCHAR            |
| Category of numbers | integers                                       | BIGINT or HUGEINT  |
| Flag                | BOOLEAN, integers (1, 0, else NULL)            | BOOLEAN            |

CSV cells are text, spelled as the policy declares (`Spelling`). A cell that is not what was
declared is NULL; a flag reads true, t, yes, y, 1 and false, f, no, n, 0 in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sulq.errors import InvalidQuery
from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.schema.columns import Category, Column, Flag, Number

Kind = Literal["real", "whole", "text", "code", "flag"]
Read = tuple[str, Kind]
Holds: TypeAlias = Literal["text", "whole", "other"]
UNCOUNTED = "the table's rows could not be counted; check that there is memory enough and try again"

NARROW = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
BROAD = {"UBIGINT", "HUGEINT"}
INTEGERS = NARROW | BROAD
TIMESTAMPS = {
    "TIMESTAMP",
    "TIMESTAMP_S",
    "TIMESTAMP_MS",
    "TIMESTAMP_NS",
    "TIMESTAMP WITH TIME ZONE",
}
PERSON_TYPES = INTEGERS | {"VARCHAR", "UUID"}
DAY_NS = 86_400 * 10**9
TRUE = "('true', 't', 'yes', 'y', '1')"
FALSE = "('false', 'f', 'no', 'n', '0')"
FOREVER = "CAST('inf' AS DOUBLE)"
THOUSANDS = ("", ".", ",", "'", "\u2019", " ", "\u00a0", "\u202f")


def listed_sql(x: str, values: Sequence[str] | Sequence[int]) -> str:
    """Where a value stands among the declared ones; after the last of them for any other."""
    at = f"enum_code({Dialect.declared_only(x, values)})"
    return f"CASE WHEN {x} IS NOT NULL THEN COALESCE({Dialect.bigint(at)}, {len(values)}) END"


def read_typed(column: Column, x: str, held: str) -> Read:
    """The expression for a column held as the DuckDB type `held`."""
    kind = held.split("(")[0]
    match column:
        case Number(kind="number"):
            read = _number(x, kind)
            wanted = "numbers"
        case Number(kind="date"):
            read = _days(x, kind)
            wanted = "dates or timestamps"
        case Number():
            read = _seconds(x, kind)
            wanted = "timestamps or dates"
        case Category(integers=True):
            read = _code(x, kind, column.whole)
            wanted = "integers"
        case Category():
            read = (f"CAST({x} AS VARCHAR)" if kind == "ENUM" else x, "text")
            read = read if kind in ("VARCHAR", "ENUM") else None
            wanted = "text"
        case Flag():
            read = _flag(x, kind)
            wanted = "booleans or integers"
    if read is None:
        raise InvalidQuery(
            f"column {column.name!r} is declared to hold {wanted} but the table has {kind} there;"
            " declare it otherwise or convert it"
        )
    return read


def _number(x: str, kind: str) -> Read | None:
    if kind in NARROW:
        return x, "whole"
    if kind == "DOUBLE":
        return x, "real"
    if kind in BROAD or kind in ("FLOAT", "DECIMAL"):
        return f"CAST({x} AS DOUBLE)", "real"
    return None


def _days(x: str, kind: str) -> Read | None:
    if kind == "DATE":
        return f"({x} - DATE '1970-01-01')", "whole"
    if kind == "TIMESTAMP_NS":
        e = f"epoch_ns({x})"
        down = f"CASE WHEN {e} < 0 THEN -1 - (-1 - {e}) // {DAY_NS} ELSE {e} // {DAY_NS} END"
        return _forever(x, down, "CAST('infinity' AS DATE) - DATE '1970-01-01'"), "whole"
    if kind in TIMESTAMPS:
        day = f"CAST(TRY_CAST({x} AS TIMESTAMP) AS DATE)"
        return f"({day} - DATE '1970-01-01')", "whole"
    return None


def _seconds(x: str, kind: str) -> Read | None:
    if kind == "DATE":
        return f"CAST(({x} - DATE '1970-01-01') * 86400 AS DOUBLE)", "real"
    if kind == "TIMESTAMP_NS":
        return _forever(x, f"CAST(epoch_ns({x}) AS DOUBLE) / 1000000000", FOREVER), "real"
    if kind in TIMESTAMPS:
        t = f"TRY_CAST({x} AS TIMESTAMP)"
        return _forever(t, f"CAST(epoch_us({t}) AS DOUBLE) / 1000000", FOREVER), "real"
    return None


def _forever(x: str, finite: str, beyond: str) -> str:
    """Infinite times are beyond every bound, on their side."""
    later = f"CASE WHEN {x} > CAST('1970-01-01' AS TIMESTAMP) THEN {beyond} ELSE -({beyond}) END"
    return f"CASE WHEN isfinite({x}) THEN {finite} WHEN {x} IS NOT NULL THEN {later} END"


def _code(x: str, kind: str, is_open: bool) -> Read | None:
    if kind in NARROW:
        return f"CAST({x} AS BIGINT)", "code"
    if is_open and kind in BROAD:
        return f"TRY_CAST({x} AS BIGINT)", "code"  # of 64 bits, or missing
    return (f"CAST({x} AS HUGEINT)", "code") if kind in BROAD else None


def _flag(x: str, kind: str) -> Read | None:
    if kind == "BOOLEAN":
        return x, "flag"
    if kind in INTEGERS:
        return f"CASE WHEN {x} = 1 THEN TRUE WHEN {x} = 0 THEN FALSE END", "flag"
    return None


@dataclass(frozen=True, slots=True)
class Spelling:
    """How text spells numbers and dates; ISO dates are always read."""

    decimal: str = "."
    thousands: str = ""
    dates: tuple[tuple[str, str], ...] = ()  # forms, each with the pattern of the text it reads

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise InvalidQuery(f'csv: decimal must be "." or ",", got {self.decimal!r:.40}')
        if self.thousands not in THOUSANDS or self.thousands == self.decimal:
            raise InvalidQuery(
                "csv: thousands must be one of . , ' or a blank, and not the decimal mark, got"
                f" {self.thousands!r:.40}"
            )

    def number(self, x: str) -> str:
        """The expression of the number that the text `x` spells, or NULL."""
        if self.decimal == "." and not self.thousands:
            return f"TRY_CAST(trim({x}) AS DOUBLE)"
        whole = r"\d+"
        if self.thousands:
            whole = rf"(\d{{1,3}}([{self.thousands}]\d{{3}})+|\d+)"
        pattern = rf"[+-]?({whole}([{self.decimal}]\d*)?|[{self.decimal}]\d+)([eE][+-]?\d+)?"
        plain = f"trim({x})"
        if self.thousands:
            plain = f"replace({plain}, {Dialect.text(self.thousands)}, '')"
        point = f"replace({plain}, {Dialect.text(self.decimal)}, '.')"
        fits = f"regexp_full_match(trim({x}), {Dialect.text(pattern)})"
        return f"CASE WHEN {fits} THEN TRY_CAST({point} AS DOUBLE) END"

    def moment(self, x: str, iso: str, kind: str) -> str:
        """The DATE or TIMESTAMP that `x` spells in a declared form, else `iso`, of that type.

        The pattern comes first: `try_strptime` alone reads "infinity" as 1900 and "16" as a year.
        """
        if not self.dates:
            return iso
        tried = " ".join(
            f"WHEN regexp_full_match(trim({x}), {Dialect.text(pattern)})"
            f" THEN CAST(try_strptime(trim({x}), {Dialect.text(form)}) AS {kind})"
            for form, pattern in self.dates
        )
        return f"CASE {tried} ELSE {iso} END"


def read_text(column: Column, x: str, spelling: Spelling | None = None) -> Read:
    """The expression for a column of a CSV file, where every cell is text.

    `trim` also keeps the engine from casting while it reads the file, where it would not only try.
    """
    spelling = spelling or Spelling()
    match column:
        case Number(kind="number"):
            return spelling.number(x), "real"
        case Number(kind="date"):
            day = spelling.moment(x, f"TRY_CAST(trim({x}) AS DATE)", "DATE")
            return f"({day} - DATE '1970-01-01')", "whole"
        case Number():
            zoned = f"CAST(TRY_CAST(trim({x}) AS TIMESTAMP WITH TIME ZONE) AS TIMESTAMP)"
            zoned = spelling.moment(x, zoned, "TIMESTAMP")
            return _forever(zoned, f"CAST(epoch_us({zoned}) AS DOUBLE) / 1000000", FOREVER), "real"
        case Category(integers=True):
            whole = f"regexp_full_match(trim({x}), '[+-]?[0-9]+')"
            held = "BIGINT" if column.whole else "HUGEINT"
            return f"CASE WHEN {whole} THEN TRY_CAST(trim({x}) AS {held}) END", "code"
        case Category():
            return x, "text"
        case Flag():
            word = f"lower(trim({x}))"
            return f"CASE WHEN {word} IN {TRUE} THEN TRUE WHEN {word} IN {FALSE} THEN FALSE END", (
                "flag"
            )


# A source as it lies there, for the owner's counts before it is published (`tally`).


@dataclass(frozen=True, slots=True)
class RawTable:
    """A source as it lies there, opened for counting; every engine has one."""

    table: str
    """Its name in a FROM."""
    holds: Mapping[str, Holds]
    read: Callable[[Column], Read]
    """How a declared column is read; `InvalidQuery` if the source's type does not allow it."""
    ask: Callable[[str], Sequence[Any]]
    """Run a SELECT of one row of numbers; the engine's own words never leave."""
    close: Callable[[], None]
    dialect: type[Dialect] = Dialect
    texts: bool = False
    """Every cell is text, as in a CSV file."""
    text_type: str = "VARCHAR"
    told_apart: Callable[[str], str] | None = None
    """What texts are told apart by where comparing them is slow: a hash of 64 bits."""


@dataclass(frozen=True, slots=True)
class RawIds:
    """The ids of several sources as ids0, ids1, ...: each `id` (one may be NULL), its rows `n`."""

    with_ids: str
    """What stands before a SELECT that reads them."""
    ask: Callable[[str], Sequence[Any]]
    """As of `RawTable`."""
    close: Callable[[], None]


def no_header_name(name: str, held: Iterable[str]) -> InvalidQuery:
    """Say that a CSV file has no such column, but not what it has: that may be a row."""
    blanks = name in {one.strip() for one in held}
    hint = '; it is there with blanks around: declare csv = {delimiter = ", "}' if blanks else ""
    return InvalidQuery(f"no column {name!r} in the CSV file's header line{hint}")
