"""LinearSVC: scikit-learn's hinge objective without noise, useful with it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC as Plain
from tests.learn.exact_oracle import ExactOracle
from tests.people import publish

from sulq import Category, Flag, Number, Promise, Schema
from sulq.learn import LinearSVC, NoisyResult

NAMES = ["x0", "x1", "x2", "x3"]
SCHEMA = Schema(
    *(Number(name, -4, 4) for name in NAMES), Flag("yes"), Category("kind", ["a", "b", "c"])
)


def rows(count: int = 1_500, seed: int = 2) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    x = random.normal(size=(count, 4)).clip(-4, 4)
    x[:, 3] = 0.7 * x[:, 0] + 0.3 * x[:, 3]
    score = x @ [1.5, -1.0, 0.0, 0.5] + 0.6 * random.normal(size=count)
    frame = pd.DataFrame(x, columns=NAMES)
    frame["yes"] = score > 0.4
    frame["kind"] = np.select([score < -0.7, score < 1.0], ["a", "b"], "c")
    return frame


def objective(x, sides, weights, level, C):
    hinge = np.maximum(0, 1 - sides * (x @ weights + level))
    return (weights**2).sum() / 2 + C * hinge.sum()


@pytest.mark.sample(1)
@pytest.mark.parametrize("label", ["yes", "kind"])
@pytest.mark.parametrize("C", [0.05, pytest.param(1, marks=pytest.mark.slow)])
def test_without_noise_it_is_scikit_learns_objective(label, C):
    frame = rows()
    found = LinearSVC(C=C).fit(ExactOracle(publish(frame, SCHEMA)), NAMES, label)
    x = frame[NAMES].to_numpy() / 8 + 0.5
    weights = found.coef_ * 8
    levels = found.intercept_ - found.coef_.sum(axis=1) * 4
    for k, (weight, level) in enumerate(zip(weights, levels, strict=True)):
        true = frame[label] == found.classes_[1 if label == "yes" else k]
        sides = np.where(true, 1, -1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own intercept is penalised a little
            plain = Plain(C=C, loss="hinge", intercept_scaling=20, max_iter=50_000, tol=1e-5)
            plain.fit(x, sides)
        best = objective(x, sides, plain.coef_[0], plain.intercept_[0], C)
        assert objective(x, sides, weight, level, C) < 1.001 * best


@pytest.mark.sample(1)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("label", ["yes", "kind"])
def test_it_learns_through_noise(neighbours, label):
    frame, unseen = rows(6_000), rows(seed=3)
    best = LinearSVC(max_iter=60).fit(ExactOracle(publish(frame, SCHEMA)), NAMES, label)
    db = publish(frame, SCHEMA, Promise(3, "1e-6", neighbours=neighbours))
    found = LinearSVC().fit(db, NAMES, label)
    assert found.score(unseen, unseen[label]) > best.score(unseen, unseen[label]) - 0.06
    assert (found.coef_error_ > 0).all()
    scores = found.decision_function(unseen)
    expected = unseen[NAMES].to_numpy() @ found.coef_.T + found.intercept_
    assert scores == pytest.approx(expected[:, 0] if label == "yes" else expected)


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    credits=st.integers(1, 100),
    label=st.sampled_from(["yes", "kind"]),
    neighbours=st.sampled_from(["replace", "add-remove"]),
    pure=st.booleans(),
)
def test_receipts_add_up_and_keep_to_the_cap(credits, label, neighbours, pure):
    db = publish(rows(400), SCHEMA, Promise(5, 0 if pure else "1e-6", neighbours=neighbours))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoisyResult)
        found = LinearSVC(credits=credits).fit(db, NAMES, label)
    assert found.credits_ <= credits
    assert found.credits_ == db.promise.credits - db.remaining
