"""What a row program means, in plain Python: no SQL, no thresholds, no shortcuts.

A row maps column names to None, float, int, Decimal, str or bool.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from sulq.kernel.schema import program as b
from sulq.kernel.schema.sensitivity import PersonSums

Row = dict[str, Any]


def leaf(node: b.Quantised, row: Row) -> int | None:
    raw = row[node.column]
    if raw is None:
        return None
    try:
        x = float(raw)
    except OverflowError:
        x = math.inf if raw > 0 else -math.inf
    if math.isnan(x):
        return None
    clamped = node.low if x < node.low else node.high if x > node.high else x
    return math.floor(clamped * node.per_unit + 0.5)


def flag(column: str, row: Row) -> bool | None:
    raw = row[column]
    return raw if isinstance(raw, bool) else {0: False, 1: True}.get(raw)


def integer(node: b.Integer, row: Row) -> int | None:
    match node:
        case b.Quantised():
            return leaf(node, row)
        case b.FlagBit():
            value = flag(node.column, row)
            return None if value is None else int(value)
        case b.Fixed():
            return node.value
        case b.Added():
            parts = [integer(part, row) for part in node.parts]
            return None if None in parts else sum(p for p in parts if p is not None)
        case b.BoundChoice():
            taken = node.then if holds(node.condition, row) else node.otherwise
            return integer(taken, row)
        case b.FirstOf():
            value = integer(node.value, row)
            return integer(node.instead, row) if value is None else value
        case b.BoundScaled():
            v = integer(node.value, row)
            return None if v is None else v * node.factor
        case b.Magnitude():
            v = integer(node.value, row)
            return None if v is None else abs(v)
        case b.Shifted():
            v = integer(node.value, row)
            return None if v is None else (2 * v + 2**node.bits) // (2 * 2**node.bits)
        case b.HashedBit():
            v = integer(node.value, row)
            if v is None:
                return None
            p, q, r, s = node.coefficients
            return ((p * v**3 + q * v**2 + r * v + s) % b.PRIME) % 2
    first, second = (
        (node.over, node.under)
        if isinstance(node, b.Divided)
        else (
            node.left,
            node.right,
        )
    )
    v, w = integer(first, row), integer(second, row)
    if v is None or w is None:
        return None
    match node:
        case b.Multiplied():
            return v * w
        case b.Divided():
            assert w > 0
            return (2 * v + w) // (2 * w)
        case b.Lesser():
            return min(v, w)
        case b.Greater():
            return max(v, w)
    raise AssertionError(node)


def holds(node: b.Condition, row: Row) -> bool:
    match node:
        case b.Always():
            return True
        case b.Never():
            return False
        case b.AllOf():
            return all(holds(part, row) for part in node.parts)
        case b.AnyOf():
            return any(holds(part, row) for part in node.parts)
        case b.Compared():
            v, w = integer(node.left, row), integer(node.right, row)
            if v is None or w is None:
                return False
            return {"<": v < w, "<=": v <= w, "=": v == w, "<>": v != w}[node.operator]
        case b.FlagIs():
            return flag(node.column, row) is node.value
        case b.Among():
            raw = row[node.column]
            return raw is not None and (raw in node.values) is not node.negated
        case b.Matches():
            raw = row[node.column]
            return raw is not None and like(raw, node.pattern) is not node.negated
        case b.Missing():
            if isinstance(node.subject, b.Text):
                missing = row[node.subject.column] is None
            else:
                missing = integer(node.subject, row) is None
            return missing is not node.negated
    raise AssertionError(node)


def like(text: str, pattern: str) -> bool:
    pieces = {"%": ".*", "_": "."}
    regex = "".join(pieces.get(letter, re.escape(letter)) for letter in pattern)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def cell(group: b.Cells, row: Row) -> int | None:
    """The row's cell, or None where it has none."""
    last = b.cell_count(group) - 1 if group.other else None
    match group:
        case b.CategoryCells():
            raw = row[group.column]
            return group.values.index(raw) if raw in group.values else last
        case b.FlagCells():
            value = flag(group.column, row)
            return last if value is None else int(value)
        case b.BinCells():
            v = integer(group.value, row)
            if v is None or not group.edges[0] <= v <= group.edges[-1]:
                return last
            at = sum(edge <= v for edge in group.edges) - 1
            return min(at, len(group.edges) - 2)


def exact_sums(program: b.RowSums, rows: Sequence[Row]) -> list[int]:
    counts = [b.cell_count(group) for group in program.groups]
    answer = [0] * (math.prod(counts) * len(program.terms))
    for row in rows:
        if not holds(program.rows, row):
            continue
        at: int | None = 0
        for group, count in zip(program.groups, counts, strict=True):
            index = cell(group, row)
            at = None if at is None or index is None else at * count + index
        if at is None:
            continue
        for number, term in enumerate(program.terms):
            answer[at * len(program.terms) + number] += integer(term, row) or 0
    return answer


def person_sums(program: PersonSums, rows: Sequence[Row], person: str) -> list[int]:
    """Per person and cell the sum over S, clipped; then over the persons."""
    by_person: dict[Any, list[Row]] = {}
    for row in rows:
        by_person.setdefault(row[person], []).append(row)
    plain = program.plain
    answer = [0] * math.prod(b.cell_count(group) for group in program.groups)
    for mine in by_person.values():
        sums = exact_sums(plain, mine)
        ones = b.RowSums(plain.rows, (b.Fixed(1),), plain.groups)
        for place, (total, rows_here) in enumerate(zip(sums, exact_sums(ones, mine), strict=True)):
            if rows_here:
                answer[place] += min(max(total, program.low), program.high)
    return answer
