"""Ready cells for templates: what `sulq.shown` says, with what a reader of the page needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sulq.shown import Shown, show, spelled

__all__ = ["Cell", "answer_cell", "chip_cell", "plain_cell", "show"]


@dataclass(frozen=True, slots=True)
class Cell:
    """An answer cell: `value ± bar`, a chip, or words instead of a number."""

    value: str = ""
    bar: str = ""
    raw: str = ""
    range: str = ""
    weak: bool = False
    tip: str = ""
    text: str | None = None
    chip: str = ""
    chip_kind: str = ""


def answer_cell(value: float, low: float, high: float, *, count: bool = False) -> Cell:
    """A noisy value with its interval; the bar is the farther end: it holds at least as often."""
    if not all(map(math.isfinite, (value, low, high))):
        return Cell(text="no reading")
    shown = show(value, max(high - value, value - low))
    if not shown.bar:
        return Cell(shown.value, raw=repr(value), range=shown.value, chip="public")
    return Cell(
        shown.value, shown.bar, f"{shown.number:.{shown.places}f}", shown.range, shown.weak,
        _tip(shown) if count and shown.number < 0 else "",
    )  # fmt: skip


def _tip(shown: Shown) -> str:
    top = spelled(max(0.0, shown.number + shown.half), shown.places)
    return f"Noise can push a small count below zero. Read it as 0 to {top}."


def plain_cell(text: str) -> Cell:
    return Cell(text=text)


def chip_cell(value: str, chip: str, kind: str = "") -> Cell:
    """A number that carries a chip instead of a bar: public, or exact under assumptions."""
    return Cell(value, raw=value.replace(",", ""), chip=chip, chip_kind=kind)
