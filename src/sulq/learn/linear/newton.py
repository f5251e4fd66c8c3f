"""What linear classifiers share: standardised rows, a Gram matrix, preconditioned noisy L-BFGS.

The gradient of a loss is a sum over rows of slope * v with |slope| <= 1, so its price is the length
of v. Long rows are *weighed* down, never moved: the score is taken of the whole row, the sum of the
clipped one, which is the gradient of the loss with weights min(1, radius / |v|).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sulq.kernel.query.sum_query import outer
from sulq.kernel.query.vectors import (
    Vector,
    bins,
    clipped,
    concat,
    norm,
    ones,
    project,
    scaled,
    squares,
)
from sulq.learn.budget import FitBudget
from sulq.learn.covariance import (
    BINS_PER_DOUBLING,
    NORM_BINS,
    Lengths,
    ask_gram,
    clip_share,
    mixed_rows,
    shrink,
)
from sulq.learn.dataset import FitData
from sulq.learn.features import Array, published

BIAS = 0.5
"""The constant coordinate as a part of the radius: a fifth of the squared length."""
LEAST_VARIANCE = 1e-7
LEAST_PART = 0.02
"""Of the mean variance: a rare category must not make the few rows it holds very long."""
MEMORY = 10
START_DOUBT = 0.3
"""How far the start may be off where its gradient shows nothing, in parts of one round's noise."""
BENT = 0.1
"""How much of the way a step may miss because the loss is no quadratic."""
CAUTION = 0.5
CONVERGED = 1e-12


@dataclass(frozen=True)
class Standardised:
    """Rows as v = (bias, (coordinates - centre) * scale): whole for scores, clipped for sums."""

    centre: Array
    scale: Array
    bias: float
    radius: float
    mean_square: float
    drift: Array
    """The standard error of the centre, in coordinates of v."""
    rows: float
    labelled: float
    """Of these, how many have a class: all, unless clearly fewer."""
    scored: Vector
    held: Vector

    @property
    def width(self) -> int:
        return len(self.centre) + 1

    def of(self, coordinates: Array) -> Array:
        """Public coordinates as v."""
        moved = (coordinates - self.centre) * self.scale
        return np.hstack([np.full((len(moved), 1), self.bias), moved])

    def penalty(self, strength: float) -> Array:
        """The diagonal of strength * |weights per coordinate|^2 in weights of v: no intercept."""
        return strength * np.concatenate([[0.0], self.scale**2])

    def per_coordinate(self, weights: Array) -> tuple[Array, Array]:
        """Weights of v (one class a row) as weights of the coordinates, and intercepts."""
        slopes = weights[:, 1:] * self.scale
        return slopes, weights[:, 0] * self.bias - slopes @ self.centre


def standardise(table: FitData, budget: FitBudget) -> Standardised:
    """Estimate centre and variances, then a clipping radius, with two small questions."""
    middle = table.features.middle
    vector = table.features.as_vector(middle)
    reach = max(table.features.radius(middle), 1e-3)
    parts = [vector, scaled(squares(vector), 2)]
    if not table.public_rows:
        parts = [scaled(ones(), reach), *parts]
    found, error = budget.sums("centre", table.outer(ones(), concat(*parts)))
    rows = table.rows
    if not table.public_rows:
        rows = mixed_rows(table, float(found[0, 0]) / reach, error / reach)
    width = table.width
    offset = found[0, -2 * width : -width] / rows
    centre = middle + shrink(offset, error / rows)
    centre = np.clip(centre, table.features.low, table.features.high)
    variance = np.maximum(found[0, -width:] / 2 / rows - offset**2, 0.0)
    variance += error / 2 / rows + LEAST_PART * variance.mean() + LEAST_VARIANCE
    scale = np.array(published(variance**-0.5))
    moved = project(table.features.as_vector(centre), np.diag(scale).tolist())
    lengths = _lengths(table, budget, moved, float(scale.max()) * table.features.radius(centre))
    share = clip_share(table)
    long = max(lengths.quantile(share), 1e-3)
    bias = float(np.array(published(BIAS * long)))
    radius = math.hypot(bias, long)
    scored = concat(scaled(ones(), bias), moved)
    held = scored if share >= 1 else clipped(scored, published(radius))
    drift = scale * error / rows
    mean_square = lengths.mean_square(long)
    labelled = float(lengths.counts.sum())
    if rows - labelled <= 3 * math.hypot(lengths.error * math.sqrt(NORM_BINS), table.rows_error):
        labelled = rows
    return Standardised(
        centre, scale, bias, radius, mean_square, drift, rows, labelled, scored, held
    )


def _lengths(table: FitData, budget: FitBudget, vector: Vector, reach: float) -> Lengths:
    """Of the rows that have a class."""
    powers = np.arange(NORM_BINS - 1, -1, -1) / BINS_PER_DOUBLING
    edges = np.concatenate([[0.0], reach * 2.0**-powers])
    edges[-1] = reach * (1 + 2**-10)
    cut = bins(norm(vector), edges.tolist())
    counts, error = budget.sums("clip", outer(ones(), cut, rows=table.labelled))
    return Lengths(counts[0], edges, error)


@dataclass(frozen=True)
class GramEstimate:
    """The sum of v v', drawn towards a multiple of the identity as far as it is noise.

    `across` is that of the bias with the other coordinates, as answered.
    """

    value: Array
    error: float
    rows: float
    across: Array
    across_error: Array


def isotropic_gram(view: Standardised) -> GramEstimate:
    """A guess from how long the rows are: between all directions alike and one that holds all."""
    width = view.width
    values = np.full(width, view.mean_square * view.rows / math.sqrt(width - 1))
    values[0] = view.bias**2 * view.rows
    unknown = view.bias * view.rows * view.drift
    return GramEstimate(np.diag(values), 0.0, view.rows, np.zeros(width - 1), unknown)


def estimate_gram(table: FitData, budget: FitBudget, view: Standardised) -> GramEstimate:
    """From one noisy Gram matrix; where the plan has none, from how long the rows are."""
    if all(step.name != "gram" for step in budget.plan.steps):
        return isotropic_gram(view)
    width = view.width
    target = np.full(width, view.mean_square * view.rows / (width - 1))
    target[0] = view.bias**2 * view.rows
    gram = ask_gram(table, budget, view.held)
    away = gram.value - np.diag(target)
    noise = gram.error**2 * width * (width + 1) / 2  # off the diagonal half of it, twice
    size = float((away**2).sum())
    kept = max(0.0, 1.0 - noise / size) if size > 0 else 0.0
    across = np.full(width - 1, gram.error / math.sqrt(2))
    shown = np.diag(target) + kept * away
    return GramEstimate(shown, kept * gram.error, view.rows, gram.value[0, 1:], across)


def evidence(moments: Array, error: float, gram: GramEstimate | None = None) -> float:
    """How far sums of coordinates by class stand out of noise alone, in standard deviations.

    Of several rows only their differences count. One row is a contrast of two classes: with the
    spread, what a majority and an imperfect centre make of it is taken off.
    """
    if error == 0:
        return math.inf
    freedom = max(len(moments) - 1, 1) * (moments.shape[1] - 1)
    rest, variance = moments[:, 1:], np.array(error**2)
    if len(moments) > 1:
        counts = np.maximum(moments[:, 0], error)
        rest = rest - (counts / counts.sum())[:, None] * rest.sum(axis=0)
    elif gram is not None:
        lead = float(moments[0, 0]) / float(gram.value[0, 0])
        rest = rest - lead * gram.across
        variance = variance + (lead * gram.across_error) ** 2
    size = float((rest**2 / variance).sum())
    return float((size - freedom) / math.sqrt(2 * freedom))


def first_weights(moments: Array, error: float, gram: GramEstimate, curvature: float) -> Array:
    """Solve curvature * gram @ w_k = moments_k, one class a row, against both noises.

    The intercept comes first, since the others are centred, drawn to that of equal classes as far
    as it is noise. Their weights are taken as draws of one
    deviation t, which makes the moments in the basis of the Gram matrix's eigenvectors normal with
    variance (h t)^2 + (e t)^2 + error^2; t maximises their likelihood, and
    w = h / (h^2 + e^2 + (error / t)^2) * moments is the mean given them.
    """
    common = moments[:, 0].mean() if len(moments) > 1 else 0.0
    apart = moments[:, 0] - common
    size = float(apart @ apart)
    kept = max(0.0, 1 - max(len(apart) - 1, 1) * error**2 / size) if size else 0.0
    level = (common + kept * apart) / (curvature * gram.value[0, 0])
    rest = moments[:, 1:] - curvature * level[:, None] * gram.value[0, 1:]
    values, basis = np.linalg.eigh(gram.value[1:, 1:])
    h = curvature * np.maximum(values, 1e-9 * values.max())
    seen = rest @ basis
    if error == 0:
        return np.column_stack([level, (seen / h) @ basis.T])
    unsure = (curvature * gram.error) ** 2 * len(values) / 2
    deviations = float(np.abs(seen).max() / h.max()) * np.geomspace(1e-3, 1e4, 71)
    fits = []
    for t in deviations:
        variance = (h**2 + unsure) * t * t + error**2
        fits.append(float((np.log(variance) + seen**2 / variance).sum()))
    t = deviations[int(np.argmin(fits))]
    slopes = (h / (h**2 + unsure + (error / t) ** 2) * seen) @ basis.T
    return np.column_stack([level, slopes])


@dataclass(frozen=True)
class Preconditioner:
    """The quadratic that a round minimises, one matrix a class, and its inverse."""

    inverse: Array

    @classmethod
    def of(
        cls, gram: GramEstimate, curvature: Array, penalty: Array, caution: float
    ) -> Preconditioner:
        """Return curvature_k * gram + penalty, steeper by `caution` and by the noise of `gram`."""
        width = len(gram.value)
        values, basis = np.linalg.eigh(gram.value)
        positive = (basis * np.maximum(values, 1e-9 * values.max())) @ basis.T
        unsure = curvature * gram.error * math.sqrt(width / 2) + caution
        matrices = curvature[:, None, None] * positive + np.diag(penalty)
        return cls(np.linalg.inv(matrices + unsure[:, None, None] * np.eye(width)))

    def solve(self, gradient: Array) -> Array:
        return np.asarray(np.einsum("kij,kj->ki", self.inverse, gradient))

    @property
    def trace(self) -> float:
        return float(np.trace(self.inverse, axis1=1, axis2=2).sum())

    def errors(self, noise: float) -> Array:
        """The standard error of each weight where that of the gradient is `noise`."""
        return np.asarray(noise * np.sqrt((self.inverse**2).sum(axis=2)))


def lbfgs(
    start: Array, ask: Callable[[Array], tuple[Array, float]], metric: Preconditioner, rounds: int
) -> Array:
    """Rounds of quasi-Newton steps (Nocedal 1980) from `start`; the mean of where they aimed.

    A pair (step, change of gradient) is believed where its curvature stands out of the noise. Each
    round's aim weighs in by 1 / (its noise + how far it still had to go), the start by how far it
    was off: with loud noise a plain mean, without noise the last one.
    """
    weights, gradient, step = start, np.zeros_like(start), np.zeros_like(start)
    pairs: list[tuple[Array, Array]] = []
    aims: list[tuple[float, Array]] = []
    first = length = math.inf
    for _ in range(rounds):
        reached, error = ask(weights + step)
        noise = error**2 * metric.trace
        change = reached - gradient
        curved, long = float((step * change).sum()), float(np.sqrt((step**2).sum()))
        if math.isfinite(length) and curved > 3 * math.sqrt(2) * error * long:
            pairs = [*pairs[-MEMORY:], (step, change)]
        far = float((reached * metric.solve(reached)).sum())
        if far > 2 * length + 4 * noise:  # overshot: back, and knowing the curvature now
            step = -_corrected(gradient, pairs, metric)
            continue
        if not aims:
            first = far
            aims.append((1 / (START_DOUBT * noise + max(far - noise, 0.0) + 1e-300), start))
        weights, gradient, length = weights + step, reached, far
        step = -_corrected(gradient, pairs, metric)
        aims.append((1 / (noise + BENT * max(far - noise, 0.0) + 1e-300), weights + step))
        if error == 0 and far < CONVERGED * first:
            break
    if not aims:
        return start
    total = sum(weight for weight, _ in aims)
    return np.asarray(sum(weight / total * aim for weight, aim in aims))


def _corrected(gradient: Array, pairs: list[tuple[Array, Array]], metric: Preconditioner) -> Array:
    """The metric's inverse, corrected by the pairs, times the gradient."""
    left, parts = gradient, []
    for step, change in reversed(pairs):
        parts.append(float((step * left).sum() / (step * change).sum()))
        left = left - parts[-1] * change
    found = metric.solve(left)
    for (step, change), part in zip(pairs, reversed(parts), strict=True):
        found = found + (part - float((change * found).sum() / (step * change).sum())) * step
    return found
