"""The owner's changes, decided on the writer's thread: revoke, amend, book what was released
elsewhere, close for good; of a table that was never used, repair and withdraw.

Each is one event. Proof that none undoes spending: docs/proofs/ledger.md, sections 10 to 14, 17.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sulq.accounting.losses import Loss
from sulq.accounting.outside import NONE, Taken
from sulq.errors import Refused
from sulq.ledger import events
from sulq.ledger.admission import CLOSED, Desk
from sulq.ledger.budgets import OWNER
from sulq.ledger.changes import Amendment, Ended, Outside
from sulq.ledger.entries import Grant
from sulq.ledger.header import TableHeader
from sulq.ledger.publishing import check_population
from sulq.ledger.reservations import NOTHING
from sulq.ledger.statement import INDIVIDUAL

Price = Callable[[Taken], Outside]
LOST = (
    "events of this ledger were lost, perhaps an amendment among them: the promise and the columns"
    " stay as they are; publish the data anew if you must, with its own ledger"
)


def declare(desk: Desk, menu: Sequence[Sequence[str]], divisor: int, terms: str) -> None:
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
    desk.book.add(events.declared(desk.name, menu, divisor, terms))


def grant(desk: Desk, analyst: str, credits: Loss) -> Grant:
    """Out of what is neither spent nor kept."""
    desk.check_open()
    desk.table.budgets.admit_grant(analyst, credits)
    row = desk.book.add(events.granted(desk.name, analyst, credits))
    own = desk.table.budgets.shares[analyst]
    return Grant(row.seq, analyst, own.granted or NOTHING, own.spent)


def revoke(desk: Desk, analyst: str, reason: str) -> Grant:
    """What is unspent goes back, what was spent stays; a second time changes nothing."""
    desk.check_open()
    own = desk.table.budgets.shares.get(analyst)
    if analyst == OWNER:
        raise Refused("the owner has no share to revoke; `sulq close` turns the table off")
    if own is None:
        raise Refused(f"{analyst!r} has no grant on this table, so there is nothing to revoke")
    seq = desk.book.history.mark.seq
    if own.revoked is None:
        seq = desk.book.add(events.revoked(desk.name, analyst, reason)).seq
    return Grant(seq, analyst, own.granted or NOTHING, own.spent)


def close(desk: Desk, reason: str) -> Ended:
    """For good. A second time changes nothing: the first reason stands."""
    if desk.table.closed is None:
        desk.check_open()
        desk.book.add(events.closed(desk.name, reason))
    assert desk.table.closed is not None  # noqa: S101
    return desk.table.closed


def amend(desk: Desk, wanted: Amendment) -> int:
    """New facts and cap, if what is spent and kept fits; the table's new generation."""
    desk.check_open()
    table = desk.table
    if INDIVIDUAL in table.header.facts:
        raise Refused("a table with individual accounting stays as it was published")
    if table.recovered:
        raise Refused(LOST)
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
    desk.book.add(wanted.to_body(desk.name))
    return table.generation


def repair(desk: Desk, wanted: TableHeader, reason: str) -> int:
    """Another header for a table that was never used; the table's new generation."""
    desk.check_unused()
    if wanted.name != desk.name or wanted.version != desk.table.header.version:
        raise ValueError("a repair is of the same table with the same rows")
    check_population(desk.book, wanted, besides=desk.name)
    desk.book.add(wanted.to_body() | {"kind": "repair", "reason": reason})
    return desk.table.generation


def withdraw(desk: Desk, reason: str) -> Ended:
    """Take back a table that was never used. A second time changes nothing."""
    if (done := desk.table.withdrawn) is not None:
        return done
    desk.check_unused()
    desk.book.add(events.withdrawn(desk.name, reason))
    assert desk.table.withdrawn is not None  # noqa: S101
    return desk.table.withdrawn


def outside(desk: Desk, price: Price, joint: Price | None = None) -> Outside:
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
    body, pool = wanted.to_body(desk.name), desk.table.pool
    if pool is not None:
        if joint is None:
            raise Refused(f"what this costs population {pool.name!r} must be said too")
        body |= {"joint": joint(pool.taken).to_body(desk.name)}
    desk.book.add(body)
    return desk.table.outside[-1]
