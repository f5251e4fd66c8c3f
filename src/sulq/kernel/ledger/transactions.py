"""What is decided on the writer's thread: charged anew, paid for before, or refused.

First everything is decided, which changes nothing and may refuse; then the events are added. So a
batch is charged as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sulq.errors import NotPublished, Refused, SulqError
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.outside import NONE, Taken
from sulq.kernel.ledger.accounts import NOTHING, charges_by_account
from sulq.kernel.ledger.budget import OWNER, Budgets, Spending, ended
from sulq.kernel.ledger.events import (
    AmendEvent,
    AnswerEvent,
    Charge,
    ChargeEvent,
    ChargeRequest,
    CloseEvent,
    DeclareEvent,
    Event,
    Grant,
    GrantEvent,
    OutsideEvent,
    PlanEvent,
    PublishEvent,
    ReleaseEvent,
    RepairEvent,
    RepeatEvent,
    RetryEvent,
    ReturnEvent,
    RevokeEvent,
    VersionEvent,
    WithdrawEvent,
    read_charge,
    read_event,
)
from sulq.kernel.ledger.file import LedgerFile
from sulq.kernel.ledger.header import (
    Amendment,
    Ended,
    Outside,
    TableHeader,
    gone,
    no_more,
    unfinished,
)
from sulq.kernel.ledger.index import ChargeIndex, Keyed, Record
from sulq.kernel.ledger.inspect import INDIVIDUAL
from sulq.kernel.ledger.register import (
    note_closed,
    note_pooled,
    release_data,
    was_closed,
    was_pooled,
    was_published,
)
from sulq.kernel.ledger.signing import Proof, fingerprint
from sulq.kernel.ledger.state import ATTEMPTS, LOST, TableState
from sulq.kernel.ledger.stores.store import Row

CLOSED = (
    "events of this ledger were lost, perhaps a release under assumptions among them: exact release"
    " is closed for this table; ask with noise"
)


@dataclass(frozen=True, slots=True)
class Decision:
    """How a question is met: by a record, or with None by a new charge."""

    ask: ChargeRequest
    record: Record | None
    due: Loss  # of the analyst's share
    event: Event | None  # None: nothing changes
    spending: Spending | None = None  # as it was admitted; None: nothing is spent


@dataclass(frozen=True, slots=True)
class TableTransaction:
    """One table of an open ledger; every method is for work on the writer's thread."""

    book: LedgerFile
    name: str

    @property
    def table(self) -> TableState:
        """The table's state now. A shared ledger replaces it after a write of unknown outcome."""
        return self.book.history.tables[self.name]

    @property
    def catalogue(self) -> ChargeIndex:
        return self.table.catalogue

    def check_open(self) -> None:
        """`Refused` if the table was closed for good, or withdrawn."""
        if self.table.closed is not None:
            raise no_more(self.table.closed)
        if self.table.withdrawn is not None:
            raise gone(self.table.withdrawn)

    def check_unused(self) -> None:
        """`Refused` if somebody can have been told anything of the rows."""
        self.check_open()
        if not self.table.unused:
            raise Refused(
                f"table {self.name!r} was used: a question was charged, answered, reserved or"
                " declared, or a release or a loss of events was booked; from then on `sulq amend`"
                " takes new columns, tighter bounds and a larger promise, and `sulq close` ends the"
                " table"
            )

    def check_asker(self, analyst: str) -> None:
        """`Refused` for somebody who may not ask any more; free."""
        self.check_open()
        self.table.budgets.known(analyst)

    def admit(self, ask: ChargeRequest) -> tuple[Charge, Proof | None]:
        """Decide one question, and add its event."""
        decision = self._decide(ask, self.table.budgets)
        return self._handed(decision, self._added(decision))

    def repeat(self, ask: ChargeRequest) -> tuple[Charge, Proof | None]:
        """Tell an analyst again what they were told; `Refused` where that would be a new charge."""
        record = self.catalogue.named(ask.name)
        if record is None or record.answer is None or not self.catalogue.got(record, ask.analyst):
            self.check_asker(ask.analyst)
            raise Refused("this answer is no longer stored for this question; ask it again")
        return self.admit(ask)

    def admit_all(
        self, asks: Sequence[ChargeRequest], analyst: str, key: str | None
    ) -> list[tuple[Charge, Proof | None]]:
        """All of them or none. What one costs is counted before the next is admitted."""
        attempt = self._plan(asks, analyst, key) if key is not None else None
        trial = self.table.budgets.copy()
        found: dict[tuple[str, str], Decision] = {}
        for ask in asks:
            known = found.get(ask.name)
            if known is None:
                decision = found[ask.name] = self._decide(ask, trial)
                if decision.spending is not None:
                    trial.spend(decision.spending)
            elif known.ask.question != ask.question:
                raise _same_digest()
        added = self._add_all(attempt, found)
        return [self._handed(found[ask.name], added[ask.name]) for ask in asks]

    def _added(self, decision: Decision) -> Row | None:
        """Add a decision's event, if it has one; what was admitted is what it spends."""
        if decision.event is None:
            return None
        return self.book.add(decision.event, admitted=decision.spending)

    def _add_all(
        self, attempt: PlanEvent | None, found: Mapping[tuple[str, str], Decision]
    ) -> dict[tuple[str, str], Row | None]:
        """Add these events and return their rows. Nothing is left to refuse: what fails here is no
        refusal, and nothing is written."""
        try:
            if attempt is not None:
                self.book.add(attempt)
            return {name: self._added(decision) for name, decision in found.items()}
        except SulqError as error:
            raise RuntimeError("a batch that was admitted could not be added") from error

    def _plan(self, asks: Sequence[ChargeRequest], analyst: str, key: str) -> PlanEvent | None:
        """Another attempt at the batch that this key stands for, or the first one."""
        names = tuple(ask.name for ask in asks)
        known = self.catalogue.planned(analyst, key)
        if self.catalogue.keyed(analyst, key) or (known and known.names != names):
            raise Refused(f"the key {key!r} was used for something else; use a new key")
        if known is not None:
            if known.old:
                raise _before(key)
            records = [self.catalogue.named(name) for name in names]
            found = [record for record in records if record is not None]
            if len(found) < len(records):
                raise _lost(key)
            if all(record.answer is not None for record in found):
                return None
            if known.attempts >= ATTEMPTS:
                raise _too_often(key)
        if self.table.closed is not None:
            return None  # each question is decided alone
        questions = tuple((ask.digest, ask.noise, tuple(ask.sources)) for ask in asks)
        return PlanEvent(self.name, analyst, key, questions)

    def _decide(self, ask: ChargeRequest, budgets: Budgets) -> Decision:
        """Refuse, or say what is to be done; changes nothing."""
        table, analyst = self.table, ask.analyst
        budgets.known(analyst)
        if table.closed is not None:
            return self._kept(ask)
        if ask.key is not None:
            if self.catalogue.planned(analyst, ask.key) is not None:
                raise Refused(
                    f"the key {ask.key!r} was used for another question or plan; use a new key"
                )
            if (keyed := self.catalogue.keyed(analyst, ask.key)) is not None:
                return self._again(keyed, ask)
        record = self.catalogue.named(ask.name)
        if record is None:
            spending = budgets.admit(analyst, ask.parts, ask.share, ask.reservation)
            if ask.release:
                self._admit_release(ask)
            made = ReleaseEvent if ask.release else ChargeEvent
            return Decision(ask, None, ask.share, made.of(self.name, ask), spending)
        if record.lost:
            raise Refused("this release was lost when the ledger was recovered; it is closed")
        first = self.catalogue.got(record, analyst) is None
        due = ask.share if first and analyst != OWNER else NOTHING
        self._check_question(record, ask)
        spending = budgets.admit(analyst, (), due, ask.reservation)
        event = RepeatEvent(self.name, record.seq, analyst, ask.key, due, ask.reservation)
        noted = event if first or ask.key is not None else None
        return Decision(ask, record, due, noted, spending)

    def _kept(self, ask: ChargeRequest) -> Decision:
        """Decide a question to a closed table: only what this analyst was given before is kept, and
        no event is written."""
        record = self.catalogue.named(ask.name)
        got = None if record is None else self.catalogue.got(record, ask.analyst)
        if record is None or record.answer is None or got is None:
            self.check_open()
        if ask.reservation is not None:
            raise ended()
        assert record is not None  # noqa: S101
        self._check_question(record, ask)
        keyed = None if ask.key is None else self.catalogue.keyed(ask.analyst, ask.key)
        return Decision(ask, record, NOTHING, None) if keyed is None else self._again(keyed, ask)

    def _again(self, keyed: Keyed, ask: ChargeRequest) -> Decision:
        """A retry under a known key: the stored answer, or another attempt at the same charge."""
        record = keyed.record
        if record.old:
            raise _before(ask.key)
        if record.name != ask.name:
            raise Refused(f"the key {ask.key!r} was used for another question; use a new key")
        self._check_question(record, ask)
        if record.lost:
            raise _lost(ask.key)
        if record.answer is not None:
            return Decision(ask, record, NOTHING, None)
        if keyed.attempts >= ATTEMPTS:
            raise _too_often(ask.key)
        assert ask.key is not None  # noqa: S101
        event = RetryEvent(self.name, record.seq, ask.analyst, ask.key)
        return Decision(ask, record, NOTHING, event)

    def _admit_release(self, ask: ChargeRequest) -> None:
        declaration = self.table.declaration
        if self.table.recovered:
            raise Refused(CLOSED)
        if declaration is None or not declaration.allows({ask.question}):
            raise Refused("this was not declared for release before anything was answered")
        if not declaration.allows(self.table.released | {ask.question}):
            raise Refused(
                "other questions of the menu were released, and this is in no set of them"
            )
        self.table.budgets.admit_divided(declaration.divisor)

    def _check_question(self, record: Record, ask: ChargeRequest) -> None:
        if self.charge_at(record.seq).question != ask.question:
            raise _same_digest()

    def _handed(self, decision: Decision, row: Row | None) -> tuple[Charge, Proof | None]:
        """Return what the caller gets, once the decision's event is added as `row`."""
        ask, record = decision.ask, decision.record
        if record is None:  # a new charge: its event is the entry, and it is not answered yet
            assert row is not None  # noqa: S101
            charged = charges_by_account(ask.parts, self.table.header.accounts)
            return self.entry(row.seq, ask, charged, decision.due), None
        seq = self.catalogue.got(record, ask.analyst)
        assert seq is not None  # noqa: S101
        return self.entry(seq, ask, {}, decision.due), self.proof(seq, record)

    def entry(
        self, seq: int, ask: ChargeRequest, charged: Mapping[str, Loss], share: Loss
    ) -> Charge:
        ledger = self.book.history.ledger
        named = (ledger, seq, self.name, ask.analyst, ask.key, ask.question, ask.digest, ask.noise)
        return Charge(*named, dict(charged), share)

    def recorded(self, row: Row, analyst: str | None) -> tuple[Charge | None, Proof | None]:
        """The charge or repeat in a row, if it is this table's and analyst's (None: anybody's)."""
        event = read_event(row.body)
        if not isinstance(event, ChargeEvent | RepeatEvent) or event.table != self.name:
            return None, None
        if analyst not in (None, event.analyst):
            return None, None
        record = self.catalogue.record(row.seq)
        if isinstance(event, ChargeEvent):
            question, parts = event.question, event.charges
        else:
            question, parts = self.charge_at(record.seq).question, ()
        share = event.share
        ask = ChargeRequest(question, *record.name, parts, share, event.analyst, event.key)
        charged = charges_by_account(parts, self.table.header.accounts)
        return self.entry(row.seq, ask, charged, share), self.proof(row.seq, record)

    def charge_at(self, seq: int) -> ChargeEvent:
        return read_charge(self.book.row(seq).body)

    def store(self, entry: Charge, noisy: str) -> Proof | None:
        """Store an answer unless there is one: compare-and-set. G.3.4"""
        record = self.open_record(entry)
        if record.answer is None:
            kept = fingerprint(noisy)
            row = self.book.add(AnswerEvent(self.name, record.seq, kept), noisy)
            record = record._replace(answer=row.seq)
        return self.proof(entry.seq, record)

    def open_record(self, entry: Charge) -> Record:
        """The record that an answer of this entry belongs to."""
        record = self.catalogue.at(entry.seq)
        known = record is not None and record.name == (entry.digest, entry.noise)
        here = (entry.ledger, entry.table) == (self.book.history.ledger, self.name)
        if record is None or not known or record.lost or record.old or not here:
            raise Refused(f"entry {entry.seq} is not open in this ledger; charge it first")
        try:
            self.check_asker(entry.analyst)
        except Refused as late:
            raise unfinished(late) from None
        return record

    def proof(self, seq: int, record: Record) -> Proof | None:
        if record.answer is None:
            return None
        mine = self.book.row(seq)
        origin = mine if seq == record.seq else self.book.row(record.seq)
        return Proof(mine, origin, self.book.row(record.answer))

    def give_back(self, reservation: int, *, void: bool = False) -> None:
        """End a reservation, if it has not ended."""
        if reservation in self.table.budgets.reservations:
            self.book.add(ReturnEvent(self.name, reservation, void))


def _same_digest() -> Refused:
    return Refused("another question has the same digest; nothing was charged")


def _lost(key: str | None) -> Refused:
    return Refused(
        f"the answer under key {key!r} was lost when the ledger was recovered; "
        "ask with a new key, at full price"
    )


def _before(key: str | None) -> Refused:
    return Refused(
        f"the key {key!r} was used before the table was amended or had grown, and the question "
        "means something else now; use a new key"
    )


def _too_often(key: str | None) -> Refused:
    return Refused(
        f"{ATTEMPTS} attempts under key {key!r} have not finished; ask with "
        "another key: what is charged is not charged again"
    )


# A table in an open ledger: published now, or found as it is.


def published(
    book: LedgerFile, wanted: TableHeader, publish: bool, stamp: str | None = None
) -> int:
    """The table's generation, on the writer's thread; `Refused` if it has other facts.

    The only place where a table comes into a ledger, and only with `publish`. `stamp` is what
    replicas compare of its content.
    """
    _end_left_open(book)
    table = book.history.tables.get(wanted.name)
    if table is not None and table.withdrawn is None:
        _check(book, table, wanted)
        if table.stamp not in (stamp, LOST):
            raise Refused(
                f"the data of table {wanted.name!r} is not what was published: its content has"
                " changed, or this replica reads other data; every replica must read the same"
            )
        return table.generation
    if table is not None and table.recovered:
        raise Refused(
            f"table {wanted.name!r} was withdrawn, and events were lost since: it may have been"
            " published again; publish under another name"
        )
    if table is None and was_published(book.history.ledger, wanted.name):
        raise Refused(
            f"table {wanted.name!r} was published before, and the ledger has lost all its events; "
            "restore a newer backup: without it everything of this table counts as spent"
        )
    if not publish:
        raise not_published(wanted.name, book.file if isinstance(book.file, str) else book.place)
    check_population(book, wanted)
    book.add(PublishEvent(wanted, stamp))
    return book.history.tables[wanted.name].generation


def not_published(table: str, where: str | None) -> NotPublished:
    """The refusal for a table that the ledger at `where` does not have; names the way out."""
    place = "" if where is None else f" (ledger {where})"
    return NotPublished(
        f"table {table!r} is not published{place}; its owner publishes it once, with"
        f" `sulq publish {table}`, or in Python with Database.open(..., publish=True)"
    )


def known_table(book: LedgerFile, name: str) -> TableState:
    """A table that is there, whatever its facts; on the writer's thread."""
    _end_left_open(book)
    table = book.history.tables.get(name)
    if table is None:
        raise _no_table(book, name)
    _check_closed(book, table)
    return table


def free_data(book: LedgerFile, name: str, told: str | None = None, *, shown: bool = False) -> None:
    """After a withdrawal, on the writer's thread: let the data be published anew, anywhere.

    Not if the name was published again meanwhile, or events were lost since. `told`: what is public
    of the data for good if somebody was `shown` it, or had a share.
    """
    table = book.history.tables[name]
    if book.file is None or table.withdrawn is None or table.recovered:
        return
    kept = told if shown or table.shown else None
    versions = [table.data_version, *(before.version for before in table.grown)]
    for version in {None if table.earlier == 0 else table.header.version, *versions}:
        release_data(book.history.ledger, name, version, kept)


def _end_left_open(book: LedgerFile) -> None:
    for name, reservation in book.left_open:  # by a process that is gone
        TableTransaction(book, name).give_back(reservation, void=True)
    book.left_open.clear()


def _no_table(book: LedgerFile, name: str) -> Refused:
    return Refused(f"the ledger has no table {name!r}; it has {sorted(book.history.tables)}")


def check_population(book: LedgerFile, wanted: TableHeader, besides: str = "") -> None:
    """The first table that names a population fixes what it is promised; `besides` an unused one
    that leaves it."""
    if (member := wanted.member) is None:
        return
    pool = book.history.populations.get(member.name)
    alone = pool is not None and (
        pool.vacant or (pool.tables == [besides] and replace(pool, tables=[]).vacant)
    )
    if pool is not None and not alone and not pool.agrees(member):
        raise Refused(
            f"population {member.name!r} was given another promise by table {pool.tables[0]!r};"
            " name the same one"
        )
    noted = book.file is not None and was_pooled(book.history.ledger, member.name)
    if pool is None and noted:
        raise Refused(
            f"population {member.name!r} is known, and the ledger has lost all its events; restore"
            " a newer backup: without it everything of this population counts as spent"
        )


def note_population(book: LedgerFile, wanted: TableHeader) -> None:
    """In the state directory too, before anything is charged to it."""
    if wanted.member is not None and book.file is not None:
        note_pooled(book.history.ledger, wanted.member.name)


def _check(book: LedgerFile, table: TableState, wanted: TableHeader) -> None:
    if differences := table.header.differences(wanted):
        since = "amended: it has" if table.amended else "published with"
        how = "amended" if table.amended else "published"
        raise Refused(
            f"table {wanted.name!r} was {since} other {', '.join(differences)}; open it as it was"
            f" {how}, or `sulq amend` it"
        )
    _check_closed(book, table)


def _check_closed(book: LedgerFile, table: TableState) -> None:
    note_if_closed(book, table)
    name = table.header.name
    noted = book.file is not None and was_closed(book.history.ledger, name)
    if noted and table.closed is None:
        raise Refused(
            f"table {name!r} was closed for good, and the ledger has lost that event; "
            "it stays closed: restore a newer backup to read what was paid for"
        )


def note_if_closed(book: LedgerFile, table: TableState) -> None:
    """In the state directory too; again at each opening, should a crash have come between."""
    if table.closed is not None and book.file is not None:
        note_closed(book.history.ledger, table.header.name)


# The owner's changes, decided on the writer's thread: revoke, amend, book what was released
# elsewhere, close for good; of a table that was never used, repair and withdraw.
#
# Each is one event. Proof that none undoes spending: docs/proofs/ledger.md, sections 10 to 14, 17.


Price = Callable[[Taken], Outside]
STAMP_LOST = (
    "events of this ledger were lost, perhaps an amendment among them: the promise and the columns"
    " stay as they are; publish the data anew if you must, with its own ledger"
)


def declare(
    desk: TableTransaction, menu: Sequence[Sequence[str]], divisor: int, terms: str
) -> None:
    """What may be released under assumptions, before anything is answered. S1.14"""
    desk.check_open()
    if desk.table.recovered:
        raise Refused(CLOSED)
    if desk.table.declaration is not None:
        raise Refused("this table has a declaration already; there can be one")
    if not desk.table.budgets.untouched:
        raise Refused(
            "a noisy answer was given already, and what is released exactly must not be"
            " chosen after seeing one; declare it when the table is published"
        )
    declared = tuple(tuple(path) for path in menu)
    desk.book.add(DeclareEvent(desk.name, declared, divisor, terms))


def grant(desk: TableTransaction, analyst: str, credits: Loss) -> Grant:
    """Out of what is neither spent nor kept."""
    desk.check_open()
    desk.table.budgets.admit_grant(analyst, credits)
    row = desk.book.add(GrantEvent(desk.name, analyst, credits))
    own = desk.table.budgets.shares[analyst]
    return Grant(row.seq, analyst, own.granted or NOTHING, own.spent)


def revoke(desk: TableTransaction, analyst: str, reason: str) -> Grant:
    """What is unspent goes back, what was spent stays; a second time changes nothing."""
    desk.check_open()
    own = desk.table.budgets.shares.get(analyst)
    if analyst == OWNER:
        raise Refused("the owner has no share to revoke; `sulq close` turns the table off")
    if own is None:
        raise Refused(f"{analyst!r} has no grant on this table, so there is nothing to revoke")
    seq = desk.book.history.mark.seq
    if own.revoked is None:
        seq = desk.book.add(RevokeEvent(desk.name, analyst, reason)).seq
    return Grant(seq, analyst, own.granted or NOTHING, own.spent)


def close(desk: TableTransaction, reason: str) -> Ended:
    """For good. A second time changes nothing: the first reason stands."""
    if desk.table.closed is None:
        desk.check_open()
        desk.book.add(CloseEvent(desk.name, reason))
    assert desk.table.closed is not None  # noqa: S101
    return desk.table.closed


def amend(desk: TableTransaction, wanted: Amendment) -> int:
    """New facts and cap, if what is spent and kept fits; the table's new generation."""
    desk.check_open()
    table = desk.table
    if INDIVIDUAL in table.header.facts:
        raise Refused("a table with individual accounting stays as it was published")
    if table.recovered:
        raise Refused(STAMP_LOST)
    if table.declaration is not None:
        raise Refused(
            "questions were declared for exact release, certified for the table as it is; it"
            " cannot be amended any more"
        )
    if table.taken != NONE and wanted.facts.get("promise") != table.header.facts.get("promise"):
        raise Refused(
            "a release made elsewhere was taken out of this promise, and what that costs is proved"
            " for this promise alone: it cannot be raised any more"
        )
    table.budgets.admit_amend(wanted.cap, wanted.credits, wanted.delta)
    desk.book.add(AmendEvent(desk.name, wanted))
    return table.generation


def check_growing(desk: TableTransaction) -> None:
    """`Refused` for a table that cannot get new rows."""
    desk.check_open()
    if desk.table.declaration is not None:
        raise Refused(
            "questions were declared for exact release, certified for the rows as they are; this"
            " table cannot grow any more"
        )


def grow(desk: TableTransaction, event: VersionEvent) -> int:
    """A new version of the rows; without a budget of its own it has that of the one before.
    Return the table's new generation."""
    if event.budget is None:
        event = replace(event, budget=desk.table.budgets.version.allowed)
    desk.book.add(event)
    return desk.table.generation


def repair(desk: TableTransaction, wanted: TableHeader, reason: str) -> int:
    """Another header for a table that was never used; the table's new generation."""
    desk.check_unused()
    if wanted.name != desk.name or wanted.version != desk.table.header.version:
        raise ValueError("a repair is of the same table with the same rows")
    check_population(desk.book, wanted, besides=desk.name)
    desk.book.add(RepairEvent(wanted, reason))
    return desk.table.generation


def withdraw(desk: TableTransaction, reason: str) -> Ended:
    """Take back a table that was never used. A second time changes nothing."""
    if (done := desk.table.withdrawn) is not None:
        return done
    desk.check_unused()
    desk.book.add(WithdrawEvent(desk.name, reason))
    assert desk.table.withdrawn is not None  # noqa: S101
    return desk.table.withdrawn


def outside(desk: TableTransaction, price: Price, joint: Price | None = None) -> Outside:
    """Book what `price` says, told what others took out of the promise before; `joint` says it of
    the population. Never refused for want of budget: it has happened."""
    desk.check_open()
    if INDIVIDUAL in desk.table.header.facts:
        raise Refused(
            "the people of this table have balances of their own, and what each of them lost"
            " elsewhere is not known: count that release on top of this table's whole promise"
        )
    wanted = price(desk.table.taken)
    if desk.table.declaration is not None and wanted.stands:
        raise Refused(
            "exact release was declared on this table, and what this adds to it is not proved;"
            " state it in credits"
        )
    pool = desk.table.pool
    if pool is not None and joint is None:
        raise Refused(f"what this costs population {pool.name!r} must be said too")
    shared = None if pool is None or joint is None else joint(pool.taken)
    desk.book.add(OutsideEvent(desk.name, wanted, shared))
    return desk.table.outside[-1]
