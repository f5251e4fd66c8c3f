"""How well the total of many fair coins, with noise or without, hides a shift. S1.7, S1.8

Every intact row whose value may be a or b, each with a chance of at least m, holds a fair coin
with chance 2m, whatever else is known of it. What such coins leave open, no one can see through.
Every error of floats goes to the safe side: losses and masses up, what is cut off counts as lost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sulq.kernel.accounting.pld import GUARD, PrivacyLoss, connect_the_dots
from sulq.kernel.noise.laws import DiscreteGaussian

Array = NDArray[np.float64]
DEEP = 60.0
"""Outcomes rarer than e^-60 times the likeliest count as an infinite loss."""
POINTS = 2**13
"""Grid points of loss over the widest range that matters."""
ROUNDING = 2.0**-52


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
    log_top += 1e-9 + 16 * ROUNDING * math.lgamma(rows + 1)  # what the logs may be off by
    ratio = top * (1 - chance) / ((rows - top + 1) * chance)  # pmf(top - 1) / pmf(top)
    if ratio >= 1:
        return 1.0
    terms = min(top, 4096)
    j = np.arange(1, terms + 1, dtype=np.float64)
    steps = np.log((top - j + 1) * (1 - chance)) - np.log((rows - top + j) * chance)
    falls = np.concatenate([[0.0], np.cumsum(steps)])
    rest = math.exp(float(falls[-1])) * ratio / (1 - ratio) if terms < top else 0.0
    return min(1.0, math.exp(log_top) * (float(np.exp(falls).sum()) + rest))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


# --- one total ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hidden:
    """The law of stride * (heads of `coins` fair coins) + noise, seen moved by `shift`."""

    coins: int
    shift: int
    noise: DiscreteGaussian | None = None
    stride: int = 1

    @property
    def distance(self) -> float:
        """shift / standard deviation: what a Gaussian would show (a guide, never a bound)."""
        if self.shift == 0:
            return 0.0
        variance = self.stride**2 * self.coins / 4
        variance += float(self.noise.sigma_squared) if self.noise else 0.0
        return abs(self.shift) / math.sqrt(variance) if variance else math.inf


@lru_cache(maxsize=64)
def log_chances(
    coins: int, noise: DiscreteGaussian | None = None, stride: int = 1
) -> tuple[Array, float]:
    """log of the law's chances on a window about its middle; what lies outside, from above."""
    reach = min(math.ceil(coins / 2), math.ceil(math.sqrt(coins * DEEP / 2)) + 2)
    k = np.arange(-reach, reach + 1, dtype=np.float64) + math.floor(coins / 2)
    logs = _log_binomials(coins, k[(k >= 0) & (k <= coins)])
    outside = 0.0 if reach >= coins / 2 else 2 * math.exp(-2 * (reach - 1) ** 2 / coins)
    if noise is None:
        return logs, outside
    width = math.ceil(math.sqrt(2 * DEEP * float(noise.sigma_squared))) + 2
    width += -width % stride
    t = np.arange(-width, width + stride, dtype=np.float64)  # whole strides
    weights = np.exp(-t * t / float(2 * noise.sigma_squared))
    weights /= weights.sum()
    heads = np.exp(logs)
    # one phase of the stride at a time: never multiply by the zeros in between
    phases = [np.convolve(heads, weights[phase::stride]) for phase in range(stride)]
    joint = np.stack(phases, axis=1).ravel()
    # cut where both laws still hold their full mass: beyond, only the windows' ends would show
    deep = np.flatnonzero(joint >= joint.max() * math.exp(-DEEP))
    kept = slice(int(deep[0]), int(deep[-1]) + 1)
    outside += float(joint[: kept.start].sum() + joint[kept.stop :].sum()) * (1 + GUARD)
    with np.errstate(divide="ignore"):
        return np.log(joint[kept]), outside + noise.tail(width)


def _log_binomials(coins: int, k: Array) -> Array:
    """log C(coins, k) / 2^coins along consecutive k, scaled to 1 on the window: a little up."""
    steps = np.log((coins - k[:-1]) / (k[:-1] + 1))
    falls = np.concatenate([[0.0], np.cumsum(steps, dtype=np.longdouble)])
    falls -= falls.max()
    logs: Array = np.asarray(falls - np.log(np.exp(falls).sum()), dtype=np.float64)
    return logs


def loss_from(hidden: Hidden, step: float) -> PrivacyLoss:
    """The privacy loss of (total + shift) against the total, on a grid of losses. TB.5"""
    shift = abs(hidden.shift)  # the laws are symmetric: one sign is enough
    if shift == 0:
        return PrivacyLoss(step, 0, np.ones(1), 0.0)
    logs, outside = log_chances(hidden.coins, hidden.noise, hidden.stride)
    if shift >= len(logs):
        return PrivacyLoss(step, 0, np.zeros(1), 1.0)
    here, there = logs[shift:], logs[:-shift]
    masses = np.exp(here) * (1 + GUARD)
    lost = float(np.exp(logs[:shift]).sum()) * (1 + GUARD) + outside
    possible = np.isfinite(there) & (masses > 0)
    lost += float(masses[~possible].sum())
    if not possible.any():
        return PrivacyLoss(step, 0, np.zeros(1), 1.0)
    losses = (here[possible] - there[possible]) + GUARD
    return connect_the_dots(losses, masses[possible], min(1.0, lost), step)


# --- several together ---------------------------------------------------------------------------


def hidden_delta(parts: Sequence[Hidden], epsilon: float) -> float:
    """delta(epsilon) of independent totals together, from above. S1.8, TB.5"""
    moved = [part for part in parts if part.shift]
    if not moved:
        return 0.0
    distance = [part.distance for part in moved]
    if math.inf in distance:
        return 1.0
    # one total is exact where epsilon is a grid point; several need a fine grid
    step = max(2 * sum(distance) * math.sqrt(DEEP), epsilon) / POINTS
    step = epsilon / max(1, math.ceil(epsilon / step))
    losses = [loss_from(part, step) for part in moved]
    if len(losses) == 1:
        return losses[0].delta(epsilon)
    tilt = max(0.0, min(epsilon / math.fsum(d * d for d in distance) - 0.5, DEEP / epsilon))
    return _composed(losses, epsilon, tilt)


def _composed(losses: Sequence[PrivacyLoss], epsilon: float, tilt: float) -> float:
    """Tilt, convolve by FFT, tilt back; any tilt is valid, Chernoff's keeps the error small."""
    never = sum(loss.infinity for loss in losses)
    step, lowest = losses[0].step, sum(loss.lowest for loss in losses)
    length = sum(len(loss.masses) for loss in losses)
    padded = 1 << (length - 1).bit_length()
    spectrum = np.ones(padded // 2 + 1, dtype=np.complex128)
    growth, norms = 0.0, 0.0
    for loss in losses:
        with np.errstate(divide="ignore"):
            powers = np.log(loss.masses) + tilt * step * (loss.lowest + np.arange(len(loss.masses)))
        top = float(powers.max())
        if top == -math.inf:
            return 1.0
        shares = np.exp(powers - top)
        total = float(shares.sum())
        growth += top + math.log(total)
        norms += float(np.linalg.norm(shares)) / total
        spectrum *= np.fft.rfft(shares / total, padded)
    shares = np.maximum(np.fft.irfft(spectrum, padded)[:length], 0.0)
    sums = step * (lowest + np.arange(length))
    above = sums > epsilon
    weights = np.exp(np.minimum(growth - tilt * sums[above], 700.0)) * -np.expm1(
        epsilon - sums[above]
    )
    # |spectra| <= 1, so the errors of the transforms add up in the 2-norm
    error = ROUNDING * (len(losses) + math.log2(padded)) * norms
    finite = float(shares[above] @ weights) + error * float(np.linalg.norm(weights))
    return min(1.0, (never + finite) * (1 + 100 * len(losses) * GUARD))


def hockey_stick(
    kinds: Sequence[tuple[int, int]], epsilon: float, noise: DiscreteGaussian | None = None
) -> float:
    """delta(epsilon) of independent kinds (coins, shift) together, from above. S1.8

    With `noise`, every total is noised by itself first (S1.15, step 5).
    """
    return hidden_delta([Hidden(coins, shift, noise) for coins, shift in kinds], epsilon)
