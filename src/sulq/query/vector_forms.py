"""A vector as JSON, read back as the same vector; and its one spelling. A closed list of kinds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sulq.errors import InvalidQuery
from sulq.query import canonical, vector_values, vectors
from sulq.query.expressions import Column, Expression, Literal, Operation
from sulq.query.vector_values import DEEPEST, MOST_NUMBERS, Vector, parameters

_SHORT = re.compile(r"-?\d{1,60}(\.\d{1,60})?(e[+-]?\d{1,2})?|-?\d{1,60}/\d{1,60}")

KINDS: dict[str, tuple[type[Vector], Callable[..., Vector]]] = {
    "ones": (vector_values.Ones, vectors.ones),
    "columns": (vector_values.Columns, vectors.columns),
    "one_hot": (vector_values.OneHot, vectors.one_hot),
    "bins": (vector_values.Bins, vectors.bins),
    "cells": (vector_values.Cells, lambda conditions: vectors.cells(*conditions)),
    "project": (vector_values.Project, vectors.project),
    "clipped": (vector_values.Clipped, vectors.clipped),
    "nearest": (vector_values.Nearest, vectors.nearest),
    "from_nearest": (vector_values.FromNearest, vectors.from_nearest),
    "margin": (vector_values.Margin, vectors.margin),
    "signed": (vector_values.Signed, vectors.signed),
    "residual": (vector_values.Residual, vectors.residual),
    "softmax": (vector_values.Softmax, vectors.softmax),
    "norm": (vector_values.Norm, vectors.norm),
    "squares": (vector_values.Squares, vectors.squares),
    "crossed": (vector_values.Crossed, vectors.crossed),
    "concat": (vector_values.Concat, lambda parts: vectors.concat(*parts)),
    "scaled": (vector_values.Scaled, vectors.scaled),
}
_NAME = {kind: name for name, (kind, _) in KINDS.items()}


def vector_to_json(vector: Vector) -> list[Any]:
    """The vector as JSON-ready values: its kind, then its fields."""
    fields = {name: _write(getattr(vector, name)) for name in parameters(type(vector))}
    return [_NAME[type(vector)], fields]


def _write(value: object) -> Any:
    match value:
        case Vector():
            return vector_to_json(value)
        case Expression():
            return canonical.to_json(value)
        case Fraction():
            return spelled(value)
        case tuple():
            return [_write(part) for part in value]
    return value


def spelled(number: Fraction) -> str:
    """A decimal where one is exact and short, else a ratio; equal numbers, equal texts."""
    if number.denominator == 1:
        return str(number.numerator)
    short = repr(number.numerator / number.denominator)
    return short if _SHORT.fullmatch(short) and Fraction(short) == number else str(number)


def vector_from_json(form: Any, depth: int = 0) -> Vector:
    """Read `vector_to_json` back; refuses everything outside the language."""
    if not _is_vector(form) or depth > DEEPEST or form[0] not in KINDS:
        raise InvalidQuery(f"a vector is a list of a kind and its fields; kinds: {sorted(KINDS)}")
    name, fields = form
    kind, build = KINDS[name]
    names = parameters(kind)
    if set(fields) != set(names):
        raise InvalidQuery(f"a {name} vector has the fields {sorted(names)}")
    try:
        return build(**{field: FIELDS[field](fields[field], depth + 1) for field in names})
    except (TypeError, AttributeError):
        raise InvalidQuery(f"a field of a {name} vector has the wrong kind") from None


def _is_vector(form: Any) -> bool:
    return (
        isinstance(form, list)
        and len(form) == 2
        and isinstance(form[0], str)
        and isinstance(form[1], Mapping)
    )


def _text(value: Any, depth: int) -> str:
    if not isinstance(value, str):
        raise InvalidQuery(f"a vector wants a text here, got {type(value).__name__}")
    return value


def _flag(value: Any, depth: int) -> bool:
    if not isinstance(value, bool):
        raise InvalidQuery(f"a vector wants true or false here, got {type(value).__name__}")
    return value


def _number(value: Any, depth: int) -> Fraction:
    if not isinstance(value, str) or not _SHORT.fullmatch(value):
        raise InvalidQuery("the numbers of a vector are texts such as '0.5' or '1/3'")
    try:
        return Fraction(value)
    except ZeroDivisionError:
        raise InvalidQuery("a number of a vector divides by 0") from None


def _expression(value: Any, depth: int) -> Expression:
    return canonical.from_json(value)


def _list_of(read: Callable[[Any, int], Any]) -> Callable[[Any, int], list[Any]]:
    def listed(value: Any, depth: int) -> list[Any]:
        if not isinstance(value, list) or len(value) > MOST_NUMBERS:
            raise InvalidQuery(f"a vector wants a list of at most {MOST_NUMBERS} values here")
        return [read(part, depth) for part in value]

    return listed


def _optional(read: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    return lambda value, depth: None if value is None else read(value, depth)


def _numbers_or_rows(value: Any, depth: int) -> list[Any]:
    nested = isinstance(value, list) and value and isinstance(value[0], list)
    return _list_of(_list_of(_number) if nested else _number)(value, depth)


def _vector_or_expression(value: Any, depth: int) -> Vector | Expression:
    return vector_from_json(value, depth) if _is_vector(value) else _expression(value, depth)


FIELDS: dict[str, Callable[[Any, int], Any]] = {
    "names": _list_of(_text),
    "column": _text,
    "kind": _text,
    "other": _flag,
    "centre": _optional(_list_of(_number)),
    "clip": _optional(_number),
    "at_most": _number,
    "factor": _number,
    "weights": _numbers_or_rows,
    "matrix": _list_of(_list_of(_number)),
    "centres": _list_of(_list_of(_number)),
    "edges": _list_of(_expression),
    "conditions": _list_of(_expression),
    "label": _expression,
    "of": _vector_or_expression,
    "vector": vector_from_json,
    "left": vector_from_json,
    "right": vector_from_json,
    "parts": _list_of(vector_from_json),
}


def canonical_vector(vector: Vector) -> Vector:
    """The same vector with every condition and expression in its one spelling."""
    changes: dict[str, Any] = {}
    for name in parameters(type(vector)):
        value = getattr(vector, name)
        changes[name] = _canonical(value, condition=name == "conditions")
    return replace(vector, **changes)


def _canonical(value: object, condition: bool) -> Any:
    match value:
        case Vector():
            return canonical_vector(value)
        case Literal() | Column() if not condition:
            return value
        case Expression():
            is_condition = isinstance(value, Operation) and value.name in canonical.CONDITIONS
            if is_condition and not condition and _holds_null(value):
                # a label is also asked where it is false, which canonical truth would not keep
                raise InvalidQuery("a label has no NULL in it; leave it out")
            return canonical.truth(value) if condition or is_condition else canonical.value(value)
        case tuple():
            return tuple(_canonical(part, condition) for part in value)
    return value


def _holds_null(expression: Expression) -> bool:
    if isinstance(expression, Operation):
        return any(_holds_null(operand) for operand in expression.operands)
    return isinstance(expression, Literal) and expression.value is None
