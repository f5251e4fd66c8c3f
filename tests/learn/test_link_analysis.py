"""LinkAnalysis: authorities and walks, exact without noise, honest with it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.learn.exact_oracle import ExactOracle
from tests.people import publish

from sulq import Flag, InvalidQuery, Number, Promise, Schema
from sulq.learn import TooNoisy
from sulq.learn.link_analysis import LinkAnalysis

ITEMS = ["a", "b", "c", "d"]
SCHEMA = Schema(Flag("a"), Flag("b"), Flag("c"), Number("d", 0, 10))


def links(rows=4_000, seed=3):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": random.random(rows) < 0.8,
            "b": random.random(rows) < 0.5,
            "c": random.random(rows) < 0.2,
            "d": random.uniform(0, 3, rows),
        }
    )


def coordinates(frame):
    return np.column_stack([frame["a"], frame["b"], frame["c"], frame["d"] / 10]).astype(float)


def test_authorities_are_the_leading_direction():
    data = links()
    found = LinkAnalysis().fit(ExactOracle(publish(data, SCHEMA)), ITEMS)
    _, vectors = np.linalg.eigh(coordinates(data).T @ coordinates(data))
    expected = np.abs(vectors[:, -1]) / np.abs(vectors[:, -1]).sum()
    assert found.scores_ == pytest.approx(expected, abs=1e-5)
    assert list(found.ranking_) == ["a", "b", "c", "d"]
    assert found.score(data.head(3)) == pytest.approx(
        coordinates(data.head(3)) @ expected, abs=1e-5
    )


def test_the_papers_iteration_reaches_the_same():
    data = links()
    literal = LinkAnalysis(method="paper").fit(ExactOracle(publish(data, SCHEMA)), ITEMS)
    plain = LinkAnalysis().fit(ExactOracle(publish(data, SCHEMA)), ITEMS)
    assert literal.scores_ == pytest.approx(plain.scores_, abs=1e-4)


def test_pagerank_is_the_stationary_walk():
    data = links()
    found = LinkAnalysis("pagerank", 0.8).fit(ExactOracle(publish(data, SCHEMA)), ITEMS)
    gram = coordinates(data).T @ coordinates(data)
    np.fill_diagonal(gram, 0)
    steps = 0.8 * gram / gram.sum(axis=0) + 0.2 / 4
    values, vectors = np.linalg.eig(steps)
    lead = np.real(vectors[:, np.argmax(values.real)])
    assert found.scores_ == pytest.approx(lead / lead.sum(), abs=1e-4)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["hits", "pagerank"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_noisy_scores_keep_to_their_errors(kind, neighbours):
    data = links()
    exact = LinkAnalysis(kind).fit(ExactOracle(publish(data, SCHEMA)), ITEMS).scores_
    db = publish(data, SCHEMA, Promise(1, "1e-6", neighbours=neighbours))
    found = LinkAnalysis(kind, random_state=1).fit(db, ITEMS)
    assert (np.abs(found.scores_ - exact) < 6 * found.scores_error_ + 0.02).all()
    assert found.scores_error_.max() < 0.05


def test_noise_alone_is_not_ranked():
    db = publish(links(20), SCHEMA, Promise("0.1", "1e-6"))
    with pytest.raises(TooNoisy, match="noise alone reaches"):
        LinkAnalysis().fit(db, ITEMS)


@pytest.mark.parametrize(
    ("learner", "items", "words"),
    [
        (LinkAnalysis("fame"), ITEMS, "kind must be"),
        (LinkAnalysis(damping=1.0), ITEMS, "damping"),
        (LinkAnalysis(), ["a"], "at least two"),
        (LinkAnalysis("pagerank", method="paper"), ITEMS, "power iteration"),
    ],
)
def test_wrong_settings_cost_nothing(learner, items, words):
    db = publish(links(100), SCHEMA)
    with pytest.raises(InvalidQuery, match=words):
        learner.fit(db, items)
    assert db.remaining == 100
