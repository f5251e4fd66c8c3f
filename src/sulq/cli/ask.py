"""The analyst's commands: what would it cost, and what is the answer."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sulq.cli.context import (
    Key,
    ReadSession,
    Receipts,
    Session,
    Source,
    Terms,
    Where,
    append_receipts,
    check_receipts,
    command,
    is_out,
    not_out,
    quoted_exactly,
)
from sulq.cli.output import (
    charging,
    key_values,
    moment_text,
    number_text,
    percent,
    print_note,
    show,
    show_json,
    stored,
    table,
)
from sulq.cli.question_text import FORMS, edges_note, hinted, question, unit_of_value
from sulq.errors import InvalidQuery
from sulq.formatting import credits_left, credits_text
from sulq.policy import StudyPolicy, TablePolicy, read_policy
from sulq.sql.api import SqlQuote, ask_sql, quote_sql
from sulq.sql.evaluate.linear_forms import Estimate
from sulq.sql.evaluate.result import Result
from sulq.sql.parse.grammar import explains
from sulq.sql.parse.statement import table_of

if TYPE_CHECKING:
    from fractions import Fraction

    from sulq.answers.oracle import Answer, Quote
    from sulq.client.values import RemoteExactQuote
    from sulq.database.exact import ExactQuote
    from sulq.kernel.schema.columns import Column
    from sulq.kernel.schema.study import EventTable


@command
def columns(
    session: ReadSession,
    name: Annotated[str | None, typer.Argument(metavar="[TABLE]", show_default=False)] = None,
) -> None:
    """What may be asked about: the columns, their bounds or values, and what is public."""
    from sulq.kernel.schema.study import Study

    source = session.source(name)
    schema = source.schema()
    found = [_column_facts(column, source.unit) for column in schema.columns]
    events = {one.name: one for one in schema.tables} if isinstance(schema, Study) else {}
    held = {
        called: [_column_facts(column, source.unit) for column in one.columns]
        for called, one in events.items()
    }
    if session.as_json:
        told: dict[str, Any] = {"table": source.name, "unit": source.unit, "columns": found}
        if isinstance(schema, Study):
            told |= {"person_table": schema.name, "tables": {schema.name: found, **held}}
        show_json(told)
        return
    if isinstance(schema, Study):
        print(f"{schema.name}: one row for each person ({schema.unit})")
    _show_columns(found)
    for called, one in events.items():
        print()
        whose = one.person or source.unit
        print(f"{called}: any number of rows for each person ({whose}), {_kept_rows(one)}")
        _show_columns(held[called])


def _kept_rows(event: EventTable) -> str:
    """Which rows of a person count where."""
    which = "" if event.by is None else f", the {event.keep} by {event.by},"
    return (
        f"{event.max_rows:,}{which} count in sums over rows, up to {event.ceiling:,} in values of a"
        " person"
    )


def _show_columns(found: list[dict[str, Any]]) -> None:
    drawn = table(
        ("column", "kind", "bounds or values", "public", "otherwise"),
        [
            (
                line["name"],
                line["kind"],
                _known(line),
                "yes" if line["public"] else "no",
                line["otherwise"],
            )
            for line in found
        ],
    )
    for column in drawn.columns:
        column.justify = "left"
    show(drawn)


def _known(line: dict[str, Any]) -> str:
    if "low" in line:
        step = "" if line["step"] is None else f", step {number_text(line['step'])}"
        return f"{number_text(line['low'])} to {number_text(line['high'])}{step}"
    return ", ".join(map(str, line["values"] or ()))


def _column_facts(column: Column, unit: str) -> dict[str, Any]:
    """The public facts of a column. Where persons are protected, no column is public."""
    from sulq.kernel.schema.columns import Category, Number

    common = {"name": column.name, "public": column.public and unit == "row"}
    if isinstance(column, Number):
        bounds = {"low": column.low, "high": column.high, "step": column.step}
        rule = "outside: moved to the bound; missing or NaN: NULL"
        return {**common, "kind": column.kind, **bounds, "otherwise": rule}
    if isinstance(column, Category):
        kind = "whole" if column.whole else "text" if column.values is None else "category"
        rule = "undeclared: in --other only; missing: NULL"
        rule = rule if kind == "category" else "missing: NULL"
        return {**common, "kind": kind, "values": column.values, "otherwise": rule}
    rule = "neither true nor false: NULL"
    return {**common, "kind": "flag", "values": [False, True], "otherwise": rule}


# `sulq columns`: what may be asked about.


Words = Annotated[
    list[str],
    typer.Argument(
        metavar='"SELECT ..." | [TABLE] STATISTIC [VALUE]',
        help=f"A SELECT; or a statistic ({', '.join(FORMS)}) and what of: columns or row"
        " expressions in SQL spelling.",
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
DialectName = Annotated[
    str | None,
    typer.Option(
        "--dialect",
        help="How a SELECT is written: postgres, snowflake, bigquery, duckdb, mysql,"
        " tsql or spark.",
        show_default="postgres",
    ),
]
Param = Annotated[
    list[str] | None,
    typer.Option(help="A value of a SELECT's ? or $1, in order; of its :name, as name=value."),
]
SQL = (["SELECT"], ["WITH"], ["EXPLAIN"])


@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """What is asked beside the statistic: of which rows, in which cells, with or without noise."""

    where: Where = None
    edges: Edges = None
    shares: Shares = None
    other: Other = False
    exact: Exact = False
    lookup: Lookup = None
    dialect: DialectName = None
    param: Param = None


@command
def quote(words: Words, session: Session, terms: Terms, shape: QuestionOptions) -> None:
    """What a question would cost and how exact it would be. Free: no row is read."""
    if _is_sql(words):
        _quote_statement(session, words, terms, shape)
        return
    source, rest = session.source_of(words)
    schema = source.schema()
    edges = shape.edges or ()
    asked = question(rest, shape.where, edges, shape.shares, shape.other, schema)
    slip = edges_note(rest, edges, shape.other, schema)
    if shape.exact:
        _check_exact(source, terms)
        with hinted(shape.where, *rest):
            _show_exact_quote(source.name, quoted_exactly(source, asked), session.as_json)
        return
    with session.oracle(source, prices=True) as oracle, hinted(shape.where, *rest):
        found = oracle.quote(asked, **terms.arguments())
    if session.as_json:
        show_json(
            {
                **_quote_json(source.name, asked.kind, found, terms.confidence),
                "note": _both(found, slip),
                "published": is_out(source),
            }
        )
        return
    lines = _quote_lines(found, terms.confidence, _both(found, slip))
    show(key_values([*lines, *not_out(source)]))


def _is_sql(words: list[str]) -> bool:
    return any(word.upper().split()[:1] in SQL for word in words[:2])


def _show_exact_quote(name: str, found: ExactQuote | RemoteExactQuote, as_json: bool) -> None:
    if as_json:
        show_json({"table": name, **asdict(found)})
        return
    print(found)
    if found.terms:
        print_note(found.terms)


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
        "span": found.span(confidence),
        "sizes": None if found.sizes is None else asdict(found.sizes),
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
        if found.widest is not None:
            each = f" to {number_text(float(found.span(confidence)[1]))}"
        lines.append((f"{percent(confidence)} bar", f"± {number_text(widest)}{each}"))
    if note:
        lines.append(("note", note))
    left = credits_left(found.left_after) if found.affordable else "not affordable"
    return [*lines, ("left after", left)]


@command
def ask(
    words: Words,
    session: Session,
    terms: Terms,
    shape: QuestionOptions,
    key: Key = None,
    receipts: Receipts = None,
) -> None:
    """Ask a question. It is charged before a row is read.

    A repeat costs the table nothing; an analyst's own share pays once for each answer it gets.
    """
    if _is_sql(words):
        _ask_statement(session, words, terms, shape, key, receipts)
        return
    source, rest = session.source_of(words)
    schema = source.schema()
    edges = shape.edges or ()
    asked = question(rest, shape.where, edges, shape.shares, shape.other, schema)
    if shape.exact:
        _check_exact(source, terms, key)
    slip = edges_note(rest, edges, shape.other, schema)
    unit = unit_of_value(rest, schema)
    check_receipts(receipts)
    with ExitStack() as told:
        with session.oracle(source) as oracle:
            with charging(), hinted(shape.where, *rest):
                if shape.exact:
                    found = oracle.ask_exactly(asked)[0]
                else:
                    found = oracle.ask(asked, key=key, **terms.arguments())
            told.enter_context(stored(found.credits))
            left = oracle.remaining
        append_receipts(receipts, [] if found.receipt is None else [found.receipt])
        note = _both(found, slip)
        if session.as_json:
            read = _answer_json(source.name, found, terms.confidence)
            dates = {} if unit == "number" else _dates_json(found, terms.confidence, unit)
            show_json({**read, **dates, "left": left, "note": note})
            return
        if note:
            print_note(f"note: {note}")
        _show_answer(found, terms.confidence, left, unit)


def _check_exact(source: Source, terms: Terms, key: str | None = None) -> None:
    """Refused before anything is published."""
    from sulq.database.exact import OFF
    from sulq.errors import UnsafeExactly

    if any(option is not None for option in (terms.within, terms.credits, terms.rows, key)):
        raise InvalidQuery("--exact takes no --within, --credits, --rows or --key: it has no noise")
    if source.exact is None:
        raise UnsafeExactly(OFF)


def _show_answer(found: Answer, confidence: float, left: Fraction, unit: str) -> None:
    from sulq.answers.oracle import PRIVATE

    free = " (nothing new)" if found.guarantee == PRIVATE else ""
    cost = [
        ("cost", credits_text(found.credits) + ("" if found.credits else free)),
        ("left", credits_left(left)),
        ("receipt", "none" if found.receipt is None else str(found.receipt.seq)),
    ]
    if found.terms:
        cost.append(("guarantee", found.terms))
    if found.keys:
        show(_cells(found, confidence, unit))
        show(key_values(cost))
        return
    low, high = found.interval(confidence)
    value = [
        (found.kind, moment_text(found.value, unit)),
        (
            f"{percent(confidence)} interval",
            f"{moment_text(low, unit)} to {moment_text(high, unit)}",
        ),
    ]
    show(key_values(value + cost))


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


# `sulq ask "SELECT ..."`: a statement asked, quoted or explained, and its table on the screen.


_STATEMENT = re.compile(r"\s*(SELECT|WITH|EXPLAIN)\b", re.IGNORECASE)


def _source(session: Session, words: Sequence[str], dialect: str | None) -> tuple[Source, str]:
    """The table that FROM names, and the text; behind a server the address names it."""
    first = 0 if _STATEMENT.match(words[0]) else 1
    text = " ".join(words[first:])
    if session.url is not None:
        return session.source(), text
    tables = read_policy(session.policy)
    name = words[0] if first else table_of(text, dialect)
    wanted = "" if name is None else name.casefold()
    found = [known for known in tables if known.casefold() == wanted]
    if not found and not first:  # one that a study has
        found = [known for known, table in tables.items() if _has_table(table, wanted)]
        if len(found) > 1:
            raise InvalidQuery(
                f"{name} is a table of {' and of '.join(found)}: say which before the statement, as"
                f' in `sulq ask {found[0]} "SELECT ..."`'
            )
    if not found:
        raise InvalidQuery(f"no table {name!r:.60}; the policy has {sorted(tables)}")
    return tables[found[0]], text


def _has_table(policy: TablePolicy, name: str) -> bool:
    """Whether a study has a table of this name."""
    tables = policy.tables if isinstance(policy, StudyPolicy) else ()
    return any(table.name.casefold() == name for table in tables)


def _statement_terms(terms: Terms, shape: QuestionOptions) -> dict[str, Any]:
    """Return the options that a statement takes; raise `InvalidQuery` where others are given."""
    values = {
        "--where": shape.where,
        "--within": terms.within,
        "--edges": shape.edges,
        "--shares": shape.shares,
        "--other": shape.other,
        "--exact": shape.exact,
    }
    given = [name for name, value in values.items() if value not in (None, False, [])]
    if given:
        raise InvalidQuery(
            f"a SELECT takes no {', '.join(given)}: write WHERE, GROUP BY, QUANTILE(x, 0.5) or"
            " WITHIN 50 CONFIDENCE 95 in the statement"
        )
    taken = terms.arguments()
    del taken["within"]
    taken |= {"dialect": shape.dialect, "params": _params(shape.param)}
    return taken


def _params(given: Sequence[str] | None) -> list[Any] | dict[str, Any] | None:
    """Return the values of a statement's parameters: in order, or by name where all have one."""
    if not given:
        return None
    named = [re.fullmatch(r"([A-Za-z_]\w*)=(.*)", each, re.DOTALL) for each in given]
    if all(named):
        return {found[1]: _typed([found[2]])[0] for found in named if found is not None}
    return [_typed([each])[0] for each in given]


def _quote_statement(
    session: Session, words: Sequence[str], terms: Terms, shape: QuestionOptions
) -> None:
    """Show what a statement would cost."""
    taken = _statement_terms(terms, shape)
    source, text = _source(session, words, shape.dialect)
    read = _lookups(shape.lookup or ())
    with session.oracle(source, prices=True) as oracle, hinted(text):
        found = quote_sql(oracle, text, table=source.name, lookups=read, **taken)
    if session.as_json:
        show_json(_statement_quote_json(source.name, found) | {"published": is_out(source)})
        return
    for line in found.steps():
        print_note(line)
    bars = [(name, _bar_line(found, name, half)) for name, half in found.half_widths]
    left = credits_left(found.left_after) if found.affordable else "not affordable"
    notes = [("note", note) for note in found.notes]
    level = (f"{percent(found.confidence)} bars", "")
    cost = ("cost", credits_text(found.credits))
    last = [("left after", left), *not_out(source)]
    show(key_values([cost, *([level] if bars else []), *bars, *notes, *last]))


def _bar_line(found: SqlQuote, name: str, half: float | None) -> str:
    """The bar of one figure: a span where nobody knows how many rows match, of a quantile its
    rank."""
    ends = next(((low, high) for each, low, high in found.spans if each == name), None)
    rank = dict(found.ranks).get(name)
    if ends is not None and ends[0] != ends[1]:
        return f"± {number_text(ends[0])} to {number_text(ends[1])}"
    said = "depends on the rows" if half is None else f"± {number_text(half)}"
    if rank is None:
        return said
    many = "" if found.sizes is None else f" of {found.sizes.rows:,}"
    return f"{said}; its rank ± {number_text(rank)}{many} rows"


def _statement_quote_json(name: str, found: SqlQuote) -> dict[str, Any]:
    return {
        "table": name,
        "credits": found.credits,
        "left_after": found.left_after,
        "affordable": found.affordable,
        "questions": len(found.quotes) + (found.keys is not None),
        "half_width": dict(found.half_widths),
        "span": {name: [narrow, wide] for name, narrow, wide in found.spans},
        "sizes": None if found.sizes is None else asdict(found.sizes),
        "rank": dict(found.ranks),
        "confidence": found.confidence,
        "note": found.note,
    }


def _ask_statement(
    session: Session,
    words: Sequence[str],
    terms: Terms,
    shape: QuestionOptions,
    key: str | None,
    receipts: Path | None,
) -> None:
    """Ask a statement and show its table."""
    taken = _statement_terms(terms, shape)
    source, text = _source(session, words, shape.dialect)
    read = _lookups(shape.lookup or ())
    check_receipts(receipts)
    with ExitStack() as told:
        with session.oracle(source, prices=explains(text)) as oracle:
            with charging(), hinted(text):
                found = ask_sql(oracle, text, table=source.name, lookups=read, key=key, **taken)
            told.enter_context(stored(found.credits))
            left = oracle.remaining
        append_receipts(receipts, found.receipts)
        if session.as_json:
            numbers = [receipt.seq for receipt in found.receipts]
            show_json(
                {
                    "table": source.name,
                    "rows": found.records(),
                    "confidence": found.confidence,
                    "credits": found.credits,
                    "receipt_numbers": numbers,
                    "left": left,
                    "notes": found.notes,
                }
            )
            return
        for note in _notes(found):
            print_note(f"note: {note}")
        show(_drawn(found))
        if any(not column.is_key for column in found.columns):
            numbers_text = ", ".join(str(receipt.seq) for receipt in found.receipts) or "none"
            show(
                key_values(
                    [
                        ("cost", credits_text(found.credits)),
                        ("left", credits_left(left)),
                        ("receipts" if len(found.receipts) > 1 else "receipt", numbers_text),
                    ]
                )
            )


def _notes(found: Result) -> list[str]:
    cells = (cell for row in found.rows for cell in row if isinstance(cell, Estimate))
    return list(dict.fromkeys([*found.notes, *(cell.note for cell in cells if cell.note)]))


def _drawn(found: Result) -> Any:
    """Keys, and for each aggregate its value and interval."""
    heads, rows, right = found.texts()
    drawn = table(heads, rows)
    for column, is_number in zip(drawn.columns, right, strict=True):
        column.justify = "right" if is_number else "left"
    return drawn


def _lookups(given: Sequence[str]) -> dict[str, dict[str, list[Any]]]:
    """`regions=regions.csv`: public tables to join."""
    found: dict[str, dict[str, list[Any]]] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or not name:
            raise InvalidQuery(f"--lookup wants NAME=FILE.csv, got {text!r:.60}")
        try:
            with Path(path).open(encoding="utf-8", newline="") as file:
                lines = list(csv.reader(file))
        except FileNotFoundError:
            raise InvalidQuery(
                f"--lookup {name:.60}: there is no file {path!r:.80}; name a CSV file with a head"
            ) from None
        except (OSError, UnicodeDecodeError, csv.Error):
            raise InvalidQuery(f"the lookup {path!r:.80} cannot be read as CSV") from None
        if not lines or any(len(line) != len(lines[0]) for line in lines):
            raise InvalidQuery(f"the lookup {path!r:.80} has no head, or lines of unequal length")
        columns = list(zip(*lines[1:], strict=True)) or [()] * len(lines[0])
        found[name] = {head: _typed(values) for head, values in zip(lines[0], columns, strict=True)}
    return found


def _typed(values: Sequence[str]) -> list[Any]:
    """Whole numbers or decimals if all are; else texts. Empty is NULL."""
    for kind in (int, float):
        try:
            return [kind(value) if value else None for value in values]
        except ValueError:
            continue
    return [value or None for value in values]
