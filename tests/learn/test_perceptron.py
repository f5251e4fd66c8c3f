"""Perceptron: exact without noise, useful with it, the majority where noise is all there is."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from tests.learn.exact_oracle import ExactOracle
from tests.people import publish

from sulq import Category, InvalidQuery, Number, Promise, Schema
from sulq.learn import NoisyResult, Perceptron
from sulq.learn.linear.perceptron import least_wrong


def table(loader):
    data = loader()
    names = [f"x{i}" for i in range(data.data.shape[1])]
    frame = pd.DataFrame(data.data, columns=names)
    frame["label"] = [f"class {c}" for c in data.target]
    numbers = [Number(n, float(frame[n].min()), float(frame[n].max())) for n in names]
    classes = sorted(frame["label"].unique())
    return frame, Schema(*numbers, Category("label", classes)), names


def table_of_two():
    frame, schema, names = table(load_breast_cancer)
    return publish(frame, schema), names, "label"


@pytest.mark.slow
@pytest.mark.parametrize(
    "loader", [pytest.param(load_breast_cancer, marks=pytest.mark.slow), load_wine]
)
def test_without_noise_it_separates(loader):
    frame, schema, names = table(loader)
    found = Perceptron().fit(ExactOracle(publish(frame, schema)), names, "label")
    assert found.score(frame, frame["label"]) > 0.95
    expected = frame[names].to_numpy() @ found.coef_.T + found.intercept_
    scores = found.decision_function(frame)
    assert scores == pytest.approx(expected[:, 0] if expected.shape[1] == 1 else expected)


def test_the_papers_rounds_equal_plain_ones():
    frame, schema, names = table(load_breast_cancer)
    oracle = ExactOracle(publish(frame, schema))
    found = Perceptron(max_iter=5, method="paper").fit(oracle, names, "label")
    x = frame[names].to_numpy()
    x = (x - x.min(axis=0)) / np.ptp(x, axis=0) - 0.5
    v = np.column_stack([np.ones(len(x)), x])
    y = np.where(frame["label"] == "class 1", 1, -1)
    w = np.zeros(v.shape[1])
    for _ in range(5):
        wrong = y * (v @ w) <= 0
        w = w + (y[:, None] * v)[wrong].sum(axis=0) / wrong.sum()
    assert found.decision_function(frame) == pytest.approx(v @ w, abs=0.02)
    assert found.n_iter_ == 5


@pytest.mark.sample(1)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_it_learns_through_noise(neighbours):
    frame, schema, names = table(load_breast_cancer)
    scores = []
    for _ in range(5):
        db = publish(frame, schema, Promise(3, "1e-6", neighbours=neighbours))
        scores.append(Perceptron().fit(db, names, "label").score(frame, frame["label"]))
    assert np.mean(scores) > 0.88


@pytest.mark.slow
def test_labels_of_chance_give_the_majority_and_it_is_said():
    random = np.random.default_rng(1)
    frame = pd.DataFrame(random.random((3_000, 8)), columns=[f"x{i}" for i in range(8)])
    frame["label"] = np.where(random.random(3_000) < 0.1, "class 0", "class 1")
    schema = Schema(
        *(Number(f"x{i}", 0, 1) for i in range(8)), Category("label", ["class 0", "class 1"])
    )
    held = 0
    for _ in range(8):  # each escapes with a chance below 6 %: six of eight below 2e-6
        db = publish(frame, schema, Promise("0.1", "1e-6"))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = Perceptron().fit(db, [f"x{i}" for i in range(8)], "label")
        told = any(issubclass(w.category, NoisyResult) for w in said)
        assert told or found.majority_ is None
        held += told and set(found.predict(frame)) == {"class 1"}
    assert held >= 3


def test_theorem_3_needs_more_wrong_rows_the_smaller_the_margin():
    # S4.9: sqrt(2 ln(2 * 100 / 0.01)) = 4.450503, sqrt(2 ln(4 * 100 / 0.01)) = 4.603615
    assert least_wrong(2, 1, 9, 0.1, 100) == pytest.approx(160 * (3 + 4.450503))
    assert least_wrong(2, 1, 9, None, 100) == pytest.approx(4 * 4.603615)
    assert least_wrong(0, 1, 9, 0.1, 100) == pytest.approx(4 * 4.603615)


def test_the_paper_stops_where_few_rows_are_wrong():
    random = np.random.default_rng(2)
    x = random.random((20_000, 2))
    score = (x - 0.5) @ [0.8, 0.6]
    frame = pd.DataFrame(x[np.abs(score) > 0.1], columns=["a", "b"])
    frame["label"] = np.where(score[np.abs(score) > 0.1] > 0, "class 1", "class 0")
    schema = Schema(Number("a", 0, 1), Number("b", 0, 1), Category("label", ["class 0", "class 1"]))
    db = publish(frame, schema, Promise(20, "1e-6"))
    found = Perceptron(30, margin=0.1, method="paper").fit(db, ["a", "b"], "label")
    assert 1 <= found.n_iter_ < 30
    assert found.credits_ < db.promise.credits
    assert found.score(frame, frame["label"]) > 0.9


def test_wrong_settings_cost_nothing():
    frame, schema, names = table(load_wine)
    db = publish(frame, schema)
    with pytest.raises(InvalidQuery, match="max_iter"):
        Perceptron(max_iter=0).fit(db, names, "label")
    with pytest.raises(InvalidQuery, match="margin"):
        Perceptron(method="paper", margin=0).fit(*table_of_two())
    with pytest.raises(InvalidQuery, match="two classes"):
        Perceptron(method="paper").fit(db, names, "label")
    assert db.remaining == 100
