"""Targets for the tests: the product's own, and oracles that are broken on purpose.

A broken oracle reads the true sums of a real table and adds what noise it likes: the package
itself has no way to do that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from sulq.answers.oracle import Answer, Quote
from sulq.attacks.result import AttackResult
from sulq.attacks.target import Bits, Target
from sulq.database import Database
from sulq.kernel.noise.laws import DiscreteGaussian, NoNoise
from sulq.kernel.query.sum_query import as_statistic, text_of
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.promise import Promise

SURE = 5.0
"""Standard errors that chance passes less often than 1e-6, on one side."""
TENTH = Promise("0.39688", "1e-6", 1)
"""One unit question with noise 10: mu = 1/10."""
OPEN = Promise(4, "1e-6", 100)
"""Loose enough that an attack which reaches the bound is seen to reach it."""


def within(finding: AttackResult) -> bool:
    """Inside the bound but for chance (1e-6)."""
    return finding.trials > 0 and finding.reached <= finding.bound + SURE * finding.error


def near(finding: AttackResult, law: float) -> bool:
    """At what the law says, but for chance (1e-6); seeded, so it passes or fails for good."""
    error = math.sqrt(max(law * (1 - law), 1 / finding.trials) / finding.trials)
    return abs(finding.reached - law) <= SURE * error


def phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


@dataclass
class Broken:
    """An oracle with Gaussian noise of its own size on a unit question.

    A question is charged when it is first asked; `stored` names what is answered as before. There
    is no cap. Seeded: what it answers, it always answers.
    """

    database: Database
    sigma: float
    stored: Callable[[Any], str] | None = None
    seed: int = 0
    spent: Fraction = Fraction(0)
    known: dict[str, tuple[BoundQuery, Any]] = field(default_factory=dict)
    charged: set[str] = field(default_factory=set)
    answers: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

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
        return self.promise.credits - self.spent

    def quote(self, query: object, **terms: Any) -> Quote:
        return self.database.quote(query, **terms)

    def ask(self, query: object, *, credits: Any = None, **_: Any) -> Answer:
        words = text(query)
        if words not in self.known:
            bound = self.database.bind(query)
            sums = self.database.engine.prepare(bound.sums)()
            self.known[words] = bound, np.array(bound.lifted(sums), dtype=np.float64)
        bound, truth = self.known[words]
        unit = len(bound.terms)
        due = Fraction(0 if bound.digest in self.charged else unit if credits is None else credits)
        self.charged.add(bound.digest)
        self.spent += due
        sigma = self.sigma * (1 if credits is None else math.sqrt(unit / credits))
        sigma *= bound.terms[0].fine_unit
        name = words if self.stored is None else self.stored(query)
        values = self.answers.get(name)
        if values is None:
            values = [int(v) for v in np.rint(truth + self.random.normal(0, sigma, len(truth)))]
            if self.stored is not None:
                self.answers[name] = values
        law = DiscreteGaussian(Fraction(sigma) ** 2) if sigma else NoNoise()
        laws = [law] * unit
        return Answer.of(bound, values, laws, most=None, credits=due, receipt=None)


def text(query: object) -> str:
    """A question's own words, not its canonical form."""
    return text_of(as_statistic(query).query)


def broken(target: Target, sigma: float, stored: Callable[[Any], str] | None = None) -> Target:
    """The target with other noise than promised; each analyst has a ledger of its own."""

    def publish(secrets: Bits) -> Broken:
        database = target.publish(secrets)
        assert isinstance(database, Database)
        return Broken(database, sigma, stored)

    def alone(oracle: Any, number: int) -> list[Broken]:
        found = [Broken(oracle.database, sigma, stored, place + 1) for place in range(number)]
        for analyst in found:
            analyst.known = oracle.known  # the true sums are worked out once
        return found

    return Target(target.promise, target.rows, publish, alone)
