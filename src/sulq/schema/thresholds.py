"""Constants beside values of a row: in the same units, and as thresholds in steps."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal as OneOf

from sulq.errors import InvalidQuery
from sulq.schema import bound
from sulq.schema.bound import Condition
from sulq.schema.grid import Steps

SECONDS_A_DAY = 86_400


def converted(constant: Steps, kind: str) -> Fraction:
    """A literal's value in the units of a kind: a date against datetimes counts in seconds."""
    value = constant.constant
    assert value is not None  # noqa: S101
    if constant.kind in ("number", kind):
        return value
    if (constant.kind, kind) == ("date", "datetime"):
        return value * SECONDS_A_DAY
    if (constant.kind, kind) == ("datetime", "date"):
        return value / SECONDS_A_DAY
    raise InvalidQuery(f"a {constant.kind} cannot be combined with a number column")


def against(
    sign: OneOf["<", "<=", "=", "<>"], value: Steps, number: Fraction, constant_left: bool
) -> Condition:
    """A comparison with a constant, as a threshold in steps.

    On a lattice the threshold is exact. Otherwise the constant is rounded as the column is, so
    that x = c and x >= c hold for the rows that hold just c.
    """
    place = number / value.step
    nearest = math.floor(place + Fraction(1, 2))
    whole = place.denominator == 1 or not value.exact
    edge = nearest if whole else math.floor(place) if constant_left else math.ceil(place)
    if not whole and sign in ("=", "<>"):
        return bound.Never() if sign == "=" else bound.Missing(value.node, True)
    if not whole:  # c < x means floor(c) < x, x < c means x < ceil(c); <= follows suit
        sign = "<"
    edge = min(max(edge, value.low - 1), value.high + 1)
    fixed = bound.Fixed(edge)
    if constant_left:
        return bound.Compared(sign, fixed, value.node)
    return bound.Compared(sign, value.node, fixed)
