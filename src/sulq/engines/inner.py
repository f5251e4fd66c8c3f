"""Where the rows come from: the inner SELECTs that name what is mentioned twice, and the WHERE."""

from __future__ import annotations

from sulq.engines.emitter import Emitter
from sulq.schema.bound import AllOf, Always, Condition


def from_rows(rows: Condition, emitter: Emitter, table: str) -> str:
    """FROM ... WHERE ...; what is wanted of the rows must have gone through the emitter before.

    Each condition goes to the innermost SELECT that can test it.
    """
    tests = [emitter.condition(part) for part in _conjuncts(rows)]
    source = emitter.dialect.table(table)
    for level, layer in enumerate(emitter.layers):
        kept = ["*"] if level else sorted(emitter.columns)
        inner = ", ".join(kept + [f"{sql} AS {name}" for name, sql in layer])
        here = [test.sql for test in tests if test.level == level]
        source = f"(SELECT {inner} FROM {source}{_where(here)}{emitter.dialect.fence}) AS t{level}"
    return f"FROM {source}{_where([t.sql for t in tests if t.level >= len(emitter.layers)])}"


def _conjuncts(rows: Condition) -> list[Condition]:
    """The conditions that must all hold."""
    if isinstance(rows, AllOf):
        return [part for inner in rows.parts for part in _conjuncts(inner)]
    return [] if isinstance(rows, Always) else [rows]


def _where(tests: list[str]) -> str:
    return f" WHERE {' AND '.join(tests)}" if tests else ""
