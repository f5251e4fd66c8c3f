"""GROUP BY open columns: counts and sums by keys that nobody declared, through `keys`. M.1, P.4

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
from sulq.sql.plan.plan import StatementPlan, is_persons


@runtime_checkable
class Finder(Protocol):
    """An Oracle that can look for keys."""

    def keys(
        self,
        column: object,
        *figures: object,
        where: Expression | None = None,
        credits: Fraction | int | float | None = None,
        key: str | None = None,
    ) -> Keys:
        """Counts and figures by keys that nobody declared, charged."""

    def quote_keys(
        self,
        column: object,
        *figures: object,
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


def forecast_of(quoted: KeysQuote, plan: StatementPlan) -> Forecast:
    """The bar of each count, and of each sum."""
    error = np.array([quoted.standard_error, *quoted.figures[: _sums(plan)]], dtype=np.float64)
    return Forecast(error, lambda confidence: z_of(confidence) * error)


def _sums(plan: StatementPlan) -> int:
    return len(plan.places) - 1


def quote_notes(quoted: KeysQuote, plan: StatementPlan) -> list[str]:
    due = f"; the threshold costs an extra delta of {float(quoted.delta):.2g}"
    counted = "persons" if any(map(is_persons, plan.figures)) else "rows"
    said = [_shown(quoted.threshold, counted) + ("" if quoted.repeat else due)]
    return [*said, *([quoted.note] if quoted.note else [])]


def _shown(threshold: float, counted: str) -> str:
    return f"keys are shown from a noisy count of {threshold:,.1f} {counted} on"


def found_plan(plan: StatementPlan, found: Keys) -> StatementPlan:
    """The plan with the keys that were found as its groups; a pair is one cell for both columns."""
    bottom, shown = plan.bottom, tuple(range(len(found)))
    groups = tuple(
        replace(
            grouping,
            labels=tuple(key[place] if found.columns else key for key in found.keys),
            shown=shown,
        )
        for place, grouping in enumerate(bottom.groups)
    )
    return replace(plan, select=_put(plan.select, replace(bottom, groups=groups)))


def _put(select: Select, bottom: Select) -> Select:
    """The statement with its one SELECT of rows as this."""
    if select.source is None:
        return bottom
    assert isinstance(select.source, Select)  # noqa: S101
    return replace(select, source=_put(select.source, bottom))


def keys_answer(found: Keys, plan: StatementPlan) -> Answer:
    """Counts and sums by key as sums, to be read cell by cell."""
    figures = found.figures[: _sums(plan)]
    value = np.array([found.counts, *(each.values for each in figures)], dtype=np.float64).T
    value = value.reshape(len(found), 1 + len(figures))
    laws = (found.law, *(each.laws[0] for each in figures))
    steps = [1 / found.unit, *(float(each.bound.terms[0].fine_step) for each in figures)]
    error = np.array([law.standard_deviation() * s for law, s in zip(laws, steps, strict=True)])

    def interval(confidence: float) -> tuple[np.ndarray, np.ndarray]:
        halves = [law.half_width(confidence) * s for law, s in zip(laws, steps, strict=True)]
        return value - np.array(halves), value + np.array(halves)

    return Answer(
        Reading(value, np.broadcast_to(error, value.shape), interval),
        "sums",
        (found.column,),
        found.credits,
        found.receipt,
        found.note,
        f"keys of {found.column}, receipt {found.receipt.seq}",
        laws,
    )


def notes_of(found: Keys) -> list[str]:
    """The threshold, and what was held back: a noisy number, never how many keys."""
    rest, around = found.held_back, z_of(0.95) * found.held_back_error
    several = "" if found.counted == "rows" else ", each counted once for a key"
    said = [
        f"{_shown(found.threshold, found.counted)}; near it counts tend to be too high",
        f"held back: {rest:,.0f} +-{around:,.0f} {found.counted} at 95 %{several};"
        " missing texts are no key",
    ]
    return [*said, *([found.note] if found.note else [])]


def line_of(plan: StatementPlan, quoted: KeysQuote) -> str:
    """What is asked, in words."""
    stored = ", stored already" if quoted.repeat else ""
    sums = _sums(plan)
    beside = "" if not sums else f" with {sums} sum{'s' * (sums > 1)}"
    named = ", ".join(plan.undeclared)
    return f"question 1: keys of {named}{beside} ({credits_text(quoted.credits)}{stored})"
