"""The rows of a vector program as one SELECT: what its leaves are made of.

A Number comes as it is, a DOUBLE that may be NULL; other leaves as BIGINT, never NULL; a cell's
number is -1 for no cell.
"""

from __future__ import annotations

from collections.abc import Mapping

from sulq.engines.dialect import Dialect
from sulq.engines.emitter import Emitter
from sulq.engines.leaves import Place
from sulq.schema.bound import AllOf, Always, CategoryCells, Condition, FlagCells
from sulq.schema.vectors import BlockSums, Leaf, UnitLeaf, leaves_of


def row_select(
    program: BlockSums, places: Mapping[str, Place], table: str
) -> tuple[str, dict[Leaf, int]]:
    """The statement, and the column of each leaf; without leaves, a column of ones."""
    leaves = tuple(dict.fromkeys(leaves_of(program.left, program.right)))
    draft = Emitter(places)
    _select(program.rows, leaves, draft, table)
    shared = frozenset(node for node, uses in draft.uses.items() if uses > 1)
    return _select(program.rows, leaves, Emitter(places, shared), table)


def _select(
    rows: Condition, leaves: tuple[Leaf, ...], emitter: Emitter, table: str
) -> tuple[str, dict[Leaf, int]]:
    texts = {leaf: _leaf_sql(leaf, emitter) for leaf in leaves}
    wanted = list(dict.fromkeys(texts.values())) or [Dialect.integer(1)]
    tests = [emitter.condition(part) for part in _conjuncts(rows)]
    source = table
    for level, layer in enumerate(emitter.layers):
        kept = ["*"] if level else sorted(emitter.columns)
        inner = ", ".join(kept + [f"{sql} AS {name}" for name, sql in layer])
        here = [test.sql for test in tests if test.level == level]
        source = f"(SELECT {inner} FROM {source}{_where(here)}) AS t{level}"
    here = [test.sql for test in tests if test.level >= len(emitter.layers)]
    named = ", ".join(f"{sql} AS v{number}" for number, sql in enumerate(wanted))
    sql = f"SELECT {named} FROM {source}{_where(here)}"
    return sql, {leaf: wanted.index(text) for leaf, text in texts.items()}


def _conjuncts(rows: Condition) -> list[Condition]:
    if isinstance(rows, AllOf):
        return [part for inner in rows.parts for part in _conjuncts(inner)]
    return [] if isinstance(rows, Always) else [rows]


def _where(tests: list[str]) -> str:
    return f" WHERE {' AND '.join(tests)}" if tests else ""


def _leaf_sql(leaf: Leaf, emitter: Emitter) -> str:
    match leaf:
        case FlagCells(column=column):
            flag = emitter.place(column).sql
            return f"CAST(CASE WHEN {flag} THEN 1 WHEN NOT {flag} THEN 0 ELSE -1 END AS BIGINT)"
        case CategoryCells(column=column, values=values):
            declared = Dialect.declared_only(emitter.place(column).sql, values)
            return f"COALESCE(CAST(enum_code({declared}) AS BIGINT), CAST(-1 AS BIGINT))"
        case UnitLeaf(value=value):
            return Dialect.double(emitter.place(value.column).sql)
    return Dialect.bigint(emitter.integer(leaf).sql)
