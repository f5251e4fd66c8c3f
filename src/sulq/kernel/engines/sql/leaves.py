"""The one place where floats become integers: the leaf, its thresholds, its SQL.

leaf(x) = floor(clamp(x, low, high) * per_unit + 1/2) in binary64 never falls as x grows, so
leaf(x) >= v is x >= T for one double T, found by bisection. docs/proofs/engines.md, claims 1-3.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from sulq.errors import InvalidQuery
from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.schema.columns import LARGEST_BOUND
from sulq.kernel.schema.program import Fixed, Greater, Integer, Lesser, Quantised

Kind = Literal["real", "whole", "text", "code", "flag", "listed"]
"""What the engine holds of a column; of "listed" the place of a value among the declared ones."""
EXACT = 2**51
"""Up to here n + 1/2 is a binary64 number."""
EXACT_SUM = 2**53
"""Integer-valued doubles add without rounding up to here, in any order."""


@dataclass(frozen=True, slots=True)
class StoredSteps:
    """The leaf of a column, worked out once and stored: whole steps, NULL for NULL and NaN."""

    sql: str
    value: Quantised


@dataclass(frozen=True, slots=True)
class ColumnSql:
    """Where a declared column is found: its SQL name and what the engine holds there."""

    sql: str
    kind: Kind
    few: bool = False
    """A category whose column is known to hold few distinct values."""
    dialect: type[Dialect] = Dialect
    """How its engine spells SQL."""
    bounds: tuple[float, float] | None = None
    """Numbers that were clamped once, when they were stored: they lie between these; no NaN."""
    steps: StoredSteps | None = None
    """The column on its own grid, stored beside it."""
    values: tuple[str, ...] | tuple[int, ...] = ()
    """Of a "listed" column: what the places stand for; the place after the last is any other."""

    @property
    def infinity(self) -> str:
        return self.dialect.real(math.inf)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A Quantised, perhaps clipped further to the integers least..most."""

    value: Quantised
    least: int
    most: int


def quantise(value: Quantised, x: float) -> int:
    return math.floor(min(max(x, value.low), value.high) * value.per_unit + 0.5)


def column_leaf(value: Quantised) -> Leaf:
    finite = all(map(math.isfinite, (value.low, value.high, value.per_unit)))
    if not finite or value.low > value.high or value.per_unit <= 0:
        raise InvalidQuery("a leaf needs finite bounds in order and a positive scale")
    return Leaf(value, quantise(value, value.low), quantise(value, value.high))


def as_leaf(node: Integer) -> Leaf | None:
    """The node as one leaf, where it is a column or a column clipped by constants."""
    match node:
        case Quantised():
            return column_leaf(node)
        case (
            Lesser(left=inner, right=Fixed(value=int(c)))
            | Lesser(left=Fixed(value=int(c)), right=inner)
        ):
            leaf = as_leaf(inner) if abs(c) <= LARGEST_BOUND else None
            return leaf and replace(leaf, least=min(leaf.least, c), most=min(leaf.most, c))
        case (
            Greater(left=inner, right=Fixed(value=int(c)))
            | Greater(left=Fixed(value=int(c)), right=inner)
        ):
            leaf = as_leaf(inner) if abs(c) <= LARGEST_BOUND else None
            return leaf and replace(leaf, least=max(leaf.least, c), most=max(leaf.most, c))
        case _:
            return None


def stored(leaf: Leaf, place: ColumnSql) -> tuple[Leaf, ColumnSql]:
    """The same integers, read from stored steps where these are on the leaf's grid.

    Which column is read follows from the leaf alone. docs/proofs/engines.md, claim 11.
    """
    if place.bounds is None:
        return leaf, place
    value, (low, high), steps = leaf.value, place.bounds, place.steps
    if not low <= value.low <= value.high <= high:
        raise InvalidQuery("a column is asked for beyond the bounds that it was stored with")
    if steps is None or steps.value.per_unit != value.per_unit:
        return leaf, place
    kept, own = column_leaf(steps.value), column_leaf(value)
    whole = Quantised(value.column, float(own.least), float(own.most), 1.0)
    ends = (float(kept.least), float(kept.most))
    column = ColumnSql(steps.sql, "whole", dialect=place.dialect, bounds=ends)
    return Leaf(whole, leaf.least, leaf.most), column


# --- thresholds ---------------------------------------------------------------------------------


def _rank(x: float) -> int:
    """Doubles as integers in the same order (-0.0 next below 0.0)."""
    (bits,) = struct.unpack("<q", struct.pack("<d", x))
    return int(bits) if bits >= 0 else -(bits & (2**63 - 1)) - 1


def _double(rank: int) -> float:
    bits = rank if rank >= 0 else (-(rank + 1)) | (1 << 63)
    (x,) = struct.unpack("<d", struct.pack("<Q", bits))
    return float(x)


@lru_cache(maxsize=4096)
def threshold(value: Quantised, reached: int) -> float:
    """The smallest double x with leaf(x) >= reached; leaf(low) < reached <= leaf(high)."""
    below, above = _rank(value.low), _rank(value.high)
    while above - below > 1:
        middle = (below + above) // 2
        if quantise(value, _double(middle)) >= reached:
            above = middle
        else:
            below = middle
    return _double(above)


def inner_range(leaf: Leaf) -> tuple[float, float]:
    """The doubles first..last on which clipping changes nothing."""
    value, first, last = leaf.value, leaf.value.low, leaf.value.high
    if quantise(value, first) < leaf.least:
        first = threshold(value, leaf.least)
    if quantise(value, last) > leaf.most:
        last = math.nextafter(threshold(value, leaf.most + 1), -math.inf)
    return first, last


# --- SQL ----------------------------------------------------------------------------------------


def is_number(place: ColumnSql) -> str:
    """Neither NULL nor NaN."""
    if place.kind == "real" and place.bounds is None:
        return f"{place.sql} <= {place.infinity}"
    return f"{place.sql} IS NOT NULL"


def is_no_number(place: ColumnSql) -> str:
    """NULL or NaN, spelled so that no scan prunes by statistics, which leave NaN out."""
    if place.kind == "real" and place.bounds is None:
        return f"CASE WHEN {is_number(place)} THEN FALSE ELSE TRUE END"
    return f"{place.sql} IS NULL"


def at_least(leaf: Leaf, place: ColumnSql, reached: int) -> str:
    """leaf >= reached, as a test of the bare column."""
    if reached <= leaf.least:
        return is_number(place)
    if reached > leaf.most:
        return "FALSE"
    first = threshold(leaf.value, reached)
    if place.kind == "whole":
        return f"{place.sql} >= {Dialect.integer(math.ceil(first))}"
    if place.bounds is not None:
        return f"{place.sql} >= {place.dialect.real(first)}"
    return f"({place.sql} >= {place.dialect.real(first)} AND {is_number(place)})"


def below(leaf: Leaf, place: ColumnSql, reached: int) -> str:
    """leaf < reached, as a test of the bare column; NaN is above every threshold."""
    if reached <= leaf.least:
        return "FALSE"
    if reached > leaf.most:
        return is_number(place)
    first = threshold(leaf.value, reached)
    if place.kind == "whole":
        return f"{place.sql} < {Dialect.integer(math.ceil(first))}"
    return f"{place.sql} < {place.dialect.real(first)}"


def leaf_sql(leaf: Leaf, place: ColumnSql) -> tuple[str, bool]:
    """The leaf's SQL, and whether it is an integer-valued DOUBLE (else BIGINT)."""
    if leaf.least == leaf.most:
        constant = f"CASE WHEN {is_number(place)} THEN {Dialect.integer(leaf.least)} END"
        return Dialect.bigint(constant), False
    first, last = inner_range(leaf)
    if place.kind == "whole":
        return _whole_leaf(leaf, place, math.ceil(first), math.floor(last))
    return _real_leaf(leaf, place, first, last), True


def _whole_leaf(leaf: Leaf, place: ColumnSql, first: int, last: int) -> tuple[str, bool]:
    """Of a column of whole numbers; exact in BIGINT where the factor is whole.

    A factor past 2^51 leaves room for the number 0 alone, so it is never written: the analyst may
    choose it, by a clip.
    """
    x, speak, per_unit = place.sql, place.dialect, leaf.value.per_unit
    exact = per_unit.is_integer() and max(abs(leaf.least), abs(leaf.most)) <= EXACT
    if exact:
        least, most = Dialect.integer(leaf.least), Dialect.integer(leaf.most)
        if per_unit > EXACT:
            inner = f"WHEN {x} IS NOT NULL THEN {Dialect.integer(0)}"
        elif per_unit == 1.0:
            inner = f"ELSE {Dialect.bigint(x)}"
        else:
            inner = f"ELSE {Dialect.bigint(x)} * {Dialect.integer(int(per_unit))}"
    else:
        inner = f"ELSE {speak.rounded(speak.double(x), per_unit)}"
        least, most = speak.real(float(leaf.least)), speak.real(float(leaf.most))
    low, high = (-math.inf, math.inf) if place.bounds is None else place.bounds
    cut = f"WHEN {x} > {Dialect.integer(last)} THEN {most} " if last < high else ""
    cut += f"WHEN {x} < {Dialect.integer(first)} THEN {least} " if low < first else ""
    sql = f"CASE {cut}{inner} END" if cut or not inner.startswith("ELSE ") else inner[5:]
    return (Dialect.bigint(sql), False) if exact else (speak.double(sql), True)


def _real_leaf(leaf: Leaf, place: ColumnSql, first: float, last: float) -> str:
    """Rare values first: one test sends everything outside, and NaN, to the exact branch."""
    x, speak = place.sql, place.dialect
    if place.bounds is not None and first <= place.bounds[0] and place.bounds[1] <= last:
        return speak.double(speak.rounded(x, leaf.value.per_unit))
    lower, upper = beyond(leaf, first, leaf.least, -0.25), beyond(leaf, last, leaf.most, 0.25)
    middle = lower + (upper - lower) / 2
    reach = min(math.nextafter(upper, math.inf) - middle, middle - math.nextafter(lower, -math.inf))
    near = math.nextafter(reach, -math.inf)
    inner = speak.rounded(x, leaf.value.per_unit)
    least, most = speak.real(float(leaf.least)), speak.real(float(leaf.most))
    return speak.double(
        f"CASE WHEN abs({x} - {speak.real(middle)}) > {speak.real(near)} THEN"
        f" CASE WHEN {x} < {speak.real(first)} THEN {least}"
        f" WHEN {x} <= {speak.real(last)} THEN {inner}"
        f" WHEN {x} <= {place.infinity} THEN {most} END ELSE {inner} END"
    )


def beyond(leaf: Leaf, end: float, steps: int, part: float) -> float:
    """An end of the inner range; part of a step further if there too the formula gives `steps`.

    So the bounds themselves, which many rows may hold, take the quick branch.
    """
    x = end + part / leaf.value.per_unit
    scaled = x * leaf.value.per_unit + 0.5
    return x if math.isfinite(scaled) and math.floor(scaled) == steps else end
