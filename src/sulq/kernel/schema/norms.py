"""How long an integer vector can be and how far it can move: exact integers, and their rules.

Norms are of the very integers that engines multiply (G.4). The diameter is taken over rows that
share their public columns, so constants and public coordinates drop out.
Proof: docs/proofs/vectors.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.schema.vector_program import BoundConstant, Node, Rescaled

ROOM = 2**52
"""No intermediate passes this: exact in binary64, with a bit to spare."""
MOST = 2**20
"""No coordinate that is multiplied passes this."""

Number = TypeVar("Number", int, Fraction)


@dataclass(frozen=True, slots=True)
class BoundVector:
    """A vector of whole steps of size `step`, with what is proved of it.

    `norm_squared`, `norm_one`: the largest |v|^2 and sum |v_j|. `wide_squared`, `wide_one`: the
    same for v - v'. `indicator`: at most one coordinate is not 0, and that always by one value.
    """

    node: Node
    step: Fraction
    lows: tuple[int, ...]
    highs: tuple[int, ...]
    keys: tuple[str, ...]
    private: bool
    norm_squared: int
    norm_one: int
    wide_squared: int
    wide_one: int
    indicator: bool = False
    exact: bool = True
    constant: tuple[Fraction, ...] | None = None

    def __len__(self) -> int:
        return len(self.lows)

    @property
    def nonnegative(self) -> bool:
        return min(self.lows) >= 0

    @property
    def largest(self) -> int:
        """The largest magnitude of a coordinate."""
        return max(max(self.highs), -min(self.lows))


def reach(v: BoundVector, row: Sequence[Number]) -> Number:
    """The largest |<row, v>| that the coordinates allow."""
    ends = zip(row, v.lows, v.highs, strict=True)
    return sum((abs(w) * max(-low, high) for w, low, high in ends), row[0] * 0)


def root_up(square: int) -> int:
    """The least r with r^2 >= square."""
    return math.isqrt(square - 1) + 1 if square > 0 else 0


def sized(
    node: Node,
    step: Fraction,
    lows: Sequence[int],
    highs: Sequence[int],
    keys: Sequence[str],
    private: bool,
    *,
    norm_squared: int | None = None,
    norm_one: int | None = None,
    wide_squared: int | None = None,
    wide_one: int | None = None,
    indicator: bool = False,
    exact: bool = True,
    constant: tuple[Fraction, ...] | None = None,
) -> BoundVector:
    """The vector with the best bounds that follow from its coordinates and from what is given."""
    sides = [max(abs(low), abs(high)) for low, high in zip(lows, highs, strict=True)]
    widths = [high - low for low, high in zip(lows, highs, strict=True)]
    alive = sum(side > 0 for side in sides)
    if indicator:
        norms = [max(sides) ** 2]
        ones = [max(sides)]
    else:
        norms = [sum(side * side for side in sides)]
        ones = [sum(sides)]
    if norm_squared is not None:
        norms.append(norm_squared)
    if norm_one is not None:
        ones.append(norm_one)
    norm2 = min(norms)
    norm1 = min(*ones, math.isqrt(alive * norm2)) if alive else 0
    if not private:
        wide2 = wide1 = 0
    else:
        # two rows: |v - v'|^2 <= |v|^2 + |v'|^2 where <v, v'> >= 0
        acute = min(lows) >= 0 or indicator
        wides = [sum(width * width for width in widths), (2 if acute else 4) * norm2]
        if wide_squared is not None:
            wides.append(wide_squared)
        wide2 = min(wides)
        spans = [sum(widths), 2 * norm1, math.isqrt(len(sides) * wide2)]
        if wide_one is not None:
            spans.append(wide_one)
        wide1 = min(spans)
    return BoundVector(
        node,
        step,
        tuple(lows),
        tuple(highs),
        tuple(keys),
        private,
        norm2,
        norm1,
        wide2,
        wide1,
        indicator,
        exact,
        constant,
    )


def one_hot_of(node: Node, count: int, keys: Sequence[str], private: bool) -> BoundVector:
    """0/1 coordinates, at most one of them 1."""
    return sized(node, Fraction(1), [0] * count, [1] * count, keys, private, indicator=True)


def constant_of(values: Sequence[int], exact: Sequence[Fraction], step: Fraction) -> BoundVector:
    """The same numbers on every row."""
    keys = ["1"] * len(values)
    node = BoundConstant(tuple(values))
    return sized(node, step, values, values, keys, False, constant=tuple(exact))


def rescaled(v: BoundVector, factor: int, bits: int, step: Fraction) -> BoundVector:
    """floor((factor v + half) / 2^bits), each coordinate off by at most half a step."""
    if v.constant is not None:
        numbers = [math.floor(c / step + Fraction(1, 2)) for c in v.constant]
        exact = all((c / step).denominator == 1 for c in v.constant)
        return replace(constant_of(numbers, v.constant, step), keys=v.keys, exact=exact)
    if factor == 1 and bits == 0:
        return replace(v, step=step)
    if abs(factor) * v.largest > ROOM:
        raise InvalidQuery(
            "the parts of a vector differ too much in size; scale them alike",
            reason=Reason.NEEDS_BOUNDS,
        )
    ends = [(shifted(a * factor, bits), shifted(b * factor, bits)) for a, b in _ends(v)]
    node = Rescaled(v.node, factor, bits)
    lows, highs = [min(pair) for pair in ends], [max(pair) for pair in ends]
    if bits == 0:
        return replace(
            v,
            node=node,
            step=step,
            lows=tuple(lows),
            highs=tuple(highs),
            norm_squared=v.norm_squared * factor**2,
            norm_one=v.norm_one * abs(factor),
            wide_squared=v.wide_squared * factor**2,
            wide_one=v.wide_one * abs(factor),
        )
    size = len(v)
    return sized(
        node,
        step,
        lows,
        highs,
        v.keys,
        v.private,
        norm_squared=rounded_square(v.norm_squared * factor**2, bits, size, 1),
        norm_one=rounded_one(v.norm_one * abs(factor), bits, size, 1),
        wide_squared=rounded_square(v.wide_squared * factor**2, bits, size, 2),
        wide_one=rounded_one(v.wide_one * abs(factor), bits, size, 2),
        indicator=v.indicator,
        exact=False,
    )


def _ends(v: BoundVector) -> zip[tuple[int, int]]:
    return zip(v.lows, v.highs, strict=True)


def shifted(value: int, bits: int) -> int:
    """floor((value + 2^(bits-1)) / 2^bits)."""
    return (value + (1 << (bits - 1))) >> bits if bits else value


def rounded_square(square: int, bits: int, size: int, halves: int) -> int:
    """A bound on |round(v / 2^bits)|^2 from |v|^2: |v|/2^bits + halves sqrt(size)/2, squared."""
    return (root_up(square) // (1 << bits) + 1 + root_up(size * halves * halves) // 2 + 1) ** 2


def rounded_one(sum_: int, bits: int, size: int, halves: int) -> int:
    return sum_ // (1 << bits) + 1 + (size * halves + 1) // 2


def settled(v: BoundVector) -> BoundVector:
    """Coordinates within 2^20: coarser where they must be."""
    if v.largest <= MOST:
        return v
    bits = (v.largest - 1).bit_length() - MOST.bit_length() + 1
    return rescaled(v, 1, bits, v.step * 2**bits)


def doublings(number: Fraction, limit: int) -> int:
    """The largest b with number * 2^b <= limit."""
    exponent = (Fraction(limit) / number).numerator.bit_length()
    exponent -= (Fraction(limit) / number).denominator.bit_length()
    return exponent if number * Fraction(2) ** exponent <= limit else exponent - 1


def power_below(number: Fraction) -> Fraction:
    """The largest power of two that is at most `number`."""
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= number else power / 2


def placed(v: BoundVector, step: Fraction) -> BoundVector:
    """The vector on another grid: exact where the steps divide, else rounded to nearest."""
    ratio = v.step / step
    if v.constant is not None or ratio.denominator == 1:
        return rescaled(v, ratio.numerator, 0, step)
    room = max(1, (ROOM // 2) // max(1, v.largest))
    bits = 40
    while bits and ratio * 2**bits > room:
        bits -= 1
    factor = math.floor(ratio * 2**bits + Fraction(1, 2))
    return rescaled(v, factor, bits, step)


def joint_step(parts: Sequence[BoundVector]) -> Fraction:
    """One grid for all: the finest of theirs that keeps every coordinate within 2^20."""
    steps = {part.step for part in parts if part.constant is None} or {parts[0].step}
    if len(steps) == 1 and all(part.constant is None for part in parts):
        return steps.pop()
    sizes = [_size(part) for part in parts]
    least = power_below(max(sizes) / MOST)
    finest = power_below(min(steps))
    return max(finest, least * 2 if least * MOST < max(sizes) else least)


def _size(part: BoundVector) -> Fraction:
    """The largest magnitude in user units."""
    if part.constant is not None:
        return max(abs(c) for c in part.constant)
    return part.largest * part.step


# --- products -----------------------------------------------------------------------------------


def product_squared(left: BoundVector, right: BoundVector) -> int:
    """The largest |l (x) r|^2 = |l|^2 |r|^2."""
    return left.norm_squared * right.norm_squared


def product_one(left: BoundVector, right: BoundVector) -> int:
    return left.norm_one * right.norm_one


def change_squared(left: BoundVector, right: BoundVector) -> int:
    """The largest |l (x) r - l' (x) r'|^2 over rows that share their public columns. V.3, G.4.4"""
    if not left.private:
        return left.norm_squared * right.wide_squared
    if not right.private:
        return left.wide_squared * right.norm_squared
    whole = product_squared(left, right)
    steps = root_up(left.wide_squared * right.norm_squared)
    steps += root_up(left.norm_squared * right.wide_squared)
    bounds = [4 * whole, steps**2]
    if left.node == right.node or (left.nonnegative and right.nonnegative):
        bounds.append(2 * whole)  # <l (x) r, l' (x) r'> = <l, l'> <r, r'> >= 0
    for one, other in ((left, right), (right, left)):
        if one.indicator:  # the same coordinate, two of them, or one against nothing
            apart = 2 if len(one) > 1 else 1
            moved = max(other.wide_squared, apart * other.norm_squared)
            bounds.append(one.norm_squared * moved)
    return min(bounds)


def change_one(left: BoundVector, right: BoundVector) -> int:
    """The same in the L1 norm."""
    if not left.private:
        return left.norm_one * right.wide_one
    if not right.private:
        return left.wide_one * right.norm_one
    bounds = [
        2 * product_one(left, right),
        left.wide_one * right.norm_one + left.norm_one * right.wide_one,
    ]
    for one, other in ((left, right), (right, left)):
        if one.indicator:
            apart = 2 if len(one) > 1 else 1
            bounds.append(one.norm_one * max(other.wide_one, apart * other.norm_one))
    return min(bounds)
