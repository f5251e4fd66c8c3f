"""Several questions as one: priced together first, charged together or not at all.

Proof: docs/proofs/flow.md, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from sulq.accounting.losses import Loss
from sulq.accounting.pricing import Price, laws_of, stored_price
from sulq.database.deriving import Asker, derived_answer, topped_up
from sulq.database.holding import hold
from sulq.database.reading import readers
from sulq.database.recall import Found
from sulq.derivation.estimates import sources_of
from sulq.engines.engine import check_read, check_source
from sulq.errors import Refused
from sulq.ledger.budgets import OWNER
from sulq.ledger.entries import Entry, Priced
from sulq.noise.samplers import added, drawn
from sulq.oracle import Answer, check_confidence, credits_text
from sulq.query.spelling import question_text, told_apart
from sulq.readings import Forecast
from sulq.schema.binding import BoundQuery

if TYPE_CHECKING:
    from sulq.database.database import Database


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One question of a plan: what it costs, and how exact it will be."""

    bound: BoundQuery
    wanted: Price  # of an answer as exact as this, had nothing been asked before
    due: Price  # less, where earlier answers are worth something
    repeat: bool  # it follows from what this analyst has, or from an earlier line
    forecast: Forecast

    @property
    def credits(self) -> Fraction:
        return Fraction(0) if self.repeat else self.due.share.credits_fraction

    @property
    def question(self) -> str:
        """In SQL spelling."""
        return question_text(self.bound.text)

    def half_width(self, confidence: float = 0.95) -> Any:
        """How far off the answer may be at this confidence; None where it is unknown."""
        check_confidence(confidence)
        return self.forecast.half_width(confidence)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Questions with their prices. Making one is free and reads no row; `ask` pays for all."""

    database: Database
    analyst: str
    lines: tuple[Line, ...]
    within: tuple[float | None, ...]
    confidence: float

    @property
    def credits(self) -> Fraction:
        """What the whole plan costs: the shares add up; of strata it is the one that pays most."""
        if self.analyst != OWNER or self.database.ledger.reservation is not None:
            return sum((line.credits for line in self.lines), Fraction(0))
        paid = self._charges()
        return max((loss.credits_fraction for loss in paid.values()), default=Fraction(0))

    @property
    def left_after(self) -> Fraction:
        """What will be left for one more such question; below 0: the plan will be refused,
        unless its strata are unevenly spent."""
        touched = list(self._charges()) or None
        left = self.database.ledger.remaining(self.analyst, touched).credits_fraction
        return left - self.credits

    @property
    def affordable(self) -> bool:
        return self.left_after >= 0

    def _charges(self) -> dict[str, Loss]:
        """What the accounts pay, repeats left out."""
        paid: dict[str, Loss] = {}
        for line in self.lines:
            if not line.repeat:
                for account, loss in self.database._charges(line.due).items():
                    paid[account] = paid.get(account, Loss.zero()) + loss
        return paid

    def rows(self) -> list[dict[str, Any]]:
        """The plan as plain records, one per question."""
        return [
            {
                "question": line.question,
                "credits": line.credits,
                "repeat": line.repeat,
                "half_width": line.half_width(self.confidence),
                "note": "; ".join(filter(None, (*line.bound.notes, line.forecast.note))),
            }
            for line in self.lines
        ]

    def __str__(self) -> str:
        asked = told_apart([line.question for line in self.lines])
        said = [
            f"{short}: {_price_text(line, self.confidence)}"
            for short, line in zip(asked, self.lines, strict=True)
        ]
        left = credits_text(self.left_after) if self.affordable else "not affordable"
        return "\n".join([*said, f"together {credits_text(self.credits)}; left after: {left}"])

    def __repr__(self) -> str:
        return f"<Plan of {len(self.lines)} questions, {credits_text(self.credits)}>"

    # --- the flow, as in Database.ask -----------------------------------------------------------

    def ask(self, key: str | None = None) -> list[Answer]:
        """Ask all of it: one transaction charges every question, or none. Answers in order."""
        db = self.database
        met = self._met(key)  # noisy answers only
        check_source(db.engine)
        fresh = {
            line.bound.digest: line.bound
            for line in self.lines
            if met[line.bound.digest].derived is None
        }
        reads = readers(db, fresh.values())  # may refuse, free
        entries = db.ledger.charge_all(  # durable before any row is touched; repeats come answered
            [self._priced(line.bound, met[line.bound.digest]) for line in self.lines],
            analyst=self.analyst,
            key=key,
        )
        paid = {entry.digest: entry for entry in entries}
        noisy: list[tuple[Entry, list[int]]] = []
        for together, read in reads:
            if any(not paid[bound.digest].answered for bound in together):
                noise = {  # each its own draw, before a row is read
                    bound.digest: drawn(met[bound.digest].cost.coordinates(bound.cells))
                    for bound in together
                    if not paid[bound.digest].answered
                }
                sums = read(paid)  # the only line that reads rows
                check_read(db.engine)
                noisy += [
                    (paid[bound.digest], added(bound.lifted(mine), noise[bound.digest]))
                    for bound, mine in zip(together, sums, strict=True)
                    if bound.digest in noise
                ]
        if noisy:
            hold()  # the moment of the next line is public
            paid |= {entry.digest: entry for entry in db.ledger.settle_all(noisy)}  # write-once
        answers = []
        for place, line in enumerate(self.lines):
            entry = paid[line.bound.digest]
            answers.append(self._answer(place, met[line.bound.digest], entry))
            # asked twice in one plan, paid once
            paid[line.bound.digest] = replace(entry, charged={}, share_charged=Loss.zero())
        return answers

    def _answer(self, place: int, met: Found, entry: Entry) -> Answer:
        """User units, after the store; with what earlier answers say, where they take part."""
        db, bound, within = self.database, self.lines[place].bound, self.within[place]
        asker = Asker(self.analyst, None, within, self.confidence)
        if met.derived is not None:
            return derived_answer(db, bound, met.derived, asker, Loss.zero(), entry)
        if met.sources:
            return topped_up(db, bound, met.sources, entry, asker)
        return db._answered(bound, entry, met.cost, within, self.confidence)

    def _met(self, key: str | None) -> dict[str, Found]:
        """By digest: what stored answers say, and what is to be drawn. A known key decides."""
        recall, known = self.database._recall, self.database.ledger.planned(self.analyst, key)
        if known is None:
            return {
                line.bound.digest: recall.find(
                    line.bound, line.wanted, self.analyst, self.confidence
                )
                for line in self.lines
            }
        if [digest for digest, _, _ in known] != [line.bound.digest for line in self.lines]:
            raise _another(key)
        found = {
            digest: self._again(line, noise, sources)
            for line, (digest, noise, sources) in zip(self.lines, known, strict=True)
        }
        if any(one is None for one in found.values()):
            raise _another(key)
        return {digest: one for digest, one in found.items() if one is not None}

    def _again(self, line: Line, noise: str, sources: tuple[int, ...]) -> Found | None:
        """What was charged under a known key, and nothing is due; None if more is wanted now."""
        db, nothing = self.database, Loss.zero()
        if sources:  # the draw adds to earlier answers, to the same ones each time
            return Found(replace(line.wanted, laws=laws_of(noise)), nothing, sources=sources)
        if sources_of(noise) is not None:
            derived = db._recall.named(line.bound, noise)
            return None if derived is None else Found(line.wanted, nothing, derived)
        cost = stored_price(line.bound, db.calibration, line.wanted, noise)
        return None if cost is None else Found(cost, nothing)

    def _priced(self, bound: BoundQuery, met: Found) -> Priced:
        if met.derived is not None:  # no account pays
            return Priced(bound.text, bound.digest, met.derived.noise, {}, met.share)
        charges = self.database._charges(met.cost)
        named = (bound.text, bound.digest, met.cost.noise)
        return Priced(*named, charges, met.cost.share, met.sources or ())


def _another(key: str | None) -> Refused:
    return Refused(f"the key {key!r} was used for another plan; use a new key")


def _price_text(line: Line, confidence: float) -> str:
    half = line.half_width(confidence)
    bar = "" if half is None else f"+-{float(np.max(half)):,.6g}"
    cost = "free, asked before" if line.repeat else credits_text(line.credits)
    return f"{cost} {bar}".rstrip()
