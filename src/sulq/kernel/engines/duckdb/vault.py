"""The vault: a table's declared columns as integers, clamped and rounded once, in a DuckDB file.

A published table never changes, so what every question would do again with each of its numbers is
done once. Where the file lies, and that it is the one that was made, is seen to by
`sulq.database.vault`; here it is written and read.

Values are stored uncompressed, in an order that is drawn anew, and no condition is tested against
what the file notes of their range: size and time follow from the schema and the number of rows, but
for blocks in which a column has one value only. docs/proofs/engines.md, claims 11 and 12.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import duckdb

from sulq.errors import InvalidQuery
from sulq.kernel.engines.duckdb.engine import (
    CLOSED,
    READ,
    SOURCE,
    DuckDBEngine,
    Stamp,
    Unread,
    chosen_columns,
    file_of,
    lock_down,
    register,
    run,
    settle,
)
from sulq.kernel.engines.duckdb.physical import listed_sql
from sulq.kernel.engines.duckdb.workbooks import as_text
from sulq.kernel.engines.sql.compile import TABLE
from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.engines.sql.leaves import (
    ColumnSql,
    Kind,
    StoredSteps,
    column_leaf,
    leaf_sql,
)
from sulq.kernel.schema.columns import Category, Column, Number, Schema
from sulq.kernel.schema.fixed_point import leaf as leaf_of
from sulq.kernel.schema.program import Quantised

VERSION = duckdb.__version__
VAULT = "vault"
"""Its name in the connection that reads it."""
SIGNED = (("TINYINT", 8), ("SMALLINT", 16), ("INTEGER", 32))
UNSIGNED = (("UTINYINT", 8), ("USMALLINT", 16))
WIDTHS = {"TINYINT": 1, "UTINYINT": 1, "SMALLINT": 2, "USMALLINT": 2, "INTEGER": 4, "BOOLEAN": 1}
TEXT_WIDTH = 32
"""Bytes that a text of an open column takes, as far as one can say beforehand."""
SORTED_SHARE = 8
"""One part in so many of the memory is for rows that are put in order at once."""
HELD_SHARE = 4
"""One part in so many of the memory may keep what was read of a vault, and work on it."""
OFF = "statistics_propagation,filter_pushdown"
"""Steps of the optimiser that would let the scan leave out rows by their least and greatest
values, or plan by them."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What has to be known of a vault to read it."""

    rows: int
    kinds: tuple[Kind, ...]
    """What the source held of each column, in the schema's order."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """A column of the file: its name and type, and how it is worked out from the source."""

    name: str
    type: str
    sql: str


class VaultEngine(DuckDBEngine):
    """Exact sums over a vault, which stands for the source that it was made of."""

    def __init__(self, schema: Schema, *parts: Any) -> None:
        super().__init__(*parts)
        self.schema = schema
        self.ended, self.checked = threading.Event(), threading.Event()
        """The table is closed; the whole file was read again, and is or is not what was made."""
        self._spoiled = False

    def spoil(self) -> None:
        """Close the table: the file is not the one that was made."""
        self._spoiled = True

    def unchanged(self) -> bool:
        return not self._spoiled and super().unchanged()

    def close(self) -> None:
        self.ended.set()
        super().close()


# --- what is stored -------------------------------------------------------------------------------


def _narrowest(low: int, high: int) -> str:
    """The narrowest integer type for declared bounds; values have no say."""
    for kinds, least in ((UNSIGNED, 0), (SIGNED, None)):
        for name, bits in kinds:
            bottom = -(1 << (bits - 1)) if least is None else 0
            if bottom <= low and high < bottom + (1 << bits):
                return name
    return "BIGINT"


def _own_leaf(column: Number, schema: Schema) -> Quantised:
    """The leaf of the column that a question reads when it does not clip it."""
    return cast("Quantised", leaf_of(column, schema.bits).node)


def _places(schema: Schema, kinds: Sequence[Kind]) -> dict[str, ColumnSql]:
    """Where each declared column is in the file."""
    found: dict[str, ColumnSql] = {}
    for number, (column, kind) in enumerate(zip(schema.columns, kinds, strict=True)):
        name = f"c{number}"
        match column:
            case Number():
                own = _own_leaf(column, schema)
                if kind == "real":
                    steps = StoredSteps(f"q{number}", own)
                    place = ColumnSql(name, kind, bounds=(own.low, own.high), steps=steps)
                else:
                    ends = (float(math.floor(own.low)), float(math.ceil(own.high)))
                    place = ColumnSql(name, kind, bounds=ends)
            case Category(values=values) if values is not None:
                place = ColumnSql(name, "listed", values=tuple(values))  # type: ignore[arg-type]
            case _:
                place = ColumnSql(name, kind)
        found[column.name] = place
    return found


def _stored(column: Column, place: ColumnSql, held: ColumnSql) -> list[_Stored]:
    """What is stored of a column of the source: its values within the declared bounds."""
    x, speak = held.sql, Dialect
    if isinstance(column, Number) and place.bounds is not None:
        low, high = place.bounds
        if place.kind == "whole":
            least, most = int(low), int(high)
            cut = (
                f"CASE WHEN {x} > {speak.integer(most)} THEN {speak.integer(most)}"
                f" WHEN {x} < {speak.integer(least)} THEN {speak.integer(least)} ELSE {x} END"
            )
            return [_Stored(place.sql, _narrowest(least, most), cut)]
        assert place.steps is not None  # noqa: S101
        leaf = column_leaf(place.steps.value)
        cut = (
            f"CASE WHEN {x} < {speak.real(low)} THEN {speak.real(low)}"
            f" WHEN {x} <= {speak.real(high)} THEN {x}"
            f" WHEN {x} <= {held.infinity} THEN {speak.real(high)} END"
        )
        return [
            _Stored(place.sql, "DOUBLE", cut),
            _Stored(place.steps.sql, _narrowest(leaf.least, leaf.most), leaf_sql(leaf, held)[0]),
        ]
    if place.kind == "listed":
        other = len(place.values)
        sql = listed_sql(x, place.values)
        return [_Stored(place.sql, _narrowest(0, other), sql)]
    kind = {"flag": "BOOLEAN", "text": "VARCHAR", "code": "BIGINT"}[place.kind]
    return [_Stored(place.sql, kind, x)]


def size_of(schema: Schema, kinds: Sequence[Kind], rows: int) -> int:
    """How many bytes the file will have, about: a function of public facts."""
    places = _places(schema, kinds)
    stored = [part for c in schema.columns for part in _stored(c, places[c.name], places[c.name])]
    return rows * _width(stored) + (1 << 20)


def _width(stored: Sequence[_Stored]) -> int:
    """Bytes of a row."""
    widths = WIDTHS | {"VARCHAR": TEXT_WIDTH}
    return sum(widths.get(part.type, 8) for part in stored) + (len(stored) + 7) // 8


# --- writing --------------------------------------------------------------------------------------


def write_vault(source: Any, schema: Schema, place: Path, key: int) -> Contents:
    """Write the file, where there is none; `InvalidQuery` if it cannot be written.

    `key`, a number of 64 bits that nobody knows, decides in which order the rows are stored.
    """
    path, text = file_of(source)
    complaint = "the vault could not be written: there may be too little memory or disk"
    connection = duckdb.connect(":memory:", config=CLOSED)
    try:
        settle(connection, None, True)
        with nullcontext(None) if text is None else as_text(text) as lying:
            declared = {column.name for column in schema.columns}
            held, _ = register(connection, source, path, lying, declared)
            there, chosen = chosen_columns(schema, held, None if lying is None else lying[0])
            sql = f"CREATE VIEW {READ} AS SELECT {chosen}, row_number() OVER () AS number"
            run(connection, f"{sql} FROM {SOURCE}", Unread(lying))
            kinds = tuple(there[column.name].kind for column in schema.columns)
            rows = _written(connection, schema, there, (place, key), complaint)
    finally:
        connection.close()
    return Contents(rows, kinds)


def _written(
    connection: duckdb.DuckDBPyConnection,
    schema: Schema,
    there: Mapping[str, ColumnSql],
    file: tuple[Path, int],
    complaint: str,
) -> int:
    place, key = file
    places = _places(schema, [there[column.name].kind for column in schema.columns])
    stored = [part for c in schema.columns for part in _stored(c, places[c.name], there[c.name])]
    run(connection, "SET force_compression = 'uncompressed'", complaint)
    run(connection, f"ATTACH {Dialect.text(str(place))} AS {VAULT}", complaint)
    table = f"{VAULT}.main.{TABLE}"
    listed = ", ".join(f"{part.name} {part.type}" for part in stored)
    run(connection, f"CREATE TABLE {table} ({listed})", complaint)
    rows = int(run(connection, f"SELECT count(*) FROM {READ}", complaint)[0][0])
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    each = max(1, pages // SORTED_SHARE // (2 * _width(stored) + 32))
    passes = -(-rows // each)
    secret = f"CAST({key} AS UBIGINT)"
    wanted = ", ".join(f"CAST({part.sql} AS {part.type})" for part in stored)
    for number in range(passes):
        one = f" WHERE hash(number + 1, {secret}) % {passes} = {number}" if passes > 1 else ""
        run(
            connection,
            f"INSERT INTO {table} SELECT {wanted} FROM {READ}{one} ORDER BY hash(number, {secret})",
            complaint,
        )
    run(connection, f"CHECKPOINT {VAULT}", complaint)
    found = int(run(connection, f"SELECT count(*) FROM {table}", complaint)[0][0])
    run(connection, f"DETACH {VAULT}", complaint)
    if found != rows:
        raise InvalidQuery(complaint)
    return rows


# --- reading --------------------------------------------------------------------------------------


def open_vault(
    place: Path,
    schema: Schema,
    contents: Contents,
    fingerprint: str,
    stamps: Sequence[tuple[Path, Stamp]],
    *,
    threads: int | None = None,
) -> VaultEngine:
    """An engine over the file at `place`, which nobody writes to; `stamps`: of files that must stay
    as they are, while it is open."""
    complaint = "the vault of this table cannot be read"
    connection = duckdb.connect(":memory:", config=CLOSED)
    try:
        settle(connection, threads, False)
        run(connection, f"SET disabled_optimizers = '{OFF}'", complaint)
        held = f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') // HELD_SHARE >> 20}MiB"
        run(connection, f"SET memory_limit = '{held}'", complaint)
        run(connection, f"ATTACH {Dialect.text(str(place))} AS {VAULT} (READ_ONLY)", complaint)
        run(connection, f"CREATE VIEW {TABLE} AS FROM {VAULT}.main.{TABLE}", complaint)
        rows = int(run(connection, f"SELECT count(*) FROM {TABLE}", complaint)[0][0])
        if rows != contents.rows:
            raise InvalidQuery(complaint)
        lock_down(connection, None)
    except BaseException:
        connection.close()
        raise
    places = _places(schema, contents.kinds)
    engine = VaultEngine(schema, connection, places, rows, rows, fingerprint, None, None)
    engine.watch(stamps)
    return engine
