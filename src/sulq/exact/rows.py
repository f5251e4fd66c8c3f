"""What one row adds to a batch, computed from the bound program alone: no engine, no data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sulq.schema import bound as b
from sulq.schema.members import like

Row = Mapping[str, object]
"""Column -> a declared value, a number on its lattice, True, False, or None for missing."""


def adds(programs: Sequence[b.RowSums], row: Row) -> tuple[int, ...]:
    """The row's contribution to every sum of every question, in order."""
    found: list[int] = []
    for program in programs:
        values = [_integer(term, row) or 0 for term in program.terms]
        sizes = [b.cell_count(group) for group in program.groups]
        sums = [0] * (math.prod(sizes) * len(values))
        places = [_cell(group, row) for group in program.groups]
        if _holds(program.rows, row) and None not in places:
            at = 0
            for size, place in zip(sizes, places, strict=True):
                at = at * size + (place or 0)
            sums[at * len(values) : (at + 1) * len(values)] = values
        found += sums
    return tuple(found)


def _cell(group: b.Cells, row: Row) -> int | None:
    """The row's cell, or None where it has none."""
    last = b.cell_count(group) - 1 if group.other else None
    match group:
        case b.CategoryCells(column, values):
            return values.index(row[column]) if row[column] in values else last
        case b.FlagCells(column):
            return last if row[column] is None else int(bool(row[column]))
        case b.BinCells(value, edges):
            v = _integer(value, row)
            if v is None or not edges[0] <= v <= edges[-1]:
                return last
            return min(sum(edge <= v for edge in edges), len(edges) - 1) - 1


def _integer(node: b.Integer, row: Row) -> int | None:
    match node:
        case b.Quantised(column, low, high, per_unit):
            raw = row[column]
            if raw is None:
                return None
            return math.floor(min(max(float(raw), low), high) * per_unit + 0.5)  # type: ignore[arg-type]
        case b.FlagBit(column):
            return None if row[column] is None else int(bool(row[column]))
        case b.Fixed(value):
            return value
        case b.Added(parts):
            values = [_integer(part, row) for part in parts]
            return None if None in values else sum(v for v in values if v is not None)
        case b.Chosen(condition, then, otherwise):
            return _integer(then if _holds(condition, row) else otherwise, row)
        case b.FirstOf(value, instead):
            first = _integer(value, row)
            return _integer(instead, row) if first is None else first
        case b.Scaled(value, factor):
            return _mapped(_integer(value, row), lambda v: v * factor)
        case b.Magnitude(value):
            return _mapped(_integer(value, row), abs)
        case b.Shifted(value, bits):
            half = 1 << bits >> 1
            return _mapped(_integer(value, row), lambda v: (v + half) >> bits)
        case b.HashedBit(value, (p, q, r, s)):
            return _mapped(
                _integer(value, row), lambda v: ((p * v**3 + q * v**2 + r * v + s) % b.PRIME) % 2
            )
        case b.Divided(over, under):
            return _paired(_integer(over, row), _integer(under, row), _nearest)
        case b.Multiplied(left, right):
            return _paired(_integer(left, row), _integer(right, row), lambda v, w: v * w)
        case b.Lesser(left, right):
            return _paired(_integer(left, row), _integer(right, row), min)
        case b.Greater(left, right):
            return _paired(_integer(left, row), _integer(right, row), max)


def _nearest(over: int, under: int) -> int:
    return (2 * over + under) // (2 * under)


def _mapped(value: int | None, change: object) -> int | None:
    return None if value is None else change(value)  # type: ignore[operator]


def _paired(left: int | None, right: int | None, join: object) -> int | None:
    return None if left is None or right is None else join(left, right)  # type: ignore[operator]


def _holds(condition: b.Condition, row: Row) -> bool:
    match condition:
        case b.Always():
            return True
        case b.Never():
            return False
        case b.AllOf(parts):
            return all(_holds(part, row) for part in parts)
        case b.AnyOf(parts):
            return any(_holds(part, row) for part in parts)
        case b.Compared(operator, left, right):
            v, w = _integer(left, row), _integer(right, row)
            if v is None or w is None:
                return False
            return {"<": v < w, "<=": v <= w, "=": v == w, "<>": v != w}[operator]
        case b.FlagIs(column, value):
            return row[column] is value
        case b.Among(column, values, negated):
            raw = row[column]
            return raw is not None and (raw in values) is not negated
        case b.Matches(column, pattern, negated):
            raw = row[column]
            return isinstance(raw, str) and like(pattern, raw) is not negated
        case b.Missing(b.Text(column), negated):
            return (row[column] is None) is not negated
        case b.Missing(subject, negated):
            assert not isinstance(subject, b.Text)  # noqa: S101
            return (_integer(subject, row) is None) is not negated
