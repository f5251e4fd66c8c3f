"""The ledger of one table: charge, then settle; append-only, chained, anchored. G.3.

Proof that released <= charged <= cap at every crash: docs/proofs/ledger.md.
"""

from __future__ import annotations

import json
import secrets
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from sulq.accounting.losses import Loss
from sulq.errors import Refused
from sulq.ledger import answers, steps
from sulq.ledger.book import MEMORY, Book, open_book, release_book
from sulq.ledger.budgets import NOTHING, OWNER
from sulq.ledger.charges import (
    Part,
    by_name,
    from_json,
    group,
    loss_from_json,
    loss_to_json,
    to_json,
)
from sulq.ledger.header import TableHeader
from sulq.ledger.receipts import Receipt, receipt_body, sign_receipt
from sulq.ledger.register import check_data, register_data
from sulq.ledger.statement import Statement, statement
from sulq.ledger.store import Row
from sulq.ledger.table import ATTEMPTS, Keyed, Record

PAGE = 256


@dataclass(frozen=True, slots=True)
class Entry:
    """A question that is paid for, as one analyst has it; answered or still to be computed."""

    seq: int
    table: str
    analyst: str
    key: str | None
    question: str
    digest: str
    noise: str
    charged: Mapping[str, Loss]  # what this call charged; empty for a repeat
    share_charged: Loss
    answered: bool = False
    values: tuple[int, ...] | None = None
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """An analyst's share after a grant."""

    seq: int
    analyst: str
    granted: Loss
    spent: Loss


@dataclass(frozen=True, slots=True)
class _Ask:
    question: str
    digest: str
    noise: str
    parts: tuple[Part, ...]
    share: Loss
    analyst: str
    key: str | None


class Journal:
    """One table's view of an open ledger. Thread-safe. Made by `Journal.open`."""

    def __init__(self, book: Book, name: str) -> None:
        self._book, self._name = book, name
        self._table = book.history.tables[name]
        self._release = weakref.finalize(self, release_book, book)

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
        create: bool = True,
    ) -> Journal:
        """Publish the table, or reopen it if ledger, anchor, header and data are unchanged."""
        wanted = TableHeader(name, secrets.token_hex(16), dict(facts), tuple(accounts), cap)
        if str(path) == MEMORY or not Path(path).exists():
            check_data(fingerprint, None, name)
        book = open_book(path, wait, create)
        try:
            header = book.submit(lambda: _published(book, wanted, create))
            if differences := header.differences(wanted):
                raise Refused(
                    f"table {name!r} was published with other {', '.join(differences)}; "
                    "open it as it was published, or record a change with `sulq amend`"
                )
            steps.on_step("published")
            if str(path) != MEMORY:
                register_data(fingerprint, book.history.ledger, name)
            steps.on_step("registered")
            return cls(book, name)
        except BaseException:
            release_book(book)
            raise

    @property
    def header(self) -> TableHeader:
        return self._table.header

    @property
    def public_key(self) -> str:
        return self._book.history.public

    # -- spending ---------------------------------------------------------------------------------

    def charge(
        self,
        *,
        question: str,
        digest: str,
        noise: str,
        charges: Mapping[str, Loss],
        share: Loss,
        analyst: str,
        key: str | None = None,
    ) -> Entry:
        """Pay for a question, all accounts or none; durable when it returns. Never refunded."""
        ask = _Ask(
            question, digest, noise, group(charges, self._table.numbers), share, analyst, key
        )
        return self._sign(*self._book.submit(lambda: self._admit(ask, charges)))

    def _admit(self, ask: _Ask, charges: Mapping[str, Loss]) -> tuple[Entry, dict[str, Any] | None]:
        table, analyst, key = self._table, ask.analyst, ask.key
        keyed = table.keys.get((analyst, key)) if key is not None else None
        if keyed is not None:
            return self._again(keyed, ask)
        record = table.records.get((ask.digest, ask.noise))
        if record is None:
            table.budgets.admit(analyst, ask.parts, ask.share)
            row = self._book.add(
                {
                    "kind": "charge",
                    "table": self._name,
                    "analyst": analyst,
                    "key": key,
                    "question": ask.question,
                    "digest": ask.digest,
                    "noise": ask.noise,
                    "charges": to_json(ask.parts),
                    "share": loss_to_json(ask.share),
                }
            )
            return Entry(
                row.seq,
                self._name,
                analyst,
                key,
                ask.question,
                ask.digest,
                ask.noise,
                dict(charges),
                ask.share,
            ), None
        first = analyst not in record.got
        due = ask.share if first and analyst != OWNER else NOTHING
        self._same_question(record, ask)
        table.budgets.admit(analyst, (), due)
        if first or key is not None:
            self._book.add(
                {
                    "kind": "repeat",
                    "table": self._name,
                    "entry": record.seq,
                    "analyst": analyst,
                    "key": key,
                    "share": loss_to_json(due),
                }
            )
        return self._handed(record, ask, due)

    def _again(self, keyed: Keyed, ask: _Ask) -> tuple[Entry, dict[str, Any] | None]:
        """A retry under a known key: the stored answer, or another attempt at the same charge."""
        record = keyed.record
        if record.name != (ask.digest, ask.noise):
            raise Refused(f"the key {ask.key!r} was used for another question; use a new key")
        self._same_question(record, ask)
        if record.lost:
            raise Refused(
                f"the answer under key {ask.key!r} was lost when the ledger was recovered"
                "; ask with a new key, at full price"
            )
        if record.answer is None:
            if keyed.attempts >= ATTEMPTS:
                raise Refused(
                    f"{ATTEMPTS} attempts under key {ask.key!r} have not finished; ask "
                    "with another key: a charged question costs nothing again"
                )
            self._book.add(
                {
                    "kind": "retry",
                    "table": self._name,
                    "entry": record.seq,
                    "analyst": ask.analyst,
                    "key": ask.key,
                }
            )
        return self._handed(record, ask, NOTHING)

    def _same_question(self, record: Record, ask: _Ask) -> None:
        if json.loads(self._book.row(record.seq).body)["question"] != ask.question:
            raise Refused("two questions have the same digest; nothing was charged")

    def _handed(self, record: Record, ask: _Ask, due: Loss) -> tuple[Entry, dict[str, Any] | None]:
        seq = record.got[ask.analyst]
        entry = Entry(
            seq, self._name, ask.analyst, ask.key, ask.question, ask.digest, ask.noise, {}, due
        )
        return self._released(entry, record)

    def settle(self, entry: Entry, values: Sequence[int]) -> Entry:
        """Store the noisy integers, once; whoever comes second gets the first one's values."""
        noisy = answers.to_text(values)
        return self._sign(*self._book.submit(lambda: self._store(entry, noisy)))

    def _store(self, entry: Entry, noisy: str) -> tuple[Entry, dict[str, Any] | None]:
        record = self._table.by_seq.get(entry.seq)
        if (
            record is None
            or entry.table != self._name
            or (record.name != (entry.digest, entry.noise) or record.lost)
        ):
            raise Refused(f"entry {entry.seq} is not open in this ledger; charge it first")
        if record.answer is None:
            self._book.add(
                {
                    "kind": "answer",
                    "table": self._name,
                    "entry": record.seq,
                    "values": answers.fingerprint(noisy),
                },
                noisy,
            )
        return self._released(entry, record)

    def _released(self, entry: Entry, record: Record) -> tuple[Entry, dict[str, Any] | None]:
        """The entry with its stored answer, if there is one, and what its receipt says."""
        if record.answer is None:
            return entry, None
        answer = self._book.row(record.answer)
        entry = replace(entry, answered=True, values=answers.from_text(answer.noisy or ""))
        mine, origin = self._book.row(entry.seq), self._book.row(record.seq)
        return entry, receipt_body(self._book.history.ledger, self.header, mine, origin, answer)

    def _sign(self, entry: Entry, body: dict[str, Any] | None) -> Entry:
        if body is None:
            return entry
        return replace(entry, receipt=sign_receipt(body, self._book.key))

    def grant(self, analyst: str, credits: Loss) -> Grant:
        """Add to an analyst's share, out of what is neither spent nor granted."""

        def work() -> Grant:
            self._table.budgets.admit_grant(analyst, credits)
            row = self._book.add(
                {
                    "kind": "grant",
                    "table": self._name,
                    "analyst": analyst,
                    "credits": loss_to_json(credits),
                }
            )
            own = self._table.budgets.shares[analyst]
            return Grant(row.seq, analyst, own.granted or NOTHING, own.spent)

        return self._book.submit(work)

    # -- reading ----------------------------------------------------------------------------------

    def stored(self, digest: str) -> tuple[str, ...]:
        """The noises at which this question is already paid for."""
        return self._book.read(lambda: tuple(self._table.noises.get(digest, ())))

    def paid(self, analyst: str, digest: str, noise: str) -> bool:
        """True if asking again would cost this analyst nothing at all."""

        def work() -> bool:
            record = self._table.records.get((digest, noise))
            return record is not None and (analyst == OWNER or analyst in record.got)

        return self._book.read(work)

    def remaining(self, analyst: str, accounts: Iterable[str] | None = None) -> Loss:
        """The most that one question on `accounts` (None: all) may cost this analyst."""
        numbers = (
            None
            if accounts is None
            else [
                number for name in accounts if (number := self._table.numbers.get(name)) is not None
            ]
        )
        return self._book.read(lambda: self._table.budgets.remaining(analyst, numbers))

    def statement(self) -> Statement:
        return self._book.read(lambda: statement(self._book.history, self._name))

    def receipt(self, seq: int) -> Receipt:
        """The receipt of an answered entry; the same bytes every time."""

        def work() -> dict[str, Any]:
            record = self._table.by_seq.get(seq)
            if record is None or record.answer is None:
                raise Refused(f"entry {seq} has no answer in this ledger, so no receipt")
            return receipt_body(
                self._book.history.ledger,
                self.header,
                self._book.row(seq),
                self._book.row(record.seq),
                self._book.row(record.answer),
            )

        return sign_receipt(self._book.read(work), self._book.key)

    def entries(self, analyst: str | None = None, after: int = 0) -> Iterator[Entry]:
        """Every charge and repeat after that number, oldest first, with its answer and receipt."""
        while page := self._book.read(partial(self._page, analyst, after)):
            for seq, entry, body in page:
                after = seq
                if entry is not None:
                    yield self._sign(entry, body)

    def _page(
        self, analyst: str | None, after: int
    ) -> list[tuple[int, Entry | None, dict[str, Any] | None]]:
        return [(row.seq, *self._recorded(row, analyst)) for row in self._book.page(after, PAGE)]

    def _recorded(
        self, row: Row, analyst: str | None
    ) -> tuple[Entry | None, dict[str, Any] | None]:
        body = json.loads(row.body)
        if (
            body["kind"] not in ("charge", "repeat")
            or body["table"] != self._name
            or (analyst not in (None, body["analyst"]))
        ):
            return None, None
        record = self._table.by_seq[row.seq]
        question = body if row.seq == record.seq else json.loads(self._book.row(record.seq).body)
        charged = by_name(from_json(body.get("charges", ())), self.header.accounts)
        return self._released(
            Entry(
                row.seq,
                self._name,
                body["analyst"],
                body["key"],
                question["question"],
                *record.name,
                charged,
                loss_from_json(body["share"]),
            ),
            record,
        )

    def close(self) -> None:
        """Let go; the last view of a file closes it."""
        self._release()


def _published(book: Book, wanted: TableHeader, create: bool) -> TableHeader:
    table = book.history.tables.get(wanted.name)
    if table is not None:
        return table.header
    if not create:
        raise Refused(
            f"the ledger has no table {wanted.name!r}; it has {sorted(book.history.tables)}"
        )
    book.add(wanted.to_body())
    return wanted
