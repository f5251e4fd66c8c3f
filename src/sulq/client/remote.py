"""A table behind a server as an Oracle: local code works with it unchanged."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx

from sulq.answers.oracle import Answer, Quote
from sulq.answers.selections import Keys, KeysQuote, Top
from sulq.answers.statistics import count
from sulq.answers.study_table import StudyTable, study_table, tables_of
from sulq.client.requests import (
    Calls,
    Credits,
    Declared,
    DiscoveryRequests,
    RemoteAlert,
    alert_of,
    facts_call,
    numbered,
    tables_call,
)
from sulq.client.transport import Sender, ServerAddress, Transport, address_of, bearer, options
from sulq.client.values import Granted, RemoteExactQuote, RemotePlan, RemoteStatement
from sulq.errors import InvalidQuery
from sulq.formatting import credits_left
from sulq.kernel.query.expressions import Expression
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.promise import Promise
from sulq.shares import ShareQuote, SumShare
from sulq.sql.api import SqlQuote, ask_sql, quote_sql
from sulq.sql.evaluate.result import Result
from sulq.synthetic import dummy_source
from sulq.wire import SqlReply
from sulq.wire.convert import ReceiptDocument

PAGE = 500
"""Events of a ledger that are fetched at once."""


def connected(
    url: str,
    token: str | None,
    timeout: float,
    retries: int,
    verify: ssl.SSLContext | str | Path | bool,
    insecure: bool,
) -> Remote:
    """What `connect` gives."""
    address = address_of(url)
    carried = bearer(address, token, insecure)
    sender = Sender(address, retries)
    client = httpx.Client(**options(address, timeout, verify, insecure))  # type: ignore[arg-type]
    try:
        line = Transport(client, carried, sender)
        table = address.table or only_table(line.send(tables_call()))
        facts = line.send(facts_call(address.path(table, "schema")))
    except BaseException:
        client.close()
        raise
    return Remote(line, address, Calls(facts, lambda rest: address.path(table, rest)))


def only_table(names: list[str]) -> str:
    """The table meant by an address that names none."""
    if len(names) != 1:
        raise InvalidQuery(
            f"say which table, as in https://host/{names[0] if names else 'people'};"
            f" this token may see {sorted(names)}"
        )
    return names[0]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Remote:
    """A published table behind a server. Has no row, no noise and no ledger."""

    _line: Transport
    _address: ServerAddress
    _calls: Calls

    # --- what is public -------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """What the server calls the table or the study."""
        return self._calls.facts.table

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of a study's tables, the person table first; of one table alone, none."""
        return tables_of(self)

    def table(self, name: str) -> StudyTable:
        """Return one table of a study by its name, to be asked about its rows."""
        return study_table(self, name)

    @property
    def schema(self) -> Schema:
        return self._calls.facts.schema

    @property
    def promise(self) -> Promise:
        return self._calls.facts.promise

    @property
    def size(self) -> int | None:
        """The public number of rows (persons); None under add-remove."""
        return self._calls.facts.size

    @property
    def durable(self) -> bool:
        """Whether what is spent there is spent for good: not of a ledger in memory."""
        return self._calls.facts.durable

    @property
    def remaining(self) -> Fraction:
        """Credits left for a question that touches everybody."""
        return self._line.send(self._calls.remaining())

    def sample_dummy(self, rows: int = 100) -> dict[str, Any]:
        """Made-up rows of this schema, by column; made here, free."""
        return dummy_source(self.schema, rows)

    def __repr__(self) -> str:
        size = "" if self.size is None else f", {self.size:,} {self.schema.who}"
        return f"<Remote {self.name!r} at {self._address.base}{size}, {self.promise}>"

    # --- questions ------------------------------------------------------------------------------

    def quote(
        self,
        query: object,
        *,
        within: float | None = None,
        confidence: float = 0.95,
        credits: Credits | None = None,
        rows: int | None = None,
    ) -> Quote:
        """Price and error bar of a question; free, and no row is read."""
        return self._line.send(self._calls.price(query, within, confidence, credits, rows))

    def ask(
        self,
        query: object,
        *,
        within: float | None = None,
        confidence: float = 0.95,
        credits: Credits | None = None,
        rows: int | None = None,
        key: str | None = None,
        max_credits: Credits | None = None,
    ) -> Answer:
        """A noisy answer, charged; refused, free, if it costs more than `max_credits`."""
        return self._line.send(
            self._calls.ask(query, within, confidence, credits, rows, key, max_credits)
        )

    def share(
        self,
        query: object,
        *,
        joint: str,
        within: float | None = None,
        confidence: float = 0.95,
        credits: Credits | None = None,
        rows: int | None = None,
        max_credits: Credits | None = None,
    ) -> SumShare:
        """This owner's masked share of the joint sum of that name, charged. V.4"""
        return self._line.send(
            self._calls.share(query, joint, within, confidence, credits, rows, max_credits)
        )

    def quote_share(
        self,
        query: object,
        *,
        joint: str | None = None,
        within: float | None = None,
        confidence: float = 0.95,
        credits: Credits | None = None,
        rows: int | None = None,
    ) -> ShareQuote:
        """Price of a share, who takes part, and the bar of the total; free."""
        return self._line.send(
            self._calls.quote_share(query, joint, within, confidence, credits, rows)
        )

    def plan(
        self,
        queries: Sequence[object],
        *,
        credits: Credits | None = None,
        within: float | Sequence[float | None] | None = None,
        weights: Sequence[Credits] | None = None,
        confidence: float = 0.95,
        rows: int | None = None,
    ) -> RemotePlan:
        """Price several questions together, free; `plan.ask()` charges all of them or none."""
        body, bounds, call = self._calls.plan(queries, credits, within, weights, confidence, rows)
        reply, lines = self._line.send(call)
        most = reply.credits_exact

        def ask(key: str | None) -> list[Answer]:
            return self._line.send(self._calls.ask_plan(body, bounds, most, key))

        return RemotePlan(
            lines=lines,
            credits=most,
            left_after=reply.left_after_exact,
            confidence=reply.confidence,
            _ask=ask,
        )

    def sql(self, text: str, params: Any = None, **terms: Any) -> Result:
        """Answer a SELECT with noise; planned here, asked there, as `Database.sql`."""
        return ask_sql(self, text, params=params, **{"table": self.name, **terms})

    def quote_sql(self, text: str, params: Any = None, **terms: Any) -> SqlQuote:
        """Price and error bars of a SELECT; free, and no row is read."""
        return quote_sql(self, text, params=params, **{"table": self.name, **terms})

    def select(self, text: str, *, key: str | None = None, **terms: Any) -> SqlReply:
        """Answer a SELECT that the server reads and plans, in one request; for other tools.

        Terms are the fields of POST sql: `params`, `credits`, `confidence`, `max_credits`,
        `purpose`, `purpose_credits`.
        """
        return self._line.send(self._calls.select(text, terms, key))

    def ask_exactly(self, batch: object, *, key: str | None = None) -> list[Answer]:
        """Answer a batch without noise, under the owner's assumptions, or refuse."""
        return self._line.send(self._calls.ask_exactly(batch, key))

    def quote_exactly(self, batch: object) -> RemoteExactQuote:
        """What an exact answer would be and do, free; `UnsafeExactly` if it would be refused."""
        return self._line.send(self._calls.quote_exactly(batch))

    @property
    def declaration(self) -> tuple[tuple[str, ...], ...] | None:
        """The questions that may be asked exactly: batches, of which one may be; None if none."""
        return self._line.send(self._finding.declaration()).menu

    def declare_exactly(self, *menu: object) -> Declared:
        """Fix what may be asked exactly, before anything is answered; the owner's."""
        return self._line.send(self._finding.declare(menu))

    def reserve(self, credits: Credits) -> RemoteReserved:
        """Set credits aside: `with db.reserve(40) as reserved:`; the unspent go back at the end."""
        found = self._line.send(self._calls.reserve(credits))
        calls = Calls(self._calls.facts, self._calls.path, found.id)
        return RemoteReserved(self._line, self._address, calls)

    # --- besides sums ---------------------------------------------------------------------------

    def quote_keys(self, column: object, *figures: object, **terms: Any) -> KeysQuote:
        """Price and threshold of `keys`; free, and no row is read."""
        return self._line.send(self._finding.quote_keys(column, figures, terms))

    def keys(self, column: object, *figures: object, key: str | None = None, **terms: Any) -> Keys:
        """Counts and `figures` by keys that nobody declared, of those that many share; charged."""
        return self._line.send(self._finding.keys(column, figures, key, terms))

    def top(
        self,
        of: Expression | str,
        *,
        by: object = None,
        k: int = 1,
        edges: Sequence[object] | None = None,
        credits: Credits | None = None,
        key: str | None = None,
    ) -> Top:
        """Which cells have the largest count or total, names only; charged."""
        return self._line.send(self._finding.top(of, by, k, edges, credits, key))

    def alert(
        self,
        question: object,
        *,
        above: object,
        firings: int = 1,
        credits: Credits = 1,
        keep: bool = True,
        key: str | None = None,
    ) -> RemoteAlert[bool]:
        """Arm an alert, charged in full; a server keeps it whatever `keep` says."""
        call = self._finding.arm(question, above, firings, credits, key)
        return alert_of(self._line.send(call), self._check)

    def alerts(self) -> list[RemoteAlert[bool]]:
        """The alerts that you have armed there."""
        found = self._line.send(self._finding.alerts())
        return [alert_of(line, self._check) for line in found.alerts]

    def kept_alert(self, number: int) -> RemoteAlert[bool]:
        """The one with this number."""
        return numbered(self.alerts(), number)

    def _check(self, alert: RemoteAlert[bool], question: object, key: str | None) -> bool:
        found = self._line.send(self._finding.check(alert.number, question, key))
        alert.left = found.left
        return found.fired

    @property
    def _finding(self) -> DiscoveryRequests:
        return DiscoveryRequests(self._calls)

    # --- the books ------------------------------------------------------------------------------

    def statement(self) -> RemoteStatement:
        """Spent, left, and what the promise means."""
        return self._line.send(self._calls.statement())

    def receipt(self, number: int) -> ReceiptDocument:
        """The signed receipt of an earlier answer."""
        return self._line.send(self._calls.receipt(number))

    def entries(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """The ledger's events after this number, oldest first; others' questions are not told."""
        upto: int | None = after
        while upto is not None:
            page = self._line.send(self._calls.ledger(upto, PAGE))
            yield from page.entries
            upto = page.next if page.entries else None

    # --- the owner's ----------------------------------------------------------------------------

    def grant(
        self,
        analyst: str,
        credits: Credits | None = None,
        *,
        role: str = "analyst",
        expires: int | None = None,
        rate: str | None = None,
    ) -> Granted:
        """Give somebody a share and a token, which is told once; `rate` as "60/min".

        `expires`: seconds since 1970.
        """
        form = {"name": analyst, "role": role, "credits": credits, "expires": expires, "rate": rate}
        return self._line.send(self._calls.grant(form))

    def revoke(self, analyst: str) -> None:
        """End somebody's tokens for this table."""
        self._line.send(self._calls.revoke(analyst))

    def close(self) -> None:
        """Close the connections; nothing on the server changes."""
        self._line.client.close()

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RemoteReserved(Remote):
    """An Oracle that spends from credits set aside; after an idle hour the server ends it."""

    @property
    def remaining(self) -> Fraction:
        found = self.quote(count())
        return found.left_after + found.credits

    def close(self) -> None:
        """Give back what is left; asking through this is refused from now on."""
        if self._calls.reservation is not None:
            self._line.send(self._calls.give_back(self._calls.reservation))

    def __enter__(self) -> RemoteReserved:
        return self

    def __repr__(self) -> str:
        return f"<RemoteReserved {credits_left(self.remaining)} at {self._address.base}>"
