"""GaussianMixture: EM, exact without noise; with it, components are found or it says so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.learn.exact_oracle import ExactOracle
from tests.people import publish

from sulq import InvalidQuery, Number, Promise, Schema
from sulq.learn import GaussianMixture, TooNoisy

SCHEMA = Schema(Number("x", 0, 10), Number("y", -5, 5))
START = [[2.0, -3.0], [8.0, 3.0]]


def cloud(rows=6_000, seed=4):
    random = np.random.default_rng(seed)
    second = random.random(rows) < 0.3
    x = np.where(second, random.normal(7, 0.5, rows), random.normal(3, 1.0, rows))
    y = np.where(second, random.normal(2, 0.8, rows), random.normal(-2, 0.4, rows))
    return pd.DataFrame({"x": x.clip(0, 10), "y": y.clip(-5, 5)})


def plain_em(points, means, rounds):
    """The same EM in NumPy, in coordinates."""
    k, d = means.shape
    weights, variances = np.full(k, 1 / k), np.full((k, d), 1 / 12 / k)
    for _ in range(rounds):
        logs = np.log(weights) - 0.5 * np.log(variances).sum(axis=1)
        far = (points[:, None, :] - means) ** 2 / variances
        logs = logs - 0.5 * far.sum(axis=2)
        shares = np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
        held = shares.sum(axis=0)
        weights = held / held.sum()
        means = shares.T @ points / held[:, None]
        variances = shares.T @ points**2 / held[:, None] - means**2
    return weights, means, variances


def test_without_noise_it_is_plain_em():
    data = cloud()
    found = GaussianMixture(2, means_init=START, rounds=6)
    found.fit(ExactOracle(publish(data, SCHEMA)), ["x", "y"])
    points = np.column_stack([data["x"] / 10, (data["y"] + 5) / 10])
    start = np.array([[0.2, 0.2], [0.8, 0.8]])
    weights, means, variances = plain_em(points, start, 6)
    assert found.weights_ == pytest.approx(weights, abs=1e-4)
    assert found.means_ == pytest.approx(means * 10 + [0, -5], abs=2e-3)
    assert found.covariances_ == pytest.approx(variances * 100, rel=1e-2)


@pytest.mark.slow
def test_without_noise_it_converges_to_the_components():
    data = cloud()
    found = GaussianMixture(2, random_state=1).fit(ExactOracle(publish(data, SCHEMA)), ["x", "y"])
    order = np.argsort(found.means_[:, 0])
    assert found.means_[order] == pytest.approx(np.array([[3, -2], [7, 2]]), abs=0.1)
    assert found.weights_[order] == pytest.approx([0.7, 0.3], abs=0.03)
    assert (found.predict(data) == found.predict_proba(data).argmax(axis=1)).all()
    assert found.sample(5).shape == (5, 2)


@pytest.mark.sample(1)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_components_are_found_through_noise(neighbours, kind):
    data = cloud(20_000)
    db = publish(data, SCHEMA, Promise(1, "1e-6", neighbours=neighbours))
    found = GaussianMixture(2, covariance_type=kind, random_state=1).fit(db, ["x", "y"])
    order = np.argsort(found.means_[:, 0])
    assert found.means_[order] == pytest.approx(np.array([[3, -2], [7, 2]]), abs=0.5)
    assert found.weights_[order] == pytest.approx([0.7, 0.3], abs=0.1)
    assert found.means_error_.max() < 0.5


def test_noise_alone_has_no_components():
    db = publish(cloud(40), SCHEMA, Promise("0.1", "1e-6"))
    with pytest.raises(TooNoisy):
        GaussianMixture(4, random_state=1).fit(db, ["x", "y"])


@pytest.mark.parametrize(
    "wrong",
    [{"n_components": 0}, {"covariance_type": "full"}, {"means_init": [[1.0]]}, {"rounds": -1}],
)
def test_wrong_settings_cost_nothing(wrong):
    db = publish(cloud(100), SCHEMA)
    with pytest.raises(InvalidQuery):
        GaussianMixture(**{"n_components": 2, **wrong}).fit(db, ["x", "y"])
    assert db.remaining == 100
