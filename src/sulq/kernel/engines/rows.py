"""DuckDB with its rows numbered: what a filter per person needs of an engine.

The table is held in memory, Parquet and PostgreSQL too, so that a row keeps its number while it is
open.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import duckdb
import numpy as np
from numpy.typing import NDArray

from sulq.errors import EngineFailed, Refused
from sulq.kernel.engines.blocks import Block, Choice, Floats, OuterSums, Parts
from sulq.kernel.engines.duckdb.arrow import blocks
from sulq.kernel.engines.duckdb.engine import DuckDBEngine, open_duckdb
from sulq.kernel.engines.engine import POSTGRES_SCHEMES, scheme_of
from sulq.kernel.engines.postgres.copy import CopiedEngine, open_copied
from sulq.kernel.engines.proved import Impossible
from sulq.kernel.engines.sql.compile import (
    PERSON,
    TABLE,
    flag_cell,
    flat_cells,
    from_rows,
    key_sql,
    row_select,
)
from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.engines.sql.emitter import Emitter
from sulq.kernel.engines.sql.leaves import ColumnSql
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.program import (
    BinCells,
    CategoryCells,
    Cells,
    FlagCells,
    RowSums,
    cell_count,
)
from sulq.kernel.schema.vector_program import BlockSums

NUMBER = "rowid"
"""DuckDB's own number of a row; of a table that is held and never changed, 0 to n - 1."""
Whole: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowValues:
    """The rows in S that lie in a cell: their numbers, their cells, and the value of each term."""

    rows: Whole
    cells: Whole
    terms: tuple[Whole, ...]
    largest: tuple[int, ...]
    """No |value| of a term passes this; from the program, never from rows."""
    count: int
    """Cells there are."""


@dataclass(frozen=True, slots=True)
class RowSelect:
    """One SELECT: the row's number, a key per group, the terms; and what its columns mean."""

    sql: str
    groups: tuple[Cells, ...]
    largest: tuple[int, ...]

    def decode(self, blocks: Iterable[Sequence[NDArray[np.generic]]]) -> RowValues:
        """Whole columns; a row in no cell is left out, it adds nothing."""
        kept = [self._kept(block) for block in blocks] or [self._kept([_NO] * self._width)]
        rows, cells, *terms = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        for term, largest in zip(terms, self.largest, strict=True):
            if len(term) and not -largest <= term.min() <= term.max() <= largest:
                raise Impossible
        return RowValues(rows, cells, tuple(terms), self.largest, flat_cells(self.groups))

    @property
    def _width(self) -> int:
        return 1 + len(self.groups) + len(self.largest)

    def _kept(self, block: Sequence[NDArray[np.generic]]) -> list[Whole]:
        columns = [np.array(column, np.int64) for column in block]  # blocks are only lent
        cell = np.zeros(len(columns[0]), np.int64)
        inside = np.ones(len(columns[0]), np.bool_)
        for group, key in zip(self.groups, columns[1:], strict=False):
            own = key if not isinstance(group, BinCells) else np.minimum(key, len(group.edges) - 2)
            if group.other:
                own = np.where(own < 0, cell_count(group) - 1, own)
            inside &= own >= 0
            cell = cell * cell_count(group) + own
        found = [columns[0], cell, *columns[1 + len(self.groups) :]]
        return [column[inside] for column in found]


_NO = np.zeros(0, np.int64)


def row_values_select(program: RowSums, places: Mapping[str, ColumnSql], table: str) -> RowSelect:
    """The program's values as one SELECT over the rows of S."""
    draft = Emitter(places)
    _select(program, draft, table)
    shared = frozenset(node for node, uses in draft.uses.items() if uses > 1)
    sql, largest = _select(program, Emitter(places, shared), table)
    return RowSelect(sql, program.groups, largest)


def _select(program: RowSums, emitter: Emitter, table: str) -> tuple[str, tuple[int, ...]]:
    emitter.columns.add(NUMBER)
    keys = [_cell_sql(group, emitter) for group in program.groups]
    values = [emitter.integer(term) for term in program.terms]
    none = Dialect.integer(0)  # NULL adds 0
    terms = [Dialect.bigint(f"COALESCE({value.sql}, {none})") for value in values]
    wanted = [Dialect.bigint(NUMBER), *keys, *terms]
    named = ", ".join(f"{sql} AS v{number}" for number, sql in enumerate(wanted))
    sql = f"SELECT {named} {from_rows(program.rows, emitter, table)}"
    return sql, tuple(value.largest for value in values)


def _cell_sql(group: Cells, emitter: Emitter) -> str:
    """The number of the row's cell as a BIGINT, -1 for none; on the last edge one too many."""
    match group:
        case FlagCells(column=column):
            flag = emitter.place(column).sql
            return flag_cell(flag)
        case CategoryCells(column=column, values=values):
            return emitter.dialect.place_among(emitter.place(column).sql, values)
        case BinCells():
            key, none = key_sql(group, emitter, False)[0], Dialect.integer(-1)
            return Dialect.bigint(f"COALESCE({key}, {none})")


# What every single row adds to a matrix of products: how much, and the sum over some of them.
#
# For a filter per person, and nothing else. docs/proofs/individual.md, claim 9.


UP = 1 + 2.0**-30
"""Covers the rounding of two sums of up to 2^20 squares, of their roots and of the product."""
MOST = 2.0**61

Blocks = Iterable[Sequence[NDArray[np.generic]]]


class RowOuter:
    """Blocks are read twice: who adds how much, then the sum over those who take part."""

    def __init__(self, sums: OuterSums, read: Callable[[Callable[[Blocks], Any]], Any]) -> None:
        """`read` does a work on the blocks, from the first one on."""
        self._sums, self._read = sums, read

    def sizes(self) -> tuple[Whole, Whole]:
        """The numbers of the rows in S, and for each a whole number, at least |left| |right|.

        Each is a function of that row alone: the same operations in the same order, one by one.
        """
        found: tuple[Whole, Whole] = self._read(self._sizes)
        return found

    def _sizes(self, blocks: Blocks) -> tuple[Whole, Whole]:
        rows, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for columns in blocks:
            rows.append(np.array(columns[0], np.int64))  # blocks are only lent
            for start in range(0, len(columns[0]), self._sums.rows):
                part = [column[start : start + self._sums.rows] for column in columns]
                block = Block(part, len(part[0]), {})
                left, right = _squared(self._sums.left(block)), _squared(self._sums.right(block))
                size = np.ceil(np.sqrt(left) * np.sqrt(right) * UP)
                found.append(np.minimum(size, MOST).astype(np.int64))
        return np.concatenate(rows), np.concatenate(found)

    def of(self, takes: NDArray[np.bool_]) -> list[int]:
        """The sums over the rows whose number is marked."""

        def chosen(blocks: Blocks) -> Blocks:
            for columns in blocks:
                inside = takes[np.asarray(columns[0], np.int64)]
                yield [np.asarray(column)[inside] for column in columns]

        found: list[int] = self._read(lambda blocks: self._sums.of(chosen(blocks)))
        return found


def _squared(parts: Parts) -> Floats:
    """|vector|^2 of each row, coordinate by coordinate."""
    found: Floats | None = None
    for part in parts:
        if isinstance(part, Choice):
            found = _plus(found, np.where(part.index >= 0, float(part.value) ** 2, 0.0))
        else:
            for coordinate in part:
                found = _plus(found, coordinate * coordinate)
    assert found is not None  # noqa: S101 - a vector has a coordinate
    return found


def _plus(found: Floats | None, more: Floats) -> Floats:
    return more if found is None else found + more


# What every single row adds to a question's sums: for a filter per person, and nothing else.
#
# An exact function of the rows: it stays in the process, between the engine and the sums. Rows are
# numbered as the engine holds them. docs/proofs/individual.md, claim 3.


Identities = NDArray[np.bytes_]
"""Sixteen bytes for each person."""


class NumberedRows:
    """The rows of an open engine, one by one. Whose they are is 0 to persons - 1."""

    def __init__(self, engine: DuckDBEngine | CopiedEngine, by_person: bool) -> None:
        self.engine = engine
        self._table = engine.copy if isinstance(engine, CopiedEngine) else engine
        self.count = self._table.rows
        self._owner = self._table.read(_owners) if by_person else None
        self.persons = self.count if self._owner is None else int(self._owner.max()) + 1

    def prepare(self, program: RowSums) -> Callable[[], RowValues]:
        """What will read the rows; this step may refuse and reads none."""
        self._table.check()
        select = row_values_select(program, self._table.places, TABLE)
        return lambda: self._table.read(
            lambda cursor: select.decode(blocks(cursor.sql(select.sql)))
        )

    def prepare_outer(self, program: BlockSums) -> RowOuter:
        """As `prepare`, for a matrix of products."""
        self._table.check()
        sql, place = row_select(program, self._table.places, TABLE, NUMBER)

        def read(work: Callable[[Blocks], Any]) -> Any:
            return self._table.read(lambda cursor: work(blocks(cursor.sql(sql))))

        return RowOuter(OuterSums(program, place), read)

    def owners(self, rows: Whole) -> Whole | None:
        """The persons of these rows; None where a row is its own."""
        return None if self._owner is None else self._owner[rows]

    def identities(self, key: str) -> Identities:
        """By person's number: a hash of the person's id under a key; the id stays in the engine."""
        return self._table.read(lambda cursor: _identities(cursor, key))

    def order(self) -> str:
        """A hash of the rows *in this order*: for the state directory only."""
        return self._table.read(_order)


def open_numbered(source: Any, schema: Schema, *, threads: int | None = None) -> NumberedRows:
    """A file, a frame or a PostgreSQL table, its rows numbered; other engines are refused."""
    engine = _held(source, schema, threads)
    try:
        return NumberedRows(engine, schema.unit != "row")
    except BaseException:
        engine.close()
        raise


def _held(source: Any, schema: Schema, threads: int | None) -> DuckDBEngine | CopiedEngine:
    scheme = scheme_of(source)
    if not scheme:
        return open_duckdb(source, schema, threads=threads, held=True)
    if scheme in POSTGRES_SCHEMES:
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
