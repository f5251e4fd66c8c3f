"""The Ask page: a statement, its price while it is typed, its answer. Through the same Service."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Literal
from urllib.parse import quote as quote_path

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import Field

from sulq.errors import Reason, SulqError
from sulq.formatting import credits_word, left_text, ordinal
from sulq.kernel.query.sql_text import question_text
from sulq.kernel.schema.columns import Schema
from sulq.server.address import base_of
from sulq.server.console.ask.answer import AnswerView, answer_view
from sulq.server.console.ask.build import BuildView, build_view
from sulq.server.console.ask.quote import QuoteView, asked_view, quote_view
from sulq.server.console.ask.refusal import RefusalView, dear_view, refusal_view
from sulq.server.console.ask.request import AskRequest, PricedStatement, price_statement
from sulq.server.console.examples import Starter, relations, starters
from sulq.server.console.framework import balance_of, fragment, note_of, page, problem_card
from sulq.server.console.history import LEARNING, Event, history
from sulq.server.console.labels import question_title, short_values, statement_title
from sulq.server.errors import HttpProblem, problem_of
from sulq.server.executor import Asker, run_charged, run_free
from sulq.server.idempotency import PreparedRequest
from sulq.server.routes.questions import Key
from sulq.server.saved_answers import SavedAnswer
from sulq.server.service import books
from sulq.server.service.questions import prepare_sql
from sulq.server.service.session import TableSession, closed
from sulq.sql.evaluate.result import Result
from sulq.wire import SqlBody, SqlReply, sql_reply
from sulq.wire.bodies import Body, Exact, Rows, Statement, Within

router = APIRouter(include_in_schema=False)
MOST_QUESTIONS = 5


class WishBody(Body):
    """What the quote bar sends."""

    sql: Statement
    stop: Literal["coarse", "plain", "fine"] = "plain"
    within: Within | None = None
    rows: Rows | None = None

    @property
    def wish(self) -> AskRequest:
        return AskRequest(self.sql, self.stop, self.within, self.rows)


class AskWishBody(WishBody):
    """The same with the price that was seen."""

    max_credits: Annotated[Exact | None, Field()] = None
    dummy: bool = False


@dataclass(frozen=True, slots=True)
class QuestionLine:
    text: str
    price: str
    number: str
    href: str
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class MineView:
    lines: tuple[QuestionLine, ...]
    used: str
    whole: str
    count: int


@dataclass(frozen=True, slots=True)
class RailColumns:
    """What may be inserted: the columns of a table, or of one of those of a study."""

    name: str
    columns: tuple[tuple[str, str, bool, str], ...]


@dataclass(frozen=True, slots=True)
class AskView:
    table: str
    asked: str
    """What FROM says in a question that was built."""
    rail: tuple[RailColumns, ...]
    examples: tuple[Starter, ...]
    mine: MineView
    closed: bool
    build: BuildView


@dataclass(frozen=True, slots=True)
class AnsweredView:
    quote: QuoteView | None
    answer: AnswerView
    mine: MineView | None


@dataclass(frozen=True, slots=True)
class ReceiptView:
    number: str
    lines: tuple[tuple[str, str], ...]
    raw: str


def ask_view(session: TableSession) -> AskView:
    schema = session.oracle().schema
    found = relations(schema, session.table)
    return AskView(
        session.table,
        found[0].name,
        tuple(
            RailColumns(
                each.name if len(found) > 1 else "",
                tuple((c.name, short_values(c), c.public, c.about) for c in each.columns),
            )
            for each in found
        ),
        tuple(starters(schema, session.table)),
        mine_view(session),
        closed(session.database),
        build_view(session.oracle(), session.table),
    )


def mine_view(session: TableSession) -> MineView:
    """The caller's own questions, the last ones first."""
    mine = own_questions(session)
    pinned = [line for line in mine if line.pinned]
    lines = (*pinned, *[line for line in mine if not line.pinned][:MOST_QUESTIONS])
    purse = balance_of(session)
    used = max(purse.own_whole - purse.own_left, Fraction(0))
    whole = left_text(purse.own_whole)
    said = f"{left_text(used)} of {whole} credits used." if purse.shared else ""
    return MineView(lines, said, f"/t/{session.table}/ledger#mine", len(mine))


def own_questions(session: TableSession) -> list[QuestionLine]:
    """The caller's questions by what they asked, the last ones first: a statement is one line, as
    are the steps of a model; a free repeat is none."""
    events, kept = history(session.database)[0], session.service.saved.listed(session.shelf())
    lines: list[QuestionLine] = []
    steps = 0
    for event in reversed(events):
        if not event.asked or event.analyst != session.account or not event.question:
            continue
        own = kept.get(event.seq)
        if event.kind == "repeat" and not event.share and own is None:
            continue
        if own is not None and own.first != event.seq:
            continue
        text = titled(event, own)
        steps = steps + 1 if text == LEARNING else 0
        if steps > 1:
            lines[-1] = replace(lines[-1], text=f"A model, {steps} steps")
            continue
        lines.append(
            QuestionLine(
                text,
                credits_word(event.credits) if event.credits else "free",
                ordinal(event.seq),
                f"/t/{session.table}/a/{event.seq}",
                own is not None and own.pinned,
            )
        )
    return lines


def titled(event: Event, kept: SavedAnswer | None) -> str:
    """What an answer is called: its name, else its statement in words, else its question."""
    if kept is not None and kept.name:
        return kept.name
    return statement_title(kept.sql) if kept is not None and kept.sql else event.title


class Asking:
    """A click on Ask: the statement is priced once, and the result is kept for the page."""

    def __init__(self, session: TableSession, body: AskWishBody, key: str) -> None:
        self.session, self.body, self.key = session, body, key
        self.result: Result | None = None

    @cached_property
    def priced(self) -> PricedStatement:
        return price_statement(self.session.oracle(), self.session.table, self.body.wish)

    @cached_property
    def sent(self) -> SqlBody:
        """What is charged: the very statement, credits and sizes that were quoted."""
        return SqlBody(
            sql=self.body.wish.text,
            credits=self.priced.credits,
            rows=self.priced.rows,
            max_credits=None if self.body.dummy else self.body.max_credits,
            dummy=self.body.dummy,
        )

    def prepare(self) -> PreparedRequest:
        quote = self.priced.quote
        return prepare_sql(self.session, self.sent, self.key, quote=quote, read=self.keep)

    def keep(self, result: Result) -> SqlReply:
        self.result = result
        return sql_reply(result)

    def found(self) -> Result:
        """Return the result of this click; of one that was answered before, the stored one."""
        if self.result is None:
            if self.priced.quote.credits:  # never ask anew: what would cost is not read
                raise HttpProblem(
                    503,
                    "engine_failed",
                    "The stored answer cannot be read just now.",
                    "Ask again with the same button; it is charged once.",
                )
            terms = {"table": self.session.table, "credits": self.sent.credits}
            oracle = self.session.oracle()
            self.result = oracle.sql(self.sent.sql, rows=self.sent.rows, key=self.key, **terms)
        return self.result


def answered_view(asking: Asking, raw: bytes, base: str) -> AnsweredView:
    """The answer with its picture: the result that was charged, and the reply's bytes."""
    session, made_up = asking.session, asking.body.dummy
    reply, found = SqlReply.model_validate_json(raw), asking.priced
    python = python_text(base, session.table, asking.sent)
    shown = answer_view(found, asking.found(), reply, python, made_up=made_up)
    if made_up:
        return AnsweredView(None, shown, None)
    if reply.receipts:
        shown = shown.at(session.table, reply.receipts[0])
    quote = asked_view(found.priced_again(), balance_of(session), shown.bars, shown.unit)
    return AnsweredView(quote, shown, mine_view(session))


def python_text(base: str, table: str, sent: SqlBody) -> str:
    """The same question from Python; whatever the text holds, it stays a text."""
    address = f"{base}/{quote_path(table, safe='')}"
    lines = "\n".join(f"    {line!r}" for line in sent.sql.splitlines(keepends=True))
    more = f", credits={str(sent.credits)!r}" if sent.credits is not None else ""
    if sent.credits is not None and sent.credits.denominator == 1:
        more = f", credits={sent.credits}"
    return (
        "import sulq\n\n"
        f"db = sulq.connect({address!r}, token=...)\n"
        f"result = db.sql(\n{lines}{more}\n)\nprint(result)\n"
    )


def receipt_view(session: TableSession, number: int) -> ReceiptView:
    found = books.receipt(session, number)
    body = found["receipt"]
    return ReceiptView(
        ordinal(number),
        (
            ("Question", question_title(question_text(str(body["question"])), 400)),
            ("Account", str(body["analyst"])),
            (
                "Neighbours",
                _neighbours(session.database.schema, str(body["neighbours"])),
            ),
            ("Data version", str(body["version"])),
            ("Answer", "not in the receipt, only its fingerprint"),
            ("Fingerprint", str(body["answer_hash"])),
            ("Signature", str(found["signature"])),
        ),
        json.dumps(found, sort_keys=True, separators=(",", ":")),
    )


def _neighbours(schema: Schema, relation: str) -> str:
    unit = schema.each
    return f"one {unit} replaced" if relation == "replace" else f"one {unit} more or less"


def refused(session: TableSession, wish: AskRequest, problem: HttpProblem) -> RefusalView:
    oracle, table = session.oracle(), session.table
    if problem.code == "budget_spent":
        return dear_view(price_statement(oracle, table, wish), balance_of(session))
    return refusal_view(oracle, table, wish.text, problem)


def quoted_view(session: TableSession, wish: AskRequest) -> tuple[QuoteView, RefusalView | None]:
    """The quote, and the card that says why it cannot be asked, if it cannot."""
    found = price_statement(session.oracle(), session.table, wish)
    purse = balance_of(session)
    view = quote_view(found, purse)
    if view.state != "dear":
        return view, None
    if closed(session.database):
        return replace(view, state="closed", price=replace(view.price, button="Closed")), None
    return view, dear_view(found, purse)


@router.get("/console/{table}/ask")
async def ask_page(request: Request, session: Asker) -> Response:
    return await fragment(request, "ask.html", ask_view, session)


@router.post("/console/{table}/quote")
async def quote(request: Request, session: Asker, body: WishBody) -> Response:
    """Price and error bar of what is in the editor; free."""
    try:
        made = await run_free(request, quoted_view, session, body.wish)
    except SulqError as error:
        return await refusal(request, session, body.wish, problem_of(error), typing=True)
    except HttpProblem as problem:
        return problem_card(problem)
    return page("quote.html#quote", made)


@router.post("/console/{table}/ask")
async def ask(request: Request, session: Asker, body: AskWishBody, key: Key) -> Response:
    """The answer, charged once per key and on the table's clock; a refusal is free."""
    asking, raw = Asking(session, body, key), None
    try:
        raw = await run_charged(request, session, key, asking.prepare)
        made = await run_free(request, answered_view, asking, raw, base_of(request))
    except SulqError as error:
        spent = SqlReply.model_validate_json(raw).credits_exact if raw else Fraction(0)
        return await refusal(request, session, body.wish, problem_of(error, spent))
    except HttpProblem as problem:
        if problem.code in ("invalid_query", "refused", "budget_spent", "too_large"):
            return await refusal(request, session, body.wish, problem)
        return HTMLResponse(
            note_of(*failure(problem)), problem.status, headers=dict(problem.headers or {})
        )
    return page("answer.html#answered", made)


def failure(problem: HttpProblem) -> tuple[str, str, str]:
    """(kind, first clause, rest) of a note."""
    if problem.code == "price_changed":
        return "warn", "The price has changed; 0 credits spent.", "Look at it again, then ask."
    if problem.code == "engine_failed":
        spent = credits_word(problem.credits_spent) if problem.credits_spent else "0 credits"
        return (
            "bad",
            "The answer could not be made.",
            f"The {spent} stay spent, and the ledger says so. Asking again with this button is"
            " free if the answer exists.",
        )
    return "warn", problem.detail[:1].upper() + problem.detail[1:] + ".", problem.hint


async def refusal(
    request: Request,
    session: TableSession,
    wish: AskRequest,
    problem: HttpProblem,
    *,
    typing: bool = False,
) -> HTMLResponse:
    """The card; while somebody types, a text without a price is no failed request."""
    made = await run_free(request, refused, session, wish, problem)
    if typing and problem.reason is Reason.UNREADABLE:
        made = replace(made, state="unfinished")
    return page("quote.html#refused", made, 200 if typing else problem.status)


@router.get("/console/{table}/receipts/{number}")
async def receipt(
    request: Request, session: Asker, number: Annotated[int, Path(ge=0, le=2**62)]
) -> Response:
    return await fragment(request, "answer.html#receipt", receipt_view, session, number)
