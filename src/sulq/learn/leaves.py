"""A tree of public splits, the question for its leaves, and class shares from noisy leaf counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from sulq.learn.cells import Attribute, Places
from sulq.learn.features import Array
from sulq.learn.splits import Split
from sulq.query.expressions import Expression
from sulq.query.vector_values import Vector
from sulq.query.vectors import cells, crossed


@dataclass(frozen=True, slots=True)
class Node:
    """One node, all of it public: who its parent is, how it splits, what its leaves counted.

    `counts` are noisy rows per class, `shares` the class shares that predictions use.
    """

    parent: int | None
    child: int
    depth: int
    split: Split | None = None
    children: tuple[int, ...] = ()
    counts: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()


@dataclass
class Tree:
    """Nodes by number; the root is 0."""

    attributes: tuple[Attribute, ...]
    nodes: list[Node] = field(default_factory=lambda: [Node(None, 0, 0)])

    @property
    def leaves(self) -> list[int]:
        return [place for place, node in enumerate(self.nodes) if node.split is None]

    @property
    def depth(self) -> int:
        return max(node.depth for node in self.nodes)

    def grow(self, place: int, split: Split) -> list[int]:
        """Split a leaf; its children's numbers."""
        node = self.nodes[place]
        start = len(self.nodes)
        for child in range(len(split.groups)):
            self.nodes.append(Node(place, child, node.depth + 1))
        children = tuple(range(start, len(self.nodes)))
        self.nodes[place] = replace(node, split=split, children=children)
        return list(children)

    def held(self, place: int) -> dict[int, tuple[frozenset[int], bool]]:
        """Per attribute on the way to a node: the cells it may hold, and whether missing ones."""
        found: dict[int, tuple[frozenset[int], bool]] = {}
        node = self.nodes[place]
        while node.parent is not None:
            above = self.nodes[node.parent]
            assert above.split is not None  # noqa: S101
            group = frozenset(above.split.groups[node.child])
            known, missing = found.get(above.split.attribute, (group, True))
            missing = missing and above.split.missing == node.child
            found[above.split.attribute] = known & group, missing
            node = above
        return found

    def truth(self, place: int) -> Expression:
        """Whether a row reaches a node below the root: one condition per column on the way."""
        held = self.held(place)
        parts = [self.attributes[number].reached(*held[number]) for number in sorted(held)]
        return reduce(lambda a, b: a & b, parts)

    def by_class(self, places: Sequence[int], classes: Vector) -> Vector:
        """One coordinate per node and class; the nodes exclude each other."""
        if list(places) == [0]:
            return classes
        return crossed(cells(*(self.truth(place) for place in places)), classes)

    def find(self, found: Places) -> Places:
        """The leaf of each row, from its cells (rows x attributes)."""
        at = np.zeros(len(found), dtype=np.intp)
        for place, node in enumerate(self.nodes):  # children come after their parent
            if node.split is None:
                continue
            rows = np.flatnonzero(at == place)
            attribute = node.split.attribute
            child = node.split.route(self.attributes[attribute].size)[found[rows, attribute]]
            at[rows] = np.asarray(node.children)[child]
        return at

    def settle(self, counts: Array, error: float, towards: Array | None = None) -> None:
        """Class shares from the leaves' noisy counts (leaves x classes), each drawn to its parent.

        A node's deviation from its parent keeps the part of its square that noise does not explain.
        `towards` replaces the parents' shares at the leaves.
        """
        leaf_number = {leaf: number for number, leaf in enumerate(self.leaves)}
        held = np.zeros((len(self.nodes), counts.shape[1]))
        below = np.zeros(len(self.nodes))
        held[self.leaves] = counts
        below[self.leaves] = 1.0
        for place in range(len(self.nodes) - 1, 0, -1):
            parent = self.nodes[place].parent
            held[parent] += held[place]
            below[parent] += below[place]
        shares = np.zeros_like(held)
        for place, node in enumerate(self.nodes):
            noise = error * float(np.sqrt(below[place]))
            above = np.full(held.shape[1], 1 / held.shape[1])
            if node.parent is not None:
                above = shares[node.parent]
            if towards is not None and place in leaf_number:
                above = towards[leaf_number[place]]
            shares[place] = drawn(held[place], noise, above)
            self.nodes[place] = replace(
                node, counts=tuple(held[place].tolist()), shares=tuple(shares[place].tolist())
            )

    def give(self, shares: Array, counts: Array) -> None:
        """Set the leaves' class shares and counts as they are; inner nodes add up."""
        held = np.zeros((len(self.nodes), shares.shape[1]))
        held[self.leaves] = counts
        for place in range(len(self.nodes) - 1, 0, -1):
            held[self.nodes[place].parent] += held[place]
        for number, leaf in enumerate(self.leaves):
            self.nodes[leaf] = replace(self.nodes[leaf], shares=tuple(shares[number].tolist()))
        for place, node in enumerate(self.nodes):
            above = np.maximum(held[place], 1e-9)
            kept = node.shares or tuple((above / above.sum()).tolist())
            self.nodes[place] = replace(node, counts=tuple(held[place].tolist()), shares=kept)


def drawn(counts: Array, error: float, towards: Array) -> Array:
    """Noisy counts as shares, drawn to other shares as far as they are noise."""
    total = max(float(counts.sum()), error * np.sqrt(len(counts)), 1e-9)
    away = counts / total - towards
    square = float(away @ away)
    noise = (len(counts) - 1) * (error / total) ** 2
    kept = max(0.0, 1.0 - noise / square) if square > 0 else 0.0
    shares = np.clip(towards + kept * away, 0.0, None)
    return np.asarray(shares / shares.sum()) if shares.sum() > 0 else towards
