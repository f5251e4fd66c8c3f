"""S4.6: how far symmetric noise moves a spectrum. S0.8: the bias of a noisy covariance."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from sulq import Database, Number, Promise, Schema
from sulq.learn import SVD, NoisyResult
from sulq.learn.covariance import corrected


def bound(width: int, beta: float) -> float:
    """|E| <= sqrt(R) (2 sqrt d + 2 sqrt(ln(2/beta))), in sqrt(R). S4.6"""
    return 2 * math.sqrt(width) + 2 * math.sqrt(math.log(2 / beta))


def upper_noise(random: np.random.Generator, width: int) -> np.ndarray:
    """N(0, 1) in the upper triangle, mirrored."""
    upper = np.triu(random.normal(size=(width, width)))
    return upper + np.triu(upper, 1).T


def test_golden_bound():
    assert bound(20, 0.01) == pytest.approx(13.54788674, abs=5e-9)


def test_bound_holds_and_is_not_vacuous():
    random = np.random.default_rng(46)
    norms = [np.abs(np.linalg.eigvalsh(upper_noise(random, 20))).max() for _ in range(3_000)]
    beyond = sum(norm > bound(20, 0.01) for norm in norms)
    assert beyond <= binom.isf(1e-6, len(norms), 0.01)
    assert np.quantile(norms, 0.99) == pytest.approx(9.96, abs=0.25)  # empirical 99 %, S4.6
    assert bound(20, 0.01) < 1.5 * np.quantile(norms, 0.99)


SCHEMA = Schema(*(Number(f"n{k}", 0, 1) for k in range(5)))


def test_squared_singular_values_are_within_it():
    """Weyl: an eigenvalue moves by at most |E|. 6 fits at beta = 1e-7 / 6: false alarm 1e-7."""
    random = np.random.default_rng(1)
    x = np.clip(random.normal(0.4, [0.3, 0.25, 0.2, 0.1, 0.05], (3_000, 5)), 0, 1)
    frame = pd.DataFrame(x, columns=[f"n{k}" for k in range(5)])
    names = list(frame.columns)
    true = np.linalg.svd(x, compute_uv=False) ** 2
    moved = []
    for _ in range(6):
        db = Database.open(frame, SCHEMA, Promise(3, "1e-6"), ":memory:")
        noisy = SVD(5, method="paper", on_noise="warn")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoisyResult)
            noisy.fit(db, names)
        per_entry = noisy.noise_edge_ * len(x) / (math.sqrt(5) * (2 + 2 * 5 ** (-2 / 3)))
        moved.append(np.abs(noisy.singular_values_**2 - true).max() / per_entry)
    assert max(moved) <= bound(5, 1e-7 / 6)
    assert max(moved) >= bound(5, 1e-7 / 6) / 20


def test_golden_bias():
    """R = 400, n = 1000: the plug-in diagonal lacks 0.0004."""
    mean = np.array([0.3, 0.7])
    plain = np.outer(mean, mean)
    found = corrected(plain, mean, 400 / 1000**2)
    assert np.diag(found) == pytest.approx([0.0004, 0.0004], abs=1e-12)
    assert found[0, 1] == pytest.approx(0, abs=1e-15)


def test_correction_is_unbiased_where_the_plain_estimate_is_not():
    """100 x 4,000 coordinates: the mean of the diagonal has deviation 4.5e-5, the bias is 4e-4."""
    random = np.random.default_rng(8)
    rows, noise = 1_000, 20.0
    true = random.uniform(0.2, 0.8, 100)
    variance, found = 0.01, []
    for _ in range(4_000):
        mean = true + random.normal(size=100) * noise / rows
        second = np.diag(true**2 + variance + random.normal(size=100) * noise / rows)
        found.append(np.diag(corrected(second, mean, noise**2 / rows**2)).mean())
    spread = np.std(found) / math.sqrt(len(found))
    assert abs(np.mean(found) - variance) < 4.9 * spread  # false alarm 1e-6
    assert 4.9 * spread < noise**2 / rows**2 / 1.5
