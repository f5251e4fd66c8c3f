"""What must hold for every learner: conventions, prices, receipts, nothing kept per row."""

from __future__ import annotations

import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.learn.exact_oracle import ExactOracle
from tests.people import SCHEMA, frame, publish

import sulq.learn
from sulq import Category, Flag, InvalidQuery, Number, Promise, Refused, Schema, col
from sulq.learn import (
    LSI,
    PCA,
    PLSI,
    SVD,
    AssociationRules,
    Classifier,
    Conjunction,
    DecisionList,
    DecisionTree,
    FactorAnalysis,
    GaussianMixture,
    KMeans,
    LinearDiscriminant,
    LinearRegression,
    LinearSVC,
    LinkAnalysis,
    LogisticRegression,
    NaiveBayes,
    NoisyResult,
    Perceptron,
    TooNoisy,
)

NUMBERS = ["age", "income"]
MIXED = ["age", "income", "blood"]
YES_NO = ["smoker", "city", "blood"]

# learner, features, label
LEARNERS = {
    "PCA": (PCA(2), MIXED, None),
    "SVD": (SVD(2), MIXED, None),
    "FactorAnalysis": (FactorAnalysis(1), MIXED, None),
    "KMeans": (KMeans(3), NUMBERS, None),
    "GaussianMixture": (GaussianMixture(2), NUMBERS, None),
    "Classifier": (Classifier(), MIXED, "smoker"),
    "LogisticRegression": (LogisticRegression(), MIXED, "smoker"),
    "LogisticRegression, classes": (LogisticRegression(), NUMBERS, "blood"),
    "LinearDiscriminant": (LinearDiscriminant(), MIXED, "smoker"),
    "LinearSVC": (LinearSVC(), MIXED, "smoker"),
    "Perceptron": (Perceptron(), MIXED, "smoker"),
    "DecisionTree": (DecisionTree(max_depth=2), MIXED, "smoker"),
    "NaiveBayes": (NaiveBayes(), MIXED, "smoker"),
    "LinearRegression": (LinearRegression(), ["age", "blood"], "income"),
    "AssociationRules": (AssociationRules(), ["smoker", "blood"], None),
    "LinkAnalysis": (LinkAnalysis(), ["smoker", "age", "income"], None),
    "LSI": (LSI(1), ["smoker", "blood"], None),
    "PLSI": (PLSI(2, random_state=0), ["smoker", "blood"], None),
    "Conjunction": (Conjunction(), ["blood"], "smoker"),
    "DecisionList": (DecisionList(), ["blood"], "smoker"),
}


def fit(learner, oracle, features, label=None, **more):
    """Fitted, with every doubt silenced; noise may stop it."""
    learner = clone(learner).set_params(**{"on_noise": "warn", **more})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            learner.fit(oracle, features, label)
        except (TooNoisy, Refused) as stopped:
            learner.stopped = stopped
    return learner


def charged(receipt) -> Fraction:
    return max((Fraction(int(loss[0]), 2**64) for loss in receipt.body["charges"]), default=0)


def test_every_name_of_the_page_is_there():
    assert all(hasattr(sulq.learn, name) for name in sulq.learn.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Forest'"):
        _ = sulq.learn.Forest


@pytest.mark.parametrize("name", LEARNERS)
def test_parameters_are_kept_untouched(name):
    learner = LEARNERS[name][0]
    copy = clone(learner)
    assert copy.get_params() == learner.get_params()
    shared = {"credits", "method", "random_state", "on_noise", "progress"}
    assert shared <= set(copy.get_params())


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", LEARNERS)
def test_quote_is_free_and_fit_keeps_to_it(name):
    learner, features, label = LEARNERS[name]
    db = publish()
    quote = learner.quote(db, features, label)
    assert db.remaining == 100
    assert quote.method
    assert sum(row["credits"] for row in quote.rows()) <= float(quote.credits) * (1 + 1e-9)
    fitted = fit(learner, db, features, label)
    assert fitted.credits_ <= quote.credits
    assert fitted.credits_ == 100 - db.remaining


SLOW = {
    "Classifier",
    "GaussianMixture",
    "KMeans",
    "LinearSVC",
    "LogisticRegression",
    "LogisticRegression, classes",
    "Perceptron",
    "PLSI",
}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in LEARNERS]
)
def test_what_is_stored_does_not_grow_with_the_rows(name):
    learner, features, label = LEARNERS[name]
    sizes = []
    for rows in (500, 40_000):
        fitted = fit(learner, ExactOracle(publish(frame(rows))), features, label)
        for attribute in ("receipts_", "reused_"):
            setattr(fitted, attribute, ())
        sizes.append(len(pickle.dumps(fitted)))
    assert abs(sizes[1] - sizes[0]) < 30_000  # a byte a row would show


PROMISES = st.builds(
    lambda epsilon, pure, neighbours: Promise(
        epsilon, 0 if pure else "1e-6", neighbours=neighbours
    ),
    st.sampled_from([0.1, 1, 8]),
    st.booleans(),
    st.sampled_from(["replace", "add-remove"]),
)
PERSONS = Schema(*SCHEMA.columns, unit="person", max_rows=3)


@pytest.mark.sample(2)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(sorted(LEARNERS)),
    promise=PROMISES,
    credits=st.sampled_from([None, 1, 12.5, 60]),
    method=st.sampled_from(["auto", "paper"]),
    persons=st.booleans(),
    rows=st.sampled_from([1, 40, 800]),
)
@pytest.mark.parametrize(
    "shard", [*range(4), *(pytest.param(shard, marks=pytest.mark.slow) for shard in range(4, 10))]
)
def test_credits_equal_the_receipts_and_keep_to_the_cap(
    shard, name, promise, credits, method, persons, rows
):
    """For any learner, promise, unit, cap and size: also where the noise stops the fit."""
    learner, features, label = LEARNERS[name]
    if not learner.parameter_constraints()["method"][0].allows(method):
        method = "auto"
    data = frame(rows).assign(person=np.arange(rows) // 2)
    data["age"] = data["age"].where(data.index % 7 != 0)
    data["smoker"] = data["smoker"].astype("boolean").where(data.index % 11 != 0)
    db = publish(data, PERSONS if persons else SCHEMA, promise)
    fitted = fit(learner, db, features, label, credits=credits, method=method)
    assert fitted.credits_ == sum(map(charged, fitted.receipts_)) == 100 - db.remaining
    assert fitted.credits_ <= (100 if credits is None else Fraction(credits))


@pytest.mark.sample(14)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("name", LEARNERS)
def test_bad_input_costs_nothing(name, neighbours):
    """Also where the rows must be counted first."""
    learner, features, label = LEARNERS[name]
    db = publish(promise=Promise(1, "1e-6", neighbours=neighbours))
    wrong = {"credits": -1, "method": "magic", "on_noise": "shrug", "random_state": "x"}
    for setting, value in (*wrong.items(), *WRONG.get(name, {}).items()):
        with pytest.raises(InvalidQuery, match=setting):
            clone(learner).set_params(**{setting: value}).fit(db, features, label)
    with pytest.raises(InvalidQuery, match="agee"):
        clone(learner).fit(db, [*features, "agee"], label)
    with pytest.raises(InvalidQuery):
        clone(learner).fit(db, features, label, where=col("agee") > 3)
    if isinstance(label, str) and label != "income":
        with pytest.raises(InvalidQuery):
            clone(learner).fit(db, features, col("agee") > 3)
    assert db.remaining == 100


WRONG = {
    "PCA": {"n_components": 0},
    "SVD": {"n_components": 99},
    "FactorAnalysis": {"max_iter": 0, "tol": "x"},
    "KMeans": {"n_clusters": -1, "init": [[1.0]]},
    "GaussianMixture": {"n_components": 0, "means_init": [[1.0]], "rounds": 0},
    "LogisticRegression": {"C": -1, "max_iter": "x"},
    "LinearSVC": {"C": 0},
    "Perceptron": {"max_iter": 0},
    "DecisionTree": {"max_depth": 0, "bins": 1},
    "NaiveBayes": {"alpha": -1},
    "AssociationRules": {"min_support": 0, "max_length": 99},
    "LinkAnalysis": {"damping": 2},
    "LSI": {"n_components": 0},
    "PLSI": {"n_topics": 0, "rounds": 0},
    "Conjunction": {"tau": 0},
    "DecisionList": {"confidence": 1},
}


@pytest.mark.parametrize("name", LEARNERS)
def test_what_has_not_learned_says_so(name):
    learner, features, _ = LEARNERS[name]
    for verb in ("predict", "transform", "predict_proba", "score_samples"):
        if hasattr(type(learner), verb):
            with pytest.raises(NotFittedError):
                getattr(clone(learner), verb)(frame(3)[features])


def test_a_fit_that_stops_leaves_nothing_of_an_earlier_one():
    learner = KMeans(2, random_state=1).fit(publish(promise=Promise(8, "1e-6")), NUMBERS)
    with pytest.raises(TooNoisy):
        learner.fit(publish(frame(30), promise=Promise("0.05", "1e-6")), ["age", "blood"])
    assert not hasattr(learner, "cluster_centers_")
    assert learner.credits_ >= 0


def test_a_wrong_refit_keeps_what_was_learned():
    learner = PCA(1).fit(publish(promise=Promise(8, "1e-6")), NUMBERS)
    before = learner.components_
    with pytest.raises(InvalidQuery):
        learner.fit(publish(), ["nobody"])
    assert learner.components_ is before


CLASSIFIERS = [
    *(Classifier, LogisticRegression, LinearDiscriminant, LinearSVC, Perceptron),
    *(DecisionTree, NaiveBayes, Conjunction, DecisionList),
]


@pytest.mark.sample(6)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_no_classifier_guesses_in_silence(kind, noise):
    """Labels of chance, hardly any budget: a fit is silent 1 in 10 times at most, six below 1e-6"""
    random = np.random.default_rng(6)
    data = frame(400).assign(smoker=random.random(400) < 0.8)
    promise = Promise("0.05", 0 if noise == "laplace" else "1e-6")
    features = ["blood"] if issubclass(kind, Conjunction | DecisionList) else MIXED
    said = []
    for _ in range(6):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            kind().fit(publish(data, promise=promise), features, "smoker")
        said.append(any(issubclass(w.category, NoisyResult) for w in heard))
    assert any(said)


def test_a_condition_that_no_row_can_meet_is_refused():
    db = publish()
    with pytest.raises(InvalidQuery, match="no row can match"):
        LinearSVC().fit(db, ["age"], "blood", where=col("age") > 500)
    assert db.remaining == 100


def test_one_seed_governs_starts_never_noise():
    means = [fit(KMeans(2, random_state=1), publish(), NUMBERS).cluster_centers_ for _ in range(2)]
    assert not np.array_equal(*means)


def test_disjoint_clusters_are_charged_jointly():
    """V.3: twenty clusters cost what two cost, at the same noise."""
    from sulq import outer
    from sulq.kernel.query.vectors import columns, concat, from_nearest, nearest, ones

    db = publish(promise=Promise(1, "1e-6"))
    errors = []
    for clusters in (2, 20):
        centres = np.linspace(0.1, 0.9, clusters)[:, None].tolist()
        vector = columns(["age"])
        step = outer(nearest(vector, centres), concat(ones(), from_nearest(vector, centres, 0.25)))
        errors.append(float(np.max(db.quote(step, credits=10).standard_error)))
    assert errors[0] == pytest.approx(errors[1], rel=1e-6)


def test_analyst_learns_inside_a_share():
    db = publish()
    db.grant("ann", credits=20)
    ann = db.as_analyst("ann")
    fitted = fit(PCA(1), ann, NUMBERS)
    assert 0 < fitted.credits_ <= 20
    assert ann.remaining == 20 - fitted.credits_


def test_where_restricts_the_rows():
    """A fit over some rows learns from those alone."""
    data = pd.DataFrame({"x": np.repeat([0.2, 0.8], 500), "y": np.tile([0.1, 0.2], 500)})
    data["half"] = data["x"] > 0.5
    schema = Schema(Number("x", 0, 1), Number("y", 0, 1), Flag("half"), Category("c", ["a"]))
    db = publish(data.assign(c="a"), schema)
    fitted = PCA(1).fit(ExactOracle(db), ["x", "y"], where=col("half"))
    assert fitted.mean_ == pytest.approx([0.8, 0.15], abs=1e-4)
