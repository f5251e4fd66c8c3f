"""What a table has spent, for owner and auditor. Only prices and public facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sulq.accounting.losses import Loss
from sulq.accounting.outside import Taken
from sulq.ledger.changes import Amended, Ended, Grown, Outside, taken_by
from sulq.ledger.history import History
from sulq.ledger.population import Pool
from sulq.ledger.reservations import NOTHING, less
from sulq.ledger.table import Table

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
        return less(self.cap, self.spent).credits_fraction

    @property
    def exceeded(self) -> Loss:
        """By how much releases made elsewhere went beyond the cap."""
        return less(self.spent, self.cap)


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
        return Fraction(0) if nothing else less(self.cap, self.accounts[0].spent).credits_fraction

    @property
    def exceeded(self) -> Loss:
        """By how much releases made elsewhere went beyond the cap."""
        return less(self.spent, self.cap)

    @property
    def taken(self) -> Taken:
        """What releases made elsewhere took out of the promise."""
        return taken_by(self.outside)


def statement(history: History, name: str) -> Statement:
    table = history.tables[name]
    budgets, header = table.budgets, table.header
    lines = [
        AccountLine(account, spent, less(budgets.cap, spent))
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


def _versions(table: Table) -> tuple[VersionLine, ...]:
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


def _population(pool: Pool | None) -> PopulationLine | None:
    if pool is None:
        return None
    spent = Loss(pool.cap.credits, pool.spent.delta) if pool.persons else pool.spent
    named = (pool.name, pool.promise, pool.cap, spent)
    return PopulationLine(*named, tuple(pool.tables), tuple(pool.outside), pool.persons)
