"""The Table page: what can be asked and what is promised, in twenty seconds."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote as quoted
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup

from sulq.account import Account, told_too
from sulq.beliefs.confidence import USUAL_PRIOR, belief_up, worst
from sulq.database import Analyst, Database
from sulq.errors import SulqError
from sulq.formatting import bar_text, credits_word, left_text, ordinal, spelled
from sulq.kernel.schema.columns import Column, Flag, Schema
from sulq.kernel.schema.study import Study
from sulq.server.auth.tokens import Role
from sulq.server.console.ask.page import own_questions
from sulq.server.console.ask.request import plain_price
from sulq.server.console.boards import BoardLine, front_boards
from sulq.server.console.charts import gauge
from sulq.server.console.examples import (
    Relation,
    Starter,
    count_prices,
    everyone,
    name,
    priced_starters,
    relations,
)
from sulq.server.console.framework import Balance, balance_of, fragment
from sulq.server.console.history import asked_title, when_text
from sulq.server.console.labels import kind_text, values_text
from sulq.server.console.related_releases import RelatedRelease, broken, standing
from sulq.server.executor import Anybody
from sulq.server.service import books
from sulq.server.service.session import TableSession, closed

router = APIRouter(include_in_schema=False)
MOST_ANSWERS = 5
NARROW = "\N{NO-BREAK SPACE}"
"""Between a number and its sign, where a line must not end."""
_bars: WeakKeyDictionary[Database, tuple[Schema, dict[tuple[str, str], str]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class ColumnLine:
    name: str
    kind: str
    values: str
    note: str
    public: bool
    bar: str
    meant: bool
    """Whether `kind` is what the owner says that the column is."""


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table, or of one of those of a study."""

    name: str
    said: str
    lines: tuple[ColumnLine, ...]


@dataclass(frozen=True, slots=True)
class AnsweredLine:
    title: str
    number: str
    href: str


@dataclass(frozen=True, slots=True)
class TableView:
    table: str
    lead: str
    asks: bool
    who: str
    who_more: str
    promised: str
    promised_more: str
    left: str
    whole: str
    gauge: Markup
    left_more: str
    columns: tuple[TableColumns, ...]
    per: str
    starters: tuple[tuple[Starter, str], ...]
    answered: tuple[AnsweredLine, ...]
    python: tuple[str, str]
    closed: bool
    front: tuple[BoardLine, ...]
    standing: RelatedRelease


def table_view(session: TableSession) -> TableView:
    """Public facts, prices and the promise; no row is read."""
    database, table = session.database, session.table
    schema, promise = database.schema, database.promise
    purse = balance_of(session)
    asks = session.caller.role != Role.AUDITOR
    unit = schema.each
    account = database.statement()
    promised, promised_more = promised_texts(account, unit)
    left, ended = left_text(purse.left), closed(database)
    found = priced_starters(session.oracle(), table) if asks and not ended else []
    return TableView(
        table=table,
        lead=_lead(database),
        asks=asks,
        who=f"One {unit}",
        who_more=_who(schema, promise.neighbours),
        promised=promised,
        promised_more=promised_more,
        standing=standing(session),
        left=left,
        whole=left_text(purse.whole),
        gauge=gauge(purse.left, purse.whole, f"{left} of {left_text(purse.whole)} credits left"),
        left_more=_ended(database, purse) if ended else _price(database, table),
        columns=tuple(columns_of(database, table)),
        per="Average of everyone, 1 credit" if database.size else "Count, 1 credit",
        starters=tuple((each, f"/t/{table}/ask#q={quoted(each.sql)}") for each in found),
        answered=tuple(answered_lines(session)),
        python=_python(relations(schema, table)[0].name, found),
        closed=ended,
        front=front_boards(session),
    )


def promised_texts(account: Account, unit: str) -> tuple[str, str]:
    """What 40 % can become after everything, in a few words and in full; or what holds instead."""
    clause, instead = broken(account)
    if clause:
        return "No longer as promised", f"{clause} {instead}"
    found = told_too(worst(account.promise), account.statement)
    prior = f"{round(100 * USUAL_PRIOR)}{NARROW}%"
    most = belief_up(found.near[0] if found.near else found.posterior)
    return f"{prior} can become at most {most}{NARROW}%", (
        f"Someone who knows everyone else and is {prior} sure of something about a {unit} will,"
        f" after every answer this table will ever give, be sure of it to at most {found.limits}."
    )


def _lead(database: Database) -> str:
    if database.size is None:
        return f"How many {database.schema.who} there are is not public."
    schema = database.schema
    if isinstance(schema, Study):
        return f"{spelled(database.size, 0)} {schema.who}; tables {', '.join(schema.names)}."
    columns = len(schema.columns)
    return f"{spelled(database.size, 0)} {schema.who}, {columns} columns{_version(database)}."


def _version(database: Database) -> str:
    """Which version of the data this is, where there were others."""
    grown = database.statement().statement.grown
    if not grown:
        return ""
    return f"; version {len(grown) + 1} of the data, since {when_text(grown[-1].at, clock=False)}"


def _who(schema: Schema, neighbours: str) -> str:
    public = [column.name for column in schema.columns if column.public]
    if schema.unit == "row":
        first = "Each row is protected by itself."
    elif isinstance(schema, Study):
        first = f"All rows of a person in {', '.join(schema.names)} are protected together."
    else:
        rows = "row counts" if schema.max_rows == 1 else f"{schema.max_rows} rows count"
        first = f"A person may have several rows; at most {rows}."
    if neighbours == "add-remove":
        return f"{first} Whether a {schema.each} is there at all is protected too."
    if public:
        named = " and ".join(public[:2]) + (" and more" if len(public) > 2 else "")
        return f"{first} What {named} says, and how many rows there are, is public."
    return f"{first} How many there are is public."


def _ended(database: Database, purse: Balance) -> str:
    """What is said in place of a price once nothing new can be asked."""
    found = database.statement().statement.closed
    if found is None:
        return "All is spent: the table is closed for good."
    why = f" Reason: {found.reason}." if found.reason else ""
    left, whole = left_text(purse.left), left_text(purse.whole)
    return f"The owner closed it for good; {left} of {whole} credits were never spent.{why}"


def _price(database: Database, table: str) -> str:
    """What a count costs and how far it may be off, from its own quote."""
    whom, rows = count_prices(database, table)
    schema = database.schema
    bar = f"±{NARROW}{bar_text(database.calibration.unit_bar)}"
    end = " At 0 the table closes for good."
    if isinstance(schema, Study):
        found = (
            f"one of {event.name} {credits_word(plain_price(database, quote))}"
            for event in schema.tables
            for quote in [database.quote_sql(f"SELECT COUNT(*) FROM {name(event.name)}")]  # noqa: S608 - ours
        )
        return (
            f"One count of persons costs {credits_word(whom)} and comes back {bar};"
            f" {', '.join(found)}.{end}"
        )
    if schema.unit == "row":
        return f"One count costs {credits_word(whom)} and comes back {bar}.{end}"
    return (
        f"One count of persons costs {credits_word(whom)} and comes back {bar}; one of rows costs"
        f" {credits_word(rows)}.{end}"
    )


def columns_of(database: Database, table: str) -> list[TableColumns]:
    """The columns of the table; of a study, table by table."""
    found = relations(database.schema, table)
    held = _bars.get(database)
    if held is None or held[0] is not database.schema:
        bars = {
            (each.name, column.name): _bar(database, table, each, column)
            for each in found
            for column in each.columns
        }
        held = (database.schema, bars)
        _bars[database] = held
    named = len(found) > 1
    return [
        TableColumns(
            each.name if named else "",
            each.said,
            tuple(_line(column, held[1][each.name, column.name]) for column in each.columns),
        )
        for each in found
    ]


def _line(column: Column, bar: str) -> ColumnLine:
    high = getattr(column, "high", None)
    beyond = isinstance(high, int | float) and not column.public
    return ColumnLine(
        name=column.name,
        kind=column.about or kind_text(column),
        meant=bool(column.about),
        values=values_text(column),
        note=f"(more counts as {spelled(float(high), None)})" if beyond and high else "",
        public=column.public,
        bar=bar,
    )


def _bar(database: Database | Analyst, table: str, of: Relation, declared: Column) -> str:
    sql, kind = everyone(database, of.name, declared)
    try:
        quote = database.quote_sql(sql, table=table)
        if quote.credits:
            quote = database.quote_sql(sql, table=table, credits=1)
    except SulqError:
        return "cannot be averaged"
    half = next((half for _, half in quote.half_widths), None)
    if half is None:
        return "by its size"
    if half == 0 or declared.public:
        return "exact, free"
    if kind == "group":
        return f"± {bar_text(half)} per group"
    if isinstance(declared, Flag):
        return f"± {bar_text(100 * half)} points"
    return f"± {bar_text(half)}"


def answered_lines(session: TableSession) -> list[AnsweredLine]:
    """The last answers that this caller may read for nothing."""
    found = books.answers(session, max(0, session.database.ledger.head - 200), 100).entries
    if session.caller.role == Role.AUDITOR:  # the entry, never the value
        return []
    mine = {line.number: line.text for line in own_questions(session)}
    kept = session.service.saved.listed(session.shelf())
    titles: dict[str, int] = {}
    for each in found:
        number = int(each["seq"])
        if number in kept and kept[number].first != number:
            continue
        titles[mine.get(ordinal(number)) or asked_title(str(each["question_text"]))] = number
    newest = sorted(titles.items(), key=lambda each: -each[1])[:MOST_ANSWERS]
    return [AnsweredLine(title, ordinal(n), f"/t/{session.table}/a/{n}") for title, n in newest]


def _python(asked: str, found: list[Starter]) -> tuple[str, str]:
    picked = found[1] if len(found) > 1 else found[0] if found else None
    sql = " ".join(picked.sql.split()) if picked else f"SELECT COUNT(*) FROM {name(asked)}"  # noqa: S608 - for a person to read
    said = f"   # {picked.price}, {picked.bar}" if picked else ""
    return sql.replace('"', '\\"'), said


@router.get("/console/{table}/table")
async def table_page(request: Request, session: Anybody) -> Response:
    return await fragment(request, "table.html", table_view, session)
