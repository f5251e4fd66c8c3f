"""Trees whose splits cost little: drawn at random, or grown on rows drawn from a rough model.

Where one row in each of A columns is too much to ask at every level, the credits go to the leaves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

import numpy as np

from sulq.learn.bayes import NaiveBayes
from sulq.learn.cells import FINE_BINS, Attribute, Places, attributes_of, rebinned
from sulq.learn.features import Array, Features
from sulq.learn.leaves import Tree
from sulq.learn.splits import Split, best_binary, gini
from sulq.query.vector_values import Vector
from sulq.query.vectors import cells, crossed
from sulq.schema.columns import Category, Number

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
