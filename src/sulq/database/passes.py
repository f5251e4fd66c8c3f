"""Fewer passes over the rows: questions over the same rows and cells become one program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from sulq.engines.engine import Engine
from sulq.query.sum_query import MOST_TERMS
from sulq.schema.binding import MOST_CELLS, BoundQuery
from sulq.schema.bound import RowSums


def passes(bounds: Iterable[BoundQuery]) -> list[list[BoundQuery]]:
    """Questions over the same rows and cells go together, as far as one question could be."""
    together: dict[object, list[list[BoundQuery]]] = {}
    for bound in bounds:
        same: object = bound.digest
        if isinstance(bound.sums, RowSums):
            same = (bound.sums.rows, bound.sums.groups)
        parts = together.setdefault(same, [[]])
        terms = len(bound.terms) + sum(len(one.terms) for one in parts[-1])
        if terms > MOST_TERMS or terms * bound.cells > MOST_CELLS:
            parts.append([])
        parts[-1].append(bound)
    return [part for parts in together.values() for part in parts if part]


def prepared(engine: Engine, bounds: Sequence[BoundQuery]) -> Callable[[], list[list[int]]]:
    """What will read the rows once and give each question its own sums; may refuse."""
    read = engine.prepare(bounds[0].sums if len(bounds) == 1 else merged(bounds))
    return lambda: parted(read(), bounds)


def merged(bounds: Sequence[BoundQuery]) -> RowSums:
    """One program that sums the terms of all of them."""
    programs = [bound.sums for bound in bounds if isinstance(bound.sums, RowSums)]
    return replace(programs[0], terms=tuple(term for sums in programs for term in sums.terms))


def parted(sums: list[int], bounds: Sequence[BoundQuery]) -> list[list[int]]:
    """The sums of `merged`, each question's own."""
    if len(bounds) == 1:
        return [sums]
    widths = [len(bound.terms) for bound in bounds]
    whole, found, start = sum(widths), [], 0
    for width in widths:
        cells = range(start, len(sums), whole)
        found.append([value for cell in cells for value in sums[cell : cell + width]])
        start += width
    return found
