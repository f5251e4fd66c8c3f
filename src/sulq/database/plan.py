"""Several questions as one: priced together first, charged together or not at all.

Proof: docs/proofs/flow.md, section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sulq.answers.error_bars import Forecast
from sulq.answers.oracle import Answer, check_confidence
from sulq.answers.statistics import forecast
from sulq.database.reuse import ReusePlan
from sulq.database.table import Asker, Credits, Table
from sulq.errors import InvalidQuery, Refused
from sulq.formatting import credits_left, credits_text, decimal_text
from sulq.kernel.accounting.loss import CREDIT, Loss
from sulq.kernel.accounting.pricing import (
    Price,
    laws_of,
    positive,
    sources_of,
    stored_price,
    unit_cost,
)
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.ledger.events import Charge, PricedRequest
from sulq.kernel.query.sql_text import question_text, told_apart
from sulq.kernel.release.release import NoisySums, release
from sulq.kernel.schema.bind import BoundQuery


@dataclass(frozen=True, slots=True, eq=False)
class PlanLine:
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

    database: Table
    analyst: str
    lines: tuple[PlanLine, ...]
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
                for account, loss in self.database.charges(line.due).items():
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
        left = credits_left(self.left_after) if self.affordable else "not affordable"
        return "\n".join([*said, f"together {credits_text(self.credits)}; left after: {left}"])

    def __repr__(self) -> str:
        return f"<Plan of {len(self.lines)} questions, {credits_text(self.credits)}>"

    # --- asking ---------------------------------------------------------------------------------

    def ask(self, key: str | None = None) -> list[Answer]:
        """Ask all of it: one transaction charges every question, or none. Answers in order."""
        db = self.database
        met = self._met(key)  # noisy answers only
        fresh = {
            bound.digest: NoisySums(bound, found.cost, db.priced(bound, found))
            for bound, found in ((line.bound, met[line.bound.digest]) for line in self.lines)
            if found.derived is None and not found.told
        }

        def charge(_: Sequence[PricedRequest]) -> list[Charge]:
            """Every line as it stands, with what comes twice and what is derived."""
            lines = [db.priced(line.bound, met[line.bound.digest]) for line in self.lines]
            return db.ledger.charge_all(lines, analyst=self.analyst, key=key)

        paid = release(list(fresh.values()), db.reader, charge, db.ledger.settle_all)
        answers = []
        for place, line in enumerate(self.lines):
            entry = paid[line.bound.digest]
            answers.append(self._answer(place, met[line.bound.digest], entry))
            # asked twice in one plan, paid once
            paid[line.bound.digest] = replace(entry, charged={}, share_charged=Loss.zero())
        return answers

    def _answer(self, place: int, met: ReusePlan, entry: Charge) -> Answer:
        """User units, after the store; with what earlier answers say, where they take part."""
        db, bound, within = self.database, self.lines[place].bound, self.within[place]
        asker = Asker(self.analyst, None, within, self.confidence)
        if met.derived is not None:
            return db.derived_answer(bound, met.derived, asker, Loss.zero(), entry)
        if met.sources:
            return db.topped_up(bound, met.sources, entry, asker)
        return db.answered(bound, entry, met.cost, within, self.confidence)

    def _met(self, key: str | None) -> dict[str, ReusePlan]:
        """By digest: what stored answers say, and what is to be drawn. A known key decides."""
        recall, known = self.database.reuse, self.database.ledger.planned(self.analyst, key)
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

    def _again(self, line: PlanLine, noise: str, sources: tuple[int, ...]) -> ReusePlan | None:
        """What was charged under a known key, and nothing is due; None if more is wanted now."""
        db, nothing = self.database, Loss.zero()
        if sources:  # the draw adds to earlier answers, to the same ones each time
            return ReusePlan(replace(line.wanted, laws=laws_of(noise)), nothing, sources=sources)
        if sources_of(noise) is not None:
            derived = db.reuse.named(line.bound, noise)
            return None if derived is None else ReusePlan(line.wanted, nothing, derived)
        cost = stored_price(line.bound, db.calibration, line.wanted, noise)
        return None if cost is None else ReusePlan(cost, nothing)


def _another(key: str | None) -> Refused:
    return Refused(f"the key {key!r} was used for another plan; use a new key")


def _price_text(line: PlanLine, confidence: float) -> str:
    half = line.half_width(confidence)
    bar = "" if half is None else f"+-{float(np.max(half)):,.6g}"
    cost = "free, asked before" if line.repeat else credits_text(line.credits)
    return f"{cost} {bar}".rstrip()


# Making a plan: every question priced, and credits shared out, before anything is charged.


MOST_QUESTIONS = 1_000
SIGNIFICANT = 32
"""Bits of a question's part of the credits: short prices."""


def plan(
    database: Table,
    queries: Sequence[object],
    *,
    credits: Credits | None = None,
    within: float | Sequence[float | None] | None = None,
    weights: Sequence[Credits] | None = None,
    confidence: float = 0.95,
    rows: int | None = None,
    analyst: str = OWNER,
) -> Plan:
    """Price everything; may refuse, free. No row is read."""
    if not isinstance(queries, list | tuple) or not 1 <= len(queries) <= MOST_QUESTIONS:
        raise InvalidQuery(f"a plan is a list of 1 to {MOST_QUESTIONS} questions")
    if credits is not None and within is not None:
        raise InvalidQuery("give within or credits, not both")
    if weights is not None and credits is None:
        raise InvalidQuery("weights share out credits: give credits too")
    check_confidence(confidence)
    count = len(queries)
    targets = list(within) if isinstance(within, Sequence) else [within] * count
    for given, name in ((targets, "within"), (weights, "weights")):
        if given is not None and (isinstance(given, str) or len(given) != count):
            raise InvalidQuery(f"{name}: want one number for each of the {count} questions")
    bounds = [database.bind(query) for query in queries]

    def price_of(place: int, part: Fraction | None) -> Price:
        return database.price(bounds[place], targets[place], confidence, part, rows)

    if credits is None:
        prices = [price_of(place, None) for place in range(count)]
    else:
        whole = positive(credits, "credits")
        prices = _shared(database, bounds, whole, weights, price_of, analyst, confidence)
    lines = _lines(database, bounds, prices, rows, analyst, confidence)
    return Plan(database, analyst, lines, tuple(targets), confidence)


def _shared(
    database: Table,
    bounds: Sequence[BoundQuery],
    credits: Fraction,
    weights: Sequence[Credits] | None,
    price_of: Callable[[int, Fraction | None], Price],
    analyst: str,
    confidence: float,
) -> list[Price]:
    """Credits by unit price, so that all have the same noise; what own repeats do not need goes to
    the others. By weight each has its part, and what repeats do not need is not spent."""
    quoted = database.reuse.quoted
    units = [unit_cost(bound, database.calibration) for bound in bounds]
    parts: dict[str, Fraction] = {}  # a question that comes twice counts once, at the larger weight
    for place, (bound, unit) in enumerate(zip(bounds, units, strict=True)):
        weight = unit if weights is None else positive(weights[place], "a weight")
        if unit:  # others are public: exact and free
            parts[bound.digest] = max(weight, parts.get(bound.digest, weight))
    first = {bound.digest: place for place, bound in reversed(list(enumerate(bounds)))}
    prices = {
        digest: price_of(first[digest], part) for digest, part in _divided(credits, parts).items()
    }
    due = {
        digest: weight
        for digest, weight in parts.items()
        if not quoted(bounds[first[digest]], prices[digest], analyst, confidence).repeat
    }
    if weights is None and len(due) < len(parts):
        for digest, part in _divided(credits, due).items():
            prices[digest] = price_of(first[digest], part)
    return [prices.get(bound.digest) or price_of(i, None) for i, bound in enumerate(bounds)]


def _divided(credits: Fraction, weights: dict[str, Fraction]) -> dict[str, Fraction]:
    """By weight, rounded down to steps of the ledger: the sum is never above `credits`."""
    whole, parts = sum(weights.values(), Fraction(0)), {}
    for digest, weight in weights.items():
        steps = credits * weight / whole * CREDIT // 1
        if steps == 0:
            raise InvalidQuery(f"{decimal_text(credits)} credits are too few to share out")
        spare = max(0, steps.bit_length() - SIGNIFICANT)
        parts[digest] = Fraction(steps >> spare << spare, CREDIT)
    return parts


def _lines(
    database: Table,
    bounds: Sequence[BoundQuery],
    prices: Sequence[Price],
    rows: int | None,
    analyst: str,
    confidence: float,
) -> tuple[PlanLine, ...]:
    """A question that comes twice is paid once, at the price of the more exact one."""
    best: dict[str, Price] = {}
    for bound, price in zip(bounds, prices, strict=True):
        before = best.get(bound.digest)
        if before is None or price.worst.credits > before.worst.credits:
            best[bound.digest] = price
    lines, seen = [], set()
    for bound in bounds:
        wanted = best[bound.digest]
        known = database.reuse.quoted(bound, wanted, analyst, confidence)
        bar = forecast(bound, known.laws, rows, database.size)
        lines.append(PlanLine(bound, wanted, known.due, known.repeat or bound.digest in seen, bar))
        seen.add(bound.digest)
    return tuple(lines)
