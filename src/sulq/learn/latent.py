"""LSI and PLSI: what documents are about, from noisy counts of words in documents.

A row of the table is one occurrence of a word in a document. The one question is the table of
counts, documents x words: a histogram, so it costs the same for any number of documents and words.
LSI is its truncated singular value decomposition. PLSI is Hofmann's mixture of topics,
P(document, word) = sum over topics of P(topic) P(document | topic) P(word | topic), by EM.
Everything after the counts is post-processing. Hofmann 1999; named by Duan, section 2.1.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from sulq.errors import InvalidQuery
from sulq.kernel.query.vectors import one_hot
from sulq.kernel.schema.columns import Category, Flag
from sulq.learn.budget import FitBudget, FitPlan, FitStep
from sulq.learn.dataset import FitData
from sulq.learn.estimator import Learner
from sulq.learn.features import Array
from sulq.learn.parameters import Constraints, OneOf, Whole, check_parameter
from sulq.learn.summaries import Summary, Topics, WordVectors

DRAWS = 20
"""Simulated draws of the known noise, for the standard errors."""
STILL = 1e-9
"""EM stops when the log-likelihood of one occurrence rises by less."""
TINY = 1e-300

Model = tuple[Array, Array, Array]
"""P(topic), P(document | topic), P(word | topic)."""


class LatentLearner(Learner):
    """What LSI and PLSI share: the counts, and how many directions stand out of their noise."""

    _parameter_constraints: ClassVar[Constraints] = {
        "method": [OneOf("auto")],
    }
    _many: str
    """The name of the parameter that says how many directions or topics."""

    def _plan(self, table: FitData) -> FitPlan:
        many = getattr(self, self._many)
        names = table.features.names
        if len(names) != 2:
            raise InvalidQuery(
                f"{type(self).__name__} takes two columns, the document and the word, got"
                f" {len(names)}: fit(db, ['document', 'word'])"
            )
        for name in names:
            column = table.features.schema[name]
            if not isinstance(column, Category | Flag):
                raise InvalidQuery(
                    f"{name} is a Number: documents and words are Categories with declared values"
                )
        fewest = min(_size(table, name) for name in names)
        if many > fewest:
            raise InvalidQuery(
                f"{self._many} is {many}, and the smaller column has {fewest} values; take fewer"
            )
        return FitPlan("counts", (FitStep("counts", table.share),))

    def _counts(self, table: FitData, budget: FitBudget) -> tuple[Array, float]:
        """The noisy counts, documents x words, and the standard error of each."""
        documents, words = (one_hot(name) for name in table.features.names)
        counts, error = budget.sums("counts", table.outer(documents, words))
        self.documents_, self.words_ = (_values(table, name) for name in table.features.names)
        self.counts_error_ = error
        return counts, error

    def _check(self, values: Array, edge: float) -> None:
        """Raise TooNoisy if no singular value is above what noise alone reaches."""
        above = int((values > edge).sum())
        if not above:
            self._too_noisy(
                f"nothing stands out: the largest singular value is {values[0]:.3g}, noise alone"
                f" reaches {edge:.3g}; more rows, fewer documents and words, or more credits"
            )
        elif above < getattr(self, self._many):
            self._doubt(
                f"{above} of {getattr(self, self._many)} directions stand out of the noise; the"
                " others follow it: ask for fewer, or spend more credits"
            )


class LSI(LatentLearner):
    """Latent semantic indexing: the leading singular directions of documents by words.

    Parameters
    ----------
    n_components : int
        How many directions.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    singular_values_ : ndarray
        The singular values of the noisy counts.
    document_vectors_ : ndarray of shape (documents, n_components)
        The coordinates of the documents.
    word_vectors_ : ndarray of shape (n_components, words)
        The coordinates of the words.
    documents_, words_ : ndarray
        Their declared values.
    counts_error_ : float
        The standard error of one count.
    noise_edge_ : float
        The largest singular value that noise alone would show.

    Notes
    -----
    One question counts every pair. `transform` places public documents.

    Examples
    --------
    >>> from sulq.learn import LSI
    >>> LSI(n_components=1, credits=50).fit(db, ["smoker", "blood"]).word_vectors_.shape
    (1, 3)
    """

    _many = "n_components"
    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": [Whole()],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        credits: Any = None,
        method: str = "auto",
        random_state: int | None = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.n_components = n_components
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        counts, error = self._counts(table, budget)
        left, values, right = np.linalg.svd(counts, full_matrices=False)
        self.noise_edge_ = _edge(counts, error)
        self._check(values, self.noise_edge_)
        kept = self.n_components
        signs = np.where(right[:kept].sum(axis=1) < 0, -1.0, 1.0)
        self.singular_values_ = values[:kept]
        self.document_vectors_ = left[:, :kept] * signs
        self.word_vectors_ = right[:kept] * signs[:, None]

    def _summary(self) -> Summary:
        return WordVectors(
            name=type(self).__name__,
            facts={"singular_values": [float(x) for x in self.singular_values_]},
            words=tuple(self.words_),
            vectors=self.word_vectors_,
            error=self.counts_error_ / max(float(self.singular_values_[0]), TINY),
        )

    def transform(self, counts: Any) -> Array:
        """Public documents, as counts of `words_`, in the coordinates of `document_vectors_`."""
        self._check_fitted()
        found = np.asarray(counts, dtype=np.float64)
        if found.ndim != 2 or found.shape[1] != len(self.words_):
            raise InvalidQuery(f"want counts of {len(self.words_)} words, one document a line")
        return np.asarray(found @ self.word_vectors_.T / np.maximum(self.singular_values_, TINY))


class PLSI(LatentLearner):
    """Topics of documents: probabilistic latent semantic indexing.

    Parameters
    ----------
    n_topics : int
        How many topics.
    rounds : int
        The most rounds of expectation and maximisation. They ask nothing.
    starts : int
        How many random starts; the likeliest result is kept.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    topic_shares_, topic_shares_error_ : ndarray
        P(topic), the largest first, and the part of its error that noise gives.
    document_given_topic_, document_given_topic_error_ : ndarray of shape (topics, documents)
        P(document | topic).
    word_given_topic_, word_given_topic_error_ : ndarray of shape (topics, words)
        P(word | topic). `top_words(n)` lists the words that say most of each topic.
    documents_, words_ : ndarray
        Their declared values.
    counts_error_ : float
        The standard error of one count.
    n_iter_, log_likelihood_ : int and float
        The number of rounds, and the log-likelihood of the counts at their end.

    Notes
    -----
    Singular directions of the noisy counts that are below the noise are left out first; without
    noise it is the plain algorithm.

    Examples
    --------
    >>> from sulq.learn import PLSI
    >>> model = PLSI(n_topics=2, rounds=5, starts=1, credits=50, random_state=0)
    >>> model.fit(db, ["smoker", "blood"]).topic_shares_.shape
    (2,)
    """

    _many = "n_topics"
    _parameter_constraints: ClassVar[Constraints] = {
        "n_topics": [Whole()],
        "rounds": [Whole()],
        "starts": [Whole()],
    }

    def __init__(
        self,
        n_topics: int = 5,
        *,
        rounds: int = 500,
        starts: int = 5,
        credits: Any = None,
        method: str = "auto",
        random_state: int | None = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.n_topics = n_topics
        self.rounds = rounds
        self.starts = starts
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        random = np.random.default_rng(self.random_state)
        noisy, error = self._counts(table, budget)
        edge = _edge(noisy, error)
        self._check(np.asarray(np.linalg.svd(noisy, compute_uv=False), np.float64), edge)
        counts = _above_noise(noisy, edge)
        climbed = [
            self._climbed(counts, _start(counts, self.n_topics, random)) for _ in range(self.starts)
        ]
        model, self.log_likelihood_, self.n_iter_ = max(climbed, key=lambda found: found[1])
        order = np.argsort(-model[0], kind="stable")
        model = (model[0][order], model[1][order], model[2][order])
        self.topic_shares_, self.document_given_topic_, self.word_given_topic_ = model
        spread = [np.zeros_like(part) for part in model]
        if error:
            shaken = []
            for _ in range(DRAWS):  # of the noise, whose law is public
                again = _above_noise(noisy + random.normal(0, error, noisy.shape), edge)
                shaken.append(self._climbed(again, model)[0])
            spread = [np.std([one[part] for one in shaken], axis=0) for part in range(3)]
        self.topic_shares_error_ = spread[0]
        self.document_given_topic_error_ = spread[1]
        self.word_given_topic_error_ = spread[2]

    def _climbed(self, counts: Array, model: Model) -> tuple[Model, float, int]:
        """EM from a start: the model, its log-likelihood for one occurrence, the rounds taken."""
        total = max(float(counts.sum()), TINY)
        before, done = -math.inf, 0
        while done < self.rounds:
            done += 1
            topics, documents, words = model
            joint = np.einsum("z,zd,zw->dw", topics, documents, words)
            here = float((counts * np.log(np.maximum(joint, TINY))).sum()) / total
            ratio = counts / np.maximum(joint, TINY)
            # E and M in one: sum over words (or documents) of count x P(topic | document, word)
            by_document = topics[:, None] * documents * (words @ ratio.T)
            by_word = topics[:, None] * words * (documents @ ratio)
            weights = np.maximum(by_document.sum(axis=1), TINY)
            model = (
                weights / weights.sum(),
                by_document / weights[:, None],
                by_word / np.maximum(by_word.sum(axis=1), TINY)[:, None],
            )
            if here - before < STILL:
                break
            before = here
        return model, here, done

    def top_words(self, count: int = 5) -> list[list[Any]]:
        """For each topic the words with the largest P(word | topic), the first says most."""
        self._check_fitted()
        check_parameter("count", count, [Whole()])
        return [
            [self.words_[place] for place in np.argsort(-chances, kind="stable")[:count]]
            for chances in self.word_given_topic_
        ]

    def _summary(self) -> Summary:
        return Topics(
            name=type(self).__name__,
            words=tuple(self.words_),
            shares=self.topic_shares_,
            shares_error=self.topic_shares_error_,
            chances=self.word_given_topic_,
            chances_error=self.word_given_topic_error_,
        )

    def transform(self, counts: Any) -> Array:
        """P(topic | document) of public documents, given as counts of `words_`."""
        self._check_fitted()
        found = np.asarray(counts, dtype=np.float64)
        if found.ndim != 2 or found.shape[1] != len(self.words_) or (found < 0).any():
            raise InvalidQuery(f"want counts of {len(self.words_)} words, one document a line")
        shares = np.tile(self.topic_shares_, (len(found), 1))
        for _ in range(self.rounds):
            ratio = found / np.maximum(shares @ self.word_given_topic_, TINY)
            shares = shares * (ratio @ self.word_given_topic_.T)
            shares /= np.maximum(shares.sum(axis=1, keepdims=True), TINY)
        return np.asarray(shares)


def _size(table: FitData, name: str) -> int:
    return len(_values(table, name))


def _values(table: FitData, name: str) -> Array:
    column = table.features.schema[name]
    values = (column.values or ()) if isinstance(column, Category) else (False, True)
    return np.array(values, dtype=object)


def _edge(counts: Array, error: float) -> float:
    """The largest singular value of noise alone: error x (sqrt rows + sqrt columns). S4.7"""
    return error * (math.sqrt(counts.shape[0]) + math.sqrt(counts.shape[1]))


def _above_noise(counts: Array, edge: float) -> Array:
    """The counts without the directions below the noise, and nowhere negative."""
    if edge:
        left, values, right = np.linalg.svd(counts, full_matrices=False)
        kept = max(1, int((values > edge).sum()))
        counts = (left[:, :kept] * values[:kept]) @ right[:kept]
    return np.maximum(counts, 0.0)


def _start(counts: Array, topics: int, random: np.random.Generator) -> Model:
    """Random chances around those of the whole table."""
    parts = []
    for axis in (1, 0):
        whole_table = counts.sum(axis=axis) + TINY
        found = whole_table * random.gamma(1.0, 1.0, (topics, len(whole_table)))
        parts.append(found / np.maximum(found.sum(axis=1, keepdims=True), TINY))
    return np.full(topics, 1 / topics), parts[0], parts[1]
