"""Every verb of the service, once: for the routes of /v1 and for the pages of the console."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sulq.database import Analyst, Database
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.query.statistics import Statistic, count
from sulq.kernel.schema.bind import BoundQuery
from sulq.server.auth.grants import id_of
from sulq.server.auth.tokens import Access, Caller, Role
from sulq.server.errors import HttpProblem, not_for_this_role, not_found
from sulq.server.idempotency import Charged, Replies, ReplyKey, once
from sulq.server.limits import Settings, check_together, check_width
from sulq.server.pacing import Pace, Paced, Wide, check_lasting, pace_of, public_rows
from sulq.server.service.books import answer_lines, event_lines, receipt_json, statement_reply
from sulq.server.service.catalog import (
    LedgerRecovery,
    SandboxTables,
    Tables,
    check_facts,
    facts_of,
    with_version,
)
from sulq.server.service.request import PreparedRequest
from sulq.server.service.reservations import Reservations, check_reserved
from sulq.sql.evaluate.open_keys import where_of
from sulq.wire import (
    AnswerReply,
    AnswersReply,
    AskBody,
    ExactBody,
    ExactQuoteReply,
    LedgerReply,
    PlanBody,
    PlanReply,
    QuestionBody,
    QuoteBody,
    QuoteReply,
    ReservationReply,
    ReserveBody,
    SchemaReply,
    SqlBody,
    SqlReply,
    StatementReply,
    answer_reply,
    exact_quote_reply,
    fraction_text,
    plan_reply,
    question_of,
    quote_reply,
    sql_quote_reply,
    sql_reply,
)
from sulq.wire.sharing import (
    ShareBody,
    ShareQuoteBody,
    ShareQuoteReply,
    ShareReply,
    share_quote_reply,
    share_reply,
)


class Service:
    """What a caller may do with the tables. Sync; raises SulqError or Problem."""

    def __init__(
        self, tables: Tables, access: Access, replies: Replies, settings: Settings
    ) -> None:
        self.tables, self.access, self.replies, self.settings = tables, access, replies, settings
        self.reservations = Reservations(settings.reservation_idle)
        self._clocks: dict[str, Pace] = {}
        self._order = LedgerRecovery()
        self._made_up = SandboxTables()
        self._lock = threading.Lock()

    def close(self) -> None:
        self.reservations.close()
        self.replies.close()
        self._made_up.close()

    # --- who, and on what -----------------------------------------------------------------------

    def database(self, caller: Caller, table: str) -> Database:
        """The table, if this token reaches it; opened again if its books were out of order."""
        found = self.known(caller, table)
        self.reservations.sweep()  # whoever comes next gives back what lies idle
        self._order.restore(found)
        return found

    def known(self, caller: Caller, table: str) -> Database:
        """The table, if this token reaches it; else as if it were not there."""
        found = self.tables[table]
        if caller.tables is not None and id_of(found) not in caller.tables:
            raise not_found("there is no table of this name here, or it is not for this token")
        return found

    def oracle(
        self,
        caller: Caller,
        table: str,
        reservation: str | None = None,
        facts_id: str | None = None,
    ) -> Database | Analyst:
        """What the caller asks through: the owner, or an analyst in the own name."""
        database = self.database(caller, table)
        if caller.role == Role.AUDITOR:
            raise not_for_this_role(str(caller.role))
        check_facts(database, facts_id)
        if reservation is not None:
            return self.reservations.get(reservation, table, ledger_name(caller))
        return database if caller.role == Role.OWNER else database.as_analyst(caller.name)

    def clock(self, table: str) -> Pace:
        """When replies about a table leave."""
        with self._lock:
            if table not in self._clocks:
                database = self.tables[table]
                self._clocks[table] = pace_of(database, self.settings)
            return self._clocks[table]

    @property
    def clocks(self) -> Mapping[str, Pace]:
        return {name: self.clock(name) for name in self.tables.names()}

    # --- prices: free ---------------------------------------------------------------------------

    def quote(self, caller: Caller, table: str, body: QuoteBody) -> QuoteReply:
        oracle = self.oracle(caller, table, body.reservation, body.facts_id)
        terms: dict[str, Any] = {"confidence": body.confidence, "rows": body.rows}
        database = self.database(caller, table)
        if body.sql is not None:
            found = oracle.quote_sql(
                body.sql, table=table, lookups=body.lookups, credits=body.credits, **terms
            )
            return with_version(sql_quote_reply(found), database)
        question = self.question(body.question)
        self.bound(caller, table, question)
        quote = oracle.quote(question, within=body.within, credits=body.credits, **terms)
        return with_version(quote_reply(quote, body.confidence), database)

    def plan(self, caller: Caller, table: str, body: PlanBody) -> PlanReply:
        return with_version(
            plan_reply(self._plan(caller, table, body)), self.database(caller, table)
        )

    def quote_exactly(self, caller: Caller, table: str, body: ExactBody) -> ExactQuoteReply:
        database = self.database(caller, table)
        check_facts(database, body.facts_id)
        batch = [self.question(one) for one in body.questions]
        return exact_quote_reply(database.quote_exactly(batch, analyst=ledger_name(caller)))

    # --- questions: charged, once per key -------------------------------------------------------

    def asked(self, caller: Caller, table: str, body: AskBody, key: str) -> PreparedRequest:
        """One question. What is refused here is refused free."""
        oracle = self.oracle(caller, table, body.reservation, body.facts_id)
        question = self.question(body.question)
        bound = self.bound(caller, table, question)
        terms = _terms(body)

        def work() -> AnswerReply:
            if body.max_credits is not None:
                check_price(oracle.quote(question, **terms).credits, body.max_credits)
            answer = oracle.ask(question, key=key, **terms)
            return answer_reply(answer, body.confidence, figures=body.figures)

        return PreparedRequest([bound], work)

    def quote_share(self, caller: Caller, table: str, body: ShareQuoteBody) -> ShareQuoteReply:
        """Price of a share of a joint sum, and the bar of the total; free. V.4"""
        oracle = self.oracle(caller, table, None, body.facts_id)
        question = self.question(body.question)
        self.bound(caller, table, question)
        found = oracle.quote_share(question, joint=body.joint, **_terms(body))
        return with_version(share_quote_reply(found, body.confidence), self.database(caller, table))

    def asked_share(self, caller: Caller, table: str, body: ShareBody, key: str) -> PreparedRequest:
        """This owner's share of the joint sum that the key names."""
        oracle = self.oracle(caller, table, None, body.facts_id)
        question = self.question(body.question)
        bound = self.bound(caller, table, question)
        terms = _terms(body)
        quote = oracle.quote_share(question, joint=key, **terms).quote

        def work() -> ShareReply:
            if body.max_credits is not None:
                check_price(quote.credits, body.max_credits)
            return share_reply(oracle.share(question, joint=key, **terms))

        return PreparedRequest([bound], work)

    def asked_sql(self, caller: Caller, table: str, body: SqlBody, key: str) -> PreparedRequest:
        """A statement; with `dummy`, of made-up rows and free."""
        real = self.oracle(caller, table, body.reservation, body.facts_id)
        oracle = self.made_up(table) if body.dummy else real
        terms: dict[str, Any] = {
            "confidence": body.confidence,
            "credits": body.credits,
            "rows": body.rows,
            "lookups": body.lookups,
            "table": table,
        }
        quote = real.quote_sql(body.sql, **terms)
        bounds: list[Paced] = [self.bound(caller, table, each) for each in quote.plan.questions]
        if quote.plan.undeclared is not None:
            where = where_of(quote.plan)
            bounds = [self.wide(caller, table, count(quote.plan.undeclared, where=where))]

        def work() -> SqlReply:
            if body.dummy:
                made_up = sql_reply(oracle.sql(body.sql, **terms))
                note = "made-up rows: no number here means anything"
                free = {"credits": 0.0, "credits_exact": Fraction(0), "receipts": []}
                return made_up.model_copy(update={**free, "notes": [note, *made_up.notes]})
            if body.max_credits is not None:
                check_price(quote.credits, body.max_credits)
            return sql_reply(oracle.sql(body.sql, key=key, **terms))

        return PreparedRequest([] if body.dummy else bounds, work, not body.dummy)

    def asked_plan(self, caller: Caller, table: str, body: PlanBody, key: str) -> PreparedRequest:
        """Several questions, charged together or not at all."""
        plan = self._plan(caller, table, body)

        def work() -> AnswersReply:
            if body.max_credits is not None:
                check_price(plan.credits, body.max_credits)
            answers = plan.ask(key)
            paid = sum((answer.credits for answer in answers), Fraction(0))
            return AnswersReply(
                answers=[answer_reply(a, body.confidence, figures=body.figures) for a in answers],
                credits=float(paid),
                credits_exact=paid,
            )

        return PreparedRequest([line.bound for line in plan.lines], work)

    def asked_exactly(
        self, caller: Caller, table: str, body: ExactBody, key: str
    ) -> PreparedRequest:
        """A declared batch without noise; it has no price of its own."""
        oracle = self.oracle(caller, table, None, body.facts_id)
        batch = [self.question(one) for one in body.questions]
        bounds = [self.bound(caller, table, question) for question in batch]

        def work() -> AnswersReply:
            answers = oracle.ask_exactly(batch)
            return AnswersReply(
                answers=[answer_reply(answer, figures=body.figures) for answer in answers],
                credits=0.0,
                credits_exact=Fraction(0),
            )

        return PreparedRequest(bounds, work)

    def kept(self, caller: Caller, table: str, key: str, digest: bytes) -> bytes | None:
        """The reply that this key has got already."""
        return self.replies.find(self._name(caller, table, key), digest)

    def once(
        self, caller: Caller, table: str, key: str, digest: bytes, asked: PreparedRequest
    ) -> bytes:
        """The reply's bytes, the same for every request under this key."""
        analyst, name = ledger_name(caller), self._name(caller, table, key)
        database = self.database(caller, table)

        def work() -> Charged:
            return with_version(asked.work(), database)

        if not asked.kept:
            return work().model_dump_json().encode()
        return once(self.replies, database, analyst, name, digest, asked.digests, work)

    def _name(self, caller: Caller, table: str, key: str) -> ReplyKey:
        """By the published table as it is now, not by what it is called: other servers share the
        store, and after an amendment the same numbers would mean something else."""
        return ReplyKey(facts_of(self.database(caller, table)), ledger_name(caller), key)

    def reserve(self, caller: Caller, table: str, body: ReserveBody) -> ReservationReply:
        check_reserved(body.credits)
        reserved = self.oracle(caller, table).reserve(body.credits)
        name = self.reservations.add(table, ledger_name(caller), reserved)
        left = reserved.remaining
        return ReservationReply(id=name, left=float(left), left_exact=left)

    def release_reservation(self, caller: Caller, table: str, name: str) -> None:
        self.database(caller, table)
        self.reservations.end(name, table, ledger_name(caller))

    # --- books ----------------------------------------------------------------------------------

    def listed(self, caller: Caller) -> list[dict[str, Any]]:
        """The tables that the caller may see."""
        reached = caller.tables
        return [
            self._line(caller, name)
            for name in self.tables.names()
            if reached is None or id_of(self.tables[name]) in reached
        ]

    def _line(self, caller: Caller, name: str) -> dict[str, Any]:
        database, left = self.tables[name], self.left(caller, name)
        return {
            "name": name,
            "state": "closed" if closed(database) else "open",
            "size": database.size,
            "credits": float(database.promise.credits),
            "left": float(left),
            "left_exact": fraction_text(left),
        }

    def left(self, caller: Caller, table: str) -> Fraction:
        """Credits left: of the own share, for others than analysts of the table."""
        database = self.database(caller, table)
        if caller.role == Role.ANALYST:
            return database.left_for(caller.name)
        return database.remaining

    def schema(self, caller: Caller, table: str) -> SchemaReply:
        database, left = self.database(caller, table), self.left(caller, table)
        return SchemaReply(
            table=table,
            facts_id=facts_of(database),
            facts=database.schema.to_json(),
            promise=database.promise.to_json(),
            size=database.size,
            who=database.schema.who,
            neighbours=database.promise.neighbours,
            remaining=float(left),
            remaining_exact=left,
            durable=database.durable,
        )

    def statement(self, caller: Caller, table: str) -> StatementReply:
        """The table's totals, the own share; every analyst's only for owner and auditor."""
        database, mine = self.database(caller, table), self.left(caller, table)
        found = statement_reply(database, table, mine, full=caller.role != Role.ANALYST)
        if caller.role != Role.OWNER:
            return found
        # a fact about running times: nobody else's
        return found.model_copy(update={"overruns": self.clock(table).overruns})

    def ledger(self, caller: Caller, table: str, after: int = 0, limit: int = 500) -> LedgerReply:
        """A page of the chain: own entries in full, others as "another account"."""
        lines = event_lines(self.database(caller, table), reader(caller), after, limit)
        return LedgerReply(entries=lines, next=lines[-1]["seq"] if len(lines) == limit else None)

    def answers(self, caller: Caller, table: str, after: int = 0, limit: int = 100) -> LedgerReply:
        """Answers that may be read again for nothing."""
        lines, upto = answer_lines(self.database(caller, table), reader(caller), after, limit)
        return LedgerReply(entries=lines, next=upto)

    def receipt(self, caller: Caller, table: str, number: int) -> dict[str, Any]:
        return receipt_json(self.database(caller, table), number, reader(caller))

    def dummy(self, caller: Caller, table: str, rows: int = 100) -> dict[str, list[Any]]:
        """Made-up rows of this schema, by column."""
        made = self.database(caller, table).sample_dummy(rows)
        return {name: [_plain(value) for value in values] for name, values in made.items()}

    def made_up(self, table: str) -> Database:
        """Made-up rows under the same schema and promise, to be asked for nothing."""
        return self._made_up.of(table, self.tables[table])

    # --- reading requests -----------------------------------------------------------------------

    def question(self, body: QuestionBody | None) -> Statistic:
        return question_of({} if body is None else body.model_dump())

    def bound(self, caller: Caller, table: str, question: object) -> BoundQuery:
        bound = self.database(caller, table).bind(question)
        check_width(bound, self.settings)
        return bound

    def wide(self, caller: Caller, table: str, question: object) -> Wide:
        """As many numbers as rows may be handled; refused where that would be held too long."""
        database = self.database(caller, table)
        wide = Wide(database.bind(question), public_rows(database))
        check_lasting(self.clock(table), wide, self.settings)
        return wide

    def _plan(self, caller: Caller, table: str, body: PlanBody) -> Any:
        oracle = self.oracle(caller, table, body.reservation, body.facts_id)
        questions = [self.question(one) for one in body.questions]
        check_together([self.bound(caller, table, one) for one in questions], self.settings)
        return oracle.plan(
            questions,
            credits=body.credits,
            within=body.within,
            weights=body.weights,
            confidence=body.confidence,
            rows=body.rows,
        )


def ledger_name(caller: Caller) -> str:
    """Under which name the ledger knows a caller."""
    return OWNER if caller.role == Role.OWNER else caller.name


def reader(caller: Caller) -> str | None:
    """Whose entries a caller may read in full; None: everybody's."""
    return caller.name if caller.role == Role.ANALYST else None


def closed(database: Database) -> bool:
    """True if nothing new can be asked: closed for good, or all is spent."""
    found = database.statement()
    return found.statement.closed is not None or found.left <= 0


def check_price(price: Fraction, most: Fraction) -> None:
    """Refuse, free, what costs more than the caller has seen."""
    if price > most:
        raise HttpProblem(
            409,
            "price_changed",
            f"this costs {float(price):g} credits now, more than max_credits = {float(most):g}",
            "look at the price again with POST quote; nothing was charged",
        )


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _terms(body: AskBody | ShareBody) -> dict[str, Any]:
    """How exactly a question is to be answered."""
    return {
        "within": body.within,
        "confidence": body.confidence,
        "credits": body.credits,
        "rows": body.rows,
    }
