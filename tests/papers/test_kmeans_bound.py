"""Lemma 2 on k-means, its constants made explicit: how far one noisy round moves a mean. S4.8"""

from __future__ import annotations

import math

import numpy as np
import pytest

from sulq import Database, Number, Promise, Schema
from sulq.learn.cluster.kmeans import PAPER_SMALL, KMeans


def bound(width: int, variance: float, rows: float, beta: float, length: float) -> float:
    """With probability 1 - beta a noisy mean is within this of the true one. S4.8

    sqrt R (z |mu| + sqrt d + sqrt(2 ln(2/beta))) / (|S| - z sqrt R), z = sqrt(2 ln(4/beta)).
    """
    z = math.sqrt(2 * math.log(4 / beta))
    noise = math.sqrt(variance)
    assert rows > z * noise
    reach = z * length + math.sqrt(width) + math.sqrt(2 * math.log(2 / beta))
    return noise * reach / (rows - z * noise)


def test_the_golden_value() -> None:
    assert bound(8, 400, 3_000, 0.01, 1.0) == pytest.approx(0.06513864998, rel=1e-9)


@pytest.mark.parametrize(
    ("width", "rows", "length"), [(8, 3_000, 1.0), (2, 1_200, 0.5), (30, 900, 2)]
)
def test_the_bound_holds_and_is_not_vacuous(width: int, rows: int, length: float) -> None:
    """Exceeded at most beta of the time; at least a third of the 99 % point of the error."""
    random, beta, noise, trials = np.random.default_rng(2006), 0.01, 20.0, 40_000
    mean = np.zeros(width)
    mean[0] = length
    sizes = rows + noise * random.standard_normal(trials)
    sums = rows * mean + noise * random.standard_normal((trials, width))
    errors = np.linalg.norm(sums / sizes[:, None] - mean, axis=1)
    limit = bound(width, noise**2, rows, beta, length)
    # 400 expected at most; 500 of 40,000 have a chance below 1e-6
    assert (errors > limit).sum() < 500
    assert np.quantile(errors, 0.99) > limit / 3
    assert limit < length / 2


def test_the_products_own_round_keeps_the_bound() -> None:
    """One paper round of KMeans against the exact means: every cluster within the bound."""
    random = np.random.default_rng(1)
    which = np.arange(6_000) % 2
    points = np.clip(
        np.where(which, 0.7, 0.3)[:, None] + 0.05 * random.normal(size=(6_000, 4)), 0, 1
    )
    names = [f"x{i}" for i in range(4)]
    schema = Schema(*(Number(name, 0, 1) for name in names))
    start = np.array([[0.3] * 4, [0.7] * 4])
    beta = 5e-7  # two clusters: false alarm below 1e-6
    promise = Promise(1, "1e-6", neighbours="add-remove")
    database = Database.open(dict(zip(names, points.T, strict=True)), schema, promise, ":memory:")
    model = KMeans(2, init=start, rounds=1, method="paper").fit(database, names)
    noise = float(model.sizes_error_[0])
    assert noise > 1  # there is noise to speak of
    for place in (0, 1):
        mine = points[which == place]
        true = mine.mean(axis=0)
        limit = bound(4, noise**2, len(mine), beta, float(np.linalg.norm(true)))
        assert np.linalg.norm(model.cluster_centers_[place] - true) < limit < 0.1


def test_small_clusters_are_left_alone() -> None:
    """The exception: an update is skipped under 2 z sqrt R rows, by the noisy size. S4.8"""
    z = math.sqrt(2 * math.log(4 / 0.01))
    assert math.isclose(PAPER_SMALL, 2 * z)
    # there the bound is finite: a noisy size of 2 z sqrt R means a true one above z sqrt R
    assert bound(8, 1.0, PAPER_SMALL, 0.01, 1.0) < (z + math.sqrt(8) + z) / z
