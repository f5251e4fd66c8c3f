"""The rows of a vector program as one SELECT: what its leaves are made of.

A Number comes as it is, a DOUBLE that may be NULL; other leaves as BIGINT, never NULL; a cell's
number is -1 for no cell.
"""

from __future__ import annotations

from collections.abc import Mapping

from sulq.engines.cells import flag_cell
from sulq.engines.dialect import Dialect
from sulq.engines.emitter import Emitter
from sulq.engines.inner import from_rows
from sulq.engines.leaves import Place
from sulq.schema.bound import CategoryCells, Condition, FlagCells
from sulq.schema.vectors import BlockSums, Leaf, UnitLeaf, leaves_of


def row_select(
    program: BlockSums, places: Mapping[str, Place], table: str, number: str | None = None
) -> tuple[str, dict[Leaf, int]]:
    """The statement, and the column of each leaf; without leaves, a column of ones. First comes
    `number`, a column of the table that tells its rows apart, if it is wanted."""
    leaves = tuple(dict.fromkeys(leaves_of(program.left, program.right)))
    draft = Emitter(places)
    _select(program.rows, leaves, draft, table, number)
    shared = frozenset(node for node, uses in draft.uses.items() if uses > 1)
    return _select(program.rows, leaves, Emitter(places, shared), table, number)


def _select(
    rows: Condition, leaves: tuple[Leaf, ...], emitter: Emitter, table: str, number: str | None
) -> tuple[str, dict[Leaf, int]]:
    texts = {leaf: _leaf_sql(leaf, emitter) for leaf in leaves}
    wanted = list(dict.fromkeys(texts.values())) or [Dialect.integer(1)]
    if number is not None:
        emitter.columns.add(number)
        wanted.insert(0, Dialect.bigint(number))
    named = ", ".join(f"{sql} AS v{number}" for number, sql in enumerate(wanted))
    sql = f"SELECT {named} {from_rows(rows, emitter, table)}"
    return sql, {leaf: wanted.index(text) for leaf, text in texts.items()}


def _leaf_sql(leaf: Leaf, emitter: Emitter) -> str:
    match leaf:
        case FlagCells(column=column):
            flag = emitter.place(column).sql
            return flag_cell(flag)
        case CategoryCells(column=column, values=values):
            return emitter.dialect.place_among(emitter.place(column).sql, values)
        case UnitLeaf(value=value):
            return emitter.dialect.streamed(emitter.place(value.column).sql)
    return Dialect.bigint(emitter.integer(leaf).sql)
