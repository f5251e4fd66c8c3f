"""A published table: what its owner and its analysts may ask and change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sulq.account import Account
from sulq.answers.oracle import Answer, Oracle, Quote, check_confidence, credits_text
from sulq.answers.oracle import Credits as Shown
from sulq.answers.readings import forecast
from sulq.answers.selections import Keys, KeysQuote, Top
from sulq.database.alerts import Alert, arm_alert, kept_alert, kept_alerts
from sulq.database.amend import amend, charge_outside, close_for_good, grow_table, revoke, withdraw
from sulq.database.exact import ExactQuote, ExactRelease
from sulq.database.facts import NAMELESS, readable_again
from sulq.database.individual import IndividualFilter
from sulq.database.keys import ask_keys, quote_keys
from sulq.database.plan import Plan, plan
from sulq.database.publish import Options, open_table
from sulq.database.reading import (
    check_engine_mode,
    check_readable,
    reader_for,
    share_of_slack,
    with_notes,
)
from sulq.database.reuse import (
    AnswerReuse,
    Asker,
    charged,
    derived_answer,
    intensity_for_half_width,
    paid_by,
    priced,
    recalled,
    told_again,
    topped_up,
)
from sulq.database.sharing import Sharing, ask_share, quote_share
from sulq.database.top import top_k
from sulq.errors import InvalidQuery
from sulq.exact.domain import Assumptions
from sulq.exact.terms import ExactTerms
from sulq.kernel.accounting.calibration import Calibration, meaning
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.pricing import Price, noise_grid, positive, price, unit_cost
from sulq.kernel.engines.engine import Engine
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.ledger.events import Charge
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.ledger.signing import Receipt
from sulq.kernel.noise.laws import Law
from sulq.kernel.release.mechanisms import NoisySums
from sulq.kernel.release.release import RowReader, release
from sulq.kernel.schema.bind import BoundQuery, bind
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.promise import Population, Promise
from sulq.kernel.schema.strata import accounts
from sulq.shares import Partners, ShareQuote, SumShare
from sulq.synthetic import dummy_rows

if TYPE_CHECKING:
    from sulq.sql.api import SqlQuote
    from sulq.sql.evaluate.result import Result


def ask_select(oracle: Oracle, text: str, **terms: Any) -> Result:
    """Answer a SELECT with noise: `db.sql("SELECT AVG(age) FROM people")`.

    Terms: `credits`, `confidence`, `rows`, `key`, `lookups`, `table`; docs/reference/sql.md.
    """
    from sulq.sql.api import ask_sql

    return ask_sql(oracle, text, **_named(oracle, terms))


def quote_select(oracle: Oracle, text: str, **terms: Any) -> SqlQuote:
    """Price and error bars of a SELECT; free, and no row is read."""
    from sulq.sql.api import quote_sql

    return quote_sql(oracle, text, **_named(oracle, terms))


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

    def quote(self, query: object, **terms: Any) -> Quote:
        return self.database.quote(query, analyst=self.name, **terms)

    def ask(self, query: object, **terms: Any) -> Answer:
        return self.database.ask(query, analyst=self.name, **terms)

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


# An Oracle that spends from credits set aside for it.


@dataclass(frozen=True, slots=True)
class Reserved(Analyst):
    """`database` here is the same table on a ledger view that charges the reservation.

    Nobody else can take what is left of it. At the end of `with`, or with `close`, the rest goes
    back; after a crash it does so when the ledger is next opened.
    """

    def close(self) -> None:
        """Give back what is left; asking through this is refused from now on."""
        self.database.ledger.close()

    def __enter__(self) -> Reserved:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Reserved {credits_text(self.remaining)} for {self.name}>"


def reserve(database: Database, credits: Credits, analyst: str) -> Reserved:
    """Set credits aside: out of an analyst's share, or for the owner out of what is not granted.

    Half of the slack goes along in proportion, as with a grant.
    """
    amount = positive(credits, "credits")
    slack = database.calibration.slack_cap * amount / (2 * database.calibration.credits)
    ledger = database.ledger.reserve(analyst, Loss.cap(amount, slack))
    view = database.with_(ledger=ledger)
    view._recall = database._recall  # one answer store: what is asked here is known there
    return Reserved(view, analyst)


# `db.sql(...)`: a SELECT asked of a database. The parser is loaded when first needed.


Credits = Fraction | int | float


class Database:
    """A published table. Its owner's view: an Oracle that can also grant shares."""

    def __init__(
        self,
        schema: Schema,
        promise: Promise,
        engine: Engine,
        ledger: Ledger,
        calibration: Calibration,
        assumptions: Assumptions | None = None,
    ) -> None:
        check_engine_mode(engine, ledger, schema)
        self.schema = schema
        self.promise = promise.about(schema.unit)
        self.engine = engine
        self.ledger = ledger
        self.calibration = calibration
        self.durable = ledger.durable  # what is spent is spent for good: `is_durable`
        self._source = readable_again(None)
        self._accounts = accounts(schema)
        self._size = engine.size() if promise.neighbours == "replace" else None
        self._most = None if self._size is None else self._size * schema.max_rows
        self._recall = AnswerReuse(schema, promise.neighbours, engine, ledger, calibration)
        self._exactly = ExactRelease(schema, promise, engine, ledger, calibration, assumptions)
        self._sharing = Sharing(ledger)

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
        journal, a file on another disk: docs/guides/backup-and-recover.md.
        """
        table = open_table(
            source,
            schema,
            promise,
            ledger,
            name,
            Options(exactly, individual, population, grown_from, version_budget, publish, receipts),
        )
        found = cls(table.schema, table.promise, table.engine, table.ledger, table.terms, exactly)
        found._source = readable_again(source)
        return found

    def with_(
        self,
        *,
        schema: Schema | None = None,
        promise: Promise | None = None,
        engine: Engine | None = None,
        ledger: Ledger | None = None,
        calibration: Calibration | None = None,
        source: Any = None,
    ) -> Database:
        """Return a database like this one, but for what is given. They share all the rest."""
        found = type(self)(
            self.schema if schema is None else schema,
            self.promise if promise is None else promise,
            self.engine if engine is None else engine,
            self.ledger if ledger is None else ledger,
            self.calibration if calibration is None else calibration,
            self._exactly.assumptions,
        )
        found._source = self._source if source is None else readable_again(source)
        return found

    def close(self) -> None:
        """Release the ledger and the engine."""
        self.ledger.close()
        self.engine.close()

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
        found = recalled(self, bound, wanted, asker)  # noisy answers only
        if found.told:
            return told_again(self, bound, found, asker)
        if found.derived is not None:  # no row is touched
            return derived_answer(self, bound, found.derived, asker, found.share)
        noisy = NoisySums(bound, found.cost, priced(self, bound, found))
        charge = partial(charged, self, bound, asker)
        entry = release([noisy], self.reader, charge, self.ledger.settle_all)[bound.digest]
        if found.sources is not None:  # the draw adds the precision that was missing, M.7
            return topped_up(self, bound, found.sources, entry, asker)
        return self._answered(bound, entry, found.cost, within, confidence)

    def _answered(
        self, bound: BoundQuery, entry: Charge, cost: Price, within: float | None, confidence: float
    ) -> Answer:
        """User units, after the store."""
        assert entry.values is not None  # noqa: S101
        return Answer.of(
            bound,
            entry.values,
            cost.laws,
            most=self._most,
            credits=paid_by(entry),
            receipt=entry.receipt,
            **self._exactly.said(),
        ).judged(bound, within, confidence)

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
        return self._exactly.ask(batch, analyst, partial(self.ask, analyst=analyst))

    @property
    def declaration(self) -> tuple[tuple[str, ...], ...] | None:
        """The questions that may be asked exactly: batches, of which one may be; None if none."""
        declared = self.ledger.declaration
        return None if declared is None else declared.menu

    def quote_exactly(self, batch: object, *, analyst: str = OWNER) -> ExactQuote:
        """What an exact answer would be and do, free; `UnsafeExactly` if it would be refused."""
        return self._exactly.quote(batch, analyst)

    def declare_exactly(self, *menu: object) -> ExactTerms:
        """Fix what may be asked exactly: one batch, or several of which one may be asked. S1.14

        Before anything is answered: what is released must not be chosen after seeing answers.
        """
        return self._exactly.declare(self._exactly.menu_of(menu)).terms

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
        check_readable(self, bound)  # what ask would refuse, a quote refuses too
        known = self._recall.quoted(bound, wanted, analyst, confidence)
        due = Fraction(0) if known.repeat else known.due.share.credits_fraction
        touched = None if known.repeat else list(self._charges(known.due)) or None
        left = self.ledger.remaining(analyst, touched).credits_fraction
        bar = forecast(bound, known.laws, rows, self.size)
        return Quote(due, left - due, bar, known.repeat, bound.notes)

    def keys(self, column: object, **terms: Any) -> Keys:
        """Counts by keys that nobody declared, of those that many rows share: `ask_keys`. M.1"""
        return ask_keys(self, column, **terms)

    def quote_keys(self, column: object, **terms: Any) -> KeysQuote:
        """Price and threshold of `keys`; free, and no row is read."""
        return quote_keys(self, column, **terms)

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

    share, quote_share = ask_share, quote_share

    @property
    def share_key(self) -> str:
        """This table's public key for secure addition: give it to the other owners yourself."""
        return self._sharing.key

    def set_partners(self, partners: Partners | None) -> None:
        """Name the owners to add securely with, by the keys that they gave you. V.4"""
        self._sharing.join(partners)

    def bind(self, query: object, *, fine: bool = False, asked_before: bool = False) -> BoundQuery:
        """Prove a question safe on this table; `fine`: whole-number sums too are drawn finely.

        `asked_before`: one that stands in the ledger.
        """
        grid = noise_grid(self.calibration)
        if fine:
            grid = replace(grid, whole=False)
        neighbours = self.promise.neighbours
        bound = bind(query, self.schema, neighbours, grid=grid, asked_before=asked_before)
        return with_notes(self.engine, bound)

    def price(
        self,
        bound: BoundQuery,
        within: float | None,
        confidence: float,
        credits: Credits | None,
        rows: int | None,
        told: Callable[[Price], Sequence[Law]] | None = None,
    ) -> Price:
        """The noise and its price: from the question and the promise; no data."""
        if within is not None and credits is not None:
            raise InvalidQuery("give within or credits, not both")
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
            raise InvalidQuery(f"rows must be a whole number above 0, got {rows!r}")
        check_confidence(confidence)
        asked = None if credits is None else positive(credits, "credits")
        cost = unit_cost(bound, self.calibration)
        if cost == 0:
            return price(bound, self.calibration, Fraction(1))  # public: exact and free, G.2.1
        if asked is not None:
            intensity = asked / cost
        elif within is not None:
            intensity = intensity_for_half_width(self, bound, within, confidence, rows, told)
        else:
            intensity = Fraction(1)
        return price(bound, self.calibration, intensity)

    @property
    def reader(self) -> RowReader:
        """Who reads the rows for what is asked here."""
        return reader_for(self)

    def _charges(self, cost: Price) -> dict[str, Loss]:
        paid = {self._accounts[number]: loss for loss, numbers in cost.losses for number in numbers}
        return (
            self.engine.charges(cost, paid) if isinstance(self.engine, IndividualFilter) else paid
        )

    # --- the table ------------------------------------------------------------------------------

    @property
    def size(self) -> int | None:
        """The public number of rows (persons for a person unit); None under add-remove."""
        return self._size

    @property
    def remaining(self) -> Fraction:
        """Credits left for a question that touches everybody."""
        return Shown(self.ledger.remaining(OWNER).credits_fraction)

    def left_for(self, analyst: str) -> Fraction:
        """As `remaining`, for somebody's share."""
        return Shown(self.ledger.remaining(analyst).credits_fraction)

    def sample_dummy(self, rows: int = 100) -> dict[str, Any]:
        """Made-up rows of this schema, by column; free, and no row is read."""
        return dict(dummy_rows(self.schema, rows))

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
        self.ledger.grant(analyst, Loss.cap(amount, share_of_slack(self, analyst, amount)))

    revoke, amend, close_for_good, withdraw = revoke, amend, close_for_good, withdraw
    charge_outside, grow = charge_outside, grow_table

    def as_analyst(self, name: str) -> Analyst:
        """An Oracle in an analyst's name."""
        if not isinstance(name, str) or not name or name == OWNER:
            raise InvalidQuery(f"an analyst has a name other than {OWNER!r}, got {name!r:.60}")
        return Analyst(self, name)
