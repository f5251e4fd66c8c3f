"""What the clock tells: work that depends on one row, and sampling that depends on its result.

There is no code of the asker's on rows, so the attack asks the dearest expression there is and
lets one row's secret decide whether it is worked out. A database in one's own process is not
paced (docs/limits.md): there the figures are a measurement, not a defence.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sulq.attacks.audit import all_credits, values_of
from sulq.attacks.finding import SHARE, Finding, best_guess
from sulq.attacks.target import ROW, SECRET, Target
from sulq.errors import Refused
from sulq.oracle import Oracle
from sulq.query.expressions import Expression, col, hashed, lit, when
from sulq.query.sum_query import SumQuery

NOTE = "on this machine, unpaced; a server must send replies on a clock (docs/limits.md)"
STEPS = 3
"""Each adds a hash and a quotient; more of them cost the asker's own time first."""
NEGLIGIBLE = 0.05
"""A rank correlation with the noise's size that tells nobody anything."""
Times = NDArray[np.float64]
Clock = Callable[[], float]


def timing(
    target: Target, *, pairs: int = 4, asks: int = 20, clock: Clock = time.perf_counter
) -> list[Finding]:
    """The last row's secret from the time of one reply; the noise's size from the same."""
    return [
        spinning(target, pairs=pairs, asks=asks, clock=clock),
        sampling(target, asks=pairs * asks, clock=clock),
    ]


def spinning(
    target: Target,
    *,
    pairs: int = 4,
    asks: int = 20,
    rows: int = 64,
    seed: int = 4,
    clock: Clock = time.perf_counter,
) -> Finding:
    """Pairs of tables that differ in the last row, asked in turn: which of two took longer?

    Each pair has its own luck in memory and caches, so the error is that of the pairs' mean.
    """
    shares, paid = [], Fraction(0)
    for number in range(pairs):
        tables: dict[int, Oracle] = {}
        for place in (number % 2, 1 - number % 2):  # who is published first is no sign of a secret
            secrets = target.secrets(seed + number, rows)
            secrets[-1] = bool(place)
            tables[place] = target.publish(secrets)
        slower = 0.0
        for turn in range(asks):
            taken = [0.0, 0.0]
            for place in (turn % 2, 1 - turn % 2):
                question, share = costly(rows - 1, turn), Fraction(1, asks - turn)
                taken[place], credits = _timed(tables[place], question, share, clock)
                paid = max(paid, credits)
            slower += 0.5 + 0.5 * float(np.sign(taken[1] - taken[0]))
        shares.append(slower / asks)
    reached = float(np.mean(shares))
    chance = math.sqrt(0.25 / (pairs * asks))
    luck = float(np.std(shares, ddof=1)) / math.sqrt(pairs) if pairs > 1 else 0.0
    bound = best_guess(target.promise, min(2 * paid, Fraction(target.promise.credits)))
    error = max(chance, luck)
    return Finding(
        "time of a reply", SHARE, reached, bound, error, pairs * asks, paid, NOTE, known_limit=True
    )


def costly(row: int, turn: int) -> SumQuery:
    """A count of one row if it has the secret and passes a long test of products and quotients."""
    number: Expression = col(ROW) + 2
    value: Expression = lit(0)
    for step in range(1, STEPS + 1):
        value = value + when(hashed(ROW, 1_000 * turn + step)).then(
            (number * step / (number + step)).clip(0, 1)
        ).otherwise(0)
    return SumQuery((lit(1),), (col(ROW) == row) & col(SECRET) & (value >= 0))


def sampling(
    target: Target, *, asks: int = 80, seed: int = 5, clock: Clock = time.perf_counter
) -> Finding:
    """Rank correlation between the time of a reply and the size of the noise in it."""
    secrets = target.secrets(seed, asks)
    oracle = target.publish(secrets)
    times, sizes, paid = [], [], Fraction(0)
    for row in range(asks):
        question = SumQuery((lit(1),), (col(ROW) == row) & col(SECRET))
        credits = all_credits(oracle, Fraction(1, asks - row))
        if credits is None and oracle.remaining < 1:
            break
        start = clock()
        answer = oracle.ask(question, credits=credits)
        times.append(clock() - start)
        sizes.append(abs(float(values_of(answer)[0]) - float(secrets[row])))
        paid += answer.credits
    asked = len(times)
    reached = abs(rank_correlation(np.array(times), np.array(sizes))) if asked > 2 else 0.0
    error = 1 / math.sqrt(max(asked - 1, 1))
    measure = "rank correlation of time and noise"
    return Finding(
        "time of the noise",
        measure,
        reached,
        NEGLIGIBLE,
        error,
        asked,
        paid,
        NOTE,
        known_limit=True,
    )


def _timed(
    oracle: Oracle, question: SumQuery, share: Fraction, clock: Clock
) -> tuple[float, Fraction]:
    """Seconds of one reply and its price; once all is spent, those of the refusal."""
    credits = all_credits(oracle, share)
    start, paid = clock(), Fraction(0)
    with suppress(Refused):
        paid = oracle.ask(question, credits=credits).credits
    return clock() - start, paid


def rank_correlation(left: Times, right: Times) -> float:
    """Spearman's rho; ties share their mean rank."""
    ranks = [_ranks(side) - (len(side) - 1) / 2 for side in (left, right)]
    norm = math.sqrt(float(ranks[0] @ ranks[0]) * float(ranks[1] @ ranks[1]))
    return float(ranks[0] @ ranks[1]) / norm if norm else 0.0


def _ranks(values: Times) -> Times:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middle: Times = (ends - counts + ends - 1) / 2
    return middle[place]
