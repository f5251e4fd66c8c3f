"""Theorem 3, corrected (S4.9): with its stop rule, noisy rounds number at most 6.25 B^2/margin^2.

Simulated on separable rows. The rule holds with probability 1 - beta, beta = 1e-7 here, so a
single violation among the runs has probability below 1e-6.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

BETA = 1e-7


def rounds_bound(
    longest: float, margin: float, eta: float = 0.25, nu_share: float = 0.125
) -> float:
    """((1 + eta) B / ((1 - eta) margin - 2 nu))^2, nu = nu_share * margin."""
    return ((1 + eta) * longest / ((1 - eta - 2 * nu_share) * margin)) ** 2


def least_count(R: float, width: int, margin: float, rounds: float) -> float:
    """The stop rule: fewer wrong rows than this, and noise could mislead."""
    length = math.sqrt(width) + math.sqrt(2 * math.log(2 * rounds / BETA))
    steady = 4 * math.sqrt(R) * math.sqrt(2 * math.log(4 * rounds / BETA))
    return max(8 * math.sqrt(4 * R) * length / margin, steady)  # range trap: R_eff = 4 R


def separable(random: np.random.Generator, rows: int, width: int, margin: float):
    w = random.normal(size=width)
    w /= np.linalg.norm(w)
    x = random.normal(size=(rows, width))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x = x[np.abs(x @ w) >= margin]
    return x, np.sign(x @ w)


def test_s49_golden():
    assert rounds_bound(1, 1) == pytest.approx(6.25)
    assert rounds_bound(2, 0.5) == pytest.approx(6.25 * 16)


@pytest.mark.parametrize("R", [1.0, 25.0, 400.0])
@pytest.mark.parametrize("margin", [0.1, 0.2, 0.3])
def test_noisy_rounds_end_within_the_bound(R, margin):
    random = np.random.default_rng(int(R + 100 * margin))
    most = rounds_bound(1, margin)
    taken = []
    for _ in range(6):
        x, y = separable(random, 60_000, 4, margin)
        w = np.zeros(4)
        rounds = 0
        while True:
            wrong = y * (x @ w) <= 0
            seen = wrong.sum() + random.normal(0, math.sqrt(R))
            if seen < least_count(R, 4, margin, most):
                break
            step = (y[:, None] * x)[wrong].sum(axis=0) + random.normal(0, math.sqrt(4 * R), 4)
            w = w + step / seen
            rounds += 1
            assert rounds <= most
        taken.append(rounds)
        assert (y * (x @ w) <= 0).sum() <= 2 * least_count(R, 4, margin, most)
    assert min(taken) >= 1  # it did run: the bound is about something


def test_the_printed_rounds_are_too_few_for_a_wide_range():
    """32 B^2/margin (as printed) is below what some rows need; 32 B^2/margin^2 is not."""
    printed, corrected = 32 / 0.05, 32 / 0.05**2
    assert printed < rounds_bound(1, 0.05) < corrected
