"""Theorem 5 and its STAT, corrected: S0.10, S4.11, S4.12. How often to ask, and how many rows.

The simulated test asks a real table; a miss of a sound program has probability below 1e-6.
"""

from __future__ import annotations

import math

import pytest
from scipy.stats import binom, norm
from tests.people import frame, publish

from sulq import Promise, col
from sulq.learn import stat
from sulq.learn.statistical_query import least_rows, repetitions, stat_quote

R = 2763.102


def chance_of_missing(variance: float, times: int, tau: float, rows: int) -> float:
    """The mean of `times` answers is off by more than tau * rows."""
    return 2 * norm.sf(tau * rows / math.sqrt(variance / times))


def test_s411_the_printed_rule_misses_and_the_corrected_one_does_not():
    printed = math.ceil(R / (0.01 * 500**2))
    assert printed == 2
    assert chance_of_missing(R, printed, 0.01, 500) == pytest.approx(0.8929914743, rel=1e-6)
    times = repetitions(R, 0.01, 500, queries=50, failure=0.01)
    assert times == 2036
    missed = 50 * chance_of_missing(R, times, 0.01, 500)
    assert missed == pytest.approx(8.853263947e-04, rel=1e-6)
    assert missed < 0.01


def test_s412_rows_that_suffice():
    found = least_rows(1, 1e-6, [0.01] * 50, 0.01)
    assert found == pytest.approx(22560.63427, rel=1e-6)
    # with that many rows, T = 2q questions' worth of noise meets every tolerance
    T, q = 100, 50
    noise = 2 * T * math.log(1e6)
    times = repetitions(noise, 0.01, math.ceil(found), q, 0.01)
    assert q * times <= T


def test_s410_one_question_costs_what_the_repetitions_would():
    """Precision adds: t answers at R are one at R/t, at the same price."""
    db = publish(promise=Promise(1, "1e-6"))
    (once,) = stat_quote(db, col("smoker"), 0.05, confidence=0.99)
    (finer,) = stat_quote(db, col("smoker"), 0.05 / 3, confidence=0.99)
    assert float(finer.credits / once.credits) == pytest.approx(9, rel=0.01)


def test_shares_keep_their_tolerance_and_the_tolerance_is_not_vacuous():
    """300 shares at confidence .9: misses follow Bin(300, .1); the exact law decides."""
    db = publish(promise=Promise(20, "1e-6", queries=100_000))
    data = frame()
    misses = 0
    for k in range(300):
        found = stat(db, col("income") >= 200 * (k + 1), 0.02, confidence=0.9)
        misses += abs(float(found) - (data["income"] >= 200 * (k + 1)).mean()) > 0.02
    assert binom.sf(misses - 1, 300, 0.1) > 1e-6
    assert binom.cdf(misses, 300, 0.1) > 1e-6
