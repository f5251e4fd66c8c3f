"""Membership: a Category or a Flag against listed values, decided on declared values only."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sulq.errors import InvalidQuery
from sulq.schema import bound
from sulq.schema.bound import Condition
from sulq.schema.columns import Category, Flag


def like(pattern: str, text: str) -> bool:
    """SQL LIKE without an escape character, in time pattern times text at most."""
    at = place = 0
    star, mark = -1, 0  # the last % seen, and where its match began
    while at < len(text):
        if place < len(pattern) and pattern[place] == "%":
            star, mark = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("_", text[at]):
            place += 1
            at += 1
        elif star >= 0:
            mark += 1
            place, at = star + 1, mark
        else:
            return False
    return all(rest == "%" for rest in pattern[place:])


def category_member(column: Category, negated: bool, values: Sequence[object]) -> Condition:
    """The column is (not) one of the values; what was not declared is nobody's value."""
    wanted = int if column.values and isinstance(column.values[0], int) else str
    kept: list[object] = []
    for value in values:
        if type(value) is not wanted:
            raise InvalidQuery(
                f"{column.name} holds {'whole numbers' if wanted is int else 'texts'},"
                f" got {value!r:.80}"
            )
        if column.values is None or value in column.values:
            kept.append(value)
    if not kept:
        return bound.Missing(bound.Text(column.name), True) if negated else bound.Never()
    return bound.Among(column.name, tuple(kept), negated)  # type: ignore[arg-type]


def flag_member(column: Flag, negated: bool, values: Sequence[object]) -> Condition:
    """The flag is (not) one of the values."""
    wanted = set()
    for value in values:
        if not isinstance(value, bool | int | Fraction):
            raise InvalidQuery(f"{column.name} is a Flag: compare it with True or False")
        if value in (0, 1):  # no flag is any other number
            wanted.add(bool(value))
    if negated:
        wanted = {True, False} - wanted
    if not wanted:
        return bound.Never()
    if len(wanted) == 2:
        return bound.Missing(bound.FlagBit(column.name), True)
    return bound.FlagIs(column.name, wanted.pop())
