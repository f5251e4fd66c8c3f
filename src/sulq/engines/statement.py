"""The whole statement: inner SELECTs, the sums, and how rows of the result become cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sulq.engines.cells import cell_of, flat_cells, key_sql
from sulq.engines.emitter import Emitter
from sulq.engines.inner import from_rows
from sulq.engines.leaves import EXACT_SUM, Place
from sulq.engines.totals import Aggregate, Rows, Total, Totals, totals
from sulq.schema.bound import (
    Always,
    CategoryCells,
    Missing,
    RowSums,
    Text,
    cell_count,
)

TABLE = "people"


@dataclass(frozen=True, slots=True)
class Statement:
    """One SELECT, and what its rows mean."""

    sql: str
    program: RowSums
    sums: Totals
    cells: tuple[dict[Any, int], ...]

    def decode(self, rows: Iterable[tuple[Any, ...]]) -> list[int]:
        groups, terms = self.program.groups, len(self.program.terms)
        answer = [0] * (flat_cells(groups) * terms)
        column = {part: len(groups) + i for i, part in enumerate(self.sums.aggregates)}
        wanted = [
            (number, weight, column[part])
            for number, mixture in enumerate(self.sums.terms)
            for weight, part in mixture
        ]
        steps = [
            (known, cell_count(group), cell_count(group) - 1 if group.other else None)
            for group, known in zip(groups, self.cells, strict=True)
        ]
        for row in rows:
            cell = 0
            for (known, size, other), key in zip(steps, row, strict=False):
                index = known.get(key, other)
                if index is None:
                    break  # an undeclared key that no cell takes
                cell = cell * size + index
            else:
                for number, weight, place in wanted:
                    answer[cell * terms + number] += weight * _whole(row[place])
        return answer


def _whole(value: int | float) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("not a whole number")
    return int(value)


def statement(program: RowSums, places: Mapping[str, Place], most_rows: int) -> Statement:
    """The program as one SELECT over `people`, of which there are at most `most_rows`."""
    sums = totals(program)
    draft = Emitter(places)
    sql = _select(program, sums, draft, most_rows)
    shared = frozenset(node for node, uses in draft.uses.items() if uses > 1)
    if shared:
        sql = _select(program, sums, Emitter(places, shared), most_rows)
    cells = tuple(
        cell_of(
            group,
            places[group.column] if isinstance(group, CategoryCells) else None,
            len(program.groups) == 1,
        )
        for group in program.groups
    )
    return Statement(sql, program, sums, cells)


def _select(program: RowSums, sums: Totals, emitter: Emitter, most_rows: int) -> str:
    keys = [key_sql(group, emitter, len(program.groups) == 1) for group in program.groups]
    wanted = [sql for sql, _ in keys]
    wanted += [aggregate_sql(part, emitter, most_rows) for part in sums.aggregates]
    grouped = ", ".join(str(i + 1) for i in range(len(keys)))
    return (
        f"SELECT {', '.join(wanted) or 'count(*)'} {from_rows(sums.rows, emitter, TABLE)}"
        f"{f' GROUP BY {grouped}' if grouped else ''}"
    )


def aggregate_sql(part: Aggregate, emitter: Emitter, most_rows: int) -> str:
    match part:
        case Rows(condition=Always()):
            return "count(*)"
        case Rows(condition=Missing(subject=subject, negated=True)) if (
            not isinstance(subject, Text) and not emitter.dialect.counts_by_test
        ):
            value = emitter.integer(subject)
            return f"count({value.real or value.sql})"
        case Rows(condition=condition):
            return f"count(*) FILTER (WHERE {emitter.condition(condition).sql})"
        case Total(value=node):
            value = emitter.integer(node)
            exact = value.largest * most_rows <= EXACT_SUM
            summed = emitter.dialect.whole_sum(value.sql, value.largest, most_rows)
            if value.real is not None and exact:
                summed = emitter.dialect.real_sum(value.real)
            return f"COALESCE({summed}, 0)"
