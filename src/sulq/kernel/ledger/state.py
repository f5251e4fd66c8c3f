"""What one table's events add up to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sulq.errors import Refused
from sulq.kernel.accounting.outside import NONE, Taken
from sulq.kernel.ledger.accounts import NOTHING, AccountCharge
from sulq.kernel.ledger.budget import OWNER, AnalystShare, Budgets, Spending
from sulq.kernel.ledger.events import (
    MALFORMED,
    AmendEvent,
    AnswerEvent,
    ChargeEvent,
    CloseEvent,
    DeclareEvent,
    Event,
    GrantEvent,
    LedgerEvent,
    LostCharge,
    OutsideEvent,
    PlanEvent,
    PublishEvent,
    RecoverEvent,
    ReleaseEvent,
    RepairEvent,
    RepeatEvent,
    ReserveEvent,
    RetryEvent,
    ReturnEvent,
    RevokeEvent,
    VersionEvent,
    WithdrawEvent,
    read_event,
)
from sulq.kernel.ledger.header import (
    Amended,
    Ended,
    Grown,
    Outside,
    PopulationAccount,
    TableHeader,
    taken_by,
)
from sulq.kernel.ledger.index import ChargeIndex, IndexUnavailable, Record, no_room
from sulq.kernel.ledger.signing import START, ChainHead, canonical, fingerprint, is_sealed, link
from sulq.kernel.ledger.stores.store import Row

_VERSION = re.compile(r"[0-9a-f]{32}")
ATTEMPTS = 3  # G.3.6
LOST = "lost"  # the stamp's signing key is no longer available
ASKING = (ChargeEvent, RepeatEvent, RetryEvent, PlanEvent, ReserveEvent)
"""Events by somebody who may ask."""
USING = (*ASKING, AnswerEvent, ReturnEvent, OutsideEvent, DeclareEvent)
"""Events after which a table is used: somebody may have been told something of its rows. What is
declared for exact release is certified by how many rows the public classes have, and says so."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """What may be released under assumptions: one of these sets of questions, and its terms.

    With the first release every cap is divided by `divisor`. M.9
    """

    menu: tuple[tuple[str, ...], ...]
    divisor: int
    terms: str

    def allows(self, questions: set[str]) -> bool:
        """True if one set of the menu has them all. S1.14"""
        return any(questions <= set(path) for path in self.menu)


@dataclass(slots=True)
class TableState:
    """The header and everything since. Changes only by `apply`, live and at replay alike."""

    header: TableHeader
    pool: PopulationAccount | None = None  # of its population
    numbers: dict[str, int] = field(init=False)
    budgets: Budgets = field(init=False)
    catalogue: ChargeIndex = field(default_factory=ChargeIndex)  # of questions, keys and plans
    declaration: Declaration | None = None
    charged: int = 0
    released: set[str] = field(default_factory=set)  # questions, under assumptions
    recovered: bool = False  # a release or an amendment may be among what was lost
    burnt: bool = False  # everything counts as spent, because events were lost
    answered: int = 0
    closed: Ended | None = None  # for good
    amended: list[Amended] = field(default_factory=list)
    grown: list[Grown] = field(default_factory=list)
    outside: list[Outside] = field(default_factory=list)  # released elsewhere, oldest first
    stamp: str | None = None  # of the content, under the ledger's key; where replicas share it
    used: bool = False  # an event of `USING` came
    withdrawn: Ended | None = None  # unused, by its owner: the name may be published again
    earlier: int = 0  # generations of withdrawn tables that had this name
    generation: int = field(init=False)
    """Counts amendments, versions and lives: what was opened before goes by other rules."""

    def __post_init__(self) -> None:
        self.generation = self.earlier
        self._begin()

    def _begin(self) -> None:
        self.numbers = {name: number for number, name in enumerate(self.header.accounts)}
        header = self.header
        self.budgets = Budgets(header.accounts, header.cap, member=header.member, pool=self.pool)
        self.budgets.begin(header.budget)

    @property
    def data_version(self) -> str | None:
        """The version whose data is registered; None for the one that was published first."""
        return self.header.version if self.grown or self.earlier else None

    @property
    def unused(self) -> bool:
        """True if nobody can have been told anything of the rows: ledger.md, section 18."""
        return not (self.used or self.recovered or self.closed or self.withdrawn)

    @property
    def shown(self) -> bool:
        """True if somebody beside the owner ever had a share, and could look at public facts."""
        return len(self.budgets.shares) > 1

    def header_at(self, seq: int) -> TableHeader:
        """The header with the version that an event's question was about."""
        later = [before.version for before in self.grown if before.seq > seq]
        return replace(self.header, version=later[0]) if later else self.header

    @property
    def taken(self) -> Taken:
        """What releases made elsewhere took out of the promise."""
        return taken_by(self.outside)

    def apply(self, seq: int, event: Event, admitted: Spending | None = None) -> None:
        """Add one event, with what was admitted for it; at replay that is planned again.

        Raise `ValueError` or `LookupError` for an event that no honest writer adds.
        """
        if self.closed is not None or self.withdrawn is not None:
            raise ValueError("an event after the last one")
        self.used |= isinstance(event, USING)
        if isinstance(event, ASKING) and self.budgets.shares[event.analyst].revoked is not None:
            raise ValueError("asked by somebody who was revoked")
        budgets = self.budgets
        match event:
            case ReleaseEvent():
                self._release(seq, event, admitted)
            case ChargeEvent():
                self._charge(seq, event, admitted)
            case DeclareEvent():
                self._declare(event)
            case AnswerEvent():
                self._answer(seq, event)
            case RepeatEvent(entry=entry, analyst=analyst, key=key):
                record = self.catalogue.record(entry)
                self._spend(event, (), admitted)
                self.catalogue.hand(seq, record.seq, analyst, key)
            case RetryEvent(analyst=analyst, key=key):
                self.catalogue.retry(analyst, key)
            case GrantEvent(analyst=analyst, credits=credits):
                budgets.grant(analyst, credits)
            case PlanEvent():
                self._plan(event)
            case ReserveEvent(analyst=analyst, amount=amount):
                budgets.reserve(seq, analyst, amount, event.at, event.replica)
            case ReturnEvent(reservation=reservation):
                budgets.give_back(reservation)
            case RevokeEvent(analyst=analyst):
                if analyst == OWNER:
                    raise ValueError("the owner was revoked")
                budgets.revoke(analyst, Ended(event.at, event.reason))
            case AmendEvent():
                self._amend(seq, event)
            case VersionEvent():
                self._grow(seq, event)
            case OutsideEvent():
                self._book_outside(seq, event)
            case CloseEvent():
                budgets.void()
                self.closed = Ended(event.at, event.reason)
            case _:
                raise Refused(f"the ledger has an event {event.kind!r:.40}; use a newer sulq")

    def _declare(self, event: DeclareEvent) -> None:
        if self.declaration is not None or self.recovered or not self.budgets.untouched:
            raise ValueError("declared too late")
        self.declaration = Declaration(event.menu, event.divisor, event.terms)

    def _release(self, seq: int, event: ReleaseEvent, admitted: Spending | None) -> None:
        questions = self.released | {event.question}
        declared = self.declaration
        if declared is None or self.recovered or not declared.allows(questions):
            raise ValueError("released what was not declared")
        self.budgets.divide(declared.divisor)
        self._charge(seq, event, admitted)
        self.released = questions

    def _answer(self, seq: int, event: AnswerEvent) -> None:
        record = self.catalogue.record(event.entry)
        if record.answer is not None or record.lost:
            raise ValueError("answered twice")
        self.catalogue.answer(record, seq)
        self.answered += 1

    def _plan(self, event: PlanEvent) -> None:
        known = self.catalogue.planned(event.analyst, event.key)
        if known is not None and known.names != event.names:
            raise ValueError("another batch under the same key")
        self.catalogue.plan(event.analyst, event.key, event.questions)

    def _book_outside(self, seq: int, event: OutsideEvent) -> None:
        found = replace(event.outside, seq=seq)
        self.budgets.spend_outside(found.loss)
        self.outside.append(found)
        if self.pool is not None:
            if event.joint is None:
                raise ValueError("nothing is said of the population")
            self.pool.spend_outside(replace(event.joint, seq=seq))

    def repair(
        self, seq: int, event: RepairEvent, header: TableHeader, pool: PopulationAccount | None
    ) -> None:
        """Begin again with another header, on the same rows; every share ends. Only if unused."""
        before = self.header
        ended = Ended(event.at, event.reason)
        shares = {name: AnalystShare(NOTHING, revoked=ended) for name in self.budgets.shares}
        self.header, self.pool = header, pool
        self._begin()
        self.budgets.shares = shares | self.budgets.shares
        self.amended.append(Amended(seq, ended.at, ended.reason, before.facts, before.cap))
        self.generation += 1

    def withdraw(self, ended: Ended) -> None:
        """End a table that was never used: its name may be published again."""
        self.withdrawn = ended
        self.generation += 1

    def _amend(self, seq: int, event: AmendEvent) -> None:
        """The accounts stay the same; so does the version, which names the data."""
        if self.declaration is not None or self.recovered:
            raise ValueError("amended too late")
        header, wanted = self.header, event.amendment
        before = Amended(seq, event.at, wanted.reason, header.facts, header.cap)
        if self.taken != NONE and not wanted.credits == wanted.delta == 1:
            raise ValueError("what stands for a release is worth something else now")
        self.budgets.amend(wanted.cap, wanted.credits, wanted.delta)
        self.grown = [earlier.scaled(wanted.credits) for earlier in self.grown]
        self.header = replace(header, facts=wanted.facts, cap=wanted.cap)
        self.amended.append(before)
        self.generation += 1
        if not wanted.keeps:
            self.catalogue.put_away()

    def _grow(self, seq: int, event: VersionEvent) -> None:
        """Other rows on the same accounts. Of the facts only the grid may follow their number."""
        header, facts, version = self.header, event.facts, event.version
        known = {header.version, *(before.version for before in self.grown)}
        same = {name: fact for name, fact in facts.items() if name != "schema"}
        was = {name: fact for name, fact in header.facts.items() if name != "schema"}
        random = _VERSION.fullmatch(version)  # it names a file
        if self.declaration is not None or not random or version in known or same != was:
            raise ValueError("grown too late, or into another table")
        self.budgets.void()
        self.budgets.level()
        before = self.budgets.version
        spent = self.budgets.credits.most - before.start
        named = (header.version, header.facts, spent, before.allowed, before.outside)
        self.grown.append(Grown(seq, event.at, event.reason, *named))
        self.generation += 1
        self.budgets.begin(event.budget)
        self.header = replace(header, version=version, facts=facts, budget=event.budget)
        self.stamp = event.stamp
        self.catalogue.put_away()

    def _charge(self, seq: int, event: ChargeEvent, admitted: Spending | None) -> None:
        name = (event.digest, event.noise)
        if self.catalogue.named(name) is not None:
            raise ValueError("charged twice")
        self._spend(event, event.charges, admitted)
        self.charged += 1
        self.catalogue.charge(seq, name, release=isinstance(event, ReleaseEvent))
        self.catalogue.hand(seq, seq, event.analyst, event.key)

    def _spend(
        self,
        event: ChargeEvent | RepeatEvent,
        parts: tuple[AccountCharge, ...],
        admitted: Spending | None,
    ) -> None:
        """Book what an event takes: exactly what was admitted for it."""
        paid = (event.analyst, parts, event.share, event.reservation)
        plan = self.budgets.plan(*paid) if admitted is None else admitted
        if (plan.analyst, plan.parts, plan.share, plan.reservation) != paid:
            raise ValueError("charged what was not admitted")
        self.budgets.spend(plan)

    def forget(self, *, answered: bool) -> None:
        """After a loss of events an unanswered question may have been answered: a second draw of it
        must be paid for, so it is no longer this charge's (G.3.5). With `answered` the stored
        answers go too: somebody else may have written them."""
        self.catalogue.lose(answered=answered)

    def restore(self, lost: LostCharge) -> None:
        """Book a lost event that a receipt proves; only its price is known, not its answer."""
        self.used = True
        self.budgets.spend(self.budgets.plan(lost.analyst, lost.charges, lost.share))

    def paid(self, analyst: str, name: tuple[str, str]) -> bool:
        """True if this analyst may have it for nothing; of a closed table, what they got."""
        record = self.catalogue.named(name)
        if record is None:
            return False
        return self.is_free(analyst, record, given=self.catalogue.got(record, analyst) is not None)

    def is_free(self, analyst: str, record: Record, *, given: bool) -> bool:
        """As `paid`, where it is known whether the analyst was given this record."""
        if self.closed is None:
            return analyst == OWNER or given
        return record.answer is not None and given

    @property
    def open_reservations(self) -> list[int]:
        return list(self.budgets.reservations)

    def overdrawn(self) -> bool:
        """True for a chain that no honest writer makes."""
        over = not self.budgets.held.within(self.budgets.ceiling)
        return over or any(
            own.granted is not None
            and (own.spent.credits > own.granted.credits or own.spent.delta > own.granted.delta)
            for name, own in self.budgets.shares.items()
            if name != OWNER
        )


# What a whole chain adds up to, and the only way it grows.


_LEDGER = re.compile(r"[0-9a-f]{32}")


class ChainState:
    """Ledger id, public keys and tables after the events so far; numbers start at 1."""

    def __init__(self) -> None:
        self.mark = ChainHead(0, START)
        self.ledger = ""
        self.publics: list[str] = []  # the last one signs
        self.tables: dict[str, TableState] = {}
        self.populations: dict[str, PopulationAccount] = {}
        self.gaps: list[range] = []  # numbers lost and counted at a recovery
        self.told: dict[int, str] = {}  # what receipts said of such numbers, where not all burnt
        self.burnt: list[range] = []  # gaps for which everything was counted as spent
        self.begun = 0  # events that `add` began to apply
        self.seal: bytes | None = None  # of the last row read

    @property
    def public(self) -> str:
        return self.publics[-1]

    def take(self, rows: Iterable[Row]) -> None:
        """Replay stored rows, checking each; `Refused` at the first that does not verify."""
        try:
            self._take(rows)
        except IndexUnavailable:
            raise no_room() from None
        accounts: list[TableState | PopulationAccount] = [
            *self.tables.values(),
            *self.populations.values(),
        ]
        if not self.gaps and any(account.overdrawn() for account in accounts):
            raise unverified(self.mark.seq)

    def _take(self, rows: Iterable[Row]) -> None:
        for row in rows:
            try:
                if row.hash != link(self.mark.hash, row.body):
                    raise ValueError("broken chain")
                event = read_event(row.body)
                if not self._follows(row.seq, event):
                    raise ValueError("missing events")
                self._check_answer(event, row.noisy)
                self._apply(row.seq, event)
            except MALFORMED:
                raise unverified(row.seq) from None
            self.mark, self.seal = ChainHead(row.seq, row.hash), row.seal

    def sealed_by(self, publics: Sequence[str]) -> bool:
        """True if one of `publics` signed the last row, and with it the whole chain."""
        return is_sealed(self.seal, self.ledger, self.mark, publics)

    def add(
        self,
        body: Mapping[str, Any],
        noisy: str | None = None,
        seq: int | None = None,
        admitted: Spending | None = None,
    ) -> Row:
        """The next row of the chain, applied; the caller makes it durable."""
        text = canonical(body)
        row = Row(seq or self.mark.seq + 1, link(self.mark.hash, text), text, noisy)
        self.begun += 1
        self._apply(row.seq, read_event(text), admitted)  # what a reader will see, nothing else
        self.mark = ChainHead(row.seq, row.hash)
        return row

    def _follows(self, seq: int, event: Event) -> bool:
        """Numbers run on, except that a recovery jumps over those that were lost."""
        return seq == self.mark.seq + 1 or (isinstance(event, RecoverEvent) and seq > self.mark.seq)

    @staticmethod
    def _check_answer(event: Event, noisy: str | None) -> None:
        kept = None if noisy is None else fingerprint(noisy)
        if kept != (event.values if isinstance(event, AnswerEvent) else None):
            raise ValueError("an answer that is not the one charged for")

    def _apply(self, seq: int, event: Event, admitted: Spending | None = None) -> None:
        if isinstance(event, LedgerEvent) != (seq == 1):
            raise ValueError("a ledger starts once")
        match event:
            case LedgerEvent():
                if not _LEDGER.fullmatch(event.ledger):  # it names a directory
                    raise ValueError("not a ledger's id")
                self.ledger = event.ledger
                self.publics.append(event.public_key)
            case PublishEvent():
                self._publish(event)
            case RepairEvent() | WithdrawEvent():
                self._undo(seq, event)
            case RecoverEvent():
                self._recover(seq, event)
            case _:
                self.tables[event.table].apply(seq, event, admitted)

    def _publish(self, event: PublishEvent) -> None:
        header = event.header
        known = self.tables.get(header.name)
        if known is not None and (known.withdrawn is None or known.recovered):
            raise ValueError("published twice")
        earlier = 0 if known is None else known.generation + 1
        self.tables[header.name] = TableState(
            header, pool=self._pool(header), stamp=event.stamp, earlier=earlier
        )

    def _undo(self, seq: int, event: RepairEvent | WithdrawEvent) -> None:
        """Repair or withdraw a table that was never used: ledger.md, section 18."""
        table = self.tables[event.table]
        if not table.unused:
            raise ValueError("repaired or withdrawn after it was used")
        if table.pool is not None:
            table.pool.tables.remove(table.header.name)  # nothing was charged to it by this table
        if isinstance(event, WithdrawEvent):
            table.withdraw(Ended(event.at, event.reason))
            return
        header = replace(event.header, version=table.header.version)
        table.repair(seq, event, header, self._pool(header))

    def _pool(self, header: TableHeader) -> PopulationAccount | None:
        """The account of a table's population; the first table that names one makes it."""
        if (member := header.member) is None:
            return None
        pool = self.populations.get(member.name)
        if pool is None or pool.vacant:
            pool = self.populations[member.name] = PopulationAccount.of(member)
        if not pool.agrees(member):
            raise ValueError("a population with two promises")
        pool.tables.append(header.name)
        return pool

    def _recover(self, seq: int, event: RecoverEvent) -> None:
        if event.public_key != self.public:
            for table in self.tables.values():
                table.stamp = LOST  # nobody can compare it any more
        if not event.genuine:
            self.publics.clear()  # whoever wrote that chain may have named keys of their own
        self.publics.append(event.public_key)
        self.gaps.append(range(self.mark.seq + 1, seq))
        self.told |= event.told
        if event.burn:
            self.burnt.append(self.gaps[-1])
        for table in self.tables.values():
            table.budgets.void()  # nobody is left to spend from one
        for lost in event.lost:
            self.tables[lost.table].restore(lost)
        for pool in self.populations.values() if event.burn else ():
            pool.burn()
        for table in self.tables.values():
            table.forget(answered=not event.genuine)
            table.recovered = True
            if event.burn:
                table.budgets.burn()
                table.burnt = True


def unverified(seq: int) -> Refused:
    return Refused(
        f"the ledger does not verify at event {seq}: it was damaged or changed; restore "
        "it from a backup, then run `sulq recover`"
    )
