"""Stated confidence of derived answers holds, though their parts share noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.kernel.reuse.test_store import DOMAIN, bound, put, store_of, sums

from sulq import cdf, col, count, histogram, mean, total, variance
from sulq.answers.statistics import read_derived
from sulq.kernel.noise.laws import DiscreteGaussian
from sulq.kernel.reuse.estimate import LinearEstimate

TIMES = 4_000
ILL = col("ill")
OLD = col("age") >= 3
REST = ~ILL | ILL.is_null()
BELOW = [count(where=(col("age") >= 0) & (col("age") < k)) for k in (1, 3)]
PEOPLE = [row for row in DOMAIN if row["age"] is not None] * 30


def simulated(found: LinearEstimate, spread: float, confidence: float = 0.95) -> np.ndarray:
    """How often the interval holds the truth, with noise of `spread` on every stored sum."""
    random = np.random.default_rng(23)
    bare = found.bound
    truth = bare.lifted(sums(bare, PEOPLE))
    keys = sorted({(s.seq, s.place) for each in found.estimates for s in each})
    at = {key: i for i, key in enumerate(keys)}
    weights = np.zeros((len(truth), len(keys)))
    for row, each in enumerate(found.estimates):
        for s in each:
            assert isinstance(s.law, DiscreteGaussian)
            weights[row, at[s.seq, s.place]] = float(s.weight) * float(s.law.sigma_squared) ** 0.5
    exact = np.asarray(read_derived(found, truth, None).value)
    inside = np.zeros(exact.shape)
    for _ in range(TIMES):
        noise = weights @ random.normal(0, 1, len(keys))
        values = [t + round(n) for t, n in zip(truth, noise, strict=True)]
        low, high = read_derived(found, values, None).interval(confidence)
        inside += (np.asarray(low) <= exact + 1e-9) & (exact - 1e-9 <= np.asarray(high))
    assert spread
    return inside / TIMES


def derived(stored: list[Any], asked: Any, spread: float) -> LinearEstimate:
    """From stored answers with so many standard deviations of noise, in their units."""
    known = [bound(question) for question in stored]
    store = store_of([], PEOPLE)
    for number, each in enumerate(known, start=1):
        laws = tuple(
            DiscreteGaussian(Fraction(round((spread * t.fine_unit) ** 2))) for t in each.terms
        )
        put(store, number, each, laws, tuple(each.lifted(sums(each, PEOPLE))))
    found = store.derive(bound(asked))
    assert found is not None
    return found


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("stored", "asked", "spread"),
    [
        ([total("age", where=OLD), count(where=OLD)], mean("age", where=OLD), 100.0),
        ([variance("age"), variance("age", where=ILL)], variance("age", where=REST), 10.0),
        ([mean("age"), mean("age", where=ILL)], mean("age", where=REST), 200.0),
        ([count("age"), count(where=col("age") >= 2)], histogram("age", edges=[0, 2, 4]), 50.0),
        ([*BELOW, count("age")], cdf("age", [0, 1, 3, 4]), 50.0),
        ([count(where=ILL), count(where=~ILL)], count(where=ILL.is_not_null()), 50.0),
    ],
    ids=["mean", "variance", "mean of the rest", "histogram", "cdf", "count"],
)
def test_the_stated_confidence_holds(stored: list[Any], asked: Any, spread: float) -> None:
    """4,000 answers: within 5 standard errors (5e-7) of 95 %; rounding and cuts only widen."""
    held = simulated(derived(stored, asked, spread), spread)
    five = 5 * np.sqrt(0.95 * 0.05 / TIMES)
    assert np.all(held > 0.95 - five)
    if asked.kind in ("mean", "histogram", "count"):
        assert np.all(held < 0.95 + five)


def test_errors_below_an_edge_are_those_of_the_answer_behind_it() -> None:
    """Counts below 1, below 3 and of all were asked: differences, which add up to them again."""
    found = derived([*BELOW, count("age")], cdf("age", [0, 1, 3, 4]), 50.0)
    reading = read_derived(found, found.bound.lifted(sums(found.bound, PEOPLE)), None)
    assert reading.standard_error == pytest.approx(np.array([0, 50, 50, 50]))
