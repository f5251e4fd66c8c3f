"""Duan's checks for sums without noise, as printed and as corrected, side by side.

For teaching and comparison: they read second moments of the data, and passing them is not safe.
What may be released is decided by `sulq.exact.certificate` alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sulq.errors import InvalidQuery
from sulq.exact.printed.laws import binomial_delta, log_binomial
from sulq.kernel.accounting.gaussian import gaussian_mu

Array = NDArray[np.float64]
MOST_SIGNS = 10
"""Questions for which every sign pattern is tried."""
BERRY_ESSEEN = 0.4748
"""The constant for identical rows that the convergence argument would use. S1.6"""
ZERO = 1e-9
"""Of the largest eigenvalue: what counts as none."""


@dataclass(frozen=True, slots=True)
class PrintedCheck:
    """One check: its figure and what it must reach, as printed and as corrected.

    Where nothing must be reached, `wanted` is None and `passes` only says whether it is true.
    """

    claim: str
    name: str
    printed: float
    wanted: float | None
    passes: bool
    corrected: float
    corrected_wanted: float | None
    corrected_passes: bool
    why: str
    not_safe: str


def needed_variance(epsilon: float, delta: float, questions: int = 1) -> float:
    """2 m^2 ln(2m/delta) / eps^2, as printed. S1.3 (m = 1), S1.4"""
    return 2 * questions**2 * math.log(2 * questions / delta) / epsilon**2


def enough_variance(epsilon: float, delta: float, questions: int = 1) -> float:
    """m / mu(eps, delta)^2: what a Gaussian sum needs, the shift's norm being sqrt m. S1.4, TB.1"""
    return questions / float(gaussian_mu(epsilon, delta)) ** 2


def fair_coins_needed(epsilon: float, delta: float) -> int:
    """The fewest fair coins whose exact total keeps (epsilon, delta). S1.3"""
    low, high = 0, 1
    while binomial_delta(high, 0.5, epsilon) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        kept = binomial_delta(middle, 0.5, epsilon) <= delta
        low, high = (low, middle) if kept else (middle, high)
    return high


# --- one law for the sum ------------------------------------------------------------------------


def lemma_2(variance: float, epsilon: float, delta: float) -> PrintedCheck:
    """A Gaussian sum: variance against 2 ln(2/delta)/eps^2. S1.3"""
    return lemma_3(variance, 1, epsilon, delta)


def lemma_3(variance: float, questions: int, epsilon: float, delta: float) -> PrintedCheck:
    """m Gaussian sums of at least this variance: m is enough, m^2 splits epsilon. S1.4"""
    wanted = needed_variance(epsilon, delta, questions)
    enough = enough_variance(epsilon, delta, questions)
    claim, name = ("S1.3", "Lemma 2") if questions == 1 else ("S1.4", "Lemma 3")
    return PrintedCheck(
        claim,
        f"{name}: least variance of a sum",
        variance,
        wanted,
        variance >= wanted,
        variance,
        enough,
        variance >= enough,
        f"an independent Gaussian of variance {enough:.6g} would do: the printed bound asks"
        f" {wanted / enough:.3g} times that",
        "it needs the law of the sum given all the adversary knows, exactly known, symmetric"
        " and on a lattice that every change fits; a variance read off the data shows none of it",
    )


def lemma_2_coins(rows: int, epsilon: float, delta: float) -> PrintedCheck:
    """n fair coins: 64 ln(2/delta)/eps^2 as printed, the exact binomial as corrected. S1.3"""
    wanted = math.ceil(64 * math.log(2 / delta) / epsilon**2)
    enough = fair_coins_needed(epsilon, delta)
    return PrintedCheck(
        "S1.3",
        "Lemma 2: fair coins",
        rows,
        wanted,
        rows >= wanted,
        rows,
        enough,
        rows >= enough,
        f"the exact binomial law needs {enough} fair coins, not {wanted}",
        "a biased coin is asymmetric and not covered by the lemma, and rows that the adversary"
        " knows are no coins",
    )


def lemma_2_laplace(scale: float, epsilon: float) -> PrintedCheck:
    """A Laplace sum of scale 1/eps is enough; the scale is not its standard deviation. S1.3"""
    deviation = math.sqrt(2) * scale
    return PrintedCheck(
        "S1.3",
        "Lemma 2: Laplace",
        scale,
        1 / epsilon,
        scale >= 1 / epsilon,
        deviation,
        math.sqrt(2) / epsilon,
        scale >= 1 / epsilon,
        "lambda is printed as the standard deviation; it is the scale, the deviation is"
        " sqrt(2) lambda",
        "no sum of bounded rows has a Laplace law",
    )


# --- second moments of a batch ------------------------------------------------------------------


def theorem_2(covariance: Array, epsilon: float, delta: float) -> PrintedCheck:
    """lambda_min(n V) against 2 m^2 ln(2m/delta)/eps^2; corrected: 1/max v' S^-1 v. S1.5"""
    m = len(covariance)
    least = smallest_eigenvalue(covariance)
    wanted = needed_variance(epsilon, delta, m)
    effective = effective_variance(covariance)
    enough = enough_variance(epsilon, delta)
    return PrintedCheck(
        "S1.5",
        "Theorem 2: smallest eigenvalue",
        least,
        wanted,
        least >= wanted,
        effective,
        enough,
        effective >= enough,
        "V = E[aa^T] - tau tau^T, with a minus; corrected: 1/(v' S^-1 v) for the worst change v"
        f" of one row, which no row can push below lambda_min/m = {least / m:.4g}",
        "variance counts what the adversary already knows, and says nothing about digits,"
        " lattices or rare values: see the four counterexamples",
    )


def theorem_4(covariance: Array, epsilon: float, delta: float, rows: int) -> PrintedCheck:
    """The norm filter: every ||x|| against (m/eps) sqrt(2 ln(2m/delta)). S1.9"""
    least = math.sqrt(max(0.0, float(np.min(np.diag(covariance)))))
    wanted = math.sqrt(needed_variance(epsilon, delta, len(covariance)))
    enough = math.sqrt(enough_variance(epsilon, delta))
    return PrintedCheck(
        "S1.9",
        "Theorem 4: shortest centred question",
        least,
        wanted,
        least >= wanted,
        least,
        enough,
        least >= enough,
        "||x|| is sqrt(n) times the standard deviation of a row"
        f" ({least / math.sqrt(max(rows, 1)):.4g} here), not the standard deviation",
        "it is necessary only: two long questions may differ in one person",
    )


def theorem_5(
    covariance: Array, epsilon: float, delta: float, questions: int | None = None
) -> PrintedCheck:
    """How far the last question lies from the span of those before it. S1.10

    ||r||^2 = x'x - c' (XX')^+ c with c = Xx; as printed, r = x - X'Xx.
    """
    before, c, own = covariance[:-1, :-1], covariance[:-1, -1], float(covariance[-1, -1])
    inverse = np.linalg.pinv(before, rcond=ZERO, hermitian=True)
    right = math.sqrt(max(0.0, own - float(c @ inverse @ c)))
    printed = math.sqrt(max(0.0, own - 2 * float(c @ c) + float(c @ before @ c)))
    wanted = math.sqrt(needed_variance(epsilon, delta, questions or len(covariance)))
    enough = math.sqrt(enough_variance(epsilon, delta))
    return PrintedCheck(
        "S1.10",
        "Theorem 5: distance of the last question to the span",
        printed,
        wanted,
        printed >= wanted,
        right,
        enough,
        right >= enough,
        "the printed x - X'Xx lacks the inverse of XX'; with it the distance lies between the"
        f" smallest singular value {math.sqrt(smallest_eigenvalue(covariance)):.4g} and"
        f" ||x|| = {math.sqrt(max(0.0, own)):.4g}",
        "it is necessary only: the new question may stand clear while the batch does not",
    )


def averaging(covariance: Array, weights: Sequence[float] | None = None) -> PrintedCheck:
    """What m answers together say about a value that adds a_i to each. S1.13

    Best variance 1/(a' S^-1 a) >= lambda_min/m, equal only along the smallest eigenvalue.
    """
    m = len(covariance)
    a = np.ones(m) if weights is None else np.asarray(weights, dtype=np.float64)
    bound = smallest_eigenvalue(covariance) / m
    quadratic = _quadratic(covariance, a)
    best = 0.0 if math.isinf(quadratic) else 1 / quadratic
    return PrintedCheck(
        "S1.13",
        "Section 7.2: averaging",
        bound,
        None,
        best >= bound * (1 - ZERO),
        best,
        None,
        True,
        "take s - (n-1) mu from each answer; the best mixture of them has this variance, the"
        " printed bound is below it unless the value lies along the smallest eigenvalue",
        "a large variance of the best estimate is no privacy: a low digit is still read off",
    )


def smallest_eigenvalue(covariance: Array) -> float:
    """lambda_min of a covariance, 0 where rounding made it negative."""
    return max(0.0, float(np.linalg.eigvalsh(covariance)[0]))


def effective_variance(covariance: Array) -> float:
    """1 / max of v' S^-1 v over changes v in [-1, 1]^m; 0 for a singular S. S1.5

    The maximum of a convex function lies on a corner; beyond 10 questions sum |S^-1_jk| bounds it.
    """
    values = np.linalg.eigvalsh(covariance)
    if values[0] <= ZERO * max(values[-1], 1e-300):
        return 0.0
    inverse = np.linalg.inv(covariance)
    if len(covariance) > MOST_SIGNS:
        return 1 / float(np.abs(inverse).sum())
    corners = np.array(list(product((1.0, -1.0), repeat=len(covariance))))
    return 1 / float(np.max(np.einsum("ki,ij,kj->k", corners, inverse, corners)))


def _quadratic(covariance: Array, a: Array) -> float:
    """a' S^-1 a; infinite if a sticks out of the range of a singular S."""
    values, vectors = np.linalg.eigh(covariance)
    along = vectors.T @ a
    held = values > ZERO * max(float(values[-1]), 1e-300)
    if np.any(np.abs(along[~held]) > ZERO * float(np.linalg.norm(a))):
        return math.inf
    return float(np.sum(along[held] ** 2 / values[held]))


# --- convergence --------------------------------------------------------------------------------


def berry_esseen(rows: int, epsilon: float, delta: float) -> PrintedCheck:
    """Rows for which 0.4748/sqrt n <= delta, against what the exact law needs. S1.6"""
    wanted = (BERRY_ESSEEN / delta) ** 2
    enough = fair_coins_needed(epsilon, delta)
    return PrintedCheck(
        "S1.6",
        "Section 7.1: convergence of fair coins",
        rows,
        wanted,
        rows >= wanted,
        rows,
        enough,
        rows >= enough,
        f"the distance to the Gaussian is at most {BERRY_ESSEEN / math.sqrt(max(rows, 1)):.4g};"
        f" below delta only from {wanted:.4g} rows; the exact law needs {enough} fair coins",
        "it bounds distribution functions, not likelihood ratios: the total variation between a"
        " lattice and a Gaussian is always 1",
    )


def distance_to_gaussian(coins: int) -> float:
    """max |F_Bin(n, 1/2) - Phi|, at the jumps from both sides. S1.6"""
    if coins < 1:
        raise InvalidQuery(f"want at least one coin, got {coins}")
    after = np.cumsum(np.exp(log_binomial(coins, 0.5)))
    before = np.concatenate([[0.0], after[:-1]])
    k = np.arange(coins + 1)
    scale = math.sqrt(2) * math.sqrt(coins) / 2
    normal = np.array([math.erfc(-(x - coins / 2) / scale) / 2 for x in k])
    return float(max(np.max(np.abs(after - normal)), np.max(np.abs(before - normal))))
