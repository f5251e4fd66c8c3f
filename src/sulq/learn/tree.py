"""DecisionTree: ID3 on categories and binned numbers, one question a level, and a leaf table."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from sulq.errors import InvalidQuery
from sulq.kernel.query.expressions import Expression, lit
from sulq.kernel.query.vectors import Vector, cells, concat, crossed, ones, signed
from sulq.kernel.schema.columns import Category, Number
from sulq.learn.binning import (
    BINS_SHARE,
    FINE_BINS,
    Attribute,
    Places,
    attributes_of,
    bins_allowed,
    bins_worth_finding,
    cell_noise,
    cells_of,
    find_cells,
    rebinned,
)
from sulq.learn.budget import FitBudget, FitPlan, FitStep
from sulq.learn.dataset import FitData
from sulq.learn.estimator import ClassLearner, deviations
from sulq.learn.features import Array, Features
from sulq.learn.naive_bayes import NaiveBayes
from sulq.learn.parameters import NONE, Constraints, OneOf, Whole
from sulq.learn.summaries import Summary, TreeNode, TreeNodes


@dataclass(frozen=True, slots=True)
class Split:
    """A node's children by cell of one attribute; missing values go to child `missing`."""

    attribute: int
    groups: tuple[tuple[int, ...], ...]
    missing: int
    gain: float

    def route(self, size: int) -> Places:
        """The child of each cell, the missing one last."""
        child = np.full(size + 1, self.missing, dtype=np.intp)
        for place, group in enumerate(self.groups):
            child[list(group)] = place
        return child

    def truth(self, attribute: Attribute, child: int) -> Expression:
        """Whether a row goes to this child."""
        return attribute.reached(self.groups[child], child == self.missing)


Impurity = Callable[[Array], Array]


def gini(counts: Array) -> Array:
    """N - sum n_k^2 / N over the last axis."""
    total = counts.sum(axis=-1)
    return np.asarray(total - (counts**2).sum(axis=-1) / np.maximum(total, 1e-300))


def entropy(counts: Array) -> Array:
    """N H = -sum n_k log(n_k / N) over the last axis, in nats."""  # S4.10 (a)
    held = np.maximum(counts, 0.0)
    total = held.sum(axis=-1, keepdims=True)
    share = np.where(held > 0, held, 1.0) / np.maximum(total, 1e-300)
    return np.asarray(-(held * np.log(np.where(held > 0, share, 1.0))).sum(axis=-1))


IMPURITIES: dict[str, Impurity] = {"gini": gini, "entropy": entropy}


def best_binary(
    table: Array,
    place: int,
    attribute: Attribute,
    error: float,
    impurity: Impurity,
    among: Collection[int] | None = None,
) -> Split | None:
    """The best cut in two of one node by one attribute; None where no cut stands out of the noise.

    `table` is classes x cells, `among` the cells that the node can hold (all). A Number is cut
    between bins, a Category between values sorted by their noisy class shares. Both sides must
    exceed 1.5 errors of their own noisy total, and the gain what such noise adds on average.
    """
    cells = np.arange(attribute.size) if among is None else np.array(sorted(among))
    known = table[:, cells]
    classes, size = known.shape
    if size < 2:
        return None
    order = np.arange(size) if attribute.ordinal else _by_share(known, error)
    left = np.cumsum(known[:, order], axis=1)[:, :-1].T
    order = cells[order]
    whole = known.sum(axis=1)
    right = whole - left
    bins_left = np.arange(1, size)
    bins_right = size - bins_left
    totals = left.sum(axis=1), right.sum(axis=1)
    noise = error * np.sqrt(classes * bins_left), error * np.sqrt(classes * bins_right)
    able = (totals[0] > 1.5 * noise[0]) & (totals[1] > 1.5 * noise[1])
    able &= (totals[0] > 1e-9) & (totals[1] > 1e-9)
    if not able.any():
        return None
    counts = np.maximum(left, 0.0), np.maximum(right, 0.0)
    gains = impurity(np.maximum(whole, 0.0)) - impurity(counts[0]) - impurity(counts[1])
    # under equal shares a side of b bins gains (K-1) b error^2 / N by noise alone
    spurious = (
        (classes - 1)
        * error**2
        * (bins_left / np.maximum(totals[0], 1e-9) + bins_right / np.maximum(totals[1], 1e-9))
    )
    gains = np.where(able, gains - spurious, -np.inf)
    cut = int(np.argmax(gains))
    if gains[cut] <= 1e-9 or gains[cut] <= spurious[cut] / math.sqrt(max(classes - 1, 1)):
        return None
    groups = tuple(sorted(order[: cut + 1].tolist())), tuple(sorted(order[cut + 1 :].tolist()))
    return Split(place, groups, int(totals[1][cut] > totals[0][cut]), float(gains[cut]))


def _by_share(known: Array, error: float) -> Places:
    """Values in the order of their share of the class that tells them apart most."""
    total = np.maximum(known.sum(axis=0), max(error, 1e-9))
    shares = (known + 1e-12) / total
    overall = known.sum(axis=1) / max(float(known.sum()), 1e-9)
    spread = ((shares - overall[:, None]) ** 2 * total).sum(axis=1)
    return np.argsort(shares[int(np.argmax(spread))], kind="stable")


def multiway(table: Array, place: int, attribute: Attribute, least: float) -> Split | None:
    """One child a cell, by entropy: ID3 as the papers have it; cells under `least` add nothing."""
    known = table[:, : attribute.size]
    if known.shape[1] < 2:
        return None
    totals = known.sum(axis=0)
    # S4.10 (e): a noisy count is cut to its cell's total, small cells are left out
    counts = np.clip(known, 0.0, np.maximum(totals, 0.0)[None, :])
    kept = totals > least
    remaining = float(entropy(counts.T[kept]).sum()) if kept.any() else math.inf
    gain = float(entropy(np.maximum(known.sum(axis=1), 0.0))) - remaining
    if not math.isfinite(gain):
        return None
    groups = tuple((cell,) for cell in range(attribute.size))
    return Split(place, groups, int(np.argmax(totals)), gain)


# A tree of public splits, the question for its leaves, and class shares from noisy leaf counts.


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


# Trees whose splits cost little: drawn at random, or grown on rows drawn from a rough model.
#
# Where one row in each of A columns is too much to ask at every level, the credits go to the
# leaves.


SCORE_BINS = 4
MODEL_ROWS = 20_000
MODEL_DEPTH = 8


# --- splits drawn at random ---------------------------------------------------------------------


def drawn_halves(
    features: Features, levels: int, with_mean: bool, random: np.random.Generator
) -> tuple[tuple[Attribute, ...], tuple[Split, ...]]:
    """Public splits, one a level: quarters of the Numbers' mean if told, halves of single columns.

    Which columns, and how the values of a Category are halved, is drawn; a Number is cut in the
    middle of its bounds, and where it comes up again at a quarter.
    """
    attributes = list(attributes_of(features, 4))
    splits: list[Split] = []
    if with_mean and levels and len(features.numeric) > 1:
        edges = tuple(Fraction(k, SCORE_BINS) for k in range(SCORE_BINS + 1))
        name = "mean of the numbers"
        attributes.append(Attribute(Number(name, 0, 1), edges, over=features.numeric))
        quarters = tuple((cell,) for cell in range(SCORE_BINS))
        splits.append(Split(len(attributes) - 1, quarters, 0, 0.0))
    order = random.permutation(len(features.names)).tolist()
    for turn in range(levels - len(splits)):
        place = order[turn % len(order)]
        size = attributes[place].size
        if size < 2:
            continue
        if attributes[place].ordinal:
            cut = size // 2 if turn < len(order) else int(random.integers(1, size))
            values = list(range(size))
        else:
            cut = size // 2
            values = random.permutation(size).tolist()
        groups = tuple(sorted(values[:cut])), tuple(sorted(values[cut:]))
        splits.append(Split(place, groups, 0, 0.0))
    return tuple(attributes), tuple(splits)


def whole_tree(attributes: tuple[Attribute, ...], splits: Sequence[Split]) -> Tree:
    """The tree that splits every node of a level alike; leaves in the order of `leaf_vector`."""
    tree = Tree(attributes)
    level = [0]
    for split in splits:
        level = [child for place in level for child in tree.grow(place, split)]
    return tree


def leaf_vector(attributes: Sequence[Attribute], splits: Sequence[Split]) -> Vector:
    """The one-hot of the leaf: one side per split, crossed."""
    sides = []
    for split in splits:
        attribute = attributes[split.attribute]
        if attribute.over:
            sides.append(attribute.vector())
        else:
            truths = (split.truth(attribute, child) for child in range(len(split.groups)))
            sides.append(cells(*truths))
    return reduce(crossed, sides)


def leaf_places(attributes: Sequence[Attribute], splits: Sequence[Split]) -> Places:
    """Where the leaves of the tree are among the coordinates of `leaf_vector`."""
    # the mean of Numbers is never missing: its cell for missing values holds nobody
    kept = [len(split.groups) for split in splits]
    asked = [
        k + (1 if attributes[s.attribute].over else 0) for k, s in zip(kept, splits, strict=True)
    ]
    grid = np.arange(math.prod(asked)).reshape(asked)
    return grid[tuple(slice(0, k) for k in kept)].ravel()


def smoothed(contrasts: Array, error: float, rows: float, splits: Sequence[Split]) -> Array:
    """Noisy leaf contrasts (leaves x classes, each row adds up to 0), pooled over like leaves.

    Prior: leaves that differ in one split correlate by 0.3, in two by 0.09, and all share a common
    part; of four neighbouring score cells each step halves twice. With little noise nothing moves.
    """
    leaves, classes = contrasts.shape
    if not error:
        return contrasts
    parts = []
    for split in splits:
        steps = np.arange(len(split.groups))
        parts.append(0.3 ** np.abs(steps[:, None] - steps[None, :]))
    alike = reduce(np.kron, parts)
    spread = (rows / leaves) ** 2 * (1 - 1 / classes) / classes
    prior = spread * (16 * alike + 1)
    return np.asarray(prior @ np.linalg.solve(prior + error**2 * np.eye(leaves), contrasts))


# --- splits of a rough model --------------------------------------------------------------------


def model_rows(
    model: NaiveBayes, features: Features, random: np.random.Generator
) -> tuple[Places, tuple[Attribute, ...], Places]:
    """Rows drawn from a naive Bayes model: cells, the attributes they are cells of, classes."""
    prior = np.exp(model.class_log_prior_)
    classes = random.choice(len(prior), size=MODEL_ROWS, p=prior / prior.sum())
    attributes, found = [], []
    held = {a.name: place for place, a in enumerate(model.attributes_)}
    numbers = list(features.numeric)
    points = model.draw(classes, random)
    for name in features.names:
        column = features.schema[name]
        if name in held:
            attribute = model.attributes_[held[name]]
            shares = np.exp(model.feature_log_prob_[held[name]])
            bounds = np.cumsum(shares, axis=1)[classes]
            cell = (random.random(MODEL_ROWS)[:, None] * bounds[:, -1:] > bounds).sum(axis=1)
            cell = np.minimum(cell, attribute.size - 1)
        else:
            fine = next(a for a in attributes_of(Features(features.schema, (name,)), FINE_BINS))
            values = points[:, [numbers.index(name)]]
            counts = np.bincount(fine.cells(values), minlength=fine.size + 1).astype(float)
            attribute = rebinned(fine, counts, 0.0, 32)
            cell = attribute.cells(values)
            assert not isinstance(column, Category)  # noqa: S101
        attributes.append(attribute)
        found.append(cell)
    return np.stack(found, axis=1).astype(np.intp), tuple(attributes), classes.astype(np.intp)


def model_tree(
    found: Places, attributes: tuple[Attribute, ...], labels: Places, classes: int, most: int
) -> tuple[Tree, Array]:
    """A tree grown on drawn rows, the best split first, and the class shares of its leaves."""
    tree = Tree(attributes)
    rows = {0: np.arange(len(found))}
    options = {0: _best_of(found, attributes, labels, classes)}
    while len(tree.leaves) < most:
        ready = [(split.gain, place) for place, split in options.items() if split is not None]
        if not ready:
            break
        place = max(ready)[1]
        split = options.pop(place)
        assert split is not None  # noqa: S101
        children = tree.grow(place, split)
        inside = rows.pop(place)
        route = split.route(attributes[split.attribute].size)
        side = route[found[inside, split.attribute]]
        for number, child in enumerate(children):
            rows[child] = inside[side == number]
            if tree.nodes[child].depth < MODEL_DEPTH:
                part = found[rows[child]], attributes, labels[rows[child]], classes
                options[child] = _best_of(*part)
    shares = [np.bincount(labels[rows[leaf]], minlength=classes) + 1.0 for leaf in tree.leaves]
    return tree, np.stack([part / part.sum() for part in shares])


def _best_of(
    found: Places, attributes: Sequence[Attribute], labels: Places, classes: int
) -> Split | None:
    if len(found) < 100:
        return None
    best: Split | None = None
    for place, attribute in enumerate(attributes):
        width = attribute.size + 1
        joint = np.bincount(labels * width + found[:, place], minlength=classes * width)
        split = best_binary(
            joint.reshape(classes, width).astype(float), place, attribute, 0.0, gini
        )
        if split is not None and (best is None or split.gain > best.gain):
            best = split
    return best


# The splits of a node that a noisy class-by-cell table speaks for.


LEAF_SHARE = 0.3
DEEPEST = 10
MODEL_SHARE = 0.65
MODEL_LEAVES = 128
MOST_HALVINGS = 9
MOST_LEAVES = 256
MOST_CELLS = 500_000
"""Of one question: beyond it only the fullest nodes stay open."""


class DecisionTree(ClassLearner):
    """A decision tree (ID3) on categories and binned numbers.

    Parameters
    ----------
    max_depth : int, optional
        The most splits in a row. Without it, what the noise allows.
    criterion : {"gini", "entropy"}
        What a split shall lower.
    bins : int, optional
        How many bins a Number has. Without it, what the noise allows.
    method : {"auto", "id3", "model", "random", "paper"}
        How splits are found: level by level, from a rough model, at random, or as in the papers.
    credits, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    tree_ : list of Node
        The nodes, all public: how they split, and noisy rows and shares of the classes.
    attributes_ : tuple
        The columns with their cells.
    leaf_error_ : float
        The standard error of the rows of one class in a leaf.
    feature_importances_ : ndarray
        How much each column lowers the criterion, as shares.
    classes_, majority_ : ndarray, and int or None
        The classes, and the place of the one that every row gets where noise hides the rest.

    Notes
    -----
    Each level asks one question for all its nodes and columns: a row is in one node, one class and
    one cell of each of A columns, so the noise is that of sqrt(A) counts (add-remove; sqrt(2A)
    where a row is replaced). A last question counts the classes in the leaves.

    Examples
    --------
    >>> from sulq.learn import DecisionTree
    >>> model = DecisionTree(max_depth=1, credits=50).fit(db, ["age", "blood"], "smoker")
    >>> model.predict({"age": [40], "blood": ["A"]}).shape    # public rows
    (1,)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "max_depth": [Whole(1, 1_000), NONE],
        "criterion": [OneOf(*IMPURITIES)],
        "bins": [Whole(2, 1_000), NONE],
        "method": [OneOf("auto", "id3", "model", "random", "paper")],
    }

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

    def _plan(self, table: FitData) -> FitPlan:
        self._check(table)
        method = self._chosen(table) if self.method == "auto" else self.method
        if method == "random":
            return FitPlan(method, (FitStep("leaves", table.share),), _better_promise(table))
        if method == "model":
            first = _model().planned(table)
            steps = [FitStep(s.name, s.share * MODEL_SHARE, s.rounds) for s in first.steps]
            return FitPlan(method, (*steps, FitStep("leaves", (1 - MODEL_SHARE) * table.share)))
        finds = method == "id3" and bins_worth_finding(table)
        first_share = BINS_SHARE * table.share if finds else 0.0
        leaves = LEAF_SHARE * table.share
        levels = table.share - first_share - leaves
        steps = [FitStep("bins", first_share)] if finds else []
        steps += [FitStep("levels", levels, self._depth(table)), FitStep("leaves", leaves)]
        return FitPlan(method, tuple(steps))

    def _chosen(self, table: FitData) -> str:
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

    def _check(self, table: FitData) -> None:
        if table.features.vector is not None:
            raise InvalidQuery("DecisionTree splits on columns; give their names")

    def _depth(self, table: FitData) -> int:
        if self.max_depth is not None:
            return int(self.max_depth)
        for depth in range(DEEPEST, 1, -1):
            share = (1 - LEAF_SHARE - BINS_SHARE) * table.share / depth
            if table.rows / 2**depth > 8 * cell_noise(table, share):
                return depth
        return 1

    def _bins(self, table: FitData) -> int:
        return bins_allowed(table) if self.bins is None else int(self.bins)

    # --- learning -------------------------------------------------------------------------------

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        if self.method_ == "random":
            self._learn_random(table, budget)
        elif self.method_ == "model":
            self._learn_model(table, budget)
        else:
            self._learn_levels(table, budget)

    def _learn_levels(self, table: FitData, budget: FitBudget) -> None:
        self.attributes_ = find_cells(table, budget, self._bins(table))
        tree = Tree(self.attributes_)
        open_nodes = [0]
        rounds = next(step.rounds for step in budget.plan.steps if step.name == "levels")
        for _ in range(rounds):
            if not open_nodes:
                break
            open_nodes = self._level(table, budget, tree, self._affordable(table, tree, open_nodes))
        self._count_leaves(table, budget, tree)

    def _count_leaves(
        self, table: FitData, budget: FitBudget, tree: Tree, towards: Array | None = None
    ) -> None:
        """All that is left goes to the classes in the leaves."""
        assert table.label is not None  # noqa: S101
        vector = tree.by_class(tree.leaves, table.label.one_hot())
        found, error = budget.sums("leaves", table.outer(vector, ones()), budget.left)
        counts = found.reshape(-1, len(table.label.classes))
        tree.settle(counts, error, towards)
        self._finish(tree, counts, error)

    def _learn_model(self, table: FitData, budget: FitBudget) -> None:
        """A rough model, a tree on rows drawn from it, and the real classes in its leaves."""
        assert table.label is not None  # noqa: S101
        model = _model()
        model.ask(table, budget)
        random = np.random.default_rng(self.random_state)
        found, self.attributes_, labels = model_rows(model, table.features, random)
        classes = len(table.label.classes)
        most = 2**self.max_depth if self.max_depth is not None else MODEL_LEAVES
        tree, shares = model_tree(found, self.attributes_, labels, classes, most)
        self._count_leaves(table, budget, tree, shares)

    def _learn_random(self, table: FitData, budget: FitBudget) -> None:
        """Public splits; all credits go to one table of leaves by classes."""
        assert table.label is not None  # noqa: S101
        random = np.random.default_rng(self.random_state)
        # one score can put two classes in order, seldom more
        levels, binary = self._levels(table), table.label.binary
        self.attributes_, splits = drawn_halves(table.features, levels, binary, random)
        tree = whole_tree(self.attributes_, splits)
        if not splits:
            self._count_leaves(table, budget, tree)
            return
        vector = leaf_vector(self.attributes_, splits)
        places = leaf_places(self.attributes_, splits)
        classes = len(table.label.classes)
        if classes == 2:
            # the difference of two classes is one number, with the noise of one
            sign = signed(ones(), table.label.truth())
            found, error = budget.sums("leaves", table.outer(vector, sign), budget.left)
            told = deviations(found, error, found.size)
            contrasts = found[places] * np.array([[-0.5, 0.5]])
            error /= math.sqrt(2)
        else:
            found, error = budget.sums(
                "leaves", table.outer(vector, table.label.one_hot()), budget.left
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

    def _levels(self, table: FitData) -> int:
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

    def _affordable(self, table: FitData, tree: Tree, places: list[int]) -> list[int]:
        """As many nodes as one answer may hold, those with most rows first."""
        assert table.label is not None  # noqa: S101
        each = len(table.label.classes) * sum(a.size + 1 for a in tree.attributes)
        most = max(1, MOST_CELLS // each)
        return places[:most]

    def _level(self, table: FitData, budget: FitBudget, tree: Tree, places: list[int]) -> list[int]:
        """Ask for the open nodes of one level and split them; the new nodes, fullest first."""
        assert table.label is not None  # noqa: S101
        classes = len(table.label.classes)
        right = concat(*(a.vector() for a in tree.attributes))
        left = tree.by_class(places, table.label.one_hot())
        found, error = budget.sums("levels", table.outer(left, right))
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
            self.give_up(counts.sum(axis=0), "no split of this table stands out of its noise")

    # --- what was learned -----------------------------------------------------------------------

    def _choice(self) -> Vector:
        """Cells of the classes, by where the tree predicts each."""
        found = self._regions(self.tree_[0])
        always = lit(1) > lit(0)
        where = [found.get(place, ~always) for place in range(len(self.classes_))]
        return cells(*(always if part is None else part for part in where))

    def _regions(self, node: Node) -> dict[int, Expression | None]:
        """Below a node: where each class is predicted; None where it is everywhere."""
        if node.split is None:
            return {int(np.argmax(node.shares)): None}
        below = [self._regions(self.tree_[child]) for child in node.children]
        if len({place for found in below for place in found}) == 1:
            return below[0]
        attribute = self.attributes_[node.split.attribute]
        parts: dict[int, list[Expression]] = {}
        for child, found in enumerate(below):
            here = node.split.truth(attribute, child)
            for place, deeper in found.items():
                parts.setdefault(place, []).append(here if deeper is None else here & deeper)
        return {place: reduce(lambda a, b: a | b, where) for place, where in parts.items()}

    def _summary(self) -> Summary:
        nodes = []
        for node in self.tree_:
            condition = None
            if node.parent is not None:
                split = self.tree_[node.parent].split
                assert split is not None  # noqa: S101
                cells = split.groups[node.child]
                condition = str(self.attributes_[split.attribute].text(cells))
            column = None if node.split is None else self.attributes_[node.split.attribute].name
            nodes.append(
                TreeNode(node.depth, condition, column, node.counts, node.shares, node.children)
            )
        return TreeNodes(
            name=type(self).__name__,
            classes=tuple(self.classes_),
            nodes=tuple(nodes),
            leaf_error=float(self.leaf_error_),
        )

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


def _leaf_noise(table: FitData) -> float:
    """The noise of one leaf's count for the whole cap, in rows."""
    moved = 2 if table.replace else 1
    return table.unit * (math.sqrt(moved) if table.gaussian else moved)


def _better_promise(table: FitData) -> tuple[str, ...]:
    """What to say where Laplace noise of the same epsilon would be less."""
    moved = 2 if table.replace else 1
    part = float(table.cap / table.oracle.promise.credits)
    pure = math.sqrt(2) * moved / (float(table.oracle.promise.epsilon) * part)
    if not table.gaussian or _leaf_noise(table) <= pure:
        return ()
    text = "a promise with delta=0, the stronger one, would answer this small table with {:.0%} of"
    return (text.format(pure / _leaf_noise(table)) + " the noise",)
