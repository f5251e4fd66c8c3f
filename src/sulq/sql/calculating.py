"""+ - * / of noisy and public values, comparisons of them, and SQL's three truth values."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction
from typing import Any

from sulq.schema.columns import EPOCH
from sulq.sql.estimates import Estimate, Made, as_estimate, root

Value = Any
"""An Estimate, or a public value: text, number, truth value, date or None."""


def plain(value: Value) -> Value:
    """What HAVING and ORDER BY see: the noisy value."""
    return value.value if isinstance(value, Estimate) else value


def order_of(value: Value) -> tuple[int, Value]:
    if isinstance(value, bool | int | float | Fraction):
        return 0, float(value)
    if isinstance(value, datetime.date):
        return 1, value.isoformat()
    return 2, str(value)


def calculated(operator: str, parts: list[Value]) -> Value:
    """An operation on estimates and public values; NULL in, NULL out."""
    if operator in ("and", "or", "not", "null", "in"):
        return _logic(operator, parts)
    if any(part is None for part in parts):
        return None
    if operator in ("=", "<>", "<", "<=", ">", ">="):
        return _compared(operator, *map(plain, parts))
    if operator in ("date", "datetime"):
        return moment_number(parts[0], operator)
    parts = [part.unrounded if isinstance(part, Estimate) else part for part in parts]
    if not any(isinstance(part, Estimate) for part in parts):
        return _public(operator, [float(part) for part in parts])
    match operator, parts:
        case "+", [a, b]:
            return a + b
        case "-", [a, b]:
            return a - b
        case "*", [a, b]:
            return a * b
        case "/", [a, b]:
            return as_estimate(a) / as_estimate(b)
        case "negate", [a]:
            return -a
        case "abs", [a]:
            return Made((a,), abs, _abs_ends)
        case "sqrt", [a]:
            return root(a)
        case "round", [a, digits]:
            return Made((a,), lambda x: _rounded(x, digits), lambda e: _outwards(e, digits))
    raise AssertionError(operator)


def moment_number(moment: datetime.date, kind: str) -> float:
    """Days, or seconds, since 1970: how noisy days and times are computed with."""
    if not isinstance(moment, datetime.datetime):
        moment = datetime.datetime.combine(moment, datetime.time())
    seconds = (moment - EPOCH).total_seconds()
    return seconds / 86_400 if kind == "date" else seconds


def _rounded(x: float, digits: int) -> float:
    return round(x, digits) if math.isfinite(x) else x


def _outwards(ends: tuple[float, float], digits: int) -> tuple[float, float]:
    """To the last digit, away from each other: it holds the value, and the value rounded.

    A half unit at most lies between the two. What has these digits already stays.
    """
    low, high = (_rounded(end, digits) for end in ends)
    unit = 10.0**-digits
    near = 1e-9 * unit
    low = _rounded(low - unit, digits) if low > ends[0] + near else low
    high = _rounded(high + unit, digits) if high < ends[1] - near else high
    return low, high


def _abs_ends(ends: tuple[float, float]) -> tuple[float, float]:
    low, high = ends
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _public(operator: str, parts: list[float]) -> float | None:
    match operator, parts:
        case "+", [a, b]:
            return a + b
        case "-", [a, b]:
            return a - b
        case "*", [a, b]:
            return a * b
        case "/", [a, b]:
            return a / b if b else None
        case "negate", [a]:
            return -a
        case "abs", [a]:
            return abs(a)
        case "sqrt", [a]:
            return math.sqrt(a) if a >= 0 else None
        case "round", [a, digits]:
            return round(a, int(digits))
    raise AssertionError(operator)


def _compared(operator: str, a: Value, b: Value) -> bool | None:
    if a != a or b != b:  # not a number: a ratio of nothing
        return None
    if operator in ("=", "<>"):
        return bool(a == b) is (operator == "=")
    left, right = order_of(a), order_of(b)
    if left[0] != right[0]:
        return None
    return bool(
        {
            "<": left[1] < right[1],
            "<=": left[1] <= right[1],
            ">": left[1] > right[1],
            ">=": left[1] >= right[1],
        }[operator]
    )


def _logic(operator: str, parts: list[Value]) -> bool | None:
    """SQL's three values."""
    if operator == "null":
        return parts[0] is None
    if operator == "in":
        found = [calculated("=", [parts[0], other]) for other in parts[1:]]
        return _logic("or", found)
    truths = [None if part is None else bool(plain(part)) for part in parts]
    if operator == "not":
        return None if truths[0] is None else not truths[0]
    decisive = operator == "or"
    if decisive in truths:
        return decisive
    return None if None in truths else not decisive
