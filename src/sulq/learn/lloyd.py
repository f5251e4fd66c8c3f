"""One round of k-means as one question: rows and residuals of all clusters together. S4.8, V.3"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sulq.learn.features import Array, published
from sulq.learn.moments import shrink
from sulq.learn.spending import Purse
from sulq.learn.table import Table
from sulq.query.vector_values import Vector
from sulq.query.vectors import bins, concat, from_nearest, nearest, norm, ones, scaled, squares

REACH_BINS = 40
LEAST_REACH = 2.0**-9
SMALL = 2.0
"""Clusters that hold fewer rows than so many errors keep their centre."""
FEW = 4
BIAS = 0.5
"""Rows that are clipped pull from all sides: about half of what they lose does not cancel."""


@dataclass(frozen=True)
class Found:
    """What one round says of each cluster: rows, sum of (clipped) residuals, their errors."""

    rows: Array
    rows_error: float
    moves: Array
    moves_error: float

    def errors(self) -> Array:
        """The noise of each new centre, per coordinate."""
        return self.moves_error / np.maximum(self.rows, max(2 * self.rows_error, 1.0))

    def small(self, errors: float) -> NDArray[np.bool_]:
        """Clusters that hold fewer rows than so many errors: their update is skipped."""
        return np.asarray(self.rows < max(errors * self.rows_error, 0.5))


@dataclass(frozen=True)
class Weighing:
    """How much rows weigh against residuals in one question, in clips."""

    replace: bool
    rows: float

    def reach(self, gaussian: bool, width: int) -> float:
        """How far one row moves the answer, in clips: L2, or L1 for Laplace noise. V.3"""
        if not gaussian:
            return (2 if self.replace else 1) * (self.rows + math.sqrt(width))
        if self.replace:  # two residuals in one cluster, or one in each of two
            return max(2.0, math.sqrt(2 * (1 + self.rows**2)))
        return math.hypot(1.0, self.rows)


def for_centres(table: Table) -> Weighing:
    """Under replace two residuals are two clips apart already: rows of weight 1 come free."""
    return Weighing(table.replace, 1.0 if table.replace else 0.6)


def for_cells(table: Table) -> Weighing:
    """Cells are small: their rows matter more than where in them the mean is."""
    return Weighing(table.replace, 2.0 if table.replace else 1.5)


def round_error(table: Table, share: float, weighing: Weighing) -> float:
    """The error of a residual at this share, per unit of the clip; of rows: over the weight."""
    unit = table.unit / (math.sqrt(share) if table.gaussian else share)
    return unit * weighing.reach(table.gaussian, table.width)


def ask_round(
    table: Table,
    purse: Purse,
    vector: Vector,
    centres: Array,
    clip: float,
    weighing: Weighing,
    step: str = "rounds",
) -> Found:
    """Rows of every cluster and their residuals, at most `clip` long."""
    weight = weighing.rows * clip
    points = published(centres)
    right = concat(scaled(ones(), published(weight)), from_nearest(vector, points, published(clip)))
    found, error = purse.sums(step, table.outer(nearest(vector, points), right))
    return Found(found[:, 0] / weight, error / weight, found[:, 1:], error)


def ask_paper_round(table: Table, purse: Purse, vector: Vector, centres: Array) -> Found:
    """The paper's step: rows and sums of every cluster as they are, nothing clipped. S4.8"""
    points = published(centres)
    query = table.outer(nearest(vector, points), concat(ones(), vector))
    found, error = purse.sums("rounds", query)
    return Found(found[:, 0], error, found[:, 1:], error)


def moved(centres: Array, found: Found, errors: float = SMALL) -> Array:
    """Each centre by the mean of its residuals, as far as that is not noise."""
    rows = np.maximum(found.rows, max(2 * found.rows_error, 1.0))
    steps = np.where(found.small(errors)[:, None], 0.0, found.moves / rows[:, None])
    if found.moves_error <= 0:
        return np.asarray(centres + steps)
    noise = found.errors()
    if centres.shape[1] < FEW:  # too few coordinates to judge one centre alone: all together
        steps = shrink((steps / noise[:, None]).ravel(), 1.0).reshape(steps.shape)
        return np.asarray(centres + steps * noise[:, None])
    shrunk = [shrink(step, float(error)) for step, error in zip(steps, noise, strict=True)]
    return np.asarray(centres + np.array(shrunk))


def visible(count: int) -> float:
    """So many errors of one cell hardly ever show up among `count` empty ones."""
    return math.sqrt(2 * math.log(max(count, 3)))


# --- how far residuals reach ---------------------------------------------------------------------


@dataclass(frozen=True)
class Reach:
    """Rows by their distance from the nearest centre."""

    edges: Array
    rows: Array
    """Of bins that stand out of the noise; 0 in the others."""

    @classmethod
    def of(cls, distances: Array) -> Reach:
        """Of public points."""
        edges = np.quantile(distances, np.linspace(0, 1, REACH_BINS + 1))
        edges[0] = 0.0
        return cls(edges, np.ones(REACH_BINS))

    @property
    def shown(self) -> float:
        return float(self.rows.sum())

    @property
    def all(self) -> float:
        """Beyond this no row shows."""
        return float(self.edges[1:][self.rows > 0].max())

    def quantile(self, share: float) -> float:
        """The distance that this share of the rows does not pass, even inside a bin."""
        below = np.concatenate([[0.0], np.cumsum(self.rows)]) / self.rows.sum()
        return float(np.interp(share, below, self.edges)) if share < 1 else float(self.edges[-1])

    def clip(self, noise: float) -> float:
        """The radius B with the least squared error, (bias of the clipped)^2 + (noise B)^2."""
        if noise <= 0:
            return float(self.edges[-1])
        levels = (np.arange(400) + 0.5) / 400
        distances = np.array([self.quantile(level) for level in levels])
        # rows beyond B pull with B instead of their distance
        lost = np.maximum(distances[None, :] - distances[:, None], 0.0).mean(axis=1)
        return float(distances[np.argmin((BIAS * lost) ** 2 + (noise * distances) ** 2)])


def ask_reach(
    table: Table, purse: Purse, vector: Vector, centres: Array, farthest: float, step: str = "reach"
) -> Reach:
    """A histogram of distances, its bins in equal ratios."""
    edges = np.concatenate([[0.0], farthest * np.geomspace(LEAST_REACH, 1 + 2**-10, REACH_BINS)])
    distance = norm(from_nearest(vector, published(centres)))
    counts, error = purse.sums(step, table.outer(ones(), bins(distance, published(edges))))
    held = np.where(counts[0] > max(visible(REACH_BINS) * error, 0.5), counts[0], 0.0)
    if not held.any():
        held[-2:] = 1.0
    return Reach(edges, held)


# --- sizes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sizes:
    """Rows and squared distances of each cluster, and their errors."""

    rows: Array
    rows_error: float
    inertia: Array
    inertia_error: float

    def small(self) -> NDArray[np.bool_]:
        return np.asarray(self.rows < max(SMALL * self.rows_error, 0.5))


def ask_sizes(
    table: Table, purse: Purse, vector: Vector, centres: Array, farthest: float, step: str = "sizes"
) -> Sizes:
    points = published(centres)
    distance = norm(from_nearest(vector, points, published(farthest)))
    weight = farthest**2
    right = concat(scaled(ones(), published(weight)), squares(distance))
    found, error = purse.sums(step, table.outer(nearest(vector, points), right))
    return Sizes(found[:, 0] / weight, error / weight, found[:, 1], error)
