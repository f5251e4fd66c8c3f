"""What each question of a statement gets: its plain price, a part of credits, or what WITHIN takes.

Nothing here reads data: sizes come from what the asker states or has been answered before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sulq.accounting.pricing import positive
from sulq.errors import InvalidQuery
from sulq.oracle import Oracle, check_confidence, credits_text
from sulq.sql.kept import kept
from sulq.sql.planning import plan_of
from sulq.sql.pointing import blamed_aggregates, closed
from sulq.sql.recipes import Plan
from sulq.sql.refusals import located
from sulq.sql.rewrites import offered
from sulq.sql.statements import read_statement
from sulq.sql.targets import (
    intensity_for,
    most_credits,
    over,
    shared_out,
    unit_price,
    unit_prices,
)
from sulq.sql.wishes import wished

Lookups = Mapping[str, Mapping[str, Sequence[Any]]]


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """What to ask, and the credits for each question (None: the plain price)."""

    plan: Plan
    amounts: tuple[Fraction | None, ...]
    confidence: float
    notes: tuple[str, ...]


def priced_statement(
    oracle: Oracle,
    text: str,
    credits: Fraction | int | float | None,
    confidence: float,
    rows: int | None,
    lookups: Lookups | None,
    table: str | None,
) -> Priced:
    check_confidence(confidence)
    schema = oracle.schema

    def made() -> Plan:
        read = read_statement(text, schema, table, lookups)
        return plan_of(read, schema, oracle.size, lambda question: unit_price(question, oracle))

    plan = made() if lookups else kept(oracle, text, table, made)
    select = plan.select
    try:
        cap = most_credits(select.options, oracle.promise, schema.unit, schema.max_rows)
    except InvalidQuery as error:
        raise located(error, select.spans.get("options")) from None
    try:
        return _amounts(oracle, plan, cap, credits, confidence, rows)
    except InvalidQuery as error:
        raise located(error, select.spans.get("target")) from None


def _amounts(
    oracle: Oracle,
    plan: Plan,
    cap: Fraction | None,
    credits: Fraction | int | float | None,
    confidence: float,
    rows: int | None,
) -> Priced:
    notes = list(plan.notes)
    target = plan.select.target
    if target is not None and target.confidence is not None:
        confidence = target.confidence
    amounts: list[Fraction | None] = [None] * len(plan.questions)
    if target is not None:
        if credits is not None:
            raise InvalidQuery("give WITHIN or credits, not both")
        wanted = wished(oracle, plan, target, confidence, rows)
        notes += wanted.notes
        if not wanted.met:
            amounts = intensity_for(plan, oracle, wanted.halves, confidence, rows)
    elif credits is not None and plan.questions:
        amounts = shared_out(positive(credits, "credits"), unit_prices(plan, oracle))
    if cap is not None and plan.questions:
        units = unit_prices(plan, oracle)
        due = sum((a if a is not None else u for a, u in zip(amounts, units, strict=True)),
                  Fraction(0))  # fmt: skip
        if due > cap and (target is not None or credits is not None):
            raise over(cap, due)
        if due > cap:
            amounts = shared_out(cap, units)
            notes.append(
                f"epsilon allows {credits_text(cap)} of {credits_text(due)}: more noise than usual"
            )
    return Priced(plan, tuple(amounts), confidence, tuple(notes))


def explained(
    error: InvalidQuery,
    oracle: Oracle,
    text: str,
    rows: int | None,
    lookups: Lookups | None,
    table: str | None,
) -> InvalidQuery:
    """A refusal with its place in the text, and with rewrites that would be answered. Free."""
    if not isinstance(text, str):
        return error

    def answered(near: str) -> bool:
        try:
            found = priced_statement(oracle, near, None, 0.95, rows, lookups, table)
            unit_prices(found.plan, oracle)
        except InvalidQuery:
            return False
        return True

    if error.start is None:
        error = _blamed(error, oracle, text, lookups, table)
    error = closed(error, text)
    error.alternatives = error.alternatives or offered(error, text, oracle.schema, answered)
    return error


def _blamed(
    error: InvalidQuery, oracle: Oracle, text: str, lookups: Lookups | None, table: str | None
) -> InvalidQuery:
    try:
        select = read_statement(text, oracle.schema, table, lookups)
    except InvalidQuery:
        return error
    return blamed_aggregates(error, select, oracle.schema)
