"""The balances that questions meet: of one table's people, or of those of all tables of a
population. They follow from the ledger's charges, in their order. docs/proofs/individual.md

A population's people are known by a keyed hash of their person's id, whose key is made anew in each
process and kept nowhere.
"""

from __future__ import annotations

import hashlib
import json
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from sulq.accounting.individual import Balances, Whole
from sulq.derivation.estimates import sources_of
from sulq.errors import EngineFailed, Refused, SulqError
from sulq.ledger.admission import Desk
from sulq.ledger.entries import Entry
from sulq.ledger.journal import Journal
from sulq.ledger.state import (
    named,
    passing_key,
    private_path,
    read_private,
    write_private,
)

if TYPE_CHECKING:
    from sulq.database.individual import Individual

T = TypeVar("T")
KEPT = 100
"""Questions after which the balances are copied to the state directory."""
WAITING = 64
"""Sums that are held for charges whose answer is still to come."""
PAGE = 500
LOST = (
    "events of this ledger were lost, and with them what people have spent: a table with individual"
    " accounting stays closed then"
)


@dataclass(slots=True)
class Past:
    """The balances after every charge up to `seq`, and a hash of those charges."""

    balances: Balances
    seq: int = 0
    asked: str = ""

    def note(self, entry: Entry) -> None:
        text = json.dumps([self.asked, entry.seq, entry.digest, entry.noise])
        self.asked, self.seq = hashlib.sha256(text.encode()).hexdigest(), entry.seq


class Filters:
    """Who takes part in what, over the tables whose people pay from the same balances."""

    def __init__(self) -> None:
        self.past: Past | None = None
        self.key = passing_key()
        self._lock = threading.Lock()
        self._members: weakref.WeakValueDictionary[str, Individual] = weakref.WeakValueDictionary()
        self._people = np.empty(0, "S16")
        self._place: Path | None = None
        self._waiting: dict[int, list[int]] = {}
        self._unkept = 0

    # --- who ------------------------------------------------------------------------------------

    def enter(self, member: Individual, ledger: Journal) -> None:
        """A table's people, with the balances they have by the other tables."""
        name = ledger.header.name
        if self._members.get(name) is member:  # a quote waits for nobody who reads rows
            return
        with self._lock:
            self._members[name] = member
            if not member.shares_people:
                return
            everybody = [self._people, *(m.people(self.key) for m in self._members.values())]
            people = np.unique(np.concatenate(everybody))
            for each in self._members.values():
                each.numbers = np.searchsorted(people, each.people(self.key))
            if self.past is not None:
                spent = np.zeros(len(people), np.int64)
                spent[np.searchsorted(people, self._people)] = self.past.balances.spent
                self.past.balances.spent = spent
            self._people = people

    def check(self, ledger: Journal) -> None:
        """`Refused` unless every charge that counts can be followed. Reads no row."""

        def missing() -> list[str]:
            tables = ledger._book.history.tables
            found = [(name, tables[name]) for name in _names(ledger)]
            if any(table.recovered for _, table in found):
                raise Refused(LOST)
            return [name for name, table in found if table.charged and name not in self._members]

        if absent := ledger._book.read(missing):
            raise Refused(
                f"the same people have paid for questions on {', '.join(absent)}, whose rows are"
                " not open in this process: open it too, or serve all tables of the population"
                " together (`sulq serve`)"
            )

    # --- in order -------------------------------------------------------------------------------

    def sums(self, ledger: Journal, entry: Entry) -> list[int]:
        """The sums of a charged entry over those whose balance allowed it."""
        origin = ledger._table.at(entry.seq).seq  # a repeat stands for the first charge
        with self._lock:
            past = self._known(ledger)
            found = self._waiting.pop(origin, None)
            if found is None and origin > past.seq:
                found = self._follow(ledger, past, origin)
            if found is None:  # others came later meanwhile: from the start, on balances of its own
                found = self._follow(ledger, self._start(), origin)
            if found is None:
                raise Refused(f"entry {entry.seq} is not a charge of this table")
            return found

    def warm(self, ledger: Journal) -> None:
        """Take in every charge there is, so that no question has to wait for it."""

        def work() -> None:
            with self._lock:
                if self.past is None:
                    self._follow(ledger, self._known(ledger), ledger.head)

        guarded(work)

    def spent(self, ledger: Journal) -> tuple[Whole, int]:
        """What everybody has spent, and of how much. Secret."""
        with self._lock:
            past = self._known(ledger)
            self._follow(ledger, past, ledger.head)
            return past.balances.spent.copy(), past.balances.cap

    def _follow(self, ledger: Journal, past: Past, until: int) -> list[int] | None:
        """Take in every charge up to `until`; its sums, if it is one."""
        last = None
        self.check(ledger)
        for entry, answered in _charges(ledger, past.seq, until):
            last = self._members[entry.table].step(past, entry)
            past.note(entry)
            self._unkept += past is self.past
            if past is self.past and entry.seq != until and not answered:
                while len(self._waiting) >= WAITING:
                    self._waiting.pop(next(iter(self._waiting)))
                self._waiting[entry.seq] = last
        if past is self.past and self._unkept >= KEPT:
            self._keep()
        return last if past.seq == until else None

    def _start(self) -> Past:
        member = next(iter(self._members.values()))
        size = len(self._people) if member.shares_people else member.persons
        return Past(Balances(np.zeros(size, np.int64), member.cap))

    # --- the copy -------------------------------------------------------------------------------

    def _known(self, ledger: Journal) -> Past:
        """The balances in memory; at first those of the state directory, if they still are."""
        if self.past is None:
            file = ledger._book.file
            if file is not None and ledger.header.member is None:
                table = f"balances-{named(ledger.header.name)}"
                self._place = private_path("ledgers", ledger._book.history.ledger, table)
            self.past = self._kept(ledger) or self._start()
        return self.past

    def _keep(self) -> None:
        """Copy the balances; a copy that cannot be written is only missed at the next opening."""
        if self._place is None or self.past is None or not self._unkept:
            return
        spent = self.past.balances.spent.tobytes()
        facts = [self.past.seq, self.past.asked, *self._pinned(), _hash(spent)]
        with suppress(Refused):
            write_private(self._place, json.dumps(facts).encode() + b"\n" + spent, replace=True)
        self._unkept = 0

    def _kept(self, ledger: Journal) -> Past | None:
        """The copy, if it is whole, of these rows in this order, and of these very charges."""
        content = None if self._place is None else read_private(self._place)
        if content is None:
            return None
        head, _, spent = content.partition(b"\n")
        try:
            seq, asked, *pinned = json.loads(head)
        except (ValueError, TypeError):
            return None
        if pinned != [*self._pinned(), _hash(spent)]:
            return None
        found = self._start()
        for entry, _ in _charges(ledger, 0, seq):
            found.note(entry)
        if (found.seq, found.asked) != (seq, asked):
            return None
        found.balances.spent = np.frombuffer(spent, np.int64).copy()
        return found

    def _pinned(self) -> list[str | int]:
        return next(iter(self._members.values())).pinned()

    def leave(self, member: Individual) -> None:
        """Of a table that is closed: keep what saves time at the next opening."""
        with self._lock, suppress(EngineFailed):
            self._keep()
            for name in [name for name, found in self._members.items() if found is member]:
                del self._members[name]


_shared: weakref.WeakValueDictionary[tuple[str, str], Filters] = weakref.WeakValueDictionary()
_guard = threading.Lock()


def filters_of(ledger: Journal) -> Filters:
    """Those of the table's population, which its tables in this process share; else new ones."""
    member = ledger.header.member
    if member is None:
        return Filters()
    with _guard:
        name = (ledger._book.history.ledger, member.name)
        found = _shared.get(name)
        if found is None:
            found = _shared[name] = Filters()
        return found


def _names(ledger: Journal) -> Sequence[str]:
    """The tables whose charges count: on the book's own time."""
    pool = ledger._table.pool
    return [ledger.header.name] if pool is None else list(pool.tables)


def _charges(ledger: Journal, after: int, until: int) -> Iterator[tuple[Entry, bool]]:
    """The charges that read rows, in the order in which they became durable; if answered."""
    book = ledger._book
    desks = {name: Desk(book, name) for name in book.read(lambda: _names(ledger))}

    def page() -> list[tuple[int, Entry | None, bool]]:
        found: list[tuple[int, Entry | None, bool]] = []
        for row in book.page(after, PAGE):
            if row.seq > until:
                break
            desk = desks.get(json.loads(row.body).get("table", ""))
            entry = None if desk is None else desk.recorded(row, None)[0]
            if desk is None or entry is None:
                found.append((row.seq, None, False))
                continue
            record = desk.table.at(row.seq)
            if record.release or record.lost or record.old:
                raise Refused("this ledger has charges that individual accounting cannot follow")
            reads = record.seq == row.seq and sources_of(entry.noise) is None
            found.append((row.seq, entry if reads else None, record.answer is not None))
        return found

    while rows := book.read(page):
        for seq, entry, answered in rows:
            after = seq
            if entry is not None:
                yield entry, answered


def guarded(work: Callable[[], T]) -> T:
    """No words but our own: those of others may quote rows."""
    found: list[T] = []
    try:
        found.append(work())
    except SulqError:
        raise
    except Exception:  # noqa: BLE001 - as in the engine
        found = []
    if not found:
        raise EngineFailed()
    return found[0]


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
