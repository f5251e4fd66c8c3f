"""Reading a ledger without holding it: also while another process has it open."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from sulq.errors import Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.outside import Taken
from sulq.kernel.ledger.accounts import NOTHING, minus_clamped
from sulq.kernel.ledger.file import Files, is_known, opened, path_home
from sulq.kernel.ledger.header import Amended, Ended, Grown, Outside, PopulationAccount, taken_by
from sulq.kernel.ledger.signing import ChainHead, check_signature, key_at, latest_head, read_receipt
from sulq.kernel.ledger.state import ChainState, TableState, unverified
from sulq.kernel.ledger.state_dir import is_shared, location_name, read_place, read_private
from sulq.kernel.ledger.stores.postgres import NoLedger, PostgresStore
from sulq.kernel.ledger.stores.sqlite import LOG, SqliteStore, unfolded
from sulq.kernel.ledger.stores.store import Row, Store

INDIVIDUAL = "individual"
"""The fact of a table whose people have balances of their own, which are secret. V.2"""


@dataclass(frozen=True, slots=True)
class AccountLine:
    name: str
    spent: Loss
    left: Loss  # of the cap; part of it may be granted


@dataclass(frozen=True, slots=True)
class AnalystLine:
    name: str
    granted: Loss | None  # None: the owner
    spent: Loss
    revoked: Ended | None = None  # None: may ask


@dataclass(frozen=True, slots=True)
class ReservationLine:
    """Set aside and not given back; void with the next opening if its process is gone."""

    number: int  # of its event
    analyst: str
    amount: Loss
    left: Loss
    at: int  # seconds since 1970, for display only


@dataclass(frozen=True, slots=True)
class VersionLine:
    """One version of the data, in credits. What an outside release took is not in `spent`."""

    version: str  # its random id
    spent: Fraction  # by the worst account, on this version alone
    budget: Fraction | None  # what it may spend; None: whatever the lifetime cap leaves
    newcomers: Fraction  # the most that somebody has lost who came with this version
    outside: Fraction  # of that, what was booked since as released elsewhere


@dataclass(frozen=True, slots=True)
class PopulationLine:
    """The account of the people of several tables, in its own credits."""

    name: str
    promise: str  # as JSON
    cap: Loss
    spent: Loss
    tables: tuple[str, ...]
    outside: tuple[Outside, ...]
    persons: bool = False  # with secret balances: then all of the cap counts as spent. V.2

    @property
    def left(self) -> Fraction:
        return minus_clamped(self.cap, self.spent).credits_fraction

    @property
    def exceeded(self) -> Loss:
        """By how much releases made elsewhere went beyond the cap."""
        return minus_clamped(self.spent, self.cap)


@dataclass(frozen=True, slots=True)
class Statement:
    """One table at one moment of the chain."""

    ledger: str
    table: str
    version: str
    facts: Mapping[str, str]
    cap: Loss
    accounts: tuple[AccountLine, ...]  # worst first
    analysts: tuple[AnalystLine, ...]
    granted_left: Loss  # granted and not yet spent, kept for its analysts
    reservations: tuple[ReservationLine, ...]  # those that are open, oldest first
    entries: int
    answered: int
    released: int  # questions, under assumptions
    divisor: int  # by which every cap was divided with the first release
    terms: str  # of what was released; empty if nothing was
    maybe_released: bool  # events were lost, and a release may have been among them
    menu: tuple[tuple[str, ...], ...]  # sets of questions, of which one may be released
    recoveries: int
    seq: int  # of the chain's last event
    head: str  # its hash
    public_key: str
    closed: Ended | None = None  # for good: when and why
    amended: tuple[Amended, ...] = ()  # what was promised before, oldest first
    outside: tuple[Outside, ...] = ()  # released elsewhere and booked here, oldest first
    grown: tuple[Grown, ...] = ()  # the versions before this one, oldest first
    population: PopulationLine | None = None  # whose account pays too
    burnt: bool = False  # events were lost, so all counts as spent; they may have promised more
    versions: tuple[VersionLine, ...] = ()  # of the data, oldest first; the last is the present one
    withdrawn: Ended | None = None  # unused, by its owner: when and why
    unused: bool = False  # nobody can have been told anything of the rows
    shown: bool = False  # somebody beside the owner had a share once
    data_version: str | None = None  # what the present data is registered under

    @property
    def reserved(self) -> Loss:
        """What open reservations have left, all of them together."""
        return sum((line.left for line in self.reservations), NOTHING)

    @property
    def individual(self) -> bool:
        """True if people have balances of their own: then nobody but the owner knows them."""
        return INDIVIDUAL in self.facts

    @property
    def spent(self) -> Loss:
        """The worst account: what the table has lost; of secret balances, all of the cap. V.2"""
        spent = self.accounts[0].spent
        return Loss(self.cap.credits, spent.delta) if self.individual else spent

    @property
    def left(self) -> Fraction:
        """Credits that the worst account has left; where people pay, accounts have all of them."""
        nothing = self.closed is not None
        return (
            Fraction(0)
            if nothing
            else minus_clamped(self.cap, self.accounts[0].spent).credits_fraction
        )

    @property
    def exceeded(self) -> Loss:
        """By how much releases made elsewhere went beyond the cap."""
        return minus_clamped(self.spent, self.cap)

    @property
    def taken(self) -> Taken:
        """What releases made elsewhere took out of the promise."""
        return taken_by(self.outside)


def statement(history: ChainState, name: str) -> Statement:
    table = history.tables[name]
    budgets, header = table.budgets, table.header
    lines = [
        AccountLine(account, spent, minus_clamped(budgets.cap, spent))
        for account, spent in (
            (account, budgets.spent(number)) for number, account in enumerate(header.accounts)
        )
    ]
    lines.sort(key=lambda line: (-line.spent.credits, -line.spent.delta))
    return Statement(
        history.ledger,
        name,
        header.version,
        header.facts,
        budgets.cap,
        tuple(lines),
        tuple(
            AnalystLine(analyst, own.granted, own.spent, own.revoked)
            for analyst, own in budgets.shares.items()
        ),
        budgets.granted_left,
        tuple(
            ReservationLine(found.seq, found.analyst, found.amount, found.left, found.at)
            for found in budgets.reservations.values()
        ),
        table.charged,
        table.answered,
        len(table.released),
        budgets.divisor,
        table.declaration.terms if table.declaration and table.released else "",
        table.recovered and "assumptions" in header.facts,
        table.declaration.menu if table.declaration else (),
        len(history.gaps),
        history.mark.seq,
        history.mark.hash.hex(),
        history.public,
        table.closed,
        tuple(table.amended),
        tuple(table.outside),
        tuple(table.grown),
        _population(table.pool),
        table.burnt,
        _versions(table),
        table.withdrawn,
        table.unused,
        table.shown,
        table.data_version,
    )


def _versions(table: TableState) -> tuple[VersionLine, ...]:
    """A person's loss adds over the versions they are in: ledger.md, section 16."""
    budgets = table.budgets
    spent = [
        *(before.spent for before in table.grown),
        budgets.credits.most - budgets.version.start,
    ]
    outside = [*(before.outside for before in table.grown), budgets.version.outside]
    ids = [*(before.version for before in table.grown), table.header.version]
    allowed = [*(before.budget for before in table.grown), budgets.version.allowed]
    return tuple(
        VersionLine(
            ids[at],
            Fraction(spent[at], 2**64),
            None if (budget := allowed[at]) is None else Fraction(budget, 2**64),
            Fraction(sum(spent[at:]) + sum(outside[at:]), 2**64),
            Fraction(sum(outside[at:]), 2**64),
        )
        for at in range(len(ids))
    )


def _population(pool: PopulationAccount | None) -> PopulationLine | None:
    if pool is None:
        return None
    spent = Loss(pool.cap.credits, pool.spent.delta) if pool.persons else pool.spent
    named = (pool.name, pool.promise, pool.cap, spent)
    return PopulationLine(*named, tuple(pool.tables), tuple(pool.outside), pool.persons)


# What a table has spent, for owner and auditor. Only prices and public facts.


TRIES = 10
PAUSE = 0.05  # seconds between two tries


@dataclass(frozen=True, slots=True)
class Inspection:
    """A ledger whose chain verified, as it was at one moment."""

    ledger: str
    public_keys: tuple[str, ...]  # the last one signs today
    statements: Mapping[str, Statement]
    hashes: Mapping[int, bytes]
    lost: tuple[range, ...]  # numbers counted as spent at a recovery
    anchor: ChainHead | None  # None: lost, or it does not verify

    @property
    def anchored(self) -> bool:
        """True if the chain has come at least as far as the anchor, by the same way."""
        return self.anchor is not None and (
            self.anchor.seq == 0 or self.hashes.get(self.anchor.seq) == self.anchor.hash
        )

    def confirm(self, receipt_json: str) -> None:
        """Return if the receipt is signed and its answer is in this chain, else `Refused`."""
        receipt = read_receipt(receipt_json)
        check_signature(receipt, self.public_keys)
        seq = receipt.body["answer"]
        if any(seq in gap for gap in self.lost):
            raise Refused(f"event {seq} of this receipt was lost; a recovery counted it as spent")
        if self.hashes.get(seq, b"").hex() != receipt.body["answer_link"]:
            raise Refused(
                "this ledger does not have what the receipt proves: it was rolled back or changed; "
                "`sulq recover` counts it as spent"
            )


def inspect(path: str | Path) -> Inspection:
    """Verify chain and anchor of a ledger, held or not; `Refused` if it does not verify."""
    book = opened(path)
    if book is not None:  # closing a second handle on the file would drop this process's lock on it
        return book.read(lambda: _inspected(book.rows(), None))
    if not is_shared(path) and not Path(location_name(path)).is_file():
        raise Refused(f"there is no ledger at {path}")
    for _ in range(TRIES - 1):
        with suppress(Refused):  # the holder may have written while we copied
            found = _inspect_copy(path)
            if found.anchored or found.anchor is None:
                return found
        time.sleep(PAUSE)
    return _inspect_copy(path)


def is_there(path: str | Path) -> bool:
    """True if a ledger was made at this place."""
    if not is_shared(path):
        return Path(path).exists()
    try:
        with _looked_at(path) as store:
            return next(iter(store.rows()), None) is not None
    except NoLedger:
        return False


def is_lost(path: str | Path) -> bool:
    """True if the state directory knows of a ledger at this place, and there is none."""
    return is_known(path) and not is_there(path)


def is_published(path: str | Path, table: str) -> bool:
    """True if a ledger at this place has the table; others may be all it has. Verifies nothing."""
    book = opened(path)
    if book is not None:
        return book.read(lambda: _has(book.rows(), table))
    if not is_there(path):
        return False
    with suppress(Refused), _looked_at(path) as store:  # as in `inspect`
        return _has(store.rows(), table)
    return table in inspect(path).statements


def _has(rows: Iterable[Row], table: str) -> bool:
    kinds = ('"kind":"table"', '"kind":"withdraw"')
    bodies = (json.loads(row.body) for row in rows if any(kind in row.body for kind in kinds))
    found = [body["kind"] for body in bodies if body.get("table") == table]
    said = [kind for kind in found if kind in ("table", "withdraw")]
    return bool(said) and said[-1] == "table"


def _inspect_copy(path: str | Path) -> Inspection:
    """The anchor is read before the ledger: one in use only runs ahead of it."""
    known = (read_private(path_home(location_name(path)) / "ledger") or b"").decode(
        "ascii", "replace"
    )
    anchor = read_private(Files(known).anchor) if known else None
    with _looked_at(path) as store:
        return _inspected(store.rows(), anchor)


def verified_rows(path: str | Path) -> list[Row]:
    """Every event of a ledger, held or not, once they verify."""
    inspect(path)
    book = opened(path)
    if book is not None:
        return book.read(lambda: list(book.rows()))
    for _ in range(TRIES - 1):
        with suppress(Refused):  # as in `inspect`
            return _verified_copy(path)
        time.sleep(PAUSE)
    return _verified_copy(path)


def _verified_copy(path: str | Path) -> list[Row]:
    with _looked_at(path) as store:
        rows = list(store.rows())
    _inspected(rows, None)
    return rows


def copy_ledger(path: str | Path, copy: Path) -> None:
    """Copy the ledger as it is now to a file of its own."""
    if is_shared(path):
        store = SqliteStore(copy, create=True)
        for row in verified_rows(path):
            store.append([row])
        store.close(tidy=True)
        return
    with unfolded(location_name(path)):
        for end in ("", LOG):
            source = Path(f"{location_name(path)}{end}")
            if source.exists():
                shutil.copyfile(source, f"{copy}{end}")


@contextmanager
def _looked_at(path: str | Path) -> Iterator[Store]:
    """Yield a store with the ledger as it is now."""
    if not is_shared(path):
        with _copied(Path(location_name(path))) as copy:
            yield copy
        return
    store = PostgresStore(read_place(str(path)), joins=False)
    try:
        yield store
    finally:
        store.close(tidy=False)


@contextmanager
def _copied(path: Path) -> Iterator[SqliteStore]:
    """Yield a store over a private copy of the file."""
    with tempfile.TemporaryDirectory(prefix="sulq-") as private:  # mode 0700
        copy = Path(private) / "ledger"
        try:
            copy_ledger(path, copy)
        except FileNotFoundError:
            raise Refused(f"the ledger {path} changed while it was read; try again") from None
        except OSError:
            raise Refused(f"the ledger {path} cannot be read; check its rights") from None
        store = SqliteStore(copy)
        try:
            yield store
        finally:
            store.close(tidy=False)


def _inspected(rows: Iterable[Row], anchor: bytes | None) -> Inspection:
    history, hashes = ChainState(), {}

    def noted() -> Iterator[Row]:
        for row in rows:
            hashes[row.seq] = row.hash
            yield row

    history.take(noted())
    if not history.ledger:
        raise Refused("the ledger is empty")
    files = Files(history.ledger)
    own = key_at(files.key)  # who has it trusts no other
    if not history.sealed_by([own.public if own else history.public]):
        raise unverified(history.mark.seq)
    if anchor is None:
        anchor = read_private(files.anchor)
    return Inspection(
        history.ledger,
        tuple(history.publics),
        {name: statement(history, name) for name in history.tables},
        hashes,
        tuple(history.gaps),
        latest_head(anchor or b"", history.ledger, [history.public]),
    )
