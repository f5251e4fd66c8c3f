"""Compare two rows of an answer, or a row of one answer with a row of another.

Free: it rests on answers that the caller was told, or that were shared with them. Inside one answer
what two rows share cancels, and their difference has its own interval. Of two answers it is not
known what they share, so the difference lies within both bars together, each wider (a union bound).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from sulq.formatting import ordinal, value_with_bar
from sulq.server.console.ask.answer import labelled, names_of
from sulq.server.console.ask.page import own_questions
from sulq.server.console.charts import Bar, Chart, error_bars
from sulq.server.console.framework import fragment
from sulq.server.console.labels import Figure, Shape, capital, number_word
from sulq.server.console.stored import Number, told_result
from sulq.server.executor import Asker
from sulq.server.service.session import TableSession
from sulq.sql.evaluate.linear_forms import Estimate
from sulq.sql.evaluate.result import Result, combine

router = APIRouter(include_in_schema=False)
MOST_OFFERED = 30
SURE = 0.95
Place = Annotated[int, Query(ge=0, le=10_000)]


@dataclass(frozen=True, slots=True)
class Side:
    """One of two rows: what it is called, and its figure."""

    name: str
    cell: Estimate


@dataclass(frozen=True, slots=True)
class CompareView:
    """The form, with what it says so far."""

    table: str
    number: int
    figures: tuple[str, ...]
    figure: int
    rows: tuple[str, ...]
    first: int
    others: tuple[tuple[int, str], ...]
    other: int
    other_rows: tuple[str, ...]
    second: int
    bold: str
    rest: str
    chart: Chart | None


@dataclass(frozen=True, slots=True)
class Told:
    """An answer's figures, row by row."""

    rows: tuple[str, ...]
    figures: tuple[str, ...]
    units: tuple[str, ...]
    cells: tuple[tuple[object, ...], ...]

    @classmethod
    def of(cls, result: Result, shape: Shape) -> Told:
        result = labelled(result, shape)
        places = [
            at for at, one in enumerate(result.columns) if not one.is_key and one.kind == "number"
        ]
        named = {figure.name: figure for figure in shape.figures}
        figures = [named.get(result.columns[at].name) for at in places]
        return cls(
            tuple(name or "its one row" for name in names_of(result)),
            tuple(
                (one and one.said) or result.columns[at].name
                for one, at in zip(figures, places, strict=True)
            ),
            tuple(_unit(one) for one in figures),
            tuple(tuple(row[at] for at in places) for row in result.rows),
        )

    def side(self, row: int, figure: int) -> Side | None:
        """A row's figure, if it has a reading."""
        if row >= len(self.cells) or figure >= len(self.cells[row]):
            return None
        cell = self.cells[row][figure]
        told = isinstance(cell, Estimate) and not cell.unread(SURE)
        return Side(self.rows[row], cell) if told and isinstance(cell, Estimate) else None


def _unit(figure: Figure | None) -> str:
    return "" if figure is None or not (figure.meant or figure.counts) else figure.unit


def compare_view(
    session: TableSession, number: int, figure: int, first: int, other: int, second: int
) -> CompareView:
    """What two rows say of each other."""
    found, result = told_result(session, number)
    told = Told.of(result, found.shape)
    beside = told
    if other and other != number:
        found, result = told_result(session, other)
        beside = Told.of(result, found.shape)
    apart = other not in (0, number)
    first = min(first, len(told.rows) - 1)
    second = min(second, len(beside.rows) - 1)
    if not apart and first == second:
        second = (first + 1) % len(told.rows)
    figure = min(figure, max(len(told.figures) - 1, 0))
    what = told.figures[figure] if told.figures else ""
    same = beside.figures.index(what) if what in beside.figures else len(beside.figures)
    sides = told.side(first, figure), beside.side(second, same)
    bold, rest, chart = "", "", None
    if what not in beside.figures:
        bold = f"The other answer does not have this figure: the {what or 'number'}."
    elif sides[0] is None or sides[1] is None:
        bold = "One of them has no reading, so they cannot be compared."
    elif not apart and first == second:
        bold, rest = "There is one row.", "Choose another answer to compare it with."
    else:
        names = sides[0].name, sides[1].name
        if apart:
            names = f"{names[0]} ({ordinal(number)})", f"{names[1]} ({ordinal(other)})"
        pairs = 1 if apart else _pairs(told, figure)
        bold, rest, chart = _said(sides[0], sides[1], names, told, figure, pairs, apart=apart)
    return CompareView(
        session.table,
        number,
        told.figures,
        figure,
        told.rows,
        first,
        _others(session, number),
        other if apart else 0,
        beside.rows,
        second,
        bold,
        rest,
        chart,
    )


def _others(session: TableSession, number: int) -> tuple[tuple[int, str], ...]:
    listed = own_questions(session)[:MOST_OFFERED]
    found = ((int(line.href.rpartition("/")[2]), line) for line in listed)
    return tuple((at, f"{line.number} {line.text}") for at, line in found if at != number)


def _pairs(told: Told, figure: int) -> int:
    """How many pairs there are to compare among the rows of one answer."""
    known = sum(told.side(row, figure) is not None for row in range(len(told.rows)))
    return max(known * (known - 1) // 2, 1)


def difference(
    first: Estimate, second: Estimate, level: float, *, apart: bool
) -> tuple[float, float]:
    """The interval of first - second; of two answers each holds half as often wrong (a union)."""
    if not apart:
        return combine("-", first, second).interval(level)
    (low, high), (least, most) = (one.interval((1 + level) / 2) for one in (first, second))
    return low - most, high - least


def _said(
    first: Side,
    second: Side,
    names: tuple[str, str],
    told: Told,
    figure: int,
    pairs: int,
    *,
    apart: bool,
) -> tuple[str, str, Chart | None]:
    value = first.cell.value - second.cell.value
    low, high = difference(first.cell, second.cell, SURE, apart=apart)
    half = max(high - value, value - low)
    what, unit = told.figures[figure].partition(", ")[0], told.units[figure]
    shown = f"{value_with_bar(abs(value), half)} {unit}".strip()
    if low <= 0 <= high:
        bold = f"{capital(names[0])} and {names[1]} cannot be told apart."
        rest = f"The difference in {what} is {value_with_bar(value, half)} {unit}".strip() + "."
    else:
        above, below = names if value > 0 else (names[1], names[0])
        bold = f"{capital(above)} is higher than {below} by {shown}."
        rest = f"The figure is the {what}."
    if pairs > 1:
        rest += f" {_together(first, second, unit, pairs, (low, high))}"
    if apart:
        rest += " The two were asked apart, so the bar is both their bars together."
    if not math.isfinite(low + high):
        return bold, rest, None
    bar = Bar("difference", value, low, high)
    label = f"{names[0]} minus {names[1]}: one bar with its 95 % range."
    return bold, rest, error_bars([bar], f"difference in {what}; whisker = 95 % range", label)


def _together(first: Side, second: Side, unit: str, pairs: int, alone: tuple[float, float]) -> str:
    """What holds if all pairs of the answer are looked at, not this one alone (Bonferroni)."""
    value = first.cell.value - second.cell.value
    low, high = difference(first.cell, second.cell, 1 - (1 - SURE) / pairs, apart=False)
    said = f"{value_with_bar(abs(value), max(high - value, value - low))} {unit}".strip()
    every = f"all {number_word(pairs)} pairs"
    if alone[0] <= 0 <= alone[1]:
        return ""
    if low <= 0 <= high:
        return (
            f"That holds if it was your only comparison. If you chose it after looking at {every},"
            f" it is {said}, and not certain."
        )
    return f"It also holds if you look at {every}: {said}."


@router.get("/console/{table}/a/{number}/compare")
async def compare(
    request: Request,
    session: Asker,
    number: Number,
    figure: Place = 0,
    first: Place = 0,
    other: Annotated[int, Query(ge=0, le=2**62)] = 0,
    second: Place = 1,
) -> Response:
    given = (session, number, figure, first, other, second)
    return await fragment(request, "compare.html#compare", compare_view, *given)
