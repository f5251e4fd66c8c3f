"""An answer as the page shows it: sentence, table, chart, and what the numbers mean."""

from __future__ import annotations

from dataclasses import dataclass, replace

from markupsafe import Markup

from sulq.accounting.calibration import calibrate
from sulq.database import Analyst, Database
from sulq.schema.columns import Number
from sulq.schema.persons import counted_text
from sulq.server.console.answer_csv import csv_text
from sulq.server.console.charts import Bar, error_bars
from sulq.server.console.sentences import Sentence, names_of, result_sentence
from sulq.server.console.show import Cell, estimate_cell, half_of
from sulq.server.console.words import Shape, group_word, key_text, number_word, one, plural
from sulq.shown import bar_text, credits_word, ordinal, spelled
from sulq.sql.estimates import Estimate
from sulq.sql.result import Result
from sulq.wire import SqlReply

MOST_BARS = 60
MOST_SHOWN = 500
"""Rows on the page; the file has them all."""
NOISES = {"gaussian": "Gaussian", "laplace": "Laplace", "binomial": "coin-toss", "huber": "Huber"}


@dataclass(frozen=True, slots=True)
class Row:
    keys: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class AnswerView:
    table: str
    receipts: tuple[tuple[int, str], ...]
    paid: str
    made_up: bool
    sentence: Sentence
    heads: tuple[str, ...]
    figures: tuple[str, ...]
    ranged: bool
    rows: tuple[Row, ...]
    more: str
    csv: str
    chart: Markup
    layout: str
    meaning: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    python: str
    bars: str
    unit: str
    say: str


def answer_view(
    oracle: Database | Analyst,
    table: str,
    shape: Shape,
    result: Result,
    reply: SqlReply,
    python: str,
    *,
    made_up: bool = False,
) -> AnswerView:
    """Made of noisy values only; the reply says what was paid."""
    result = in_order(result, shape)
    keys = [at for at, column in enumerate(result.columns) if column.is_key]
    figures = [at for at, column in enumerate(result.columns) if not column.is_key]
    rows = tuple(_row(result, row, keys, figures, shape) for row in result.rows[:MOST_SHOWN])
    more = len(result.rows) - len(rows)
    sentence = result_sentence(result, shape)
    names = [result.columns[at].name for at in figures]
    chart = _chart(result, figures, shape)
    paid = reply.credits_exact
    return AnswerView(
        table=table,
        receipts=tuple((number, ordinal(number)) for number in reply.receipts),
        paid=credits_word(paid) if paid else "free",
        made_up=made_up,
        sentence=sentence,
        heads=tuple(result.columns[at].name for at in keys),
        figures=tuple(names),
        ranged=len(figures) == 1,
        rows=rows,
        more=f"{spelled(more, 0)} more rows are in the CSV." if more > 0 else "",
        csv=csv_text(result, reply, counted_text(oracle.schema)),
        chart=chart,
        layout="many" if len(names) > 1 or len(rows) > 14 else "" if chart else "one",
        meaning=_meaning(oracle, shape, sentence, result),
        notes=tuple(dict.fromkeys(result.notes)),
        python=python,
        bars=bars_text(result, figures, shape),
        unit=shape.figures[0].unit if shape.figures else "",
        say=f"{sentence.bold} {sentence.rest}".strip(),
    )


def in_order(result: Result, shape: Shape) -> Result:
    """As asked, or by value where the groups have no order of their own; the rest comes last."""
    keys = [at for at, column in enumerate(result.columns) if column.is_key]
    figures = [at for at, column in enumerate(result.columns) if not column.is_key]
    if shape.ordered or not figures or len(keys) != 1:
        return result
    labels = [row[keys[0]] for row in result.rows]
    if not all(isinstance(label, str) or label is None for label in labels):
        return result

    def place(row: tuple[object, ...]) -> tuple[bool, bool, float]:
        cell = row[figures[0]]
        known = isinstance(cell, Estimate) and not cell.unread(result.confidence)
        value = cell.value if isinstance(cell, Estimate) and known else 0.0
        return row[keys[0]] is None, not known, -value

    return replace(result, rows=tuple(sorted(result.rows, key=place)))


def _row(
    result: Result,
    row: tuple[object, ...],
    keys: list[int],
    figures: list[int],
    shape: Shape,
) -> Row:
    named = {figure.name: figure for figure in shape.figures}
    cells = []
    for at in figures:
        cell = row[at]
        if not isinstance(cell, Estimate):
            cells.append(Cell(value=key_text(cell), raw=key_text(cell)))
        else:
            column = result.columns[at]
            figure = named.get(column.name)
            count, grain = (figure.counts, figure.grain) if figure else (False, "")
            shown = estimate_cell(
                cell, result.confidence, kind=column.kind, count=count, grain=grain
            )
            cells.append(shown)
    return Row(tuple(key_text(row[at]) for at in keys), tuple(cells))


def _chart(result: Result, figures: list[int], shape: Shape) -> Markup:
    """Of the first figure, by group; nothing where there is one number, or too many."""
    if not figures or not shape.groups or not 1 < len(result.rows) <= MOST_BARS:
        return Markup("")
    at, bars = figures[0], []
    for name, row in zip(names_of(result), result.rows, strict=True):
        cell = row[at]
        if not isinstance(cell, Estimate) or cell.unread(result.confidence):
            continue
        bars.append(Bar(name, cell.value, *cell.interval(result.confidence)))
    if len(bars) < 2:
        return Markup("")
    name = result.columns[at].name
    label = f"{name} by {' and '.join(shape.groups)}: {len(bars)} bars with their 95 % ranges."
    return error_bars(bars, f"{name}; whisker = 95 % range", f"{label} The table says the same.")


def bars_text(result: Result, figures: list[int], shape: Shape) -> str:
    """The smallest and the largest bar of the first figure: "± 1.0 to 1.3"."""
    cells = [row[figures[0]] for row in result.rows] if figures else []
    known = [
        cell for cell in cells if isinstance(cell, Estimate) and not cell.unread(result.confidence)
    ]
    halves = [half_of(c.value, *c.interval(result.confidence), c.possible) for c in known]
    if not halves:
        return "±"
    if max(halves) == 0:  # nothing was added, or the interval is narrower than what is shown
        return "none" if all(cell.public for cell in known) else "below one step of"
    least, most = bar_text(min(halves)), bar_text(max(halves))
    return f"± {most}" if least == most else f"± {least} to {most}"


def _meaning(
    oracle: Database | Analyst, shape: Shape, sentence: Sentence, result: Result
) -> tuple[tuple[str, str], ...]:
    who, percent = one(oracle.schema), f"{100 * result.confidence:.6g}"
    noun = shape.figures[0].noun if shape.figures else "number"
    counted = counted_text(oracle.schema)
    over = f" over the rows that count ({counted})" if counted else ""
    said = [(
        "The bar is our noise.",
        f"We added random noise so that no single {who} shows. In {percent} of 100 such answers"
        f" the exact {noun}{over} lies inside the range. If your {plural(who)} are a sample of"
        " something larger, sampling error comes on top.",
    )]  # fmt: skip
    if sentence.pairs:
        example = f": {sentence.example}." if sentence.example else "."
        every = number_word(sentence.pairs)
        widened = (
            f"All {every} pairs were compared, and the bars are widened so that all {every} hold"
            f" together{example}"
            if sentence.pairs > 1
            else f"One pair was compared{example}"
        )
        said.append((
            "“Not distinguishable”",
            f"means the difference is smaller than its own bar. {widened}",
        ))  # fmt: skip
    said.append(("How it was made.", _made(oracle, shape)))
    said.append((
        "Asked again, it is free.",
        "You and everyone else get this same stored answer. What follows from it is free too.",
    ))  # fmt: skip
    return tuple(said)


def _made(oracle: Database | Analyst, shape: Shape) -> str:
    promise = oracle.promise
    per = f" per {group_word(shape.groups)}" if shape.groups else ""
    kinds = {figure.kind for figure in shape.figures}
    if kinds <= {"count", "persons"}:
        what = f"One count{per}"
    elif kinds == {"avg"}:
        what = f"A count and a total{per}"
    elif "quantile" in kinds:
        what = f"Counts of nested ranges{per}"
    else:
        what = f"A few sums{per}"
    spread = calibrate(promise).unit_standard_deviation
    text = (
        f"{what}, each with {NOISES.get(promise.noise, promise.noise)} noise (at the plain price"
        f" a count has standard deviation {spelled(spread, 1)})"
    )
    text += ", then divided." if "avg" in kinds else "."
    for figure in shape.figures[:3]:
        if figure.column and figure.column in oracle.schema:
            column = oracle.schema[figure.column]
            if isinstance(column, Number) and column.kind == "number":
                high = spelled(float(column.range[1]), None)
                text += f" Values of {figure.column} over {high} count as {high}."
    return text
