"""Cells of answers: a value with its bar, in the reading that page, chart and file share."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sulq.answers.display import percent
from sulq.formatting import MINUS, OUTWARDS, moment_of, outward, value_with_bar
from sulq.sql.evaluate.linear_forms import Estimate
from sulq.sql.evaluate.result import NO_READING

ANYTHING = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Cell:
    """An answer cell: `value ± bar`, a chip, or words instead of a number.

    `raw`, `low` and `high` are the same digits for a program: no thousands, a plain minus sign.
    """

    value: str = ""
    bar: str = ""
    raw: str = ""
    range: str = ""
    weak: bool = False
    tip: str = ""
    text: str | None = None
    chip: str = ""
    chip_kind: str = ""
    low: str = ""
    high: str = ""


def estimate_cell(
    cell: Estimate, confidence: float, *, kind: str = "number", count: bool = False, grain: str = ""
) -> Cell:
    """An estimate as it is shown, drawn and saved: one reading for page, chart and file."""
    if cell.unread(confidence):
        return Cell(text=NO_READING)
    low, high = cell.interval(confidence)
    if kind != "number":
        return _moment_cell(cell, (low, high), kind)
    return answer_cell(
        cell.value,
        low,
        high,
        count=count,
        public=cell.public,
        possible=cell.possible,
        exact=f"exact to {grain or 'these digits'} in {percent(confidence)[:-2]} of 100",
    )


def answer_cell(
    value: float,
    low: float,
    high: float,
    *,
    count: bool = False,
    public: bool = False,
    possible: tuple[float, float] = ANYTHING,
    exact: str = "",
) -> Cell:
    """A noisy value with its interval; the bar is the farther end: it holds at least as often.

    Whether it is public is a fact of the plan, not of an interval that noise made narrow.
    """
    if not all(map(math.isfinite, (value, low, high))):
        return Cell(text=NO_READING)
    shown = value_with_bar(value, half_of(value, low, high, possible))
    if not shown.bar:
        said = _plain(shown.value)
        chip = "public" if public else exact
        return Cell(shown.value, raw=said, range=shown.value, chip=chip, low=said, high=said)
    ends = outward(low, high, shown.places, possible)
    return Cell(
        value=shown.value,
        bar=shown.bar,
        raw=f"{shown.number:.{shown.places}f}",
        range=" to ".join(ends),
        weak=low <= 0 <= high,
        tip=_tip(ends[1]) if count and shown.number < 0 else "",
        low=_plain(ends[0]),
        high=_plain(ends[1]),
    )


def half_of(
    value: float, low: float, high: float, possible: tuple[float, float] = ANYTHING
) -> float:
    """How far the interval reaches from the value, or from where the value could be."""
    near = min(max(value, possible[0]), possible[1])
    return max(high - near, near - low)


def _moment_cell(cell: Estimate, ends: tuple[float, float], kind: str) -> Cell:
    """A day or a time, with its range; no bar in days beside a date."""
    value = str(moment_of(cell.value, kind))
    low, high = (str(moment_of(end, kind, way)) for end, way in zip(ends, OUTWARDS, strict=True))
    chip = "public" if cell.public else ""
    return Cell(value, "", value, f"{low} to {high}", chip=chip, low=low, high=high)


def _tip(top: str) -> str:
    return f"Noise can push a small count below zero. Read it as 0 to {top.lstrip(MINUS)}."


def _plain(text: str) -> str:
    return text.replace(",", "").replace(MINUS, "-")


def plain_cell(text: str) -> Cell:
    return Cell(text=text)


def chip_cell(value: str, chip: str, kind: str = "") -> Cell:
    """A number that carries a chip instead of a bar: public, or exact under assumptions."""
    return Cell(value, raw=value.replace(",", ""), chip=chip, chip_kind=kind)
