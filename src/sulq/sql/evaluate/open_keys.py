"""GROUP BY an open text column: counts by keys that nobody declared, through `keys`. M.1

Which keys there are is found by asking: those whose noisy count reaches a threshold.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Protocol, runtime_checkable

import numpy as np

from sulq.answers.error_bars import Forecast, Reading
from sulq.answers.oracle import Answer
from sulq.answers.selections import Keys, KeysQuote
from sulq.errors import InvalidQuery, Reason
from sulq.formatting import credits_text
from sulq.kernel.noise.intervals import z_of
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Expression
from sulq.sql.parse.select import (
    Select,
)
from sulq.sql.plan.plan import StatementPlan


@runtime_checkable
class Finder(Protocol):
    """An Oracle that can look for keys."""

    def keys(
        self,
        column: object,
        *,
        where: Expression | None = None,
        credits: Fraction | int | float | None = None,
        key: str | None = None,
    ) -> Keys:
        """Counts by keys that nobody declared, charged."""

    def quote_keys(
        self,
        column: object,
        *,
        where: Expression | None = None,
        credits: Fraction | int | float | None = None,
    ) -> KeysQuote:
        """Price and threshold; free."""


def finder(oracle: object) -> Finder:
    """The oracle, if it can look for keys."""
    if not isinstance(oracle, Finder):
        raise InvalidQuery(
            f"{type(oracle).__name__} cannot look for keys that nobody declared; group by columns"
            " with declared values",
            reason=Reason.OPEN_TEXT,
        )
    return oracle


def where_of(plan: StatementPlan) -> Expression | None:
    rows = plan.bottom.rows
    return None if rows is canonical.TRUE else rows


def forecast_of(quoted: KeysQuote) -> Forecast:
    """The bar of each count."""
    error = np.array([quoted.standard_error])
    return Forecast(error, lambda confidence: z_of(confidence) * error)


def quote_notes(quoted: KeysQuote) -> list[str]:
    due = f"; the threshold costs an extra delta of {float(quoted.delta):.2g}"
    said = [_shown(quoted.threshold) + ("" if quoted.repeat else due)]
    return [*said, *([quoted.note] if quoted.note else [])]


def _shown(threshold: float) -> str:
    return f"keys are shown from a noisy count of {threshold:,.1f} rows on"


def found_plan(plan: StatementPlan, found: Keys) -> StatementPlan:
    """The plan with the keys that were found as its groups."""
    bottom = plan.bottom
    grouping = replace(bottom.groups[0], labels=found.keys, shown=tuple(range(len(found))))
    return replace(plan, select=_put(plan.select, replace(bottom, groups=(grouping,))))


def _put(select: Select, bottom: Select) -> Select:
    """The statement with its one SELECT of rows as this."""
    if select.source is None:
        return bottom
    assert isinstance(select.source, Select)  # noqa: S101
    return replace(select, source=_put(select.source, bottom))


def keys_answer(found: Keys) -> Answer:
    """Counts by key as sums, to be read cell by cell."""
    shape = (len(found), 1)
    value = np.array(found.counts, dtype=np.float64).reshape(shape)
    half = found.law.half_width
    reading = Reading(
        value,
        np.full(shape, found.standard_error),
        lambda c: (value - half(c) / found.unit, value + half(c) / found.unit),
    )
    return Answer(
        reading,
        "sums",
        (found.column,),
        found.credits,
        found.receipt,
        found.note,
        f"keys of {found.column}, receipt {found.receipt.seq}",
        (found.law,),
    )


def notes_of(found: Keys) -> list[str]:
    """The threshold, and what was held back: a noisy number, never how many keys."""
    rest, around = found.held_back, z_of(0.95) * found.held_back_error
    said = [
        f"{_shown(found.threshold)}; near it counts tend to be too high",
        f"held back: {rest:,.0f} +-{around:,.0f} rows at 95 %; missing texts are no key",
    ]
    return [*said, *([found.note] if found.note else [])]


def line_of(plan: StatementPlan, quoted: KeysQuote) -> str:
    """What is asked, in words."""
    stored = ", stored already" if quoted.repeat else ""
    return f"question 1: keys of {plan.undeclared} ({credits_text(quoted.credits)}{stored})"
