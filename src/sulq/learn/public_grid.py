"""PublicGrid: classes counted once in cells that public facts alone drew. For the tiniest budgets.

A row touches one cell, so a pure promise counts it with the noise of one count; nothing is spent on
finding where to split. Where a few hundred rows meet epsilon 0.1, no learned split does better.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from sulq.learn.classifying import ClassLearner, deviations
from sulq.learn.features import Array, Features, published
from sulq.learn.spending import Plan, Purse, Step
from sulq.learn.table import Table
from sulq.query.vector_values import Vector
from sulq.query.vectors import bins, crossed, project
from sulq.schema.columns import Category

QUARTERS = (0.25, 0.5, 0.75)
LEVELS = 4


class PublicGrid(ClassLearner):
    """Quarters of the mean of all Numbers and Flags, crossed with random halves of four columns.

    `random_state` draws the columns and where they are cut. Learned: `splits_` (weights and cuts
    of each axis, in coordinates), `counts_` (cells x classes), `count_error_`.
    """

    _methods = ("auto",)

    def __init__(
        self,
        *,
        credits: Any = None,
        method: str = "auto",
        random_state: Any = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    def _plan(self, table: Table) -> Plan:
        return Plan("grid", (Step("cells", table.share),))

    def _learn(self, table: Table, purse: Purse) -> None:
        assert table.label is not None  # noqa: S101
        self.splits_ = draw(table.features, np.random.default_rng(self.random_state))
        grid = reduce(crossed, (axis(table.features, *split) for split in self.splits_))
        counts, error = purse.sums("cells", table.outer(grid, table.label.one_hot()))
        self.counts_, self.count_error_ = counts, error
        self.majority_ = None
        apart = counts - counts.mean(axis=1, keepdims=True)
        self._doubt_unless(deviations(apart, error, len(counts) * (counts.shape[1] - 1)))

    def _scores(self, rows: Any) -> Array:
        coordinates = self._coordinates(rows)
        cell = np.zeros(len(coordinates), dtype=np.intp)
        for weights, cuts in self.splits_:
            part = np.searchsorted(np.asarray(cuts), coordinates @ np.asarray(weights), "right")
            cell = cell * (len(cuts) + 1) + part
        held = np.maximum(self.counts_, 0.0) + max(self.count_error_, 0.5)
        # a cell below its noise keeps the order of its counts, which log of the held would lose
        order = np.argsort(np.argsort(self.counts_, axis=1), axis=1)
        return np.asarray((np.log(held / held.sum(axis=1, keepdims=True)) + 1e-9 * order)[cell])


Split = tuple[list[float], list[float]]


def draw(features: Features, random: np.random.Generator) -> list[Split]:
    """The mean of all numbers in quarters; then random columns, cut near their middle."""
    blocks = _blocks(features)
    alone = [start for start, stop in blocks if stop - start == 1]
    splits: list[Split] = []
    if alone:
        mean = np.zeros(features.width)
        mean[alone] = 1 / len(alone)
        low, high = float(features.low @ mean), float(features.high @ mean)
        splits.append((published(mean), published([low + q * (high - low) for q in QUARTERS])))
    if len(blocks) == 1 and splits:
        return splits
    for place in random.permutation(len(blocks))[:LEVELS]:
        start, stop = blocks[place]
        weights = np.zeros(features.width)
        if stop - start == 1:
            weights[start] = 1.0
            low, high = float(features.low[start]), float(features.high[start])
            cut = low + (high - low) * random.uniform(0.2, 0.8)
        else:
            half = random.permutation(np.arange(start, stop))[: (stop - start) // 2]
            weights[half] = 1.0
            cut = 0.75  # a missing value is 1/K each, half of it in all
        splits.append((published(weights), published([cut])))
    return splits


def _blocks(features: Features) -> list[tuple[int, int]]:
    """(start, stop) of each column's coordinates."""
    if features.vector is not None:
        return [(place, place + 1) for place in range(features.width)]
    found: list[tuple[int, int]] = []
    start = 0
    for name in features.names:
        column = features.schema[name]
        wide = len(column.values or ()) if isinstance(column, Category) else 1
        found.append((start, start + wide))
        start += wide
    return found


def axis(features: Features, weights: list[float], cuts: list[float]) -> Vector:
    """Which side of the cuts a row's weighted sum lies on, one-hot."""
    reach = float(np.abs(weights) @ np.maximum(np.abs(features.low), np.abs(features.high))) + 1
    ends = published([-reach, *cuts, reach])
    return bins(project(features.as_vector(), [weights]), ends)
