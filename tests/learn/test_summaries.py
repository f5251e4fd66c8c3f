"""Summaries: every learner has one, and what readers take from it is right."""

from __future__ import annotations

import numpy as np
import pytest
from tests.learn.docstrings import described, sections
from tests.learn.exact_oracle import ExactOracle
from tests.learn.test_every_learner import LEARNERS, fit
from tests.people import frame, publish

from sulq import InvalidQuery
from sulq.learn import KMeans, Learner
from sulq.learn.summaries import ClassShares, Groups, Summary, TreeNode, TreeNodes

UNTOLD = {"class_log_prior_", "theta_", "theta_error_", "var_"}
"""Attributes that a fit sets on one of its ways only."""
SLOW = {"LinearSVC", "LogisticRegression, classes"}


@pytest.fixture
def oracle():
    return ExactOracle(publish(frame(500)))


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in LEARNERS]
)
def test_every_learner_has_a_summary_of_plain_records(name, oracle):
    learner, features, label = LEARNERS[name]
    more = {"min_confidence": 0.05, "min_support": 0.01} if name == "AssociationRules" else {}
    fitted = fit(learner, oracle, features, label, **more)
    found = fitted.summary()
    assert isinstance(found, Summary)
    records = found.records()
    assert records and all(list(record) == list(records[0]) for record in records)
    assert all(type(value) in (int, float, str) for line in records for value in line.values())
    told = described(sections(type(learner))["Attributes"])
    common = described(sections(Learner)["Attributes"])
    learned = {key for key in vars(fitted) if key.endswith("_") and not key.startswith("_")}
    assert {key for key in told | common if not hasattr(fitted, key)} <= UNTOLD
    assert learned - told - common - UNTOLD == set()


def test_below_the_noise_the_shares_of_the_classes_are_left():
    learner, features, label = LEARNERS["LogisticRegression"]
    found = fit(learner, publish(frame(60)), features, label).summary()
    assert isinstance(found, ClassShares)
    assert list(found.facts) == ["predicts"] and found.notes
    assert sum(line["share"] for line in found.records()) == pytest.approx(1)


def groups(centres: list[list[float]]) -> Groups:
    found = np.array(centres)
    return Groups(
        name="KMeans",
        word="cluster",
        keys=("a", "b", "c"),
        widths=np.ones(3),
        centres=found,
        centres_error=np.zeros_like(found),
        shares=np.full(len(found), 1 / len(found)),
    )


def test_axes_are_those_that_part_the_centres_most_or_those_named():
    found = groups([[0.0, 5, 1], [0, 9, 4]])
    assert found.axes() == (1, 2)
    assert found.axes(x="a") == (0, 1)
    assert found.axes(y="b") == (2, 1)
    with pytest.raises(InvalidQuery, match="no coordinate 'd'"):
        found.axes(y="d")


def test_leaves_are_counted_below_a_node_and_above_a_cut():
    counts, shares = (1.0, 1.0), (0.5, 0.5)
    nodes = (
        TreeNode(0, None, "a", counts, shares, (1, 2)),
        TreeNode(1, "a < 1", "b", counts, shares, (3, 4)),
        TreeNode(1, "a >= 1", None, counts, shares, ()),
        TreeNode(2, "b < 1", None, counts, shares, ()),
        TreeNode(2, "b >= 1", None, counts, shares, ()),
    )
    tree = TreeNodes(name="DecisionTree", classes=(False, True), nodes=nodes, leaf_error=1.0)
    assert (tree.leaves(), tree.leaves(1), tree.leaves(0, 1), tree.leaves(2)) == (3, 2, 2, 1)
    assert [line["node"] for line in tree.records()] == [
        "all rows",
        "  a < 1",
        "    b < 1",
        "    b >= 1",
        "  a >= 1",
    ]


def test_nothing_is_summed_up_before_it_was_learned():
    with pytest.raises(Exception, match="has not learned yet"):
        KMeans().summary()
