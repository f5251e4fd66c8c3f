"""The basket: several statements priced as one plan, and asked together or not at all.

What two statements share is paid once, and what follows from an earlier one is free. Afterwards
each of them is a stored answer at its own address.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import Field

from sulq.database.plan import Plan
from sulq.errors import SulqError
from sulq.formatting import credits_word, left_text, ordinal
from sulq.kernel.schema.bind import BoundQuery
from sulq.server.console.ask.page import failure
from sulq.server.console.framework import balance_of, fragment, note_of, page
from sulq.server.console.labels import capital, counted, number_word, statement_title
from sulq.server.errors import HttpProblem, problem_of
from sulq.server.executor import Asker, run_charged, run_free
from sulq.server.idempotency import PreparedRequest
from sulq.server.limits import check_together
from sulq.server.routes.questions import Key
from sulq.server.service.questions import check_price
from sulq.server.service.session import TableSession
from sulq.sql.api import SqlQuote
from sulq.wire import AnswersReply
from sulq.wire.bodies import Body, Exact, Statement

router = APIRouter(include_in_schema=False)
MOST_STATEMENTS = 12
ALONE = "It is not asked with others: ask it by itself"


class BasketBody(Body):
    """The statements of a basket."""

    sql: Annotated[list[Statement], Field(min_length=1, max_length=MOST_STATEMENTS)]


class BasketAskBody(BasketBody):
    """The same with the price that was seen."""

    max_credits: Exact


@dataclass(frozen=True, slots=True)
class BasketLine:
    title: str
    sql: str
    price: str
    why: str = ""
    """Why it cannot be asked; empty if it can."""


@dataclass(frozen=True, slots=True)
class BasketView:
    table: str
    lines: tuple[BasketLine, ...]
    total: str
    saved: str
    most: str
    button: str
    ready: bool


@dataclass(frozen=True, slots=True)
class AnswersView:
    table: str
    paid: str
    answers: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class PricedBasket:
    """The quotes of statements, and the plan of all their questions."""

    quotes: tuple[SqlQuote, ...]
    plan: Plan | None

    def shares(self) -> list[Fraction]:
        """What each statement pays in the plan."""
        lines = iter(self.plan.lines if self.plan else ())
        return [
            sum((next(lines).credits for _ in quote.plan.questions), Fraction(0))
            for quote in self.quotes
        ]


def basket_quote(session: TableSession, sql: str) -> SqlQuote:
    """The price of a statement by itself; refused if it cannot be asked with others."""
    quote = session.oracle().quote_sql(sql, table=session.table)
    plan = quote.plan
    special = plan.undeclared or plan.select.explain or quote.first
    if special or plan.select.target is not None or plan.select.options:
        raise HttpProblem(422, "invalid_query", ALONE, "press Ask for it")
    return quote


def priced_basket(session: TableSession, statements: list[str]) -> PricedBasket:
    """One plan for all statements, at the plain price of each; free, and no row is read."""
    quotes = tuple(basket_quote(session, sql) for sql in statements)
    questions = [question for quote in quotes for question in quote.plan.questions]
    if not questions:
        return PricedBasket(quotes, None)
    check_together([session.bind(one) for one in questions], session.service.settings)
    return PricedBasket(quotes, session.oracle().plan(questions))


def basket_view(session: TableSession, body: BasketBody) -> BasketView:
    """What the basket costs, line by line and together."""
    known: list[str] = []
    why: dict[str, str] = {}
    for sql in dict.fromkeys(body.sql):
        try:
            basket_quote(session, sql)
            known.append(sql)
        except (SulqError, HttpProblem) as error:
            detail = error.detail if isinstance(error, HttpProblem) else str(error)
            why[sql] = f"{capital(detail.split(' (near')[0])}."
    found = priced_basket(session, known) if known else PricedBasket((), None)
    total = found.plan.credits if found.plan else Fraction(0)
    alone = sum((quote.credits for quote in found.quotes), Fraction(0))
    prices = dict(zip(known, map(price_said, found.shares()), strict=True))
    left = balance_of(session).own_left
    many = f"{number_word(len(known))} {counted('question', len(known))}"
    button = f"Ask {many} for {credits_word(total)}" if total else f"Show {many}, free"
    if total > left:
        button = f"Costs more than the {left_text(left)} you have"
    return BasketView(
        session.table,
        tuple(
            BasketLine(statement_title(sql), sql, prices.get(sql, ""), why.get(sql, ""))
            for sql in dict.fromkeys(body.sql)
        ),
        price_said(total),
        f"{credits_word(alone - total)} less than one by one" if alone > total else "",
        str(total),
        button,
        bool(known) and not why and total <= left,
    )


def price_said(credits: Fraction) -> str:
    return credits_word(credits) if credits else "free"


class AskingTogether:
    """A click on the basket's button: one plan, charged as a whole."""

    def __init__(self, session: TableSession, body: BasketAskBody, key: str) -> None:
        self.session, self.body, self.key = session, body, key
        self.statements = list(dict.fromkeys(body.sql))

    def prepare(self) -> PreparedRequest:
        found = priced_basket(self.session, self.statements)
        plan = found.plan
        bounds: list[BoundQuery] = [line.bound for line in plan.lines] if plan else []

        def work() -> AnswersReply:
            if plan is None:
                return AnswersReply(answers=[], credits=0.0, credits_exact=Fraction(0))
            check_price(plan.credits, self.body.max_credits)
            answers = plan.ask(self.key)
            paid = sum((answer.credits for answer in answers), Fraction(0))
            told = iter(answers)
            for sql, quote in zip(self.statements, found.quotes, strict=True):
                own = [next(told).receipt for _ in quote.plan.questions]
                self._keep(sql, [int(one.body["seq"]) for one in own if one is not None])
            return AnswersReply(answers=[], credits=float(paid), credits_exact=paid)

        return PreparedRequest(bounds, work)

    def _keep(self, sql: str, receipts: list[int]) -> None:
        """Let each answer be opened by what was asked; a full disk hides no answer."""
        if receipts:
            with suppress(HttpProblem):
                session = self.session
                session.service.saved.asked(session.shelf(), receipts, sql, None, None)

    def view(self, raw: bytes) -> AnswersView:
        """Each statement with the address of its stored answer: read again, never asked anew."""
        oracle, found = self.session.oracle(), []
        for sql in self.statements:
            receipts = []
            if not oracle.quote_sql(sql, table=self.session.table).credits:
                result = oracle.sql(sql, table=self.session.table)
                receipts = [int(one.body["seq"]) for one in result.receipts]
            href = f"/t/{self.session.table}/a/{receipts[0]}" if receipts else ""
            number = ordinal(receipts[0]) if receipts else "public"
            found.append((statement_title(sql), href, number))
        paid = AnswersReply.model_validate_json(raw).credits_exact
        return AnswersView(self.session.table, price_said(paid), tuple(found))


@router.post("/console/{table}/basket")
async def basket(request: Request, session: Asker, body: BasketBody) -> Response:
    return await fragment(request, "basket.html#basket", basket_view, session, body)


@router.post("/console/{table}/basket/ask")
async def ask_basket(request: Request, session: Asker, body: BasketAskBody, key: Key) -> Response:
    """All answers, charged together once per key and on the table's clock; a refusal is free."""
    asking = AskingTogether(session, body, key)
    try:
        raw = await run_charged(request, session, key, asking.prepare)
        made = await run_free(request, asking.view, raw)
    except SulqError as error:
        problem = problem_of(error)
    except HttpProblem as error:
        problem = error
    else:
        return page("basket.html#answers", made)
    return HTMLResponse(
        note_of(*failure(problem)), problem.status, headers=dict(problem.headers or {})
    )
