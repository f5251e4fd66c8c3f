"""Small values that a server tells: a statement, an exact quote, a grant."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from sulq.answers.error_bars import Forecast
from sulq.answers.oracle import Answer, check_confidence
from sulq.answers.statistics import forecast
from sulq.formatting import credits_left, credits_text, decimal_left, decimal_text
from sulq.kernel.noise.laws import law_from_json
from sulq.kernel.query.sql_text import told_apart
from sulq.kernel.schema.bind import BoundQuery
from sulq.wire import ExactQuoteReply, PlanReply, StatementReply


@dataclass(frozen=True, slots=True)
class RemoteStatement:
    """What a table has spent and has left; `mine` is left for who asks."""

    table: str
    credits: Fraction
    spent: Fraction
    left: Fraction
    mine: Fraction
    guarantee: str
    questions: int
    answered: int
    seq: int
    head: str
    public_key: str
    text: str = field(repr=False)
    analysts: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, reply: StatementReply) -> RemoteStatement:
        return cls(
            table=reply.table,
            credits=reply.credits_exact,
            spent=reply.spent_exact,
            left=reply.left_exact,
            mine=reply.mine_exact,
            guarantee=reply.guarantee,
            questions=reply.questions,
            answered=reply.answered,
            seq=reply.seq,
            head=reply.head,
            public_key=reply.public_key,
            text=reply.text,
            analysts=tuple(reply.analysts or ()),
        )

    def __str__(self) -> str:
        spent, whole, left = *map(decimal_text, (self.spent, self.credits)), decimal_left(self.left)
        return self.text or f"{spent} of {whole} credits spent, {left} left\n{self.guarantee}"


@dataclass(frozen=True, slots=True)
class RemoteExactQuote:
    """What an exact answer would be, and what it does to noisy ones: their caps are divided."""

    guarantee: str
    terms: str
    divisor: int
    left: Fraction
    left_after: Fraction

    @classmethod
    def of(cls, reply: ExactQuoteReply) -> RemoteExactQuote:
        return cls(
            guarantee=reply.guarantee,
            terms=reply.terms,
            divisor=reply.divisor,
            left=reply.left_exact,
            left_after=reply.left_after_exact,
        )

    def __str__(self) -> str:
        if self.divisor == 1:
            return f"{self.guarantee}; credits left: {decimal_left(self.left)}, as before"
        return (
            f"{self.guarantee}; with it no worst-case promise is left, every cap is divided by"
            f" {self.divisor}, and of {decimal_left(self.left)} credits"
            f" {decimal_left(max(Fraction(0), self.left_after))} stay"
        )


@dataclass(frozen=True, slots=True)
class Granted:
    """A share, and the token for it: told once."""

    name: str
    role: str
    token: str = field(repr=False)
    link: str = field(default="", repr=False)

    @classmethod
    def read(cls, text: bytes) -> Granted:
        form = json.loads(text)
        return cls(
            str(form.get("name", "")),
            str(form.get("role", "")),
            str(form.get("token", "")),
            str(form.get("link") or ""),
        )


# A plan of questions made over HTTP: the same lines, prices and bars as a local one.


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
        lines.append(
            RemoteLine(
                question=line.question,
                credits=line.credits_exact,
                repeat=line.repeat,
                forecast=bar,
                note=line.note,
            )
        )
    return tuple(lines)


@dataclass(frozen=True, slots=True, eq=False)
class RemotePrice:
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
        left = credits_left(self.left_after) if self.affordable else "not affordable"
        return "\n".join([*said, f"together {credits_text(self.credits)}; left after: {left}"])

    def __repr__(self) -> str:
        return f"<Plan of {len(self.lines)} questions, {credits_text(self.credits)}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RemotePlan(RemotePrice):
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
