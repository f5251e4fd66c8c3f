"""NaiveBayes: scikit-learn's own numbers without noise, honest ones with it."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from tests.learn.exact_oracle import ExactOracle

from sulq import Category, Database, Flag, InvalidQuery, Number, Promise, Schema
from sulq.learn.estimator import NoisyResult
from sulq.learn.naive_bayes import NaiveBayes, class_shares

SCHEMA = Schema(
    Number("height", 100, 250),
    Number("weight", 0, 300),
    Category("colour", ["red", "green", "blue"]),
    Flag("left"),
    Category("kind", ["x", "y", "z"]),
)
NUMBERS = ["height", "weight"]
MIXED = [*NUMBERS, "colour", "left"]


def rows(count: int = 1_200, seed: int = 4) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    kind = random.choice(3, count, p=[0.5, 0.3, 0.2])
    height = np.clip(165 + 9 * kind + random.normal(0, 8, count), 100, 250)
    weight = np.clip(60 + 14 * kind + random.normal(0, 9 + 3 * kind, count), 0, 300)
    chance = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])[kind]
    colour = (random.random(count)[:, None] > np.cumsum(chance, axis=1)).sum(axis=1)
    return pd.DataFrame(
        {
            "height": height,
            "weight": weight,
            "colour": np.array(["red", "green", "blue"])[colour],
            "left": random.random(count) < 0.2 + 0.2 * kind,
            "kind": np.array(["x", "y", "z"])[kind],
        }
    )


def published(frame=None, schema=SCHEMA, **promise) -> Database:
    given = {"epsilon": 3, "delta": "1e-6", **promise}
    return Database.open(rows() if frame is None else frame, schema, Promise(**given), ":memory:")


def fitted(oracle, features=None, label="kind", **parameters) -> NaiveBayes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoisyResult)
        return NaiveBayes(**parameters).fit(oracle, features or MIXED, label)


def test_without_noise_it_is_gaussian_nb():
    frame = rows()
    ours = fitted(ExactOracle(published(frame)), NUMBERS)
    theirs = GaussianNB(var_smoothing=0).fit(frame[NUMBERS].to_numpy(), frame["kind"])
    np.testing.assert_allclose(ours.theta_, theirs.theta_, rtol=1e-5)
    np.testing.assert_allclose(ours.var_, theirs.var_, rtol=1e-5)
    np.testing.assert_allclose(np.exp(ours.class_log_prior_), theirs.class_prior_, rtol=1e-5)
    found, wanted = ours.predict_proba(frame), theirs.predict_proba(frame[NUMBERS].to_numpy())
    np.testing.assert_allclose(found, wanted, atol=1e-4)


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_without_noise_it_is_categorical_nb(alpha):
    frame = rows()
    ours = fitted(ExactOracle(published(frame)), ["colour", "left"], alpha=alpha)
    codes = np.stack(
        [frame["colour"].map({"red": 0, "green": 1, "blue": 2}), frame["left"].astype(int)], axis=1
    )
    theirs = CategoricalNB(alpha=alpha).fit(codes, frame["kind"])
    for found, wanted in zip(ours.feature_log_prob_, theirs.feature_log_prob_, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(frame), theirs.predict_proba(codes), atol=1e-9)


@pytest.mark.sample(2)
@pytest.mark.parametrize("numbers", ["gaussian", "bins"])
@pytest.mark.parametrize("promise", [{"epsilon": 12}, {"epsilon": 40, "delta": 0}])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_it_learns_under_each_promise(numbers, promise, neighbours):
    frame = rows(3_000)
    model = fitted(published(frame, neighbours=neighbours, **promise), numbers=numbers)
    assert np.mean(model.predict(frame) == frame["kind"]) > 0.62  # majority 0.5, without noise 0.8
    assert model.class_count_ == pytest.approx(
        [1_500, 900, 600], abs=100 + 7 * model.class_count_error_
    )


def test_standard_errors_cover_what_they_are_about():
    """Means of 40 fits lie within 6 errors of the truth: false alarm 240 x 2e-9."""
    frame = rows(4_000)
    truth = frame.groupby("kind")[NUMBERS].mean().to_numpy()
    for _ in range(5):
        model = fitted(published(frame, epsilon=10), NUMBERS, method="paper")
        assert np.all(np.abs(model.theta_ - truth) < 6 * model.theta_error_ + 1e-6)
        assert np.all(model.theta_error_ < 5)


def test_missing_and_undeclared_values_say_nothing():
    frame = rows()
    frame.loc[::9, "colour"] = None
    frame.loc[::13, "colour"] = "mauve"
    frame.loc[::10, "height"] = np.nan
    model = fitted(ExactOracle(published(frame)))
    public = rows(3).assign(colour="mauve")
    without = fitted(ExactOracle(published(frame)), [*NUMBERS, "left"], numbers=model.method_)
    np.testing.assert_allclose(
        model.predict_log_proba(public), without.predict_log_proba(public), atol=1e-6
    )


def test_frames_arrays_and_clones_agree():
    frame = rows()
    model = fitted(published(frame))
    array = frame[MIXED].to_numpy()
    np.testing.assert_array_equal(model.predict(frame), model.predict(array))
    assert clone(model).get_params() == model.get_params()
    assert model.score(frame, frame["kind"]) > 0.6


def test_persons_with_many_rows_are_one_unit():
    frame = rows(2_000).assign(who=np.arange(2_000) // 4)
    schema = Schema(*SCHEMA.columns, unit="who", max_rows=4)
    many = fitted(published(frame, schema, epsilon=10), numbers="bins")
    one = fitted(published(rows(2_000), epsilon=10), numbers="bins")
    assert many.class_count_error_ > 3 * one.class_count_error_


@pytest.mark.slow
def test_noise_alone_is_answered_with_the_majority_and_said():
    random = np.random.default_rng(1)
    frame = rows(60)
    frame["kind"] = random.permutation(["x"] * 50 + ["y"] * 5 + ["z"] * 5)
    gave_up = 0
    for _ in range(12):
        model = fitted(published(frame, epsilon="0.5"), numbers="bins")
        gave_up += model.majority_ is not None and "most frequent class" in model.notes_[-1]
    assert gave_up >= 1


def test_shares_that_noise_explains_are_those_of_all_classes():
    random = np.random.default_rng(2)
    flat = np.full((3, 6), 100.0)
    logs, kept = class_shares(flat + random.normal(0, 60, flat.shape), 60.0, 1.0)
    assert kept < 0.5
    apart = flat + np.array([[300.0] * 3 + [0.0] * 3, [0.0] * 6, [0.0] * 3 + [300.0] * 3])
    clear, all_kept = class_shares(apart + random.normal(0, 5, flat.shape), 5.0, 1.0)
    assert all_kept > 0.95
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(clear).sum(axis=1), 1)


def test_a_class_without_rows_and_one_row():
    frame = rows(300)
    frame = frame[frame["kind"] != "z"]
    assert "z" not in fitted(ExactOracle(published(frame))).predict(frame)
    assert fitted(published(rows(1))).predict(rows(2)).shape == (2,)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [({"numbers": "odd"}, "numbers"), ({"alpha": -1}, "alpha"), ({"bins": 1}, "bins")],
)
def test_what_makes_no_sense_is_refused_for_free(parameters, text):
    db = published()
    with pytest.raises(InvalidQuery, match=text):
        NaiveBayes(**parameters).fit(db, MIXED, "kind")
    assert db.remaining == 100


@pytest.mark.slow
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(
    numbers=st.sampled_from(["auto", "gaussian", "bins"]),
    method=st.sampled_from(["auto", "paper"]),
    credits=st.sampled_from([None, 0.3, 55.5]),
    neighbours=st.sampled_from(["replace", "add-remove"]),
    delta=st.sampled_from(["1e-6", 0]),
    count=st.sampled_from([4, 500]),
)
def test_credits_are_those_of_the_receipts_and_within_the_cap(
    numbers, method, credits, neighbours, delta, count
):
    db = published(rows(count), neighbours=neighbours, delta=delta, epsilon=1)
    model = fitted(db, numbers=numbers, method=method, credits=credits)
    assert model.credits_ == 100 - db.remaining
    assert model.credits_ <= Fraction(credits if credits is not None else 100)
    assert np.isfinite(model.predict_log_proba(rows(10))).all()
