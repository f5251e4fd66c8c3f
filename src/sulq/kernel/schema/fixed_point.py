"""Fixed point: numbers of a row as whole steps, and user units as steps times their size.

A column is rounded once, at the leaf; sums, differences and constant factors are then exact, and
products, quotients and mixed grids are rounded by one integer rule (nearest, ties upwards).
Every value stays within 2^31 steps, every intermediate within 2^62 (G.4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal as OneOf

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.schema import program
from sulq.kernel.schema.columns import Number
from sulq.kernel.schema.program import (
    Added,
    BoundScaled,
    Condition,
    Divided,
    Fixed,
    Integer,
    Magnitude,
    Multiplied,
    Quantised,
    Shifted,
)
from sulq.kernel.schema.ranges import round_leaf

WIDE = 2**31
ROOMY = 2**40


@dataclass(frozen=True, slots=True)
class Steps:
    """A number of a row: `node` whole steps of size `step`, between `low` and `high`.

    `exact` means that nothing was rounded on the way: the value lies on a declared lattice.
    `constant` is the exact value of a literal, which can still be placed on any grid.
    """

    node: Integer
    low: int
    high: int
    step: Fraction
    exact: bool = True
    constant: Fraction | None = None
    kind: str = "number"

    @property
    def largest(self) -> int:
        return max(abs(self.low), abs(self.high))


def leaf_rule(column: Number, bits: int) -> tuple[Fraction, bool]:
    """The step of a column, and whether it is its declared lattice.

    A power of two otherwise, so that x / step is exact in binary64 (G.4).
    """
    low, high = column.range
    largest = max(abs(low), abs(high))
    lattice = column.lattice
    if lattice is not None and largest / lattice <= WIDE:
        return lattice, True
    exponent = _log2_up((high - low) / 2**bits)
    return Fraction(2) ** max(exponent, _log2_up(largest / WIDE)), False


def _log2_up(number: Fraction) -> int:
    """The least e with 2^e >= number."""
    exponent = number.numerator.bit_length() - number.denominator.bit_length() - 1
    while Fraction(2) ** exponent < number:
        exponent += 1
    return exponent


def leaf(column: Number, bits: int) -> Steps:
    """A column on its grid."""
    step, exact = leaf_rule(column, bits)
    low, high = (_binary64(bound) for bound in column.range)
    node = Quantised(column.name, low, high, _binary64(1 / step))
    return Steps(
        node, round_leaf(node, low), round_leaf(node, high), step, exact, None, column.kind
    )


def _binary64(number: Fraction) -> float:
    return number.numerator / number.denominator


def constant(number: Fraction, kind: str = "number") -> Steps:
    """A literal: one step of its own size."""
    if number == 0:
        return Steps(Fixed(0), 0, 0, Fraction(1), True, number, kind)
    sign = 1 if number > 0 else -1
    return Steps(Fixed(sign), sign, sign, abs(number), True, number, kind)


def settled(value: Steps) -> Steps:
    """The value within 2^31 steps: coarser where it must be."""
    if value.largest <= WIDE:
        return value
    bits = (value.largest - 1).bit_length() - 31
    half = 1 << (bits - 1)
    return Steps(
        Shifted(value.node, bits),
        (value.low + half) >> bits,
        (value.high + half) >> bits,
        value.step * 2**bits,
        False,
        None,
        value.kind,
    )


def finer(value: Steps, factor: int) -> Steps:
    """The same numbers in steps `factor` times smaller."""
    if factor == 1 or value.largest == 0:
        return replace(value, step=value.step / factor, constant=None)
    return replace(
        value,
        node=BoundScaled(value.node, factor),
        low=value.low * factor,
        high=value.high * factor,
        step=value.step / factor,
        constant=None,
    )


def coarser(value: Steps, step: Fraction) -> Steps:
    """The numbers rounded to a larger step; the ratio itself may be rounded at 2^-28."""
    if value.largest == 0:
        return replace(value, step=step, constant=None)
    ratio = value.step / step
    bits = 61 - max(1, value.largest).bit_length() - max(0, _log2_up(ratio))
    factor = math.floor(ratio * 2**bits + Fraction(1, 2))
    half = 1 << (bits - 1)
    return Steps(
        Shifted(BoundScaled(value.node, factor), bits),
        (value.low * factor + half) >> bits,
        (value.high * factor + half) >> bits,
        step,
        False,
        None,
        value.kind,
    )


def fitted(like: Steps, number: Fraction) -> Steps:
    """`like` on a grid that suits the literal too.

    Smaller steps if that keeps a lattice value and the literal exact together; larger ones if
    the literal would not fit.
    """
    ratio = number / like.step
    if abs(ratio) > WIDE:
        return coarser(like, like.step * 2 ** _log2_up(abs(ratio) / WIDE))
    if ratio.denominator == 1 or not like.exact:
        return like
    room = max(1, WIDE // max(1, like.largest, math.ceil(abs(ratio))))
    if ratio.denominator <= room:
        return finer(like, ratio.denominator)
    return finer(like, 1 << (room.bit_length() - 1))


def placed(number: Fraction, like: Steps) -> Steps:
    """A literal on `like`'s grid, rounded as a column is."""
    ratio = number / like.step
    steps = math.floor(ratio + Fraction(1, 2))
    exact = ratio.denominator == 1
    return Steps(Fixed(steps), steps, steps, like.step, exact, None, like.kind)


def aligned(left: Steps, right: Steps) -> tuple[Steps, Steps]:
    """Both on one grid."""
    if left.constant is not None and right.constant is None:
        right = fitted(right, left.constant)
        return placed(left.constant, right), right
    if right.constant is not None and left.constant is None:
        left = fitted(left, right.constant)
        return left, placed(right.constant, left)
    step = common_step(left.step, right.step)
    up = [int(side.step / step) for side in (left, right)]
    if left.largest * up[0] <= ROOMY and right.largest * up[1] <= ROOMY:
        return finer(left, up[0]), finer(right, up[1])
    step = max(left.step, right.step)
    return tuple(  # type: ignore[return-value]
        side if side.step == step else coarser(side, step) for side in (left, right)
    )


def common_step(a: Fraction, b: Fraction) -> Fraction:
    common = math.gcd(a.numerator * b.denominator, b.numerator * a.denominator)
    return Fraction(common, a.denominator * b.denominator)


def added(parts: list[Steps]) -> Steps:
    """The sum, on the common grid of its parts."""
    sum_ = parts[0]
    for part in parts[1:]:
        left, right = aligned(sum_, part)
        nodes = (
            (*left.node.parts, right.node)
            if isinstance(left.node, Added)
            else (
                left.node,
                right.node,
            )
        )
        sum_ = settled(
            Steps(
                Added(nodes),
                left.low + right.low,
                left.high + right.high,
                left.step,
                left.exact and right.exact,
                None,
                left.kind if left.kind != "number" else right.kind,
            )
        )
    return sum_


def times_constant(factor: Fraction, value: Steps) -> Steps:
    """A constant factor only changes the size of a step (and perhaps the sign)."""
    if factor == 1:
        return value
    if factor == 0:
        return Steps(BoundScaled(value.node, 0), 0, 0, Fraction(1), True)
    if value.constant is not None:
        return constant(factor * value.constant)
    if factor > 0:
        return replace(value, step=value.step * factor, constant=None, kind="number")
    return Steps(
        BoundScaled(value.node, -1), -value.high, -value.low, value.step * -factor, value.exact
    )


def multiplied(left: Steps, right: Steps) -> Steps:
    """The product, exact in 62 bits and then settled."""
    corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    low = min(corners)
    if left.node == right.node:
        low = 0 if left.low <= 0 <= left.high else min(left.low**2, left.high**2)
    product = Multiplied(left.node, right.node)
    return settled(
        Steps(product, low, max(corners), left.step * right.step, left.exact and right.exact)
    )


def divided(over: Steps, under: Steps) -> Steps:
    """The quotient to as many bits as fit, `under` proved to exclude 0."""
    if under.low <= 0 <= under.high:
        raise InvalidQuery(
            "division by something that can be 0 in its range; clip it away from 0 first",
            reason=Reason.NEEDS_BOUNDS,
        )
    if under.high < 0:
        over, under = (times_constant(Fraction(-1), side) for side in (over, under))
    factor = 2 ** (60 - max(1, over.largest, under.largest).bit_length())
    over = finer(over, factor)
    corners = [
        (2 * a + b) // (2 * b) for a in (over.low, over.high) for b in (under.low, under.high)
    ]
    node = Divided(over.node, under.node)
    return settled(Steps(node, min(corners), max(corners), over.step / under.step, False))


def magnitude(value: Steps) -> Steps:
    """|value|."""
    low = 0 if value.low <= 0 <= value.high else min(abs(value.low), abs(value.high))
    return replace(value, node=Magnitude(value.node), low=low, high=value.largest, constant=None)


# Constants beside values of a row: in the same units, and as thresholds in steps.


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
    raise InvalidQuery(
        f"a {constant.kind} cannot be combined with a number column", reason=Reason.WRONG_TYPE
    )


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
        return program.Never() if sign == "=" else program.Missing(value.node, True)
    if not whole:  # c < x means floor(c) < x, x < c means x < ceil(c); <= follows suit
        sign = "<"
    edge = min(max(edge, value.low - 1), value.high + 1)
    fixed = program.Fixed(edge)
    if constant_left:
        return program.Compared(sign, fixed, value.node)
    return program.Compared(sign, value.node, fixed)
