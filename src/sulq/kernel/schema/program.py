"""What binding leaves of a question: a small integer program for one row.

Every value is a nullable integer, every condition is true or not (NULL counts as not true, and
negation has been pushed into the leaves, so nothing ever asks for "not NULL-ish"). Engines
translate these nodes; the reference evaluator in the tests interprets them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

PRIME = 2**31 - 1
"""Modulus of `HashedBit`."""

# --- integers -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quantised:
    """A Number: floor(clamp(x, low, high) * per_unit + 1/2) in binary64; NULL for NULL and NaN.

    Dates count days and datetimes seconds since 1970-01-01.
    """

    column: str
    low: float
    high: float
    per_unit: float


@dataclass(frozen=True, slots=True)
class FlagBit:
    """A Flag: 1, 0, or NULL for anything that is neither true nor false."""

    column: str


@dataclass(frozen=True, slots=True)
class Fixed:
    """A constant; None is NULL."""

    value: int | None


@dataclass(frozen=True, slots=True)
class Added:
    parts: tuple[Integer, ...]


@dataclass(frozen=True, slots=True)
class BoundScaled:
    value: Integer
    factor: int


@dataclass(frozen=True, slots=True)
class Multiplied:
    left: Integer
    right: Integer


@dataclass(frozen=True, slots=True)
class Shifted:
    """floor((value + 2^(bits-1)) / 2^bits): a coarser grid, ties upwards."""

    value: Integer
    bits: int


@dataclass(frozen=True, slots=True)
class Divided:
    """floor((2 over + under) / (2 under)), `under` proved positive: nearest, ties upwards."""

    over: Integer
    under: Integer


@dataclass(frozen=True, slots=True)
class Lesser:
    """The smaller of two; NULL if either is."""

    left: Integer
    right: Integer


@dataclass(frozen=True, slots=True)
class Greater:
    """The larger of two; NULL if either is."""

    left: Integer
    right: Integer


@dataclass(frozen=True, slots=True)
class Magnitude:
    value: Integer


@dataclass(frozen=True, slots=True)
class BoundChoice:
    """`then` where the condition is true, else `otherwise`."""

    condition: Condition
    then: Integer
    otherwise: Integer


@dataclass(frozen=True, slots=True)
class FirstOf:
    """`value`, or `instead` where it is NULL."""

    value: Integer
    instead: Integer


@dataclass(frozen=True, slots=True)
class HashedBit:
    """The low bit of a cubic in `value` modulo PRIME; coefficients from the highest power down."""

    value: Integer
    coefficients: tuple[int, int, int, int]


Integer: TypeAlias = (
    Quantised
    | FlagBit
    | Fixed
    | Added
    | BoundScaled
    | Multiplied
    | Shifted
    | Divided
    | Lesser
    | Greater
    | Magnitude
    | BoundChoice
    | FirstOf
    | HashedBit
)

# --- conditions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Always:
    """True on every row."""


@dataclass(frozen=True, slots=True)
class Never:
    """True on no row."""


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """Two integers on the same grid; not true when either is NULL."""

    operator: Literal["<", "<=", "=", "<>"]
    left: Integer
    right: Integer


@dataclass(frozen=True, slots=True)
class FlagIs:
    column: str
    value: bool


@dataclass(frozen=True, slots=True)
class Among:
    """A Category's raw value is one of `values` (with `negated`: is not NULL and none of them)."""

    column: str
    values: tuple[str, ...] | tuple[int, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Matches:
    """SQL LIKE without an escape character; NULL matches neither way."""

    column: str
    pattern: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Text:
    """A Category column's raw value, for `Missing` only."""

    column: str


@dataclass(frozen=True, slots=True)
class Missing:
    """The subject is NULL (with `negated`: is not)."""

    subject: Integer | Text
    negated: bool


@dataclass(frozen=True, slots=True)
class OfTable:
    """The row is one of this table of a study. `certain`: everybody has one row in it."""

    table: str
    certain: bool


Condition: TypeAlias = (
    Always | Never | AllOf | AnyOf | Compared | FlagIs | Among | Matches | Missing | OfTable
)


def rows_of_table(of: OfTable, rows: Condition) -> Condition:
    """The rows of one table of a study where a condition is true."""
    rest = rows.parts if isinstance(rows, AllOf) else () if isinstance(rows, Always) else (rows,)
    return AllOf((of, *rest))


# --- groups -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CategoryCells:
    """One cell per declared value, in declared order; `other` adds one for everything else."""

    column: str
    values: tuple[str, ...] | tuple[int, ...]
    other: bool


@dataclass(frozen=True, slots=True)
class FlagCells:
    """False, True, and with `other` one for NULL."""

    column: str
    other: bool


@dataclass(frozen=True, slots=True)
class BinCells:
    """[e0, e1), [e1, e2), ..., the last one closed; `other` adds one for outside and NULL."""

    value: Integer
    edges: tuple[int, ...]
    other: bool


Cells: TypeAlias = CategoryCells | FlagCells | BinCells


def cell_count(cells: Cells) -> int:
    match cells:
        case CategoryCells(values=values):
            inner = len(values)
        case FlagCells():
            inner = 2
        case BinCells(edges=edges):
            inner = len(edges) - 1
    return inner + cells.other


# --- what an engine is asked --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowSums:
    """Sum every term over the rows in S, per cell of the groups' product.

    A term that is NULL adds 0; a row in no cell adds nothing. The answer is a flat list of
    integers: cells in row-major order, within a cell the terms in order.
    """

    rows: Condition
    terms: tuple[Integer, ...]
    groups: tuple[Cells, ...] = ()


def height(node: object) -> int:
    """How deeply a program is nested."""
    if isinstance(node, tuple):
        return max(map(height, node), default=0)
    names = getattr(type(node), "__match_args__", ())
    return 1 + max((height(getattr(node, name)) for name in names), default=0) if names else 0
