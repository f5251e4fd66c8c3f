"""The sentence that states a result: all pairs compared, "not distinguishable" said outright."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from sulq.server.console.show import estimate_cell
from sulq.server.console.words import (
    OTHER,
    Shape,
    capital,
    groups_word,
    key_text,
    listed,
    number_word,
)
from sulq.shown import show
from sulq.sql.estimates import Estimate
from sulq.sql.result import Result, compare

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
    """A name for each row: its keys."""
    places = [at for at, column in enumerate(result.columns) if column.is_key]
    return [", ".join(key_text(row[at]) for at in places) for row in result.rows]


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
        unit = f" {figure.unit}" if figure is not None and figure.counts else ""
        grain = figure.grain if figure is not None else ""
        shown = estimate_cell(cell, result.confidence, kind=column.kind, grain=grain)
        if shown.text is not None:
            said.append(f"{column.name} has {shown.text}.")
            continue
        bar = f" ± {shown.bar}" if shown.bar else ""
        chip = f", {shown.chip}" if shown.chip and shown.chip != "public" else ""
        said.append(f"{column.name} is {shown.value}{bar}{unit}{chip}.")
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
                shown = show(abs(judged.difference), half)
                example = f"{known[high][0]} − {known[low][0]} is {shown}"
    told = sum(map(len, above.values()))
    if not told and len(known) == 2:  # the row of other values is no group, and may differ
        both = " and ".join(name for name, _ in known)
        return Sentence(f"{both} cannot be told apart {NOISE}", "", len(pairs))
    if not told:
        return Sentence(f"No two {groups} can be told apart {NOISE}", "", len(pairs))
    order = sorted(range(len(known)), key=lambda at: -known[at][1].value)
    if told == len(pairs) and len(known) > 2:
        ranked = [known[at][0] for at in order]
        said = f"All {number_word(told)} pairs differ: {', then '.join(ranked)}."
        return Sentence(said, "From the highest to the lowest.", len(pairs), example)
    other = len(pairs) - told
    if told > MOST_LISTED and order[-1] in above.get(order[0], ()):
        top, bottom = known[order[0]][0], known[order[-1]][0]
        rest = f"{told} of {len(pairs)} pairs differ; the other {number_word(other)} are not"
        rest += f" distinguishable {NOISE}"
        return Sentence(f"Highest {top}, lowest {bottom}.", rest, len(pairs), example)
    clauses = [
        f"{known[at][0]} is higher than"
        f" {listed([known[low][0] for low in order if low in above[at]])}."
        for at in order
        if at in above
    ]
    bold = capital(" ".join(clauses[:MOST_CLAUSES]))
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


def _ends(known: Sequence[tuple[str, Estimate]], groups: str, misses: float) -> Sentence:
    """Of many groups only the ends, judged as two of all pairs."""
    order = sorted(known, key=lambda pair: pair[1].value)
    (low, least), (high, most) = order[0], order[-1]
    pairs = len(known) * (len(known) - 1) // 2
    if compare(most, least, 1 - misses / pairs).distinguishable:
        return Sentence(f"Highest {high}, lowest {low}.", "", pairs)
    return Sentence(f"No two {groups} can be told apart {NOISE}", "", pairs)
