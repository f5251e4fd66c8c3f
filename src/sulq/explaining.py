"""What an answer says of itself, in plain words: who is protected, the bar, what was clipped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sulq.display import percent
from sulq.query.expressions import Column, Expression, Operation
from sulq.schema.binding import BoundQuery
from sulq.schema.columns import Number, Schema

COUNTS = ("count", "histogram", "cdf", "distribution")
MOST_NAMED = 6
"""Columns whose bounds are spelled out."""


def held_text(schema: Schema | None) -> str:
    """What an interval holds: of persons, the value over the rows that count, not over the file."""
    if schema is None or schema.unit == "row":
        return "the true value"
    return "the true value over the rows that count"


def bar_text(schema: Schema | None = None, confidence: float = 0.95) -> str:
    """What an interval says and what it does not."""
    of = held_text(schema)
    of = f"{of} for this table" if schema is None or schema.unit == "row" else of
    return (
        f"{of} lies inside in {percent(confidence)} of such answers;"
        " it counts the added noise, not how the rows were chosen"
    )


def negative_text(kind: str, value: object) -> str:
    """Why a count can be negative; empty where none is."""
    lowest = float(np.min(np.asarray(value, dtype=np.float64)))
    if kind not in COUNTS or lowest >= 0:
        return ""
    return (
        "no true count is negative, but noise added to a small one can be; left as it is, sums and"
        " means of such answers stay right. nonnegative() sets it to 0"
    )


def protected_text(schema: Schema | None, neighbours: str) -> str:
    """Who is protected, and against what."""
    unit = "row"
    if schema is not None and schema.unit != "row":
        rows = "row" if schema.max_rows == 1 else f"{schema.max_rows} rows"
        unit = f"person ({schema.unit}, of whom at most {rows} count)"
    what = "what it says" if neighbours == "replace" else "whether it is there, and what it says"
    if unit != "row":
        what = what.replace("it is", "they are").replace("it says", "their rows say")
    return (
        f"every {unit}, {what}, against anyone who reads this and every other answer, asks"
        " together with others, and knows all else in the table"
    )


def clipped_text(bound: BoundQuery) -> str:
    """The bounds of the number columns a question reads; empty where it reads none."""
    if bound.schema is None:
        return ""
    names = dict.fromkeys(_columns(bound))
    declared = [column for column in bound.schema.columns if column.name in names]
    numbers = [column for column in declared if isinstance(column, Number)]
    if not numbers:
        return ""
    listed = ", ".join(f"{c.name} to {c.low} .. {c.high}" for c in numbers[:MOST_NAMED])
    more = f" and {len(numbers) - MOST_NAMED} more" if len(numbers) > MOST_NAMED else ""
    return f"{listed}{more}; a value beyond counts as the end it passed"


def _columns(bound: BoundQuery) -> Iterator[str]:
    query = bound.query
    waiting: list[Expression] = [query.rows, *query.terms, *(group.of for group in query.groups)]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Column):
            yield found.name
        elif isinstance(found, Operation):
            waiting += found.operands


def rank_verdict(reached: float, within: float) -> str:
    """Whether quantiles are as exact in rank as was wished, by the noisy number of rows."""
    wish = f"ranks within {100 * within:.3g} % of the rows"
    if reached <= 1.01 * within:
        return f"{wish}: met"
    return (
        f"{wish}: not met, +-{100 * reached:.3g} %; fewer rows match than assumed; state how many"
        " with rows"
    )
