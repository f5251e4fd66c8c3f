"""The splits of a node that a noisy class-by-cell table speaks for."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from sulq.learn.cells import Attribute, Places
from sulq.learn.features import Array
from sulq.query.expressions import Expression


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
