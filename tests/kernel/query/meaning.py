"""What an expression means, straight from the language's definition: exact numbers, SQL logic.

Written without canonical forms, grids or binding, to check them. On lattice columns (whole
steps) and without division the product must agree with this to the last digit.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sulq.kernel.query.expressions import Column, Expression, Literal, Operation
from sulq.kernel.schema.bind_rows import like
from sulq.kernel.schema.columns import Category, Flag, Number, Schema, as_number

Row = Mapping[str, Any]


def column_value(schema: Schema, row: Row, name: str) -> Any:
    column, raw = schema[name], row[name]
    if raw is None:
        return None
    match column:
        case Number():
            low, high = column.range
            step = column.lattice
            assert step is not None
            clamped = min(max(Fraction(raw), low), high)
            return (clamped / step + Fraction(1, 2)).__floor__() * step
        case Flag():
            return raw if isinstance(raw, bool) else None
        case Category():
            return raw


def value(expression: Expression, row: Row, schema: Schema) -> Any:
    """The value of an expression on a row: Fraction, text, bool, or None for NULL."""
    match expression:
        case Column(name):
            return column_value(schema, row, name)
        case Literal(value=known):
            if known is None or isinstance(known, bool | str):
                return known
            return as_number(known, "literal")
        case Operation(name, operands):
            return _operation(name, operands, row, schema)
    raise AssertionError(expression)


def _number(known: Any) -> Any:
    return Fraction(known) if isinstance(known, bool) else known


def _operation(name: str, operands: tuple[Expression, ...], row: Row, schema: Schema) -> Any:
    if name == "and":
        parts = [value(part, row, schema) for part in operands]
        return False if False in parts else (None if None in parts else True)
    if name == "or":
        parts = [value(part, row, schema) for part in operands]
        return True if True in parts else (None if None in parts else False)
    if name == "choose":
        chosen = value(operands[0], row, schema) is True
        return _number(value(operands[1 if chosen else 2], row, schema))
    if name == "coalesce":
        first = _number(value(operands[0], row, schema))
        return _number(value(operands[1], row, schema)) if first is None else first
    parts = [value(part, row, schema) for part in operands]
    if name in ("is_null", "not_null"):
        return (parts[0] is None) is (name == "is_null")
    if name in ("among", "not_among"):
        return _among(name, parts, operands[0], schema)
    if None in parts:
        return None
    if name == "not":
        return not parts[0]
    if name in ("eq", "ne"):
        return _among("among" if name == "eq" else "not_among", parts, operands[0], schema)
    if name in ("like", "not_like"):
        return like(parts[1], parts[0]) is (name == "like")
    numbers = [_number(part) for part in parts]
    match name:
        case "add":
            return sum(numbers, Fraction(0))
        case "multiply":
            product = Fraction(1)
            for number in numbers:
                product *= number
            return product
        case "negate":
            return -numbers[0]
        case "divide":
            return numbers[0] / numbers[1]
        case "abs":
            return abs(numbers[0])
        case "least":
            return min(numbers)
        case "greatest":
            return max(numbers)
        case "clip":
            return min(max(numbers[0], numbers[1]), numbers[2])
        case "lt":
            return numbers[0] < numbers[1]
        case "le":
            return numbers[0] <= numbers[1]
    raise AssertionError(name)


def _among(name: str, parts: list[Any], subject: Expression, schema: Schema) -> bool | None:
    if parts[0] is None:
        return None
    listed = parts[1:]
    if isinstance(subject, Column):
        column = schema[subject.name]
        if isinstance(column, Category) and column.values is not None:
            listed = [item for item in listed if item is None or item in column.values]
    found = any(item is not None and _same(parts[0], item) for item in listed)
    if found:
        return name == "among"
    return None if None in listed else name != "among"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return bool(a == b)
    return bool(_number(a) == _number(b))


def holds(expression: Expression, row: Row, schema: Schema) -> bool:
    """Whether a condition is true (not false, not NULL)."""
    return value(expression, row, schema) is True
