"""Columns as coordinates: what a learner asks about, and how public rows are read the same way."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sulq.errors import InvalidQuery
from sulq.kernel.query import vectors as values
from sulq.kernel.query.vectors import Vector, clipped, columns, concat, ones, project
from sulq.kernel.schema.bind_vectors import VectorBinder
from sulq.kernel.schema.columns import Category, Flag, Number, Schema, as_number

Array = NDArray[np.float64]


FARTHEST = 2.0**30
"""Learned numbers go no farther in a question: coordinates are in [0, 1], so scores are long flat.
"""


def published(numbers: Any) -> list[Any]:
    """Learned numbers as a question carries them: 2^-24 is far below every grid.

    Any number may be handed in, also what a fit without noise or with one class runs away to: a
    question that is refused half-way would end a fit that was paid for.
    """
    given = np.nan_to_num(np.asarray(numbers, dtype=np.float64), posinf=FARTHEST, neginf=-FARTHEST)
    held = np.clip(given, -FARTHEST, FARTHEST)
    return (np.round(held * 2**24) / 2**24).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Features:
    """Named columns, or a released vector of them, as coordinates.

    Of names: Numbers scaled to [0, 1] by their bounds, Flags 0/1, Categories one-hot. Of a vector
    (`PCA.as_vector()`): its own coordinates.
    """

    schema: Schema
    names: tuple[str, ...]
    vector: Vector | None = None

    @classmethod
    def of(cls, schema: Schema, features: Sequence[str] | Vector) -> Features:
        """Check what was given; costs nothing."""
        if isinstance(features, Vector):
            return cls(schema, tuple(_names_in(features)), features)
        if isinstance(features, str) or not isinstance(features, Sequence) or not len(features):
            raise InvalidQuery(f"features must be a list of column names, got {features!r:.60}")
        names = tuple(str(name) for name in features)
        columns(list(names))
        for name in names:
            column = schema[name]
            if isinstance(column, Category) and column.values is None:
                raise InvalidQuery(
                    f"{name} is {column.opened}, which has no coordinates; declare its values"
                )
        if all(_one_valued(schema[name]) for name in names):
            raise InvalidQuery(f"{list(names)[:5]} can have one value only: nothing to learn from")
        return cls(schema, names)

    @cached_property
    def _bound(self) -> Any:
        return VectorBinder(self.schema).bind(self.as_vector())

    @property
    def width(self) -> int:
        """How many coordinates there are."""
        return len(self._bound)

    @property
    def keys(self) -> tuple[str, ...]:
        """What the coordinates are called."""
        return tuple(self._bound.keys)

    @cached_property
    def low(self) -> Array:
        """The least value of each coordinate, by public facts."""
        return np.array(self._bound.lows, dtype=np.float64) * float(self._bound.step)

    @cached_property
    def high(self) -> Array:
        return np.array(self._bound.highs, dtype=np.float64) * float(self._bound.step)

    @cached_property
    def middle(self) -> Array:
        """The public centre: what a missing value stands for when nothing was learned."""
        if self.vector is not None:
            return (self.low + self.high) / 2
        parts = []
        for name in self.names:
            column = self.schema[name]
            count = len(column.values or ()) if isinstance(column, Category) else 0
            parts += [1 / count] * count if count else [0.5]
        return np.array(parts)

    def radius(self, centre: Array | None) -> float:
        """The farthest a row can be from `centre` (0 if None), by public facts."""
        bound = VectorBinder(self.schema).bind(self.as_vector(centre))
        return float(np.sqrt(bound.norm_squared) * float(bound.step))

    @cached_property
    def units(self) -> tuple[Array, Array]:
        """(offset, width) of each coordinate: user value = offset + width * coordinate."""
        if self.vector is not None:
            return np.zeros(self.width), np.ones(self.width)
        offsets: list[float] = []
        widths: list[float] = []
        for name in self.names:
            column = self.schema[name]
            if isinstance(column, Number):
                low, high = column.range
                offsets.append(float(low))
                widths.append(float(high - low))
            else:
                count = len(column.values or ()) if isinstance(column, Category) else 1
                offsets += [0.0] * count
                widths += [1.0] * count
        return np.array(offsets), np.array(widths)

    @cached_property
    def free(self) -> Array:
        """Orthonormal columns that span what differences of rows can be.

        A Category's coordinates add up to 1 on every row (a missing value takes a centre that
        does), so one direction of each is empty, whatever noise says.
        """
        basis = np.eye(self.width)
        if self.vector is not None:
            return basis
        empty = []
        place = 0
        for name in self.names:
            column = self.schema[name]
            count = len(column.values or ()) if isinstance(column, Category) else 0
            if count:
                block = slice(place, place + count)
                first = np.full(count, 1.0)
                basis[block, block] = np.linalg.qr(np.column_stack([first, np.eye(count)[:, 1:]]))[
                    0
                ]
                empty.append(place)
            place += max(count, 1)
        return np.delete(basis, empty, axis=1)

    @property
    def numeric(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if isinstance(self.schema[name], Number))

    def as_vector(self, centre: Array | None = None, clip: float | None = None) -> Vector:
        """The coordinates inside a question, minus `centre`, at most `clip` long."""
        radius = None if clip is None else published(clip)
        if self.vector is None:
            middle = None if centre is None else published(centre)
            return columns(list(self.names), middle, radius)
        moved = self.vector
        if centre is not None:
            shift = -np.asarray(centre, dtype=np.float64)[:, None]
            moved = project(
                concat(moved, ones()), published(np.hstack([np.eye(len(centre)), shift]))
            )
        return moved if radius is None else clipped(moved, radius)

    # --- public rows ----------------------------------------------------------------------------

    def encode(self, rows: Any, missing: Array | None = None) -> Array:
        """Public rows as coordinates, exactly as a question reads the private ones.

        `rows` is a frame with these columns or an array in their order. `missing` is what an absent
        value stands for: the centre that was learned, else the public middle.
        """
        if self.vector is not None:
            return _evaluated(self.vector, self.schema, rows)
        table = _by_name(rows, self.names)
        instead = self.middle if missing is None else missing
        parts = []
        place = 0
        for name in self.names:
            column = self.schema[name]
            count = len(column.values or ()) if isinstance(column, Category) else 1
            parts.append(_coordinates(column, table[name], instead[place : place + count]))
            place += count
        return np.hstack(parts)

    def to_user(self, coordinates: Array) -> Array:
        """Points in coordinates as points in user units."""
        offset, width = self.units
        return coordinates * width + offset


def _one_valued(column: Any) -> bool:
    return isinstance(column, Category) and len(column.values or ()) == 1


def _names_in(vector: Vector) -> list[str]:
    """The columns a released vector reads, in order."""
    match vector:
        case values.Columns(names, _, _):
            return list(names)
        case values.Project(inner, _) | values.Clipped(inner, _) | values.Scaled(inner, _):
            return _names_in(inner)
        case values.Concat(parts):
            return list(dict.fromkeys(name for part in parts for name in _names_in(part)))
        case values.Ones():
            return []
    raise InvalidQuery(
        f"features can be column names or a projection of columns, got {type(vector).__name__}"
    )


def _evaluated(vector: Vector, schema: Schema, rows: Any) -> Array:
    """A released vector on public rows, in floats."""
    match vector:
        case values.Columns(names, centre, clip):
            plain = Features(schema, names)
            middle = plain.middle if centre is None else np.array([float(c) for c in centre])
            middle = np.broadcast_to(middle, (plain.width,))
            moved: Array = plain.encode(rows, middle) - (0.0 if centre is None else middle)
            return moved if clip is None else _shrunk(moved, float(clip))
        case values.Project(inner, matrix):
            weights = np.array([[float(w) for w in row] for row in matrix])
            projected: Array = _evaluated(inner, schema, rows) @ weights.T
            return projected
        case values.Clipped(inner, clip):
            return _shrunk(_evaluated(inner, schema, rows), float(clip))
        case values.Scaled(inner, factor):
            return _evaluated(inner, schema, rows) * float(factor)
        case values.Concat(parts):
            found = [_evaluated(part, schema, rows) for part in parts]
            count = max(len(part) for part in found)
            return np.hstack([np.broadcast_to(part, (count, part.shape[1])) for part in found])
        case values.Ones():
            return np.ones((1, 1))
    raise InvalidQuery(f"cannot read public rows as a {type(vector).__name__}")


def _shrunk(rows: Array, radius: float) -> Array:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    shrunk: Array = rows * np.minimum(1.0, radius / np.maximum(length, 1e-300))
    return shrunk


def _column_names(rows: Any) -> list[Any]:
    named = getattr(rows, "column_names", None)  # an Arrow table's columns are not names
    return list(rows.columns if named is None else named)


def _by_name(rows: Any, names: Sequence[str]) -> dict[str, Any]:
    """The columns of a frame, or of an array in the order of fit."""
    if isinstance(rows, Mapping) or hasattr(rows, "columns"):
        held = list(rows) if isinstance(rows, Mapping) else _column_names(rows)
        absent = [name for name in names if name not in held]
        if absent:
            raise InvalidQuery(f"the rows lack the columns {absent}; they have {held[:20]}")
        return {name: rows[name] for name in names}
    table = np.asarray(rows, dtype=object)
    if table.ndim == 1 and len(names) == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] != len(names):
        raise InvalidQuery(
            f"rows must be a frame with {list(names)[:10]} or an array with {len(names)} columns,"
            f" got shape {table.shape}"
        )
    return {name: table[:, place] for place, name in enumerate(names)}


def _coordinates(column: Any, given: Any, instead: Array) -> Array:
    found = np.asarray(given)
    if isinstance(column, Category):
        known = np.array(list(column.values or ()), dtype=object)
        same = found.astype(object)[:, None] == known[None, :]
        hot = np.asarray(same, dtype=np.float64)
        hot[~hot.any(axis=1)] = instead
        return hot
    numbers = _numbers(found, column)
    if isinstance(column, Flag):
        coordinates = np.where(np.isin(numbers, (0.0, 1.0)), numbers, np.nan)
    else:
        low, high = (float(end) for end in column.range)
        coordinates = (np.clip(numbers, low, high) - low) / (high - low)
    return np.where(np.isnan(coordinates), instead[0], coordinates)[:, None]


def _numbers(found: NDArray[Any], column: Number | Flag) -> Array:
    """Numbers, dates in days or datetimes in seconds; NaN where there is none."""
    if np.issubdtype(found.dtype, np.datetime64):
        unit = "D" if isinstance(column, Number) and column.kind == "date" else "us"
        whole = found.astype(f"datetime64[{unit}]")
        counted = whole.astype(np.int64) / (1 if unit == "D" else 1_000_000)
        return np.where(np.isnat(whole), np.nan, counted)
    if found.dtype != object:
        return found.astype(np.float64)
    return np.array([_number(value, column.name) for value in found], dtype=np.float64)


def _number(value: Any, name: str) -> float:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return float("nan")
    if isinstance(value, datetime.date):
        return float(as_number(value, name))
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidQuery(f"{name} wants numbers, got {type(value).__name__}") from None
