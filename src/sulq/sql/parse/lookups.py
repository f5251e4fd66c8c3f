"""Public lookup tables: a mapping of declared values to labels, as a CASE over the column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query.expressions import Literal, as_expression
from sulq.sql.parse.tokens import Node

LIKE_THIS = "lookups={'regions': {'key': ['Oslo', 'Paris'], 'name': ['North', 'South']}}"


@dataclass(frozen=True, slots=True)
class Lookup:
    """Columns of equal length."""

    name: str
    columns: Mapping[str, tuple[object, ...]]

    def by(self, key: str) -> dict[object, int]:
        """The line of each value of a column; every value once, else a join would double rows."""
        listed = self.columns[key]
        found = {value: place for place, value in enumerate(listed) if value is not None}
        if len(found) != sum(value is not None for value in listed):
            raise InvalidQuery(
                f"{self.name}.{key} holds a value twice: rows would count twice", reason=Reason.JOIN
            )
        return found


def read_lookups(given: Mapping[str, Any] | None) -> dict[str, Lookup]:
    """Lookups as the caller passes them, by name."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidQuery(f"lookups must be tables by name: {LIKE_THIS}", reason=Reason.JOIN)
    return {str(name).casefold(): _lookup(str(name), table) for name, table in given.items()}


def _lookup(name: str, table: Any) -> Lookup:
    if not isinstance(table, Mapping) or not table:
        raise InvalidQuery(
            f"the lookup {name!r:.60} must be columns by name: {LIKE_THIS}", reason=Reason.JOIN
        )
    columns: dict[str, tuple[object, ...]] = {}
    for label, values in table.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise InvalidQuery(
                f"{name}.{label} must be a list of values: {LIKE_THIS}", reason=Reason.JOIN
            )
        columns[str(label).casefold()] = tuple(_plain(value) for value in values)
    if len({len(values) for values in columns.values()}) != 1:
        raise InvalidQuery(
            f"the columns of the lookup {name!r:.60} differ in length", reason=Reason.JOIN
        )
    return Lookup(name, columns)


def _plain(value: object) -> object:
    read = as_expression(value)
    if not isinstance(read, Literal):
        raise InvalidQuery(
            f"a lookup holds texts, numbers and NULLs: {LIKE_THIS}", reason=Reason.JOIN
        )
    return read.value


def constant(value: object) -> Node:
    """A public value as a node."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        return exp.Literal(this=value, is_string=True)
    if isinstance(value, int | Fraction):
        number = Fraction(value)
        whole = exp.Literal(this=str(abs(number.numerator)), is_string=False)
        size: Node = whole
        if number.denominator != 1:
            under = exp.Literal(this=str(number.denominator), is_string=False)
            size = exp.Div(this=whole, expression=under)
        return exp.Neg(this=size) if number < 0 else size
    raise InvalidQuery(f"a lookup holds texts, numbers and NULLs: {LIKE_THIS}", reason=Reason.JOIN)


def keys_in(column: Node, keys: Sequence[object]) -> Node:
    """column IN (keys)."""
    if not keys:
        return exp.Boolean(this=False)
    return exp.In(this=column.copy(), expressions=[constant(key) for key in keys])


def label_tree(column: Node, pairs: Sequence[tuple[object, object]], total: bool) -> Node:
    """CASE that gives every key its label; halving keeps it shallow.

    All else is NULL, unless it is known that there is nothing else (`total`).
    """
    by_label: dict[tuple[type, object], list[object]] = {}
    for key, label in pairs:
        by_label.setdefault((type(label), label), []).append(key)
    return _halved(column, [(label, keys) for (_, label), keys in by_label.items()], total)


def _halved(column: Node, labelled: list[tuple[object, list[object]]], total: bool) -> Node:
    if not labelled:
        return exp.Null()
    if len(labelled) == 1:
        label, keys = labelled[0]
        if total:
            return constant(label)
        return _case(keys_in(column, keys), constant(label), exp.Null())
    middle = len(labelled) // 2
    left = [key for _, keys in labelled[:middle] for key in keys]
    return _case(
        keys_in(column, left),
        _halved(column, labelled[:middle], True),
        _halved(column, labelled[middle:], total),
    )


def _case(condition: Node, then: Node, otherwise: Node) -> Node:
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=otherwise)
