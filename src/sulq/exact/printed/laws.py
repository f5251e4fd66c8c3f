"""True deltas where the law of every row is known: what the printed checks are measured against.

Teaching and comparison only: a certificate rests on lower bounds of chances, never on these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sulq.errors import InvalidQuery

Array = NDArray[np.float64]
MOST_ROWS = 10_000_000


def log_binomial(n: int, p: float) -> Array:
    """log Pr[Bin(n, p) = k], k = 0..n, by ratios from k = 0."""
    if not (0 < n <= MOST_ROWS and 0 < p < 1):
        raise InvalidQuery(f"want 1 to {MOST_ROWS} rows and 0 < p < 1, got {n} and {p:g}")
    k = np.arange(n, dtype=np.float64)
    steps = np.log((n - k) / (k + 1)) + (math.log(p) - math.log1p(-p))
    start = n * math.log1p(-p)
    logs: Array = start + np.concatenate([[0.0], np.cumsum(steps, dtype=np.longdouble)])
    return logs.astype(np.float64)


def binomial_delta(n: int, p: float, epsilon: float) -> float:
    """The delta of a sum of n Bernoulli(p) rows for one more row: two binomial tails. S1.7"""
    logs = log_binomial(n, p)
    padded = np.concatenate([[-np.inf], logs, [-np.inf]])
    return max(_excess(padded[:-1], padded[1:], epsilon), _excess(padded[1:], padded[:-1], epsilon))


def _excess(here: Array, there: Array, epsilon: float) -> float:
    """The sum of (P - e^eps Q)+ from logarithms, each term without cancellation."""
    held = here > epsilon + there
    gap = -np.expm1(epsilon + there[held] - here[held])
    return float(np.sum(np.exp(here[held]) * gap))


def sum_law(laws: Sequence[Sequence[float] | Array]) -> Array:
    """The law of a sum of independent rows, each on 0, 1, 2, ... grid steps. S1.7"""
    return reduce(np.convolve, (np.asarray(law, dtype=np.float64) for law in laws), np.ones(1))


def shifted_delta(law: Array, shift: int, epsilon: float, span: int = 1) -> float:
    """max of HS(law + shift || law) both ways; the law lives on multiples of `span`. S1.7, S1.5 D

    A shift off the span shares no outcome with the law: delta 1.
    """
    if span < 1 or shift % span:
        return 1.0
    moved = abs(shift) // span
    gap = np.zeros(moved)
    with np.errstate(divide="ignore"):
        here, there = np.log(np.concatenate([gap, law])), np.log(np.concatenate([law, gap]))
    return min(1.0, max(_excess(here, there, epsilon), _excess(there, here, epsilon)))


def modular_gap(modulus: int, laws: Sequence[Sequence[float]]) -> float:
    """Most total variation of (x + others) mod q over two values x: 0 if one is uniform. S1.1"""
    law = np.zeros(modulus)
    for value, chance in enumerate(sum_law(laws)):
        law[value % modulus] += chance
    return max(float(np.abs(np.roll(law, x) - law).sum()) / 2 for x in range(modulus))


def belief_in_a_head(heads: int, coins: int) -> float:
    """Pr[one coin is heads | k heads of n fair coins] = k/n: nothing new only at k = n/2. S1.1"""
    if not 0 <= heads <= coins or coins < 1:
        raise InvalidQuery(f"want 0 to {coins} heads of at least one coin, got {heads}")
    return heads / coins


def posterior_ratio(
    prior_ratio: float, others: Mapping[int, float], response: int, t: int, other: int
) -> float:
    """Pr[f=t | tau] / Pr[f=t' | tau] = prior ratio * p(tau - t) / p(tau - t'). S1.2

    Infinite where only t explains the response: no epsilon bounds it.
    """
    likely, instead = others.get(response - t, 0.0), others.get(response - other, 0.0)
    if likely == instead == 0:
        raise InvalidQuery("neither value can give this response")
    return math.inf if instead == 0 else prior_ratio * likely / instead
