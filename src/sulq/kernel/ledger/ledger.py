"""The ledger of one table: charge, then settle; append-only, chained, anchored. G.3.

Proof that released <= charged <= cap at every crash: docs/proofs/ledger.md.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from sulq.errors import Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger import failpoints, transactions
from sulq.kernel.ledger.accounts import (
    NOTHING,
    TEXT,
    check_loss,
    check_text,
    check_texts,
    group_charges,
)
from sulq.kernel.ledger.budget import OWNER, ended
from sulq.kernel.ledger.events import (
    Charge,
    ChargeEvent,
    ChargeRequest,
    Grant,
    PricedRequest,
    RepeatEvent,
    ReserveEvent,
    VersionEvent,
    read_event,
)
from sulq.kernel.ledger.file import MEMORY, Files, LedgerFile, closed, is_known, open_ledger_file
from sulq.kernel.ledger.header import (
    Amended,
    Amendment,
    Ended,
    Grown,
    Outside,
    PopulationMembership,
    TableHeader,
    check_reason,
    gone,
    outgrown,
    stale,
    unfinished,
)
from sulq.kernel.ledger.index import ChargeIndex, IndexUnavailable, Record, no_room
from sulq.kernel.ledger.inspect import Statement, is_there, statement
from sulq.kernel.ledger.register import check_data, is_registered, register_data
from sulq.kernel.ledger.shared import open_shared
from sulq.kernel.ledger.signing import (
    ChainHead,
    Proof,
    Receipt,
    latest_head,
    receipt_body,
    sign_receipt,
    stored_text,
    stored_values,
)
from sulq.kernel.ledger.state import Declaration, TableState
from sulq.kernel.ledger.state_dir import is_shared, ledger_identity, location_name, read_private
from sulq.kernel.ledger.stores.store import Row
from sulq.kernel.ledger.transactions import (
    TableTransaction,
    free_data,
    known_table,
    not_published,
    note_if_closed,
    note_population,
    published,
)

PAGE = 256
PlannedQuestions = tuple[tuple[str, str, tuple[int, ...]], ...]
"""Digest, noise, and the earlier answers to which a draw is added."""
T = TypeVar("T")


class ChargeRow(NamedTuple):
    """A charge or repeat: who has which record by it."""

    seq: int
    analyst: str
    question: str
    record: Record


class JointTable(NamedTuple):
    """A table whose charges count for the balances of people."""

    name: str
    charged: int  # how many questions
    recovered: bool  # events were lost since it was published


class StoredAnswer(NamedTuple):
    """A stored noisy answer and the question it answers."""

    analyst: str  # who paid first
    question: str
    record: Record
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Repair:
    """Another header for an unused table, beside its new rows; `check` as in `Ledger.repair`."""

    wanted: TableHeader
    reason: str
    check: Callable[[bool], None]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table at one moment, as an analyst sees it who asks one question under one key."""

    head: int  # the number of the ledger's last event
    closed: Ended | None  # when and why the table was closed for good
    declaration: Declaration | None  # what may be released under assumptions
    released: frozenset[str]  # the questions that were
    recovered: bool  # events were lost since the table was published
    keyed: tuple[str, str] | None  # the digest and noise that the key stands for
    planned: PlannedQuestions | None  # the batch that the key stands for
    stored: tuple[str, ...]  # the noises at which the question is paid for, oldest first
    paid: frozenset[str]  # those of them that cost this analyst nothing at all
    told: tuple[str, ...]  # those that this analyst was answered, in the order of the telling


class Ledger:
    """One table's view of an open ledger. Thread-safe. Made by `Ledger.open` or `Ledger.attach`."""

    def __init__(
        self, book: LedgerFile, name: str, reservation: int | None = None, generation: int = 0
    ) -> None:
        """With a reservation: what is asked here is paid from it. `generation`: by which facts."""
        self._shared, self._name, self.reservation = book, name, reservation
        self._desk, self._generation = TableTransaction(book, name), generation
        self._forgotten = weakref.finalize(self, _forget, book, self._desk, reservation)
        self._forgotten.atexit = False  # at exit the ledger file closes itself

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        name: str,
        facts: Mapping[str, str],
        accounts: Sequence[str],
        cap: Loss,
        fingerprint: str | None,
        wait: float = 5.0,
        publish: bool = False,
        member: PopulationMembership | None = None,
        budget: int | None = None,
        receipts: str | Path | None = None,
    ) -> Ledger:
        """Reopen a table if ledger, anchor, header and data are unchanged.

        With `publish` a table that the ledger does not have is published, and the ledger made if
        there is none. Without it nothing is made, and `NotPublished` is raised. A ledger in memory
        has no table before, so it always publishes. `receipts` is the ledger's receipts journal, a
        file on another disk.
        """
        publish = publish or str(path) == MEMORY
        version = secrets.token_hex(16)
        wanted = TableHeader(name, version, dict(facts), tuple(accounts), cap, member, budget)
        if str(path) == MEMORY or ledger_identity(path) is None:
            check_data(fingerprint, None, name)
        if not publish and not is_known(path) and not is_there(path):
            raise not_published(name, location_name(path))
        book = (open_shared if is_shared(path) else open_ledger_file)(path, wait, publish, receipts)
        try:
            if str(path) != MEMORY:
                check_data(fingerprint, book.history.ledger, name)
            stamp = book.stamp(name, fingerprint)
            generation = book.submit(lambda: published(book, wanted, publish, stamp))
            failpoints.reached("published")
            if str(path) != MEMORY:
                known = book.read(lambda: book.history.tables[name].data_version)
                register_data(fingerprint, book.history.ledger, name, known)
                note_population(book, wanted)
            failpoints.reached("registered")
            return cls(book, name, None, generation)
        except BaseException:
            book.leave(wait=True)
            raise

    @classmethod
    def attach(cls, path: str | Path, name: str, *, wait: float = 5.0) -> Ledger:
        """Open a published table without its data: to give it a new version, or to end access."""
        if str(path) == MEMORY:
            raise Refused(
                "a ledger in memory has no table that could have grown; use db.grow(source)"
            )
        book = (open_shared if is_shared(path) else open_ledger_file)(path, wait, False)
        try:
            return cls(book, name, None, book.submit(lambda: known_table(book, name).generation))
        except BaseException:
            book.leave(wait=True)
            raise

    @property
    def _table(self) -> TableState:
        """The table's state now. A shared ledger replaces it after a write of unknown outcome."""
        return self._shared.history.tables[self._name]

    @property
    def _book(self) -> LedgerFile:
        self._check_present()
        return self._held

    @property
    def _held(self) -> LedgerFile:
        if not self._forgotten.alive:
            raise closed() if self.reservation is None else ended()
        return self._shared

    def _check_present(self) -> None:
        """`Refused` if the table goes by other facts or rows than whoever uses this."""
        table = self._table
        if table.generation != self._generation:
            if table.withdrawn is not None:
                raise gone(table.withdrawn)
            grown = table.grown and table.grown[-1].seq > max(
                (a.seq for a in table.amended), default=0
            )
            raise outgrown() if grown else stale()

    def _submit(self, work: Callable[[], T], *, charged: bool = False) -> T:
        """Work that writes, unless the table was amended before its turn came."""

        def checked() -> T:
            try:
                self._check_present()
            except Refused as late:
                raise unfinished(late) if charged else late from None
            return work()

        return self._held.submit(checked)

    @property
    def durable(self) -> bool:
        """Whether what is spent here outlives the process: not where the ledger is in memory."""
        return self._shared.file is not None

    @property
    def header(self) -> TableHeader:
        return self._table.header

    @property
    def ledger_id(self) -> str:
        """The random id of the ledger, which names its files in the state directory."""
        return self._shared.history.ledger

    @property
    def replica(self) -> int | None:
        """Which replica this process is of a shared ledger; None for a ledger of its own."""
        return self._shared.replica

    @property
    def data_version(self) -> str | None:
        """The version whose data is registered; None for the one that was published first."""
        return self._table.data_version

    @property
    def amended(self) -> tuple[Amended, ...]:
        """The table's amendments, oldest first."""
        return self._book.read(lambda: tuple(self._table.amended))

    @property
    def grown(self) -> tuple[Grown, ...]:
        """The versions of the data before the present one, oldest first."""
        return self._book.read(lambda: tuple(self._table.grown))

    @property
    def public_key(self) -> str:
        return self._shared.history.public

    # -- spending ---------------------------------------------------------------------------------

    def charge(
        self,
        question: str,
        digest: str,
        noise: str,
        charges: Mapping[str, Loss],
        share: Loss,
        *,
        analyst: str,
        key: str | None = None,
    ) -> Charge:
        """Pay for a question, all accounts or none; durable when it returns. Never refunded."""
        ask = self._ask(PricedRequest(question, digest, noise, charges, share), analyst, key)
        return self._signed(*self._submit(lambda: self._desk.admit(ask)))

    def repeat(
        self, question: str, digest: str, noise: str, *, analyst: str, key: str | None = None
    ) -> Charge:
        """Return a stored answer that this analyst was given. It is free, and can charge nothing:
        `Refused` if there is no such answer. A new key stands for it from then on."""
        ask = self._ask(PricedRequest(question, digest, noise, {}, NOTHING), analyst, key)
        return self._signed(*self._submit(lambda: self._desk.repeat(ask)))

    def charge_all(
        self, questions: Sequence[PricedRequest], *, analyst: str, key: str | None = None
    ) -> list[Charge]:
        """Pay for all of these or for none, in one transaction; a key stands for the whole."""
        check_text("analyst's name", analyst)
        check_text("key", "" if key is None else key)
        asks = [self._ask(priced, analyst, None) for priced in questions]
        found = self._submit(lambda: self._desk.admit_all(asks, analyst, key))
        return [self._signed(*handed) for handed in found]

    def _ask(self, priced: PricedRequest, analyst: str, key: str | None) -> ChargeRequest:
        question, digest, noise, charges, share, sources = priced
        numbers = self._table.numbers
        check_texts(question, digest, noise, analyst, key)
        check_loss("share", share)
        for loss in set(charges.values()):
            check_loss("price", loss)
        parts = group_charges(charges, numbers)
        named = (question, digest, noise, parts, share, analyst, key)
        return ChargeRequest(*named, reservation=self.reservation, sources=sources)

    def release(self, *, question: str, digest: str, noise: str, analyst: str) -> Charge:
        """Open a declared question for release under assumptions; a repeat comes answered. M.9"""
        check_texts(question, digest, noise, analyst, None)
        ask = ChargeRequest(question, digest, noise, (), NOTHING, analyst, None, release=True)
        return self._signed(*self._submit(lambda: self._desk.admit(ask)))

    def declare(self, menu: Sequence[Sequence[str]], divisor: int, terms: str) -> None:
        """Fix, before anything is answered, what may be released under assumptions. S1.14"""
        for text in (terms, *(question for path in menu for question in path)):
            check_text("declaration", text, TEXT)
        self._submit(lambda: transactions.declare(self._desk, menu, divisor, terms))

    @property
    def declaration(self) -> Declaration | None:
        """What may be released under assumptions; None if nothing was declared."""
        return self._book.read(lambda: self._table.declaration)

    @property
    def recovered(self) -> bool:
        """True if events were lost since the table was published."""
        return self._book.read(lambda: self._table.recovered)

    @property
    def last_lost(self) -> int:
        """The number after the last event that was lost at a recovery; 0 if none was."""
        gaps = self._book.read(lambda: list(self._shared.history.gaps))
        return max((gap.stop for gap in gaps), default=0)

    def recovered_since(self, seq: int) -> bool:
        """True if events after that number were lost, or may have been."""
        return self._book.read(lambda: any(gap.stop > seq for gap in self._shared.history.gaps))

    @property
    def has_released(self) -> bool:
        """True if anything was released under assumptions. It waits for no commit."""
        return bool(self._table.released)

    @property
    def released(self) -> frozenset[str]:
        """The questions released under assumptions."""
        return self._book.read(lambda: frozenset(self._table.released))

    def settle(self, entry: Charge, values: Sequence[int]) -> Charge:
        """Store the noisy integers, once; whoever comes second gets the first one's values."""
        noisy = stored_text(values)
        work = partial(self._desk.store, entry, noisy)
        return self._signed(entry, self._submit(work, charged=True))

    def settle_all(self, answered: Sequence[tuple[Charge, Sequence[int]]]) -> list[Charge]:
        """As `settle`, for several in one transaction."""
        noisy = [(entry, stored_text(values)) for entry, values in answered]

        def work() -> list[Proof | None]:
            for entry, _ in noisy if len(noisy) > 1 else ():
                self._desk.open_record(entry)  # refused before anything is stored
            return [self._desk.store(entry, text) for entry, text in noisy]

        proofs = self._submit(work, charged=True)
        return [self._signed(entry, proof) for (entry, _), proof in zip(noisy, proofs, strict=True)]

    def _signed(self, entry: Charge, proof: Proof | None) -> Charge:
        """The entry with its stored answer and receipt, if it has one."""
        if proof is None:
            return entry
        receipt, values = self._receipt(proof), stored_values(proof.answer.noisy or "")
        return replace(entry, answered=True, values=values, receipt=receipt)

    def _receipt(self, proof: Proof) -> Receipt:
        book, header = self._book, self._table.header_at(proof.mine.seq)
        return sign_receipt(receipt_body(book.history.ledger, header, proof), book.key)

    def grant(self, analyst: str, credits: Loss) -> Grant:
        """Add to an analyst's share, out of what is neither spent nor granted."""
        check_text("analyst's name", analyst)
        check_loss("grant", credits)
        return self._submit(lambda: transactions.grant(self._desk, analyst, credits))

    def revoke(self, analyst: str, reason: str = "") -> Grant:
        """What is unspent of a share goes back; nothing more is for this name until a new grant."""
        check_text("analyst's name", analyst)
        check_reason(reason)
        return self._submit(lambda: transactions.revoke(self._desk, analyst, reason))

    def close_for_good(self, reason: str = "") -> Ended:
        """The table's last event. What was paid for stays readable by whoever paid."""
        check_reason(reason)
        ended = self._submit(lambda: transactions.close(self._desk, reason))
        note_if_closed(self._shared, self._table)
        return ended

    def outside(
        self, price: transactions.Price, joint: transactions.Price | None = None
    ) -> Outside:
        """Book a release made elsewhere; `price` is told what others took before."""
        return self._submit(lambda: transactions.outside(self._desk, price, joint))

    def amend(self, wanted: Amendment) -> Ledger:
        """Other facts and another cap; the ledger that comes back goes by them, this one ends."""
        book = self._book
        generation = self._submit(lambda: transactions.amend(self._desk, wanted))
        if not book.enter():
            raise closed()
        return Ledger(book, self._name, None, generation)

    def repair(
        self,
        wanted: TableHeader,
        reason: str = "",
        check: Callable[[bool], None] = lambda shown: None,
    ) -> Ledger:
        """Other facts, accounts, cap and population for a table that was never used; every share
        ends. The ledger that comes back goes by them, this one ends.

        `check` is told, in the same turn, whether somebody beside the owner ever had a share.
        """
        check_reason(reason)
        book = self._book

        def work() -> int:
            check(self._table.shown)
            return transactions.repair(self._desk, wanted, reason)

        generation = self._submit(work)
        if book.file is not None:
            note_population(book, wanted)
        failpoints.reached("repaired")
        if not book.enter():
            raise closed()
        return Ledger(book, self._name, None, generation)

    def reads(self, fingerprint: str | None) -> bool:
        """Return True if this is the data of the table's present version."""
        book, table = self._book, self._table
        if table.stamp is not None:
            return table.stamp == book.stamp(self._name, fingerprint)
        return is_registered(fingerprint, book.history.ledger, self._name, table.data_version)

    def grow(
        self,
        facts: Mapping[str, str],
        fingerprint: str | None,
        reason: str = "",
        budget: int | None = None,
        amendment: Amendment | None = None,
        repair: Repair | None = None,
    ) -> Ledger:
        """Give the table new rows: a new version with a new random id, on the same accounts. The
        ledger that comes back goes by it, this one ends.

        With an `amendment` to those facts, or a `repair` of an unused table, both events are one
        transaction: both are durable or none.

        What was spent stays spent, on the same accounts; stored answers stay with the version they
        were given on. `budget`: the credits, in steps, that this version may spend of what is left;
        None: as many as the one before.

        What is known of the new data is registered before the event that names it is written. So no
        event lacks its data, and data without an event changes nothing. Proof:
        docs/proofs/ledger.md, section 16.
        """
        check_reason(reason)
        for fact in facts.values():
            check_text("fact", fact, TEXT)
        book, version = self._book, secrets.token_hex(16)
        stamp = book.stamp(self._name, fingerprint)
        # what is refused leaves no claim on the data
        book.read(lambda: transactions.check_growing(self._desk))
        if book.file is not None:
            register_data(fingerprint, book.history.ledger, self._name, version)
        failpoints.reached("version noted")
        event = VersionEvent(self._name, version, facts, reason, budget, stamp)

        def work() -> int:
            transactions.check_growing(self._desk)  # it refuses before anything is added
            if amendment is not None:
                transactions.amend(self._desk, amendment)
            if repair is not None:
                repair.check(self._table.shown)
                transactions.repair(self._desk, repair.wanted, repair.reason)
            return transactions.grow(self._desk, event)

        generation = self._submit(work)
        if repair is not None:
            note_population(book, repair.wanted)
        if not book.enter():
            raise closed()
        return Ledger(book, self._name, None, generation)

    @property
    def version_budget(self) -> int | None:
        """What the present version may spend, in steps of credits; None: all that is left."""
        return self._table.budgets.version.allowed

    def withdraw(self, reason: str = "", told: str | None = None, *, shown: bool = False) -> Ended:
        """Take back a table that was never used: its data may be published anew, elsewhere too.

        Again after a crash it finishes what was begun. `told`: what stays public of the data if
        somebody was `shown` it, or had a share before the table's last event.
        """
        check_reason(reason)
        book = self._held
        ended = book.submit(lambda: self._withdraw(reason))
        failpoints.reached("withdrawn")
        # never before the event is durable
        book.submit(lambda: free_data(book, self._name, told, shown=shown))
        return ended

    def _withdraw(self, reason: str) -> Ended:
        if self._table.withdrawn is None:
            self._check_present()
        return transactions.withdraw(self._desk, reason)

    def reserve(self, analyst: str, amount: Loss) -> Ledger:
        """Set credits aside; the ledger that comes back spends from them and is closed by whoever
        is done: what is left then goes back. Of delta there may be less than wanted."""
        check_text("analyst's name", analyst)
        check_loss("reservation", amount)
        if self.reservation is not None:
            raise Refused("this is spent from a reservation already; reserve outside it")

        def work() -> int:
            self._desk.check_open()
            allowed = self._table.budgets.admit_reservation(analyst, amount)
            event = ReserveEvent(self._name, analyst, allowed, self._shared.replica)
            return self._book.add(event).seq

        book = self._book
        seq = self._submit(work)
        if not book.enter():
            raise closed()  # the next opening ends the reservation
        return Ledger(book, self._name, seq, self._generation)

    # -- reading ----------------------------------------------------------------------------------

    @property
    def closed(self) -> Ended | None:
        """When and why the table was closed for good; None while it is open."""
        return self._book.read(lambda: self._table.closed)

    def check_asker(self, analyst: str) -> None:
        """`Refused` if this analyst gets nothing new: the table is closed, or amended since this
        was opened, or the name is revoked. Holds for what is watched after a reservation too."""
        self._check_present()
        self._shared.read(lambda: self._desk.check_asker(analyst))

    @property
    def unused(self) -> bool:
        """True if nobody can have been told anything of the rows: ledger.md, section 18."""
        return self._book.read(lambda: self._table.unused)

    @property
    def head(self) -> int:
        """The number of the ledger's last event."""
        return self._book.read(lambda: self._shared.history.mark.seq)

    @property
    def generation(self) -> int:
        """How often the table was amended or grown before this was opened."""
        return self._generation

    @property
    def identity(self) -> str:
        """A name for the published table. Amended or with new rows it stays the same one;
        withdrawn and published again under its name it is another."""
        life = self._table.earlier
        return f"{self._book.history.ledger}{f'.{life}' if life else ''}/{self.header.name}"

    def rows(self, after: int, most: int) -> list[Row]:
        """Return at most `most` events of the chain after that number, as they are stored."""
        return self._book.read(lambda: self._shared.page(after, most))

    def anchor(self) -> bytes | None:
        """Return the anchor as its file has it now, or None for a ledger in memory."""
        book = self._book
        if book.file is None:
            return None
        return read_private(Files(book.history.ledger).anchor) or b""

    def anchored_head(self, anchor: bytes) -> ChainHead | None:
        """Return the head that an anchor of this ledger names, or None if it does not verify."""
        chain = self._book.history
        return latest_head(anchor, chain.ledger, [chain.public])

    @property
    def broken(self) -> bool:
        """True if a write failed: nothing more is answered until the ledger is opened again."""
        return self._forgotten.alive and not self._shared.usable

    @property
    def place(self) -> str | None:
        """Where the ledger is kept; None for a ledger in memory."""
        return self._shared.place

    def at_rest(self) -> AbstractContextManager[object]:
        """Return a context that waits for a commit once, not at each read. Nothing may be written
        inside."""
        return self._book.at_rest()

    def snapshot(
        self, analyst: str = OWNER, *, key: str | None = None, digest: str = ""
    ) -> Snapshot:
        """Read the table once, for a question of this digest under this idempotency key."""

        def work() -> Snapshot:
            table, index = self._table, self._table.catalogue
            records = index.of(digest) if digest else []
            owned = index.given(digest, analyst) if records else []
            answered = {one.seq: one.noise for one in records if one.answer is not None}
            return Snapshot(
                self._shared.history.mark.seq,
                table.closed,
                table.declaration,
                frozenset(table.released),
                table.recovered,
                self._keyed(analyst, key),
                self._planned(analyst, key),
                tuple(record.noise for record in records),
                frozenset(
                    record.noise
                    for record in records
                    if table.is_free(analyst, record, given=record.seq in owned)
                ),
                tuple(answered[seq] for seq in owned if seq in answered),
            )

        return self._book.read(work)

    def keyed(self, analyst: str, key: str | None) -> tuple[str, str] | None:
        """The digest and noise that a known idempotency key stands for."""
        return self._book.read(lambda: self._keyed(analyst, key))

    def _keyed(self, analyst: str, key: str | None) -> tuple[str, str] | None:
        found = None if key is None else self._table.catalogue.keyed(analyst, key)
        return found.record.name if found is not None else None

    def planned(self, analyst: str, key: str | None) -> PlannedQuestions | None:
        """The batch that a known idempotency key stands for."""
        return self._book.read(lambda: self._planned(analyst, key))

    def _planned(self, analyst: str, key: str | None) -> PlannedQuestions | None:
        found = None if key is None else self._table.catalogue.planned(analyst, key)
        return found.questions if found is not None else None

    def paid(self, analyst: str, digest: str, noise: str) -> bool:
        """True if asking again would cost this analyst nothing at all."""
        return self._book.read(lambda: self._table.paid(analyst, (digest, noise)))

    def remaining(self, analyst: str, accounts: Iterable[str] | None = None) -> Loss:
        """The most that one question on `accounts` (None: all) may cost this analyst."""
        known = self._table.numbers
        numbers = None if accounts is None else [known[name] for name in accounts if name in known]

        def work() -> Loss:
            if self._table.closed is not None:
                return NOTHING
            return self._table.budgets.remaining(analyst, numbers, self.reservation)

        return self._book.read(work)

    def statement(self) -> Statement:
        return self._book.read(lambda: statement(self._book.history, self._name))

    def receipt(self, seq: int) -> Receipt:
        """The receipt of an answered entry; the same bytes every time."""

        def work() -> Proof:
            record = self._table.catalogue.at(seq)
            proof = self._desk.proof(seq, record) if record is not None else None
            if proof is None:
                raise Refused(f"entry {seq} has no answer in this ledger, so no receipt")
            return proof

        return self._receipt(self._book.read(work))

    def entries(self, analyst: str | None = None, after: int = 0) -> Iterator[Charge]:
        """Every charge and repeat after that number, oldest first, with its answer and receipt."""
        while page := self.entries_page(analyst, after):
            after = page[-1][0]
            yield from (entry for _, entry in page if entry is not None)

    def entries_page(self, analyst: str | None, after: int) -> list[tuple[int, Charge | None]]:
        """Return the next events after that number; None for those that are no entry of the
        analyst. Empty at the end of the chain."""
        page = self._book.read(partial(self._page, analyst, after))
        return [
            (seq, None if entry is None else self._signed(entry, proof))
            for seq, entry, proof in page
        ]

    def _page(
        self, analyst: str | None, after: int
    ) -> list[tuple[int, Charge | None, Proof | None]]:
        rows = self._shared.page(after, PAGE)
        return [(row.seq, *self._desk.recorded(row, analyst)) for row in rows]

    def charges_between(self, after: int, until: int) -> Iterator[ChargeRow]:
        """The table's charges and repeats with these numbers, oldest first."""

        def page() -> list[tuple[int, ChargeRow | None]]:
            rows, index = self._shared.page(after, min(PAGE, until - after)), self._table.catalogue
            return [(row.seq, self._charge_row(row, index)) for row in rows if row.seq <= until]

        while after < until and (found := self._book.read(page)):
            yield from (one for _, one in found if one is not None)
            after = found[-1][0]

    def _charge_row(self, row: Row, index: ChargeIndex) -> ChargeRow | None:
        event = read_event(row.body)
        if not isinstance(event, ChargeEvent | RepeatEvent) or event.table != self._name:
            return None
        record = index.record(row.seq)
        asked = event if isinstance(event, ChargeEvent) else self._desk.charge_at(record.seq)
        return ChargeRow(row.seq, event.analyst, asked.question, record)

    def origin(self, seq: int) -> int:
        """The number of the first charge of what an entry is about: a repeat stands for it."""
        return self._book.read(lambda: self._table.catalogue.record(seq).seq)

    def joint_tables(self) -> list[JointTable]:
        """The tables whose people pay from the same balances: this one, or its population's."""

        def work() -> list[JointTable]:
            tables = self._shared.history.tables
            found = [(name, tables[name]) for name in self._joint_names()]
            return [JointTable(name, table.charged, table.recovered) for name, table in found]

        return self._book.read(work)

    def _joint_names(self) -> list[str]:
        pool = self._table.pool
        return [self._name] if pool is None else list(pool.tables)

    def joint_charges(self, after: int, until: int) -> Iterator[tuple[Charge, Record]]:
        """The charges and repeats of those tables with these numbers, oldest first."""
        names = self._book.read(self._joint_names)
        desks = {name: TableTransaction(self._shared, name) for name in names}

        def page() -> list[tuple[int, tuple[Charge, Record] | None]]:
            found: list[tuple[int, tuple[Charge, Record] | None]] = []
            for row in self._shared.page(after, PAGE):
                if row.seq <= until:
                    desk = desks.get(read_event(row.body).table or "", self._desk)
                    entry = desk.recorded(row, None)[0]  # None for an event of another table
                    own = None if entry is None else (entry, desk.catalogue.record(row.seq))
                    found.append((row.seq, own))
            return found

        while after < until and (found := self._book.read(page)):
            yield from (one for _, one in found if one is not None)
            after = found[-1][0]

    def stored_answers(self, numbers: Sequence[int]) -> list[StoredAnswer]:
        """The answers that were charged first with these numbers, unsigned."""

        def work() -> list[StoredAnswer]:
            return [self._stored_answer(number) for number in numbers]

        return self._book.read(work) if numbers else []

    def _stored_answer(self, number: int) -> StoredAnswer:
        record, charge = self._table.catalogue.record(number), self._desk.charge_at(number)
        noisy = None if record.answer is None else self._shared.row(record.answer).noisy
        values = stored_values(noisy or "")
        return StoredAnswer(charge.analyst, charge.question, record, values)

    def record_of(self, digest: str, noise: str) -> Record | None:
        """What a question finds at this noise; it may not be durable yet."""
        return self._look_up(lambda index: index.named((digest, noise)))

    def record_at(self, seq: int) -> Record | None:
        """As `record_of`, by the number of a charge or repeat."""
        return self._look_up(lambda index: index.at(seq))

    def numbers_of(self, digest: str) -> list[int]:
        """The numbers of all charges for a question, oldest first."""
        return self._look_up(lambda index: index.numbers(digest))

    def _look_up(self, look: Callable[[ChargeIndex], T]) -> T:
        """Look into the index without waiting for a commit."""
        try:
            return look(self._table.catalogue)
        except IndexUnavailable:
            raise no_room() from None

    def close(self) -> None:
        """Let go; the last view of a file closes it. A reservation ends: what is left goes back."""
        if self._forgotten.detach() is None:
            return
        reservation = self.reservation
        if reservation is not None:
            try:
                self._shared.submit(lambda: self._desk.give_back(reservation))
            except Refused:  # a ledger that failed: the next opening, or batch, ends it
                self._shared.left_open.append((self._name, reservation))
        self._shared.leave(wait=True)


def _forget(book: LedgerFile, desk: TableTransaction, reservation: int | None) -> None:
    """As `close`, for a ledger that nobody holds any more: it takes no lock and waits for none."""
    if reservation is not None:
        book.later(lambda: desk.give_back(reservation))
        book.left_open.append((desk.name, reservation))  # should that fail
    book.leave(wait=False)
