"""Classifier: which method public facts call for, and what a trial decides."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from tests.learn.exact_oracle import ExactOracle

from sulq import Category, Database, Flag, InvalidQuery, Number, Promise, Schema, outer
from sulq.kernel.noise.laws import DiscreteLaplace
from sulq.kernel.query.vectors import ones
from sulq.learn.auto import Classifier, PublicGrid, axis, draw
from sulq.learn.estimator import NoisyResult
from sulq.learn.features import Features
from sulq.learn.tree import DecisionTree

GAUSSIAN = Promise(epsilon=1, delta="1e-6", neighbours="add-remove")
PURE = Promise(epsilon=1, noise="laplace", neighbours="add-remove")


def table(rows: int, classes: int = 2, seed: int = 2, checkered: bool = False) -> pd.DataFrame:
    """Two informative numbers, a flag and a town; checkered ones defeat every line."""
    random = np.random.default_rng(seed)
    x = random.random((rows, 2))
    if checkered:
        codes = ((x[:, 0] > 0.5) ^ (x[:, 1] > 0.5)).astype(int)
    else:
        codes = np.minimum((x.sum(axis=1) / 2 * classes).astype(int), classes - 1)
    return pd.DataFrame(
        {
            "a": x[:, 0],
            "b": x[:, 1],
            "flag": random.random(rows) < 0.5,
            "town": random.choice(["n", "s", "w"], rows),
            "label": np.array([f"k{k}" for k in range(classes)])[codes],
        }
    )


FEATURES = ["a", "b", "flag", "town"]


def opened(frame: pd.DataFrame, promise: Promise = GAUSSIAN, classes: int = 2) -> Database:
    schema = Schema(
        Number("a", 0, 1),
        Number("b", 0, 1),
        Flag("flag"),
        Category("town", ["n", "s", "w"]),
        Category("label", [f"k{k}" for k in range(classes)]),
    )
    return Database.open(frame, schema, promise, ":memory:")


def charged(receipt: Any) -> Fraction:
    return max(Fraction(int(loss[0]), 2**64) for loss in receipt.body["charges"])


@pytest.mark.parametrize(
    ("promise", "rows", "classes", "method"),
    [
        (PURE, 20, 2, "grid"),
        (PURE, 200, 2, "discriminant"),
        (GAUSSIAN, 100, 2, "discriminant"),
        (GAUSSIAN, 1_000, 2, "logistic"),
        (GAUSSIAN, 1_000, 3, "discriminant"),
        (GAUSSIAN, 100_000, 2, "choose"),
        (GAUSSIAN, 20_000, 2, "logistic"),
        (GAUSSIAN, 20_000, 3, "choose"),
    ],
)
def test_public_facts_name_the_method(
    promise: Promise, rows: int, classes: int, method: str
) -> None:
    database = opened(table(50, classes), promise, classes)
    found = Classifier().quote(database, FEATURES, "label", rows=rows)
    assert found.method == method
    assert sum(step.share for step in found.plan.steps) == pytest.approx(0.98)
    assert database.remaining == promise.credits


def test_a_quote_of_a_trial_lists_what_is_tried() -> None:
    database = opened(table(50, 3), GAUSSIAN, 3)
    found = Classifier().quote(database, FEATURES, "label", rows=100_000)
    steps = [step.name for step in found.plan.steps]
    assert steps == ["try logistic", "try tree", "judge", "winner"]


def test_loud_gaussian_noise_is_told_of_pure_promises() -> None:
    database = opened(table(50), Promise(epsilon="0.1", delta="1e-6", neighbours="add-remove"))
    assert "laplace" in Classifier().quote(database, FEATURES, "label", rows=60).note
    assert "laplace" not in Classifier().quote(database, FEATURES, "label", rows=50_000).note


@pytest.mark.slow
def test_checkered_classes_are_given_to_the_tree() -> None:
    frame = table(40_000, checkered=True)
    database = opened(frame, Promise(epsilon=3, delta="1e-6", neighbours="add-remove"))
    learner = Classifier().fit(database, FEATURES, "label")
    by_name = {trial.method: trial.hits for trial in learner.trials_}
    assert learner.method_ == "tree" == max(by_name, key=lambda name: by_name[name])
    assert isinstance(learner.estimator_, DecisionTree)
    assert learner.score(frame, frame["label"]) > 0.9
    assert "chosen by noisy hits" in learner.notes_[0]
    assert learner.credits_ == sum(map(charged, learner.receipts_))
    assert learner.credits_ == database.promise.credits - database.remaining


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_trials_count_the_hits_of_their_predictions(classes: int) -> None:
    frame = table(3_000, classes)
    oracle = ExactOracle(opened(frame, GAUSSIAN, classes))
    for name in ("discriminant", "logistic", "tree"):
        learner = Classifier(method=name, credits=20).fit(oracle, FEATURES, "label").estimator_
        counted = np.asarray(oracle.ask(outer(ones(), learner.as_choice())).value)[0]
        said = [(learner.predict(frame) == value).sum() for value in learner.classes_]
        assert np.abs(counted - said).max() <= 3, name  # rows on the very edge


def test_the_majority_is_a_choice_too() -> None:
    frame = table(500)
    oracle = ExactOracle(opened(frame))
    learner = Classifier(method="discriminant").fit(oracle, FEATURES, "label").estimator_
    with pytest.warns(NoisyResult):
        learner.give_up(np.array([1.0, 9.0]), "for this test")
    assert np.asarray(oracle.ask(outer(ones(), learner.as_choice())).value)[0].tolist() == [0, 500]


@pytest.mark.slow
def test_labels_of_pure_noise_end_at_the_majority() -> None:
    frame = table(30_000)
    random = np.random.default_rng(4)
    frame["label"] = np.where(random.random(len(frame)) < 0.7, "k0", "k1")
    database = opened(frame, Promise(epsilon=3, delta="1e-6", neighbours="add-remove"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoisyResult)
        learner = Classifier().fit(database, FEATURES, "label")
    assert (learner.predict(frame) == "k0").mean() > 0.95


@pytest.mark.slow
def test_without_noise_it_learns_what_its_choice_learns() -> None:
    frame = table(2_000, 3)
    oracle = ExactOracle(opened(frame, GAUSSIAN, 3))
    learner = Classifier().fit(oracle, FEATURES, "label")
    assert learner.score(frame, frame["label"]) > 0.9
    assert {trial.error for trial in learner.trials_} == {0.0}
    same = learner.estimator_.predict_proba(frame)
    assert np.array_equal(learner.predict_proba(frame), same)


def test_parameters_survive_a_clone_and_methods_are_named() -> None:
    learner = Classifier(credits=2, method="tree", random_state=3)
    assert clone(learner).get_params() == learner.get_params()
    with pytest.raises(InvalidQuery, match="method must be one of"):
        Classifier(method="best").fit(opened(table(50)), FEATURES, "label")


@settings(deadline=None, max_examples=10)
@given(
    st.integers(1, 400),
    st.integers(2, 4),
    st.sampled_from(["gaussian", "laplace"]),
    st.sampled_from(["add-remove", "replace"]),
    st.sampled_from(["0.1", "3"]),
    st.sampled_from([Fraction(1, 3), None]),
)
def test_credits_are_the_sum_of_the_receipts(
    rows: int, classes: int, noise: str, relation: str, epsilon: str, part: Fraction | None
) -> None:
    delta = {"delta": "1e-6"} if noise == "gaussian" else {"noise": noise}
    database = opened(
        table(rows, classes), Promise(epsilon=epsilon, neighbours=relation, **delta), classes
    )
    cap = None if part is None else part * database.remaining
    before = database.remaining
    learner = Classifier(credits=cap, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoisyResult)
        learner.fit(database, FEATURES, "label")
    assert learner.credits_ == sum(map(charged, learner.receipts_)) == before - database.remaining
    assert learner.credits_ <= (cap or before)
    assert np.isfinite(learner.predict_proba(table(20, classes))).all()


# --- the grid -----------------------------------------------------------------------------------


def test_a_grid_puts_public_and_private_rows_into_the_same_cells() -> None:
    frame = table(400)
    frame.loc[::9, "a"] = np.nan
    frame.loc[::11, "town"] = None
    oracle = ExactOracle(opened(frame))
    learner = PublicGrid(random_state=5).fit(oracle, FEATURES, "label")
    features = Features.of(oracle.schema, FEATURES)
    coordinates = features.encode(frame)
    for weights, cuts in learner.splits_:
        counted = np.asarray(oracle.ask(outer(ones(), axis(features, weights, cuts))).value)[0]
        part = np.searchsorted(cuts, coordinates @ np.array(weights), "right")
        assert counted.tolist() == np.bincount(part, minlength=len(cuts) + 1).tolist()
    assert learner.counts_.sum() == 400
    assert len(oracle.asked) == 2 + len(learner.splits_)


def test_a_grid_costs_one_count_and_depends_on_public_facts_alone() -> None:
    database = opened(table(300), PURE)
    one, two = (PublicGrid(random_state=7) for _ in range(2))
    one.fit(database, FEATURES, "label")
    two.fit(opened(table(300, seed=9), PURE), FEATURES, "label")
    assert one.splits_ == two.splits_
    geometric = DiscreteLaplace(1 / Fraction("0.98"))  # a count of whole rows, S2.6
    assert one.count_error_ == pytest.approx(geometric.standard_deviation(), rel=1e-3)
    assert one.counts_.shape == (4 * 2**4, 2)


def test_a_grid_of_one_column_has_its_quarters() -> None:
    schema = Schema(Number("a", 0, 8), Category("label", ["k0", "k1"]))
    splits = draw(Features.of(schema, ["a"]), np.random.default_rng(0))
    assert splits == [([1.0], [0.25, 0.5, 0.75])]
