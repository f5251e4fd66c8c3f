"""A published table: what its owner and its analysts may ask and change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sulq.account import Account
from sulq.answers.oracle import Answer, Oracle, Quote
from sulq.answers.oracle import Credits as Shown
from sulq.answers.selections import Keys, KeysQuote, Top
from sulq.answers.sizes import moment_count, sized_forecast, sizes_of
from sulq.answers.statistics import forecast
from sulq.answers.study_table import study_table, tables_of
from sulq.database.alerts import Alert, arm_alert, kept_alert, kept_alerts
from sulq.database.amend import amend, charge_outside, close_for_good, grow_table, revoke, withdraw
from sulq.database.exact import ExactQuote
from sulq.database.facts import NAMELESS, readable_again
from sulq.database.keys import ask_keys, quote_keys
from sulq.database.plan import Plan, plan
from sulq.database.publish import Options, open_table
from sulq.database.sharing import Sharing, ask_share, quote_share
from sulq.database.table import Asker, Credits, Table
from sulq.database.top import top_k
from sulq.errors import InvalidQuery
from sulq.exact.domain import Assumptions
from sulq.exact.terms import ExactTerms
from sulq.formatting import credits_left
from sulq.kernel.accounting.calibration import meaning
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.pricing import positive
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.ledger.signing import Receipt
from sulq.kernel.release.release import NoisySums, release
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.promise import Population, Promise
from sulq.shares import Partners, ShareQuote, SumShare
from sulq.synthetic import dummy_source

if TYPE_CHECKING:
    from sulq.sql.api import SqlQuote
    from sulq.sql.evaluate.result import Result


def ask_select(oracle: Oracle, text: str, params: Any = None, **terms: Any) -> Result:
    """Answer a SELECT with noise: `db.sql("SELECT AVG(age) FROM people")`.

    `params` are the values of its ?, %s, :name or $1. Terms: `credits`, `confidence`, `rows`,
    `key`, `lookups`, `dialect`, `table`; docs/reference/sql.md.
    """
    from sulq.sql.api import ask_sql

    return ask_sql(oracle, text, params=params, **_named(oracle, terms))


def quote_select(oracle: Oracle, text: str, params: Any = None, **terms: Any) -> SqlQuote:
    """Price and error bars of a SELECT; free, and no row is read."""
    from sulq.sql.api import quote_sql

    return quote_sql(oracle, text, params=params, **_named(oracle, terms))


def _named(oracle: Any, terms: dict[str, Any]) -> dict[str, Any]:
    """With the name that FROM has to say; a table that nobody named takes any."""
    name = getattr(oracle, "database", oracle).ledger.header.name
    return terms if name == NAMELESS else {"table": name, **terms}


# An Oracle in one analyst's name.


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

    table, tables = study_table, property(tables_of)

    def quote(self, query: object, **terms: Any) -> Quote:
        return self.database.quote(query, analyst=self.name, **terms)

    def ask(self, query: object, **terms: Any) -> Answer:
        return self.database.ask(query, analyst=self.name, **terms)

    def known(self, query: object) -> Answer | None:
        return self.database.known(query, analyst=self.name)

    def share(self, query: object, **terms: Any) -> SumShare:
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

    def keys(self, column: object, *figures: object, **terms: Any) -> Keys:
        return self.database.keys(column, *figures, analyst=self.name, **terms)

    def quote_keys(self, column: object, *figures: object, **terms: Any) -> KeysQuote:
        return self.database.quote_keys(column, *figures, analyst=self.name, **terms)

    def top(self, of: Any, **terms: Any) -> Top:
        return self.database.top(of, analyst=self.name, **terms)

    def alert(self, question: object, **terms: Any) -> Alert:
        return self.database.alert(question, analyst=self.name, **terms)

    def alerts(self) -> list[Alert]:
        return self.database.alerts(analyst=self.name)

    def kept_alert(self, number: int) -> Alert:
        return self.database.kept_alert(number, analyst=self.name)


# An Oracle that spends from credits set aside for it.


@dataclass(frozen=True, slots=True)
class Reserved(Analyst):
    """`database` here is the same table on a ledger view that charges the reservation.

    Nobody else can take what is left of it. At the end of `with`, or with `close`, the rest goes
    back; after a crash it does so when the ledger is next opened.
    """

    reserved: ClassVar[bool] = True

    def close(self) -> None:
        """Give back what is left; asking through this is refused from now on."""
        self.database.ledger.close()

    def __enter__(self) -> Reserved:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Reserved {credits_left(self.remaining)} for {self.name}>"


def reserve(database: Database, credits: Credits, analyst: str) -> Reserved:
    """Set credits aside: out of an analyst's share, or for the owner out of what is not granted.

    Half of the slack goes along in proportion, as with a grant.
    """
    amount = positive(credits, "credits")
    slack = database.calibration.slack_cap * amount / (2 * database.calibration.credits)
    ledger = database.ledger.reserve(analyst, Loss.cap(amount, slack))
    view = database.with_(ledger=ledger)
    view.reuse = database.reuse  # one answer store: what is asked here is known there
    return Reserved(view, analyst)


# `db.sql(...)`: a SELECT asked of a database. The parser is loaded when first needed.


class Database(Table):
    """A published table. Its owner's view: an Oracle that can also grant shares."""

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        self._sharing = Sharing(self)

    @classmethod
    def open(
        cls,
        source: Any,
        schema: Schema,
        promise: Promise,
        ledger: str | Path,
        *,
        name: str | None = None,
        exactly: Assumptions | None = None,
        individual: bool = False,
        population: Population | None = None,
        grown_from: bool | str = False,
        version_budget: Credits | None = None,
        publish: bool = False,
        receipts: str | Path | None = None,
        vault: bool | None = None,
    ) -> Database:
        """Open a table on the ledger that has its history.

        `publish=True` publishes it if the ledger does not have it: columns, bounds and promise are
        fixed from then on. It is needed once, not for a ledger in memory, and changes nothing on a
        published table. Without it an unpublished table raises `NotPublished` and nothing is made.

        `source` is a Parquet or CSV file, a pandas, polars or Arrow table, an address of PostgreSQL
        or Spark, or a `Remote` file (docs/guides/remote.md). `exactly` turns
        `ask_exactly` on, on assumptions that the owner vouches for. `individual` gives every person
        a secret balance of their own, in place of one for all: docs/guides/individual.md.
        `population` names the people: what any of their tables in this ledger answers is charged
        to one account: docs/guides/same-people.md. `grown_from` says that the table on the ledger
        got new rows (text: why), `version_budget` how many credits this version of its data may
        spend of the lifetime budget: docs/guides/growth.md. `receipts` is the ledger's receipts
        journal, a file on another disk: docs/guides/backup-and-recover.md. `vault` says whether
        questions are read from a copy in the state directory, clamped and rounded once; unsaid, it
        is made for large files: docs/guides/vault.md.
        """
        table = open_table(
            source,
            schema,
            promise,
            ledger,
            name,
            Options(
                exactly,
                individual,
                population,
                grown_from,
                version_budget,
                publish,
                receipts,
                vault,
            ),
        )
        found = cls(table.schema, table.promise, table.engine, table.ledger, table.terms, exactly)
        found.source, found.vault = readable_again(source), vault
        return found

    def __repr__(self) -> str:
        size = "" if self.size is None else f", {self.size:,} {self.schema.who}"
        return f"<Database {self.ledger.header.name!r}{size}, {self.promise}>"

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- asking ---------------------------------------------------------------------------------

    def ask(
        self,
        query: object,
        *,
        within: float | None = None,
        confidence: float = 0.95,
        credits: Credits | None = None,
        rows: int | None = None,
        analyst: str = OWNER,
        key: str | None = None,
    ) -> Answer:
        """Answer `query` with noise. Blum et al. 2005, algorithm A(R)."""
        bound = self.bind(query)  # query and schema only; may refuse, free
        wanted = self.price(bound, within, confidence, credits, rows)  # no data
        asker = Asker(analyst, key, within, confidence)
        found = self.recalled(bound, wanted, asker)  # noisy answers only
        if found.told:
            return self.told_again(bound, found, asker)
        if found.derived is not None:  # no row is touched
            return self.derived_answer(bound, found.derived, asker, found.share)
        noisy = NoisySums(bound, found.cost, self.priced(bound, found))
        charge = partial(self.charged, bound, asker)
        entry = release([noisy], self.reader, charge, self.ledger.settle_all)[bound.digest]
        self.reuse.keep(entry)
        if found.sources is not None:  # the draw adds the precision that was missing, M.7
            return self.topped_up(bound, found.sources, entry, asker)
        return self.answered(bound, entry, found.cost, within, confidence)

    def plan(self, queries: Sequence[object], **terms: Any) -> Plan:
        """Price several questions together, free; `plan.ask()` charges all of them or none.

        `credits` are shared by unit price (all get the same noise) or by `weights`; or `within`.
        """
        return plan(self, queries, **terms)

    def reserve(self, credits: Credits, *, analyst: str = OWNER) -> Reserved:
        """Set credits aside: `with db.reserve(40) as reserved:`; the unspent go back at the end."""
        return reserve(self, credits, analyst)

    def ask_exactly(self, batch: object, *, analyst: str = OWNER) -> list[Answer]:
        """Answer a batch without noise, under the owner's assumptions, or refuse. Duan, S1.15

        What may be asked was declared before anything was answered; on an untouched table the
        first batch declares itself.
        """
        return self.exact.ask(batch, analyst, partial(self.ask, analyst=analyst))

    @property
    def declaration(self) -> tuple[tuple[str, ...], ...] | None:
        """The questions that may be asked exactly: batches, of which one may be; None if none."""
        declared = self.ledger.declaration
        return None if declared is None else declared.menu

    def quote_exactly(self, batch: object, *, analyst: str = OWNER) -> ExactQuote:
        """What an exact answer would be and do, free; `UnsafeExactly` if it would be refused."""
        return self.exact.quote(batch, analyst)

    def declare_exactly(self, *menu: object) -> ExactTerms:
        """Fix what may be asked exactly: one batch, or several of which one may be asked. S1.14

        Before anything is answered: what is released must not be chosen after seeing answers.
        """
        return self.exact.declare(self.exact.menu_of(menu)).terms

    def quote(
        self,
        query: object,
        *,
        within: float | None = None,
        confidence: float = 0.95,
        credits: Credits | None = None,
        rows: int | None = None,
        analyst: str = OWNER,
    ) -> Quote:
        """Price and error bar of a question; free, and no row is read."""
        bound = self.bind(query)
        wanted = self.price(bound, within, confidence, credits, rows)
        self.check_readable(bound)  # what ask would refuse, a quote refuses too
        known = self.reuse.quoted(bound, wanted, analyst, confidence)
        due = Fraction(0) if known.repeat else known.due.share.credits_fraction
        touched = None if known.repeat else list(self.charges(known.due)) or None
        left = self.ledger.remaining(analyst, touched).credits_fraction
        counted = None if rows is not None else moment_count(bound)
        if counted is None:
            bar = forecast(bound, known.laws, rows, self.size)
            return Quote(due, left - due, bar, known.repeat, bound.notes)
        oracle = self if analyst == OWNER else Analyst(self, analyst)
        sizes = sizes_of(oracle, counted, confidence=confidence)
        bar, widest = sized_forecast(bound, known.laws, self.size, sizes)
        return Quote(due, left - due, bar, known.repeat, bound.notes, sizes, widest)

    def keys(self, column: object, *figures: object, **terms: Any) -> Keys:
        """Counts by keys that nobody declared, of those that many rows share, and figures of them:
        `ask_keys`. M.1, P.4"""
        return ask_keys(self, column, *figures, **terms)

    def quote_keys(self, column: object, *figures: object, **terms: Any) -> KeysQuote:
        """Price and threshold of `keys`; free, and no row is read."""
        return quote_keys(self, column, *figures, **terms)

    def top(self, of: Any, **terms: Any) -> Top:
        """Which cells have the largest count or total, names only: `choose`. M.3"""
        return top_k(self, of, **terms)

    def alert(self, question: object, **terms: Any) -> Alert:
        """Tell when a count or total has reached a level; paid when armed: `arm`. M.2"""
        return arm_alert(self, question, **terms)

    def alerts(self, *, analyst: str = OWNER) -> list[Alert]:
        """The alerts that were armed with `keep=True`, on this machine."""
        return kept_alerts(self, analyst)

    def kept_alert(self, number: int, *, analyst: str = OWNER) -> Alert:
        """The kept alert with this number, as `alert.number` told it."""
        return kept_alert(self, number, analyst)

    sql = ask_select
    quote_sql = quote_select
    table, tables = study_table, property(tables_of)

    def share(self, query: object, **terms: Any) -> SumShare:
        """This owner's masked share of one joint sum, named `joint`: `ask_share`. V.4"""
        return ask_share(self._sharing, query, **terms)

    def quote_share(self, query: object, **terms: Any) -> ShareQuote:
        """What a share costs, and the bar of the total; free, and no row is read."""
        return quote_share(self._sharing, query, **terms)

    @property
    def share_key(self) -> str:
        """This table's public key for secure addition: give it to the other owners yourself."""
        return self._sharing.key

    def set_partners(self, partners: Partners | None) -> None:
        """Name the owners to add securely with, by the keys that they gave you. V.4"""
        self._sharing.join(partners)

    # --- the table ------------------------------------------------------------------------------

    @property
    def remaining(self) -> Fraction:
        """Credits left for a question that touches everybody."""
        return Shown(self.ledger.remaining(OWNER).credits_fraction)

    def left_for(self, analyst: str) -> Fraction:
        """As `remaining`, for somebody's share."""
        return Shown(self.ledger.remaining(analyst).credits_fraction)

    def sample_dummy(self, rows: int = 100) -> dict[str, Any]:
        """Made-up rows of this schema, by column (of a study by table first); free, and no row is
        read."""
        return dummy_source(self.schema, rows)

    def statement(self) -> Account:
        """Spent, left, and what the promise means."""
        return Account(self.ledger.statement(), meaning(self.calibration), self.promise)

    def receipt(self, number: int) -> Receipt:
        """The signed receipt of an earlier answer."""
        return self.ledger.receipt(number)

    # --- analysts -------------------------------------------------------------------------------

    def grant(self, analyst: str, credits: Credits) -> None:
        """Give an analyst a share inside the lifetime cap; grants add up.

        Half of the slack goes along in proportion: the other half covers uneven use.
        """
        amount = positive(credits, "credits")
        self.ledger.grant(analyst, Loss.cap(amount, self.share_of_slack(analyst, amount)))

    revoke, amend, close_for_good, withdraw = revoke, amend, close_for_good, withdraw
    charge_outside, grow = charge_outside, grow_table

    def as_analyst(self, name: str) -> Analyst:
        """An Oracle in an analyst's name."""
        if not isinstance(name, str) or not name or name == OWNER:
            raise InvalidQuery(f"an analyst has a name other than {OWNER!r}, got {name!r:.60}")
        return Analyst(self, name)
