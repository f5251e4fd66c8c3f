"""Numbers with error bars on a screen: significant digits only; tables; words."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sulq.kernel.schema.columns import Schema

SURE = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.999999)
"""The confidences tried, from below, to say how sure a difference is."""
MOST_ROWS = 60
"""Longer tables are cut where they are shown, never where they are kept."""

Ends = tuple[float, float]


def significant(value: float, error: float | None = None, *, digits: int = 2) -> str:
    """Round `value` to the place of the error's second digit; to six digits without an error."""
    if value is None or value != value:
        return "unknown"
    if not math.isfinite(value):
        return "unbounded"
    if not error or not math.isfinite(error):
        return _plain(f"{value:,.6g}", value)
    place = math.floor(math.log10(abs(error))) - (digits - 1)
    rounded = round(value, -place)
    return f"{rounded + 0.0:,.{max(0, -place)}f}" if place > -12 else f"{value:,.6g}"


def _plain(text: str, value: float) -> str:
    return f"{value:,.0f}" if "e+" in text and abs(value) < 1e15 else text


def bar(value: float, low: float, high: float) -> str:
    """ "1,234 [1,210, 1,260]": a value and its interval, with the digits that mean something."""
    number, interval = bar_parts(value, low, high)
    return number if low == high == value else f"{number} {interval}"


def bar_parts(value: float, low: float, high: float) -> tuple[str, str]:
    """Return the two parts of `bar`; whole numbers have no digits after the point."""
    if low == high == value:
        return significant(value), f"[{significant(low)}, {significant(high)}]"
    whole = all(float(number).is_integer() for number in (value, low, high))
    error = max((high - low) / 4, 10.0 if whole else 0.0)
    return significant(value, error), ends(low, high, error)


def ends(low: float, high: float, error: float) -> str:
    """Round an interval outwards, so that it holds at least as often."""
    if not math.isfinite(error) or error <= 0:
        return f"[{significant(low)}, {significant(high)}]"
    place = 10.0 ** (math.floor(math.log10(error)) - 1)
    near = 1e-9  # a number that already has these digits stays
    lower = math.floor(low / place + near) * place
    upper = math.ceil(high / place - near) * place
    return f"[{significant(lower, error)}, {significant(upper, error)}]"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether two numbers differ, as far as their noise lets one tell."""

    difference: float
    interval: Ends
    confidence: float
    sure: float | None
    first: str = "the first"
    second: str = "the second"

    @property
    def distinguishable(self) -> bool:
        low, high = self.interval
        return low > 0 or high < 0

    @property
    def larger(self) -> str | None:
        """Return which one is larger, or None where that cannot be told."""
        if not self.distinguishable:
            return None
        return self.first if self.difference > 0 else self.second

    def __str__(self) -> str:
        low, high = self.interval
        if low == high == 0:
            return "the same number: they rest on the same noisy sums"
        asked = percent(self.confidence)
        if not self.distinguishable:
            apart = f"the difference is {bar(self.difference, low, high)}"
            return f"not distinguishable at {asked}: {apart}, and that includes 0"
        sign = 1 if self.difference > 0 else -1
        low, high = sorted((sign * low, sign * high))
        by = bar(abs(self.difference), low, high)
        sure = f"; they differ even at {percent(self.sure)}" if self.sure else ""
        return f"{self.larger} is larger, by {by} at {asked}{sure}"


def compared(
    difference: float,
    interval: Callable[[float], Ends],
    confidence: float,
    first: str = "the first",
    second: str = "the second",
) -> Comparison:
    """Judge a difference by its interval at any confidence."""
    sure = None
    for level in SURE:
        if level > confidence:
            low, high = interval(level)
            if low <= 0 <= high:
                break
            sure = level
    return Comparison(difference, interval(confidence), confidence, sure, first, second)


def cell_text(key: object) -> str:
    """Return a key of a table as text: NULL, a range, a number or a text."""
    if key is None:
        return "NULL"
    if isinstance(key, float):
        return significant(key)
    if isinstance(key, tuple) and len(key) == 2:
        return f"{key[0]} to {key[1]}"
    return str(key)


def cells_of(
    records: Sequence[Mapping[str, Any]], head: str
) -> tuple[list[str], list[list[str]], list[bool]]:
    """Records with value, low and high as a table: heads, rows, which are numbers."""
    own = ("value", "low", "high")
    names = [name for name in records[0] if name not in own] if records else []
    rows = [
        [*(cell_text(record[name]) for name in names), bar(*(record[name] for name in own))]
        for record in records[:MOST_ROWS]
    ]
    rows += [[""] * (len(names) + 1)] * (len(records) - len(rows))
    return [*names, head], rows, [*([False] * len(names)), True]


def percent(share: float) -> str:
    return f"{100 * share:.6g} %"


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> str:
    """Return a table for the terminal; numbers stand to the right."""
    shown = [list(row) for row in rows[:MOST_ROWS]]
    widths = [
        max(len(head), *(len(row[place]) for row in shown)) if shown else len(head)
        for place, head in enumerate(heads)
    ]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    lines = [line(heads), "  ".join("-" * width for width in widths), *map(line, shown)]
    if len(rows) > MOST_ROWS:
        lines.append(f"... {len(rows) - MOST_ROWS:,} more rows")
    return "\n".join(lines)


def html_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    notes: Sequence[str] = (),
) -> str:
    """The same for a notebook; every cell is escaped."""

    def cells(tag: str, texts: Sequence[str]) -> str:
        return "".join(
            f'<{tag} style="text-align:{"right" if right else "left"}">{html.escape(text)}</{tag}>'
            for text, right in zip(texts, numeric, strict=True)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows[:MOST_ROWS])
    said = list(notes)
    if len(rows) > MOST_ROWS:
        said.insert(0, f"... {len(rows) - MOST_ROWS:,} more rows")
    foot = "".join(f"<div><small>{html.escape(note)}</small></div>" for note in said if note)
    return f"<table><thead><tr>{cells('th', heads)}</tr></thead><tbody>{body}</tbody></table>{foot}"


# What an answer says of itself, in plain words: who is protected, the bar, what was clipped.


def held_text(schema: Schema | None) -> str:
    """Say what an interval holds, where the schema may not be known."""
    return "the true value" if schema is None else schema.held


def bar_text(schema: Schema | None = None, confidence: float = 0.95) -> str:
    """Say what an interval promises and what it does not."""
    of = held_text(schema)
    of = f"{of} for this table" if schema is None or schema.one_each else of
    return (
        f"{of} lies inside in {percent(confidence)} of such answers;"
        " it counts the added noise, not how the rows were chosen"
    )


def negative_text(counts: bool, value: object) -> str:
    """Say why a count can be negative; return nothing where none is."""
    lowest = float(np.min(np.asarray(value, dtype=np.float64)))
    if not counts or lowest >= 0:
        return ""
    return (
        "no true count is negative, but noise added to a small one can be; left as it is, sums and"
        " means of such answers stay right. nonnegative() sets it to 0"
    )


def protected_text(schema: Schema | None, neighbours: str) -> str:
    """Say who is protected, and against what."""
    unit = "row"
    if schema is not None and schema.unit != "row":
        rows = "1 row" if schema.max_rows == 1 else f"{schema.max_rows} rows"
        unit = f"person ({schema.unit}, of whom at most {rows} count)"
        if schema.one_each:
            unit = f"person ({schema.unit}, with all their rows in every table of the study)"
    what = "what it says" if neighbours == "replace" else "whether it is there, and what it says"
    if unit != "row":
        what = what.replace("it is", "they are").replace("it says", "their rows say")
    return (
        f"every {unit}, {what}, against anyone who reads this and every other answer, asks"
        " together with others, and knows all else in the table"
    )
