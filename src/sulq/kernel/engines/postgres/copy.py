"""A PostgreSQL table copied into this process, for what handles rows one by one.

The declared columns are read once, as every question would read them, in a transaction that proved
the table to be what was opened; DuckDB holds them in memory. Whether the table still is that one
is asked of PostgreSQL. docs/proofs/postgresql.md, claim 5.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sulq.errors import InvalidQuery, Refused
from sulq.kernel.engines.duckdb.engine import DuckDBEngine, open_duckdb
from sulq.kernel.engines.postgres.dialect import INTEGERS
from sulq.kernel.engines.postgres.engine import (
    UNREAD,
    PostgresEngine,
    open_postgres,
)
from sulq.kernel.engines.postgres.source import READ
from sulq.kernel.engines.proved import silenced
from sulq.kernel.schema.columns import Column, Number, Schema

if TYPE_CHECKING:
    from sulq.kernel.schema.bind import Program

TYPES = {"real": "float64", "whole": "int64", "code": "int64", "text": "string", "flag": "bool"}


class CopiedEngine:
    """The copy for rows, the server for everything else."""

    def __init__(self, source: PostgresEngine, copy: DuckDBEngine) -> None:
        self._source, self.copy = source, copy

    def exact_sums(self, program: Program) -> list[int]:
        return self._source.exact_sums(program)

    def fingerprint(self) -> str:
        return self._source.fingerprint()

    def size(self) -> int:
        return self._source.size()

    def unchanged(self) -> bool:
        return self._source.unchanged()

    def close(self) -> None:
        self._source.close()
        self.copy.close()


def open_copied(url: str, schema: Schema, *, threads: int | None = None) -> CopiedEngine:
    """Open a table and copy it; complaints as those of `open_postgres`."""
    arrow = _arrow()
    source = open_postgres(url, schema, threads=threads)
    try:
        frame = _frame(source, schema, arrow)
        copy = open_duckdb(frame, _as_read(schema), threads=threads, held=True)
    except BaseException:
        source.close()
        raise
    return CopiedEngine(source, copy)


def _as_read(schema: Schema) -> Schema:
    """Dates and times are numbers by now, with the same bounds."""

    def plain(column: Column) -> Column:
        if not isinstance(column, Number) or column.kind == "number":
            return column
        low, high = column.range
        return replace(column, low=low, high=high)

    columns = (plain(column) for column in schema.columns)
    return Schema(*columns, unit=schema.unit, max_rows=schema.max_rows, at_most=schema.at_most)


def _frame(engine: PostgresEngine, schema: Schema, arrow: Any) -> Any:
    """The declared columns, and whose rows they are, as an Arrow table in the server's order."""
    source = engine.source
    names, types = list(source.places), [TYPES[place.kind] for place in source.places.values()]
    if schema.unit != "row":
        held = {column.name: column.kind for column in engine.catalogue.columns}
        names.append(schema.unit)
        types.append("int64" if held[schema.unit] in INTEGERS else "string")
    wanted = ", ".join(source.names)
    sql = f"COPY ({source.with_rows} SELECT {wanted} FROM {READ}) TO STDOUT (FORMAT CSV)"

    def copied(cursor: Any) -> Any:
        cursor.execute("SET LOCAL synchronize_seqscans = off")  # rows in one order
        cursor.execute("SET LOCAL max_parallel_workers_per_gather = 0")
        with cursor.copy(sql) as copy:
            return _parsed(copy.read, dict(zip(source.names, types, strict=True)), arrow)

    found = silenced(lambda: engine.read(copied, len(sql)), lambda _: InvalidQuery(UNREAD))
    return found.rename_columns(names)


class _Pieces(io.RawIOBase):
    """What a COPY sends, as a file."""

    def __init__(self, read: Callable[[], bytes | bytearray | memoryview]) -> None:
        self._next, self._held = read, b""

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        if not self._held:
            self._held = bytes(self._next())
        size = min(len(room), len(self._held))
        room[:size], self._held = self._held[:size], self._held[size:]
        return size


def _parsed(read: Callable[[], Any], types: dict[str, str], arrow: Any) -> Any:
    """NULL is an empty cell, an empty text a quoted one."""
    csv = arrow.csv
    return csv.read_csv(
        io.BufferedReader(_Pieces(read), 1 << 20),
        read_options=csv.ReadOptions(column_names=list(types), use_threads=False),
        parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=csv.ConvertOptions(
            column_types=types,
            null_values=[""],
            true_values=["t"],
            false_values=["f"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _arrow() -> Any:
    try:
        import pyarrow.csv
    except ImportError:
        pyarrow = None
    if pyarrow is None:
        raise Refused("individual accounting on PostgreSQL needs pyarrow: pip install pyarrow")
    return pyarrow
