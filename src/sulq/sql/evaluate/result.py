"""Result: the table a SELECT gives, each aggregate with its interval, with price and receipts.

Sorting, filtering and cutting work on the noisy values and are free: post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sulq.answers.display import (
    MOST_ROWS,
    Comparison,
    bar_parts,
    cell_text,
    compared,
    html_table,
    percent,
    text_table,
)
from sulq.errors import InvalidQuery
from sulq.formatting import OUTWARDS, credits_text, moment_of
from sulq.sql.evaluate.estimates import combine
from sulq.sql.evaluate.linear_forms import Estimate, as_estimate

NO_READING = "no reading"
Cell = object
"""A key as the schema spells it, or an Estimate."""


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result; an aggregate unless it is a key."""

    name: str
    is_key: bool = False
    unit: str = ""
    kind: str = "number"  # or date, datetime: its numbers are shown as days or times


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Rows of keys and estimates. `confidence` is what its intervals are stated at."""

    columns: tuple[ResultColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    credits: Fraction = Fraction(0)
    receipts: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()
    confidence: float = 0.95
    held: str = "the true value"
    """What [low, high] holds: of persons, the value over the rows that count."""

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise InvalidQuery(f"confidence got {self.confidence!r}; want a number between 0 and 1")
        wrong = [row for row in self.rows if len(row) != len(self.columns)]
        if wrong:
            raise InvalidQuery(
                f"a row of a result got {len(wrong[0])} cells; want {len(self.columns)}"
            )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        """Each row as {column: key or Estimate}."""
        names = [column.name for column in self.columns]
        return (dict(zip(names, row, strict=True)) for row in self.rows)

    def place(self, name: str) -> int:
        """Where the column of this name stands; case is ignored where that is unambiguous."""
        names = [column.name for column in self.columns]
        if name in names:
            return names.index(name)
        alike = [place for place, held in enumerate(names) if held.lower() == name.lower()]
        if len(alike) == 1:
            return alike[0]
        raise InvalidQuery(f"the result has no column {name!r}; it has {', '.join(names)}")

    def column(self, name: str) -> tuple[Cell, ...]:
        """The cells of one column."""
        place = self.place(name)
        return tuple(row[place] for row in self.rows)

    def cell(self, name: str | None = None, row: int = 0) -> Estimate:
        """One estimate; the only one where no name is given."""
        if name is None:
            names = [column.name for column in self.columns if not column.is_key]
            if len(names) != 1:
                raise InvalidQuery(f"say which column: {', '.join(names) or 'there is none'}")
            name = names[0]
        if not -len(self.rows) <= row < len(self.rows):
            raise InvalidQuery(f"the result has {len(self.rows)} rows; got row {row}")
        found = self.rows[row][self.place(name)]
        if not isinstance(found, Estimate):
            raise InvalidQuery(f"{name} is a key, not an aggregate")
        return found

    # --- post-processing: free, on noisy values ---

    def sorted_by(self, *names: str, descending: bool | tuple[bool, ...] = False) -> Result:
        """Rows by these columns, the first counting most; unknown values come last."""
        down = (descending,) * len(names) if isinstance(descending, bool) else descending
        if len(down) != len(names):
            raise InvalidQuery(f"descending got {len(down)} entries for {len(names)} columns")
        rows = list(self.rows)
        for name, falling in reversed(list(zip(names, down, strict=True))):
            place = self.place(name)
            known = [row for row in rows if not _unknown(row[place])]
            blank = [row for row in rows if _unknown(row[place])]
            known.sort(key=lambda row, place=place: _order(row[place]), reverse=falling)  # type: ignore[misc]
            rows = known + blank
        return replace(self, rows=tuple(rows))

    def filtered(self, keep: Callable[[dict[str, Any]], bool]) -> Result:
        """The rows for which `keep` says yes; it sees {column: key or noisy value}."""
        held = [
            row
            for row, record in zip(self.rows, self, strict=True)
            if keep({name: _plain(cell) for name, cell in record.items()})
        ]
        return replace(self, rows=tuple(held))

    def limited(self, most: int | None, skip: int = 0) -> Result:
        """At most so many rows, after the first `skip`."""
        end = None if most is None else skip + most
        return replace(self, rows=self.rows[skip:end])

    def compare(self, first: int, second: int, column: str | None = None) -> Comparison:
        """Whether two rows of a column differ at this result's confidence."""
        left, right = self.cell(column, first), self.cell(column, second)
        names = (self._row_name(first), self._row_name(second))
        return compare(left, right, self.confidence, *names)

    def _row_name(self, row: int) -> str:
        keys = [
            str(cell)
            for cell, column in zip(self.rows[row], self.columns, strict=True)
            if column.is_key
        ]
        return ", ".join(keys) or f"row {row}"

    # --- giving it on ---

    def records(self, confidence: float | None = None) -> list[dict[str, Any]]:
        """Plain records: keys as they are; an aggregate `n` as n, n_low and n_high.

        Where the interval is all that is possible there is no reading: n is None.
        """
        columns = self._flat(confidence)
        names = list(columns)
        if not names:
            return [{} for _ in self.rows]
        cells = zip(*columns.values(), strict=True)
        return [dict(zip(names, row, strict=True)) for row in cells]

    def to_pandas(self) -> Any:
        """A pandas data frame, as `records`."""
        import pandas

        return pandas.DataFrame(self._flat())

    def to_polars(self) -> Any:
        """A polars data frame, as `records`."""
        import polars

        return polars.DataFrame(self._flat(), strict=False)

    def to_arrow(self) -> Any:
        """An Arrow table, as `records`."""
        import pyarrow

        return pyarrow.table(self._flat())

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """The Arrow stream of `to_arrow`: `pyarrow.table(result)`, `polars.DataFrame(result)`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _flat(self, confidence: float | None = None) -> dict[str, list[Any]]:
        level = self.confidence if confidence is None else confidence
        taken = {column.name for column in self.columns}
        flat: dict[str, list[Any]] = {}
        for place, column in enumerate(self.columns):
            cells = [row[place] for row in self.rows]
            if column.is_key:
                flat[column.name] = [
                    str(cell) if isinstance(cell, tuple) else cell for cell in cells
                ]
                continue
            estimates = [as_estimate(cell) for cell in cells]  # type: ignore[arg-type]
            ends = [estimate.interval(level) for estimate in estimates]
            flat[column.name] = [
                None if estimate.unread(level) else moment_of(estimate.value, column.kind)
                for estimate in estimates
            ]
            for suffix, side in (("_low", 0), ("_high", 1)):
                name = column.name + suffix
                while name in taken:
                    name += "_"
                flat[name] = [moment_of(end[side], column.kind, OUTWARDS[side]) for end in ends]
        return flat

    # --- showing it ---

    def texts(self) -> tuple[list[str], list[list[str]], list[bool]]:
        """Return heads, rows as text, and which columns are set to the right."""
        heads = [f"{c.name} ({c.unit})" if c.unit else c.name for c in self.columns]
        rows = [
            [
                _text(cell, self.confidence, column.kind)
                for cell, column in zip(row, self.columns, strict=True)
            ]
            for row in self.rows[:MOST_ROWS]
        ]
        rows += [[""] * len(heads)] * (len(self.rows) - len(rows))  # counted, not shown
        return heads, rows, [not column.is_key for column in self.columns]

    def _foot(self) -> list[str]:
        said = [f"[low, high] holds {self.held} at {percent(self.confidence)}"]
        said.append(credits_text(self.credits))
        shown = self.rows[:MOST_ROWS]
        cells = [cell for row in shown for cell in row if isinstance(cell, Estimate)]
        told = dict.fromkeys(cell.note for cell in cells if cell.note)
        return ["; ".join(said), *dict.fromkeys([*self.notes, *told])]

    def __repr__(self) -> str:
        return "\n".join([text_table(*self.texts()), *self._foot()])

    def _repr_html_(self) -> str:
        return html_table(*self.texts(), self._foot())


def compare(
    a: Estimate | float,
    b: Estimate | float,
    confidence: float = 0.95,
    first: str = "the first",
    second: str = "the second",
) -> Comparison:
    """Which is larger and how sure, or "not distinguishable"; shared draws cancel."""
    difference = combine("-", as_estimate(a), as_estimate(b))
    return compared(difference.value, difference.interval, confidence, first, second)


def _plain(cell: Cell) -> Any:
    return cell.value if isinstance(cell, Estimate) else cell


def _unknown(cell: Cell) -> bool:
    value = _plain(cell)
    return value is None or (isinstance(value, float) and math.isnan(value))


def _order(cell: Cell) -> Any:
    value = _plain(cell)
    if isinstance(value, bool | int | float):
        return (0, value, "")
    if isinstance(value, tuple):
        return (1, tuple(_order(part) for part in value), "")
    return (2, 0, str(value))


def _text(cell: Cell, confidence: float, kind: str) -> str:
    if not isinstance(cell, Estimate):
        return cell_text(cell)
    low, high = cell.interval(confidence)
    unread = cell.unread(confidence)
    if kind == "number":
        number, interval = bar_parts(cell.value, low, high)
        if unread:
            number = NO_READING
        return number if low == high == cell.value and cell.public else f"{number} {interval}"
    value = NO_READING if unread else _moment_text(moment_of(cell.value, kind), "unknown")
    ends = (_moment_text(moment_of(e, kind, r), "unbounded") for e, r in zip((low, high), OUTWARDS))  # noqa: B905
    return f"{value} [{', '.join(ends)}]"


def _moment_text(moment: Any, otherwise: str) -> str:
    return otherwise if moment is None else str(moment)
