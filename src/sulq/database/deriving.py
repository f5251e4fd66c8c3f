"""The steps of an answer that follows from stored ones: no row is read, no account pays."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from sulq.accounting.losses import Loss
from sulq.accounting.pricing import Price, laws_of
from sulq.database.recall import Found
from sulq.database.wishing import bar_left
from sulq.derivation.combined import read_apart, read_derived
from sulq.derivation.estimates import Derivation
from sulq.errors import BudgetSpent
from sulq.ledger.budgets import OWNER
from sulq.ledger.entries import Entry, Priced
from sulq.oracle import Answer
from sulq.schema.binding import BoundQuery

if TYPE_CHECKING:
    from sulq.database.database import Database


class Asker(NamedTuple):
    """Who asks, under which key, and how exactly."""

    analyst: str
    key: str | None
    within: float | None
    confidence: float


def recalled(database: Database, bound: BoundQuery, wanted: Price, asker: Asker) -> Found:
    """How stored answers meet a question; a known key stands for the answer it got."""
    ledger, recall, analyst, key = database.ledger, database._recall, asker.analyst, asker.key
    keyed, planned = ledger.keyed(analyst, key), ledger.planned(analyst, key)
    if keyed is None and planned is None:
        return recall.find(bound, wanted, analyst, asker.confidence)
    if planned is not None and len(planned) == 1 and planned[0][0] == bound.digest:
        _, noise, sources = planned[0]
        if sources:  # the draw adds to earlier answers, to the same ones each time
            return Found(replace(wanted, laws=laws_of(noise)), Loss.zero(), sources=sources)
    cost = recall.stored(bound, wanted, analyst, key) or wanted
    same = keyed is not None and keyed[0] == bound.digest
    derived = recall.named(bound, keyed[1]) if keyed is not None and same else None
    return Found(cost, cost.share, derived)


def charged(database: Database, bound: BoundQuery, found: Found, asker: Asker) -> Entry:
    """Pay; a repeat comes answered. A draw that is added to earlier answers is a plan of one,
    which says to which: a retry goes on from there, and nothing is paid twice."""
    ledger, cost = database.ledger, found.cost
    named = (bound.text, bound.digest, cost.noise, database._charges(cost), cost.share)
    try:
        if found.sources:
            whole = [Priced(*named, found.sources)]
            return ledger.charge_all(whole, analyst=asker.analyst, key=asker.key)[0]
        return ledger.charge(*named, analyst=asker.analyst, key=asker.key)
    except BudgetSpent as error:
        bought = None if asker.within is None else bar_left(database, bound, asker)
        if bought is None:
            raise
        raise BudgetSpent(f"{error}. What is left would buy {bought}") from None


def derived_answer(
    database: Database,
    bound: BoundQuery,
    derived: Derivation,
    asker: Asker,
    share: Loss,
    paid: Entry | None = None,
) -> Answer:
    """Stored under its own name, made of its sources'; `paid` is the draw that was added."""
    ledger, recall = database.ledger, database._recall
    entry = ledger.charge(
        question=bound.text,
        digest=bound.digest,
        noise=derived.noise,
        charges={},
        share=share,
        analyst=asker.analyst,
        key=asker.key,
    )
    if not entry.answered:
        sizes = recall.public_sums(derived.public)  # G.2.1
        entry = ledger.settle(entry, derived.values(sizes))  # stored, write-once
    assert entry.values is not None  # noqa: S101
    laws, most = derived.laws(), database._most
    reading = (
        read_apart(derived, entry.values, laws, most)
        if laws
        else read_derived(derived, entry.values, most)
    )
    return Answer.of(
        bound,
        entry.values,
        laws or derived.worst(),
        most=most,
        credits=paid_by(paid or entry),
        receipt=recall.receipt(bound, derived, entry),
        reading=reading,
        sources=derived.sources,
        **database._exactly.said(),
    ).judged(bound, asker.within, asker.confidence)


def topped_up(
    database: Database, bound: BoundQuery, sources: tuple[int, ...], drawn: Entry, asker: Asker
) -> Answer:
    """Earlier answers and a new draw together: law, bar and price of one answer. M.7"""
    assert drawn.receipt is not None  # noqa: S101
    derived = database._recall.after(bound, sources, int(drawn.receipt.body["origin"]))
    asker = asker._replace(key=None)  # it stands for the draw and what that was added to
    return derived_answer(database, bound, derived, asker, Loss.zero(), drawn)


def paid_by(entry: Entry) -> Fraction:
    """What a call charged: to the share of an analyst, for the owner to the worst account.

    Accounts that pay no credits have people who do, each their own (V.2): then the most of them.
    """
    worst = max((loss.credits_fraction for loss in entry.charged.values()), default=Fraction(0))
    people_pay = bool(entry.charged) and not worst
    return entry.share_charged.credits_fraction if entry.analyst != OWNER or people_pay else worst
