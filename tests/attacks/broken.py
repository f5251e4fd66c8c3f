"""Seven oracles with one planted bug each. Only tests can reach them.

Each wraps a real database for its exact sums and spoils one thing: the noise, or the account.
All are seeded: a test that catches one today catches it always.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from tests.attacks.sandbox import database
from tests.waiting import come

from sulq.answers.oracle import Answer, Oracle, Quote
from sulq.answers.statistics import forecast, read
from sulq.attacks.target import Bits, Target
from sulq.database import Database
from sulq.errors import BudgetSpent, Refused
from sulq.kernel.noise.laws import NoNoise
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.promise import Promise

BOUND: dict[tuple[object, int | None], BoundQuery] = {}
"""Binding a hundred thousand cells takes seconds, and reads no data."""


@dataclass
class Textbook:
    """Laplace noise on a correct account, with integer answers off a fine lattice: no bug yet.

    The bugs below override one method each.
    """

    database: Database
    seed: int = 7
    spent: Fraction = Fraction(0)
    answers: dict[tuple[str, Fraction], Answer] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

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

    def quote(self, query: object, *, credits: Any = None, **_: Any) -> Quote:
        bound, due = self.bind(query), Fraction(credits or 1)
        laws = [NoNoise()] * len(bound.terms)
        return Quote(due, self.remaining - due, forecast(bound, laws, None, self.size), False)

    def ask(self, query: object, *, credits: Any = None, **_: Any) -> Answer:
        bound, due = self.bind(query), Fraction(credits or 1)
        with self.lock:
            stored = self.answers.get((bound.digest, due))
            if stored is not None:
                return replace(stored, credits=Fraction(0))
            self.charge(due)
            answer = self.answer(bound, due)
            self.answers[bound.digest, due] = answer
            return answer

    def bind(self, query: object) -> BoundQuery:
        place = (query, self.size)
        if place not in BOUND:
            BOUND[place] = self.database.bind(query)
        return BOUND[place]

    def charge(self, due: Fraction) -> None:
        if due > self.remaining:
            raise BudgetSpent(f"this costs {due}, {self.remaining} are left")
        self.spent += due

    def answer(self, bound: BoundQuery, due: Fraction) -> Answer:
        sums = self.database.engine.prepare(bound.sums)()
        exact = read(bound, bound.lifted(sums), [NoNoise()] * len(bound.terms), None)
        value = np.asarray(exact.value, dtype=np.float64)
        scale = float(self.promise.credits / self.promise.epsilon / due)
        noisy = value + self.noise(scale, value.shape)
        error = np.full(value.shape, math.sqrt(2) * scale)
        reading = replace(exact, value=noisy, standard_error=error)
        return Answer(reading, bound.statistic.kind, (), due, None)

    def noise(self, scale: float, shape: tuple[int, ...]) -> Any:
        """On a lattice that every bit shares."""
        return np.round(self.random.laplace(0, scale, shape) * 2**30) / 2**30


class FloatNoise(Textbook):
    """1: numpy's floats, whose gaps tell what they were added to."""

    def noise(self, scale: float, shape: tuple[int, ...]) -> Any:
        return self.random.laplace(0, scale, shape)


class HalfNoise(Textbook):
    """2: a row moves the sum twice as far as was thought."""

    share = 0.5

    def noise(self, scale: float, shape: tuple[int, ...]) -> Any:
        return super().noise(scale * self.share, shape)


class LateCharge(Textbook):
    """3: checked first, charged after the answer is made.

    Who has a small answer waits with its charge until the answers made overspend what is left, so
    that the bug shows on whatever machine; a large one is asked for alone and waits for nobody.
    """

    made: Fraction = Fraction(0)

    def ask(self, query: object, *, credits: Any = None, **_: Any) -> Answer:
        bound, due = self.bind(query), Fraction(credits or 1)
        if due > self.remaining:
            raise BudgetSpent("nothing is left")
        with self.lock:
            answer = self.answer(bound, due)
            self.made += due
        if 2 * due < self.remaining:
            come(lambda: self.made > self.promise.credits, "nobody else asked")
        with self.lock:
            self.spent += due
        return answer


class AnsweredTwice(Textbook):
    """4: a repeat is free, and drawn anew."""

    def ask(self, query: object, *, credits: Any = None, **_: Any) -> Answer:
        bound, due = self.bind(query), Fraction(credits or 1)
        with self.lock:
            if (bound.digest, due) in self.answers:
                return replace(self.answer(bound, due), credits=Fraction(0))
        return super().ask(query, credits=credits)


class ClippedNoise(Textbook):
    """5: no noise beyond six scales, so that an end can be overstepped."""

    def noise(self, scale: float, shape: tuple[int, ...]) -> Any:
        return np.clip(super().noise(scale, shape), -6 * scale, 6 * scale)


class SometimesExact(Textbook):
    """6: no noise once in a thousand."""

    def noise(self, scale: float, shape: tuple[int, ...]) -> Any:
        return np.where(self.random.random(shape) < 0.001, 0.0, super().noise(scale, shape))


class SeededInForks(Textbook):
    """7: the generator's state is copied into every worker (as any seeded one's is)."""


class Auditor(Textbook):
    """Refuses what would show a single person: data-dependent, as classic auditors are."""

    def answer(self, bound: BoundQuery, due: Fraction) -> Answer:
        sums = self.database.engine.prepare(bound.sums)()
        if len(sums) == 1 and 0 < sums[0] <= bound_one(bound):
            raise Refused("too few rows match")
        return super().answer(bound, due)


def bound_one(bound: BoundQuery) -> int:
    """One row's count, in grid steps."""
    return int(1 / bound.terms[0].step)


class Spinning(Textbook):
    """Works 10 ms longer where a row matches: what a predicate in the asker's code can do."""

    def answer(self, bound: BoundQuery, due: Fraction) -> Answer:
        WATCH.seconds += 0.001
        sums = self.database.engine.prepare(bound.sums)()
        if any(sums):
            WATCH.seconds += 0.010
        return super().answer(bound, due)


class CountingSampler(Textbook):
    """Draws by counting: it takes as long as the noise is large."""

    def noise(self, scale: float, shape: tuple[int, ...]) -> Any:
        drawn = super().noise(scale, shape)
        WATCH.seconds += 0.001 * float(np.abs(drawn).max()) / scale
        return drawn


class Watch:
    """A clock that only oracles move, so that a busy machine does not decide a test."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


WATCH = Watch()


class HashShown(Textbook):
    """Shows a fingerprint of its rows."""

    fingerprint: Callable[[Bits], str]
    secrets: Bits

    def answer(self, bound: BoundQuery, due: Fraction) -> Answer:
        return replace(
            super().answer(bound, due), receipt={"data": type(self).fingerprint(self.secrets)}
        )


def broken(kind: Callable[[Database], Oracle], promise: Promise, rows: int = 64) -> Target:
    """A target whose oracles have this bug."""

    def publish(secrets: Bits) -> Oracle:
        oracle = kind(database(secrets, promise))
        if isinstance(oracle, HashShown):
            oracle.secrets = secrets.copy()
        return oracle

    def analysts(oracle: Oracle, number: int) -> Sequence[Oracle]:
        return [oracle] * number

    return Target(promise, rows, publish, analysts)
