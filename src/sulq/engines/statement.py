"""The whole statement: inner SELECTs, the sums, and how rows of the result become cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sulq.engines.cells import cell_of, flat_cells, key_sql
from sulq.engines.emitter import Emitter
from sulq.engines.inner import from_rows
from sulq.engines.leaves import EXACT_SUM, Place
from sulq.engines.proved import within
from sulq.engines.totals import Aggregate, Rows, Total, Totals, present, totals
from sulq.schema.bound import (
    Always,
    BinCells,
    CategoryCells,
    Missing,
    RowSums,
    Text,
    cell_count,
)

TABLE = "people"


@dataclass(frozen=True, slots=True)
class Reach:
    """The least and the most that one row, or one person, can add to an aggregate.

    `counted`: the aggregate that says how many add to it; None: no more than there are rows.
    """

    least: int
    most: int
    counted: int | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """One SELECT, and what its rows mean."""

    sql: str
    program: RowSums
    sums: Totals
    cells: tuple[dict[Any, int], ...]
    reach: tuple[Reach, ...]
    """Of each aggregate."""
    most_rows: int

    def decode(self, rows: Iterable[tuple[Any, ...]]) -> list[int]:
        """The cells; `Impossible` for what the statement's proof rules out."""
        groups, terms = self.program.groups, len(self.program.terms)
        answer = [0] * (flat_cells(groups) * terms)
        place = {part: number for number, part in enumerate(self.sums.aggregates)}
        wanted = [
            (number, weight, place[part])
            for number, mixture in enumerate(self.sums.terms)
            for weight, part in mixture
        ]
        steps = [
            (
                known,
                cell_count(group),
                cell_count(group) - 1 if group.other else None,
                isinstance(group, BinCells),
            )
            for group, known in zip(groups, self.cells, strict=True)
        ]
        for row in rows:
            cell = 0
            for (known, size, other, binned), key in zip(steps, row, strict=False):
                if binned and key is not None:
                    within(key, 0, len(known) - 1)
                index = known.get(key, other)
                if index is None:
                    break  # an undeclared key that no cell takes
                cell = cell * size + index
            else:
                sums = self._checked(row[len(groups) : len(groups) + len(self.reach)])
                for number, weight, at in wanted:
                    answer[cell * terms + number] += weight * sums[at]
        return answer

    def _checked(self, found: Sequence[Any]) -> list[int]:
        """The aggregates of one cell, each within what its rows can add."""
        sums = []
        for value, reach in zip(found, self.reach, strict=True):
            rows = self.most_rows
            if reach.counted is not None:
                rows = within(found[reach.counted], 0, rows)
            sums.append(within(value, reach.least * rows, reach.most * rows))
        return sums


def statement(program: RowSums, places: Mapping[str, Place], most_rows: int) -> Statement:
    """The program as one SELECT over `people`, of which there are at most `most_rows`."""
    sums = totals(program)
    emitter = Emitter(places)
    sql = _select(program, sums, emitter, most_rows)
    shared = frozenset(node for node, uses in emitter.uses.items() if uses > 1)
    if shared:
        emitter = Emitter(places, shared)
        sql = _select(program, sums, emitter, most_rows)
    place = {part: number for number, part in enumerate(sums.aggregates)}
    reach = tuple(_reach(part, emitter, place) for part in sums.aggregates)
    cells = tuple(
        cell_of(
            group,
            places[group.column] if isinstance(group, CategoryCells) else None,
            len(program.groups) == 1,
        )
        for group in program.groups
    )
    return Statement(sql, program, sums, cells, reach, most_rows)


def _reach(part: Aggregate, emitter: Emitter, place: Mapping[Aggregate, int]) -> Reach:
    """Where the rows on which a value is there are counted, each adds at least the least of it."""
    every = place.get(Rows(Always()))
    if isinstance(part, Rows):
        return Reach(0, 1, None if part == Rows(Always()) else every)
    value = emitter.integer(part.value)
    counted = place.get(Rows(present(part.value))) if value.nullable else every
    if counted is not None:
        return Reach(value.low, value.high, counted)
    return Reach(min(0, value.low), max(0, value.high), every)


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
            if value.real is not None and value.largest * most_rows <= EXACT_SUM:
                return emitter.dialect.real_sum(value.real)
            return emitter.dialect.whole_sum(value.sql, value.largest, most_rows)
