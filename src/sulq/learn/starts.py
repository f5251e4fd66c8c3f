"""Where clusters may start: a cloud of public points that stand for the rows.

A noisy histogram of every axis (or a noisy Gaussian) gives a first cloud. Then the cloud is cut
into many small cells, and one question per pass counts their rows and finds their means: cells lie
where the rows are. Any number of k-means restarts on the cloud costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sulq.learn.features import Array, published
from sulq.learn.lloyd import SMALL, ask_round, for_cells, moved, visible
from sulq.learn.moments import Gram, shrink
from sulq.learn.spending import Purse
from sulq.learn.table import Table
from sulq.query.vector_values import Vector
from sulq.query.vectors import bins, concat, ones, project, scaled

MOST_BINS = 32
LEAST_BINS = 6
DRAWS = 4_000
RESTARTS = 24
CELL_ERRORS = 8
"""A cell or bin should hold so many errors of its rows."""
UNCLIPPED = 0.9
"""Of a cell's rows, by the cloud."""


@dataclass(frozen=True)
class Space:
    """Where clusters are looked for: a vector of coordinates and their ranges."""

    vector: Vector
    low: Array
    high: Array

    @property
    def width(self) -> int:
        return len(self.low)

    def axis(self, place: int) -> Vector:
        if self.width == 1:
            return self.vector
        row = np.zeros((1, self.width))
        row[0, place] = 1.0
        return project(self.vector, published(row))


@dataclass(frozen=True)
class Cloud:
    """Public points and how many rows each stands for."""

    points: Array
    rows: Array

    @property
    def mean(self) -> Array:
        return np.asarray(self.rows @ self.points / self.rows.sum())

    def moved(self, by: Array) -> Cloud:
        return Cloud(self.points + by, self.rows)

    def distances(self, centres: Array) -> Array:
        """Of every point from its nearest centre."""
        square = np.square(centres).sum(axis=1) - 2 * self.points @ centres.T
        found = np.square(self.points).sum(axis=1) + square.min(axis=1)
        return np.asarray(np.sqrt(np.maximum(found, 0.0)))

    def clustered(self, count: int, random: np.random.Generator, restarts: int, most: int) -> Array:
        """Centres by plain k-means, the best of several restarts."""
        if len(np.unique(self.points, axis=0)) <= count:  # too few places for that many centres
            chosen = self.points[random.integers(0, len(self.points), count)]
            spread = np.maximum(self.points.std(axis=0), 1e-3)
            return np.asarray(chosen + 0.1 * spread * random.standard_normal(chosen.shape))
        runs = [self._run(self._seeds(count, random), most) for _ in range(restarts)]
        return min(runs, key=lambda run: run[0])[1]

    def start(self, count: int, random: np.random.Generator) -> Array:
        return self.clustered(count, random, RESTARTS, 50)

    def _seeds(self, count: int, random: np.random.Generator) -> Array:
        """k-means++, the best of a few draws at each step."""
        trials = 2 + int(math.log(count))
        chosen = [self.points[random.choice(len(self.points), p=self.rows / self.rows.sum())]]
        least = np.square(self.points - chosen[0]).sum(axis=1)
        for _ in range(1, count):
            below = np.cumsum(self.rows * least)
            drawn = np.searchsorted(below, random.random(trials) * below[-1], side="right")
            drawn = np.minimum(drawn, len(self.points) - 1)
            apart = np.square(self.points[:, None, :] - self.points[None, drawn, :]).sum(axis=2)
            both = np.minimum(apart, least[:, None])
            best = int((self.rows @ both).argmin())
            chosen.append(self.points[drawn[best]])
            least = both[:, best]
        return np.array(chosen)

    def _run(self, centres: Array, most: int) -> tuple[float, Array]:
        """Lloyd's rounds on the points: squared distances, centres."""
        square = np.square(self.points).sum(axis=1)
        total = math.inf
        for _ in range(most):
            apart = np.square(centres).sum(axis=1) - 2 * self.points @ centres.T
            near = apart.argmin(axis=1)
            before, total = total, float(self.rows @ (square + apart.min(axis=1)))
            held = np.bincount(near, self.rows, len(centres))
            sums = [np.bincount(near, self.rows * x, len(centres)) for x in self.points.T]
            means = np.stack(sums, axis=1) / np.maximum(held, 1e-300)[:, None]
            centres = np.where(held[:, None] > 0, means, centres)
            if total >= before * (1 - 1e-6):
                break
        return total, centres


# --- the first cloud ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Marginal:
    """Rows per bin along one axis; what is below its noise is 0."""

    edges: Array
    rows: Array

    def draws(self, random: np.random.Generator) -> Array:
        """Bins by their rows, uniform inside."""
        below = np.concatenate([[0.0], np.cumsum(self.rows)])
        level = below[-1] * random.permutation((np.arange(DRAWS) + 0.5) / DRAWS)
        return np.asarray(np.interp(level, below, self.edges))


def ask_axes(
    table: Table,
    purse: Purse,
    space: Space,
    random: np.random.Generator,
    strict: bool,
    step: str = "axes",
) -> Cloud:
    """Two passes over all axes: equal bins of the whole range, then close ones where rows are.

    `strict` leaves out what may be noise; a cloud that is counted in cells later needs not.
    """
    edges = []
    count = _bin_count(table, purse, space, step)
    for low, high in zip(space.low, space.high, strict=True):
        slack = max(high - low, 1e-3) * 2**-10
        edges.append(np.linspace(low - slack, high + slack, count + 1))
    coarse = _ask_marginals(table, purse, space, edges, step, strict)
    close = [_finer(marginal, count) for marginal in coarse]
    fine = _ask_marginals(table, purse, space, close, step, strict)
    points = np.stack([marginal.draws(random) for marginal in fine], axis=1)
    return Cloud(points, np.full(DRAWS, table.rows / DRAWS))


def _bin_count(table: Table, purse: Purse, space: Space, step: str) -> int:
    """Fewer bins where noise is loud: about eight errors of rows in each."""
    halves = [bins(space.axis(i), [-(2**20), 0, 2**20]) for i in range(space.width)]
    error = purse.error(table.outer(ones(), concat(*halves)), purse.plan.share(step))
    if error <= 0:
        return MOST_BINS
    return int(min(MOST_BINS, max(LEAST_BINS, table.rows / error / CELL_ERRORS)))


def _ask_marginals(
    table: Table, purse: Purse, space: Space, edges: list[Array], step: str, strict: bool
) -> list[Marginal]:
    """All axes in one question: a row lies in one bin of each."""
    parts = [bins(space.axis(i), published(edge)) for i, edge in enumerate(edges)]
    found, error = purse.sums(step, table.outer(ones(), concat(*parts)))
    ends = np.cumsum([len(edge) - 1 for edge in edges])
    pieces = np.split(found[0], ends[:-1])
    return [Marginal(e, _pooled(c, error, strict)) for e, c in zip(edges, pieces, strict=True)]


def _pooled(counts: Array, error: float, strict: bool) -> Array:
    """Bins that show keep their rows; neighbours that do not share theirs evenly."""
    level = max(error * visible(len(counts)), 0.5)
    shows = counts > level
    found = np.where(shows, counts, 0.0)
    ends = np.flatnonzero(np.diff(np.concatenate([[True], shows, [True]])))
    for first, last in ends.reshape(-1, 2):
        together = counts[first:last].sum()
        if together > (SMALL * error * math.sqrt(last - first) if strict else 0.0):
            found[first:last] = together / (last - first)
    return found if found.any() else np.ones(len(counts))


def _finer(marginal: Marginal, count: int) -> Array:
    """Edges that are close where rows are many, by the cube root of the rows; empty bins join."""
    weight = np.cbrt(marginal.rows)
    pieces = np.maximum(1, np.round(weight / weight.sum() * count)).astype(int)
    edges = [float(marginal.edges[0])]
    empty = False
    for low, high, rows, many in zip(
        marginal.edges[:-1], marginal.edges[1:], marginal.rows, pieces, strict=True
    ):
        if rows <= 0 and empty:
            edges.pop()
        edges.extend(np.linspace(low, high, many + 1)[1:].tolist())
        empty = rows <= 0
    return np.array(edges)


def ask_moments(
    table: Table, purse: Purse, vector: Vector, clip: float, step: str = "gram"
) -> tuple[Gram, Array, float]:
    """The Gram matrix, the mean and its error in one question: a constant beside the coordinates.

    The first centre was found over the whole public range; this one moves it by what lies within
    the clip, and the Gram matrix is that around the new centre.
    """
    weight = clip / 2
    both = concat(scaled(ones(), published(weight)), vector)
    found, error = purse.sums(step, table.outer(both, both))
    error_of_sum = error / math.sqrt(2) / weight  # off the diagonal two draws are averaged
    spread = error_of_sum / table.rows
    shift = shrink(found[0, 1:] / weight / table.rows, spread)
    return Gram(found[1:, 1:] - table.rows * np.outer(shift, shift), error), shift, spread


def gaussian_cloud(spread: Array, rows: float, random: np.random.Generator) -> Cloud:
    """Draws of a Gaussian around 0 with these deviations."""
    points = random.standard_normal((DRAWS, len(spread))) * spread
    return Cloud(points, np.full(DRAWS, rows / DRAWS))


# --- finer clouds -------------------------------------------------------------------------------


def cell_count(rows: float, error: float, clusters: int) -> int:
    """How many cells a pass can tell apart; 0 where that is no finer than the clusters."""
    most = 100 + 10 * clusters
    count = most if error <= 0 else min(most, rows / error / CELL_ERRORS)
    return int(count) if count >= 2 * clusters else 0


def refined(
    table: Table,
    purse: Purse,
    space: Space,
    cloud: Cloud,
    cells: int,
    random: np.random.Generator,
    step: str = "cells",
) -> Cloud:
    """The cloud in small cells, each with its noisy rows at its noisy mean."""
    centres = cloud.clustered(cells, random, 1, 10)
    clip = _cell_radius(cloud, centres)
    found = ask_round(table, purse, space.vector, centres, clip, for_cells(table), step)
    held = ~found.small(2.0)
    if held.sum() < 2:
        return cloud
    means = np.clip(moved(centres, found)[held], space.low, space.high)
    return _spread(means, found.rows[held], random, space)


def _cell_radius(cloud: Cloud, centres: Array) -> float:
    """How far the cloud's points lie from their cells' centres: the 90 % point, and a fifth."""
    distance = cloud.distances(centres)
    order = np.argsort(distance)
    below = np.cumsum(cloud.rows[order]) / cloud.rows.sum()
    place = min(int(np.searchsorted(below, UNCLIPPED)), len(order) - 1)
    return max(1.2 * float(distance[order][place]), 1e-3)


def _spread(means: Array, rows: Array, random: np.random.Generator, space: Space) -> Cloud:
    """Points around the means, half as far as the nearest other ones, for the next pass."""
    square = np.square(means).sum(axis=1)
    apart = square[:, None] + square[None, :] - 2 * means @ means.T
    np.fill_diagonal(apart, np.inf)
    near = np.sqrt(np.maximum(np.sort(apart, axis=1)[:, : min(3, len(means) - 1)], 0)).mean(axis=1)
    counts = np.maximum(2, np.round(rows / rows.sum() * DRAWS)).astype(int)
    noise = random.standard_normal((int(counts.sum()), means.shape[1]))
    width = np.repeat(near, counts)[:, None] / (2 * math.sqrt(means.shape[1]))
    points = np.clip(np.repeat(means, counts, axis=0) + noise * width, space.low, space.high)
    return Cloud(points, np.repeat(rows / counts, counts))
