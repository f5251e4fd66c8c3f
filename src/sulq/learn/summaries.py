"""What a learner found, as values that the terminal, the charts and the console read.

`Learner.summary()` makes one of them. It holds released numbers only. A reader chooses what to show
by the class of the summary and needs no attribute of the learner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from sulq.errors import InvalidQuery
from sulq.learn.features import Array

Records = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What every summary has: the learner's name, and facts that belong to no single record."""

    name: str
    facts: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def records(self) -> Records:
        """Return one record for each line of a table, all with the same keys."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Directions(Summary):
    """Components or factors: loadings of coordinates, and how much lies along each direction."""

    word: str = "component"
    keys: tuple[str, ...]
    components: Array
    errors: Array | None
    """The standard error of each loading: its share of the angle by which noise turns a direction.
    """
    sizes: Array
    sizes_error: Array | None = None
    size_name: str = "variance"
    noise_edge: float = 0.0
    """Sizes below this may be noise alone; 0 if there is no such edge."""
    ratios: Array | None = None
    """The share of all variance along each direction."""

    def records(self) -> Records:
        names = [f"{self.word} {place + 1}" for place in range(len(self.components))]
        return [
            {"coordinate": key, **dict(zip(names, map(float, self.components[:, i]), strict=True))}
            for i, key in enumerate(self.keys)
        ]


def loading_errors(turned: Array, width: int) -> Array:
    """Return the standard error of each loading, from the angle by which a direction is turned."""
    each = np.asarray(turned) / np.sqrt(max(width - 1, 1))
    return np.repeat(each[:, None], width, axis=1)


@dataclass(frozen=True, kw_only=True)
class Groups(Summary):
    """Clusters or components of a mixture: where their centres are, how many rows each holds."""

    word: str
    keys: tuple[str, ...]
    widths: Array
    """The width of each coordinate's public bounds, in user units."""
    centres: Array
    centres_error: Array
    shares: Array
    deviations: Array | None = None
    """The standard deviation of the rows of a mixture's component, by coordinate."""
    sizes: Array | None = None
    sizes_error: Array | None = None
    within: float = float("nan")
    """The mean distance of a row from its centre along one coordinate, in widths of the bounds."""

    def records(self) -> Records:
        return [
            {
                self.word: place,
                "share": float(s),
                **dict(zip(self.keys, map(float, c), strict=True)),
            }
            for place, (c, s) in enumerate(zip(self.centres, self.shares, strict=True))
        ]

    def axes(self, x: str | None = None, y: str | None = None) -> tuple[int, int]:
        """Return the places of two coordinates: those named, else those that part centres most."""
        for name in (x, y):
            if name is not None and name not in self.keys:
                raise InvalidQuery(f"no coordinate {name!r:.40}; there are {list(self.keys)[:20]}")
        weights = np.maximum(self.shares, 0)
        weights = weights / max(float(weights.sum()), 1e-9)
        scaled = self.centres / self.widths
        between = (weights[:, None] * (scaled - weights @ scaled) ** 2).sum(axis=0)
        order = [int(place) for place in np.argsort(-between)]
        free = [place for place in order if self.keys[place] != y or len(order) == 1]
        first = free[0] if x is None else self.keys.index(x)
        if y is not None:
            return first, self.keys.index(y)
        return first, next((place for place in order if place != first), first)


@dataclass(frozen=True, kw_only=True)
class ClassShares(Summary):
    """The noisy share of each class: all that is known when no column tells them apart."""

    classes: tuple[Any, ...]
    shares: Array

    def records(self) -> Records:
        return [
            {"class": str(name), "share": float(share)}
            for name, share in zip(self.classes, self.shares, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class ClassColumns(ClassShares):
    """Naive Bayes: class shares and means, and the bits that each column tells of the class."""

    bits: dict[str, float]
    means: dict[str, Array] = field(default_factory=dict)

    def records(self) -> Records:
        return [
            line | {f"mean {key}": float(means[place]) for key, means in self.means.items()}
            for place, line in enumerate(super().records())
        ]


@dataclass(frozen=True, kw_only=True)
class Coefficients(Summary):
    """Weights of a linear model, in user units: one row, or one for each class."""

    keys: tuple[str, ...]
    widths: Array
    matrix: Array
    errors: Array | None = None
    classes: tuple[Any, ...] = ()
    """Of a classifier: the second of two classes, or all of more."""

    def records(self) -> Records:
        if len(self.matrix) > 1:
            heads = [str(name) for name in self.classes]
            columns = [dict(zip(heads, map(float, row), strict=True)) for row in self.matrix.T]
        elif self.errors is None:
            columns = [{"weight": float(weight)} for weight in self.matrix[0]]
        else:
            columns = [
                {"weight": float(weight), "noise": float(error)}
                for weight, error in zip(self.matrix[0], np.ravel(self.errors), strict=True)
            ]
        return [{"coordinate": k} | line for k, line in zip(self.keys, columns, strict=True)]


@dataclass(frozen=True, kw_only=True)
class NumberCoefficients(Coefficients):
    """Weights of a regression: what a unit of each coordinate adds to the predicted number."""


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One node: the condition that leads to it from its parent, and its noisy rows by class."""

    depth: int
    condition: str | None
    column: str | None
    """The column that the node splits by; None for a leaf."""
    counts: tuple[float, ...]
    shares: tuple[float, ...]
    children: tuple[int, ...]

    @property
    def rows(self) -> float:
        return max(sum(self.counts), 0.0)


@dataclass(frozen=True, kw_only=True)
class TreeNodes(Summary):
    """A decision tree, its root first. `leaf_error`: standard error of a class count in a leaf."""

    classes: tuple[Any, ...]
    nodes: tuple[TreeNode, ...]
    leaf_error: float

    def records(self) -> Records:
        return self._below(0)

    def _below(self, place: int) -> Records:
        node = self.nodes[place]
        head = "  " * node.depth + (node.condition or "all rows")
        shares = {str(name): share for name, share in zip(self.classes, node.shares, strict=True)}
        line = {"node": head, "rows": round(sum(node.counts)), **shares}
        return [line, *(line for child in node.children for line in self._below(child))]

    def leaves(self, place: int = 0, depth: float = float("inf")) -> int:
        """Return how many leaves are below a node, if the tree is cut at `depth`."""
        node = self.nodes[place]
        if not node.children or node.depth >= depth:
            return 1
        return sum(self.leaves(child, depth) for child in node.children)


class FoundRule(Protocol):
    """A rule as its learner found it."""

    given: tuple[str, ...]
    then: tuple[str, ...]
    support: float
    confidence: float
    lift: float
    confidence_error: float


@dataclass(frozen=True, kw_only=True)
class RuleList(Summary):
    """Association rules, the surest first."""

    rules: Sequence[Any]

    def records(self) -> Records:
        return [
            {
                "rule": rule_text(rule),
                "support": rule.support,
                "confidence": rule.confidence,
                "lift": rule.lift,
                "noise": rule.confidence_error,
            }
            for rule in self.rules
        ]


def rule_text(rule: FoundRule) -> str:
    """bread & butter → jam"""
    return f"{' & '.join(rule.given)} → {' & '.join(rule.then)}"


@dataclass(frozen=True, kw_only=True)
class ItemScores(Summary):
    """Scores of items that add up to 1, the highest first."""

    items: tuple[str, ...]
    scores: Array
    errors: Array

    def records(self) -> Records:
        return [
            {"item": item, "score": float(score), "noise": float(error)}
            for item, score, error in zip(self.items, self.scores, self.errors, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class WordVectors(Summary):
    """Words along the leading directions of a table of counts (components x words)."""

    words: tuple[Any, ...]
    vectors: Array
    error: float
    """The standard error of a coordinate on the first direction."""

    def records(self) -> Records:
        return [
            {"word": word, **{f"component {i + 1}": float(x) for i, x in enumerate(coordinates)}}
            for word, coordinates in zip(self.words, self.vectors.T, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class Topics(Summary):
    """Topics: their shares, and the chance of each word in each of them (topics x words)."""

    words: tuple[Any, ...]
    shares: Array
    shares_error: Array
    chances: Array
    chances_error: Array

    def top_words(self, place: int, count: int = 5) -> list[int]:
        """Return the places of the words that say most of a topic."""
        return [int(at) for at in np.argsort(-self.chances[place], kind="stable")[:count]]

    def records(self) -> Records:
        return [
            {
                "topic": place + 1,
                "share": float(self.shares[place]),
                "share error": float(self.shares_error[place]),
                "words": ", ".join(str(self.words[at]) for at in self.top_words(place)),
            }
            for place in range(len(self.shares))
        ]


@dataclass(frozen=True, kw_only=True)
class Clauses(Summary):
    """Clauses in the order they are tried; each share of rows is known within `tau`."""

    lines: tuple[str, ...]
    tau: float

    def records(self) -> Records:
        return [{"clause": line} for line in self.lines]


@dataclass(frozen=True, slots=True)
class ClassTest:
    """Public test rows of a classifier: the place of each true class, and class probabilities."""

    classes: tuple[Any, ...]
    truth: Array
    chances: Array


@dataclass(frozen=True, slots=True)
class NumberTest:
    """Public test rows of a regression: true numbers and predicted ones."""

    truth: Array
    predicted: Array
