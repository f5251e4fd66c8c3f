"""Small values that a server tells: a statement, an exact quote, a grant."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sulq.oracle import decimal_text
from sulq.wire import ExactQuoteReply, StatementReply


@dataclass(frozen=True, slots=True)
class Statement:
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
    def of(cls, reply: StatementReply) -> Statement:
        return cls(
            reply.table, reply.credits_exact, reply.spent_exact, reply.left_exact,
            reply.mine_exact, reply.guarantee, reply.questions, reply.answered, reply.seq,
            reply.head, reply.public_key, reply.text, tuple(reply.analysts or ()),
        )  # fmt: skip

    def __str__(self) -> str:
        spent, whole, left = map(decimal_text, (self.spent, self.credits, self.left))
        return self.text or f"{spent} of {whole} credits spent, {left} left\n{self.guarantee}"


@dataclass(frozen=True, slots=True)
class ExactQuote:
    """What an exact answer would be, and what it does to noisy ones: their caps are divided."""

    guarantee: str
    terms: str
    divisor: int
    left: Fraction
    left_after: Fraction

    @classmethod
    def of(cls, reply: ExactQuoteReply) -> ExactQuote:
        return cls(
            reply.guarantee, reply.terms, reply.divisor, reply.left_exact, reply.left_after_exact
        )

    def __str__(self) -> str:
        if self.divisor == 1:
            return f"{self.guarantee}; credits left: {decimal_text(self.left)}, as before"
        return (
            f"{self.guarantee}; with it no worst-case promise is left, every cap is divided by"
            f" {self.divisor}, and of {decimal_text(self.left)} credits"
            f" {decimal_text(max(Fraction(0), self.left_after))} stay"
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
