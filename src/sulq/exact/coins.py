"""How well the total of many fair coins hides a shift. S1.7, S1.8

Every intact row whose value may be a or b, each with a chance of at least m, holds a fair coin
with chance 2m, whatever else is known of it. What such coins leave open, no one can see through.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sulq.accounting.pld import GUARD, PrivacyLoss, connect_the_dots
from sulq.noise.distributions import DiscreteGaussian

Array = NDArray[np.float64]
DEEP = 60.0
"""Outcomes rarer than e^-60 times the likeliest count as an infinite loss."""
POINTS = 2**18
"""At most so many grid points of loss."""


def fewest_coins(rows: int, chance: float, failure: float) -> int:
    """The largest k with Pr[Bin(rows, chance) < k] <= failure, from above."""
    if rows <= 0 or chance <= 0:
        return 0
    if chance >= 1:
        return rows
    low, high = 0, math.floor(rows * chance) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _below(rows, chance, middle) <= failure:
            low = middle
        else:
            high = middle
    return low


def _below(rows: int, chance: float, k: int) -> float:
    """Pr[Bin(rows, chance) < k] for k below the mean: falls at least geometrically downwards."""
    if k <= 0:
        return 0.0
    top = k - 1
    log_top = _log_choose(rows, top) + top * math.log(chance) + (rows - top) * math.log1p(-chance)
    ratio = top * (1 - chance) / ((rows - top + 1) * chance)  # pmf(top - 1) / pmf(top)
    if ratio >= 1:
        return 1.0
    terms = min(top, 4096)
    j = np.arange(1, terms + 1, dtype=np.float64)
    steps = np.log((top - j + 1) * (1 - chance)) - np.log((rows - top + j) * chance)
    falls = np.concatenate([[0.0], np.cumsum(steps)])
    rest = math.exp(float(falls[-1])) * ratio / (1 - ratio) if terms < top else 0.0
    return min(1.0, math.exp(log_top) * (float(np.exp(falls).sum()) + rest) * (1 + 1e-9))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def log_chances(coins: int, noise: DiscreteGaussian | None = None) -> tuple[Array, float]:
    """log Pr[heads - coins/2 = j - reach], j = 0..2 reach, and what lies outside, from above."""
    spread = math.sqrt(coins) / 2
    reach = min(math.ceil(coins / 2), math.ceil(spread * math.sqrt(2 * DEEP)) + 2)
    k = np.arange(-reach, reach + 1, dtype=np.float64) + math.floor(coins / 2)
    held = (k >= 0) & (k <= coins)
    logs = np.full(len(k), -np.inf)
    logs[held] = _log_binomials(coins, k[held])
    outside = 0.0 if reach >= coins / 2 else 2 * math.exp(-2 * (reach - 1) ** 2 / coins)
    if noise is None:
        return logs, outside
    width = math.ceil(noise.standard_deviation() * math.sqrt(2 * DEEP)) + 2
    t = np.arange(-width, width + 1, dtype=np.float64)
    weights = np.exp(-t * t / float(2 * noise.sigma_squared))
    joint = np.convolve(np.exp(logs), weights / weights.sum())
    with np.errstate(divide="ignore"):
        return np.log(joint), outside + noise.tail(width + 1)


def _log_binomials(coins: int, k: Array) -> Array:
    """log C(coins, k) / 2^coins along consecutive k, by ratios from the middle one."""
    first = int(k[0])
    start = _log_choose(coins, first) - coins * math.log(2)
    steps = np.log((coins - k[:-1]) / (k[:-1] + 1))
    falls: Array = start + np.concatenate([[0.0], np.cumsum(steps, dtype=np.longdouble)])
    return falls


def coin_loss(
    coins: int, shift: int, step: float, noise: DiscreteGaussian | None = None
) -> PrivacyLoss:
    """The privacy loss of (total + shift) against the total, on a grid of losses. TB.5"""
    if shift == 0:
        return PrivacyLoss(step, 0, np.ones(1), 0.0)
    logs, outside = log_chances(coins, noise)
    if abs(shift) >= len(logs):
        return PrivacyLoss(step, 0, np.zeros(1), 1.0)
    here, there = (logs[abs(shift) :], logs[: -abs(shift)])  # symmetric: one sign is enough
    masses = np.exp(here) * (1 + GUARD)
    lost = float(np.exp(logs[: abs(shift)]).sum()) * (1 + GUARD) + outside
    possible = np.isfinite(there) & (masses > 0)
    lost += float(masses[~possible].sum())
    losses = (here - there)[possible] + GUARD
    if not len(losses):
        return PrivacyLoss(step, 0, np.zeros(1), 1.0)
    return connect_the_dots(losses, masses[possible], min(1.0, lost), step)


def hockey_stick(
    kinds: Sequence[tuple[int, int]], epsilon: float, noise: DiscreteGaussian | None = None
) -> float:
    """delta(epsilon) of independent kinds (coins, shift) together, from above. S1.8

    With `noise`, which is for one kind alone, the total is noised first (S1.15, step 5).
    """
    moved = [(coins, abs(shift)) for coins, shift in kinds if shift]
    if not moved:
        return 0.0
    if any(coins <= 0 for coins, _ in moved) and noise is None:
        return 1.0
    widest = sum(4 * shift / math.sqrt(max(coins, 1)) * math.sqrt(DEEP) for coins, shift in moved)
    step = max(widest, epsilon) / (POINTS / 8)
    step = epsilon / max(1, math.floor(epsilon / step))
    losses = [coin_loss(coins, shift, step, noise) for coins, shift in moved]
    joint = losses[0]
    for loss in losses[1:]:
        joint = _both(joint, loss)
    return joint.delta(epsilon)


def _both(left: PrivacyLoss, right: PrivacyLoss) -> PrivacyLoss:
    """Two independent losses added up; the FFT's own error goes to infinity. TB.5"""
    length = len(left.masses) + len(right.masses) - 1
    padded = 1 << (length - 1).bit_length()
    spectrum = np.fft.rfft(left.masses, padded) * np.fft.rfft(right.masses, padded)
    masses = np.maximum(np.fft.irfft(spectrum, padded)[:length], 0.0)
    norm = float(np.linalg.norm(left.masses) * np.linalg.norm(right.masses))
    floor = 2**-52 * (2 + math.log2(padded)) * math.sqrt(length) * norm
    infinity = 1 - (1 - left.infinity) * (1 - right.infinity) + floor
    return PrivacyLoss(left.step, left.lowest + right.lowest, masses, min(1.0, infinity))
