"""An Oracle in one analyst's name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sulq.database.selecting import ask_select, quote_select
from sulq.finds import Keys, KeysQuote, Top
from sulq.oracle import Answer, Quote
from sulq.schema.columns import Schema
from sulq.schema.promise import Promise
from sulq.shares import Share, ShareQuote

if TYPE_CHECKING:
    from sulq.database.alerts import Alert
    from sulq.database.database import Database
    from sulq.database.plans import Plan
    from sulq.database.reserving import Reserved


@dataclass(frozen=True, slots=True)
class Analyst:
    """What is asked is charged to this analyst's share too."""

    database: Database
    name: str

    @property
    def schema(self) -> Schema:
        return self.database.schema

    @property
    def promise(self) -> Promise:
        return self.database.promise

    @property
    def size(self) -> int | None:
        return self.database.size

    @property
    def durable(self) -> bool:
        return self.database.durable

    @property
    def remaining(self) -> Fraction:
        return self.database.left_for(self.name)

    def sample_dummy(self, rows: int = 100) -> dict[str, Any]:
        return self.database.sample_dummy(rows)

    def quote(self, query: object, **terms: Any) -> Quote:
        return self.database.quote(query, analyst=self.name, **terms)

    def ask(self, query: object, **terms: Any) -> Answer:
        return self.database.ask(query, analyst=self.name, **terms)

    def share(self, query: object, **terms: Any) -> Share:
        return self.database.share(query, analyst=self.name, **terms)

    def quote_share(self, query: object, **terms: Any) -> ShareQuote:
        return self.database.quote_share(query, analyst=self.name, **terms)

    def plan(self, queries: Sequence[object], **terms: Any) -> Plan:
        return self.database.plan(queries, analyst=self.name, **terms)

    def reserve(self, credits: Fraction | int | float) -> Reserved:
        return self.database.reserve(credits, analyst=self.name)

    sql = ask_select
    quote_sql = quote_select

    def ask_exactly(self, batch: object) -> list[Answer]:
        return self.database.ask_exactly(batch, analyst=self.name)

    def keys(self, column: object, **terms: Any) -> Keys:
        return self.database.keys(column, analyst=self.name, **terms)

    def quote_keys(self, column: object, **terms: Any) -> KeysQuote:
        return self.database.quote_keys(column, analyst=self.name, **terms)

    def top(self, of: Any, **terms: Any) -> Top:
        return self.database.top(of, analyst=self.name, **terms)

    def alert(self, question: object, **terms: Any) -> Alert:
        return self.database.alert(question, analyst=self.name, **terms)

    def alerts(self) -> list[Alert]:
        return self.database.alerts(analyst=self.name)

    def kept_alert(self, number: int) -> Alert:
        return self.database.kept_alert(number, analyst=self.name)
