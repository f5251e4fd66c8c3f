"""Keys, the largest cells, alerts and declarations: requests as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

from sulq.accounting.pricing import positive
from sulq.client.calls import Call, Calls, Credits, checked, key_of, parsed
from sulq.errors import InvalidQuery, Refused
from sulq.finds import Keys, KeysQuote, Top, alert_margin
from sulq.noise.distributions import DiscreteLaplace, law_from_json
from sulq.oracle import credits_text
from sulq.query.expressions import Expression
from sulq.query.statistics import count, ranked
from sulq.schema.columns import as_number
from sulq.wire import question_json
from sulq.wire.answers import Paper
from sulq.wire.finding import (
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
    receipt: Paper
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


@dataclass(frozen=True, slots=True)
class Finding:
    """The verbs of one table besides its sums."""

    calls: Calls

    def quote_keys(self, column: object, terms: dict[str, Any]) -> Call[KeysQuote]:
        body = self._keys(column, **terms)
        read = lambda text: keys_quote_of(self.calls.same(parsed(KeysQuoteReply, text)))  # noqa: E731
        return Call("POST", self.calls.path("keys/quote"), read, body)

    def keys(self, column: object, key: str | None, terms: dict[str, Any]) -> Call[Keys]:
        body = self._keys(column, **terms)
        read = lambda text: keys_of(self.calls.same(parsed(KeysReply, text)))  # noqa: E731
        return Call("POST", self.calls.path("keys"), read, body, key=key_of(key))

    def _keys(
        self,
        column: object,
        where: Expression | None = None,
        credits: Credits | None = None,
        delta: Credits | None = None,
        most: int = 1_000,
    ) -> KeysBody:
        asked = None if where is None else question_json(count(where=where))
        return checked(
            KeysBody, column=getattr(column, "name", column), question=asked,
            credits=None if credits is None else positive(credits, "credits"),
            delta=None if delta is None else positive(delta, "delta"),
            most=most, **self._common(),
        )  # fmt: skip

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
            TopBody, question=question_json(question), k=k,
            credits=None if credits is None else positive(credits, "credits"), **self._common(),
        )  # fmt: skip
        read = lambda text: top_of(self.calls.same(parsed(TopReply, text)), bound)  # noqa: E731
        return Call("POST", self.calls.path("top"), read, body, key=key_of(key))

    def arm(
        self, question: object, above: object, firings: int, credits: Credits, key: str | None
    ) -> Call[AlertReply]:
        body = checked(
            AlertBody, question=question_json(question), above=as_number(above, "above"),
            firings=firings, credits=positive(credits, "credits"), **self._common(),
        )  # fmt: skip
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
        line.number, line.question, line.above, line.firings, line.left, paid,
        paper_of(line.receipt), (level, each), line.step, line.terms, check,
    )  # fmt: skip


def numbered(alerts: Sequence[RemoteAlert[Verdict]], number: int) -> RemoteAlert[Verdict]:
    """The alert with this number."""
    for alert in alerts:
        if alert.number == number:
            return alert
    raise Refused(f"no alert {number} of yours is kept there; arm a new one")
