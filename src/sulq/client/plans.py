"""A plan of questions made over HTTP: the same lines, prices and bars as a local one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from sulq.noise.distributions import law_from_json
from sulq.oracle import Answer, check_confidence, credits_text
from sulq.query.spelling import told_apart
from sulq.readings import Forecast, forecast
from sulq.schema.binding import BoundQuery
from sulq.wire import PlanReply


@dataclass(frozen=True, slots=True, eq=False)
class RemoteLine:
    """One question of a plan: what it costs, and how exact it will be."""

    question: str
    credits: Fraction
    repeat: bool
    forecast: Forecast
    note: str

    def half_width(self, confidence: float = 0.95) -> Any:
        """How far off the answer may be at this confidence; None where it is unknown."""
        check_confidence(confidence)
        return self.forecast.half_width(confidence)


def lines_of(
    reply: PlanReply, bounds: Sequence[BoundQuery], rows: int | None, size: int | None
) -> tuple[RemoteLine, ...]:
    lines = []
    for line, bound in zip(reply.lines, bounds, strict=True):
        bar = forecast(bound, [law_from_json(law) for law in line.noise], rows, size)
        lines.append(RemoteLine(line.question, line.credits_exact, line.repeat, bar, line.note))
    return tuple(lines)


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """Questions with their prices. Making one is free and reads no row."""

    lines: tuple[RemoteLine, ...]
    credits: Fraction
    left_after: Fraction
    confidence: float

    @property
    def affordable(self) -> bool:
        return self.left_after >= 0

    def rows(self) -> list[dict[str, Any]]:
        """The plan as plain records, one per question."""
        return [
            {
                "question": line.question,
                "credits": line.credits,
                "repeat": line.repeat,
                "half_width": line.half_width(self.confidence),
                "note": line.note,
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RemotePlan(Priced):
    """`ask` pays for all of it, or for none; refused, free, if it has become dearer."""

    _ask: Callable[[str | None], list[Answer]] = field(repr=False)

    def ask(self, key: str | None = None) -> list[Answer]:
        """Ask all of it: one transaction charges every question, or none. Answers in order."""
        return self._ask(key)


def _price_text(line: RemoteLine, confidence: float) -> str:
    half = line.half_width(confidence)
    bar = "" if half is None else f"+-{float(np.max(half)):,.6g}"
    cost = "free, asked before" if line.repeat else credits_text(line.credits)
    return f"{cost} {bar}".rstrip()
