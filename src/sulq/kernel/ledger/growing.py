"""New rows for a table: another version of its data, on the account it has.

What is known of the new data is written down before the event that names it; an event without its
data cannot be, and data without its event is nothing. Proof: docs/proofs/ledger.md, section 16.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sulq.errors import Refused
from sulq.kernel.ledger import failpoints, transactions
from sulq.kernel.ledger.accounts import TEXT, check_text
from sulq.kernel.ledger.events import VersionEvent
from sulq.kernel.ledger.file import MEMORY, LedgerFile, open_ledger_file
from sulq.kernel.ledger.header import Amendment, TableHeader, check_reason
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.ledger.register import is_registered, register_data
from sulq.kernel.ledger.shared import open_shared
from sulq.kernel.ledger.state import TableState
from sulq.kernel.ledger.state_dir import is_shared
from sulq.kernel.ledger.transactions import TableTransaction, known_table, note_population
from sulq.kernel.ledger.writer import closed


@dataclass(frozen=True, slots=True)
class Repair:
    """Another header for an unused table, beside its new rows; `check` as in `Journal.repair`."""

    wanted: TableHeader
    reason: str
    check: Callable[[bool], None]


def attach(path: str | Path, name: str, *, wait: float = 5.0) -> Ledger:
    """A published table, whatever its data is now: to give it a new version or to end access, by
    the ledger alone."""
    if str(path) == MEMORY:
        raise Refused("a ledger in memory has no table that could have grown; use db.grow(source)")
    book = (open_shared if is_shared(path) else open_ledger_file)(path, wait, False)
    try:
        generation = book.submit(lambda: known_table(book, name).generation)
        return Ledger(book, name, None, generation)
    except BaseException:
        book.leave(wait=True)
        raise


def reads(journal: Ledger, fingerprint: str | None) -> bool:
    """True if this is the data of the table's present version."""
    book, name, table = journal._book, journal._name, journal._table
    if table.stamp is not None:
        return table.stamp == book.stamp(name, fingerprint)
    return is_registered(fingerprint, book.history.ledger, name, table.data_version)


def grow(
    journal: Ledger,
    facts: Mapping[str, str],
    fingerprint: str | None,
    reason: str = "",
    budget: int | None = None,
    amendment: Amendment | None = None,
    repair: Repair | None = None,
) -> Ledger:
    """A new version with a new random id; the journal that comes back goes by it, this one ends.

    With an `amendment` to those facts, or a `repair` of an unused table, both events are one
    transaction: both are durable or none.

    What was spent stays spent, on the same accounts; stored answers stay with the version they
    were given on. `budget`: the credits, in steps, that this version may spend of what is left;
    None: as many as the one before.
    """
    check_reason(reason)
    for fact in facts.values():
        check_text("fact", fact, TEXT)
    book, name, version = journal._book, journal._name, secrets.token_hex(16)
    stamp = book.stamp(name, fingerprint)
    book.read(lambda: _check(journal._desk))  # what is refused leaves no claim on the data
    if book.file is not None:
        register_data(fingerprint, book.history.ledger, name, version)
    failpoints.on_step("version noted")
    event = VersionEvent(name, version, facts, stamp, reason, budget)
    generation = journal._submit(lambda: _grown(book, journal._desk, event, amendment, repair))
    if repair is not None:
        note_population(book, repair.wanted)
    if not book.enter():
        raise closed()
    return Ledger(book, name, None, generation)


def allowed(table: TableState) -> int | None:
    """What the present version may spend, in steps of credits; None: all that is left."""
    return table.budgets.version.allowed


def _grown(
    book: LedgerFile,
    desk: TableTransaction,
    event: VersionEvent,
    amendment: Amendment | None = None,
    repair: Repair | None = None,
) -> int:
    _check(desk)  # what refuses does so before anything is added
    if amendment is not None:
        transactions.amend(desk, amendment)
    if repair is not None:
        repair.check(desk.table.shown)
        transactions.repair(desk, repair.wanted, repair.reason)
    if event.budget is None:
        event = replace(event, budget=allowed(desk.table))
    book.add(event)
    return desk.table.generation


def _check(desk: TableTransaction) -> None:
    desk.check_open()
    if desk.table.declaration is not None:
        raise Refused(
            "questions were declared for exact release, certified for the rows as they are; this"
            " table cannot grow any more"
        )
