"""Making a plan: every question priced, and credits shared out, before anything is charged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from sulq.accounting.losses import CREDIT
from sulq.accounting.pricing import Price, positive, unit_cost
from sulq.database.plans import Line, Plan
from sulq.errors import InvalidQuery
from sulq.ledger.budgets import OWNER
from sulq.noise.distributions import Law
from sulq.oracle import check_confidence, decimal_text
from sulq.readings import forecast
from sulq.schema.binding import BoundQuery

if TYPE_CHECKING:
    from sulq.database.database import Credits, Database

MOST_QUESTIONS = 1_000
SIGNIFICANT = 32
"""Bits of a question's part of the credits: short prices."""


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
        whole = positive(credits, "credits")
        prices = _shared(database, bounds, whole, weights, priced, analyst, confidence)
    lines = _lines(database, bounds, prices, rows, analyst, confidence)
    return Plan(database, analyst, lines, tuple(targets), confidence)


def _shared(
    database: Database,
    bounds: Sequence[BoundQuery],
    credits: Fraction,
    weights: Sequence[Credits] | None,
    priced: Callable[[int, Fraction | None], Price],
    analyst: str,
    confidence: float,
) -> list[Price]:
    """Credits by unit price, so that all have the same noise; what own repeats do not need goes to
    the others. By weight each has its part, and what repeats do not need is not spent."""
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
        if not _told(database, bounds[first[digest]], prices[digest], analyst, confidence).repeat
    }
    if weights is None and len(due) < len(parts):
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


class Told(NamedTuple):
    """What this analyst has been told already. A colleague's question is not for others to see."""

    due: Price
    repeat: bool
    laws: Sequence[Law]


def _told(
    database: Database, bound: BoundQuery, wanted: Price, analyst: str, confidence: float
) -> Told:
    due, own = database._recall.quoted(bound, wanted, analyst, confidence)
    if own is not None:
        return Told(due, True, own.laws() or own.worst())
    told = database._recall.told(bound, wanted, analyst)
    return Told(due, told is not None, wanted.laws if told is None else told.laws)


def _lines(
    database: Database,
    bounds: Sequence[BoundQuery],
    prices: Sequence[Price],
    rows: int | None,
    analyst: str,
    confidence: float,
) -> tuple[Line, ...]:
    """A question that comes twice is paid once, at the price of the more exact one."""
    best: dict[str, Price] = {}
    for bound, price in zip(bounds, prices, strict=True):
        known = best.get(bound.digest)
        if known is None or price.worst.credits > known.worst.credits:
            best[bound.digest] = price
    lines, seen = [], set()
    for bound in bounds:
        wanted = best[bound.digest]
        told = _told(database, bound, wanted, analyst, confidence)
        bar = forecast(bound, told.laws, rows, database.size)
        lines.append(Line(bound, wanted, told.due, told.repeat or bound.digest in seen, bar))
        seen.add(bound.digest)
    return tuple(lines)
