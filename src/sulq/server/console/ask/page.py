"""The Ask page: a statement, its price while it is typed, its answer. Through the same Service."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
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
from sulq.server.console.ask.quote import QuoteView, quote_view
from sulq.server.console.ask.refusal import RefusalView, dear_view, refusal_view
from sulq.server.console.ask.request import AskRequest, price_statement
from sulq.server.console.examples import Starter, starters
from sulq.server.console.framework import balance_of, fragment, page, problem_card
from sulq.server.console.history import history
from sulq.server.console.labels import one, question_title, short_values
from sulq.server.errors import HttpProblem, problem_of
from sulq.server.executor import Asker, run_charged, run_free
from sulq.server.idempotency import PreparedRequest
from sulq.server.routes.questions import Key
from sulq.server.service import books
from sulq.server.service.questions import prepare_sql
from sulq.server.service.session import TableSession, closed
from sulq.wire import SqlBody, SqlReply
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


@dataclass(frozen=True, slots=True)
class MineView:
    lines: tuple[QuestionLine, ...]
    used: str
    whole: str
    count: int


@dataclass(frozen=True, slots=True)
class AskView:
    table: str
    columns: tuple[tuple[str, str, bool], ...]
    examples: tuple[Starter, ...]
    mine: MineView
    closed: bool


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
    return AskView(
        session.table,
        tuple((c.name, short_values(c), c.public) for c in schema.columns),
        tuple(starters(schema, session.table)),
        mine_view(session),
        closed(session.database),
    )


def mine_view(session: TableSession) -> MineView:
    """The caller's own questions, the last ones first."""
    named, events = session.account, history(session.database)[0]
    mine = [each for each in events if each.asked and each.analyst == named and each.question]
    lines = tuple(
        QuestionLine(
            event.title,
            credits_word(event.credits) if event.credits else "free",
            ordinal(event.seq),
        )
        for event in mine[-MOST_QUESTIONS:][::-1]
    )
    purse = balance_of(session)
    used = max(purse.own_whole - purse.own_left, Fraction(0))
    whole = left_text(purse.own_whole)
    said = f"{left_text(used)} of {whole} credits used." if purse.shared else ""
    return MineView(lines, said, f"/t/{session.table}/ledger#mine", len(mine))


def asked_of(session: TableSession, body: AskWishBody, key: str) -> PreparedRequest:
    """What is charged: the very statement, credits and sizes that were quoted."""
    return prepare_sql(session, sql_body(session, body), key)


def sql_body(session: TableSession, body: AskWishBody) -> SqlBody:
    found = price_statement(session.oracle(), session.table, body.wish)
    return SqlBody(
        sql=body.wish.text,
        credits=found.credits,
        rows=found.rows,
        max_credits=None if body.dummy else body.max_credits,
        dummy=body.dummy,
    )


def answered_view(
    session: TableSession, body: AskWishBody, key: str, raw: bytes, base: str
) -> AnsweredView:
    """The stored answer with its picture. Nothing is asked anew: what would cost is not read."""
    reply = SqlReply.model_validate_json(raw)
    real = session.oracle()
    oracle = session.sandbox if body.dummy else real
    sent = sql_body(session, body)
    found = price_statement(real, session.table, body.wish)
    terms = {"table": session.table, "credits": sent.credits, "rows": sent.rows}
    if not body.dummy and oracle.quote_sql(sent.sql, **terms).credits:
        raise HttpProblem(503, "engine_failed", "The stored answer cannot be read just now.",
                      "Ask again with the same button; it is charged once.")  # fmt: skip
    again = {} if body.dummy else {"key": key}
    result = oracle.sql(sent.sql, **terms, **again)
    shown = answer_view(
        real, session.table, found.shape, result, reply, python_text(base, session.table, sent),
        made_up=body.dummy,
    )  # fmt: skip
    if body.dummy:
        return AnsweredView(None, shown, None)
    quote = replace(
        quote_view(session, body.wish),
        state="asked",
        price_label="Price to ask again",
        get_label="Error, 95 %",
        get=shown.bars,
        get_unit=shown.unit,
        left_label="Left",
        button="Show again, free",
        stops=(),
        hint=None,
        warning=None,
        see="",
        see_small="",
        assumes="",
        notes=(),
    )
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
    unit = one(schema)
    return f"one {unit} replaced" if relation == "replace" else f"one {unit} more or less"


def refused(session: TableSession, wish: AskRequest, problem: HttpProblem) -> RefusalView:
    oracle, table = session.oracle(), session.table
    if problem.code == "budget_spent":
        purse = balance_of(session)
        return dear_view(oracle, table, price_statement(oracle, table, wish), purse)
    return refusal_view(oracle, session.table, wish.text, problem)


def quoted_view(session: TableSession, wish: AskRequest) -> tuple[QuoteView, RefusalView | None]:
    """The quote, and the card that says why it cannot be asked, if it cannot."""
    view = quote_view(session, wish)
    if view.state != "dear":
        return view, None
    oracle = session.oracle()
    purse = balance_of(session)
    if closed(session.database):
        return replace(view, state="closed", button="Closed"), None
    return view, dear_view(
        oracle, session.table, price_statement(oracle, session.table, wish), purse
    )


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
    return page("quote.html", made)


@router.post("/console/{table}/ask")
async def ask(request: Request, session: Asker, body: AskWishBody, key: Key) -> Response:
    """The answer, charged once per key and on the table's clock; a refusal is free."""
    base = base_of(request)
    raw = None
    try:
        raw = await run_charged(request, session, key, lambda: asked_of(session, body, key))
        made = await run_free(request, answered_view, session, body, key, raw, base)
    except SulqError as error:
        spent = SqlReply.model_validate_json(raw).credits_exact if raw else Fraction(0)
        return await refusal(request, session, body.wish, problem_of(error, spent))
    except HttpProblem as problem:
        if problem.code in ("invalid_query", "refused", "budget_spent", "too_large"):
            return await refusal(request, session, body.wish, problem)
        return page("failed.html", failure(problem), problem.status, problem.headers)
    return page("answered.html", made)


def failure(problem: HttpProblem) -> tuple[str, str, str]:
    """(kind, first clause, rest) of a note."""
    if problem.code == "price_changed":
        return "warn", "The price has changed; 0 credits spent.", "Look at it again, then ask."
    if problem.code == "engine_failed":
        spent = credits_word(problem.credits_spent) if problem.credits_spent else "0 credits"
        return ("bad", "The answer could not be made.",
                f"The {spent} stay spent, and the ledger says so. Asking again with this button is"
                " free if the answer exists.")  # fmt: skip
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
    return page("refused.html", made, 200 if typing else problem.status)


@router.get("/console/{table}/receipts/{number}")
async def receipt(
    request: Request, session: Asker, number: Annotated[int, Path(ge=0, le=2**62)]
) -> Response:
    return await fragment(request, "receipt.html", receipt_view, session, number)
