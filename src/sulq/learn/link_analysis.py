"""LinkAnalysis: which items matter, from who holds what. HITS and PageRank over a private table.

Rows are people, columns are items; a row's entries say how much of each item it holds. The
authority of items is the leading direction of A'A (Kleinberg), or the walk from item to item
through the people who hold both (PageRank). The people, whose links these are, stay private.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from sulq.errors import InvalidQuery
from sulq.kernel.query.vectors import project
from sulq.learn.budget import FitBudget, FitPlan, FitStep
from sulq.learn.covariance import Gram, ask_gram, clip_share, find_lengths
from sulq.learn.dataset import FitData
from sulq.learn.estimator import Learner
from sulq.learn.features import Array, published
from sulq.learn.parameters import Constraints, Interval, OneOf
from sulq.learn.summaries import ItemScores, Summary

CLIP_SHARE = 0.05
DRAWS = 100
"""Simulated draws of the known noise, for the standard errors."""
ROUNDS = 10
STEPS = 1_000


class LinkAnalysis(Learner):
    """Scores of items by who holds them: HITS or PageRank over a private table.

    Parameters
    ----------
    kind : {"hits", "pagerank"}
        Authorities, or a random walk from item to item through the people who hold both.
    damping : float
        Of PageRank: the chance to follow a link rather than to jump anywhere.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    items_ : ndarray
        The items.
    scores_, scores_error_ : ndarray
        Scores that add up to 1, and the part of their error that noise gives.
    ranking_ : ndarray
        The items, the highest score first.

    Notes
    -----
    Scores follow from one noisy Gram matrix. `method="paper"` iterates A'(A w) with one noisy
    question a round, as the papers' power iteration does. `score` gives the hub value of public
    rows.

    Examples
    --------
    >>> from sulq.learn import LinkAnalysis
    >>> LinkAnalysis(credits=50).fit(db, ["smoker", "age", "income"]).ranking_.shape
    (3,)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "kind": [OneOf("hits", "pagerank")],
        "damping": [Interval(0, 1)],
    }

    def __init__(
        self,
        kind: str = "hits",
        damping: float = 0.85,
        *,
        credits: Any = None,
        method: str = "auto",
        random_state: int | None = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.kind = kind
        self.damping = damping
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    def _plan(self, table: FitData) -> FitPlan:
        if table.width < 2:
            raise InvalidQuery("links need at least two items; name more columns")
        base = table.share
        if self.method == "paper":
            if self.kind != "hits":
                raise InvalidQuery('method="paper" is the power iteration of kind="hits"')
            return FitPlan("power iteration", (FitStep("round", base, ROUNDS),))
        steps = (FitStep("clip", CLIP_SHARE * base), FitStep("gram", (1 - CLIP_SHARE) * base))
        return FitPlan(self.kind, steps)

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        if self.method == "paper":
            scores, error = self._iterated(table, budget)
        else:
            lengths = find_lengths(table, budget, None)
            radius = lengths.quantile(clip_share(table))
            gram = ask_gram(table, budget, table.features.as_vector(None, radius))
            self._check(table, gram)
            scores = self._scores(gram.value)
            error = self._simulated(gram)
        self.scores_ = scores
        self.scores_error_ = error
        self.items_ = np.array(table.features.keys, dtype=object)
        self.ranking_ = self.items_[np.argsort(-scores, kind="stable")]
        close = int((np.abs(np.diff(np.sort(scores)[::-1])) < 2 * error.max()).sum())
        if close and error.max() > 0:
            self._note(f"{close} neighbours in the ranking are within two standard errors")

    def _check(self, table: FitData, gram: Gram) -> None:
        top = float(np.linalg.eigvalsh(gram.value)[-1])
        if gram.error and top < gram.edge + 3 * gram.error:  # few items: the edge is not sharp
            self._too_noisy(
                f"no link stands out: the strongest is {top:.3g}, noise alone reaches"
                f" {gram.edge:.3g}; about {2 * gram.edge / max(top, gram.error):.2g} times the rows"
                " would do"
            )

    def _scores(self, gram: Array) -> Array:
        held = np.maximum((gram + gram.T) / 2, 0.0)
        return _authorities(held) if self.kind == "hits" else _walk(held, self.damping)

    def _simulated(self, gram: Gram) -> Array:
        """How much the scores move under further draws of the noise, whose law is public."""
        if gram.error == 0:
            return np.zeros(len(gram.value))
        random = np.random.default_rng(self.random_state)
        shape = gram.value.shape
        found = []
        for _ in range(DRAWS):
            noise = random.normal(0, gram.error, shape)
            found.append(self._scores(gram.value + (noise + noise.T) / 2))
        return np.asarray(np.std(found, axis=0))

    def _iterated(self, table: FitData, budget: FitBudget) -> tuple[Array, Array]:
        """w <- A'(A w) + noise, normalised; the last round's noise is what remains."""
        vector = table.features.as_vector()
        weights = np.full(table.width, 1 / math.sqrt(table.width))
        error = 0.0
        for _ in range(ROUNDS):
            hub = project(vector, [published(weights)])
            sums, error = budget.sums("round", table.outer(hub, vector))
            following = np.maximum(sums[0], 0.0)
            length = float(np.linalg.norm(following))
            if length <= error * math.sqrt(table.width):
                self._too_noisy(
                    f"a round's answer has length {length:.3g}, its noise"
                    f" {error * math.sqrt(table.width):.3g}; ask fewer rounds' worth: method='auto'"
                )
                break
            weights = following / length
            error /= length
        total = max(float(weights.sum()), 1e-300)
        return weights / total, np.full(table.width, error / total)

    def _summary(self) -> Summary:
        order = np.argsort(-self.scores_, kind="stable")
        return ItemScores(
            name=type(self).__name__,
            items=tuple(str(item) for item in self.items_[order]),
            scores=self.scores_[order],
            errors=self.scores_error_[order],
        )

    def score(self, rows: Any, y: object = None) -> Array:
        """The hub value of public rows, such as a participant's own: A w."""
        found: Array = self._coordinates(rows) @ self.scores_
        return found


def _authorities(held: Array) -> Array:
    """The leading direction of a matrix without negative entries, as shares."""
    weights = np.full(len(held), 1.0)
    for _ in range(STEPS):
        following = held @ weights
        total = float(following.sum())
        if total <= 0:
            break
        following /= total
        if np.abs(following - weights).max() < 1e-14:
            break
        weights = following
    return np.asarray(weights / weights.sum())


def _walk(held: Array, damping: float) -> Array:
    """PageRank on items: step through someone who holds both; jump anywhere now and then."""
    count = len(held)
    linked = held - np.diag(np.diag(held))
    leaving = linked.sum(axis=0)
    steps = np.where(leaving > 0, linked / np.where(leaving > 0, leaving, 1.0), 1 / count)
    ranks = np.full(count, 1 / count)
    for _ in range(STEPS):
        following = damping * steps @ ranks + (1 - damping) / count
        if np.abs(following - ranks).max() < 1e-14:
            break
        ranks = following
    return np.asarray(ranks / ranks.sum())
