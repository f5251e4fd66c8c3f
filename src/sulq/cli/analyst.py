"""The analyst's commands: what would it cost, and what is the answer."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sulq.cli.columns import columns
from sulq.cli.options import (
    Ca,
    Confidence,
    Credits,
    Key,
    Name,
    Receipts,
    Rows,
    TokenFile,
    Url,
    Where,
    Within,
)
from sulq.cli.screen import (
    POLICY,
    Json,
    Policy,
    charging,
    credits_text,
    facts,
    guarded,
    moment_text,
    number_text,
    percent,
    show,
    show_json,
    stored,
    table,
    talk,
)
from sulq.cli.spelling import typed

if TYPE_CHECKING:
    from fractions import Fraction

    from sulq.cli.far import Source
    from sulq.client.values import ExactQuote as FarExactQuote
    from sulq.database.exactly import ExactQuote
    from sulq.oracle import Answer, Quote

Words = Annotated[
    list[str],
    typer.Argument(
        metavar='"SELECT ..." | [TABLE] STATISTIC [VALUE]',
        help="A SELECT; or count, total, mean, variance, histogram, cdf or quantiles, and what"
        " of: a column or a row expression in SQL spelling.",
        show_default=False,
    ),
]
Edges = Annotated[
    list[str] | None, typer.Option(help="Cell edges: 0,18,65,120 or age=0,18,65,120.")
]
Shares = Annotated[str | None, typer.Option(help="Shares for quantiles: 0.25,0.5,0.75.")]
Other = Annotated[bool, typer.Option("--other", help="A cell for missing and undeclared values.")]
Exact = Annotated[
    bool,
    typer.Option("--exact", help="Without noise, if the owner's assumptions certify it."),
]
Lookup = Annotated[
    list[str] | None, typer.Option(help="A public table to join in SQL: regions=regions.csv.")
]
SQL = (["SELECT"], ["WITH"], ["EXPLAIN"])


def register(app: typer.Typer, role: str) -> None:
    app.command(rich_help_panel=role)(columns)
    app.command(rich_help_panel=role)(quote)
    app.command(rich_help_panel=role)(ask)


@guarded
def quote(
    words: Words,
    where: Where = None,
    within: Within = None,
    confidence: Confidence = 0.95,
    credits: Credits = None,
    rows: Rows = None,
    edges: Edges = None,
    shares: Shares = None,
    other: Other = False,
    analyst: Name = None,
    exact: Exact = False,
    lookup: Lookup = None,
    url: Url = None,
    token_file: TokenFile = None,
    ca: Ca = None,
    policy: Policy = POLICY,
    as_json: Json = False,
) -> None:
    """What a question would cost and how exact it would be. Free: no row is read."""
    from sulq.cli.far import asker, far_table, is_out, not_out, quoted_exactly, source_of
    from sulq.cli.questions import check_terms, credits_of, edges_note, hinted, question

    check_terms(within, confidence, credits, rows)

    if _is_sql(words):
        from sulq.cli.sql import quote_statement

        unused = _unused(where, within, edges, shares, other, exact)
        asked_at = policy if url is None else far_table(url, token_file, ca)
        quote_statement(
            asked_at, words, analyst, as_json, lookup or (), unused,
            confidence=confidence, credits=credits_of(credits), rows=rows,
        )  # fmt: skip
        return
    source, rest = source_of(policy, words, url, token_file, ca)
    schema = source.schema()
    asked = question(rest, where, edges or (), shares, other, schema)
    slip = edges_note(rest, edges or (), other, schema)
    if exact:
        _check_exact(source, (within, credits, rows))
        with hinted(where, *rest):
            _show_exact_quote(source.name, quoted_exactly(source, asked), as_json)
        return
    with asker(source, analyst, prices=True) as oracle, hinted(where, *rest):
        found = oracle.quote(
            asked, within=within, confidence=confidence, credits=credits_of(credits), rows=rows
        )
    if as_json:
        show_json(
            {
                **_quote_json(source.name, asked.kind, found, confidence),
                "note": _both(found, slip),
                "published": is_out(source),
            }
        )
        return
    show(facts([*_quote_lines(found, confidence, _both(found, slip)), *not_out(source)]))


def _is_sql(words: list[str]) -> bool:
    return any(word.upper().split()[:1] in SQL for word in words[:2])


def _unused(*given: object) -> dict[str, object]:
    names = ("--where", "--within", "--edges", "--shares", "--other", "--exact")
    return dict(zip(names, given, strict=True))


def _show_exact_quote(name: str, found: ExactQuote | FarExactQuote, as_json: bool) -> None:
    from dataclasses import asdict

    if as_json:
        show_json({"table": name, **asdict(found)})
        return
    print(found)
    if found.terms:
        talk(found.terms)


def _quote_json(name: str, kind: str, found: Quote, confidence: float) -> dict[str, Any]:
    return {
        "table": name,
        "statistic": kind,
        "credits": found.credits,
        "left_after": found.left_after,
        "affordable": found.affordable,
        "repeat": found.repeat,
        "standard_error": found.standard_error,
        "half_width": found.interval(confidence)[1],
        "confidence": confidence,
    }


def _both(found: Quote | Answer, slip: str) -> str:
    return "; ".join(filter(None, (found.note, slip)))


def _quote_lines(found: Quote, confidence: float, note: str) -> list[tuple[str, str]]:
    cost = credits_text(found.credits)
    if found.repeat:
        cost += ", because this answer is stored already"
    lines = [("cost", cost)]
    half = found.interval(confidence)[1]
    if half is not None:
        widest = float(half.max()) if hasattr(half, "max") else float(half)
        each = " or less, each" if hasattr(half, "max") and half.size > 1 else ""
        lines.append((f"{percent(confidence)} bar", f"± {number_text(widest)}{each}"))
    if note:
        lines.append(("note", typed(note)))
    left = credits_text(found.left_after) if found.affordable else "not affordable"
    return [*lines, ("left after", left)]


@guarded
def ask(
    words: Words,
    where: Where = None,
    within: Within = None,
    confidence: Confidence = 0.95,
    credits: Credits = None,
    rows: Rows = None,
    edges: Edges = None,
    shares: Shares = None,
    other: Other = False,
    analyst: Name = None,
    key: Key = None,
    exact: Exact = False,
    lookup: Lookup = None,
    receipts: Receipts = None,
    url: Url = None,
    token_file: TokenFile = None,
    ca: Ca = None,
    policy: Policy = POLICY,
    as_json: Json = False,
) -> None:
    """Ask a question. It is charged before a row is read.

    A repeat costs the table nothing; an analyst's own share pays once for each answer it gets.
    """
    from sulq.cli.far import asker, far_table, source_of
    from sulq.cli.questions import (
        check_terms,
        credits_of,
        edges_note,
        hinted,
        question,
        unit_of_value,
    )

    check_terms(within, confidence, credits, rows)

    if _is_sql(words):
        from sulq.cli.sql import ask_statement

        unused = _unused(where, within, edges, shares, other, exact)
        asked_at = policy if url is None else far_table(url, token_file, ca)
        ask_statement(
            asked_at, words, analyst, as_json, lookup or (), unused, receipts,
            confidence=confidence, credits=credits_of(credits), rows=rows, key=key,
        )  # fmt: skip
        return
    source, rest = source_of(policy, words, url, token_file, ca)
    schema = source.schema()
    asked = question(rest, where, edges or (), shares, other, schema)
    if exact:
        _check_exact(source, (within, credits, rows, key))
    slip = edges_note(rest, edges or (), other, schema)
    unit = unit_of_value(rest, schema)
    if receipts is not None:
        receipts.open("a").close()  # found out before the charge
    with ExitStack() as told:
        with asker(source, analyst) as oracle:
            with charging(), hinted(where, *rest):
                if exact:
                    found = oracle.ask_exactly(asked)[0]
                else:
                    found = oracle.ask(
                        asked,
                        within=within,
                        confidence=confidence,
                        credits=credits_of(credits),
                        rows=rows,
                        key=key,
                    )
            told.enter_context(stored(found.credits))
            left = oracle.remaining
        if receipts is not None and found.receipt is not None:
            with receipts.open("a", encoding="utf-8") as file:
                file.write(found.receipt.to_json() + "\n")
            talk(f"receipt {found.receipt.seq} appended to {receipts}")
        if as_json:
            read = _answer_json(source.name, found, confidence)
            dates = {} if unit == "number" else _dates_json(found, confidence, unit)
            show_json({**read, **dates, "left": left, "note": _both(found, slip)})
        else:
            if _both(found, slip):
                talk(f"note: {_both(found, slip)}")
            _show_answer(found, confidence, left, unit)


def _check_exact(source: Source, unused: tuple[object, ...]) -> None:
    """Refused before anything is published."""
    from sulq.database.exactly import OFF
    from sulq.errors import InvalidQuery, UnsafeExactly

    if any(option is not None for option in unused):
        raise InvalidQuery("--exact takes no --within, --credits, --rows or --key: it has no noise")
    if source.exact is None:
        raise UnsafeExactly(OFF)


def _show_answer(found: Answer, confidence: float, left: Fraction, unit: str) -> None:
    from sulq.oracle import PRIVATE

    free = " (nothing new)" if found.guarantee == PRIVATE else ""
    cost = [
        ("cost", credits_text(found.credits) + ("" if found.credits else free)),
        ("left", credits_text(left)),
        ("receipt", "none" if found.receipt is None else str(found.receipt.seq)),
    ]
    if found.terms:
        cost.append(("guarantee", found.terms))
    if found.keys:
        show(_cells(found, confidence, unit))
        show(facts(cost))
        return
    low, high = found.interval(confidence)
    value = [
        (found.kind, moment_text(found.value, unit)),
        (
            f"{percent(confidence)} interval",
            f"{moment_text(low, unit)} to {moment_text(high, unit)}",
        ),
    ]
    show(facts(value + cost))


def _answer_json(name: str, found: Answer, confidence: float) -> dict[str, Any]:
    import json

    low, high = found.interval(confidence)
    return {
        "table": name,
        "statistic": found.kind,
        "value": found.value,
        "low": low,
        "high": high,
        "confidence": confidence,
        "standard_error": found.standard_error,
        "keys": found.keys,
        "axes": found.axes,
        "credits": found.credits,
        "guarantee": found.guarantee,
        "terms": found.terms,
        "receipt_number": found.receipt and found.receipt.seq,
        "receipt": found.receipt and json.loads(found.receipt.to_json()),
    }


def _dates_json(found: Answer, confidence: float, unit: str) -> dict[str, Any]:
    """The numbers of value, low and high once more, as dates."""
    rows = found.rows(confidence)
    dates = {
        name: [moment_text(row[name], unit) for row in rows] for name in ("value", "low", "high")
    }
    return {"date": dates if found.keys else {name: text[0] for name, text in dates.items()}}


def _cells(found: Answer, confidence: float, unit: str) -> Any:
    records = found.rows(confidence)
    names = list(records[0])
    heads = {"quantiles": ["share"], "cdf": [f"{names[0]} below"]}.get(found.kind, names[:1])
    counts = found.kind in ("histogram", "cdf")
    rows = [
        [
            moment_text(record[name], unit)
            if unit != "number" and name in ("value", "low", "high")
            else _cell(record[name], counts)
            for name in names
        ]
        for record in records
    ]
    return table(heads + names[1:], rows)


def _cell(value: object, count: bool) -> str:
    if isinstance(value, tuple):
        return " to ".join(number_text(part) for part in value)
    if count and isinstance(value, float):
        value = round(value)
    return "(other)" if value is None else number_text(value)
