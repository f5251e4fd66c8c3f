"""The figures of an answer as pictures: a chart of each, and a cross table where two keys group it.

Made of noisy values alone, in the reading of the page (`estimate_cell`).
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from sulq.server.console.ask.cells import Cell, estimate_cell
from sulq.server.console.charts import Bar, Chart, Series, error_bars, lying_bars, upright_bars
from sulq.server.console.labels import Figure, Shape, capital, key_text
from sulq.sql.evaluate.linear_forms import Estimate
from sulq.sql.evaluate.result import Cell as Value
from sulq.sql.evaluate.result import Result

MOST_BARS = 60
MOST_SERIES = 4
"""Series that are told apart by a sign and a colour; more of them stand one below the other."""
MOST_ACROSS = 8
"""Columns of a cross table that a screen takes."""


@dataclass(frozen=True, slots=True)
class CrossTable:
    """One figure by two keys: the first down, the second across."""

    corner: str
    across: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


@dataclass(frozen=True, slots=True)
class FigureView:
    """One figure as it is drawn; `number` is its place among those of the page."""

    number: int
    said: str
    chart: Chart | None
    cross: CrossTable | None


def is_empty(keys: Sequence[object], cells: Sequence[Cell]) -> bool:
    """Whether a row says nothing: no reading, or nothing to tell of what is other or missing."""
    rest = None in keys
    return all(
        cell.text is not None or (rest and (cell.weak or cell.raw in ("", "0"))) for cell in cells
    )


def figure_views(result: Result, shape: Shape) -> tuple[FigureView, ...]:
    """A picture of every figure that is grouped by one or two keys."""
    keys = [at for at, column in enumerate(result.columns) if column.is_key]
    if not shape.groups or len(keys) not in (1, 2) or not 1 < len(result.rows) <= MOST_BARS:
        return ()
    found: list[FigureView] = []
    for at, column in enumerate(result.columns):
        if column.is_key or column.kind != "number":
            continue
        figure = next((one for one in shape.figures if one.name == column.name), None)
        lines = {tuple(row[key] for key in keys): row[at] for row in result.rows}
        said = title_of(column.name, figure)
        view = (_by_one if len(keys) == 1 else _by_two)(result, shape, lines, said)
        if view is not None:
            found.append(FigureView(len(found), said, *view))
    return tuple(found)


def title_of(name: str, figure: Figure | None) -> str:
    """What an axis says: "average stay, days"."""
    return name if figure is None else figure.said or name


Lines = dict[tuple[object, ...], Value]


def _by_one(
    result: Result, shape: Shape, lines: Lines, said: str
) -> tuple[Chart, CrossTable | None] | None:
    bars = [(key, _bar(result, key, value)) for (key,), value in lines.items()]
    shown = [(key, bar) for key, bar in bars if bar is not None]
    if len(shown) < 2:
        return None
    title, label = _words(said, shape, len(shown))
    keys = [key for key, _ in shown]
    if not ordered(keys):
        return error_bars([bar for _, bar in shown], title, label), None
    known = [(key, bar) for key, bar in shown if key is not None]
    names = [key_text(key) for key, _ in known]
    series = [Series("", tuple(bar for _, bar in known))]
    return upright_bars(names, series, title, label, points=in_time(keys)), None


def _by_two(
    result: Result, shape: Shape, lines: Lines, said: str
) -> tuple[Chart | None, CrossTable] | None:
    firsts, seconds = (list(dict.fromkeys(key[at] for key in lines)) for at in (0, 1))
    cells = {
        key: estimate_cell(value, result.confidence)
        for key, value in lines.items()
        if isinstance(value, Estimate)
    }
    if len(cells) != len(lines):
        return None
    firsts = [one for one in firsts if not _nothing(cells, 0, one)]
    seconds = [one for one in seconds if not _nothing(cells, 1, one)]
    if len(firsts) < 2 or len(seconds) < 2:
        return None
    turned = (ordered(seconds) and not ordered(firsts)) or len(seconds) > MOST_ACROSS >= len(firsts)
    down, across = (seconds, firsts) if turned else (firsts, seconds)
    names = [shape.groups[1], shape.groups[0]] if turned else list(shape.groups)

    def at(row: object, column: object) -> tuple[object, object]:
        return (column, row) if turned else (row, column)

    none = Cell(text="")
    cross = CrossTable(
        f"{names[0]}, by {names[1]}",
        tuple(key_text(key) for key in across),
        tuple(
            (key_text(row), tuple(cells.get(at(row, column), none) for column in across))
            for row in down
        ),
    )
    drawn = [key for key in down if key is not None]
    series = [
        Series(
            key_text(column),
            tuple(_bar(result, row, lines.get(at(row, column))) for row in drawn),
        )
        for column in across
    ]
    many = sum(bar is not None for one in series for bar in one.bars)
    if many < 2 or not drawn:
        return None, cross
    title, label = _words(said, shape, many)
    listed = [key_text(key) for key in drawn]
    if ordered(drawn) and len(series) <= MOST_SERIES:
        return upright_bars(listed, series, title, label, points=in_time(drawn)), cross
    return lying_bars(listed, series, title, label), cross


def _nothing(cells: dict[tuple[object, ...], Cell], place: int, one: object) -> bool:
    """Whether all cells of a row or column of a cross table say nothing."""
    return all(is_empty(key, [cell]) for key, cell in cells.items() if key[place] == one)


def _words(said: str, shape: Shape, many: int) -> tuple[str, str]:
    title = f"{said}; whisker = 95 % range"
    by = f"{capital(said)} by {' and '.join(shape.groups)}"
    return title, f"{by}: {many} bars with their 95 % ranges. The table says the same."


def _bar(result: Result, key: object, value: Value | None) -> Bar | None:
    if not isinstance(value, Estimate) or value.unread(result.confidence):
        return None
    return Bar(key_text(key), value.value, *value.interval(result.confidence))


def ordered(keys: Sequence[object]) -> bool:
    """Whether keys stand in an order of their own: numbers, bands of numbers, days."""
    known = [key for key in keys if key is not None]
    return bool(known) and all(
        isinstance(key, int | float | tuple | datetime.date) and not isinstance(key, bool)
        for key in known
    )


def in_time(keys: Sequence[object]) -> bool:
    """Whether keys are days or times."""
    ends = [part for key in keys for part in (key if isinstance(key, tuple) else (key,))]
    return any(isinstance(part, datetime.date) for part in ends)
