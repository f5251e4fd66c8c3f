"""Pictures: every learner has one, it shows what was learned, and it needs no network."""

from __future__ import annotations

import builtins
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score, roc_curve
from tests.learn.exact_oracle import ExactOracle

from sulq import Category, Database, Flag, InvalidQuery, Number, Promise, Schema
from sulq.learn import (
    LSI,
    PCA,
    PLSI,
    SVD,
    AssociationRules,
    Classifier,
    Conjunction,
    DecisionTree,
    FactorAnalysis,
    GaussianMixture,
    KMeans,
    LinearDiscriminant,
    LinearRegression,
    LinkAnalysis,
    LogisticRegression,
    NaiveBayes,
    Perceptron,
)
from sulq.learn.naive_bayes import information
from sulq.learn.plotting.models import roc
from sulq.learn.plotting.registry import draw, save
from sulq.learn.plotting.style import interval, without_constants
from sulq.learn.summaries import Summary, rule_text

SCHEMA = Schema(
    Number("age", 0, 100),
    Number("height", 100, 220),
    Number("weight", 0, 200),
    Flag("ill"),
    Category("town", ["A", "B", "C"]),
)
NUMBERS = ["age", "height", "weight"]


def frame(rows=3_000, seed=3):
    draw = np.random.default_rng(seed)
    old = draw.random(rows) < 0.4
    age = np.where(old, 75, 25) + draw.normal(0, 6, rows)
    height = 170 + draw.normal(0, 9, rows)
    return pd.DataFrame(
        {
            "age": np.clip(age, 0, 100),
            "height": height,
            "weight": np.clip((height - 100) * 0.9 + draw.normal(0, 8, rows), 0, 200),
            "ill": draw.random(rows) < np.where(old, 0.9, 0.1),
            "town": draw.choice(["A", "B", "C"], rows),
        }
    )


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SULQ_STATE", str(tmp_path_factory.mktemp("state")))
        with Database.open(frame(), SCHEMA, Promise(8, "1e-6"), ledger=":memory:") as database:
            yield ExactOracle(database)


TEST = frame(400, seed=4)
LEARNERS = {
    "PCA": lambda o: PCA(2, credits=0.1).fit(o, NUMBERS),
    "SVD": lambda o: SVD(2, credits=0.1).fit(o, NUMBERS),
    "DecisionTree": lambda o: DecisionTree(3, credits=0.1).fit(o, [*NUMBERS, "town"], "ill"),
    "NaiveBayes": lambda o: NaiveBayes(credits=0.1).fit(o, [*NUMBERS, "town"], "ill"),
    "NaiveBayes, means": lambda o: NaiveBayes(numbers="gaussian", credits=0.1).fit(
        o, [*NUMBERS, "town"], "ill"
    ),
    "LinearDiscriminant": lambda o: LinearDiscriminant(credits=0.1).fit(o, NUMBERS, "ill"),
    "three classes": lambda o: LinearDiscriminant(credits=0.1).fit(o, NUMBERS, "town"),
    "Classifier": lambda o: Classifier(method="discriminant", credits=0.1).fit(o, NUMBERS, "ill"),
    "LinearRegression": lambda o: LinearRegression(credits=0.1).fit(
        o, ["height", "town"], "weight"
    ),
    "FactorAnalysis": lambda o: FactorAnalysis(1, credits=0.1).fit(o, NUMBERS),
    "KMeans": lambda o: KMeans(3, credits=20, random_state=1).fit(o.database, NUMBERS),
    "KMeans on a line": lambda o: KMeans(2, credits=20, random_state=1).fit(o.database, ["age"]),
    "GaussianMixture": lambda o: GaussianMixture(2, credits=20, random_state=1).fit(
        o.database, NUMBERS
    ),
    "LogisticRegression": lambda o: LogisticRegression(credits=0.1).fit(o, NUMBERS, "ill"),
    "Perceptron": lambda o: Perceptron(credits=0.1).fit(o, NUMBERS, "ill"),
    "AssociationRules": lambda o: AssociationRules(0.05, 0.2, credits=0.1).fit(o, ["ill", "town"]),
    "LinkAnalysis": lambda o: LinkAnalysis(credits=0.1).fit(o, ["ill", "town"]),
    "LSI": lambda o: LSI(1, credits=0.1).fit(o, ["ill", "town"]),
    "PLSI": lambda o: PLSI(2, credits=0.1, random_state=1).fit(o, ["ill", "town"]),
    "Conjunction": lambda o: Conjunction(credits=0.1).fit(o, ["town"], "ill"),
}
TESTED = {
    "DecisionTree": "ill",
    "NaiveBayes": "ill",
    "NaiveBayes, means": "ill",
    "LinearDiscriminant": "ill",
    "three classes": "town",
    "Classifier": "ill",
    "LinearRegression": "weight",
    "LogisticRegression": "ill",
    "Conjunction": "ill",
}


@pytest.fixture(scope="module")
def fitted(oracle):
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        def get(name):
            if name not in found:
                found[name] = LEARNERS[name](oracle)
            return found[name]

        yield get


def numbers_in(spec, field):
    """All values of one field among the data that travels in a chart."""
    found = []
    for part in _walk(spec):
        values = part.get("data", {}).get("values", []) if isinstance(part, dict) else []
        found += [record[field] for record in values if field in record]
    for values in spec.get("datasets", {}).values():
        found += [record[field] for record in values if field in record]
    return found


def _walk(node):
    yield node
    for child in node.values() if isinstance(node, dict) else node:
        if isinstance(child, dict | list):
            yield from _walk(child)


@pytest.mark.sample(6)
@pytest.mark.filterwarnings("ignore::sulq.learn.estimator.NoisyResult")
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_has_a_picture(fitted, name, tmp_path):
    picture = fitted(name).plot()
    path = save(picture, tmp_path / "a.svg")
    text = path.read_text("utf-8")
    assert text.startswith("<svg")
    assert "NaN" not in text
    assert len(text) < 400_000


@pytest.mark.sample(3)
@pytest.mark.filterwarnings("ignore::sulq.learn.estimator.NoisyResult")
@pytest.mark.parametrize("name", TESTED)
def test_public_rows_add_a_panel(fitted, name, tmp_path):
    alone = fitted(name).plot().to_dict()
    both = fitted(name).plot(TEST, TEST[TESTED[name]]).to_dict()
    assert f"{len(TEST)} public rows" in json.dumps(both)
    assert "public rows" not in json.dumps(alone)


def test_every_kind_of_summary_is_drawn():
    kinds, found = [Summary], []
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        found.append(kind)
    undrawn = [kind for kind in found[1:] if draw.dispatch(kind) is draw.dispatch(Summary)]
    assert undrawn == []


def test_loadings_are_the_components(fitted):
    learner = fitted("PCA")
    shown = numbers_in(learner.plot().to_dict(), "value")
    for loading in learner.components_.ravel():
        assert any(abs(value - loading) < 1e-9 for value in shown if isinstance(value, float))


def test_curve_is_the_roc_curve(fitted):
    learner = fitted("LinearDiscriminant")
    spec = learner.plot(TEST, TEST["ill"]).to_dict()
    area = roc_auc_score(TEST["ill"], learner.predict_proba(TEST)[:, 1])
    assert f"area {area:.2f}" in json.dumps(spec)


@pytest.mark.parametrize("seed", range(5))
def test_roc_agrees_with_scikit_learn_ties_and_all(seed):
    draw = np.random.default_rng(seed)
    scores = draw.integers(0, 12, 200) / 12
    truth = draw.random(200) < scores
    false, true = roc(scores, truth)
    theirs = roc_curve(truth, scores, drop_intermediate=False)
    np.testing.assert_allclose(false, theirs[0])
    np.testing.assert_allclose(true, theirs[1])


def test_a_tree_is_drawn_down_to_the_depth_asked(fitted):
    learner = fitted("DecisionTree")
    deep = numbers_in(learner.plot(depth=3).to_dict(), "text")
    flat = numbers_in(learner.plot(depth=1).to_dict(), "text")
    assert "all rows" in flat
    assert len(flat) == 2 * 3
    assert len(deep) == 2 * sum(1 for node in learner.tree_ if node.depth <= 3)
    with pytest.raises(InvalidQuery, match="depth must be"):
        learner.plot(depth=0)


def test_clusters_are_drawn_on_the_coordinates_asked(fitted):
    learner = fitted("KMeans")
    picture = learner.plot(x="height", y="weight").to_dict()
    shown = set(numbers_in(picture, "x"))
    assert {float(centre[1]) for centre in learner.cluster_centers_} <= shown
    apart = learner.plot().to_dict()  # of itself it takes what parts the groups
    assert {float(centre[0]) for centre in learner.cluster_centers_} <= set(
        numbers_in(apart, "x") + numbers_in(apart, "y")
    )
    with pytest.raises(InvalidQuery, match="no coordinate 'wealth'"):
        learner.plot(x="wealth")


def test_rules_are_numbered_in_order(fitted):
    learner = fitted("AssociationRules")
    shown = numbers_in(learner.plot().to_dict(), "rule")
    assert shown[0] == f"1  {rule_text(learner.rules_[0])}"
    assert numbers_in(learner.plot().to_dict(), "support")[0] == learner.rules_[0].support


def test_what_a_column_tells_is_its_mutual_information():
    assert information(np.array([0.5, 0.5]), np.eye(2)) == pytest.approx(1)
    assert information(np.array([0.5, 0.5]), np.full((2, 2), 0.5)) == pytest.approx(0)
    skewed = np.array([[0.9, 0.1], [0.2, 0.8]])  # by hand: H(0.55) - (H(0.9) + H(0.2)) / 2
    assert information(np.array([0.5, 0.5]), skewed) == pytest.approx(0.397312, abs=1e-5)


def test_only_differences_between_values_of_a_category_are_drawn():
    keys = ("age", "town=A", "town=B")
    shown = without_constants(keys, np.array([[5.0, 7.0, 9.0]]))
    assert shown.tolist() == [[5.0, -1.0, 1.0]]


def test_an_interval_is_drawn_only_where_an_error_is_known():
    assert interval(2.0, None) == interval(2.0, 0.0) == {"value": 2.0}
    assert interval(2.0, 1.0) == {"value": 2.0, "low": pytest.approx(0.04), "high": 3.96}


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["svg", "png", "html"])
def test_saved_as(fitted, kind, tmp_path):
    path = save(fitted("PCA").plot(title="Directions"), tmp_path / f"a.{kind}")
    start = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!DOCTYPE html>"}[kind]
    content = path.read_bytes()
    assert content.lstrip().startswith(start)
    if kind != "png":
        assert b"Directions" in content


def test_a_page_loads_nothing_from_elsewhere(fitted, tmp_path):
    text = save(fitted("PCA").plot(), tmp_path / "a.html").read_text("utf-8")
    assert "<script src=" not in text
    assert "cdn." not in text


def test_slips_are_said(fitted, tmp_path):
    with pytest.raises(InvalidQuery, match=r"\.svg, \.png, \.html"):
        save(fitted("PCA").plot(), tmp_path / "a.pdf")
    with pytest.raises(InvalidQuery, match="needs both"):
        fitted("LinearDiscriminant").plot(TEST)
    with pytest.raises(InvalidQuery, match="as many of both"):
        fitted("LinearDiscriminant").plot(TEST, TEST["ill"][:-1])
    with pytest.raises(InvalidQuery, match="all of one class"):
        fitted("LinearDiscriminant").plot(TEST, np.ones(len(TEST), dtype=bool))
    with pytest.raises(NotFittedError, match="call fit first"):
        PCA().plot()


def test_without_altair_it_says_what_to_install(fitted, monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name == "altair":
            raise ImportError("No module named 'altair'")
        return real(name, *rest)

    learner = fitted("PCA")
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"pip install 'sulq\[report\]'"):
        learner.plot()
