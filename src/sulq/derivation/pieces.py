"""Columns cut into finitely many pieces, as far as some questions tell values apart.

A column that is compared with constants falls into NULL and the intervals between them, one that
is compared with texts into the texts that are told apart, everything else and NULL. A CASE of
constants is known on every piece, whatever its labels are called. A condition that is neither is
an axis of its own. So every condition is true or not on a whole piece: docs/proofs/derivation.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from sulq.schema import bound as b

Key: TypeAlias = tuple[Any, ...]
Marks: TypeAlias = dict[Key, dict[Any, b.Integer | None]]
"""Axis -> its marks (thresholds with the value they cut, or sets of listed values)."""
Cut: TypeAlias = tuple[b.Integer, int | None, int | None, bool]

FAR = 2**62


def marks_of(program: b.RowSums) -> Marks:
    """The pieces a question needs."""
    found: Marks = {}
    _condition(program.rows, found)
    for term in program.terms:
        _integer(term, found)
    for group in program.groups:
        match group:
            case b.CategoryCells(column, values):
                _mark(found, ("text", column), (frozenset([value]) for value in values))
            case b.FlagCells(column):
                _mark(found, ("flag", column))
            case b.BinCells(value, edges):
                _threshold(found, value, (*edges[:-1], edges[-1] + 1))
    return found


def joined(marks: Iterable[Marks]) -> Marks:
    """The common refinement."""
    found: Marks = {}
    for each in marks:
        for key, own in each.items():
            found.setdefault(key, {}).update(own)
    return found


def size_of(key: Key, marks: Mapping[Any, object]) -> int:
    """How many pieces an axis has."""
    match key[0]:
        case "number":
            return len(marks) + 2
        case "text":
            return len(classes(marks)) + 2
        case "value":
            return len(marks) + 1
        case "flag" | "like":
            return 3
    return 2


def classes(marks: Iterable[frozenset[Any]]) -> list[tuple[Any, ...]]:
    """Listed values, those together that are in the same sets: no question tells them apart."""
    among: dict[Any, list[int]] = {}
    for number, listed in enumerate(marks):
        for value in listed:
            among.setdefault(value, []).append(number)
    found: dict[tuple[int, ...], list[Any]] = {}
    for value, numbers in among.items():
        found.setdefault(tuple(numbers), []).append(value)
    return sorted(tuple(sorted(own)) for own in found.values())


def is_stepwise(node: b.Integer) -> bool:
    """A value that is a known constant on every piece: of constants, flags and choices alone."""
    match node:
        case b.Fixed() | b.FlagBit():
            return True
        case b.Added(parts):
            return all(map(is_stepwise, parts))
        case b.Scaled(value):
            return is_stepwise(value)
        case b.Chosen(_, one, two) | b.FirstOf(one, two):
            return is_stepwise(one) and is_stepwise(two)
    return False


def columns_of(key: Key) -> tuple[str, ...]:
    """The columns that decide in which piece a row lies."""
    return tuple(dict.fromkeys(_columns(key[1]))) if key[0] in ("value", "leaf") else (key[1],)


def _columns(node: object) -> Iterable[str]:
    if isinstance(node, tuple):
        for part in node:
            yield from _columns(part)
        return
    names = getattr(type(node), "__match_args__", ())
    for name in names:
        found = getattr(node, name)
        if name == "column":
            yield found
        else:
            yield from _columns(found)


def atom_columns(atom: object) -> tuple[str, ...]:
    """The columns a summand reads."""
    return tuple(dict.fromkeys(_columns(atom)))


def ends(node: b.Quantised) -> tuple[int, int]:
    """The least and the largest step of a column; rounding is monotone, so clamping commutes."""
    return (
        math.floor(node.low * node.per_unit + 0.5),
        math.floor(node.high * node.per_unit + 0.5),
    )


def axis_of(node: b.Integer) -> Key:
    """The axis on which thresholds of a value lie: clipped columns share their column's."""
    if isinstance(node, b.Quantised):
        return ("number", node.column, node.per_unit)
    return ("value", node)


def cut_of(condition: b.Compared) -> Cut | None:
    """value, low, high, outside: true where low <= value < high, or just not there.

    None if it compares two values, or constants.
    """
    left, right, sign = condition.left, condition.right, condition.operator
    if isinstance(left, b.Fixed) and not isinstance(right, b.Fixed):
        k, value, mirrored = left.value, right, True
    elif isinstance(right, b.Fixed) and not isinstance(left, b.Fixed):
        k, value, mirrored = right.value, left, False
    else:
        return None
    if k is None:
        return value, 0, 0, False
    if sign in ("=", "<>"):
        return value, k, k + 1, sign == "<>"
    if mirrored:
        return value, k + (sign == "<"), None, False
    return value, None, k + (sign == "<="), False


def _mark(found: Marks, key: Key, listed: Iterable[object] = ()) -> None:
    found.setdefault(key, {}).update(dict.fromkeys(listed))


def _threshold(found: Marks, value: b.Integer, steps: Iterable[int]) -> None:
    match value:
        case b.Quantised():
            low, high = ends(value)
            own = {step: value for step in steps if low < step <= high}
            found.setdefault(axis_of(value), {}).update(own)
        case _ if is_stepwise(value):
            _integer(value, found)
        case _:
            found.setdefault(axis_of(value), {}).update(dict.fromkeys(steps, value))
            _integer(value, found)


def _integer(node: b.Integer, found: Marks) -> None:
    """Axes that decide whether a value is NULL, and which branch it takes."""
    match node:
        case b.Quantised():
            _mark(found, axis_of(node))
        case b.FlagBit(column):
            _mark(found, ("flag", column))
        case b.Fixed():
            pass
        case b.Added(parts):
            for part in parts:
                _integer(part, found)
        case b.Chosen(condition, then, otherwise):
            _condition(condition, found)
            _integer(then, found)
            _integer(otherwise, found)
        case b.FirstOf(first, second) | b.Divided(first, second) | b.Multiplied(first, second):
            _integer(first, found)
            _integer(second, found)
        case b.Lesser(first, second) | b.Greater(first, second):
            _integer(first, found)
            _integer(second, found)
        case b.Scaled(value) | b.Magnitude(value) | b.Shifted(value) | b.HashedBit(value):
            _integer(value, found)


def _condition(node: b.Condition, found: Marks) -> None:
    match node:
        case b.Always() | b.Never():
            pass
        case b.AllOf(parts) | b.AnyOf(parts):
            for part in parts:
                _condition(part, found)
        case b.Compared(left=left, right=right):
            cut = cut_of(node)
            if cut is not None:
                value, low, high, _ = cut
                _threshold(found, value, [step for step in (low, high) if step is not None])
            elif is_stepwise(left) and is_stepwise(right):
                _integer(left, found)
                _integer(right, found)
            else:
                _mark(found, ("leaf", node))
        case b.FlagIs(column):
            _mark(found, ("flag", column))
        case b.Among(column, values):
            _mark(found, ("text", column), [frozenset(values)])
        case b.Matches(column, pattern):
            _mark(found, ("like", column, pattern))
        case b.Missing(b.Text(column)):
            _mark(found, ("text", column))
        case b.Missing(subject):
            assert not isinstance(subject, b.Text)  # noqa: S101
            _integer(subject, found)
