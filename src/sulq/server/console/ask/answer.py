"""An answer as the page shows it: sentence, table, chart, and what the numbers mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from urllib.parse import quote as quoted

from sulq.database import Analyst, Database
from sulq.formatting import (
    bar_text,
    credits_word,
    ordinal,
    spelled,
    value_with_bar,
)
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.schema.columns import Number
from sulq.kernel.schema.sensitivity import counted_text
from sulq.server.console.ask.answer_charts import FigureView, figure_views, is_empty
from sulq.server.console.ask.answer_files import csv_of, sheet_of
from sulq.server.console.ask.cells import Cell, estimate_cell, half_of
from sulq.server.console.ask.request import PricedStatement
from sulq.server.console.labels import (
    OTHER,
    Shape,
    capital,
    group_word,
    groups_word,
    key_text,
    listed,
    number_word,
    statement_title,
)
from sulq.sql.evaluate.linear_forms import Estimate
from sulq.sql.evaluate.result import Result, compare
from sulq.wire import SqlReply

# The sentence that states a result: all pairs compared, "not distinguishable" said outright.


MOST_GROUPS = 12
MOST_CLAUSES = 3
MOST_LISTED = 10
"""Pairs that differ; more of them are counted, not named."""
NOISE = "with this much noise."


@dataclass(frozen=True, slots=True)
class Sentence:
    """`bold` stands alone; `rest` is what cannot be told; `pairs` says how many were compared."""

    bold: str
    rest: str = ""
    pairs: int = 0
    example: str = ""


def names_of(result: Result) -> list[str]:
    """A name for each row: its keys, "diabetes (male)"."""
    places = [at for at, column in enumerate(result.columns) if column.is_key]
    found = []
    for row in result.rows:
        first, *rest = [key_text(row[at]) for at in places] or [""]
        found.append(f"{first} ({', '.join(rest)})" if rest else first)
    return found


def result_sentence(result: Result, shape: Shape) -> Sentence:
    """What the first figure says, of one row or of all pairs of rows."""
    places = [at for at, column in enumerate(result.columns) if not column.is_key]
    if not places or not result.rows:
        return Sentence("Nothing to compare.")
    cells = [row[places[0]] for row in result.rows]
    found = [cell for cell in cells if isinstance(cell, Estimate)]
    if len(found) != len(cells) or not shape.groups:
        return _single(result, places, shape)
    names = names_of(result)
    known = [
        (name, cell)
        for name, cell in zip(names, found, strict=True)
        if OTHER not in name and not cell.unread(result.confidence)
    ]
    if len(known) < 2:
        return Sentence(f"No two {groups_word(shape.groups)} can be told apart", NOISE)
    return _pairs(known, shape, 1 - result.confidence)


def _single(result: Result, places: Sequence[int], shape: Shape) -> Sentence:
    said = []
    for at in places[:MOST_CLAUSES]:
        cell = result.rows[0][at]
        if not isinstance(cell, Estimate):
            continue
        column = result.columns[at]
        figure = next((f for f in shape.figures if f.name == column.name), None)
        called, unit = column.name, f" {figure.unit}" if figure and figure.counts else ""
        if figure is not None and figure.meant:
            what, _, measured = figure.said.partition(", ")
            called, unit = f"The {what}", f" {measured}" if measured else ""
        grain = figure.grain if figure is not None else ""
        shown = estimate_cell(cell, result.confidence, kind=column.kind, grain=grain)
        if shown.text is not None:
            said.append(f"{called} has {shown.text}.")
            continue
        bar = f" ± {shown.bar}" if shown.bar else ""
        chip = f", {shown.chip}" if shown.chip and shown.chip != "public" else ""
        said.append(f"{called} is {shown.value}{bar}{unit}{chip}.")
    return Sentence(" ".join(said) or "Answered.")


def _pairs(known: Sequence[tuple[str, Estimate]], shape: Shape, misses: float) -> Sentence:
    groups = groups_word(shape.groups)
    if len(known) > MOST_GROUPS:
        return _ends(known, groups, misses)
    pairs = list(combinations(range(len(known)), 2))
    level = 1 - misses / len(pairs)  # Bonferroni: all of them hold together
    above: dict[int, list[int]] = {}
    example, clearest = "", 0.0
    for first, second in pairs:
        judged = compare(known[first][1], known[second][1], level)
        if judged.distinguishable:
            high, low = (first, second) if judged.difference > 0 else (second, first)
            above.setdefault(high, []).append(low)
            ends = judged.interval
            half = max(ends[1] - judged.difference, judged.difference - ends[0])
            if half and abs(judged.difference) / half > clearest:
                clearest = abs(judged.difference) / half
                shown = value_with_bar(abs(judged.difference), half)
                example = f"{known[high][0]} − {known[low][0]} is {shown}"
    told = sum(map(len, above.values()))
    if not told and len(known) == 2:  # the row of other values is no group, and may differ
        both = " and ".join(name for name, _ in known)
        return Sentence(f"{both} cannot be told apart {NOISE}", "", len(pairs))
    if not told:
        alone = _alone(known, pairs, misses)
        return Sentence(f"No two {groups} can be told apart {NOISE}", alone, len(pairs))
    order = sorted(range(len(known)), key=lambda at: -known[at][1].value)
    if told == len(pairs) and len(known) > 2:
        ranked = [known[at][0] for at in order]
        said = f"All {number_word(told)} pairs differ: {', then '.join(ranked)}."
        return Sentence(said, "From the highest to the lowest.", len(pairs), example)
    other = len(pairs) - told
    if told > MOST_LISTED and order[-1] in above.get(order[0], ()):
        top, bottom = known[order[0]][0], known[order[-1]][0]
        are = "one is" if other == 1 else f"{number_word(other)} are"
        rest = f"{told} of {len(pairs)} pairs differ; the other {are} not"
        rest += f" distinguishable {NOISE}"
        return Sentence(f"Highest {top}, lowest {bottom}.", rest, len(pairs), example)
    clauses = [
        f"{known[at][0]} is higher than"
        f" {listed([known[low][0] for low in order if low in above[at]])}."
        for at in order
        if at in above
    ]
    bold = " ".join(map(capital, clauses[:MOST_CLAUSES]))
    shown_pairs = sum(len(above[at]) for at in [a for a in order if a in above][:MOST_CLAUSES])
    if shown_pairs < told:
        more = told - shown_pairs
        bold += (
            f" {capital(number_word(more))} more {'pair differs' if more == 1 else 'pairs differ'}."
        )
    rest = ""
    if other:
        noun = "pair is" if other == 1 else "pairs are"
        rest = f"The other {number_word(other)} {noun} not distinguishable {NOISE}"
        rest = rest.replace("The other one pair", "The other pair")
    return Sentence(bold, rest, len(pairs), example)


def _alone(
    known: Sequence[tuple[str, Estimate]], pairs: Sequence[tuple[int, int]], misses: float
) -> str:
    """The clearest of the pairs that would differ, had it been the only question."""
    said, clearest = "", 1.0
    for first, second in pairs:
        one_ = compare(known[first][1], known[second][1], 1 - misses)
        half = max(one_.interval[1] - one_.difference, one_.difference - one_.interval[0])
        if not half or abs(one_.difference) / half <= clearest:
            continue
        clearest = abs(one_.difference) / half
        all_ = compare(known[first][1], known[second][1], 1 - misses / len(pairs)).interval
        high, low = (first, second) if one_.difference > 0 else (second, first)
        wide = bar_text((all_[1] - all_[0]) / 2)
        said = (
            f"{capital(known[high][0])} and {known[low][0]} differ if that was your only question"
            f" ({value_with_bar(abs(one_.difference), half)}); with all {number_word(len(pairs))}"
            f" pairs compared it is not certain (± {wide})."
        )
    return said


def _ends(known: Sequence[tuple[str, Estimate]], groups: str, misses: float) -> Sentence:
    """Of many groups only the ends, judged as two of all pairs."""
    order = sorted(known, key=lambda pair: pair[1].value)
    (low, least), (high, most) = order[0], order[-1]
    pairs = len(known) * (len(known) - 1) // 2
    if compare(most, least, 1 - misses / pairs).distinguishable:
        return Sentence(f"Highest {high}, lowest {low}.", "", pairs)
    return Sentence(f"No two {groups} can be told apart {NOISE}", "", pairs)


# Ready cells for templates: what `sulq.shown` says, with what a reader of the page needs.


MOST_SHOWN = 500
"""Rows on the page; the file has them all."""
NOISES = {"gaussian": "Gaussian", "laplace": "Laplace", "binomial": "coin-toss", "huber": "Huber"}


@dataclass(frozen=True, slots=True)
class AnswerRow:
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
    rows: tuple[AnswerRow, ...]
    empty: tuple[AnswerRow, ...]
    """Rows that say nothing, folded."""
    more: str
    sheet: list[list[str]]
    """The rows of its file."""
    drawn: tuple[FigureView, ...]
    group: str
    """What tells the switches of this answer from those of another one on the same page."""
    layout: str
    meaning: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    python: str
    bars: str
    unit: str
    say: str
    address: str = ""
    """Where the answer is opened again."""
    files: str = ""
    """Where its files are, if it has an address."""

    citation: str = ""
    """What a paper says of it."""
    sql: str = ""

    @property
    def csv(self) -> str:
        return csv_of(self.sheet)

    def at(self, table: str, number: int) -> AnswerView:
        """The same with the address where it is opened again, and that of its files."""
        named = quoted(table, safe="")
        return replace(
            self, address=f"/t/{named}/a/{number}", files=f"/console/{named}/a/{number}/file"
        )


def answer_view(
    found: PricedStatement, result: Result, reply: SqlReply, python: str, *, made_up: bool = False
) -> AnswerView:
    """Made of noisy values only; the reply says what was paid."""
    oracle, shape = found.oracle, found.shape
    sheet = sheet_of(in_order(result, shape), reply, counted_text(oracle.schema), shape.labels)
    result = in_order(labelled(result, shape), shape)
    keys = [at for at, column in enumerate(result.columns) if column.is_key]
    figures = [at for at, column in enumerate(result.columns) if not column.is_key]
    rows, empty = _folded(result, keys, figures, shape)
    more = len(result.rows) - len(rows) - len(empty)
    sentence = result_sentence(result, shape)
    names = [result.columns[at].name for at in figures]
    drawn = figure_views(result, shape)
    crossed = any(one.cross for one in drawn)
    many = len(names) > 1 or len(rows) > 14 or crossed
    paid = reply.credits_exact
    return AnswerView(
        table=found.table,
        receipts=tuple((number, ordinal(number)) for number in reply.receipts),
        paid=credits_word(paid) if paid else "free",
        made_up=made_up,
        sentence=sentence,
        heads=tuple(result.columns[at].name for at in keys),
        figures=tuple(_head(name, shape) for name in names),
        ranged=len(figures) == 1,
        rows=rows,
        empty=empty,
        more=f"{spelled(more, 0)} more rows are in the CSV." if more > 0 else "",
        sheet=sheet,
        drawn=drawn,
        group="-".join(map(str, reply.receipts)) or "free",
        layout="crossed" if crossed else "many" if many else "" if drawn else "one",
        meaning=_meaning(oracle, shape, sentence, result),
        notes=tuple(dict.fromkeys(result.notes)),
        python=python,
        bars=bars_text(result, figures, shape),
        unit=shape.figures[0].unit if shape.figures else "",
        citation="" if made_up else citation_text(found, result, reply),
        sql=found.wish.sql,
        say=f"{sentence.bold} {sentence.rest}".strip(),
    )


def citation_text(found: PricedStatement, result: Result, reply: SqlReply) -> str:
    """How an answer is cited: what was asked, of what, how exact, and by which receipts."""
    promise = found.oracle.promise
    level = f"{100 * result.confidence:.6g}"
    receipts = ", ".join(ordinal(number) for number in reply.receipts)
    return (
        f"{statement_title(found.wish.sql)}. Table “{found.table}”, differentially private answer"
        f" (lifetime epsilon {float(promise.epsilon):g}); ± holds the exact value in {level} of 100"
        f" answers. sulq receipt {receipts}."
    )


def labelled(result: Result, shape: Shape) -> Result:
    """The same with the labels of values beside them: "I21: infarction"."""
    keys = [at for at, column in enumerate(result.columns) if column.is_key]
    if not any(shape.labels) or len(keys) != len(shape.labels):
        return result
    known = {at: one for at, one in zip(keys, shape.labels, strict=True) if one is not None}

    def said(at: int, cell: object) -> object:
        return known[at].said(cell) if at in known and cell is not None else cell

    rows = tuple(tuple(said(at, cell) for at, cell in enumerate(row)) for row in result.rows)
    return replace(result, rows=rows)


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
) -> AnswerRow:
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
    return AnswerRow(tuple(key_text(row[at]) for at in keys), tuple(cells))


def _head(name: str, shape: Shape) -> str:
    """What a figure's column is headed by: its meaning where the owner says one, else its name."""
    figure = next((one for one in shape.figures if one.name == name and one.meant), None)
    return name if figure is None else capital(figure.said)


MANY_EMPTY = 2
"""So many rows that say nothing are folded, where others say something."""


def _folded(
    result: Result, keys: list[int], figures: list[int], shape: Shape
) -> tuple[tuple[AnswerRow, ...], tuple[AnswerRow, ...]]:
    """The rows of the table, and those that say nothing where they are several."""
    told: list[AnswerRow] = []
    nothing: list[AnswerRow] = []
    for row in result.rows[:MOST_SHOWN]:
        shown = _row(result, row, keys, figures, shape)
        said = keys and figures and is_empty([row[at] for at in keys], shown.cells)
        (nothing if said else told).append(shown)
    if len(nothing) < MANY_EMPTY or not told:
        return tuple(_row(result, r, keys, figures, shape) for r in result.rows[:MOST_SHOWN]), ()
    return tuple(told), tuple(nothing)


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
    who, percent = oracle.schema.each, f"{100 * result.confidence:.6g}"
    noun = shape.figures[0].noun if shape.figures else "number"
    counted = counted_text(oracle.schema)
    over = f" over the rows that count ({counted})" if counted else ""
    said = [
        (
            "The bar is our noise.",
            f"We added random noise so that no single {who} shows. In {percent} of 100 such"
            f" answers the exact {noun}{over} lies inside the range. If your"
            f" {oracle.schema.who} are a sample of something larger, sampling error comes on top.",
        )
    ]
    if sentence.pairs:
        example = f": {sentence.example}." if sentence.example else "."
        every = number_word(sentence.pairs)
        widened = (
            f"All {every} pairs were compared, and the bars are widened so that all {every} hold"
            f" together{example}"
            if sentence.pairs > 1
            else f"One pair was compared{example}"
        )
        said.append(
            (
                "“Not distinguishable”",
                f"means the difference is smaller than its own bar. {widened}",
            )
        )
    said.append(("How it was made.", _made(oracle, shape)))
    said.append(
        (
            "Asked again, it is free.",
            "You and everyone else get this same stored answer. What follows from it is free too.",
        )
    )
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
