"""One person's bit from what stands beside the noise: which floats occur, and how long it took.

Noise computed as scale * log(U), U a multiple of 2^-53, reaches few of the floats
there are (Mironov 2012), and a sum of floats rounds where its exponent says (Haney et al. 2022).
Each such trace sorts answers into a few cells; the cells are read on one half of the draws and
guessed from on the other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sulq.answers.oracle import Oracle
from sulq.attacks.audit import Values, all_credits, bits_question, lowest_bits, values_of
from sulq.attacks.result import SHARE, AttackResult, best_guess, guessed
from sulq.attacks.target import ROW, SECRET, Target
from sulq.errors import Refused
from sulq.kernel.query.expressions import Expression, col, hashed, lit, when
from sulq.kernel.query.sum_query import SumQuery

DRAWS = 8_000
NEARBY = 8
"""How far from its estimate a generator's whole number may lie, by rounding."""
EIGHTHS = {  # which k mod 8 occur in log(k / 2^53), for noise below 0 and above 0
    "every k": (range(8), range(8)),
    "even k": (range(0, 8, 2), range(0, 8, 2)),
    "numpy's k": (range(0, 8, 2), (0, 1, 4, 7)),  # U + U below; 2.0 - U - U above, as it rounds
}
Cells = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Trace:
    """Answers sorted into cells, 0 up, by something that noise alone should decide."""

    name: str
    cells: Cells


def support(target: Target, *, rows: int = DRAWS, seed: int = 3) -> AttackResult:
    """Every bit from its own noisy answer, by size and by which floats are possible."""
    secrets = target.secrets(seed, rows)
    oracle = target.publish(secrets)
    answer = oracle.ask(bits_question(rows), credits=all_credits(oracle))
    values = values_of(answer)
    spread = float(np.max(answer.standard_error)) / math.sqrt(2)
    scales = {float(spread)}
    if answer.credits:
        scales.add(float(target.promise.credits / target.promise.epsilon / answer.credits))
    traces = [Trace("size", np.zeros(rows, dtype=np.int64)), by_lowest_bit(values)]
    traces += [by_logarithm(values, scale, kind) for scale in scales for kind in EIGHTHS]
    large = (values > 0.5).astype(np.int64)
    training = np.arange(rows) % 2 == 0
    best = max(
        ((*_guesses(2 * trace.cells + large, secrets, training), trace) for trace in traces),
        key=lambda found: found[0],
    )
    right = int((best[1] == secrets)[~training].sum())
    lowest = lowest_bits(values)
    note = (
        f"by {best[2].name}; lowest binary digits from 2^{lowest[secrets].min()} with the secret,"
        f" from 2^{lowest[~secrets].min()} without"
    )
    bound = best_guess(target.promise, answer.credits)
    tested = int((~training).sum())
    return guessed("float support", right, tested, bound, answer.credits, note)


def by_lowest_bit(values: Values) -> Trace:
    """How many binary digits an answer has below its first: a sum's rounding shows there."""
    exponents = np.frexp(values)[1]
    digits = np.clip(exponents - lowest_bits(values), 0, 63)
    return Trace("binary digits", (digits + 64 * np.clip(exponents + 8, 0, 31)).astype(np.int64))


def by_logarithm(values: Values, scale: float, kind: str) -> Trace:
    """For how many k an answer is 0, or 1, plus scale * log(k / 2^53), up to sign.

    Every k being as likely, the larger number is the better guess: no trace of this noise
    tells more.
    """
    from_zero = _logarithms(values, 0.0, scale, kind)
    from_one = _logarithms(values, 1.0, scale, kind)
    name = f"the floats that {scale:.6g} log(k/2^53) can be, {kind}"
    return Trace(name, 1 + np.sign(from_one - from_zero))


def _logarithms(values: Values, truth: float, scale: float, kind: str) -> Cells:
    found = np.zeros(len(values), dtype=np.int64)
    for place, value in enumerate(values.tolist()):
        gap = value - truth
        middle = round(math.exp(-abs(gap) / scale) * 2**53)
        for k in range(max(1, middle - NEARBY), min(2**53, middle + NEARBY) + 1):
            noise = scale * math.log(k / 2**53)  # the C library's, as samplers call it
            signed = noise if gap < 0 else -noise
            if truth + signed == value and k % 8 in EIGHTHS[kind][gap >= 0]:
                found[place] += 1
    return found


def _guesses(
    cells: Cells, secrets: NDArray[np.bool_], training: NDArray[np.bool_]
) -> tuple[float, NDArray[np.bool_]]:
    """The commoner bit of each cell on the training half; how often it is right there."""
    width = int(cells.max()) + 1
    ones = np.bincount(cells[training & secrets], minlength=width)
    zeros = np.bincount(cells[training & ~secrets], minlength=width)
    seen = ones != zeros
    table = np.where(seen, ones > zeros, np.arange(width) % 2 == 1)  # else by size alone
    guesses = table[cells]
    return float((guesses == secrets)[training].mean()), guesses


# What the clock tells: work that depends on one row, and sampling that depends on its result.
#
# There is no code of the asker's on rows, so the attack asks the dearest expression there is and
# lets one row's secret decide whether it is worked out. A database in one's own process is not
# paced (docs/limits.md): there the figures are a measurement, not a defence.


NOTE = "on this machine, unpaced; a server must send replies on a clock (docs/limits.md)"
STEPS = 3
"""Each adds a hash and a quotient; more of them cost the asker's own time first."""
NEGLIGIBLE = 0.05
"""A rank correlation with the noise's size that tells nobody anything."""
Times = NDArray[np.float64]
Clock = Callable[[], float]


def timing(
    target: Target, *, pairs: int = 4, asks: int = 20, clock: Clock = time.perf_counter
) -> list[AttackResult]:
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
) -> AttackResult:
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
    return AttackResult(
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
) -> AttackResult:
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
    return AttackResult(
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
