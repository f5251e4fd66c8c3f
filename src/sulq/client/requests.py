"""Requests as values: what is sent, and how its reply is read. Nothing here touches a network."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from sulq.answers.oracle import Answer, Quote, check_confidence
from sulq.answers.oracle import Credits as Shown
from sulq.answers.selections import Keys, KeysQuote, Top, alert_margin
from sulq.answers.statistics import count, ranked
from sulq.client.values import Granted, RemoteExactQuote, RemoteLine, RemoteStatement, lines_of
from sulq.errors import InvalidQuery, Refused
from sulq.formatting import credits_text
from sulq.kernel.accounting.pricing import positive
from sulq.kernel.noise.laws import DiscreteLaplace, law_from_json
from sulq.kernel.query.expressions import Expression
from sulq.kernel.query.sum_query import as_statistic
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.columns import Schema, as_number
from sulq.kernel.schema.promise import Promise
from sulq.kernel.schema.study import schema_from_json
from sulq.shares import ShareQuote, SumShare, check_joint
from sulq.wire import (
    AnswerReply,
    AnswersReply,
    AskBody,
    ExactBody,
    ExactQuoteReply,
    LedgerReply,
    PlanBody,
    PlanReply,
    QuoteBody,
    QuoteReply,
    ReceiptJson,
    ReservationReply,
    ReserveBody,
    SchemaReply,
    SqlReply,
    StatementReply,
    TablesReply,
    answer_of,
    bind_public,
    fraction_text,
    question_json,
    quote_of,
)
from sulq.wire.convert import ReceiptDocument, bind_public_keys
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
    keys_of,
    keys_quote_of,
    paper_of,
    top_of,
)
from sulq.wire.replies import Reply
from sulq.wire.sharing import (
    ShareBody,
    ShareQuoteBody,
    ShareQuoteReply,
    ShareReply,
    share_of,
    share_quote_of,
)

Credits = Fraction | int | float
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
R = TypeVar("R", bound=Reply)

_KEY = re.compile(r"[A-Za-z0-9._~-]{8,128}")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request. `again`: sending it twice does no more than sending it once."""

    method: str
    path: str
    read: Callable[[bytes], T]
    body: BaseModel | Mapping[str, Any] | None = None
    params: Mapping[str, str | int] | None = None
    key: str | None = None
    again: bool = True

    @property
    def content(self) -> bytes | None:
        match self.body:
            case None:
                return None
            case BaseModel():
                return self.body.model_dump_json(exclude_defaults=True).encode()
        return json.dumps(self.body, allow_nan=False).encode()


def key_of(given: str | None) -> str:
    """A new key, or one made of whatever text was given: the same for the same text."""
    if given is None:
        return secrets.token_urlsafe(24)
    if not isinstance(given, str) or not given:
        raise InvalidQuery(f"a key is a text, got {given!r:.60}")
    if _KEY.fullmatch(given):
        return given
    return "key-" + hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Facts:
    """What is public of a table: enough to bind questions and to read replies."""

    table: str
    schema: Schema
    promise: Promise
    size: int | None
    facts_id: str | None = None  # of the table as it is; another one after an amendment
    durable: bool = True  # what is spent there is spent for good

    def bind(self, question: object, *, whole: bool = False) -> BoundQuery:
        return bind_public(question, self.schema, self.promise, whole=whole)


@dataclass(frozen=True, slots=True)
class Calls:
    """The verbs of one table, and perhaps of credits set aside there."""

    facts: Facts
    path: Callable[[str], str]
    reservation: str | None = None

    def price(
        self,
        question: object,
        within: float | None,
        confidence: float,
        credits: Credits | None,
        rows: int | None,
    ) -> Call[Quote]:
        bound = self.facts.bind(question)
        body = checked(
            QuoteBody,
            question=question_json(question),
            within=within,
            confidence=_level(confidence),
            credits=_amount(credits),
            rows=rows,
            reservation=self.reservation,
            facts_id=self.facts.facts_id,
        )

        def read(text: bytes) -> Quote:
            return quote_of(self.same(parsed(QuoteReply, text)), bound, self.facts.size, rows)

        return Call("POST", self.path("quote"), read, body)

    def ask(
        self,
        question: object,
        within: float | None,
        confidence: float,
        credits: Credits | None,
        rows: int | None,
        key: str | None,
        max_credits: Credits | None,
    ) -> Call[Answer]:
        bound = self.facts.bind(question)
        body = checked(
            AskBody,
            question=question_json(question),
            within=within,
            confidence=_level(confidence),
            credits=_amount(credits),
            rows=rows,
            max_credits=_most(max_credits),
            reservation=self.reservation,
            figures=False,
            facts_id=self.facts.facts_id,
        )

        def read(text: bytes) -> Answer:
            return self._answer(self.same(parsed(AnswerReply, text)), bound)

        return Call("POST", self.path("ask"), read, body, key=key_of(key))

    def select(self, text: str, terms: Mapping[str, Any], key: str | None) -> Call[SqlReply]:
        """A SELECT that the server itself reads and plans."""
        given = {name: value for name, value in terms.items() if value is not None}
        for name in ("max_credits", "purpose_credits"):
            if name in given:
                given[name] = fraction_text(_most(given[name]) or 0)
        body = {"sql": text, "facts_id": self.facts.facts_id, **given}

        def read(content: bytes) -> SqlReply:
            return self.same(parsed(SqlReply, content))

        return Call("POST", self.path("sql"), read, body, key=key_of(key))

    def quote_share(
        self,
        question: object,
        joint: str | None,
        within: float | None,
        confidence: float,
        credits: Credits | None,
        rows: int | None,
    ) -> Call[ShareQuote]:
        bound = self._shared(question)
        body = checked(
            ShareQuoteBody,
            question=question_json(question),
            joint=joint,
            within=within,
            confidence=_level(confidence),
            credits=_amount(credits),
            rows=rows,
            facts_id=self.facts.facts_id,
        )

        def read(text: bytes) -> ShareQuote:
            reply = self.same(parsed(ShareQuoteReply, text))
            return share_quote_of(reply, bound, self.facts.size, rows)

        return Call("POST", self.path("share/quote"), read, body)

    def share(
        self,
        question: object,
        joint: str,
        within: float | None,
        confidence: float,
        credits: Credits | None,
        rows: int | None,
        max_credits: Credits | None,
    ) -> Call[SumShare]:
        self._shared(question)
        body = checked(
            ShareBody,
            question=question_json(question),
            within=within,
            confidence=_level(confidence),
            credits=_amount(credits),
            rows=rows,
            max_credits=_most(max_credits),
            facts_id=self.facts.facts_id,
        )
        read = lambda text: share_of(self.same(parsed(ShareReply, text)))  # noqa: E731
        return Call("POST", self.path("share"), read, body, key=check_joint(joint))

    def _shared(self, question: object) -> BoundQuery:
        if self.reservation is not None:
            raise InvalidQuery("a share is not paid from credits set aside; ask outside of them")
        return self.facts.bind(question)

    def same(self, reply: R) -> R:
        """The reply, if it is to be read by the facts that are known here."""
        known = self.facts.facts_id
        if reply.facts_id and known is not None and reply.facts_id != known:
            raise StaleSchema("the table was amended while this was asked; connect again")
        return reply

    def _answer(self, reply: AnswerReply, bound: BoundQuery) -> Answer:
        return answer_of(reply, bound, self.facts.promise, self.facts.size)

    def plan(
        self,
        questions: Sequence[object],
        credits: Credits | None,
        within: float | Sequence[float | None] | None,
        weights: Sequence[Credits] | None,
        confidence: float,
        rows: int | None,
    ) -> tuple[PlanBody, list[BoundQuery], Call[tuple[PlanReply, tuple[RemoteLine, ...]]]]:
        if not isinstance(questions, list | tuple) or not questions:
            raise InvalidQuery("a plan is a list of at least one question")
        bounds = [self.facts.bind(question) for question in questions]
        body = checked(
            PlanBody,
            questions=[question_json(question) for question in questions],
            within=list(within) if isinstance(within, tuple) else within,
            credits=_amount(credits),
            weights=None if weights is None else [positive(w, "a weight") for w in weights],
            confidence=_level(confidence),
            rows=rows,
            reservation=self.reservation,
            figures=False,
            facts_id=self.facts.facts_id,
        )

        def read(text: bytes) -> tuple[PlanReply, tuple[RemoteLine, ...]]:
            reply = self.same(parsed(PlanReply, text))
            return reply, lines_of(reply, bounds, rows, self.facts.size)

        return body, bounds, Call("POST", self.path("plan"), read, body)

    def ask_plan(
        self, body: PlanBody, bounds: Sequence[BoundQuery], most: Fraction, key: str | None
    ) -> Call[list[Answer]]:
        """Refused, free, if the plan costs more by now than it said."""

        def read(text: bytes) -> list[Answer]:
            replies = self.same(parsed(AnswersReply, text)).answers
            return [self._answer(one, bound) for one, bound in zip(replies, bounds, strict=True)]

        asked = body.model_copy(update={"max_credits": most})
        return Call("POST", self.path("plan/ask"), read, asked, key=key_of(key))

    def quote_exactly(self, batch: object) -> Call[RemoteExactQuote]:
        listed = batch if isinstance(batch, list | tuple) else [batch]
        body = checked(
            ExactBody,
            questions=[question_json(one) for one in listed],
            facts_id=self.facts.facts_id,
        )

        def read(text: bytes) -> RemoteExactQuote:
            return RemoteExactQuote.of(parsed(ExactQuoteReply, text))

        return Call("POST", self.path("exact/quote"), read, body)

    def ask_exactly(self, batch: object, key: str | None) -> Call[list[Answer]]:
        listed = [as_statistic(one) for one in batch] if isinstance(batch, list | tuple) else None
        asked = [as_statistic(batch)] if listed is None else listed
        body = checked(
            ExactBody,
            questions=[question_json(one) for one in asked],
            figures=False,
            facts_id=self.facts.facts_id,
        )

        def read(text: bytes) -> list[Answer]:
            replies = self.same(parsed(AnswersReply, text)).answers
            return [
                self._answer(one, self.facts.bind(question, whole=one.whole))
                for one, question in zip(replies, asked, strict=True)
            ]

        return Call("POST", self.path("exact"), read, body, key=key_of(key))

    def reserve(self, credits: Credits) -> Call[ReservationReply]:
        body = checked(ReserveBody, credits=positive(credits, "credits"))
        read = lambda text: parsed(ReservationReply, text)  # noqa: E731
        return Call("POST", self.path("reservations"), read, body, key=key_of(None), again=False)

    def give_back(self, reservation: str) -> Call[None]:
        return Call("DELETE", self.path(f"reservations/{reservation}"), _nothing)

    def statement(self) -> Call[RemoteStatement]:
        return Call(
            "GET",
            self.path("statement"),
            lambda text: RemoteStatement.of(parsed(StatementReply, text)),
        )

    def ledger(self, after: int, limit: int) -> Call[LedgerReply]:
        params = {"after": after, "limit": limit}
        return Call(
            "GET", self.path("ledger"), lambda text: parsed(LedgerReply, text), params=params
        )

    def receipt(self, number: int) -> Call[ReceiptDocument]:
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise InvalidQuery(f"a receipt has a number from 1, got {number!r:.40}")

        def read(text: bytes) -> ReceiptDocument:
            found = parsed(ReceiptJson, text)
            return ReceiptDocument(found.receipt, found.signature)

        return Call("GET", self.path(f"receipts/{number}"), read)

    def remaining(self) -> Call[Fraction]:
        return Call(
            "GET",
            self.path("schema"),
            lambda text: Shown(parsed(SchemaReply, text).remaining_exact),
        )

    def grant(self, form: Mapping[str, Any]) -> Call[Granted]:
        told = {name: value for name, value in form.items() if value is not None}
        if "credits" in told:
            told["credits"] = fraction_text(positive(told["credits"], "credits"))
        return Call("POST", self.path("grants"), Granted.read, told, key=key_of(None))

    def revoke(self, name: str) -> Call[None]:
        return Call("DELETE", self.path(f"grants/{quote(name, safe='')}"), _nothing)


def facts_call(path: str) -> Call[Facts]:
    def read(text: bytes) -> Facts:
        found = parsed(SchemaReply, text)
        schema = schema_from_json(found.facts).with_meanings(found.meanings)
        promise = Promise.from_json(found.promise)
        return Facts(
            table=found.table,
            schema=schema,
            promise=promise.about(schema.unit),
            size=found.size,
            facts_id=found.facts_id or None,
            durable=found.durable,
        )

    return Call("GET", path, read)


def tables_call() -> Call[list[str]]:
    def read(text: bytes) -> list[str]:
        return [line.name for line in parsed(TablesReply, text).tables]

    return Call("GET", "/v1/tables", read)


def _nothing(text: bytes) -> None:
    return None


def _level(confidence: float) -> float:
    check_confidence(confidence)
    return confidence


def _amount(credits: Credits | None) -> Fraction | None:
    return None if credits is None else positive(credits, "credits")


def _most(credits: Credits | None) -> Fraction | None:
    return Fraction(0) if credits == 0 else _amount(credits)


def checked(kind: type[M], **fields: Any) -> M:
    """A body, or what is wrong with it as local code says it."""
    try:
        return kind(**fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the question"
        raise InvalidQuery(f"{where}: {first['msg']}") from None


class StaleSchema(Exception):
    """A reply by other facts than are known here: its numbers would be misread."""


class InvalidResponse(Exception):
    """A reply that is none of ours."""


def parsed(kind: type[M], text: bytes) -> M:
    try:
        return kind.model_validate_json(text)
    except ValidationError:
        raise InvalidResponse(f"no {kind.__name__}") from None


# Keys, the largest cells, alerts and declarations: requests as values.


Verdict = TypeVar("Verdict")
"""A bool, or what is awaited for one."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What may be asked exactly, and on what terms, as the ledger keeps them."""

    menu: tuple[tuple[str, ...], ...] | None
    terms: str

    def __str__(self) -> str:
        return self.terms


@dataclass(slots=True, eq=False)
class RemoteAlert(Generic[Verdict]):
    """An alert that a server keeps: `check()` says whether it fires, never the value."""

    number: int
    question: str
    above: Fraction
    firings: int
    left: int
    credits: Fraction
    receipt: ReceiptDocument
    laws: tuple[DiscreteLaplace, DiscreteLaplace]
    step: Fraction
    terms: str
    _check: Callable[[RemoteAlert[Verdict], object, str | None], Verdict]

    def check(self, question: object = None, *, key: str | None = None) -> Verdict:
        """Whether it fires: free, until it has fired as often as was paid for."""
        return self._check(self, question, key)

    def margin(self, confidence: float = 0.95, checks: int = 1) -> float:
        """With this confidence so many checks are right about sums this far from the level."""
        return alert_margin(self.laws, self.step, confidence, checks)

    def __repr__(self) -> str:
        level, cost = f"{float(self.above):,.6g}", credits_text(self.credits)
        return f"<RemoteAlert above {level}, {self.left} of {self.firings} firings left, {cost}>"


def _names(column: object) -> object:
    """The name of a column, or of each of a pair."""
    if isinstance(column, tuple | list):
        return [getattr(each, "name", each) for each in column]
    return getattr(column, "name", column)


@dataclass(frozen=True, slots=True)
class DiscoveryRequests:
    """The verbs of one table besides its sums."""

    calls: Calls

    def quote_keys(
        self, column: object, figures: Sequence[object], terms: dict[str, Any]
    ) -> Call[KeysQuote]:
        body = self._keys(column, figures, **terms)
        read = lambda text: keys_quote_of(self.calls.same(parsed(KeysQuoteReply, text)))  # noqa: E731
        return Call("POST", self.calls.path("keys/quote"), read, body)

    def keys(
        self, column: object, figures: Sequence[object], key: str | None, terms: dict[str, Any]
    ) -> Call[Keys]:
        body, facts = self._keys(column, figures, **terms), self.calls.facts
        where, most = terms.get("where"), terms.get("most", 1_000)
        bound = bind_public_keys(column, where, most, facts.schema, facts.promise, figures)
        size = None if facts.size is None else facts.size * facts.schema.max_rows

        def read(text: bytes) -> Keys:
            return keys_of(self.calls.same(parsed(KeysReply, text)), bound, size)

        return Call("POST", self.calls.path("keys"), read, body, key=key_of(key))

    def _keys(
        self,
        column: object,
        figures: Sequence[object],
        where: Expression | None = None,
        credits: Credits | None = None,
        delta: Credits | None = None,
        most: int = 1_000,
    ) -> KeysBody:
        asked = None if where is None else question_json(count(where=where))
        return checked(
            KeysBody,
            column=_names(column),
            figures=[question_json(figure) for figure in figures],
            question=asked,
            credits=None if credits is None else positive(credits, "credits"),
            delta=None if delta is None else positive(delta, "delta"),
            most=most,
            **self._common(),
        )

    def _common(self) -> dict[str, Any]:
        facts = self.calls.facts
        return {"reservation": self.calls.reservation, "facts_id": facts.facts_id}

    def top(
        self,
        of: Expression | str,
        by: object,
        k: int,
        edges: Sequence[object] | None,
        credits: Credits | None,
        key: str | None,
    ) -> Call[Top]:
        question = ranked(of, by, edges)
        bound = self.calls.facts.bind(question)
        body = checked(
            TopBody,
            question=question_json(question),
            k=k,
            credits=None if credits is None else positive(credits, "credits"),
            **self._common(),
        )
        read = lambda text: top_of(self.calls.same(parsed(TopReply, text)), bound)  # noqa: E731
        return Call("POST", self.calls.path("top"), read, body, key=key_of(key))

    def arm(
        self, question: object, above: object, firings: int, credits: Credits, key: str | None
    ) -> Call[AlertReply]:
        body = checked(
            AlertBody,
            question=question_json(question),
            above=as_number(above, "above"),
            firings=firings,
            credits=positive(credits, "credits"),
            **self._common(),
        )
        read = lambda text: self.calls.same(parsed(AlertReply, text))  # noqa: E731
        return Call("POST", self.calls.path("alerts"), read, body, key=key_of(key))

    def check(self, number: int, question: object, key: str | None) -> Call[CheckReply]:
        asked = None if question is None else question_json(question)
        body = checked(CheckBody, question=asked, facts_id=self.calls.facts.facts_id)
        read = lambda text: self.calls.same(parsed(CheckReply, text))  # noqa: E731
        path = self.calls.path(f"alerts/{number}/check")
        return Call("POST", path, read, body, key=key_of(key))

    def alerts(self) -> Call[AlertsReply]:
        return Call("GET", self.calls.path("alerts"), lambda text: parsed(AlertsReply, text))

    def declaration(self) -> Call[Declared]:
        return Call("GET", self.calls.path("exact/declaration"), _declared)

    def declare(self, menu: Sequence[object]) -> Call[Declared]:
        """Batches, each a question or a list of them; also as one list of lists."""
        if len(menu) == 1 and isinstance(menu[0], list) and menu[0]:
            menu = menu[0] if all(isinstance(one, list) for one in menu[0]) else menu
        batches = [batch if isinstance(batch, list | tuple) else [batch] for batch in menu]
        listed = [[question_json(one) for one in batch] for batch in batches]
        body = checked(DeclareBody, menu=listed, facts_id=self.calls.facts.facts_id)
        path = self.calls.path("exact/declaration")
        return Call("POST", path, _declared, body, key=key_of(None))


def _declared(text: bytes) -> Declared:
    found = parsed(DeclaredReply, text)
    menu = None if found.menu is None else tuple(tuple(batch) for batch in found.menu)
    return Declared(menu, found.terms)


def alert_of(
    line: AlertLine, check: Callable[[RemoteAlert[Verdict], object, str | None], Verdict]
) -> RemoteAlert[Verdict]:
    level, each = (law_from_json(law) for law in line.noise)
    if not isinstance(level, DiscreteLaplace) or not isinstance(each, DiscreteLaplace):
        raise InvalidQuery("alerts come with laplace noise")
    paid = line.credits_exact if isinstance(line, AlertReply) else Fraction(0)
    return RemoteAlert(
        number=line.number,
        question=line.question,
        above=line.above,
        firings=line.firings,
        left=line.left,
        credits=paid,
        receipt=paper_of(line.receipt),
        laws=(level, each),
        step=line.step,
        terms=line.terms,
        _check=check,
    )


def numbered(alerts: Sequence[RemoteAlert[Verdict]], number: int) -> RemoteAlert[Verdict]:
    """The alert with this number."""
    for alert in alerts:
        if alert.number == number:
            return alert
    raise Refused(f"no alert {number} of yours is kept there; arm a new one")
