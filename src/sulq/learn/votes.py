"""A classifier's prediction inside a question, and how many rows several of them hit."""

from __future__ import annotations

from functools import reduce

import numpy as np

from sulq.learn.classifying import ClassLearner
from sulq.learn.discriminant import LinearDiscriminant, largest
from sulq.learn.features import Array
from sulq.learn.leaves import Node
from sulq.learn.spending import Purse
from sulq.learn.table import Table
from sulq.learn.tree import DecisionTree
from sulq.query.expressions import Expression, lit
from sulq.query.vector_values import Vector
from sulq.query.vectors import cells, concat, ones, project


def choice_of(learner: ClassLearner) -> Vector:
    """The predicted class, one-hot."""
    if learner.majority_ is not None:
        chosen = np.eye(len(learner.classes_))[:, learner.majority_ : learner.majority_ + 1]
        return project(ones(), chosen.tolist())
    if isinstance(learner, LinearDiscriminant):
        return learner.as_choice()
    if isinstance(learner, DecisionTree):
        return _tree_choice(learner)
    return _linear_choice(learner)


def hits(
    table: Table, purse: Purse, learners: list[ClassLearner], share: float
) -> tuple[Array, float, Array]:
    """Noisy counts of right predictions of each, their error, and of rows in each class.

    One question of predicted class by label, for all of them; their tables' diagonals are the hits.
    """
    assert table.label is not None  # noqa: S101
    classes = len(table.label.classes)
    votes = concat(*(choice_of(learner) for learner in learners))
    found, error = purse.sums("judge", table.outer(votes, table.label.one_hot()), share)
    tables = found.reshape(len(learners), classes, classes)
    right = np.trace(tables, axis1=1, axis2=2)
    return right, error * float(np.sqrt(classes)), tables.sum(axis=1).mean(axis=0)


def _linear_choice(learner: ClassLearner) -> Vector:
    """From `coef_` and `intercept_` per user unit; two classes have one row of them."""
    offset, width = learner._features.units
    coef, level = np.atleast_2d(learner.coef_), np.atleast_1d(learner.intercept_)
    weights = np.column_stack([coef * width, level + coef @ offset])
    if len(weights) == 1:
        weights = np.vstack([-weights / 2, weights / 2])
    return largest(concat(learner._features.as_vector(), ones()), weights)


def _tree_choice(learner: DecisionTree) -> Vector:
    """Cells of the classes, by where the tree predicts each."""
    found = _regions(learner, learner.tree_[0])
    always = lit(1) > lit(0)
    where = [found.get(place, ~always) for place in range(len(learner.classes_))]
    return cells(*(always if part is None else part for part in where))


def _regions(learner: DecisionTree, node: Node) -> dict[int, Expression | None]:
    """Below a node: where each class is predicted; None where it is everywhere."""
    if node.split is None:
        return {int(np.argmax(node.shares)): None}
    below = [_regions(learner, learner.tree_[child]) for child in node.children]
    if len({place for found in below for place in found}) == 1:
        return below[0]
    attribute = learner.attributes_[node.split.attribute]
    parts: dict[int, list[Expression]] = {}
    for child, found in enumerate(below):
        here = node.split.truth(attribute, child)
        for place, deeper in found.items():
            parts.setdefault(place, []).append(here if deeper is None else here & deeper)
    return {place: reduce(lambda a, b: a | b, where) for place, where in parts.items()}
