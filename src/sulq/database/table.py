"""An open table: what is bound, priced, recalled, charged and told on it.

`Database` is its public face. Plans, keys, choices, alerts and changes work on this class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from sulq.answers.error_bars import Forecast
from sulq.answers.oracle import Answer, check_confidence
from sulq.answers.statistics import forecast, read_apart, read_derived
from sulq.database.exact import ExactRelease
from sulq.database.facts import readable_again
from sulq.database.individual import IndividualFilter, IndividualReader
from sulq.database.reuse import AnswerReuse, ReusePlan
from sulq.errors import BudgetSpent, InvalidQuery, Reason, Refused
from sulq.exact.domain import Assumptions
from sulq.kernel.accounting.calibration import Calibration
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.pricing import (
    Price,
    finer,
    laws_of,
    least_intensity,
    noise_grid,
    positive,
    price,
    unit_cost,
)
from sulq.kernel.engines.engine import Engine
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.ledger.events import Charge, PricedRequest
from sulq.kernel.ledger.inspect import INDIVIDUAL
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.noise.laws import Law
from sulq.kernel.release.release import EngineReader, Mechanism, RowReader, release
from sulq.kernel.reuse.estimate import LinearEstimate
from sulq.kernel.schema.bind import BoundQuery, bind
from sulq.kernel.schema.columns import Schema, accounts
from sulq.kernel.schema.promise import Promise

Credits = Fraction | int | float
T = TypeVar("T", bound="Table")


NARROW = 64
"""Cells of a group whose text is written in no time that could be told."""


class Asker(NamedTuple):
    """Who asks, under which key, and how exactly."""

    analyst: str
    key: str | None
    within: float | None
    confidence: float


class TableReader(RowReader, Protocol):
    """How a table is read: by its engine, or by filters on balances of its people."""

    notes: ClassVar[tuple[str, ...]]
    """What every asker should know of how this table is read."""
    has_balances: ClassVar[bool]

    def begin(self, schema: Schema) -> None:
        """Make ready for questions on this schema."""

    def charges(self, cost: Price, accounts: dict[str, Loss]) -> dict[str, Loss]:
        """What each account pays, of what it would pay on a table without balances."""

    def check(self, bound: BoundQuery) -> None:
        """Refuse what a release would refuse. Reads no row."""

    def histogram(self) -> list[int]:
        """How many people have spent up to a tenth of their balance, two tenths, ..."""

    def check_covered(self, what: str) -> None:
        """Refuse what is not proved for tables that are read in this way."""


def table_reader(engine: Engine, ledger: Ledger, schema: Schema) -> TableReader:
    """Whoever opens the table, in whatever way: never without the filters it was published with."""
    reader: TableReader = PlainReader(engine)
    if isinstance(engine, IndividualFilter):
        reader = IndividualReader(engine, ledger)
    if (INDIVIDUAL in ledger.header.facts) != reader.has_balances:
        raise Refused("this table has individual accounting, or has none: open it as published")
    reader.begin(schema)
    return reader


@dataclass(frozen=True)
class PlainReader(EngineReader):
    """The engine reads every row, and the accounts pay."""

    notes: ClassVar[tuple[str, ...]] = ()
    has_balances: ClassVar[bool] = False

    def begin(self, schema: Schema) -> None:
        """The engine is ready."""

    def charges(self, cost: Price, accounts: dict[str, Loss]) -> dict[str, Loss]:
        return accounts

    def check(self, bound: BoundQuery) -> None:
        self.engine.prepare(bound.sums)

    def histogram(self) -> list[int]:
        raise Refused("this table has one account for all, and no balances of its people")

    def check_covered(self, what: str) -> None:
        """All of it is."""


def check_readable(reader: TableReader, bound: BoundQuery) -> None:
    """What `ask` would refuse, a quote refuses too.

    A quote leaves on no clock. How the keys of a wide category are written depends on what the
    column holds, and takes time: those are written only for an answer.
    """
    if all(len(group.keys) <= NARROW for group in bound.groups):
        reader.check(bound)


class Table:
    """A published table that is open: its public facts, its rows' engine and its ledger."""

    def __init__(
        self,
        schema: Schema,
        promise: Promise,
        engine: Engine,
        ledger: Ledger,
        calibration: Calibration,
        assumptions: Assumptions | None = None,
    ) -> None:
        self.reader: TableReader = table_reader(engine, ledger, schema)
        self.schema = schema
        self.promise = promise.about(schema.unit)
        self.ledger = ledger
        self.calibration = calibration
        self.durable = ledger.durable  # what is spent is spent for good: `is_durable`
        self.source = readable_again(None)
        self._grid = noise_grid(calibration)
        self.vault: bool | None = None
        """What the owner said of a vault."""
        self._accounts = accounts(schema)
        self._size = engine.size() if promise.neighbours == "replace" else None
        self.reuse = AnswerReuse(schema, promise.neighbours, engine, ledger, calibration)
        self.exact = ExactRelease(schema, promise, engine, ledger, calibration, assumptions)

    def with_(
        self,
        *,
        schema: Schema | None = None,
        promise: Promise | None = None,
        engine: Engine | None = None,
        ledger: Ledger | None = None,
        calibration: Calibration | None = None,
        source: Any = None,
    ) -> Self:
        """Return a database like this one, but for what is given. They share all the rest."""
        found = type(self)(
            self.schema if schema is None else schema,
            self.promise if promise is None else promise,
            self.engine if engine is None else engine,
            self.ledger if ledger is None else ledger,
            self.calibration if calibration is None else calibration,
            self.exact.assumptions,
        )
        found.source = self.source if source is None else readable_again(source)
        found.vault = self.vault
        return found

    @property
    def engine(self) -> Engine:
        """The engine that holds the rows."""
        return self.reader.engine

    def move_to(self, ledger: Ledger) -> None:
        """Go on with the same table on this ledger: the one before had failed."""
        again = self.with_(ledger=ledger)
        self.reuse, self.exact, self.reader = again.reuse, again.exact, again.reader
        self.ledger = ledger

    def close(self) -> None:
        """Release the ledger and the engine."""
        self.ledger.close()
        self.engine.close()

    def most_rows(self, bound: BoundQuery) -> int | None:
        """A public bound on the rows that a question sums; None under add-remove."""
        schema = self.schema if bound.schema is None else bound.schema
        return None if self._size is None else self._size * schema.max_rows

    @property
    def size(self) -> int | None:
        """The public number of rows (persons for a person unit); None under add-remove."""
        return self._size

    # --- question and price: no data ------------------------------------------------------------

    def bind(self, query: object, *, fine: bool = False, asked_before: bool = False) -> BoundQuery:
        """Prove a question safe on this table; `fine`: whole-number sums too are drawn finely.

        `asked_before`: one that stands in the ledger.
        """
        grid = replace(self._grid, whole=False) if fine else self._grid
        neighbours = self.promise.neighbours
        bound = bind(query, self.schema, neighbours, grid=grid, asked_before=asked_before)
        notes = self.reader.notes
        return replace(bound, notes=(*bound.notes, *notes)) if notes else bound

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
            intensity = self._intensity_for(bound, within, confidence, rows, told)
        else:
            intensity = Fraction(1)
        return price(bound, self.calibration, intensity)

    def charges(self, cost: Price) -> dict[str, Loss]:
        """What each account pays for an answer of this price."""
        paid = {self._accounts[number]: loss for loss, numbers in cost.losses for number in numbers}
        return self.reader.charges(cost, paid)

    def check_readable(self, bound: BoundQuery) -> None:
        """What `ask` would refuse, a quote refuses too; it reads no row."""
        check_readable(self.reader, bound)

    def _intensity_for(
        self,
        bound: BoundQuery,
        within: float,
        confidence: float,
        rows: int | None,
        told: Callable[[Price], Sequence[Law]] | None = None,
    ) -> Fraction:
        """How many unit prices bring the half-width down to `within`; of quantiles, the rank's.

        `told`: the noise that is in the number told, where that is not what the price is of. V.4
        """
        target = positive(within, "within")
        if bound.statistic.kind == "quantiles" and target >= 1:
            raise InvalidQuery(
                f"within of quantiles is a share of the rows, such as 0.02, got {within!r:.40}: how"
                " far off the value itself is depends on how dense the rows lie there",
                reason=Reason.WITHIN_RANK,
            )

        def widest(intensity: Fraction) -> Fraction:
            cost = price(bound, self.calibration, intensity)
            laws = cost.laws if told is None else told(cost)
            bar = forecast(bound, laws, rows, self.size)
            found = _widest(bound, bar, confidence, rows or self.size)
            if found is None:
                raise InvalidQuery(
                    "no error bar can be promised here; state `rows`, or give `credits`",
                    reason=Reason.WITHIN_UNKNOWN,
                )
            return found

        if self._grid.whole:
            return least_intensity(lambda intensity: widest(intensity) <= target)
        power = 2 if self.promise.noise == "gaussian" else 1
        intensity = Fraction(1)
        for _ in range(4):  # the law scales; one step is enough but for rounding
            found = widest(intensity)
            if found <= target and intensity != 1:
                break
            intensity = finer(intensity * (found / target) ** power)
        return intensity

    def _bar_left(self, bound: BoundQuery, asker: Asker) -> str | None:
        """Return the error bar that the credits left would buy, None if it depends on rows."""
        touched = list(self.charges(price(bound, self.calibration, Fraction(1))))
        left = self.ledger.remaining(asker.analyst, touched or None).credits_fraction
        if left <= 0:
            return None
        try:
            spend = price(bound, self.calibration, left / unit_cost(bound, self.calibration))
            bar = forecast(bound, spend.laws, None, self.size)
        except InvalidQuery:
            return None
        widest = _widest(bound, bar, asker.confidence, self.size)
        if widest is None or bound.statistic.kind == "quantiles":
            return None
        supposed = f" ({bar.note})" if bar.note else ""
        return f"+-{float(widest):,.4g} at {100 * asker.confidence:g} %{supposed}"

    # --- people with balances of their own ------------------------------------------------------

    @property
    def has_balances(self) -> bool:
        """True if the table's people have balances of their own. A public fact."""
        return self.reader.has_balances

    def spent_by_people(self) -> list[int]:
        """How many have spent up to a tenth of their balance, two tenths, ...: for the owner."""
        return self.reader.histogram()

    def share_of_slack(self, analyst: str, credits: Fraction) -> Fraction:
        """The delta that goes with a grant: half in proportion; the other half covers uneven use.

        Where people pay and shares are renewed, only what the analyst does not have yet.
        """
        each = self.calibration.slack_cap / (2 * self.calibration.credits)
        if not self.has_balances:
            return each * credits
        left = self.ledger.remaining(analyst)
        return max(Fraction(0), each * (left.credits_fraction + credits) - left.delta_fraction)

    # --- what stored answers say, what is charged, and what is told -----------------------------

    def recalled(self, bound: BoundQuery, wanted: Price, asker: Asker) -> ReusePlan:
        """How stored answers meet a question; a known key stands for the answer it got."""
        recall, analyst, key = self.reuse, asker.analyst, asker.key
        if key is None:
            return recall.find(bound, wanted, analyst, asker.confidence)
        seen = self.ledger.snapshot(analyst, key=key, digest=bound.digest)
        keyed, planned = seen.keyed, seen.planned
        if keyed is None and planned is None:
            return recall.find(bound, wanted, analyst, asker.confidence)
        if planned is not None and len(planned) == 1 and planned[0][0] == bound.digest:
            _, noise, sources = planned[0]
            if sources:  # the draw adds to earlier answers, to the same ones each time
                return ReusePlan(replace(wanted, laws=laws_of(noise)), Loss.zero(), sources=sources)
        cost = recall.stored(seen, bound, wanted) or wanted
        same = keyed is not None and keyed[0] == bound.digest
        derived = recall.named(bound, keyed[1]) if keyed is not None and same else None
        return ReusePlan(cost, cost.share, derived)

    def priced(self, bound: BoundQuery, found: ReusePlan) -> PricedRequest:
        """What the ledger is asked to charge for the draw, or for what is derived."""
        if found.derived is not None:  # no account pays
            return PricedRequest(bound.text, bound.digest, found.derived.noise, {}, found.share)
        cost = found.cost
        named = (bound.text, bound.digest, cost.noise)
        return PricedRequest(*named, self.charges(cost), cost.share, found.sources or ())

    def charged(
        self, bound: BoundQuery, asker: Asker, whole: Sequence[PricedRequest]
    ) -> list[Charge]:
        """Pay; a repeat comes answered. A draw that is added to earlier answers is a plan of one,
        which says to which: a retry goes on from there, and nothing is paid twice."""
        try:
            if any(one.sources for one in whole):
                return self.ledger.charge_all(whole, analyst=asker.analyst, key=asker.key)
            return charge_one(self.ledger, asker.analyst, asker.key, whole)
        except BudgetSpent as error:
            bought = self._bar_left(bound, asker)
            if bought is None:
                raise
            raise BudgetSpent(f"{error}. What is left would buy {bought}") from None

    def release_one(self, mechanism: Mechanism, analyst: str, key: str | None) -> Charge:
        """Release what is asked alone, under a key of its own."""
        charge = partial(charge_one, self.ledger, analyst, key)
        paid = release([mechanism], self.reader, charge, self.ledger.settle_all)
        return paid[mechanism.priced.digest]

    def guarantee(self) -> dict[str, Any]:
        """Return what a noisy answer says of its guarantee, as keywords of `Answer.of`."""
        if self.ledger.has_released or self.exact.assumptions is not None:
            return self.exact.guarantee_with(self.ledger.snapshot())
        return {"promise": self.promise}

    def told_again(self, bound: BoundQuery, found: ReusePlan, asker: Asker) -> Answer:
        """Return the stored answer that this analyst was told; free, and no row is read."""
        named = (bound.text, bound.digest, found.cost.noise)
        entry = self.ledger.repeat(*named, analyst=asker.analyst, key=asker.key)
        return self.answered(bound, entry, found.cost, asker.within, asker.confidence)

    def derived_answer(
        self,
        bound: BoundQuery,
        derived: LinearEstimate,
        asker: Asker,
        share: Loss,
        paid: Charge | None = None,
    ) -> Answer:
        """Stored under its own name, made of its sources'; `paid` is the draw that was added."""
        ledger, recall = self.ledger, self.reuse
        entry = ledger.charge(
            question=bound.text,
            digest=bound.digest,
            noise=derived.noise,
            charges={},
            share=share,
            analyst=asker.analyst,
            key=asker.key,
        )
        if not entry.answered:
            sizes = recall.public_sums(derived.public)  # G.2.1
            entry = ledger.settle(entry, derived.values(sizes))  # stored, write-once
        assert entry.values is not None  # noqa: S101
        laws, most = derived.laws(), self.most_rows(bound)
        reading = (
            read_apart(derived, entry.values, laws, most)
            if laws
            else read_derived(derived, entry.values, most)
        )
        return Answer.of(
            bound,
            entry.values,
            laws or derived.worst(),
            most=most,
            credits=paid_by(paid or entry),
            receipt=recall.receipt(bound, derived, entry),
            reading=reading,
            sources=derived.sources,
            **self.guarantee(),
        ).judged(bound, asker.within, asker.confidence)

    def known(self, query: object, *, analyst: str = OWNER) -> Answer | None:
        """Return what answers that the analyst was told say to a question, however exact.

        Free, and written nowhere; no row is read. None where they say nothing, or where public
        columns would have to be looked up.
        """
        bound = self.bind(query)
        if unit_cost(bound, self.calibration) == 0:
            return self._public_known(bound, analyst)
        derived = self.reuse.known(bound, analyst)
        if derived is None or derived.public is not None:
            return None
        values, laws, most = derived.values(()), derived.laws(), self.most_rows(bound)
        return Answer.of(
            bound,
            values,
            laws or derived.worst(),
            most=most,
            credits=Fraction(0),
            receipt=None,
            reading=(
                read_apart(derived, values, laws, most)
                if laws
                else read_derived(derived, values, most)
            ),
            sources=derived.sources,
            **self.guarantee(),
        )

    def _public_known(self, bound: BoundQuery, analyst: str) -> Answer | None:
        """A public fact as the analyst was told it, from the ledger."""
        numbers = self.ledger.numbers_of(bound.digest)
        for stored in self.ledger.stored_answers(numbers):
            if analyst in (OWNER, stored.analyst) and stored.record.answer is not None:
                laws = price(bound, self.calibration, Fraction(1)).laws
                named: dict[str, Any] = {"credits": Fraction(0), "receipt": None}
                named |= {"sources": (stored.record.seq,), **self.guarantee()}
                return Answer.of(bound, stored.values, laws, most=self.most_rows(bound), **named)
        return None

    def topped_up(
        self, bound: BoundQuery, sources: tuple[int, ...], drawn: Charge, asker: Asker
    ) -> Answer:
        """Earlier answers and a new draw together: law, bar and price of one answer. M.7"""
        assert drawn.receipt is not None  # noqa: S101
        derived = self.reuse.after(bound, sources, int(drawn.receipt.body["origin"]))
        asker = asker._replace(key=None)  # it stands for the draw and what that was added to
        return self.derived_answer(bound, derived, asker, Loss.zero(), drawn)

    def answered(
        self, bound: BoundQuery, entry: Charge, cost: Price, within: float | None, confidence: float
    ) -> Answer:
        """User units, after the store."""
        assert entry.values is not None  # noqa: S101
        return Answer.of(
            bound,
            entry.values,
            cost.laws,
            most=self.most_rows(bound),
            credits=paid_by(entry),
            receipt=entry.receipt,
            **self.guarantee(),
        ).judged(bound, within, confidence)


def charge_one(
    ledger: Ledger, analyst: str, key: str | None, whole: Sequence[PricedRequest]
) -> list[Charge]:
    """Pay for a single question; the key is its own."""
    (one,) = whole
    return [ledger.charge(*one[:5], analyst=analyst, key=key)]


def _widest(
    bound: BoundQuery, bar: Forecast, confidence: float, matching: int | None
) -> Fraction | None:
    if bound.statistic.kind == "quantiles" and bar.rank is not None:
        ranks = [bar.rank(share, confidence) for share in bound.statistic.shares]
        return Fraction(max(ranks)) / matching if matching else None
    half = bar.half_width(confidence)
    return None if half is None else Fraction(float(np.max(half)))


def paid_by(entry: Charge) -> Fraction:
    """What a call charged: to the share of an analyst, for the owner to the worst account.

    Accounts that pay no credits have people who do, each their own (V.2): then the most of them.
    """
    worst = max((loss.credits_fraction for loss in entry.charged.values()), default=Fraction(0))
    people_pay = bool(entry.charged) and not worst
    return entry.share_charged.credits_fraction if entry.analyst != OWNER or people_pay else worst
