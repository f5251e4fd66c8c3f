"""`await connect_async(url)`: the same table for an event loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import httpx

from sulq.answers.oracle import Answer, Quote
from sulq.answers.selections import Keys, KeysQuote, Top
from sulq.answers.statistics import count
from sulq.answers.study_table import study_table, tables_of
from sulq.client.remote import PAGE, only_table
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
from sulq.client.transport import AsyncLine, Sender, ServerAddress, address_of, bearer, options
from sulq.client.values import Granted, RemoteExactQuote, RemotePlan, RemotePrice, RemoteStatement
from sulq.kernel.query.expressions import Expression
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.promise import Promise
from sulq.shares import ShareQuote, SumShare
from sulq.sql.api import SqlQuote, ask_sql, quote_sql
from sulq.sql.evaluate.result import Result
from sulq.synthetic import dummy_source
from sulq.wire import SqlReply
from sulq.wire.convert import ReceiptDocument

T = TypeVar("T")


async def connect_async(
    url: str,
    *,
    token: str | None = None,
    timeout: float = 60.0,
    retries: int = 4,
    verify: ssl.SSLContext | str | Path | bool = True,
    insecure: bool = False,
) -> AsyncRemote:
    """As `connect`; what asks the server is awaited and never blocks the loop."""
    address = address_of(url)
    carried = bearer(address, token, insecure)
    sender = Sender(address, retries)
    client = httpx.AsyncClient(**options(address, timeout, verify, insecure))  # type: ignore[arg-type]
    try:
        line = AsyncLine(client, carried, sender)
        table = address.table or only_table(await line.send(tables_call()))
        facts = await line.send(facts_call(address.path(table, "schema")))
    except BaseException:
        await client.aclose()
        raise
    return AsyncRemote(line, address, Calls(facts, lambda rest: address.path(table, rest)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AsyncPlan(RemotePrice):
    """`await plan.ask()` pays for all of it, or for none."""

    _ask: Callable[[str | None], Awaitable[list[Answer]]] = field(repr=False)

    async def ask(self, key: str | None = None) -> list[Answer]:
        return await self._ask(key)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class AsyncRemote:
    """A published table behind a server, for an event loop: the verbs of `Remote`, awaited."""

    _line: AsyncLine
    _address: ServerAddress
    _calls: Calls

    @property
    def name(self) -> str:
        """What the server calls the table or the study."""
        return self._calls.facts.table

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of a study's tables, the person table first; of one table alone, none."""
        return tables_of(self)

    def table(self, name: str) -> Any:
        """The table `name` of a study: its verbs are awaited as those here."""
        return study_table(self, name)

    @property
    def schema(self) -> Schema:
        return self._calls.facts.schema

    @property
    def promise(self) -> Promise:
        return self._calls.facts.promise

    @property
    def size(self) -> int | None:
        return self._calls.facts.size

    @property
    def durable(self) -> bool:
        return self._calls.facts.durable

    def sample_dummy(self, rows: int = 100) -> dict[str, Any]:
        """Made-up rows of this schema, by column; made here, free."""
        return dummy_source(self.schema, rows)

    def __repr__(self) -> str:
        return f"<AsyncRemote {self.name!r} at {self._address.base}>"

    async def remaining(self) -> Fraction:
        """Credits left for a question that touches everybody."""
        return await self._line.send(self._calls.remaining())

    async def statement(self) -> RemoteStatement:
        """Spent, left, and what the promise means."""
        return await self._line.send(self._calls.statement())

    async def receipt(self, number: int) -> ReceiptDocument:
        """The signed receipt of an earlier answer."""
        return await self._line.send(self._calls.receipt(number))

    async def entries(self, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """The ledger's events after this number, oldest first; others' questions are not told."""
        upto: int | None = after
        while upto is not None:
            page = await self._line.send(self._calls.ledger(upto, PAGE))
            for entry in page.entries:
                yield entry
            upto = page.next if page.entries else None

    async def grant(
        self,
        analyst: str,
        credits: Credits | None = None,
        *,
        role: str = "analyst",
        expires: int | None = None,
        rate: str | None = None,
    ) -> Granted:
        """Give somebody a share and a token, which is told once; the owner's."""
        form = {"name": analyst, "role": role, "credits": credits, "expires": expires, "rate": rate}
        return await self._line.send(self._calls.grant(form))

    async def revoke(self, analyst: str) -> None:
        """End somebody's tokens for this table; the owner's."""
        await self._line.send(self._calls.revoke(analyst))

    async def quote(
        self,
        query: object,
        *,
        within: float | None = None,
        confidence: float = 0.95,
        credits: Credits | None = None,
        rows: int | None = None,
    ) -> Quote:
        """Price and error bar of a question; free, and no row is read."""
        return await self._line.send(self._calls.price(query, within, confidence, credits, rows))

    async def ask(
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
        """A noisy answer, charged."""
        return await self._line.send(
            self._calls.ask(query, within, confidence, credits, rows, key, max_credits)
        )

    async def share(
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
        return await self._line.send(
            self._calls.share(query, joint, within, confidence, credits, rows, max_credits)
        )

    async def quote_share(
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
        return await self._line.send(
            self._calls.quote_share(query, joint, within, confidence, credits, rows)
        )

    async def plan(
        self,
        queries: Sequence[object],
        *,
        credits: Credits | None = None,
        within: float | Sequence[float | None] | None = None,
        weights: Sequence[Credits] | None = None,
        confidence: float = 0.95,
        rows: int | None = None,
    ) -> AsyncPlan:
        """Price several questions together, free."""
        body, bounds, call = self._calls.plan(queries, credits, within, weights, confidence, rows)
        reply, lines = await self._line.send(call)
        most = reply.credits_exact

        async def ask(key: str | None) -> list[Answer]:
            return await self._line.send(self._calls.ask_plan(body, bounds, most, key))

        return AsyncPlan(lines, most, reply.left_after_exact, reply.confidence, ask)

    async def ask_exactly(self, batch: object, *, key: str | None = None) -> list[Answer]:
        """Answer a batch without noise, under the owner's assumptions, or refuse."""
        return await self._line.send(self._calls.ask_exactly(batch, key))

    async def quote_exactly(self, batch: object) -> RemoteExactQuote:
        """What an exact answer would be and do, free; `UnsafeExactly` if it would be refused."""
        return await self._line.send(self._calls.quote_exactly(batch))

    async def declaration(self) -> tuple[tuple[str, ...], ...] | None:
        """The questions that may be asked exactly: batches, of which one may be; None if none."""
        return (await self._line.send(self._finding.declaration())).menu

    async def declare_exactly(self, *menu: object) -> Declared:
        """Fix what may be asked exactly, before anything is answered; the owner's."""
        return await self._line.send(self._finding.declare(menu))

    async def reserve(self, credits: Credits) -> AsyncReserved:
        """Set credits aside: `async with await db.reserve(40) as reserved:`."""
        found = await self._line.send(self._calls.reserve(credits))
        calls = Calls(self._calls.facts, self._calls.path, found.id)
        return AsyncReserved(self._line, self._address, calls)

    async def quote_keys(self, column: object, *figures: object, **terms: Any) -> KeysQuote:
        """Price and threshold of `keys`; free, and no row is read."""
        return await self._line.send(self._finding.quote_keys(column, figures, terms))

    async def keys(
        self, column: object, *figures: object, key: str | None = None, **terms: Any
    ) -> Keys:
        """Counts and `figures` by keys that nobody declared, of those that many share; charged."""
        return await self._line.send(self._finding.keys(column, figures, key, terms))

    async def top(
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
        return await self._line.send(self._finding.top(of, by, k, edges, credits, key))

    async def alert(
        self,
        question: object,
        *,
        above: object,
        firings: int = 1,
        credits: Credits = 1,
        keep: bool = True,
        key: str | None = None,
    ) -> RemoteAlert[Awaitable[bool]]:
        """Arm an alert, charged in full; a server keeps it whatever `keep` says."""
        call = self._finding.arm(question, above, firings, credits, key)
        armed = await self._line.send(call)
        return alert_of(armed, self._check)

    async def alerts(self) -> list[RemoteAlert[Awaitable[bool]]]:
        """The alerts that you have armed there."""
        found = await self._line.send(self._finding.alerts())
        return [alert_of(line, self._check) for line in found.alerts]

    async def kept_alert(self, number: int) -> RemoteAlert[Awaitable[bool]]:
        """The one with this number."""
        return numbered(await self.alerts(), number)

    async def _check(
        self, alert: RemoteAlert[Awaitable[bool]], question: object, key: str | None
    ) -> bool:
        found = await self._line.send(self._finding.check(alert.number, question, key))
        alert.left = found.left
        return found.fired

    @property
    def _finding(self) -> DiscoveryRequests:
        return DiscoveryRequests(self._calls)

    async def sql(self, text: str, params: Any = None, **terms: Any) -> Result:
        """Answer a SELECT: planned in a thread, which asks through this loop."""
        named = {"table": self._calls.facts.table, "params": params, **terms}
        return await asyncio.to_thread(ask_sql, self._bridge(), text, **named)

    async def quote_sql(self, text: str, params: Any = None, **terms: Any) -> SqlQuote:
        """Price and error bars of a SELECT; free, and no row is read."""
        named = {"table": self._calls.facts.table, "params": params, **terms}
        return await asyncio.to_thread(quote_sql, self._bridge(), text, **named)

    async def select(self, text: str, *, key: str | None = None, **terms: Any) -> SqlReply:
        """Answer a SELECT that the server reads and plans; terms as of `Remote.select`."""
        return await self._line.send(self._calls.select(text, terms, key))

    def _bridge(self) -> Bridge:
        return Bridge(self, asyncio.get_running_loop())

    async def close(self) -> None:
        """Close the connections; nothing on the server changes."""
        await self._line.client.aclose()

    async def __aenter__(self) -> AsyncRemote:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class AsyncReserved(AsyncRemote):
    """An Oracle that spends from credits set aside; after an idle hour the server ends it."""

    async def remaining(self) -> Fraction:
        found = await self.quote(count())
        return found.left_after + found.credits

    async def close(self) -> None:
        """Give back what is left; asking through this is refused from now on."""
        if self._calls.reservation is not None:
            await self._line.send(self._calls.give_back(self._calls.reservation))

    async def __aenter__(self) -> AsyncReserved:
        return self

    def __repr__(self) -> str:
        return f"<AsyncReserved of {self.name!r} at {self._address.base}>"


@dataclass(frozen=True, slots=True)
class Bridge:
    """The Oracle that a thread sees: each question is asked on the loop, and waited for."""

    remote: AsyncRemote
    loop: asyncio.AbstractEventLoop

    @property
    def schema(self) -> Schema:
        return self.remote.schema

    @property
    def promise(self) -> Promise:
        return self.remote.promise

    @property
    def size(self) -> int | None:
        return self.remote.size

    @property
    def durable(self) -> bool:
        return self.remote.durable

    @property
    def remaining(self) -> Fraction:
        return self._wait(self.remote.remaining())

    def quote(self, query: object, **terms: Any) -> Quote:
        return self._wait(self.remote.quote(query, **terms))

    def ask(self, query: object, **terms: Any) -> Answer:
        return self._wait(self.remote.ask(query, **terms))

    def keys(self, column: object, *figures: object, **terms: Any) -> Keys:
        return self._wait(self.remote.keys(column, *figures, **terms))

    def quote_keys(self, column: object, *figures: object, **terms: Any) -> KeysQuote:
        return self._wait(self.remote.quote_keys(column, *figures, **terms))

    def plan(self, queries: Sequence[object], **terms: Any) -> RemotePlan:
        found = self._wait(self.remote.plan(queries, **terms))

        def ask(key: str | None) -> list[Answer]:
            return self._wait(found.ask(key))

        return RemotePlan(found.lines, found.credits, found.left_after, found.confidence, ask)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()
