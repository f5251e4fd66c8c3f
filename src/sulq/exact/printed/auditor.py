"""Duan's auditor (Figure 2), online and offline, and the simulator that was to make it safe.

A denial is a function of second moments, so it leaks; our own refusals read no row. S1.11
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sulq.errors import InvalidQuery
from sulq.exact.printed.checks import (
    PrintedCheck,
    effective_variance,
    enough_variance,
    needed_variance,
    smallest_eigenvalue,
)
from sulq.exact.printed.laws import log_binomial
from sulq.exact.printed.moments import Moments

MOST_EXACT = 1_000_000
"""Rows for which Theorem 6 is computed from the binomial law itself."""
LEAKS = (
    "each denial is a function of sums of g_i g_j that nobody audited, and near the threshold a"
    " simulated decision differs from the real one"
)


@dataclass(frozen=True, slots=True)
class AuditorDecision:
    """What the auditor did with one question."""

    statistic: float
    answered: bool


@dataclass(frozen=True, slots=True)
class Audit:
    """Every decision, as printed and as corrected, against one threshold."""

    wanted: float
    printed: tuple[AuditorDecision, ...]
    corrected: tuple[AuditorDecision, ...]
    why: str
    not_safe: str


def online(moments: Moments, epsilon: float, delta: float, questions: int | None = None) -> Audit:
    """Questions one after the other, m of them at most. Figure 2, S1.11

    As printed: sigma_m(X) with every question so far as a row, rejected ones too, hence 0 before
    the m-th question, and for ever after a duplicate. Corrected: sigma_k of the k answered ones.
    """
    asked = len(moments.sums)
    m = asked if questions is None else questions
    if m < asked:
        raise InvalidQuery(f"at most {m} questions were announced, got {asked}")
    wanted = math.sqrt(needed_variance(epsilon, delta, m))
    printed, corrected = [], []
    kept: list[int] = []
    for place in range(asked):
        seen = place + 1
        statistic = _singular(moments, range(seen)) if seen == m else 0.0
        printed.append(AuditorDecision(statistic, statistic >= wanted))
        statistic = _singular(moments, [*kept, place])
        corrected.append(AuditorDecision(statistic, statistic >= wanted))
        if statistic >= wanted:
            kept.append(place)
    return Audit(
        wanted,
        tuple(printed),
        tuple(corrected),
        "as printed it takes the m-th singular value of k < m rows, which is 0, and keeps what it"
        " rejected; corrected, it takes the k-th of the answered ones. Both deny repeats, which"
        " could be replayed for nothing",
        LEAKS,
    )


def offline(
    moments: Moments, epsilon: float, delta: float, answered: Sequence[int] | None = None
) -> PrintedCheck:
    """The same check on a finished transcript: the questions that were answered, together."""
    places = range(len(moments.sums)) if answered is None else answered
    m = len(places)
    if not m:
        raise InvalidQuery("a transcript without answers has nothing to check")
    statistic = _singular(moments, places)
    wanted = math.sqrt(needed_variance(epsilon, delta, m))
    effective = math.sqrt(effective_variance(moments.only(list(places)).covariance))
    enough = math.sqrt(enough_variance(epsilon, delta))
    return PrintedCheck(
        "S1.11",
        "Figure 2 offline: smallest singular value of the transcript",
        statistic,
        wanted,
        statistic >= wanted,
        effective,
        enough,
        effective >= enough,
        f"sigma_{m}(X): all that was answered, at once",
        "questions that were chosen after earlier answers are not covered at all: the answers"
        " condition the rows (S1.14)",
    )


def _singular(moments: Moments, places: Sequence[int]) -> float:
    """The smallest singular value of the centred rows X of these questions."""
    return math.sqrt(smallest_eigenvalue(moments.only(list(places)).covariance))


# --- Theorem 6 ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Simulation:
    """The auditor's statistic on the table and on tables drawn from its known law."""

    real: float
    drawn: tuple[float, ...]
    close: float
    same_decision: float
    why: str
    not_safe: str


def simulated(
    real: Moments, drawn: Sequence[Moments], within: float, epsilon: float, delta: float
) -> Simulation:
    """The simulator of Theorem 6: Safe on fresh tables of the same law instead of the real one."""
    if not drawn:
        raise InvalidQuery("a simulation needs at least one drawn table")
    places = range(len(real.sums))
    here = _singular(real, places)
    there = tuple(_singular(table, places) for table in drawn)
    wanted = math.sqrt(needed_variance(epsilon, delta, len(places)))
    return Simulation(
        here,
        there,
        sum(abs(x - here) < within for x in there) / len(there),
        sum((x >= wanted) == (here >= wanted) for x in there) / len(there),
        "the proof bounds lambda_min(V); the auditor returns sigma_m(X) = sqrt((n-1) lambda),"
        " whose spread does not shrink with n",
        LEAKS,
    )


def spread(rows: int, share: float) -> float:
    """The standard deviation of sigma_1(X) for a 0/1 question; |1-2p|/2 in the limit. S1.11"""
    weights, norms = _norms(rows, share)
    mean = float(weights @ norms)
    return math.sqrt(float(weights @ (norms - mean) ** 2))


def closeness(rows: int, share: float, within: float) -> float:
    """Pr[|Sim - Safe| < within] of two tables of one law; Theorem 6 says 1 - small. S1.11"""
    weights, norms = _norms(rows, share)
    order = np.argsort(norms, kind="stable")
    weights, norms = weights[order], norms[order]
    below = np.concatenate([[0.0], np.cumsum(weights)])
    upper = np.searchsorted(norms, norms + within, side="left")
    lower = np.searchsorted(norms, norms - within, side="right")
    return float(weights @ (below[upper] - below[lower]))


def theorem_6(rows: int, share: float, within: float = 0.1) -> PrintedCheck:
    """Does the simulator come close? As printed surely; in truth as often as two normals. S1.11"""
    limit = abs(1 - 2 * share) / 2
    if rows <= MOST_EXACT:
        near, here = closeness(rows, share, within), spread(rows, share)
    else:  # the limit itself
        near, here = math.erf(within / (2 * limit)) if limit else 1.0, limit
    return PrintedCheck(
        "S1.11",
        f"Theorem 6: chance that simulator and auditor are within {within:g}",
        1.0,
        None,
        False,
        near,
        None,
        True,
        f"the statistic's standard deviation is {here:.4g} here and stays near"
        f" |1-2p|/2 = {limit:.4g} however many rows there are",
        LEAKS,
    )


def _norms(rows: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Chances and values of ||x|| = sqrt(k (n-k) / n), k ~ Bin(n, p)."""
    weights = np.exp(log_binomial(rows, share))
    k = np.arange(rows + 1, dtype=np.float64)
    held = weights > 0
    return weights[held], np.sqrt(k * (rows - k) / rows)[held]
