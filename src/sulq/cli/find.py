"""`sulq keys` and `sulq top`: keys that nobody declared, and which cells are largest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sulq.cli.context import Credits, Key, Session, Where, chosen, command
from sulq.cli.output import (
    charging,
    key_values,
    number_text,
    print_note,
    show,
    show_json,
    stored,
    table,
)
from sulq.cli.question_text import FORMS, credits_of, hinted, question
from sulq.errors import InvalidQuery
from sulq.formatting import credits_left, credits_text
from sulq.kernel.schema.keys import MOST_COLUMNS
from sulq.sql import parse_condition

if TYPE_CHECKING:
    from fractions import Fraction

    from sulq.answers.selections import Keys, KeysQuote

KeyWords = Annotated[
    list[str],
    typer.Argument(
        metavar="[TABLE] COLUMN [COLUMN] [FIGURE]...",
        help="An open column, or a pair that is one key; figures of each key, such as 'mean age'.",
        show_default=False,
    ),
]
TopWords = Annotated[
    list[str],
    typer.Argument(
        metavar="[TABLE] COLUMN [count | total VALUE]",
        help="A column with declared values, and what ranks them; count if left out.",
        show_default=False,
    ),
]
Delta = Annotated[str | None, typer.Option(help="Extra delta to pay for the threshold.")]
Most = Annotated[int, typer.Option(help="Show so many keys at most.")]
Quoted = Annotated[bool, typer.Option("--quote", help="Price and threshold only: free.")]
Places = Annotated[int, typer.Option("-k", help="How many places.")]


@command
def keys(
    words: KeyWords,
    session: Session,
    where: Where = None,
    credits: Credits = None,
    delta: Delta = None,
    most: Most = 1_000,
    quoted: Quoted = False,
    key: Key = None,
) -> None:
    """Counts by the values of an open column, of those that many rows share, with figures of them.

    What one person alone has stays hidden below a threshold, which costs delta.
    """
    source, rest = session.source_of(words, here=chosen)
    schema = source.schema()
    columns = [word for word in rest if word in schema or word.split()[0] not in FORMS]
    if not 1 <= len(columns) <= MOST_COLUMNS or columns != rest[: len(columns)]:
        raise InvalidQuery(f"want one open column, or a pair, and then figures, got {rest}")
    column = columns[0] if len(columns) == 1 else tuple(columns)
    figures = rest[len(columns) :]
    wanted = [question(each.split(), None, (), None, False, schema) for each in figures]
    terms: dict[str, Any] = {
        "where": None if where is None else parse_condition(where),
        "credits": credits_of(credits),
        "delta": credits_of(delta, "--delta"),
        "most": most,
    }
    if quoted:
        with session.oracle(source, prices=True) as oracle, hinted(where):
            price = oracle.quote_keys(column, *wanted, **terms)
        _show_quote(source.name, ", ".join(columns), price, session.as_json)
        return
    with session.oracle(source) as oracle:
        with charging(), hinted(where):
            found = oracle.keys(column, *wanted, key=key, **terms)
        left = oracle.remaining
    with stored(found.credits):
        _show_keys(source.name, found, left, session.as_json)


def _show_quote(name: str, column: str, found: KeysQuote, as_json: bool) -> None:
    note = found.note
    if as_json:
        price = {"credits": found.credits, "delta": float(found.delta)}
        sizes = {"threshold": found.threshold, "standard_error": found.standard_error}
        left = {"left_after": found.left_after, "affordable": found.affordable}
        show_json({"table": name, "column": column, **price, **sizes, **left, "note": note})
        return
    lines = [_shown_from(found.threshold), _cost(found.credits, found.delta)]
    lines += [("note", note)] if note else []
    left_after = credits_left(found.left_after) if found.affordable else "not affordable"
    show(key_values([*lines, ("left after", left_after)]))


def _show_keys(name: str, found: Keys, left: Fraction, as_json: bool) -> None:
    if as_json:
        show_json(
            {
                "table": name,
                "column": found.column,
                "keys": found.rows(),
                "held_back": found.held_back,
                "held_back_error": found.held_back_error,
                "threshold": found.threshold,
                "credits": found.credits,
                "delta": float(found.delta),
                "left": left,
                "receipt_number": found.receipt.seq,
            }
        )
        return
    if found.note:
        print_note(f"note: {found.note}")
    names = [*(found.columns or (found.column,)), "value", "low", "high"]
    names += [f"{figure.name}{end}" for figure in found.figures for end in ("", "_low", "_high")]
    keys = len(found.columns) or 1
    rows = [
        [*(str(row[name]) for name in names[:keys]), *(_figure(row[name]) for name in names[keys:])]
        for row in found.rows()
    ]
    show(table(names, rows))
    around = number_text(round(1.96 * found.held_back_error))
    said = [
        ("held back", f"{number_text(round(found.held_back))} ± {around} {found.counted}"),
        _shown_from(found.threshold),
        _cost(found.credits, found.delta),
    ]
    show(key_values([*said, *_rest(left, found.receipt)]))


@command
def top(
    words: TopWords,
    session: Session,
    places: Places = 1,
    where: Where = None,
    credits: Credits = None,
    key: Key = None,
) -> None:
    """Which declared values have the largest count or total: names only, the largest first."""
    source, rest = session.source_of(words, here=chosen)
    if not rest:
        raise InvalidQuery("want a column with declared values, got none")
    by = question(rest[1:] or ["count"], where, (), None, False, source.schema())
    terms: dict[str, Any] = {"by": by, "k": places, "credits": credits_of(credits), "key": key}
    with session.oracle(source) as oracle:
        with charging(), hinted(where, *rest):
            found = oracle.top(rest[0], **terms)
        left = oracle.remaining
    with stored(found.credits):
        if session.as_json:
            said = {"table": source.name, "column": found.column, "keys": found.keys}
            cost = {"credits": found.credits, "left": left, "receipt_number": found.receipt.seq}
            show_json({**said, "slack": found.slack, "terms": found.terms, **cost})
            return
        if found.note:
            print_note(f"note: {found.note}")
        rows = [(str(place), str(key)) for place, key in enumerate(found.keys, 1)]
        show(table(["place", found.column], rows))
        near = f"none passed over is larger by {number_text(found.slack)} or more, at 95%"
        cost_line = ("cost", credits_text(found.credits))
        show(key_values([("sure of", near), cost_line, *_rest(left, found.receipt)]))


def _figure(value: float) -> str:
    """Whole from a hundred on, else four digits."""
    return number_text(round(value)) if abs(value) >= 100 else f"{value:.4g}"


def _shown_from(threshold: float) -> tuple[str, str]:
    return "shown from", f"a noisy count of {threshold:,.1f} rows"


def _cost(credits: Fraction, delta: Fraction) -> tuple[str, str]:
    extra = f" and a delta of {float(delta):.3g}" if delta else " (nothing new)"
    return "cost", credits_text(credits) + extra


def _rest(left: Fraction, receipt: Any) -> list[tuple[str, str]]:
    return [("left", credits_left(left)), ("receipt", str(receipt.seq))]
