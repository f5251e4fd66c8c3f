"""LSI and PLSI: plain algorithms without noise, honest with it, one histogram's price."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.learn.exact_oracle import ExactOracle
from tests.people import publish

from sulq import Category, InvalidQuery, Number, Promise, Schema
from sulq.learn import LSI, PLSI, NoisyResult, TooNoisy
from sulq.learn.latent import _start

DOCUMENTS = [f"d{i}" for i in range(12)]
WORDS = ["ball", "goal", "team", "vote", "law", "party", "the"]
SCHEMA = Schema(Category("document", DOCUMENTS), Category("word", WORDS), Number("page", 0, 9))
SPORT = np.array([0.3, 0.25, 0.25, 0.0, 0.0, 0.0, 0.2])
STATE = np.array([0.0, 0.0, 0.1, 0.3, 0.2, 0.2, 0.2])
COLUMNS = ["document", "word"]


def occurrences(rows: int = 20_000, seed: int = 5) -> pd.DataFrame:
    """Half of the documents are about sport, the others about the state."""
    random = np.random.default_rng(seed)
    places = random.integers(0, len(DOCUMENTS), rows)
    sport, state = (random.choice(len(WORDS), rows, p=chances) for chances in (SPORT, STATE))
    frame = {
        "document": np.array(DOCUMENTS)[places],
        "word": np.array(WORDS)[np.where(places < 6, sport, state)],
        "page": random.integers(0, 10, rows),
    }
    return pd.DataFrame(frame)


def counts_of(frame: pd.DataFrame) -> np.ndarray:
    table = pd.crosstab(frame["document"], frame["word"])
    return table.reindex(index=DOCUMENTS, columns=WORDS, fill_value=0).to_numpy(float)


def test_lsi_is_the_truncated_decomposition() -> None:
    frame = occurrences()
    found = LSI(2).fit(ExactOracle(publish(frame, SCHEMA)), COLUMNS)
    left, values, right = np.linalg.svd(counts_of(frame), full_matrices=False)
    assert found.singular_values_ == pytest.approx(values[:2], rel=1e-9)
    assert np.abs(found.word_vectors_) == pytest.approx(np.abs(right[:2]), abs=1e-9)
    assert np.abs(found.document_vectors_) == pytest.approx(np.abs(left[:, :2]), abs=1e-9)
    again = found.transform(counts_of(frame))
    assert again == pytest.approx(found.document_vectors_, abs=1e-9)
    assert list(found.words_) == WORDS


def plain_plsi(counts: np.ndarray, model: tuple, rounds: int) -> tuple:
    """Hofmann's EM with the responsibilities written out."""
    topics, documents, words = (part.copy() for part in model)
    for _ in range(rounds):
        joint = topics[:, None, None] * documents[:, :, None] * words[:, None, :]
        weighted = counts[None] * (joint / joint.sum(axis=0))
        topics = weighted.sum(axis=(1, 2))
        documents = weighted.sum(axis=2) / topics[:, None]
        words = weighted.sum(axis=1) / topics[:, None]
        topics = topics / topics.sum()
    return topics, documents, words


def test_em_is_hofmanns() -> None:
    counts = counts_of(occurrences(500))
    model = _start(counts, 2, np.random.default_rng(1))
    found, _, done = PLSI(2, rounds=7)._climbed(counts, model)
    assert done == 7
    for mine, plain in zip(found, plain_plsi(counts, model, 7), strict=True):
        assert mine == pytest.approx(plain, abs=1e-12)


def test_topics_are_found_without_noise() -> None:
    frame = occurrences()
    found = PLSI(2, random_state=0).fit(ExactOracle(publish(frame, SCHEMA)), COLUMNS)
    joint = np.einsum(
        "z,zd,zw->dw", found.topic_shares_, found.document_given_topic_, found.word_given_topic_
    )
    truth = np.array([SPORT] * 6 + [STATE] * 6) / 12
    assert joint == pytest.approx(truth, abs=0.003)  # 20,000 rows
    assert found.topic_shares_.sum() == pytest.approx(1)
    assert not found.word_given_topic_error_.any()
    shares = found.transform(np.array([SPORT * 100, STATE * 100]))
    assert shares.sum(axis=1) == pytest.approx([1, 1])
    assert abs(shares[0] - shares[1]).max() > 0.9


def test_noisy_topics_give_the_counts_within_their_noise() -> None:
    """Each cell of the fitted table is within 7 errors of the noise and 20 rows of the exact fit.

    Shrinking to two directions only lowers the noise: 84 cells x 2 Q(7) is below 1e-9.
    """
    frame = occurrences()
    db = publish(frame, SCHEMA, Promise(4, "1e-6"))
    found = PLSI(2, random_state=0).fit(db, COLUMNS)
    joint = np.einsum(
        "z,zd,zw->dw", found.topic_shares_, found.document_given_topic_, found.word_given_topic_
    )
    truth = np.array([SPORT] * 6 + [STATE] * 6) / 12 * len(frame)
    assert np.abs(joint * len(frame) - truth).max() < 7 * found.counts_error_ + 7 * 25
    assert found.word_given_topic_error_.max() > 0


def test_one_histogram_is_all_it_asks() -> None:
    db = publish(occurrences(5_000), SCHEMA, Promise(4, "1e-6", credits=100))
    before = db.remaining
    found = PLSI(2, credits=10, random_state=0).fit(db, COLUMNS)
    assert found.credits_ == before - db.remaining <= 10
    assert len(found.receipts_) == 1


def test_nothing_above_the_edge_raises() -> None:
    model = PLSI(2)
    model.notes_ = ()
    with pytest.raises(TooNoisy, match="noise alone"):
        model._check(np.array([3.0, 2.0]), 5.0)
    with pytest.warns(NoisyResult, match="1 of 2"):
        model._check(np.array([9.0, 2.0]), 5.0)
    model._check(np.array([9.0, 8.0]), 5.0)


@pytest.mark.parametrize(
    ("model", "columns", "words"),
    [
        (PLSI(2), ["document"], "two columns"),
        (PLSI(2), ["document", "page"], "page is a Number"),
        (PLSI(8), COLUMNS, "take fewer"),
        (PLSI(0), COLUMNS, "n_topics"),
        (PLSI(2, rounds=0), COLUMNS, "rounds"),
        (LSI(99), COLUMNS, "take fewer"),
    ],
)
def test_what_cannot_be_learned_is_refused_for_nothing(
    model: PLSI | LSI, columns: list[str], words: str
) -> None:
    db = publish(occurrences(100), SCHEMA, Promise(1, "1e-6"))
    before = db.remaining
    with pytest.raises(InvalidQuery, match=words):
        model.fit(db, columns)
    assert db.remaining == before


def test_public_documents_need_the_same_words() -> None:
    db = ExactOracle(publish(occurrences(2_000), SCHEMA))
    found = PLSI(2, random_state=0).fit(db, COLUMNS)
    with pytest.raises(InvalidQuery, match="7 words"):
        found.transform([[1, 2]])
    assert {len(words) for words in found.top_words(3)} == {3}
