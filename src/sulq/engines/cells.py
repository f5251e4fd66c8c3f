"""Group keys in SQL, and from a key back to its cell.

Keys come from the declared domain, or from a single column known to hold few values: how many
groups there are never depends on what somebody wrote into a row beyond that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from sulq.engines.dialect import Dialect
from sulq.engines.emitter import Emitter, Value
from sulq.engines.leaves import EXACT_SUM, Place, as_leaf, at_least, below
from sulq.errors import InvalidQuery
from sulq.schema.bound import BinCells, CategoryCells, Cells, FlagCells, cell_count

FEW_EDGES = 16


def key_sql(cells: Cells, emitter: Emitter, alone: bool) -> tuple[str, int]:
    """The key's SQL and the inner SELECT it needs; raw keys only where there is one group."""
    match cells:
        case CategoryCells(column=column, values=values):
            place = emitter.place(column)
            raw = place.few and alone
            return (place.sql if raw else emitter.dialect.declared_only(place.sql, values)), 0
        case FlagCells(column=column):
            return emitter.place(column).sql, 0
        case BinCells():
            return _bin_sql(cells, emitter)


def cell_of(cells: Cells, place: Place | None, alone: bool) -> dict[Any, int]:
    """Key -> cell, for the keys that have one of their own."""
    match cells:
        case CategoryCells(values=values):
            plain = place is not None and place.few and alone
            return {(value if plain else str(value)): i for i, value in enumerate(values)}
        case FlagCells():
            return {False: 0, True: 1}
        case BinCells(edges=edges):
            last = len(edges) - 2
            return {i: min(i, last) for i in range(last + 2)}  # the last edge is in the last bin


def _bin_sql(cells: BinCells, emitter: Emitter) -> tuple[str, int]:
    edges = cells.edges
    if len(edges) < 2 or any(a > b for a, b in pairwise(edges)):
        raise InvalidQuery("bins need at least two edges, none below the one before")
    leaf = as_leaf(cells.value)
    if leaf is not None and len(edges) <= FEW_EDGES:
        place = emitter.place(leaf.value.column)
        tests = [below(leaf, place, edge) for edge in edges[1:-1]]
        inside = f"{at_least(leaf, place, edges[0])} AND {below(leaf, place, edges[-1] + 1)}"
        return Dialect.bigint(f"CASE WHEN {inside} THEN {_tree(tests, 0)} END"), 0
    value = emitter.named(emitter.integer(cells.value))
    x, divided = value.sql, _divided(edges, value, emitter.dialect)
    if divided is not None and edges[0] <= value.low and value.high <= edges[-1]:
        return divided, value.level
    inner = divided or _tree([f"{x} < {Dialect.integer(edge)}" for edge in edges[1:-1]], 0)
    first, last = Dialect.integer(edges[0]), Dialect.integer(edges[-1])
    within = f"CASE WHEN {x} >= {first} AND {x} <= {last} THEN {inner} END"
    return Dialect.bigint(within), value.level


def _divided(edges: Sequence[int], x: Value, speak: type[Dialect]) -> str | None:
    """The bin of x by one division, where the edges allow it: floor((factor x + plus) / under)."""
    bins, width, span = len(edges) - 1, edges[1] - edges[0], edges[-1] - edges[0]
    odd = ""
    if width and all(b - a == width for a, b in pairwise(edges)):
        factor, plus, under = 1, -edges[0], width
    elif _rounded(edges):
        # o = x - first is at or above edge i if i <= (bins (2 o + 1) - [o is odd]) / (2 span).
        factor, plus, under = 2 * bins, bins - 2 * bins * edges[0], 2 * span
        if bins & -bins >= under & -under:  # else bins (2 o + 1) / under is never whole
            odd = f" - ({x.sql} - {speak.integer(edges[0])}) % {speak.integer(2)}"
    else:
        return None
    largest = factor * x.largest + abs(plus) + under
    if x.real is not None and not odd and largest <= EXACT_SUM:
        over = f"({x.real} * {speak.real(float(factor))} + {speak.real(float(plus))})"
        return speak.bigint(f"FLOOR({over} / {speak.real(float(under))})")
    if largest >= 2**62:
        return None
    over = f"({speak.integer(factor)} * {x.sql} + {speak.integer(plus)}{odd})"
    return speak.truncated_division(over, speak.integer(under))


def _rounded(edges: Sequence[int]) -> bool:
    """Whether edge i is the first one plus i / bins of the span, rounded half to even."""
    first, bins, span = edges[0], len(edges) - 1, edges[-1] - edges[0]
    for i, edge in enumerate(edges):
        whole, rest = divmod(span * i, bins)
        if edge - first != whole + (2 * rest + whole % 2 > bins):
            return False
    return bins <= span


def _tree(tests: Sequence[str], first: int) -> str:
    """Which of len(tests) + 1 bins, by halving; each test is made once in the text."""
    if not tests:
        return Dialect.integer(first)
    half = len(tests) // 2
    left, right = _tree(tests[:half], first), _tree(tests[half + 1 :], first + half + 1)
    return f"CASE WHEN {tests[half]} THEN {left} ELSE {right} END"


def flag_cell(flag: str) -> str:
    """The number of a flag's cell, -1 where it is neither."""
    yes, no, none = (Dialect.integer(cell) for cell in (1, 0, -1))
    return Dialect.bigint(f"CASE WHEN {flag} THEN {yes} WHEN NOT {flag} THEN {no} ELSE {none} END")


def flat_cells(groups: Sequence[Cells]) -> int:
    cells = 1
    for group in groups:
        cells *= cell_count(group)
    return cells
