"""Four batches that pass the printed condition and are not private. S1.5

Each is made from its own law, no data; the certificate refuses all four.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sulq.answers.statistics import count, total
from sulq.errors import InvalidQuery, UnsafeExactly
from sulq.exact.certificate import certify
from sulq.exact.domain import Assumptions, Domain
from sulq.exact.printed.checks import PrintedCheck, needed_variance, theorem_2
from sulq.exact.printed.laws import binomial_delta, log_binomial, shifted_delta
from sulq.kernel.query.expressions import col, when
from sulq.kernel.query.sum_query import Statistic
from sulq.kernel.schema.bind import NoiseGrid, bind
from sulq.kernel.schema.columns import Category, Flag, Schema

EPSILON, DELTA = 1.0, 1e-6
LOW = 2**30
"""A digit nobody looks at is worth 1/LOW."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """What the paper would release, what it gives away, and what ours says."""

    name: str
    question: str
    printed: PrintedCheck
    true_delta: float
    refusal: str
    lesson: str

    @property
    def refused(self) -> bool:
        return bool(self.refusal)


def counterexample(name: str) -> Counterexample:
    """One of "sparse", "digit", "public", "span", at epsilon 1 and delta 1e-6."""
    if name not in MAKERS:
        raise InvalidQuery(f"no counterexample {name!r:.40}; there are {', '.join(MAKERS)}")
    return MAKERS[name]()


def _sparse() -> Counterexample:
    n = 10**6
    variance = 1.0001 * needed_variance(EPSILON, DELTA)  # just above the threshold
    p = (1 - math.sqrt(1 - 4 * variance / (n - 1))) / 2
    schema = Schema(Flag("rare"))
    return Counterexample(
        "sparse",
        f"how many of {n:,} rows have a rare flag, of chance {p:.4g} each",
        _passes(variance),
        binomial_delta(n - 1, p, EPSILON),
        _refusal(count(where=col("rare")), schema, {"rare": p}, {None: n}),
        "a rare event has a skewed law: its variance suffices where its lower tail does not",
    )


def _digit() -> Counterexample:
    n = 10**6
    schema = Schema(Flag("b"), Flag("property"), _name())
    mine = when((col("name") == "Joe") & col("property")).then(1).otherwise(0)
    asked = total(when(col("b")).then(LOW - 1).otherwise(0) + mine)
    others = np.exp(log_binomial(n - 1, 0.5))
    return Counterexample(
        "digit",
        "the sum of (1 - 2^-30) b + 2^-30 [Joe and property], b a fair coin of every row",
        _passes((n - 1) * (1 - 1 / LOW) ** 2 / 4),
        shifted_delta(others, 1, EPSILON, span=LOW - 1),
        _refusal(
            asked,
            schema,
            {"b": 0.49, "property": 0.49},
            {"Joe": 1, "other": n - 1},
        ),
        "an exact sum is exact in every digit: the last one spells Joe's bit",
    )


def _public() -> Counterexample:
    n = 1000
    schema = Schema(Flag("even", public=True), Flag("property"), _name())
    joe = col("name") == "Joe"
    asked = count(where=(col("even") & ~joe) | (joe & col("property")))
    sizes: dict[object, int] = {
        (True, "other"): n // 2,
        (False, "other"): n // 2 - 1,
        (False, "Joe"): 1,
    }
    return Counterexample(
        "public",
        "how many rows have an even number and are not Joe, or are Joe and have the property",
        _passes(n / 4),
        shifted_delta(np.ones(1), 1, EPSILON),  # the public count is a constant
        _refusal(asked, schema, {"property": 0.4}, sizes),
        "variance that everybody can look up hides nothing: subtract the public count",
    )


def _span() -> Counterexample:
    n = 10**4
    schema = Schema(Category("value", ["nothing", "whole"]))
    value = col("value")
    asked = total(
        when(value == "whole").then(4).otherwise(when(value == "nothing").then(0).otherwise(1))
    )
    others = np.exp(log_binomial(n, 0.5))
    return Counterexample(
        "span",
        "a sum whose rows add 0 or 1, each as likely, and hardly ever 1/4",
        _passes(n / 4),
        shifted_delta(others, 1, EPSILON, span=4),
        _refusal(asked, schema, {"value": 0.49}, {None: n}),
        "sums of 0 and 1 are whole numbers: a quarter stands out, however many rows there are",
    )


MAKERS = {"sparse": _sparse, "digit": _digit, "public": _public, "span": _span}


def _name() -> Category:
    return Category("name", ["Joe", "other"], public=True)


def _passes(variance: float) -> PrintedCheck:
    return theorem_2(np.array([[variance]]), EPSILON, DELTA)


def _refusal(
    asked: Statistic,
    schema: Schema,
    least: Mapping[str, float],
    sizes: Mapping[object, int],
) -> str:
    """Why the certificate refuses, or nothing if it does not."""
    shares = {name: Fraction(repr(share)) for name, share in least.items()}
    program = bind(asked, schema, grid=NoiseGrid(0)).sums
    domain = Domain.of([program], schema, shares)  # type: ignore[list-item]
    rows = [sizes.get(_key(given), 0) for given in domain.classes()]
    try:
        certify(domain, rows, Assumptions(EPSILON, repr(DELTA), 0, shares))
    except UnsafeExactly as refusal:
        return str(refusal)
    return ""


def _key(given: Mapping[str, object]) -> object:
    values = tuple(given.values())
    return (values[0] if len(values) == 1 else values) if values else None
