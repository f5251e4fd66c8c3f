"""DecisionTree: ID3 on categories and binned numbers, one question a level, and a leaf table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sulq.errors import InvalidQuery
from sulq.learn.bayes import NaiveBayes
from sulq.learn.cells import (
    BINS_SHARE,
    Places,
    bins_allowed,
    bins_worth_finding,
    cell_noise,
    cells_of,
    find_cells,
)
from sulq.learn.checks import whole
from sulq.learn.classifying import ClassLearner, deviations
from sulq.learn.features import Array
from sulq.learn.leaves import Node, Tree
from sulq.learn.sketches import (
    drawn_halves,
    leaf_places,
    leaf_vector,
    model_rows,
    model_tree,
    smoothed,
    whole_tree,
)
from sulq.learn.spending import Plan, Purse, Step
from sulq.learn.splits import IMPURITIES, Split, best_binary, multiway
from sulq.learn.table import Table
from sulq.query.vectors import concat, ones, signed

LEAF_SHARE = 0.3
DEEPEST = 10
MODEL_SHARE = 0.65
MODEL_LEAVES = 128
MOST_HALVINGS = 9
MOST_LEAVES = 256
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

    _methods = ("auto", "id3", "model", "random", "paper")

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
        method = self._chosen(table) if self.method == "auto" else self.method
        if method == "random":
            return Plan(method, (Step("leaves", table.share),), _better_promise(table))
        if method == "model":
            first = _model().planned(table)
            steps = [Step(s.name, s.share * MODEL_SHARE, s.rounds) for s in first.steps]
            return Plan(method, (*steps, Step("leaves", (1 - MODEL_SHARE) * table.share)))
        finds = method == "id3" and bins_worth_finding(table)
        first_share = BINS_SHARE * table.share if finds else 0.0
        leaves = LEAF_SHARE * table.share
        levels = table.share - first_share - leaves
        steps = [Step("bins", first_share)] if finds else []
        steps += [Step("levels", levels, self._depth(table)), Step("leaves", leaves)]
        return Plan(method, tuple(steps))

    def _chosen(self, table: Table) -> str:
        """ID3 where a level can be asked for, a rough model where class means can, else chance."""
        assert table.label is not None  # noqa: S101
        levels = (1 - LEAF_SHARE - BINS_SHARE) * table.share
        if table.rows / 4 > 12 * cell_noise(table, levels / 2):
            return "id3"
        if table.gaussian and table.signal > 150:
            return "model"
        # one level, where halving at random would leave most columns out
        enough = table.rows / len(table.label.classes) > 6 * cell_noise(table, levels)
        few = self._levels(table) < len(table.features.names) / 2
        return "id3" if enough and few else "random"

    def _check(self, table: Table) -> None:
        if self.criterion not in IMPURITIES:
            raise InvalidQuery(
                f"criterion must be one of {list(IMPURITIES)}, got {self.criterion!r}"
            )
        for name, least in (("max_depth", 1), ("bins", 2)):
            value = getattr(self, name)
            if value is not None:
                whole(name, value, least, 1_000)
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
        if self.method_ == "random":
            self._learn_random(table, purse)
        elif self.method_ == "model":
            self._learn_model(table, purse)
        else:
            self._learn_levels(table, purse)

    def _learn_levels(self, table: Table, purse: Purse) -> None:
        self.attributes_ = find_cells(table, purse, self._bins(table))
        tree = Tree(self.attributes_)
        open_nodes = [0]
        rounds = next(step.rounds for step in purse.plan.steps if step.name == "levels")
        for _ in range(rounds):
            if not open_nodes:
                break
            open_nodes = self._level(table, purse, tree, self._affordable(table, tree, open_nodes))
        self._count_leaves(table, purse, tree)

    def _count_leaves(
        self, table: Table, purse: Purse, tree: Tree, towards: Array | None = None
    ) -> None:
        """All that is left goes to the classes in the leaves."""
        assert table.label is not None  # noqa: S101
        vector = tree.by_class(tree.leaves, table.label.one_hot())
        found, error = purse.sums("leaves", table.outer(vector, ones()), purse.left)
        counts = found.reshape(-1, len(table.label.classes))
        tree.settle(counts, error, towards)
        self._finish(tree, counts, error)

    def _learn_model(self, table: Table, purse: Purse) -> None:
        """A rough model, a tree on rows drawn from it, and the real classes in its leaves."""
        assert table.label is not None  # noqa: S101
        model = _model()
        model.ask(table, purse)
        random = np.random.default_rng(self.random_state)
        found, self.attributes_, labels = model_rows(model, table.features, random)
        classes = len(table.label.classes)
        most = 2**self.max_depth if self.max_depth is not None else MODEL_LEAVES
        tree, shares = model_tree(found, self.attributes_, labels, classes, most)
        self._count_leaves(table, purse, tree, shares)

    def _learn_random(self, table: Table, purse: Purse) -> None:
        """Public splits; all credits go to one table of leaves by classes."""
        assert table.label is not None  # noqa: S101
        random = np.random.default_rng(self.random_state)
        # one score can put two classes in order, seldom more
        levels, binary = self._levels(table), table.label.binary
        self.attributes_, splits = drawn_halves(table.features, levels, binary, random)
        tree = whole_tree(self.attributes_, splits)
        if not splits:
            self._count_leaves(table, purse, tree)
            return
        vector = leaf_vector(self.attributes_, splits)
        places = leaf_places(self.attributes_, splits)
        classes = len(table.label.classes)
        if classes == 2:
            # the difference of two classes is one number, with the noise of one
            sign = signed(ones(), table.label.truth())
            found, error = purse.sums("leaves", table.outer(vector, sign), purse.left)
            told = deviations(found, error, found.size)
            contrasts = found[places] * np.array([[-0.5, 0.5]])
            error /= math.sqrt(2)
        else:
            found, error = purse.sums(
                "leaves", table.outer(vector, table.label.one_hot()), purse.left
            )
            contrasts = found[places] - found[places].mean(axis=1, keepdims=True)
            told = deviations(contrasts, error, len(contrasts) * (classes - 1))
        contrasts = smoothed(contrasts, error, table.rows, splits)
        even = table.rows / len(contrasts)
        reach = np.maximum(even, np.abs(contrasts).sum(axis=1, keepdims=True))
        shares = np.maximum(1 / classes + contrasts / reach, 0.01)
        tree.give(shares / shares.sum(axis=1, keepdims=True), even / classes + contrasts)
        self._finish(tree, even / classes + contrasts, error)
        self._doubt_unless(told)

    def _levels(self, table: Table) -> int:
        """Halvings until a leaf has about as many rows as noise; one more for many classes."""
        assert table.label is not None  # noqa: S101
        if self.max_depth is not None:
            return min(int(self.max_depth), MOST_HALVINGS)
        noise = _leaf_noise(table)
        if not noise:
            return MOST_HALVINGS
        halvings = round(math.log2(max(table.rows / noise, 1.0)))
        if halvings and not table.label.binary:
            halvings += 1
        return min(halvings, MOST_HALVINGS)

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
            if split is None or len(tree.leaves) + len(split.groups) > MOST_LEAVES:
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
        held = tree.held(place)
        for number, attribute in enumerate(tree.attributes):
            part = counts[:, start : start + attribute.size + 1]
            start += attribute.size + 1
            if self.method_ == "paper":
                split = None
                # S4.10 (b): the tree ends when no attribute is left
                if number not in held and part[:, : attribute.size].sum() > 2 * sure:
                    split = multiway(part, number, attribute, 2 * sure)
            else:
                among = held[number][0] if number in held else None
                impurity = IMPURITIES[self.criterion]
                split = best_binary(part, number, attribute, error, impurity, among)
            if split is not None and split.gain > 1e-9 and (not best or split.gain > best.gain):
                best = split
        return best

    def _finish(self, tree: Tree, counts: Array, error: float) -> None:
        self.leaf_error_ = error
        self._tree = tree
        self.tree_: tuple[Node, ...] = tuple(tree.nodes)
        self.majority_ = None
        if len(tree.leaves) == 1:
            self._give_up(counts.sum(axis=0), "no split of this table stands out of its noise")

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


def _model() -> NaiveBayes:
    return NaiveBayes()


def _leaf_noise(table: Table) -> float:
    """The noise of one leaf's count for the whole cap, in rows."""
    moved = 2 if table.replace else 1
    return table.unit * (math.sqrt(moved) if table.gaussian else moved)


def _better_promise(table: Table) -> tuple[str, ...]:
    """What to say where Laplace noise of the same epsilon would be less."""
    moved = 2 if table.replace else 1
    part = float(table.cap / table.oracle.promise.credits)
    pure = math.sqrt(2) * moved / (float(table.oracle.promise.epsilon) * part)
    if not table.gaussian or _leaf_noise(table) <= pure:
        return ()
    text = "a promise with delta=0, the stronger one, would answer this small table with {:.0%} of"
    return (text.format(pure / _leaf_noise(table)) + " the noise",)
