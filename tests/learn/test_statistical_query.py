"""stat and the learners written on it alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.learn.exact_oracle import ExactOracle
from tests.people import frame, publish

from sulq import Category, Flag, InvalidQuery, Number, Promise, Schema, col
from sulq.learn import Conjunction, DecisionList, NoisyResult, SQLearner, TooNoisy, stat
from sulq.learn.statistical_query import Clause, stat_quote

SCHEMA = Schema(
    Flag("a"), Flag("b"), Flag("c"), Category("d", ["x", "y"]), Flag("label"), Number("n", 0, 1)
)
FEATURES = ["a", "b", "c", "d"]


def table(rows=4_000, seed=5, rule=None):
    random = np.random.default_rng(seed)
    data = pd.DataFrame({name: random.random(rows) < 0.7 for name in ("a", "b", "c")})
    data["d"] = random.choice(["x", "y"], rows)
    data["label"] = (data["a"] & ~data["b"]) if rule is None else rule(data)
    data["n"] = random.random(rows)
    return data


def test_a_share_is_within_its_tolerance():
    """Confidence 1 - 1e-7, so a miss is not chance."""
    db = publish(promise=Promise(1, "1e-6"))
    found = stat(db, col("smoker"), 0.05, confidence=1 - 1e-7)
    assert abs(float(found) - frame()["smoker"].mean()) <= 0.05
    assert found.credits > 0


def test_a_finer_share_costs_its_square():
    db = publish(promise=Promise(1, "1e-6"))
    coarse, fine = (
        sum(quote.credits for quote in stat_quote(db, col("smoker"), tau)) for tau in (0.1, 0.05)
    )
    assert float(fine / coarse) == pytest.approx(4, rel=0.01)
    assert db.remaining == 100


def test_private_rows_must_be_stated():
    db = publish(promise=Promise(1, "1e-6", neighbours="add-remove"))
    with pytest.raises(InvalidQuery, match="rows="):
        stat(db, col("smoker"), 0.1)
    found = stat(db, col("smoker"), 0.1, rows=1_500, confidence=1 - 1e-7)
    assert abs(float(found) - frame()["smoker"].mean()) <= 0.1
    assert len(found.receipts) == 2


@pytest.mark.parametrize("terms", [{"tau": 0}, {"tau": 0.1, "queries": 0}, {"tau": 2}])
def test_wrong_tolerances_cost_nothing(terms):
    db = publish()
    with pytest.raises(InvalidQuery):
        stat(db, col("smoker"), **terms)
    assert db.remaining == 100


def test_a_conjunction_is_found_without_noise():
    data = table()
    found = Conjunction().fit(ExactOracle(publish(data, SCHEMA)), FEATURES, "label")
    assert {str(literal) for literal in found.clauses_[0].given} == {"a", "not b"}
    assert found.score(data, data["label"]) == 1.0
    array = data[FEATURES].to_numpy(dtype=object)
    assert (found.predict(array) == found.predict(data)).all()


def test_a_decision_list_is_found_without_noise():
    data = table(rule=lambda d: np.where(d["c"], False, np.where(d["d"] == "x", True, ~d["a"])))
    found = DecisionList().fit(ExactOracle(publish(data, SCHEMA)), FEATURES, "label")
    assert found.score(data, data["label"]) == 1.0
    assert found.export_text().startswith("if c: False")


@pytest.mark.sample(1)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_both_learn_through_noise(neighbours):
    data = table(20_000)
    for learner in (Conjunction(), DecisionList()):
        db = publish(data, SCHEMA, Promise(2, "1e-6", neighbours=neighbours))
        found = learner.fit(db, FEATURES, "label")
        assert found.score(data, data["label"]) > 0.9
        assert 0 < found.tau_ < 0.1
        assert found.credits_ <= 100


def test_a_learner_of_ones_own_is_ten_lines():
    class BestLiteral(SQLearner):
        def questions(self, literals):
            return 2 * len(literals)

        def search(self, ask, literals, label):
            def right(literal):
                return ask(literal.condition & label) + ask(~literal.condition & ~label)

            return [Clause((max(literals, key=right),), True)], False

    data = table(rule=lambda d: d["c"])
    found = BestLiteral().fit(ExactOracle(publish(data, SCHEMA)), FEATURES, "label")
    assert found.export_text() == "if c: True\nelse: False"


def test_a_tolerance_beyond_the_budget_is_refused_before_spending():
    db = publish(table(500), SCHEMA, Promise("0.5", "1e-6"))
    with pytest.raises(TooNoisy, match="times the rows"):
        Conjunction(tau=0.001).fit(db, FEATURES, "label")
    assert db.remaining == 100


def test_a_tolerance_within_the_budget_leaves_the_rest():
    db = publish(table(20_000), SCHEMA, Promise(2, "1e-6"))
    found = Conjunction(tau=0.05).fit(db, FEATURES, "label")
    assert found.tau_ == 0.05
    assert db.remaining > 50


@pytest.mark.parametrize(
    ("features", "label", "words"),
    [(["a", "n"], "label", "Number"), (["a"], "d", None), (["a"], "n", "no declared classes")],
)
def test_wrong_columns_cost_nothing(features, label, words):
    db = publish(table(100), SCHEMA)
    if words is None:
        assert Conjunction().quote(db, features, label).credits > 0
        return
    with pytest.raises(InvalidQuery, match=words):
        Conjunction().fit(db, features, label)
    assert db.remaining == 100


@pytest.mark.parametrize("delta", ["1e-6", 0])
def test_an_unaffordable_share_says_what_would_do(delta):
    db = publish(promise=Promise(1, delta))
    with pytest.raises(TooNoisy, match="times the rows, the epsilon or the tau") as stopped:
        stat(db, col("smoker"), 0.0001)
    assert db.remaining == 100
    factor = float(str(stopped.value).split(": ")[1].split(" times")[0])
    enough = stat_quote(db, col("smoker"), 0.0001 * factor * 1.01)
    assert sum(quote.credits for quote in enough) <= 100


def test_fewer_rows_than_stated_widen_the_tolerance():
    db = publish(promise=Promise(1, "1e-6", neighbours="add-remove"))
    found = stat(db, col("smoker"), 0.05, rows=20_000, confidence=1 - 1e-7)
    assert found.tau > 0.4  # 2,000 rows are there
    assert abs(float(found) - frame()["smoker"].mean()) <= found.tau


@pytest.mark.parametrize("learner", [Conjunction(), DecisionList()])
def test_clauses_worse_than_the_majority_give_way_to_it(learner):
    random = np.random.default_rng(1)
    data = table(rule=lambda d: random.random(len(d)) < 0.2)
    data["label"] = data["label"].astype(object).where(data.index % 9 > 0, None)
    with pytest.warns(NoisyResult, match="most frequent class"):

        class Never(type(learner)):
            def search(self, ask, literals, label):
                return [Clause((literals[0],), True)], True

        found = Never().fit(ExactOracle(publish(data, SCHEMA)), FEATURES, "label")
    assert not found.predict(data).any()
    known = data["label"].notna()
    assert found.accuracy_ == pytest.approx(data["label"][known].astype(bool).mean())


def test_the_accuracy_is_that_of_the_rows():
    """S4.25: the share that is right, not a chance of failure."""
    data = table(rule=lambda d: np.where(d["c"], False, np.where(d["d"] == "x", True, ~d["a"])))
    # a missing value is neither true nor false: the next clause decides
    data["c"] = data["c"].astype(object).where(data.index % 5 > 0, None)
    found = DecisionList().fit(ExactOracle(publish(data, SCHEMA)), FEATURES, "label")
    assert found.accuracy_ == pytest.approx(found.score(data, data["label"].astype(bool)), abs=1e-9)
    assert found.accuracy_error_ == 0
