"""DecisionTree: ID3 on categories and binned numbers, one question a level, and a leaf table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sulq.errors import InvalidQuery
from sulq.learn.cells import (
    BINS_SHARE,
    Places,
    bins_allowed,
    bins_worth_finding,
    cell_noise,
    cells_of,
    find_cells,
)
from sulq.learn.classifying import ClassLearner
from sulq.learn.features import Array
from sulq.learn.leaves import Node, Tree
from sulq.learn.spending import Plan, Purse, Step
from sulq.learn.splits import IMPURITIES, Split, best_binary, multiway
from sulq.learn.table import Table
from sulq.query.vectors import concat, ones

LEAF_SHARE = 0.3
DEEPEST = 10
MOST_CELLS = 500_000
"""Of one question: beyond it only the fullest nodes stay open."""


class DecisionTree(ClassLearner):
    """A decision tree from noisy class-by-cell tables.

    Each level asks one question for all its nodes and columns: a row is in one node, one class and
    one cell of each of A columns, so the noise is that of sqrt(A) counts (add-remove; sqrt(2A)
    where a row is replaced). A last question counts the classes in the leaves.

    `max_depth` and `bins` (of a Number) default to what the noise allows. `criterion` is "gini" or
    "entropy". `tree_` lists public nodes, `attributes_` the columns with their cells.
    """

    _methods = ("auto", "id3", "paper")

    def __init__(
        self,
        max_depth: int | None = None,
        *,
        criterion: str = "gini",
        bins: int | None = None,
        credits: Any = None,
        method: str = "auto",
        random_state: int | None = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.criterion = criterion
        self.bins = bins
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    # --- the plan -------------------------------------------------------------------------------

    def _plan(self, table: Table) -> Plan:
        self._check(table)
        depth = self._depth(table)
        finds = self.method != "paper" and bins_worth_finding(table)
        first = BINS_SHARE * table.share if finds else 0.0
        leaves = LEAF_SHARE * table.share
        levels = table.share - first - leaves
        steps = (Step("bins", first),) if first else ()
        method = "paper" if self.method == "paper" else "id3"
        return Plan(method, (*steps, Step("levels", levels, depth), Step("leaves", leaves)))

    def _check(self, table: Table) -> None:
        if self.criterion not in IMPURITIES:
            raise InvalidQuery(
                f"criterion must be one of {list(IMPURITIES)}, got {self.criterion!r}"
            )
        for name, least in (("max_depth", 1), ("bins", 2)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < least):
                raise InvalidQuery(
                    f"{name} must be a whole number from {least} or None, got {value!r}"
                )
        if table.features.vector is not None:
            raise InvalidQuery("DecisionTree splits on columns; give their names")

    def _depth(self, table: Table) -> int:
        if self.max_depth is not None:
            return int(self.max_depth)
        for depth in range(DEEPEST, 1, -1):
            share = (1 - LEAF_SHARE - BINS_SHARE) * table.share / depth
            if table.rows / 2**depth > 8 * cell_noise(table, share):
                return depth
        return 1

    def _bins(self, table: Table) -> int:
        return bins_allowed(table) if self.bins is None else int(self.bins)

    # --- learning -------------------------------------------------------------------------------

    def _learn(self, table: Table, purse: Purse) -> None:
        assert table.label is not None  # noqa: S101
        self.attributes_ = find_cells(table, purse, self._bins(table))
        tree = Tree(self.attributes_)
        open_nodes = [0]
        rounds = next(step.rounds for step in purse.plan.steps if step.name == "levels")
        for _ in range(rounds):
            if not open_nodes:
                break
            open_nodes = self._level(table, purse, tree, self._affordable(table, tree, open_nodes))
        vector = tree.by_class(tree.leaves, table.label.one_hot())
        counts, error = purse.sums("leaves", table.outer(vector, ones()), purse.left)
        self._finish(tree, counts.reshape(-1, len(table.label.classes)), error)

    def _affordable(self, table: Table, tree: Tree, places: list[int]) -> list[int]:
        """As many nodes as one answer may hold, those with most rows first."""
        assert table.label is not None  # noqa: S101
        each = len(table.label.classes) * sum(a.size + 1 for a in tree.attributes)
        most = max(1, MOST_CELLS // each)
        return places[:most]

    def _level(self, table: Table, purse: Purse, tree: Tree, places: list[int]) -> list[int]:
        """Ask for the open nodes of one level and split them; the new nodes, fullest first."""
        assert table.label is not None  # noqa: S101
        classes = len(table.label.classes)
        right = concat(*(a.vector() for a in tree.attributes))
        left = tree.by_class(places, table.label.one_hot())
        found, error = purse.sums("levels", table.outer(left, right))
        tables = found.reshape(len(places), classes, -1)
        grown: list[tuple[float, int]] = []
        for place, counts in zip(places, tables, strict=True):
            split = self._best(tree, place, counts, error)
            if split is None:
                continue
            start = sum(a.size + 1 for a in tree.attributes[: split.attribute])
            rows = counts[:, start : start + tree.attributes[split.attribute].size].sum(axis=0)
            sizes = [float(rows[list(group)].sum()) for group in split.groups]
            grown += zip(sizes, tree.grow(place, split), strict=True)
        return [place for _, place in sorted(grown, key=lambda pair: -pair[0])]

    def _best(self, tree: Tree, place: int, counts: Array, error: float) -> Split | None:
        best: Split | None = None
        start = 0
        # S4.10 (d): all counts of a level lie within this of the truth but for 1 in 20
        sure = error * math.sqrt(2 * math.log(40 * counts.size)) if error else 0.0
        used = tree.used(place) if self.method_ == "paper" else set()
        for number, attribute in enumerate(tree.attributes):
            part = counts[:, start : start + attribute.size + 1]
            start += attribute.size + 1
            if number in used:  # S4.10 (b): the tree ends when no attribute is left
                continue
            if self.method_ == "paper":
                split = None
                if part[:, : attribute.size].sum() > 2 * sure:
                    split = multiway(part, number, attribute, 2 * sure)
            else:
                split = best_binary(part, number, attribute, error, IMPURITIES[self.criterion])
            if split is not None and split.gain > 1e-9 and (not best or split.gain > best.gain):
                best = split
        return best

    def _finish(self, tree: Tree, counts: Array, error: float) -> None:
        self.leaf_error_ = error
        tree.settle(counts, error)
        self._tree = tree
        self.tree_: tuple[Node, ...] = tuple(tree.nodes)
        totals = counts.sum(axis=0)
        self.majority_ = None
        if len(tree.leaves) == 1:
            self._give_up(totals, "no split of this table stands out of its noise")

    # --- what was learned -----------------------------------------------------------------------

    @property
    def feature_importances_(self) -> Array:
        """Each column's part of all gains."""
        found = np.zeros(len(self.attributes_))
        for node in self.tree_:
            if node.split is not None:
                found[node.split.attribute] += node.split.gain
        return found / found.sum() if found.sum() > 0 else found

    def apply(self, rows: Any) -> Places:
        """The number of the leaf that each public row ends in."""
        self._coordinates(rows)
        return self._tree.find(cells_of(self.attributes_, self._features, rows))

    def _scores(self, rows: Any) -> Array:
        shares = np.array([node.shares for node in self.tree_ if node.shares])
        return np.asarray(np.log(np.maximum(shares, 1e-9))[self.apply(rows)])

    def export_text(self) -> str:
        """The tree as indented text: conditions, classes, noisy counts."""
        lines: list[str] = []
        self._describe(0, lines)
        return "\n".join(lines)

    def _describe(self, place: int, lines: list[str]) -> None:
        node = self.tree_[place]
        indent = "|   " * node.depth
        if node.split is None:
            likeliest = self.classes_[int(np.argmax(node.shares))]
            lines.append(f"{indent}|--- {likeliest} ({sum(node.counts):,.0f} rows)")
            return
        attribute = self.attributes_[node.split.attribute]
        for group, child in zip(node.split.groups, node.children, strict=True):
            lines.append(f"{indent}|--- {attribute.text(group)}")
            self._describe(child, lines)
