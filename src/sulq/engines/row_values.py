"""What every single row adds to a question's sums: for a filter per person, and nothing else.

An exact function of the rows: it stays in the process, between the engine and the sums. Rows are
numbered as the engine holds them. docs/proofs/individual.md, claim 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sulq.engines.cells import flag_cell, flat_cells, key_sql
from sulq.engines.dialect import Dialect
from sulq.engines.emitter import Emitter
from sulq.engines.inner import from_rows
from sulq.engines.leaves import Place
from sulq.engines.proved import Impossible
from sulq.schema.bound import BinCells, CategoryCells, Cells, FlagCells, RowSums, cell_count

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


def row_values_select(program: RowSums, places: Mapping[str, Place], table: str) -> RowSelect:
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
