"""WITHIN: the half-width that each output shall have, and whether an answer has it.

Sizes come from what the asker states, from what is public or from stored noisy answers, which are
free; never from the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sulq.answers.oracle import Answer, Oracle
from sulq.errors import InvalidQuery, Reason
from sulq.sql.evaluate.evaluation import Evaluation
from sulq.sql.evaluate.linear_forms import Estimate
from sulq.sql.evaluate.result import Stated
from sulq.sql.parse.grammar import PrecisionTarget
from sulq.sql.parse.select import Aggregate, Item, Output, aggregates_of
from sulq.sql.plan.plan import StatementPlan

Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class WithinClause:
    """Half-widths by output, of a quantile in rows of rank; `met`: stored answers have them."""

    halves: dict[str, float]
    notes: tuple[str, ...] = ()
    met: bool = False


def wished(
    oracle: Oracle,
    plan: StatementPlan,
    target: PrecisionTarget,
    confidence: float,
    rows: int | None,
) -> WithinClause:
    """What WITHIN asks of each aggregate of a statement."""
    items = [item for item in plan.select.items if aggregates_of(item.of)]
    ranked = [item for item in items if plan.quantile(item.of) is not None]
    others = [item for item in items if item not in ranked]
    if not target.percent:
        if ranked:
            raise InvalidQuery(
                f"WITHIN {float(target.amount):g} on {ranked[0].name:.60}: how far off the value of"
                " a quantile is depends on how dense the rows lie there; its rank can be promised:"
                " say WITHIN 2 PERCENT, of the rows",
                reason=Reason.WITHIN_RANK,
            )
        return WithinClause({item.name: float(target.amount) for item in others})
    share = float(target.amount / 100)
    counts = not plan.is_grouped and all(_is_count(item.of) for item in others)
    if rows is not None and (counts or not others):
        stated = (f"{_RANKS}{rows:,} rows as stated",) if ranked else ()
        return WithinClause({item.name: share * rows for item in items}, stated)
    answers = _stored(oracle, plan)
    found = [] if answers is None else Evaluation(plan, answers, confidence).rows()
    got = _reached_by(plan.select.items, found, target, confidence)
    if got and max(got) <= _enough(target):
        return WithinClause({}, met=True)
    sizes = _sizes(others, plan.select.items, found, confidence)
    if len(sizes) < len(others):
        raise InvalidQuery(
            "a percentage is priced from what is known already, never from the rows: ask once"
            " without WITHIN, or for a count state `rows`, or say WITHIN 50 without PERCENT",
            reason=Reason.WITHIN_SIZE,
        )
    halves = {name: share * size for name, size in sizes.items()}
    if not ranked:
        return WithinClause(halves)
    matching, said = _matching(oracle, plan, answers, ranked, rows)
    return WithinClause(halves | {item.name: share * matching for item in ranked}, (said,))


_RANKS = "WITHIN of a quantile is on the scale of ranks, of "


def _matching(
    oracle: Oracle,
    plan: StatementPlan,
    answers: list[Answer] | None,
    ranked: list[Item],
    rows: int | None,
) -> tuple[float, str]:
    """How many rows quantiles are of: as stated, all of them, or as stored answers say (of groups
    the fewest that are clearly there). All come before stored ones: a repeat costs nothing."""
    if rows is not None:
        return float(rows), f"{_RANKS}{rows:,} rows as stated"
    if oracle.size and not plan.is_grouped:
        return float(oracle.size), f"{_RANKS}all {oracle.size:,}; if fewer match, state `rows`"
    totals: list[float] = []
    for item in ranked:
        recipe = plan.quantile(item.of)
        if answers is None or recipe is None:
            break
        held = answers[recipe.question].reading.distributions
        totals += [] if held is None else [d.total for d in held.flat if d.cdf()[0][-1] > 0]
    if not totals:
        raise InvalidQuery(
            "a percentage of the rows is priced from what is known already, never from the rows:"
            " state `rows` (of each group), or ask once without WITHIN",
            reason=Reason.WITHIN_SIZE,
        )
    return min(totals), f"{_RANKS}some {min(totals):,.0f} rows, by an earlier answer"


def _is_count(output: Output) -> bool:
    return isinstance(output, Aggregate) and output.kind == "count"


def _stored(oracle: Oracle, plan: StatementPlan) -> list[Answer] | None:
    """Answers to the same questions that are stored, which are free."""
    quotes = [oracle.quote(question) for question in plan.questions]
    if not quotes or not all(quote.repeat and not quote.credits for quote in quotes):
        return None
    return [oracle.ask(question) for question in plan.questions]


def _sizes(
    wanted: list[Item], items: Sequence[Item], rows: Rows, confidence: float
) -> dict[str, float]:
    """The size of each of these by stored answers; of groups the smallest that is clearly not 0."""
    sizes: dict[str, float] = {}
    for place, item in enumerate(items):
        clear = []
        for row in rows if item in wanted else ():
            value = row[place]
            if isinstance(value, Estimate):
                low, high = value.interval(confidence)
                if low > 0 or high < 0:
                    clear.append(abs(value.value))
        if clear:
            sizes[item.name] = min(clear)
    return sizes


def verdict(
    items: Sequence[Item], rows: Rows, target: PrecisionTarget, confidence: float
) -> tuple[bool, str]:
    """Whether the target was met, judged from the noisy answer, and that in words."""
    asked = f"WITHIN {float(target.amount):g}{' PERCENT' if target.percent else ''}"
    got = _reached_by(items, rows, target, confidence)
    met = sum(each <= _enough(target) for each in got)
    if met == len(got):
        return True, f"{asked}: met"
    unit = " %" if target.percent else ""
    said = f"{asked}: met by {met} of {len(got)} values; the widest is +-{max(got):.3g}{unit}"
    return False, said


def _enough(target: PrecisionTarget) -> float:
    """A bar is rounded and judged by noisy sizes: a hundredth is let pass."""
    return 1.01 * float(target.amount)


def _reached_by(
    items: Sequence[Item], rows: Rows, target: PrecisionTarget, confidence: float
) -> list[float]:
    """The bar of every value, as the target counts it."""
    return [
        _reached(value, target, confidence)
        for row in rows
        for item, value in zip(items, row, strict=True)
        if isinstance(value, Estimate) and aggregates_of(item.of)
    ]


def _reached(value: Estimate, target: PrecisionTarget, confidence: float) -> float:
    if isinstance(value, Stated) and value.rank is not None:
        return 100 * value.rank(confidence)  # of the rows
    low, high = value.unrounded.interval(confidence)
    half = (high - low) / 2
    if not target.percent:
        return half
    return 100 * half / abs(value.value) if value.value else math.inf
