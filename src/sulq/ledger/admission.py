"""What is decided on the writer's thread: charged anew, paid for before, or refused.

First everything is decided, which changes nothing and may refuse; then the events are added. So a
batch is charged as a whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sulq.accounting.losses import Loss
from sulq.errors import Refused, SulqError
from sulq.ledger import answers, events
from sulq.ledger.book import Book
from sulq.ledger.budgets import OWNER, Budgets, ended
from sulq.ledger.catalogue import Catalogue, Keyed, Record
from sulq.ledger.changes import gone, no_more, unfinished
from sulq.ledger.charges import by_name, from_json, loss_from_json
from sulq.ledger.entries import Ask, Entry
from sulq.ledger.receipts import Proof
from sulq.ledger.reservations import NOTHING
from sulq.ledger.store import Row
from sulq.ledger.table import ATTEMPTS, Table

CLOSED = (
    "events of this ledger were lost, perhaps a release under assumptions among them: exact release"
    " is closed for this table; ask with noise"
)


@dataclass(frozen=True, slots=True)
class Decision:
    """How a question is met: by a record, or with None by a new charge."""

    ask: Ask
    record: Record | None
    due: Loss  # of the analyst's share
    event: events.Body | None  # None: nothing changes


@dataclass(frozen=True, slots=True)
class Desk:
    """One table in an open book; every method is for work on the writer's thread."""

    book: Book
    name: str

    @property
    def table(self) -> Table:
        """As the book has it now: after a doubt a shared one is read anew."""
        return self.book.history.tables[self.name]

    @property
    def catalogue(self) -> Catalogue:
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

    def admit(self, ask: Ask) -> tuple[Entry, Proof | None]:
        """One question."""
        decision = self._decide(ask, self.table.budgets)
        if decision.event is not None:
            self.book.add(decision.event)
        return self._handed(decision)

    def admit_all(
        self, asks: Sequence[Ask], analyst: str, key: str | None
    ) -> list[tuple[Entry, Proof | None]]:
        """All of them or none. What one costs is counted before the next is admitted."""
        attempt = self._plan(asks, analyst, key) if key is not None else None
        trial = self.table.budgets.copy()
        found: dict[tuple[str, str], Decision] = {}
        for ask in asks:
            known = found.get(ask.name)
            if known is None:
                decision = found[ask.name] = self._decide(ask, trial)
                parts = ask.parts if decision.record is None else ()
                trial.spend(ask.analyst, parts, decision.due, ask.reservation)
            elif known.ask.question != ask.question:
                raise _same_digest()
        self._add([attempt, *(decision.event for decision in found.values())])
        return [self._handed(found[ask.name]) for ask in asks]

    def _add(self, bodies: Iterable[events.Body | None]) -> None:
        """Nothing is left to refuse: what fails here is no refusal, and nothing is written."""
        try:
            for body in bodies:
                if body is not None:
                    self.book.add(body)
        except SulqError as error:
            raise RuntimeError("a batch that was admitted could not be added") from error

    def _plan(self, asks: Sequence[Ask], analyst: str, key: str) -> events.Body | None:
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
        return events.planned(self.name, analyst, key, asks)

    def _decide(self, ask: Ask, budgets: Budgets) -> Decision:
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
            budgets.admit(analyst, ask.parts, ask.share, ask.reservation)
            if ask.release:
                self._admit_release(ask)
            return Decision(ask, None, ask.share, events.charged(self.name, ask))
        if record.lost:
            raise Refused("this release was lost when the ledger was recovered; it is closed")
        first = self.catalogue.got(record, analyst) is None
        due = ask.share if first and analyst != OWNER else NOTHING
        self._check_question(record, ask)
        budgets.admit(analyst, (), due, ask.reservation)
        event = events.repeated(self.name, record.seq, ask, due)
        return Decision(ask, record, due, event if first or ask.key is not None else None)

    def _kept(self, ask: Ask) -> Decision:
        """Of a closed table: what this analyst has got before; no event is left to write."""
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

    def _again(self, keyed: Keyed, ask: Ask) -> Decision:
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
        return Decision(ask, record, NOTHING, events.retried(self.name, record.seq, ask))

    def _admit_release(self, ask: Ask) -> None:
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

    def _check_question(self, record: Record, ask: Ask) -> None:
        if json.loads(self.book.row(record.seq).body)["question"] != ask.question:
            raise _same_digest()

    def _handed(self, decision: Decision) -> tuple[Entry, Proof | None]:
        """What the caller gets, once the events of the decision are added."""
        ask, record = decision.ask, decision.record
        charged: Mapping[str, Loss] = {}
        if record is None:
            record = self.catalogue.named(ask.name)
            charged = by_name(ask.parts, self.table.header.accounts)
        assert record is not None  # noqa: S101
        seq = self.catalogue.got(record, ask.analyst)
        assert seq is not None  # noqa: S101
        return self.entry(seq, ask, charged, decision.due), self.proof(seq, record)

    def entry(self, seq: int, ask: Ask, charged: Mapping[str, Loss], share: Loss) -> Entry:
        ledger = self.book.history.ledger
        named = (ledger, seq, self.name, ask.analyst, ask.key, ask.question, ask.digest, ask.noise)
        return Entry(*named, dict(charged), share)

    def recorded(self, row: Row, analyst: str | None) -> tuple[Entry | None, Proof | None]:
        """The charge or repeat in a row, if it is this table's and analyst's (None: anybody's)."""
        body = json.loads(row.body)
        mine = body["kind"] in ("charge", "release", "repeat") and body["table"] == self.name
        if not mine or analyst not in (None, body["analyst"]):
            return None, None
        record = self.table.at(row.seq)
        asked = body if row.seq == record.seq else json.loads(self.book.row(record.seq).body)
        share, parts = loss_from_json(body["share"]), from_json(body.get("charges", ()))
        ask = Ask(asked["question"], *record.name, parts, share, body["analyst"], body["key"])
        charged = by_name(parts, self.table.header.accounts)
        return self.entry(row.seq, ask, charged, share), self.proof(row.seq, record)

    def store(self, entry: Entry, noisy: str) -> Proof | None:
        """Store an answer unless there is one: compare-and-set. G.3.4"""
        record = self.open_record(entry)
        if record.answer is None:
            kept = answers.fingerprint(noisy)
            row = self.book.add(events.answered(self.name, record.seq, kept), noisy)
            record = record._replace(answer=row.seq)
        return self.proof(entry.seq, record)

    def open_record(self, entry: Entry) -> Record:
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
            self.book.add(events.returned(self.name, reservation, void=void))


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
