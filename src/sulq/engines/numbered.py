"""DuckDB with its rows numbered: what a filter per person needs of an engine.

The table is held in memory, Parquet and PostgreSQL too, so that a row keeps its number while it is
open.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from sulq.engines.arrow import blocks
from sulq.engines.blocks import OuterSums
from sulq.engines.duckdb import DuckDBEngine, open_duckdb
from sulq.engines.person_sums import PERSON
from sulq.engines.postgres_copy import CopiedEngine, open_copied
from sulq.engines.row_outer import RowOuter
from sulq.engines.row_select import row_select
from sulq.engines.row_values import NUMBER, RowValues, Whole, row_values_select
from sulq.engines.statement import TABLE
from sulq.errors import EngineFailed, Refused
from sulq.schema.bound import RowSums
from sulq.schema.columns import Schema
from sulq.schema.vectors import BlockSums

T = TypeVar("T")
Identities = NDArray[np.bytes_]
"""Sixteen bytes for each person."""


class NumberedRows:
    """The rows of an open engine, one by one. Whose they are is 0 to persons - 1."""

    def __init__(self, engine: DuckDBEngine | CopiedEngine, by_person: bool) -> None:
        self.engine = engine
        self._owner = self._read(_owners) if by_person else None
        self.persons = engine._rows if self._owner is None else int(self._owner.max()) + 1

    def prepare(self, program: RowSums) -> Callable[[], RowValues]:
        """What will read the rows; this step may refuse and reads none."""
        self.engine._guard.check()
        select = row_values_select(program, self.engine._places, TABLE)
        return lambda: self._read(lambda cursor: select.decode(blocks(cursor.sql(select.sql))))

    def prepare_outer(self, program: BlockSums) -> RowOuter:
        """As `prepare`, for a matrix of products."""
        self.engine._guard.check()
        sql, place = row_select(program, self.engine._places, TABLE, NUMBER)

        def read() -> Iterator[Sequence[NDArray[np.generic]]]:
            with self.engine._lock:
                cursor = self.engine._connection.cursor()
            try:
                yield from blocks(cursor.sql(sql))
            finally:
                cursor.close()

        return RowOuter(OuterSums(program, place), read)

    def owners(self, rows: Whole) -> Whole | None:
        """The persons of these rows; None where a row is its own."""
        return None if self._owner is None else self._owner[rows]

    def identities(self, key: str) -> Identities:
        """By person's number: a hash of the person's id under a key; the id stays in the engine."""
        return self._read(lambda cursor: _identities(cursor, key))

    def order(self) -> str:
        """A hash of the rows *in this order*: for the state directory only."""
        return self._read(_order)

    def _read(self, work: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        found: list[T] = []
        try:
            with self.engine._lock:
                cursor = self.engine._connection.cursor()
            try:
                found.append(work(cursor))
            finally:
                cursor.close()
        except Exception as error:  # noqa: BLE001 - its own words may quote rows: none are kept
            self.engine._guard.saw(error)
            found = []
        if not found:
            raise EngineFailed()
        return found[0]


def open_numbered(source: Any, schema: Schema, *, threads: int | None = None) -> NumberedRows:
    """A file, a frame or a PostgreSQL table, its rows numbered; other engines are refused."""
    engine = _held(source, schema, threads)
    try:
        return NumberedRows(engine, schema.unit != "row")
    except BaseException:
        engine.close()
        raise


def _held(source: Any, schema: Schema, threads: int | None) -> DuckDBEngine | CopiedEngine:
    if not (isinstance(source, str) and "://" in source):
        return open_duckdb(source, schema, threads=threads, held=True)
    if source.split("://", 1)[0].lower() in ("postgresql", "postgres"):
        return open_copied(source, schema, threads=threads)
    raise Refused(
        "individual accounting needs the rows in this process: give a Parquet or CSV file, a table"
        " in memory or the address of a PostgreSQL table; no other address"
    )


def _owners(cursor: duckdb.DuckDBPyConnection) -> Whole:
    """By row number: the person's own number."""
    sql = (
        f"SELECT CAST({NUMBER} AS BIGINT) AS v0,"
        f" CAST(dense_rank() OVER (ORDER BY {PERSON}) - 1 AS BIGINT) AS v1 FROM {TABLE}"
    )
    parts = [[np.array(column, np.int64) for column in block] for block in blocks(cursor.sql(sql))]
    rows, persons = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    found = np.full(len(rows), -1, np.int64)
    found[rows] = persons
    if found.min() < 0:
        raise EngineFailed()
    return found


def _identities(cursor: duckdb.DuckDBPyConnection, key: str) -> Identities:
    """120 bits of SHA-256 over the key and the id as text: 7 and '7' are one person."""
    hashed = f"sha256('{key}' || CAST({PERSON} AS VARCHAR))"
    halves = [f"CAST('0x' || substr({hashed}, {at}, 15) AS BIGINT)" for at in (1, 16)]
    number = f"CAST(dense_rank() OVER (ORDER BY {PERSON}) - 1 AS BIGINT)"
    sql = (
        f"SELECT v0, {halves[0]} AS v1, {halves[1]} AS v2 FROM"
        f" (SELECT DISTINCT {number} AS v0, {PERSON} FROM {TABLE}) AS numbered"
    )
    parts = [[np.array(column, np.int64) for column in block] for block in blocks(cursor.sql(sql))]
    numbers, first, second = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    found = np.empty((len(numbers), 2), np.int64)
    found[numbers, 0], found[numbers, 1] = first, second
    return found.view("S16").reshape(-1)


def _order(cursor: duckdb.DuckDBPyConnection) -> str:
    sql = (
        "SELECT count(*), sum(md5_number_lower(row)), sum(md5_number_upper(row)) FROM"
        f" (SELECT {NUMBER} || ' ' || CAST({TABLE} AS VARCHAR) AS row FROM {TABLE}) AS numbered"
    )
    return hashlib.sha256(repr(cursor.execute(sql).fetchall()).encode()).hexdigest()
