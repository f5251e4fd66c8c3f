"""What is said before spending: hints, warnings, and what will come back. No row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sulq.database import Analyst, Database
from sulq.errors import InvalidQuery
from sulq.noise.tails import z_of
from sulq.schema.columns import Number
from sulq.server.console.wishes import Priced
from sulq.server.console.words import (
    Figure,
    Shape,
    capital,
    group_word,
    groups_word,
    number_word,
    plural,
)
from sulq.shown import bar_text, credits_word, spelled

LITTLE = "This will tell you little."


@dataclass(frozen=True, slots=True)
class Hint:
    first: str
    more: str
    soft: str
    button: str
    sql: str


def warning_of(found: Priced, oracle: Database | Analyst) -> tuple[str, str] | None:
    """Allowed, but said beforehand: the noise is larger than what is asked."""
    halves = dict(found.quote.half_widths)
    for figure in found.shape.figures:
        half = halves.get(figure.name)
        if not half:
            continue
        span, who = _span(figure, oracle), oracle.schema.who
        error = f"± {bar_text(half)}"
        if figure.counts and found.wish.rows is not None and found.wish.rows <= 2 * half:
            size = spelled(found.wish.rows, 0)
            return LITTLE, f"You say the group has about {size} {who}; the error is {error}."
        if figure.kind == "avg" and span and half >= span / 4:
            return LITTLE, (
                f"{figure.column} ranges over {spelled(span, None)}; the error would be {error}."
                f" Ask about more {who} at once, or spend more."
            )
    return None


def _span(figure: Figure, oracle: Database | Analyst) -> float:
    if figure.column not in oracle.schema:
        return 0.0
    column = oracle.schema[figure.column]
    if not isinstance(column, Number) or column.kind != "number":
        return 0.0
    low, high = column.range
    return float(high - low)


def hint_of(oracle: Database | Analyst, table: str, found: Priced) -> Hint | None:
    """The cheapest change that at least halves the error: values over the middle count as it."""
    halves = dict(found.quote.half_widths)
    for figure in found.shape.figures:
        before = halves.get(figure.name)
        if figure.kind not in ("avg", "sum") or not _span(figure, oracle) or not figure.span:
            continue
        if not before or not found.quote.credits or found.wish.within is not None:
            continue
        column = oracle.schema[figure.column]
        assert isinstance(column, Number)  # noqa: S101
        middle = float(sum(column.range) / 2)
        cap = spelled(middle, None)
        call = f"{figure.kind.upper()}(LEAST({figure.column}, {middle:g}))"
        text = found.wish.text
        start, end = closed(text, *figure.span)
        changed = text[:start] + call + text[end:]
        try:
            quote = oracle.quote_sql(changed, table=table, rows=found.rows, credits=found.credits)
        except InvalidQuery:
            return None
        after = next((half for _, half in quote.half_widths if half), None)
        if after is None or after > 0.52 * before or quote.credits > found.quote.credits:
            return None
        return Hint(
            "Half the error, for another question.",
            f"Count {figure.column} over {cap} as {cap}: ± {bar_text(after)} for the same"
            f" {credits_word(quote.credits)}.",
            f"You would then measure the {figure.noun} of {figure.column} capped at {cap}.",
            f"Cap at {cap}",
            changed,
        )
    return None


def closed(text: str, start: int, end: int) -> tuple[int, int]:
    """A call's span to its last bracket: names are noted by the parser, brackets are not."""
    while end < len(text) and text.count("(", start, end) > text.count(")", start, end):
        end += 1
    return start, end


def what_you_will_see(found: Priced, oracle: Database | Analyst) -> tuple[str, str]:
    """What comes back, and which size the error assumes."""
    shape, halves = found.shape, dict(found.quote.half_widths)
    if not shape.figures:
        return "A list of public facts.", ""
    figure = shape.figures[0]
    many = len(shape.figures) > 1
    nouns = "numbers" if many else plural(figure.noun, shape.cells if shape.groups else 1)
    if not shape.groups:
        count = len(shape.figures)
        what = "numbers, each" if count > 1 else "number"
        see = f"{capital(number_word(count))} {what} with its range."
    else:
        total = shape.cells * len(shape.figures)
        rest = ", and one more row for what is other or missing" if shape.other else ""
        see = f"{capital(number_word(total))} {nouns}, each with its range{rest}."
        half, pairs = halves.get(figure.name), shape.cells * (shape.cells - 1) // 2
        if half and pairs and shape.cells <= 12:
            apart = half * math.sqrt(2) * z_of(1 - 0.05 / pairs) / z_of(0.95)
            unit = f" {figure.unit}" if figure.unit else ""
            see += (
                f" {capital(groups_word(shape.groups))} whose {plural(figure.noun)} lie closer than"
                f" about {bar_text(apart)}{unit} will be called “not distinguishable”."
            )
    return see, _size_sentence(found, oracle)


def _size_sentence(found: Priced, oracle: Database | Analyst) -> str:
    who, shape = oracle.schema.who, found.shape
    per = f" per {group_word(shape.groups)}" if shape.groups else ""
    if found.wish.rows is not None:
        return f"The error assumes about {spelled(found.wish.rows, 0)} {who}{per}, as you said."
    if not found.assumed:
        return ""
    if found.rows is not None:
        return (
            f"The error assumes about {spelled(found.rows, 0)} {who}{per}: all"
            f" {spelled(oracle.size or 0, 0)}, spread evenly. Fewer make it larger."
        )
    if oracle.size is not None:
        size = spelled(oracle.size, 0)
        return f"The error assumes that all {size} {who} match. Fewer make it larger."
    return f"The error depends on how many {who} match: type a size to see it."


def assumed_size(found: Priced, oracle: Database | Analyst) -> str:
    """The size that stands behind the bar, in few words next to it; empty where it has no say."""
    if all(figure.sized for figure in found.shape.figures):
        return ""
    per = f" per {group_word(found.shape.groups)}" if found.shape.groups else ""
    rows = found.rows if found.rows is not None else oracle.size
    if rows is None:
        return "type a size to see it"
    return f"if {spelled(rows, 0)} {oracle.schema.who}{per or ' match'}"


def see_count(shape: Shape) -> str:
    if not shape.figures:
        return ""
    total = shape.cells * len(shape.figures)
    noun = shape.figures[0].noun if len(shape.figures) == 1 else "number"
    return f"{total} {plural(noun, total)}{' and the rest' if shape.other else ''}"
