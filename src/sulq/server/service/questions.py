"""Prices and questions of a session: what is refused here is refused before anything is charged.

A `quote_*` function is free and reads no row. A `prepare_*` function checks a request and returns
how to answer it; `sulq.server.executor.run_charged` decides when, and that it happens once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, TypeVar

from sulq.database.alerts import Alert
from sulq.errors import InvalidQuery, SulqError
from sulq.kernel.query.expressions import Expression, col, lit, operation
from sulq.kernel.query.sum_query import Statistic, SumQuery, rows_where
from sulq.server.errors import HttpProblem
from sulq.server.idempotency import PreparedRequest
from sulq.server.limits import check_together
from sulq.server.pacing import Delayed, Paced, Wide
from sulq.server.purposes import Purpose, Purposes
from sulq.server.service.catalog import check_facts, with_version
from sulq.server.service.reservations import LEAST, check_reserved
from sulq.server.service.session import TableSession
from sulq.sql import parse_condition
from sulq.sql.api import SqlQuote, columns_of
from sulq.sql.evaluate.open_keys import where_of
from sulq.sql.evaluate.result import Result, ResultColumn
from sulq.wire import (
    AnswerReply,
    AnswersReply,
    AskBody,
    ExactBody,
    ExactQuoteReply,
    PlanBody,
    PlanReply,
    QuestionBody,
    QuoteBody,
    QuoteReply,
    ReservationReply,
    ReserveBody,
    SpendingTerms,
    SqlBody,
    SqlReply,
    answer_reply,
    exact_quote_reply,
    fraction_text,
    plan_reply,
    question_of,
    quote_reply,
    sql_quote_reply,
    sql_reply,
)
from sulq.wire.discovery import (
    AlertBody,
    AlertLine,
    AlertReply,
    AlertsReply,
    CheckBody,
    CheckReply,
    DeclareBody,
    DeclaredReply,
    KeysBody,
    KeysQuoteReply,
    KeysReply,
    TopBody,
    TopReply,
    keys_quote_reply,
    keys_reply,
    menu_texts,
    ranked,
    receipt_json,
    rows_of,
    top_reply,
)
from sulq.wire.sharing import (
    ShareBody,
    ShareQuoteBody,
    ShareQuoteReply,
    ShareReply,
    share_quote_reply,
    share_reply,
)

MADE_UP = "made-up rows: no number here means anything"


def read_question(body: QuestionBody | None) -> Statistic:
    """Return the question that a request spells."""
    return question_of({} if body is None else body.model_dump())


# --- one question, or one statement ---------------------------------------------------------------


def quote(session: TableSession, body: QuoteBody) -> QuoteReply:
    oracle = session.oracle(body.reservation, body.facts_id)
    terms: dict[str, Any] = {"confidence": body.confidence, "rows": body.rows}
    if body.sql is not None:
        terms |= {"dialect": body.dialect, "params": body.params, "lookups": body.lookups}
        found = oracle.quote_sql(body.sql, table=session.table, credits=body.credits, **terms)
        return with_version(sql_quote_reply(found), session.database)
    question = read_question(body.question)
    session.bind(question)
    priced = oracle.quote(question, within=body.within, credits=body.credits, **terms)
    return with_version(quote_reply(priced, body.confidence), session.database)


def prepare_ask(session: TableSession, body: AskBody, key: str) -> PreparedRequest:
    """Check one question."""
    oracle = session.oracle(body.reservation, body.facts_id)
    question = read_question(body.question)
    bound = session.bind(question)
    terms = _terms(body)

    def ask() -> AnswerReply:
        answer = oracle.ask(question, key=key, **terms)
        return answer_reply(answer, body.confidence, figures=body.figures)

    def work() -> AnswerReply:
        if body.max_credits is None and body.purpose is None:
            return ask()
        price = oracle.quote(question, **terms).credits
        return spend(session, body, key, price, ask)

    return PreparedRequest([bound], work)


def prepare_sql(
    session: TableSession,
    body: SqlBody,
    key: str,
    *,
    quote: SqlQuote | None = None,
    read: Callable[[Result], SqlReply] = sql_reply,
) -> PreparedRequest:
    """Check a statement; with `dummy` it is asked of made-up rows, free.

    `quote` is its price, where the caller has it; `read` makes the reply of the result.
    """
    real = session.oracle(body.reservation, body.facts_id)
    terms: dict[str, Any] = {
        "confidence": body.confidence,
        "credits": body.credits,
        "rows": body.rows,
        "lookups": body.lookups,
        "dialect": body.dialect,
        "params": body.params,
        "table": session.table,
    }
    priced = real.quote_sql(body.sql, **terms) if quote is None else quote
    bounds = bounds_of(session, priced)
    if body.dummy:
        sandbox = session.sandbox

        def made_up() -> SqlReply:
            reply = read(sandbox.sql(body.sql, **terms))
            free = {"credits": 0.0, "credits_exact": Fraction(0), "receipts": []}
            return reply.model_copy(update={**free, "notes": [MADE_UP, *reply.notes]})

        return PreparedRequest([], made_up, kept=False)

    def ask() -> SqlReply:
        reply = read(real.sql(body.sql, key=key, **terms))
        _keep_statement(session, body, reply)
        return reply

    def work() -> SqlReply:
        price = Fraction(0) if priced.plan.select.explain else priced.credits
        return spend(session, body, key, price, ask)

    return PreparedRequest(bounds, work)


def _keep_statement(session: TableSession, body: SqlBody, reply: SqlReply) -> None:
    """Let the answer be opened by what was asked, where the text alone says it."""
    if not reply.receipts or body.lookups or body.dialect or body.params:
        return
    with suppress(HttpProblem):  # a disk that is full keeps no statement, but hides no answer
        saved = session.service.saved
        saved.asked(session.shelf(), reply.receipts, body.sql, body.credits, body.rows)


def sql_columns(session: TableSession, body: SqlBody) -> tuple[ResultColumn, ...]:
    """Return the columns that a statement's answer will have; free, and no row is read."""
    oracle = session.oracle(body.reservation, body.facts_id)
    terms: dict[str, Any] = {"dialect": body.dialect, "params": body.params, "rows": body.rows}
    return columns_of(oracle.quote_sql(body.sql, table=session.table, **terms))


def bounds_of(session: TableSession, quote: SqlQuote) -> list[Paced]:
    """Return what a statement asks the engine, for the clock."""
    plan = quote.plan
    bounds: list[Paced] = [each for inner in quote.first for each in bounds_of(session, inner)]
    bounds += [session.bind(each) for each in plan.questions]
    if not plan.undeclared:
        return bounds
    return [*bounds, _wide(session, plan.undeclared, plan.figures, where_of(plan))]


def _wide(
    session: TableSession,
    columns: Sequence[str],
    figures: Sequence[Statistic],
    where: Expression | None,
) -> Wide:
    """Bind a question for keys for the clock: the count of its rows and all its sums, and as many
    numbers as there may be keys, each with its sums. The conditions of figures are work too."""
    there = [col(name).is_not_null() for name in columns]
    terms = [
        operation("choose", figure.query.rows, term, None)
        for figure in figures
        for term in figure.query.terms
    ]
    sums = SumQuery((lit(1), *terms), rows_where(where, *there))
    return session.bind_wide(sums, 1 + len(terms))


# --- a share of a joint sum -----------------------------------------------------------------------


def quote_share(session: TableSession, body: ShareQuoteBody) -> ShareQuoteReply:
    """Return the price of a share of a joint sum, and the bar of the total. V.4"""
    oracle = session.oracle(None, body.facts_id)
    question = read_question(body.question)
    session.bind(question)
    found = oracle.quote_share(question, joint=body.joint, **_terms(body))
    return with_version(share_quote_reply(found, body.confidence), session.database)


def prepare_share(session: TableSession, body: ShareBody, key: str) -> PreparedRequest:
    """Check this owner's share of the joint sum that the key names."""
    oracle = session.oracle(None, body.facts_id)
    question = read_question(body.question)
    bound = session.bind(question)
    terms = _terms(body)
    quote = oracle.quote_share(question, joint=key, **terms).quote

    def work() -> ShareReply:
        if body.max_credits is not None:
            check_price(quote.credits, body.max_credits)
        return share_reply(oracle.share(question, joint=key, **terms))

    return PreparedRequest([bound], work)


# --- several questions ----------------------------------------------------------------------------


def quote_plan(session: TableSession, body: PlanBody) -> PlanReply:
    return with_version(plan_reply(_plan(session, body)), session.database)


def prepare_plan(session: TableSession, body: PlanBody, key: str) -> PreparedRequest:
    """Check several questions, charged together or not at all."""
    plan = _plan(session, body)

    def ask() -> AnswersReply:
        answers = plan.ask(key)
        paid = sum((answer.credits for answer in answers), Fraction(0))
        return AnswersReply(
            answers=[answer_reply(a, body.confidence, figures=body.figures) for a in answers],
            credits=float(paid),
            credits_exact=paid,
        )

    def work() -> AnswersReply:
        return spend(session, body, key, plan.credits, ask)

    return PreparedRequest([line.bound for line in plan.lines], work)


def _plan(session: TableSession, body: PlanBody) -> Any:
    oracle = session.oracle(body.reservation, body.facts_id)
    questions = [read_question(one) for one in body.questions]
    check_together([session.bind(one) for one in questions], session.service.settings)
    return oracle.plan(
        questions,
        credits=body.credits,
        within=body.within,
        weights=body.weights,
        confidence=body.confidence,
        rows=body.rows,
    )


# --- without noise, as the owner has declared -----------------------------------------------------


def quote_exactly(session: TableSession, body: ExactBody) -> ExactQuoteReply:
    check_facts(session.database, body.facts_id)
    batch = [read_question(one) for one in body.questions]
    return exact_quote_reply(session.database.quote_exactly(batch, analyst=session.account))


def prepare_exact(session: TableSession, body: ExactBody, key: str) -> PreparedRequest:
    """Check a declared batch without noise; it has no price of its own."""
    oracle = session.oracle(None, body.facts_id)
    batch = [read_question(one) for one in body.questions]
    bounds = [session.bind(question) for question in batch]

    def work() -> AnswersReply:
        answers = oracle.ask_exactly(batch)
        return AnswersReply(
            answers=[answer_reply(answer, figures=body.figures) for answer in answers],
            credits=0.0,
            credits_exact=Fraction(0),
        )

    return PreparedRequest(bounds, work)


def declaration(session: TableSession) -> DeclaredReply:
    """Return what may be asked exactly."""
    declared = session.database.ledger.declaration
    return DeclaredReply(
        menu=menu_texts(session.database.declaration),
        terms="" if declared is None else declared.terms,
    )


def prepare_declaration(session: TableSession, body: DeclareBody, key: str) -> PreparedRequest:
    """Check what the owner declares, which is before anything is answered; no row is read."""
    check_facts(session.database, body.facts_id)
    menu = [[read_question(one) for one in batch] for batch in body.menu]
    bounds = [session.bind(one) for batch in menu for one in batch]

    def work() -> DeclaredReply:
        session.database.declare_exactly(*menu)
        return declaration(session)

    return PreparedRequest(bounds, work)


# --- keys that nobody declared, and the largest cells ---------------------------------------------


def quote_keys(session: TableSession, body: KeysBody) -> KeysQuoteReply:
    """Return price and threshold."""
    oracle = session.oracle(body.reservation, body.facts_id)
    terms, figures = _keys_terms(body), _key_figures(body)
    found = oracle.quote_keys(body.column, *figures, **terms)
    _wide(session, _columns(body), figures, terms["where"])  # refused here too
    return with_version(keys_quote_reply(found), session.database)


def prepare_keys(session: TableSession, body: KeysBody, key: str) -> PreparedRequest:
    oracle = session.oracle(body.reservation, body.facts_id)
    terms, figures = _keys_terms(body), _key_figures(body)
    quote = oracle.quote_keys(body.column, *figures, **terms)
    wide = _wide(session, _columns(body), figures, terms["where"])

    def work() -> KeysReply:
        if body.max_credits is not None:
            check_price(quote.credits, body.max_credits)
        return keys_reply(oracle.keys(body.column, *figures, key=key, **terms))

    return PreparedRequest([wide], work)


def _columns(body: KeysBody) -> list[str]:
    return body.column if isinstance(body.column, list) else [body.column]


def _key_figures(body: KeysBody) -> list[Statistic]:
    return [read_question(figure) for figure in body.figures]


def _keys_terms(body: KeysBody) -> dict[str, Any]:
    asked = None if body.question is None else read_question(body.question)
    where = parse_condition(body.where) if body.where is not None else rows_of(asked)
    return {"where": where, "credits": body.credits, "delta": body.delta, "most": body.most}


def prepare_top(session: TableSession, body: TopBody, key: str) -> PreparedRequest:
    oracle = session.oracle(body.reservation, body.facts_id)
    question = read_question(body.question)
    bound = session.bind(question)
    cells, by = ranked(question)
    chosen = Fraction(body.k) if body.credits is None else body.credits
    due = chosen + session.database.calibration.timing.credits_fraction

    def work() -> TopReply:
        if body.max_credits is not None:
            check_price(due, body.max_credits)
        terms: dict[str, Any] = {"by": by, "k": body.k, "edges": cells.edges, "key": key}
        return top_reply(oracle.top(cells.of, credits=body.credits, **terms), bound)

    return PreparedRequest([bound], work)


# --- alerts: kept in the ledger, since a server is stopped and started ----------------------------


def prepare_alert(session: TableSession, body: AlertBody, key: str) -> PreparedRequest:
    """Check an alert. Arming it reads no row, but is charged like a question."""
    _check_clock(session)
    oracle = session.oracle(body.reservation, body.facts_id)
    if body.credits < LEAST:
        raise InvalidQuery(f"an alert costs at least {float(LEAST):g} credits; got less")
    question = read_question(body.question)
    bound = session.bind(question)

    def work() -> AlertReply:
        found = oracle.alert(
            question,
            above=body.above,
            firings=body.firings,
            credits=body.credits,
            keep=True,
            key=key,
        )
        paid = found.credits
        return AlertReply(**_line(found), credits=float(paid), credits_exact=paid)

    return PreparedRequest([bound], work)


def prepare_check(session: TableSession, number: int, body: CheckBody, key: str) -> PreparedRequest:
    """Prepare to look whether an alert fires: free, but it reads rows, so it has a key and leaves
    on the table's clock."""
    _check_clock(session)
    alert = session.oracle(None, body.facts_id).kept_alert(number)
    question = None if body.question is None else read_question(body.question)
    bound = alert.asked if question is None else session.bind(question)

    def work() -> CheckReply:
        fired = alert.check(question, key=key)
        return CheckReply(fired=fired, left=alert.left)

    return PreparedRequest([bound], work)


def alerts(session: TableSession) -> AlertsReply:
    """Return the caller's own alerts."""
    found = session.oracle().alerts()
    return AlertsReply(alerts=[AlertLine(**_line(alert)) for alert in found])


def _line(alert: Alert) -> dict[str, Any]:
    return {
        "number": alert.number,
        "question": alert.question,
        "above": alert.above,
        "firings": alert.firings,
        "left": alert.left,
        "noise": [law.to_json() for law in alert.laws],
        "step": Fraction(alert.step),
        "receipt": receipt_json(alert.receipt),
        "terms": alert.terms,
    }


def _check_clock(session: TableSession) -> None:
    """Checks are free, and many random delays average out: their time must be on a clock."""
    if isinstance(session.clock, Delayed):
        raise InvalidQuery(
            "this server hides running times behind a random delay, for which each reading of rows"
            " pays, and an alert's checks are free: each would have to cost as much as a count; ask"
            " for the count itself, or have the table served on a clock"
        )


# --- credits set aside ----------------------------------------------------------------------------


def reserve(session: TableSession, body: ReserveBody) -> ReservationReply:
    check_reserved(body.credits)
    reserved = session.oracle().reserve(body.credits)
    name = session.service.reservations.add(session.table, session.account, reserved)
    left = reserved.remaining
    return ReservationReply(id=name, left=float(left), left_exact=left)


def release_reservation(session: TableSession, name: str) -> None:
    """Give back what is left of a reservation."""
    _ = session.database  # a token that does not reach the table ends nothing
    session.service.reservations.end(name, session.table, session.account)


R = TypeVar("R", AnswerReply, AnswersReply, SqlReply)


def spend(
    session: TableSession, body: SpendingTerms, key: str, price: Fraction, ask: Callable[[], R]
) -> R:
    """Ask, if the price is not above what the caller, or the purpose named, may spend.

    A purpose is charged the price before the question is asked, and the difference to what was paid
    is given back afterwards: where the server is killed in between, or the disk is full by then,
    its credits are counted as spent. What was asked before under the same key keeps its first
    amount.
    """
    if body.max_credits is not None:
        check_price(price, body.max_credits)
    if body.purpose is None or body.purpose_credits is None:
        return ask()
    purposes, purpose = session.service.purposes, session.purpose(body.purpose)
    again = purposes.admit(purpose, key, price, body.purpose_credits)
    try:
        reply = ask()
    except SulqError as error:
        if not again and error.credits_spent == 0 and not error.charged_unknown:
            _settle(purposes, purpose, key, Fraction(0))
        raise
    if not again:
        _settle(purposes, purpose, key, reply.credits_exact)
    return reply


def _settle(purposes: Purposes, purpose: Purpose, key: str, paid: Fraction) -> None:
    """Count what was paid; a disk that is full keeps the price counted, and hides no answer."""
    with suppress(HttpProblem):
        purposes.settle(purpose, key, paid)


def check_price(price: Fraction, most: Fraction) -> None:
    """Refuse, free, what costs more than the caller has seen."""
    if price > most:
        raise HttpProblem(
            409,
            "price_changed",
            f"this costs {float(price):g} credits now, more than max_credits = {float(most):g}",
            "look at the price again with POST quote; nothing was charged",
            more={"about": {"credits": fraction_text(price)}},
        )


def _terms(body: AskBody | ShareBody) -> dict[str, Any]:
    """Return how exactly a question is to be answered."""
    return {
        "within": body.within,
        "confidence": body.confidence,
        "credits": body.credits,
        "rows": body.rows,
    }
