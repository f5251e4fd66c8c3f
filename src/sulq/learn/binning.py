"""Columns as few public cells: what tables of classes by cells are made of.

A Number has bins, a Category and a Flag their declared values; one more cell, the last, holds what
is missing or undeclared. A row is in one cell of each column, so a table of classes by cells moves
by 1 per column (sqrt 2 where a row changes).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sulq.kernel.query.expressions import Expression, col
from sulq.kernel.query.vectors import Vector, bins, columns, concat, one_hot, ones, project
from sulq.kernel.schema.columns import EPOCH, Category, Flag, Number
from sulq.learn.budget import FitBudget
from sulq.learn.dataset import FitData
from sulq.learn.features import Array, Features

Places = NDArray[np.intp]

FINE_BINS = 128
"""Cells of the histogram that a Number's bins are made from."""


@dataclass(frozen=True)
class Attribute:
    """One column: cells 0..size-1, and cell `size` for missing or undeclared values.

    With `over` it stands for the mean of several Numbers, each scaled to [0, 1].
    """

    column: Number | Category | Flag
    edges: tuple[Fraction, ...] = ()
    over: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def ordinal(self) -> bool:
        return isinstance(self.column, Number)

    @property
    def values(self) -> tuple[Any, ...]:
        if isinstance(self.column, Category):
            return tuple(self.column.values or ())
        return (False, True)

    @property
    def size(self) -> int:
        return len(self.edges) - 1 if self.ordinal else len(self.values)

    def vector(self) -> Vector:
        """The one-hot of the cell, inside a question."""
        if self.over:
            mean = project(
                columns(list(self.over)), [[Fraction(1, len(self.over))] * len(self.over)]
            )
            return bins(mean, list(self.edges), other=True)
        if self.ordinal:
            return bins(self.name, [self.spelled(edge) for edge in self.edges], other=True)
        return one_hot(self.name, other=True)

    def spelled(self, edge: Fraction) -> Any:
        """An edge as the column's own kind of number."""
        if isinstance(self.column, Number) and self.column.kind == "date":
            return EPOCH.date() + datetime.timedelta(days=math.ceil(edge))
        if isinstance(self.column, Number) and self.column.kind == "datetime":
            return EPOCH + datetime.timedelta(microseconds=round(edge * 1_000_000))
        return edge

    def cells(self, coordinates: Array) -> Places:
        """The cell of each public row, from its coordinates (NaN: missing)."""
        missing = np.isnan(coordinates).any(axis=1)
        if not self.ordinal:
            found = (
                coordinates.argmax(axis=1)
                if isinstance(self.column, Category)
                else coordinates[:, 0]
            )
            return np.where(missing, self.size, np.where(missing, 0, found)).astype(np.intp)
        assert isinstance(self.column, Number)  # noqa: S101
        low, high = self.column.range
        marks = [float((edge - low) / (high - low)) for edge in self.edges[1:-1]]
        found = np.searchsorted(np.array(marks) - 1e-9, coordinates[:, 0], side="right")
        return np.where(missing, self.size, found).astype(np.intp)

    def truth(self, cells: Collection[int]) -> Expression:
        """Whether a row lies in one of these cells; of a Number they are neighbours."""
        subject = col(self.name)
        if isinstance(self.column, Flag):
            return subject if 1 in cells else ~subject
        if not self.ordinal:
            return subject.isin([self.values[cell] for cell in sorted(cells)])
        first, last = min(cells), max(cells) + 1
        parts = []
        if first > 0:
            parts.append(subject >= self.spelled(self.edges[first]))
        if last < self.size:
            parts.append(subject < self.spelled(self.edges[last]))
        return _all(parts) if parts else subject.is_not_null()

    def reached(self, cells: Collection[int], missing: bool) -> Expression:
        """Whether a row lies in one of these cells, or its value is missing and that counts too."""
        subject = col(self.name)
        if not missing:
            return self.truth(cells)
        if isinstance(self.column, Category):
            others = [cell for cell in range(self.size) if cell not in cells]
            return ~self.truth(others) | subject.is_null() if others else _always(subject)
        return self.truth(cells) | subject.is_null()

    def text(self, cells: Sequence[int]) -> str:
        """The same for people."""
        if isinstance(self.column, Flag):
            return self.name if 1 in cells else f"not {self.name}"
        if not self.ordinal:
            return f"{self.name} in {{{', '.join(str(self.values[cell]) for cell in cells)}}}"
        low, high = self.spelled(self.edges[min(cells)]), self.spelled(self.edges[max(cells) + 1])
        if min(cells) == 0:
            return f"{self.name} < {_short(high)}"
        if max(cells) == self.size - 1:
            return f"{self.name} >= {_short(low)}"
        return f"{_short(low)} <= {self.name} < {_short(high)}"


def _always(subject: Expression) -> Expression:
    return subject.is_null() | subject.is_not_null()


def _short(value: Any) -> str:
    return f"{float(value):.6g}" if isinstance(value, Fraction) else str(value)


def _all(parts: Sequence[Expression]) -> Expression:
    return reduce(lambda a, b: a & b, parts)


# --- cells of columns ---------------------------------------------------------------------------


def even_edges(column: Number, count: int) -> tuple[Fraction, ...]:
    """So many bins of equal width, on the column's lattice where it has one."""
    low, high = column.range
    return _on_lattice(column, [low + (high - low) * Fraction(k, count) for k in range(count + 1)])


def _on_lattice(column: Number, edges: Sequence[Fraction]) -> tuple[Fraction, ...]:
    low, high = column.range
    step = column.lattice
    if step is not None:
        edges = [low + math.ceil((edge - low) / step) * step for edge in edges]
    inner = sorted({edge for edge in edges if low < edge < high})
    return (low, *inner, high)


def attributes_of(features: Features, bins_each: int) -> tuple[Attribute, ...]:
    """The columns with equal bins: public facts only."""
    found = []
    for name in features.names:
        column = features.schema[name]
        edges = even_edges(column, bins_each) if isinstance(column, Number) else ()
        found.append(Attribute(column, edges))
    return tuple(found)


def rebinned(attribute: Attribute, counts: Array, error: float, most: int) -> Attribute:
    """At most `most` bins of about equal weight, from a noisy histogram of the fine ones.

    A cell weighs the root of its count, so that a long tail keeps some bins; what may be noise
    weighs like an even spread.
    """
    if attribute.size < 2:
        return attribute
    kept = np.where(counts[: attribute.size] > error, counts[: attribute.size], 0.0)
    total = float(kept.sum())
    weight = np.sqrt(kept)
    doubt = min(1.0, error * math.sqrt(attribute.size) / total) if total > 0 else 1.0
    weight = weight / max(float(weight.sum()), 1e-300) * (1 - doubt) + doubt / attribute.size
    for _ in range(3):  # a cell cannot be divided: its surplus goes to the others
        weight = np.minimum(weight, 1 / most)
        weight = weight / weight.sum()
    below = np.cumsum(weight)[:-1]
    wanted = np.arange(1, most) / most
    places = np.unique(np.abs(below[None, :] - wanted[:, None]).argmin(axis=1)) + 1
    edges = (attribute.edges[0], *(attribute.edges[p] for p in places), attribute.edges[-1])
    return replace(attribute, edges=edges)


# --- asking for them ----------------------------------------------------------------------------

BINS_SHARE = 0.05
"""Of the credits, for a first histogram of the Numbers."""


def cell_noise(table: FitData, share: float = 1.0) -> float:
    """The deviation of one cell when every column is asked about at this share, in rows."""
    # V.3: a row is in one cell of each column; where it is replaced, it leaves one and enters one
    width = len(table.features.names) * (2 if table.replace else 1)
    if table.gaussian:
        return table.unit * math.sqrt(width / share)
    return table.unit * width / share


def bins_allowed(table: FitData) -> int:
    """How many bins of a Number the noise allows: 4 to 32."""
    noise = cell_noise(table)
    return int(np.clip(math.sqrt(table.rows / noise), 4, 32)) if noise else 32


def bins_worth_finding(table: FitData) -> bool:
    """Whether a first histogram can tell where the values of the Numbers are."""
    enough = table.rows > 10 * cell_noise(table, BINS_SHARE * table.share)
    return enough and bool(table.features.numeric)


def find_cells(
    table: FitData, budget: FitBudget, most: int, step: str = "bins"
) -> tuple[Attribute, ...]:
    """The columns with bins where their values are; equal bins where the plan has no such step."""
    if not any(planned.name == step for planned in budget.plan.steps):
        return attributes_of(table.features, most)
    fine = attributes_of(table.features, FINE_BINS)
    numbers = [a for a in fine if a.ordinal]
    right = concat(*(a.vector() for a in numbers))
    found, error = budget.sums(step, table.outer(ones(), right))
    ends = np.cumsum([0, *(a.size + 1 for a in numbers)])
    coarse = {
        a.name: rebinned(a, found[0, start:end], error, most)
        for a, start, end in zip(numbers, ends[:-1], ends[1:], strict=True)
    }
    return tuple(coarse.get(a.name, a) for a in fine)


def cells_of(attributes: Sequence[Attribute], features: Features, rows: object) -> Places:
    """The cells of public rows, one column per attribute."""
    coordinates = features.encode(rows, np.full(features.width, np.nan))
    widths = [_width(features.schema[name]) for name in features.names]
    starts = dict(zip(features.names, np.cumsum([0, *widths[:-1]]).tolist(), strict=True))
    found = []
    for attribute in attributes:
        if attribute.over:
            part = np.nan_to_num(coordinates[:, [starts[name] for name in attribute.over]], nan=0.5)
            found.append(attribute.cells(part.mean(axis=1, keepdims=True)))
            continue
        start = starts[attribute.name]
        found.append(attribute.cells(coordinates[:, start : start + _width(attribute.column)]))
    return np.stack(found, axis=1)


def _width(column: Number | Category | Flag) -> int:
    """How many coordinates a column has among `Features`."""
    return len(column.values or ()) if isinstance(column, Category) else 1
