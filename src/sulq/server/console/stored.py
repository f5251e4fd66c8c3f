"""A stored answer at its own address, /t/people/a/25: read again from the ledger, never asked anew.

An answer opens for who was told it, and for the owner. For anybody else it is as one that is not
there. Opening it charges nothing, writes nothing and reads no row.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import quote as quoted

import numpy as np
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import Field

from sulq.answers.oracle import Answer
from sulq.database import Analyst, Database
from sulq.errors import SulqError
from sulq.formatting import credits_word, ordinal, sheet_text
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.query.sql_text import question_text
from sulq.kernel.query.sum_query import SumQuery
from sulq.server.address import base_of
from sulq.server.auth.tokens import Role
from sulq.server.boards import Entry
from sulq.server.console.ask.answer import AnswerView, answer_view
from sulq.server.console.ask.answer_files import XLSX, workbook
from sulq.server.console.ask.cells import answer_cell
from sulq.server.console.ask.page import python_text, titled
from sulq.server.console.ask.request import AskRequest, PricedStatement
from sulq.server.console.framework import Form, fragment, problem_card
from sulq.server.console.history import Event, history, when_text
from sulq.server.console.labels import key_text, restated, shape_of
from sulq.server.errors import HttpProblem, not_found
from sulq.server.executor import Asker, run_free
from sulq.server.saved_answers import SavedAnswer
from sulq.server.service.catalog import id_of
from sulq.server.service.session import TableSession
from sulq.sql.evaluate.result import Result
from sulq.wire import SqlBody, sql_reply

router = APIRouter(include_in_schema=False)
Number = Annotated[int, Path(ge=1, le=2**62)]
FileKind = Literal["csv", "svg", "xlsx"]
MOST_CELLS = 500
"""Cells that are shown of a question that was not asked in SQL."""


class DescribeForm(Form):
    """What somebody writes on an answer of theirs."""

    name: Annotated[str, Field(max_length=120)] = ""
    note: Annotated[str, Field(max_length=4_000)] = ""
    pinned: str = ""


@dataclass(frozen=True, slots=True)
class WordsView:
    """Name, note and pin, in their form."""

    table: str
    number: int
    title: str
    name: str
    note: str
    pinned: bool
    saved: bool = False


@dataclass(frozen=True, slots=True)
class PlainCells:
    """A question that was not asked in SQL: its sums, as the answers so far say."""

    heads: tuple[str, ...]
    figures: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[Any, ...]], ...]


@dataclass(frozen=True, slots=True)
class StoredView:
    table: str
    number: str
    words: WordsView
    about: str
    sql: str
    edit: str
    answer: AnswerView | None
    cells: PlainCells | None
    why_not: str = ""
    sharing: SharingView | None = None


@dataclass(frozen=True, slots=True)
class SharingView:
    """Who else may read an answer, and the boards that it can be put on."""

    table: str
    number: int
    mine: bool
    shares: bool
    readers: tuple[str, ...]
    boards: tuple[tuple[str, str], ...]
    saved: str = ""


class ShareForm(Form):
    """An account's name, as it is typed."""

    reader: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^*\x00-\x1f]+$")]


class PinForm(Form):
    """A board; empty for a new one."""

    board: Annotated[str, Field(max_length=12, pattern=r"^[0-9a-f]*$")] = ""


def told_entry(session: TableSession, number: int) -> Event:
    """Return the entry, if its answer was told to the caller or shared with them, or if the caller
    is the owner."""
    events, answered = history(session.database)
    event = events[number - 1] if number <= len(events) else None
    told = event is not None and event.asked and (event.kind != "charge" or number in answered)
    teller, hash_ = ("", "") if event is None else (event.analyst, event.hash)
    entry, me = Entry(id_of(session.database), number, hash_), session.account
    let = session.service.boards.lets(entry, teller, me) and session.shares  # looked up for all
    mine = session.caller.role == Role.OWNER or teller == me or let
    if event is None or event.seq != number or not told or not mine:
        raise not_found("there is no answer of this number for this token")
    return event


def stored_view(session: TableSession, number: int, base: str) -> StoredView:
    """The answer as it was told. Its numbers come from the ledger."""
    event = told_entry(session, number)
    kept = session.service.saved.find(session.shelf(event.analyst), number)
    own = kept if event.analyst == session.account else None
    database = session.database
    oracle = database if event.analyst == OWNER else database.as_analyst(event.analyst)
    if kept is None or not kept.sql:
        kept = _restated(oracle, session, event, kept)
    asked = None if kept is None or not kept.sql else _asked_again(oracle, session, kept)
    shown = None if asked is None else _shown(asked, session, number, base)
    cells = None if shown is not None else _cells(oracle, event)
    title = titled(event, own or unnamed(kept))
    paid = credits_word(event.credits) if event.credits else "free"
    who = "" if event.analyst == session.account else f", told to {event.analyst}"
    if event.analyst != session.account and session.caller.role != Role.OWNER:
        paid, who = f"by {event.analyst}, who shared it", ""
    sql = "" if kept is None else kept.sql
    why = ""
    if shown is None and cells is None:
        why = "Its numbers cannot be shown here; its receipt stands in the ledger."
    return StoredView(
        table=session.table,
        number=ordinal(number),
        words=words_view(session, number, title, own),
        about=f"Asked {when_text(event.at)}, {paid}{who}. Opening it is free and reads no row.",
        sql=sql,
        edit=f"/t/{session.table}/ask#q={quoted(sql)}" if sql else "",
        answer=shown,
        cells=cells,
        why_not=why,
        sharing=sharing_view(session, event),
    )


def sharing_view(session: TableSession, event: Event, saved: str = "") -> SharingView:
    place, me = id_of(session.database), session.account
    boards = session.service.boards
    return SharingView(
        table=session.table,
        number=event.seq,
        mine=event.analyst == me or session.caller.role == Role.OWNER,
        shares=session.shares,
        readers=tuple(boards.readers(Entry(place, event.seq, event.hash), me)),
        boards=tuple((b.board, b.title) for b in boards.listed(place, me) if b.account == me),
        saved=saved,
    )


def shared_view(session: TableSession, number: int, form: ShareForm, *, give: bool) -> SharingView:
    """Share an answer of one's own, or take it back. Whether there is such an account is not told,
    for the list of accounts is the owner's."""
    event, given = told_entry(session, number), sharing_name(session, form.reader)
    if not sharing_view(session, event).mine:
        raise not_found("there is no answer of this number that this token may share")
    boards = session.service.boards
    act = boards.share if give else boards.take_back
    act(Entry(id_of(session.database), number, event.hash), session.account, given)
    said = f"Shared with {given}." if give else f"No longer shared with {given}."
    return sharing_view(session, event, said)


def sharing_name(session: TableSession, reader: str) -> str:
    """The account that something is shared with, where the policy lets it be shared."""
    if not session.shares:
        raise HttpProblem(
            403,
            "not_allowed",
            "answers of this table are not shared",
            "its owner may write sharing = true into the policy and start the server again",
        )
    given = " ".join(reader.split())
    if not given:
        raise HttpProblem(422, "invalid_query", "name an account to share with", "type its name")
    return given


def pinned_to(session: TableSession, number: int, form: PinForm) -> str:
    """Put an answer on a board of one's own; return where that is."""
    event = told_entry(session, number)
    boards, place = session.service.boards, id_of(session.database)
    board = form.board or boards.create(place, session.account, "A new board") or ""
    found = boards.find(place, board)
    if found is None or found.account != session.account:
        raise not_found("there is no board of this name for this token")
    if not boards.add(place, board, Entry(place, number, event.hash)):
        raise HttpProblem(
            422, "too_large", "this board is full", "take something off it, or make another one"
        )
    return f"/t/{session.table}/board/{board}"


def unnamed(kept: SavedAnswer | None) -> SavedAnswer | None:
    """Return what others may see of what an account keeps: names and notes are its writer's."""
    return None if kept is None else replace(kept, name="", note="", pinned=False)


def words_view(
    session: TableSession, number: int, title: str, kept: SavedAnswer | None, *, saved: bool = False
) -> WordsView:
    name, note, pinned = ("", "", False) if kept is None else (kept.name, kept.note, kept.pinned)
    return WordsView(session.table, number, title, name, note, pinned, saved)


def _restated(
    oracle: Database | Analyst, session: TableSession, event: Event, kept: SavedAnswer | None
) -> SavedAnswer | None:
    """The statement whose only question is the one of this entry, with what the entry paid; what is
    kept where there is none."""
    database, table = session.database, session.table
    sql = restated(event.question, table)
    if not sql:
        return kept
    found = kept or SavedAnswer(event.seq, event.seq)
    paid = event.share or event.credits or None
    try:
        asked = oracle.quote_sql(sql, table=table).plan.questions
        stored = SumQuery.from_json(json.loads(event.question))
        if [database.bind(one).digest for one in asked] != [database.bind(stored).digest]:
            return kept
    except (SulqError, ValueError):
        return kept
    return replace(found, sql=sql, credits=paid)


def _asked_again(
    oracle: Database | Analyst, session: TableSession, kept: SavedAnswer
) -> tuple[PricedStatement, Result] | None:
    """The stored answer of a statement; None where it could not be read for nothing."""
    terms: dict[str, Any] = {"table": session.table, "credits": kept.credits, "rows": kept.rows}
    try:
        quote = oracle.quote_sql(kept.sql, **terms)
        if quote.credits or not quote.repeat:  # never ask anew
            return None
        result = oracle.sql(kept.sql, **terms)
    except SulqError:
        return None
    shape = shape_of(quote.plan.select, oracle.schema)
    wish = AskRequest(kept.sql, rows=kept.rows)
    found = PricedStatement(wish, oracle, session.table, quote, shape, kept.credits, kept.rows)
    return found, result


def told_result(session: TableSession, number: int) -> tuple[PricedStatement, Result]:
    """The numbers of an answer that the caller may open, and what they were asked by."""
    event = told_entry(session, number)
    database = session.database
    oracle = database if event.analyst == OWNER else database.as_analyst(event.analyst)
    kept = session.service.saved.find(session.shelf(event.analyst), number)
    if kept is None or not kept.sql:
        kept = _restated(oracle, session, event, kept)
    found = None if kept is None or not kept.sql else _asked_again(oracle, session, kept)
    if found is None:
        raise HttpProblem(
            422,
            "invalid_query",
            "this answer is not one of a statement, and cannot be compared or saved here",
            "its numbers stand on its page",
        )
    return found


def _shown(
    asked: tuple[PricedStatement, Result], session: TableSession, number: int, base: str
) -> AnswerView:
    """An answer of before as the page shows it: nothing is paid."""
    found, result = asked
    sent = SqlBody(sql=found.wish.sql, credits=found.credits, rows=found.rows)
    reply = sql_reply(result).model_copy(update={"credits": 0.0, "credits_exact": Fraction(0)})
    view = answer_view(found, result, reply, python_text(base, session.table, sent))
    view = replace(view, receipts=tuple((seq, ordinal(seq)) for seq in reply.receipts))
    return replace(view.at(session.table, number), address="")


def file_of(
    session: TableSession, number: int, kind: FileKind, figure: int, base: str
) -> tuple[str | bytes, str]:
    """An answer as a file, and what kind of file that is."""
    title = stored_view(session, number, base).words.title
    shown = _shown(told_result(session, number), session, number, base)
    if kind == "csv":
        return shown.csv, "text/csv"
    if kind == "xlsx":
        told = [("Question", title), ("SQL", shown.sql), ("Answer", shown.say)]
        told += [("Cite as", shown.citation), *shown.meaning]
        made = [[name, sheet_text(" ".join(text.split()))] for name, text in told]
        return workbook([("Answer", shown.sheet), ("How it was made", made)]), XLSX
    chart = shown.drawn[figure].chart if figure < len(shown.drawn) else None
    if chart is None:
        raise not_found("this answer has no such chart")
    return chart.file(title, [shown.citation]), "image/svg+xml"


def _cells(oracle: Database | Analyst, event: Event) -> PlainCells | None:
    """The sums of a question that was not asked in SQL here, as the asker's answers say them."""
    try:
        query = SumQuery.from_json(json.loads(event.question))
        answer = oracle.known(query)
    except (SulqError, ValueError):
        return None
    if answer is None or answer.bound is None or answer.bound.outer is not None:
        return None
    return plain_cells(answer, event.question)


def plain_cells(answer: Answer, question: str) -> PlainCells | None:
    bound = answer.bound
    if bound is None or bound.cells > MOST_CELLS:
        return None
    terms = _terms(question_text(question), len(bound.terms))
    values = np.asarray(answer.value, dtype=np.float64).reshape(bound.cells, -1)
    low, high = (
        np.asarray(end, dtype=np.float64).reshape(bound.cells, -1) for end in answer.interval(0.95)
    )
    if values.shape[1] != len(terms):
        return None
    rows = []
    for at, keys in enumerate(np.ndindex(*bound.shape)):
        named = tuple(key_text(group.keys[k]) for group, k in zip(bound.groups, keys, strict=True))
        cells = tuple(
            answer_cell(values[at, term], low[at, term], high[at, term])
            for term in range(len(terms))
        )
        rows.append((named, cells))
    return PlainCells(tuple(group.name for group in bound.groups), terms, tuple(rows))


def _terms(text: str, many: int) -> tuple[str, ...]:
    """What each sum is called: the question's own words, where they can be told apart."""
    head = re.split(r" WHERE | GROUP BY ", text)[0]
    parts = [part.strip() for part in head.split(", ")]
    return tuple(parts) if len(parts) == many else tuple(f"sum {k + 1}" for k in range(many))


def described_view(session: TableSession, number: int, form: DescribeForm) -> WordsView:
    """Keep what was written; on one's own answers alone."""
    event = told_entry(session, number)
    if event.analyst != session.account:
        raise not_found("there is no answer of this number for this token")
    saved, shelf = session.service.saved, session.shelf()
    name, note = " ".join(form.name.split()), form.note.strip()
    saved.describe(shelf, number, name, note, pinned=bool(form.pinned))
    kept = saved.find(shelf, number)
    return words_view(session, number, titled(event, kept), kept, saved=True)


@router.get("/console/{table}/a/{number}")
async def stored(request: Request, session: Asker, number: Number) -> Response:
    given = (session, number, base_of(request))
    return await fragment(request, "stored.html", stored_view, *given)


@router.post("/console/{table}/a/{number}")
async def describe(
    request: Request, session: Asker, number: Number, form: DescribeForm
) -> Response:
    return await fragment(
        request, "stored_parts.html#described", described_view, session, number, form
    )


@router.get("/console/{table}/a/{number}/file/{kind}")
async def answer_file(
    request: Request,
    session: Asker,
    number: Number,
    kind: FileKind,
    figure: Annotated[int, Query(ge=0, le=60)] = 0,
) -> Response:
    """The answer as a file of the given kind, for who may open it."""
    given = (session, number, kind, figure, base_of(request))
    try:
        body, media = await run_free(request, file_of, *given)
    except HttpProblem as problem:
        return problem_card(problem)
    return Response(body, media_type=media, headers={"Content-Disposition": "attachment"})


@router.post("/console/{table}/a/{number}/share")
async def share(request: Request, session: Asker, number: Number, form: ShareForm) -> Response:
    made = partial(shared_view, session, number, form, give=True)
    return await fragment(request, "stored_parts.html#sharing", made)


@router.post("/console/{table}/a/{number}/unshare")
async def unshare(request: Request, session: Asker, number: Number, form: ShareForm) -> Response:
    made = partial(shared_view, session, number, form, give=False)
    return await fragment(request, "stored_parts.html#sharing", made)


@router.post("/console/{table}/a/{number}/board")
async def pin(request: Request, session: Asker, number: Number, form: PinForm) -> Response:
    return await fragment(request, "parts.html#go", pinned_to, session, number, form)
