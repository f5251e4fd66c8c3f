"""What binding leaves of a vector: an integer program for one row with many outputs.

Leaves are what an engine streams: integers of a row that are never NULL, the number of the cell a
row lies in (-1 for none), and plain Numbers. Every step keeps whole numbers below 2^52 in
magnitude: exact in 64-bit integers and in binary64 alike. Proof: docs/proofs/vectors.md.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, TypeAlias, get_args

from sulq.kernel.schema.program import CategoryCells, Condition, FlagCells, Integer, Quantised

BITS = 18
"""Bits of a coordinate: 65,536 rows of products then stay below 2^53."""
FULL = 2**BITS
TABLE_REACH = 16
"""The logistic and the exponential are tabled for scores within +-16."""
TABLE_BITS = 8
"""Table entries per unit of the score, as a power of two; between them, straight lines."""
LINE_BITS = 10
"""Bits of the position between two entries."""

Rows: TypeAlias = tuple[tuple[int, ...], ...]
Index: TypeAlias = CategoryCells | FlagCells


@dataclass(frozen=True, slots=True)
class UnitLeaf:
    """A Number: scale * min(leaf, most), or `instead` for NULL and NaN.

    Engines stream the column itself; the leaf's formula is worked out on the blocks.
    """

    value: Quantised
    most: int
    scale: int
    instead: int


Leaf: TypeAlias = Integer | Index | UnitLeaf


@dataclass(frozen=True, slots=True)
class BoundConstant:
    """The same numbers on every row."""

    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BoundColumns:
    """leaf - offset, one per coordinate."""

    leaves: tuple[Integer | UnitLeaf, ...]
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BoundOneHot:
    """1 at the row's cell; nothing for a row in no cell (with `other`, the last coordinate)."""

    cells: Index
    count: int


@dataclass(frozen=True, slots=True)
class Binned:
    """1 at the bin [e0, e1), [e1, e2), ...; outside: nothing, or with `other` the last."""

    of: Integer | Node
    edges: tuple[int, ...]
    other: bool


@dataclass(frozen=True, slots=True)
class First:
    """1 at the first condition that holds: leaf i names one of its `chunk`, or `chunk` for none."""

    leaves: tuple[Integer, ...]
    chunk: int
    count: int


@dataclass(frozen=True, slots=True)
class Looked:
    """A public row of numbers for each coordinate of a one-hot; the last row for none."""

    of: Node
    table: Rows


@dataclass(frozen=True, slots=True)
class Projected:
    """floor((matrix v + 2^(bits-1)) / 2^bits)."""

    of: Node
    matrix: Rows
    bits: int


@dataclass(frozen=True, slots=True)
class Rescaled:
    """floor((factor v + 2^(bits-1)) / 2^bits)."""

    of: Node
    factor: int
    bits: int


@dataclass(frozen=True, slots=True)
class BoundClipped:
    """v, or where |v| > bound: sign(v_j) floor(|v_j| bound / ceil(|v|)). G.4 rule 2c"""

    of: Node
    bound: int


@dataclass(frozen=True, slots=True)
class BoundNearest:
    """1 at the centre with the least |c|^2 - 2 <c, v>, the first of them on a tie.

    That number never exceeds `largest` in magnitude.
    """

    of: Node
    centres: Rows
    largest: int


@dataclass(frozen=True, slots=True)
class BoundFromNearest:
    """v minus its closest centre."""

    of: Node
    closest: BoundNearest


@dataclass(frozen=True, slots=True)
class BoundSigned:
    """sign * v, the sign a leaf in -1, 0, 1."""

    of: Node
    sign: Integer


@dataclass(frozen=True, slots=True)
class BoundMargin:
    """1 where sign is not 0 and sign * score <= at_most."""

    score: Node
    sign: Integer
    at_most: int


@dataclass(frozen=True, slots=True)
class LinearSlope:
    """score - label clamped to +-bound; 0 where the label is `missing`."""

    score: Node
    label: Integer
    missing: int
    bound: int


@dataclass(frozen=True, slots=True)
class LogisticSlope:
    """logistic(score) - [sign = 1], in steps of 2^-18; 0 where sign is 0. One unit is 2^bits."""

    score: Node
    sign: Integer
    bits: int


@dataclass(frozen=True, slots=True)
class HingeSlope:
    """-sign where sign * score < 2^bits, else 0."""

    score: Node
    sign: Integer
    bits: int


@dataclass(frozen=True, slots=True)
class BoundSoftmax:
    """floor(2^18 e_k / sum e), e = exp(score - largest score) by table. One unit is 2^bits."""

    scores: Node
    bits: int


@dataclass(frozen=True, slots=True)
class SharesSlope:
    """Shares minus 2^18 at the label's coordinate; all 0 for a row without a label."""

    shares: Node
    label: Index


@dataclass(frozen=True, slots=True)
class BoundNorm:
    """floor of the Euclidean norm."""

    of: Node


@dataclass(frozen=True, slots=True)
class Squared:
    """floor((v_j^2 + 2^(bits-1)) / 2^bits)."""

    of: Node
    bits: int


@dataclass(frozen=True, slots=True)
class BoundCrossed:
    """floor((l_i r_j + 2^(bits-1)) / 2^bits), j within i."""

    left: Node
    right: Node
    bits: int


@dataclass(frozen=True, slots=True)
class BoundConcat:
    """End to end."""

    parts: tuple[Node, ...]


Node: TypeAlias = (
    BoundConstant
    | BoundColumns
    | BoundOneHot
    | Binned
    | First
    | Looked
    | Projected
    | Rescaled
    | BoundClipped
    | BoundNearest
    | BoundFromNearest
    | BoundSigned
    | BoundMargin
    | LinearSlope
    | LogisticSlope
    | HingeSlope
    | BoundSoftmax
    | SharesSlope
    | BoundNorm
    | Squared
    | BoundCrossed
    | BoundConcat
)
NODES: tuple[type[Any], ...] = get_args(Node)
LEAVES: tuple[type[Any], ...] = get_args(Leaf)


@dataclass(frozen=True, slots=True)
class BlockSums:
    """Sum left (x) right over the rows in S: a matrix, in row-major order.

    No product of two coordinates exceeds `largest` in magnitude.
    """

    rows: Condition
    left: Node
    right: Node
    shape: tuple[int, int]
    largest: int
    width: int = 0  # coordinates worked on for a row, the inner ones too


def leaves_of(*nodes: Node) -> Iterator[Leaf]:
    """The leaves of a program, in order of appearance, some more than once."""
    for node in nodes:
        for field in fields(node):
            value = getattr(node, field.name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, NODES):
                    yield from leaves_of(part)
                elif isinstance(part, LEAVES):
                    yield part


# --- tables -------------------------------------------------------------------------------------


_ALIKE = decimal.Context(prec=30)
"""Decimal exponentials are the same on every machine."""


@lru_cache(maxsize=1)
def logistic_table() -> tuple[int, ...]:
    """2^18 / (1 + exp(-t)) for t = -16, ..., 16 in steps of 2^-8, rounded to nearest."""
    places = range(-TABLE_REACH << TABLE_BITS, (TABLE_REACH << TABLE_BITS) + 1)
    return tuple(
        _nearest(_ALIKE.divide(decimal.Decimal(FULL), _ALIKE.add(decimal.Decimal(1), _decay(t))))
        for t in places
    )


@lru_cache(maxsize=1)
def decay_table() -> tuple[int, ...]:
    """2^18 exp(-u) for u = 0, ..., 16 in steps of 2^-8, rounded to nearest; the last is 0."""
    places = range(TABLE_REACH << TABLE_BITS)
    return (*(_nearest(_ALIKE.multiply(decimal.Decimal(FULL), _decay(u))) for u in places), 0)


def _decay(place: int) -> decimal.Decimal:
    """exp(-place / 2^8)."""
    return _ALIKE.exp(_ALIKE.divide(decimal.Decimal(-place), decimal.Decimal(1 << TABLE_BITS)))


def _nearest(number: decimal.Decimal) -> int:
    return int(number.to_integral_value(decimal.ROUND_HALF_UP))
