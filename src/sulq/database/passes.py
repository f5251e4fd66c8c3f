"""Fewer passes over the rows: questions over the same rows and cells become one program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sulq.query.sum_query import MOST_TERMS
from sulq.schema.binding import MOST_CELLS, BoundQuery
from sulq.schema.bound import RowSums

if TYPE_CHECKING:
    from sulq.schema.vectors import BlockSums


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


def merged(bounds: Sequence[BoundQuery]) -> RowSums | BlockSums:
    """One program that sums the terms of all of them."""
    programs = [bound.sums for bound in bounds]
    terms = [term for sums in programs if isinstance(sums, RowSums) for term in sums.terms]
    first = programs[0]
    return replace(first, terms=tuple(terms)) if isinstance(first, RowSums) else first


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
