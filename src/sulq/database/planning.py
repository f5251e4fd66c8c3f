"""Several questions as one: priced together first, charged together or not at all.

Proof: docs/proofs/flow.md, section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from sulq.accounting.losses import CREDIT, Loss
from sulq.accounting.pricing import Price, positive, stored_price, unit_cost
from sulq.database.passes import merged, parted, passes
from sulq.engines.engine import check_read, check_source
from sulq.errors import InvalidQuery, Refused
from sulq.ledger.budgets import OWNER
from sulq.ledger.entries import Entry, Priced
from sulq.noise.samplers import perturb
from sulq.oracle import Answer, check_confidence, credits_text, decimal_text
from sulq.query.spelling import question_text
from sulq.readings import Forecast, forecast
from sulq.schema.binding import BoundQuery

if TYPE_CHECKING:
    from sulq.database.database import Credits, Database

MOST_QUESTIONS = 1_000
SIGNIFICANT = 32
"""Bits of a question's part of the credits: short prices."""
WIDEST = 60
"""A question is cut to so many letters where a plan is printed."""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One question of a plan: what it costs, and how exact it will be."""

    bound: BoundQuery
    price: Price
    credits: Fraction  # 0 for a repeat, of an earlier answer or of an earlier line
    repeat: bool
    forecast: Forecast

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
                for account, loss in self.database._charges(line.price).items():
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
        said = [_line_text(line, self.confidence) for line in self.lines]
        left = credits_text(self.left_after) if self.affordable else "not affordable"
        return "\n".join([*said, f"together {credits_text(self.credits)}; left after: {left}"])

    def __repr__(self) -> str:
        return f"<Plan of {len(self.lines)} questions, {credits_text(self.credits)}>"

    # --- the flow, as in Database.ask -----------------------------------------------------------

    def ask(self, key: str | None = None) -> list[Answer]:
        """Ask all of it: one transaction charges every question, or none. Answers in order."""
        db, ledger = self.database, self.database.ledger
        costs = self._costs(key)  # noisy answers only
        check_source(db.engine)
        reads = [  # may refuse, free
            (together, db.engine.prepare(merged(together)))
            for together in passes({line.bound.digest: line.bound for line in self.lines}.values())
        ]
        entries = ledger.charge_all(  # durable before any row is touched; repeats come answered
            [self._priced(line, cost) for line, cost in zip(self.lines, costs, strict=True)],
            analyst=self.analyst,
            key=key,
        )
        asked = list(zip(self.lines, costs, entries, strict=True))
        paid = {line.bound.digest: (cost, entry) for line, cost, entry in asked}
        stored: dict[str, Entry] = {}
        for together, read in reads:
            if any(not paid[bound.digest][1].answered for bound in together):
                sums = parted(read(), together)  # the only line that reads rows
                check_read(db.engine)
                stored |= self._settled(together, sums, paid)
        answers, seen = [], set()
        for place, (line, cost, entry) in enumerate(asked):
            found = stored.get(line.bound.digest, entry)
            if line.bound.digest in seen:  # asked twice in one plan, paid once
                found = replace(found, charged={}, share_charged=Loss.zero())
            seen.add(line.bound.digest)
            within = self.within[place]
            answers.append(db._answered(line.bound, found, cost, within, self.confidence))
        return answers

    def _settled(
        self,
        together: Sequence[BoundQuery],
        sums: Sequence[list[int]],
        paid: Mapping[str, tuple[Price, Entry]],
    ) -> dict[str, Entry]:
        """Draw for each question that has no answer, store, and read back what was stored."""
        noisy = []
        for bound, mine in zip(together, sums, strict=True):
            cost, entry = paid[bound.digest]
            if not entry.answered:
                drawn = perturb(bound.lifted(mine), cost.coordinates(bound.cells))  # its own draw
                noisy.append((entry, drawn))
        found = self.database.ledger.settle_all(noisy)  # stored, write-once
        return {entry.digest: entry for entry in found}

    def _costs(self, key: str | None) -> list[Price]:
        """The price of each line, or of the earlier answer that meets it; a known key decides."""
        db, known = self.database, self.database.ledger.planned(self.analyst, key)
        if known is None:
            best = {
                line.bound.digest: db._stored(line.bound, line.price, self.analyst) or line.price
                for line in self.lines
            }
            return [best[line.bound.digest] for line in self.lines]
        costs = [
            stored_price(line.bound, db.calibration, line.price, noise)
            for line, (digest, noise) in zip(self.lines, known, strict=False)
            if line.bound.digest == digest
        ]
        found = [cost for cost in costs if cost is not None]
        if not len(known) == len(self.lines) == len(found):
            raise Refused(f"the key {key!r} was used for another plan; use a new key")
        return found

    def _priced(self, line: Line, cost: Price) -> Priced:
        bound, charges = line.bound, self.database._charges(cost)
        return Priced(bound.text, bound.digest, cost.noise, charges, cost.share)


# --- making a plan ------------------------------------------------------------------------------


def plan(
    database: Database,
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

    def priced(place: int, part: Fraction | None) -> Price:
        return database.price(bounds[place], targets[place], confidence, part, rows)

    if credits is None:
        prices = [priced(place, None) for place in range(count)]
    else:
        prices = _shared(database, bounds, positive(credits, "credits"), weights, priced, analyst)
    lines = _lines(database, bounds, prices, rows, analyst)
    return Plan(database, analyst, lines, tuple(targets), confidence)


def _shared(
    database: Database,
    bounds: Sequence[BoundQuery],
    credits: Fraction,
    weights: Sequence[Credits] | None,
    priced: Callable[[int, Fraction | None], Price],
    analyst: str,
) -> list[Price]:
    """Credits by weight, or by unit price: then all have the same noise. What own repeats do not
    need goes to the others."""
    units = [unit_cost(bound, database.calibration) for bound in bounds]
    parts: dict[str, Fraction] = {}  # a question that comes twice counts once, at the larger weight
    for place, (bound, unit) in enumerate(zip(bounds, units, strict=True)):
        weight = unit if weights is None else positive(weights[place], "a weight")
        if unit:  # others are public: exact and free
            parts[bound.digest] = max(weight, parts.get(bound.digest, weight))
    first = {bound.digest: place for place, bound in reversed(list(enumerate(bounds)))}
    prices = {
        digest: priced(first[digest], part) for digest, part in _divided(credits, parts).items()
    }
    due = {
        digest: weight
        for digest, weight in parts.items()
        if _repeat(database, bounds[first[digest]], prices[digest], analyst) is None
    }
    if len(due) < len(parts):
        for digest, part in _divided(credits, due).items():
            prices[digest] = priced(first[digest], part)
    return [prices.get(bound.digest) or priced(i, None) for i, bound in enumerate(bounds)]


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


def _repeat(database: Database, bound: BoundQuery, price: Price, analyst: str) -> Price | None:
    """What this analyst has been told already, if it is exact enough. A colleague's question is
    not for others to see."""
    found = database._stored(bound, price, analyst)
    if found is None or not database.ledger.paid(analyst, bound.digest, found.noise):
        return None
    return found


def _lines(
    database: Database,
    bounds: Sequence[BoundQuery],
    prices: Sequence[Price],
    rows: int | None,
    analyst: str,
) -> tuple[Line, ...]:
    """A question that comes twice is paid once, at the price of the more exact one."""
    best: dict[str, Price] = {}
    for bound, price in zip(bounds, prices, strict=True):
        known = best.get(bound.digest)
        if known is None or price.worst.credits > known.worst.credits:
            best[bound.digest] = price
    lines, seen = [], set()
    for bound in bounds:
        price = best[bound.digest]
        found = _repeat(database, bound, price, analyst)
        again = bound.digest in seen or found is not None
        due = Fraction(0) if again else price.share.credits_fraction
        bar = forecast(bound, (found or price).laws, rows, database.size)
        lines.append(Line(bound, price, due, again, bar))
        seen.add(bound.digest)
    return tuple(lines)


def _line_text(line: Line, confidence: float) -> str:
    asked = line.question
    half = line.half_width(confidence)
    bar = "" if half is None else f"+-{float(np.max(half)):,.6g}"
    cost = "free, asked before" if line.repeat else credits_text(line.credits)
    short = asked if len(asked) <= WIDEST else asked[: WIDEST - 4] + " ..."
    return f"{short}: {cost} {bar}".rstrip()
