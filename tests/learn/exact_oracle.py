"""An oracle without noise, for tests only: what an estimator computes when nothing is hidden."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sulq.answers.oracle import Answer, Quote
from sulq.answers.statistics import forecast
from sulq.database import Database
from sulq.kernel.noise.laws import NoNoise
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.promise import Promise


@dataclass
class ExactOracle:
    """Answers exactly and counts credits; `asked` lists (question, credits)."""

    database: Database
    asked: list[tuple[Any, Fraction]] = field(default_factory=list)
    durable: bool = False

    @property
    def schema(self) -> Schema:
        return self.database.schema

    @property
    def promise(self) -> Promise:
        return self.database.promise

    @property
    def size(self) -> int | None:
        return self.database.size

    @property
    def remaining(self) -> Fraction:
        return Fraction(self.promise.credits) - sum((c for _, c in self.asked), Fraction(0))

    def _laws(self, bound: Any) -> list[NoNoise]:
        return [NoNoise()] * len(bound.terms)

    def quote(self, query: object, *, credits: Any = None, rows: Any = None, **_: Any) -> Quote:
        bound = self.database.bind(query)
        due = Fraction(credits if credits is not None else 1)
        bar = forecast(bound, self._laws(bound), rows, self.size)
        return Quote(due, self.remaining - due, bar, False, bound.notes)

    def ask(self, query: object, *, credits: Any = None, **_: Any) -> Answer:
        bound = self.database.bind(query)
        due = Fraction(credits if credits is not None else 1)
        self.asked.append((query, due))
        sums = self.database.engine.prepare(bound.sums)()
        return Answer.of(
            bound,
            bound.lifted(sums),
            self._laws(bound),
            most=None,
            credits=due,
            receipt=len(self.asked),
        )
