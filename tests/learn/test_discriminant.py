"""LinearDiscriminant: the plain one without noise; honest about noise with it."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import RidgeClassifier
from tests.learn.exact_oracle import ExactOracle

from sulq import Category, Database, Flag, Number, Promise, Schema, outer
from sulq.kernel.query.vectors import ones
from sulq.learn.discriminant import (
    ClassMoments,
    LinearDiscriminant,
    discriminate,
    inverted,
    settled_counts,
)
from sulq.learn.estimator import NoisyResult

GAUSSIAN = Promise(epsilon=1, delta="1e-6", neighbours="add-remove")


def blobs(rows: int = 600, width: int = 4, classes: int = 3, seed: int = 5) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    codes = random.integers(0, classes, rows)
    middles = random.uniform(0.3, 0.7, (classes, width))
    x = np.clip(middles[codes] + random.normal(0, 0.08, (rows, width)), 0, 1)
    frame = pd.DataFrame(x, columns=[f"x{place}" for place in range(width)])
    return frame.assign(label=np.array([f"k{code}" for code in codes]))


def charged(receipt: Any) -> Fraction:
    """What a receipt says the worst account lost, in credits."""
    return max(Fraction(int(loss[0]), 2**64) for loss in receipt.body["charges"])


def names_of(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame.columns if name.startswith("x")]


def opened(frame: pd.DataFrame, promise: Promise = GAUSSIAN, classes: int = 3) -> Database:
    columns = [Number(name, 0, 1) for name in names_of(frame)]
    label = Category("label", [f"k{place}" for place in range(classes)])
    return Database.open(frame, Schema(*columns, label), promise, ":memory:")


def plain(x: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights and offsets of Fisher's discriminant, from the textbook."""
    classes = np.unique(codes)
    means = np.array([x[codes == k].mean(axis=0) for k in classes])
    priors = np.array([(codes == k).mean() for k in classes])
    within = sum((x[codes == k] - means[k]).T @ (x[codes == k] - means[k]) for k in classes)
    weights = means @ np.linalg.inv(within / len(x))
    return weights, np.log(priors) - 0.5 * (weights * means).sum(axis=1)


def test_without_noise_it_is_the_textbook_one() -> None:
    frame = blobs()
    learner = LinearDiscriminant().fit(ExactOracle(opened(frame)), names_of(frame), "label")
    x = frame[names_of(frame)].to_numpy()
    codes = frame["label"].str[1:].astype(int).to_numpy()
    weights, offsets = plain(x, codes)
    found = learner.coef_ - learner.coef_[0]  # a shift common to all classes decides nothing
    assert np.abs(found - (weights - weights[0])).max() < 1e-5 * np.abs(weights).max()
    scores = x @ weights.T + offsets
    scores -= scores.max(axis=1, keepdims=True)
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert np.abs(learner.predict_proba(x) - shares).max() < 1e-4
    assert learner.evidence_ == math.inf
    assert learner.majority_ is None


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_without_noise_it_is_scikit_learns(load: object) -> None:
    x, codes = load(return_X_y=True)  # type: ignore[operator]
    low, high = x.min(axis=0), x.max(axis=0)
    frame = pd.DataFrame(x, columns=[f"x{place}" for place in range(x.shape[1])])
    frame["label"] = np.array(["k0", "k1", "k2"])[codes]
    columns = [Number(n, a, b) for n, a, b in zip(names_of(frame), low, high, strict=True)]
    schema = Schema(*columns, Category("label", ["k0", "k1", "k2"]))
    oracle = ExactOracle(Database.open(frame, schema, GAUSSIAN, ":memory:"))
    learner = LinearDiscriminant().fit(oracle, names_of(frame), "label")
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(x, codes)
    assert np.abs(learner.predict_proba(x) - theirs.predict_proba(x)).max() < 1e-4
    assert np.abs(learner.priors_ - theirs.priors_).max() < 1e-6
    assert np.abs(learner.means_ - theirs.means_).max() < 1e-4 * np.abs(theirs.means_).max()
    between = learner.coef_ - learner.coef_[0]  # a common shift of all classes decides nothing
    wanted = theirs.coef_ - theirs.coef_[0]
    assert np.abs(between - wanted).max() < 1e-3 * np.abs(wanted).max()
    again = x @ learner.coef_.T + learner.intercept_
    assert (again.argmax(axis=1) == codes).mean() == learner.score(x, frame["label"])


def test_two_classes_have_the_direction_of_least_squares() -> None:
    frame = blobs(classes=2)
    oracle = ExactOracle(opened(frame, classes=2))
    learner = LinearDiscriminant().fit(oracle, names_of(frame), "label")
    ridge = RidgeClassifier(alpha=1e-9).fit(frame[names_of(frame)], frame["label"])
    cosine = learner.coef_[0] @ np.ravel(ridge.coef_)
    cosine /= np.linalg.norm(learner.coef_) * np.linalg.norm(ridge.coef_)
    assert learner.coef_.shape == (1, 4)
    assert cosine > 1 - 1e-8
    x = frame[names_of(frame)].to_numpy()
    straight = x @ learner.coef_[0] + learner.intercept_[0]
    assert np.abs(straight - learner.decision_function(x)).max() < 1e-6


def test_rows_without_a_label_do_not_count() -> None:
    frame = blobs()
    holes = frame.copy()
    holes.loc[::5, "label"] = None
    kept = frame.drop(index=frame.index[::5])
    with_holes = LinearDiscriminant().fit(ExactOracle(opened(holes)), names_of(frame), "label")
    without = LinearDiscriminant().fit(ExactOracle(opened(kept)), names_of(frame), "label")
    x = frame[names_of(frame)].to_numpy()
    assert np.abs(with_holes.predict_proba(x) - without.predict_proba(x)).max() < 1e-4


def test_missing_features_stand_at_the_centre() -> None:
    frame = blobs()
    frame.loc[::7, "x1"] = np.nan
    learner = LinearDiscriminant().fit(ExactOracle(opened(frame)), names_of(frame), "label")
    filled = frame[names_of(frame)].fillna({"x1": learner.centre_[1]})
    assert np.array_equal(learner.predict(frame[names_of(frame)]), learner.predict(filled))


def test_the_paper_asks_three_questions_around_the_public_middle() -> None:
    frame = blobs()
    oracle = ExactOracle(opened(frame))
    learner = LinearDiscriminant(method="paper").fit(oracle, names_of(frame), "label")
    assert len(oracle.asked) == 4  # the rows are counted first
    assert np.array_equal(learner.centre_, np.full(4, 0.5))
    auto = LinearDiscriminant().fit(ExactOracle(opened(frame)), names_of(frame), "label")
    assert (learner.predict(frame) == auto.predict(frame)).all()


PROMISES = [
    Promise(epsilon=3, delta="1e-6", neighbours="add-remove"),
    Promise(epsilon=3, delta="1e-6", neighbours="replace"),
    Promise(epsilon=3, noise="laplace", neighbours="add-remove"),
    Promise(epsilon=3, noise="laplace", neighbours="replace"),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("promise", PROMISES, ids=lambda p: f"{p.noise} {p.neighbours}")
def test_it_learns_under_every_promise(promise: Promise) -> None:
    frame = blobs(rows=4_000)
    learner = LinearDiscriminant().fit(opened(frame, promise), names_of(frame), "label")
    exact = LinearDiscriminant().fit(ExactOracle(opened(frame)), names_of(frame), "label")
    x = frame[names_of(frame)]
    assert learner.score(x, frame["label"]) > exact.score(x, frame["label"]) - 0.05


def test_persons_flags_and_categories() -> None:
    random = np.random.default_rng(1)
    rows = 6_000
    ill = random.random(rows) < 0.4
    frame = pd.DataFrame(
        {
            "person": np.arange(rows) // 2,
            "dose": np.where(ill, 7.0, 3.0) + random.normal(0, 1.0, rows),
            "smoker": random.random(rows) < np.where(ill, 0.8, 0.2),
            "town": np.where(random.random(rows) < 0.5, "a", "b"),
            "ill": ill,
        }
    )
    schema = Schema(
        Number("dose", 0, 10),
        Flag("smoker"),
        Category("town", ["a", "b", "c"]),
        Flag("ill"),
        unit="person",
        max_rows=2,
    )
    promise = Promise(epsilon=3, delta="1e-6")
    database = Database.open(frame, schema, promise, ":memory:")
    learner = LinearDiscriminant()
    learner.fit(database, ["dose", "smoker", "town"], "ill")
    assert learner.classes_.tolist() == [False, True]
    assert learner.score(frame, ill) > 0.9
    assert learner.n_features_in_ == 3


@pytest.mark.sample(1)
@pytest.mark.parametrize("promise", PROMISES[:2], ids=["add-remove", "replace"])
def test_labels_of_pure_noise_end_at_the_majority(promise: Promise) -> None:
    frame = blobs(rows=400, width=12, classes=2)
    random = np.random.default_rng(3)
    frame["label"] = np.where(random.random(400) < 0.9, "k0", "k1")
    quiet = 0
    for _ in range(6):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            learner = LinearDiscriminant().fit(opened(frame, promise, 2), names_of(frame), "label")
        if learner.majority_ is not None:
            assert any(issubclass(w.category, NoisyResult) for w in said)
            assert (learner.predict(frame) == "k0").all()
            assert "no more than noise" in learner.notes_[-1]
        quiet += float((learner.predict(frame) == "k0").mean()) > 0.85
    assert quiet >= 4


def test_as_choice_predicts_inside_a_question_what_predict_says() -> None:
    frame = blobs(rows=2_000)
    oracle = ExactOracle(opened(frame))
    learner = LinearDiscriminant().fit(oracle, names_of(frame), "label")
    from_noise = LinearDiscriminant().fit(opened(frame), names_of(frame), "label")
    for found in (learner, from_noise):
        counted = np.asarray(oracle.ask(outer(ones(), found.as_choice())).value)[0]
        said = [(found.predict(frame) == value).sum() for value in found.classes_]
        assert np.abs(counted - said).max() <= 2  # rows on the very edge


@settings(deadline=None, max_examples=12)
@given(
    st.integers(1, 300),
    st.integers(1, 5),
    st.integers(2, 4),
    st.sampled_from(PROMISES),
    st.sampled_from([Fraction(1, 3), Fraction(7, 10), None]),
)
def test_credits_are_the_sum_of_the_receipts(
    rows: int, width: int, classes: int, promise: Promise, part: Fraction | None
) -> None:
    frame = blobs(rows, width, classes)
    database = opened(frame, promise, classes)
    cap = None if part is None else part * database.remaining
    learner = LinearDiscriminant(credits=cap)
    before = database.remaining
    quoted = learner.quote(database, names_of(frame), "label", rows=rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoisyResult)
        learner.fit(database, names_of(frame), "label")
    assert learner.credits_ == before - database.remaining
    assert learner.credits_ <= quoted.credits <= (cap or before)
    assert learner.credits_ == sum(charged(receipt) for receipt in learner.receipts_)
    assert np.isfinite(learner.predict_proba(frame)).all()


def test_parameters_survive_a_clone() -> None:
    learner = LinearDiscriminant(credits=3, method="paper", on_noise="warn", progress=False)
    assert clone(learner).get_params() == learner.get_params()


def test_priors_are_believed_as_far_as_they_are_no_noise() -> None:
    def moments(apart: float, error: float) -> ClassMoments:
        zeros = np.zeros((2, 1))
        return ClassMoments(np.array([apart, -apart]), zeros, 1.0, error, np.zeros(1), 1.0, 100.0)

    assert settled_counts(moments(30, 0.0)).tolist() == [80, 20]
    assert settled_counts(moments(30, 40.0)).tolist() == [50, 50]
    believed = settled_counts(moments(30, 10.0))[0]
    assert 70 < believed < 80
    assert settled_counts(moments(50, 0.0)).min() > 0


def test_a_noisy_covariance_is_drawn_to_a_sphere() -> None:
    within = np.diag([4.0, 1.0])
    assert np.allclose(inverted(within, 0.0, 1.0, 1.0, 0.0), np.diag([0.25, 1.0]))
    loud = inverted(within, 100.0, 1.0, 1.0, 0.0)
    assert np.allclose(loud, np.eye(2) / 2.5)


def test_noisy_means_are_drawn_together() -> None:
    def rule(error: float) -> float:
        sums = np.array([[10.0, 0.0, 0.0], [-10.0, 0.0, 0.0]])
        counts, total = np.array([0.0, 0.0]), np.zeros(3)
        found = ClassMoments(counts, sums, error, 1.0, total, error, 100.0)
        return float(np.abs(discriminate(found, 3, 1.0, 1.0).means).max())

    assert rule(0.0) == pytest.approx(0.2)
    assert rule(4.0) < rule(2.0) < 0.2
    assert rule(1e6) == pytest.approx(0.02)
