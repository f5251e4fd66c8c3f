"""Theorem 3, corrected (S4.9): with its stop rule, noisy rounds number at most 6.25 B^2/margin^2.

Simulated on separable rows with the product's own stop rule; its failures are drawn with fixed
seeds. Then the product's own rounds, without noise and with an oracle that says its error.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from tests.learn.exact_oracle import ExactOracle
from tests.people import publish

from sulq import Category, Number, Schema
from sulq.learn import Perceptron
from sulq.learn.linear.perceptron import least_wrong


def rounds_bound(
    longest: float, margin: float, eta: float = 0.25, nu_share: float = 0.125
) -> float:
    """((1 + eta) B / ((1 - eta) margin - 2 nu))^2, nu = nu_share * margin."""
    return ((1 + eta) * longest / ((1 - eta - 2 * nu_share) * margin)) ** 2


def least_count(R: float, width: int, margin: float, rounds: float) -> float:
    """The product's stop rule: fewer wrong rows than this, and noise could mislead."""
    return least_wrong(math.sqrt(4 * R), math.sqrt(R), width, margin, math.ceil(rounds))


def separable(random: np.random.Generator, rows: int, width: int, margin: float):
    w = random.normal(size=width)
    w /= np.linalg.norm(w)
    x = random.normal(size=(rows, width))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x = x[np.abs(x @ w) >= margin]
    return x, np.sign(x @ w)


def test_s49_golden():
    """Noise of 2 on each of 9 coordinates, 1 on the number, 100 rounds, 0.01 for a failure."""
    assert rounds_bound(1, 1) == pytest.approx(6.25)
    assert rounds_bound(2, 0.5) == pytest.approx(6.25 * 16)
    mean = 8 * 2 * (3 + math.sqrt(2 * math.log(200 / 0.01))) / 0.1
    assert least_wrong(2, 1, 9, 0.1, 100) == pytest.approx(mean) == pytest.approx(1192.080480)
    number = 4 * math.sqrt(2 * math.log(400 / 0.01))
    assert least_wrong(2, 1, 9, None, 100) == pytest.approx(number) == pytest.approx(18.41446184)
    assert least_wrong(0, 1, 9, 0.1, 100) == pytest.approx(number)


def table(margin: float) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows (1, a - 1/2, b - 1/2) with <w, row> y >= margin for a unit w that has no constant."""
    random = np.random.default_rng(9)
    x = random.random((4_000, 2))
    score = (x - 0.5) @ [0.8, 0.6]
    x, score = x[np.abs(score) >= margin], score[np.abs(score) >= margin]
    frame = pd.DataFrame(x, columns=["a", "b"])
    frame["label"] = np.where(score > 0, "yes", "no")
    rows = np.column_stack([np.ones(len(x)), x - 0.5])
    return frame, rows, np.sign(score)


SCHEMA = Schema(Number("a", 0, 1), Number("b", 0, 1), Category("label", ["no", "yes"]))


@pytest.mark.parametrize("margin", [0.1, 0.2])
def test_the_products_own_rounds_end_within_the_bound(margin):
    """Without noise: the same rounds as plain ones, and the rule stops when no row is wrong."""
    frame, rows, y = table(margin)
    oracle = ExactOracle(publish(frame, SCHEMA))
    most = rounds_bound(float(np.linalg.norm(rows, axis=1).max()), margin)
    found = Perceptron(math.ceil(most), margin=margin, method="paper").fit(
        oracle, ["a", "b"], "label"
    )
    w, taken = np.zeros(3), 0
    while (wrong := y * (rows @ w) <= 0).any():
        w, taken = w + (y[:, None] * rows)[wrong].mean(axis=0), taken + 1
    assert found.n_iter_ == taken
    assert 1 <= taken < most / 2
    assert found.score(frame, frame["label"]) == 1
    assert len(oracle.asked) == 2 * taken + 1  # the last count, and no sum after it


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
