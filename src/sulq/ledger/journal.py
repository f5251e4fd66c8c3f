"""The ledger of one table: charge, then settle; append-only, chained, anchored. G.3.

Proof that released <= charged <= cap at every crash: docs/proofs/ledger.md.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from sulq.accounting.losses import Loss
from sulq.errors import Refused
from sulq.ledger import answers, changing, events, steps
from sulq.ledger.admission import Desk
from sulq.ledger.book import MEMORY, Book, is_known, open_book
from sulq.ledger.budgets import ended
from sulq.ledger.changes import (
    Amendment,
    Ended,
    Outside,
    check_reason,
    gone,
    outgrown,
    stale,
    unfinished,
)
from sulq.ledger.charges import group
from sulq.ledger.entries import Ask, Entry, Grant, Priced
from sulq.ledger.header import TableHeader
from sulq.ledger.inspection import is_there
from sulq.ledger.limits import TEXT, check_loss, check_text, check_texts
from sulq.ledger.places import is_shared, place_name, what_lies_at
from sulq.ledger.population import Member
from sulq.ledger.publishing import (
    free_data,
    not_published,
    note_if_closed,
    note_population,
    published,
)
from sulq.ledger.receipts import Proof, Receipt, receipt_body, sign_receipt
from sulq.ledger.register import check_data, register_data
from sulq.ledger.reservations import NOTHING
from sulq.ledger.shared import open_shared
from sulq.ledger.statement import Statement, statement
from sulq.ledger.table import Declaration, Table
from sulq.ledger.writer import closed

PAGE = 256
T = TypeVar("T")


class Journal:
    """One table's view of an open ledger. Thread-safe. Made by `Journal.open`."""

    def __init__(
        self, book: Book, name: str, reservation: int | None = None, generation: int = 0
    ) -> None:
        """With a reservation: what is asked here is paid from it. `generation`: by which facts."""
        self._shared, self._name, self.reservation = book, name, reservation
        self._desk, self._generation = Desk(book, name), generation
        self._forgotten = weakref.finalize(self, _forget, book, self._desk, reservation)
        self._forgotten.atexit = False  # the book sees to that

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
        member: Member | None = None,
        budget: int | None = None,
        receipts: str | Path | None = None,
    ) -> Journal:
        """Reopen a table if ledger, anchor, header and data are unchanged.

        With `publish` a table that the ledger does not have is published, and the ledger made if
        there is none. Without it nothing is made, and `NotPublished` is raised. A ledger in memory
        has no table before, so it always publishes. `receipts` is the ledger's receipts journal, a
        file on another disk.
        """
        publish = publish or str(path) == MEMORY
        version = secrets.token_hex(16)
        wanted = TableHeader(name, version, dict(facts), tuple(accounts), cap, member, budget)
        if str(path) == MEMORY or what_lies_at(path) is None:
            check_data(fingerprint, None, name)
        if not publish and not is_known(path) and not is_there(path):
            raise not_published(name, place_name(path))
        book = (open_shared if is_shared(path) else open_book)(path, wait, publish, receipts)
        try:
            if str(path) != MEMORY:
                check_data(fingerprint, book.history.ledger, name)
            stamp = book.stamp(name, fingerprint)
            generation = book.submit(lambda: published(book, wanted, publish, stamp))
            steps.on_step("published")
            if str(path) != MEMORY:
                known = book.read(lambda: book.history.tables[name].data_version)
                register_data(fingerprint, book.history.ledger, name, known)
                note_population(book, wanted)
            steps.on_step("registered")
            return cls(book, name, None, generation)
        except BaseException:
            book.leave(wait=True)
            raise

    @property
    def _table(self) -> Table:
        return self._desk.table

    @property
    def _book(self) -> Book:
        self._check_present()
        return self._held

    @property
    def _held(self) -> Book:
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
    ) -> Entry:
        """Pay for a question, all accounts or none; durable when it returns. Never refunded."""
        ask = self._ask(Priced(question, digest, noise, charges, share), analyst, key)
        return self._signed(*self._submit(lambda: self._desk.admit(ask)))

    def charge_all(
        self, questions: Sequence[Priced], *, analyst: str, key: str | None = None
    ) -> list[Entry]:
        """Pay for all of these or for none, in one transaction; a key stands for the whole."""
        check_text("analyst's name", analyst)
        check_text("key", "" if key is None else key)
        asks = [self._ask(priced, analyst, None) for priced in questions]
        found = self._submit(lambda: self._desk.admit_all(asks, analyst, key))
        return [self._signed(*handed) for handed in found]

    def _ask(self, priced: Priced, analyst: str, key: str | None) -> Ask:
        question, digest, noise, charges, share, sources = priced
        check_texts(question, digest, noise, analyst, key)
        check_loss("share", share)
        for loss in set(charges.values()):
            check_loss("price", loss)
        parts = group(charges, self._table.numbers)
        named = (question, digest, noise, parts, share, analyst, key)
        return Ask(*named, reservation=self.reservation, sources=sources)

    def release(self, *, question: str, digest: str, noise: str, analyst: str) -> Entry:
        """Open a declared question for release under assumptions; a repeat comes answered. M.9"""
        check_texts(question, digest, noise, analyst, None)
        ask = Ask(question, digest, noise, (), NOTHING, analyst, None, release=True)
        return self._signed(*self._submit(lambda: self._desk.admit(ask)))

    def declare(self, menu: Sequence[Sequence[str]], divisor: int, terms: str) -> None:
        """Fix, before anything is answered, what may be released under assumptions. S1.14"""
        for text in (terms, *(question for path in menu for question in path)):
            check_text("declaration", text, TEXT)
        self._submit(lambda: changing.declare(self._desk, menu, divisor, terms))

    @property
    def declaration(self) -> Declaration | None:
        """What may be released under assumptions; None if nothing was declared."""
        return self._book.read(lambda: self._table.declaration)

    @property
    def recovered(self) -> bool:
        """True if events were lost since the table was published."""
        return self._book.read(lambda: self._table.recovered)

    def recovered_since(self, seq: int) -> bool:
        """True if events after that number were lost, or may have been."""
        return self._book.read(lambda: any(gap.stop > seq for gap in self._shared.history.gaps))

    @property
    def released(self) -> frozenset[str]:
        """The questions released under assumptions."""
        return self._book.read(lambda: frozenset(self._table.released))

    def settle(self, entry: Entry, values: Sequence[int]) -> Entry:
        """Store the noisy integers, once; whoever comes second gets the first one's values."""
        noisy = answers.to_text(values)
        work = partial(self._desk.store, entry, noisy)
        return self._signed(entry, self._submit(work, charged=True))

    def settle_all(self, answered: Sequence[tuple[Entry, Sequence[int]]]) -> list[Entry]:
        """As `settle`, for several in one transaction."""
        noisy = [(entry, answers.to_text(values)) for entry, values in answered]

        def work() -> list[Proof | None]:
            for entry, _ in noisy:
                self._desk.open_record(entry)  # refused before anything is stored
            return [self._desk.store(entry, text) for entry, text in noisy]

        proofs = self._submit(work, charged=True)
        return [self._signed(entry, proof) for (entry, _), proof in zip(noisy, proofs, strict=True)]

    def _signed(self, entry: Entry, proof: Proof | None) -> Entry:
        """The entry with its stored answer and receipt, if it has one."""
        if proof is None:
            return entry
        values = answers.from_text(proof.answer.noisy or "")
        return replace(entry, answered=True, values=values, receipt=self._receipt(proof))

    def _receipt(self, proof: Proof) -> Receipt:
        header = self._table.header_at(proof.mine.seq)
        body = receipt_body(self._book.history.ledger, header, proof)
        return sign_receipt(body, self._book.key)

    def grant(self, analyst: str, credits: Loss) -> Grant:
        """Add to an analyst's share, out of what is neither spent nor granted."""
        check_text("analyst's name", analyst)
        check_loss("grant", credits)
        return self._submit(lambda: changing.grant(self._desk, analyst, credits))

    def revoke(self, analyst: str, reason: str = "") -> Grant:
        """What is unspent of a share goes back; nothing more is for this name until a new grant."""
        check_text("analyst's name", analyst)
        check_reason(reason)
        return self._submit(lambda: changing.revoke(self._desk, analyst, reason))

    def close_for_good(self, reason: str = "") -> Ended:
        """The table's last event. What was paid for stays readable by whoever paid."""
        check_reason(reason)
        ended = self._submit(lambda: changing.close(self._desk, reason))
        note_if_closed(self._shared, self._table)
        return ended

    def outside(self, price: changing.Price, joint: changing.Price | None = None) -> Outside:
        """Book a release made elsewhere; `price` is told what others took before."""
        return self._submit(lambda: changing.outside(self._desk, price, joint))

    def amend(self, wanted: Amendment) -> Journal:
        """Other facts and another cap; the journal that comes back goes by them, this one ends."""
        book = self._book
        generation = self._submit(lambda: changing.amend(self._desk, wanted))
        if not book.enter():
            raise closed()
        return Journal(book, self._name, None, generation)

    def repair(
        self,
        wanted: TableHeader,
        reason: str = "",
        check: Callable[[bool], None] = lambda shown: None,
    ) -> Journal:
        """Other facts, accounts, cap and population for a table that was never used; every share
        ends. The journal that comes back goes by them, this one ends.

        `check` is told, in the same turn, whether somebody beside the owner ever had a share.
        """
        check_reason(reason)
        book = self._book

        def work() -> int:
            check(self._table.shown)
            return changing.repair(self._desk, wanted, reason)

        generation = self._submit(work)
        if book.file is not None:
            note_population(book, wanted)
        steps.on_step("repaired")
        if not book.enter():
            raise closed()
        return Journal(book, self._name, None, generation)

    def withdraw(self, reason: str = "", told: str | None = None, *, shown: bool = False) -> Ended:
        """Take back a table that was never used: its data may be published anew, elsewhere too.

        Again after a crash it finishes what was begun. `told`: what stays public of the data if
        somebody was `shown` it, or had a share before the table's last event.
        """
        check_reason(reason)
        book = self._held
        ended = book.submit(lambda: self._withdraw(reason))
        steps.on_step("withdrawn")
        # never before the event is durable
        book.submit(lambda: free_data(book, self._name, told, shown=shown))
        return ended

    def _withdraw(self, reason: str) -> Ended:
        if self._table.withdrawn is None:
            self._check_present()
        return changing.withdraw(self._desk, reason)

    def reserve(self, analyst: str, amount: Loss) -> Journal:
        """Set credits aside; the journal that comes back spends from them and is closed by whoever
        is done: what is left then goes back. Of delta there may be less than wanted."""
        check_text("analyst's name", analyst)
        check_loss("reservation", amount)
        if self.reservation is not None:
            raise Refused("this is spent from a reservation already; reserve outside it")

        def work() -> int:
            self._desk.check_open()
            allowed = self._table.budgets.admit_reservation(analyst, amount)
            return self._book.add(
                events.reserved(self._name, analyst, allowed, self._shared.replica)
            ).seq

        book = self._book
        seq = self._submit(work)
        if not book.enter():
            raise closed()  # the next opening ends the reservation
        return Journal(book, self._name, seq, self._generation)

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

    def stands(self, seq: int) -> bool:
        """True if this entry's answer is what its question gets today."""
        return self._book.read(lambda: self._table.stands(seq))

    @property
    def head(self) -> int:
        """The number of the ledger's last event."""
        return self._book.read(lambda: self._shared.history.mark.seq)

    def stored(self, digest: str) -> tuple[str, ...]:
        """The noises at which this question is already paid for."""
        return self._book.read(
            lambda: tuple(record.noise for record in self._table.catalogue.of(digest))
        )

    def keyed(self, analyst: str, key: str | None) -> tuple[str, str] | None:
        """The digest and noise that a known idempotency key stands for."""

        def work() -> tuple[str, str] | None:
            found = None if key is None else self._table.catalogue.keyed(analyst, key)
            return found.record.name if found is not None else None

        return self._book.read(work)

    def planned(
        self, analyst: str, key: str | None
    ) -> tuple[tuple[str, str, tuple[int, ...]], ...] | None:
        """The batch that a known idempotency key stands for: digest, noise, and the earlier answers
        to which a draw is added."""

        def work() -> tuple[tuple[str, str, tuple[int, ...]], ...] | None:
            found = None if key is None else self._table.catalogue.planned(analyst, key)
            return found.questions if found is not None else None

        return self._book.read(work)

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

    def entries(self, analyst: str | None = None, after: int = 0) -> Iterator[Entry]:
        """Every charge and repeat after that number, oldest first, with its answer and receipt."""
        while page := self._book.read(partial(self._page, analyst, after)):
            for seq, entry, proof in page:
                after = seq
                if entry is not None:
                    yield self._signed(entry, proof)

    def _page(
        self, analyst: str | None, after: int
    ) -> list[tuple[int, Entry | None, Proof | None]]:
        rows = self._book.page(after, PAGE)
        return [(row.seq, *self._desk.recorded(row, analyst)) for row in rows]

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


def _forget(book: Book, desk: Desk, reservation: int | None) -> None:
    """As `close`, for a journal that nobody holds any more: it takes no lock and waits for none."""
    if reservation is not None:
        book.later(lambda: desk.give_back(reservation))
        book.left_open.append((desk.name, reservation))  # should that fail
    book.leave(wait=False)
