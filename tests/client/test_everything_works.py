"""Code written for a table here works with one behind a server: learners, attacks, beliefs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.attacks.sandbox import database
from tests.client.conftest import Far, far

from sulq import Database, Flag, Number, Promise, Schema, col, count
from sulq.answers.oracle import Oracle
from sulq.attacks.denials import denials
from sulq.attacks.target import Bits, Target
from sulq.attacks.trackers import differencing, tracker
from sulq.beliefs import Observation, posterior
from sulq.learn import PCA, DecisionTree, KMeans, LogisticRegression

SCHEMA = Schema(Number("x", 0, 10), Number("y", 0, 10), Flag("old"))
PROMISE = Promise(20, "1e-6", queries=200)


@pytest.fixture
def points(state_directory: Path) -> Iterator[Far]:
    random = np.random.default_rng(5)
    old = random.random(4_000) < 0.5
    data = pd.DataFrame(
        {
            "x": np.clip(random.normal(np.where(old, 7, 3), 0.7), 0, 10),
            "y": np.clip(random.normal(np.where(old, 7, 3), 0.7), 0, 10),
            "old": old,
        }
    )
    database = Database.open(data, SCHEMA, PROMISE, ":memory:", name="points")
    database.grant("analyst", 150)
    with far(state_directory, points=database) as found:
        yield found


@pytest.mark.slow
def test_learners(points: Far) -> None:
    remote = points.remote("points", "analyst")
    left = remote.remaining
    pca = PCA(1, credits=10).fit(remote, ["x", "y"])
    slope = pca.components_[0][1] / pca.components_[0][0]
    assert 0.7 < slope < 1.4
    groups = KMeans(2, credits=40, random_state=0).fit(remote, ["x", "y"])
    centres = sorted(float(c[0]) for c in groups.cluster_centers_)
    assert abs(centres[0] - 3) < 1 and abs(centres[1] - 7) < 1
    tree = DecisionTree(max_depth=2, credits=30).fit(remote, ["x", "y"], "old")
    sides = pd.DataFrame({"x": [2.0, 8.0], "y": [2.0, 8.0]})
    assert [bool(side) for side in tree.predict(sides)] == [False, True]
    logistic = LogisticRegression(credits=20).fit(remote, ["x", "y"], "old")
    assert [bool(side) for side in logistic.predict(sides)] == [False, True]
    spent = sum(one.credits_ for one in (pca, groups, tree, logistic))
    assert left - remote.remaining == spent <= 100
    for learner in (pca, groups):
        seen = {receipt.seq for receipt in learner.receipts_}
        assert all(points.databases["points"].receipt(number).seq == number for number in seen)


def test_a_learner_is_quoted_the_same(points: Far) -> None:
    local, remote = points.databases["points"], points.remote("points")
    here, there = (PCA(1, credits=10).quote(oracle, ["x", "y"]) for oracle in (local, remote))
    assert here.credits == there.credits and str(here) == str(there)


def test_beliefs(points: Far) -> None:
    """What one answer does to a belief about one row follows from the answer alone."""
    answer = points.remote("points").ask(count(where=col("old")))
    (law,), (value,) = answer.laws, answer.values
    assert answer.bound is not None
    one = int(1 / answer.bound.terms[0].fine_step)
    known = value - one // 2  # as far from "is not" as from "is"
    seen = Observation(value, law, {"is not": known, "is": known + one})
    after = posterior({"is not": 0.5, "is": 0.5}, [seen])
    assert math.isclose(after["is"], 0.5, abs_tol=1e-3)


@pytest.mark.parametrize(
    "attack",
    [differencing, tracker, pytest.param(denials, marks=pytest.mark.slow)],
    ids=["differencing", "tracker", "denials"],
)
def test_attacks(state_directory: Path, attack: Any) -> None:
    """On tables published anew behind the server; through HTTP nothing more is found."""
    promise = Promise(1, "1e-6", queries=200)
    with ExitStack() as closing, far(state_directory) as found:

        def publish(secrets: Bits) -> Oracle:
            name = f"secrets{len(found.tables.names())}"
            made = closing.enter_context(database(secrets, promise))
            found.tables.add(name, made)
            return found.remote(name)

        target = Target(promise, 40, publish, lambda oracle, number: [oracle] * number)
        few = {"rows": 16, "bits": 40} if attack is denials else {"people": 10}
        told = attack(target, **few)
        findings = told if isinstance(told, list) else [told]
        assert [finding.attack for finding in findings if finding.broken] == []
        assert min(found.tables[name].remaining for name in found.tables.names()) < 200
