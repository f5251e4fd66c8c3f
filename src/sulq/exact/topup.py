"""Top up a batch that falls short: the least noise that hides what the coins do not. S1.15 (5)

A change v = sum c_k u_k + w: the coins of step u_k hide c_k, the noise hides w. A step along one
coordinate need not be split so: its coins and that coordinate's noise are one wider law.
Reads public facts only. Proofs: docs/proofs/exact.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sulq.errors import UnsafeExactly
from sulq.exact.certificate import MOST_SHIFTS, Combination, Design, designs_for, maximal, views_of
from sulq.exact.combinations import Integers, RowChanges, changes_of
from sulq.exact.domain import Assumptions, Domain, Vector
from sulq.exact.hiding import Hidden, hidden_delta
from sulq.kernel.accounting.gaussian import gaussian_mu
from sulq.kernel.noise.laws import DiscreteGaussian

PER_UNIT = 64
"""sigma^2 is a multiple of 1/64."""
FINENESS = Fraction(65, 64)
"""At most so far above the least."""
MOST_SPLITS = 256
LOOKED_AT = 300
"""Long changes that a first guess goes by."""
FIRST_TRIED = 4
SIMILAR = Fraction(11, 10)
"""So much more noise is worth a smaller factor."""


@dataclass(frozen=True, slots=True)
class TopUp:
    """Fresh discrete Gaussian noise of `sigma_squared` (lattice units) on every sum of the batch.

    `unconditional_mu` is what the noise alone would promise, with no assumption at all.
    """

    epsilon: Fraction
    delta: Fraction
    sigma_squared: Fraction
    steps: tuple[Vector, ...]
    coins: tuple[int, ...]
    factor: int
    reached: float
    unconditional_mu: float

    @property
    def guarantee(self) -> str:
        return "a little noise, under assumptions"


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which step's coins widen which coordinate's noise; the other steps hide by themselves."""

    design: Design
    widening: dict[int, int]  # coordinate -> step
    alone: tuple[int, ...]

    def wide(self, coordinate: int) -> tuple[int, int]:
        """(coins, stride) of the coins that a coordinate's noise is added to."""
        k = self.widening.get(coordinate)
        return (0, 1) if k is None else (self.design.coins[k], self._stride(k))

    def _stride(self, k: int) -> int:
        return max(map(abs, self.design.steps[k]))


def top_up(
    domain: Domain,
    sizes: Sequence[int],
    assumptions: Assumptions,
    at_most: Fraction | None = None,
) -> TopUp:
    """The least noise under which the batch is safe; refused where plain noise does as well.

    `at_most`: the variance of plain noise for this batch, in the same lattice units.
    """
    views = views_of(domain, sizes)
    changes = changes_of(views[-1])
    if not len(changes.vectors):
        raise UnsafeExactly("nothing in the batch depends on a private value: ask it exactly")
    limit = changes.longest_squared / gaussian_mu(assumptions.epsilon, assumptions.delta) ** 2
    if at_most is not None:
        limit = min(limit, at_most)
    designs = designs_for(views, changes, assumptions)
    plans = [plan for design in designs for plan in _plans(design)]
    longest = changes.longest(LOOKED_AT)
    guessed = [(_guess(plan, longest, assumptions, limit), i) for i, plan in enumerate(plans)]
    found: list[TopUp] = []
    for guess, i in sorted(guessed)[:FIRST_TRIED]:
        roof = min([limit, *(SIMILAR * other.sigma_squared for other in found)])
        if guess < roof and (here := _least(plans[i], changes, assumptions, roof, guess)):
            found.append(here)
    if not found:
        raise UnsafeExactly("refused: plain noise is as good: ask with noise")
    least = min(other.sigma_squared for other in found)
    close = [other for other in found if other.sigma_squared <= SIMILAR * least]
    return min(close, key=lambda other: (other.factor, other.sigma_squared))


def _plans(design: Design) -> list[_Plan]:
    """With coins widening the noise, which needs less of it, and without: a smaller factor."""
    widened = _plan(design)
    return [widened, _Plan(design, {}, tuple(range(len(design.steps))))]


def _plan(design: Design) -> _Plan:
    """Every coordinate takes the coins of one step along it: the unit step, else the widest."""
    widening: dict[int, int] = {}
    for k, u in enumerate(design.steps):
        along = [j for j, x in enumerate(u) if x]
        if len(along) == 1 and design.coins[k]:
            old = widening.get(along[0])
            if old is None or _rank(design, k) > _rank(design, old):
                widening[along[0]] = k
    alone = tuple(k for k in range(len(design.steps)) if k not in widening.values())
    return _Plan(design, widening, alone)


def _rank(design: Design, k: int) -> tuple[bool, int]:
    stride = max(map(abs, design.steps[k]))
    return stride == 1, stride**2 * design.coins[k]


# --- splitting changes --------------------------------------------------------------------------


def _splits(
    plan: _Plan, changes: RowChanges, sigma_squared: float
) -> tuple[Integers, Integers, float]:
    """For each change the split (c, w) that a Gaussian would hide best, and how well at worst."""
    design = plan.design
    known = np.unique(design.counts[:, plan.alone], axis=0)
    known = known[np.argsort(np.abs(known).sum(axis=1), kind="stable")][:MOST_SPLITS]
    counts = np.unique(np.concatenate([known, -known, 0 * known[:1]]), axis=0)
    coins = np.array([design.coins[k] for k in plan.alone], dtype=np.float64)
    counts = counts[~((counts != 0) & (coins == 0)).any(axis=1)]
    made = counts @ np.array([design.steps[k] for k in plan.alone], dtype=np.int64).reshape(
        len(plan.alone), changes.vectors.shape[1]
    )
    hidden = (counts**2 * (4 / np.maximum(coins, 1))).sum(axis=1)
    widths = [plan.wide(j) for j in range(changes.vectors.shape[1])]
    variances = np.array([s * s * n / 4 + sigma_squared for n, s in widths])
    hidden += (made**2 / variances).sum(axis=1)
    best = []
    for part in np.array_split(changes.vectors, len(changes.vectors) * len(counts) // 10**6 + 1):
        best.append((hidden - 2 * (part / variances) @ made.T).argmin(axis=1))
    at = np.concatenate(best)
    left = changes.vectors - made[at]
    cost = (counts[at] ** 2 * (4 / np.maximum(coins, 1))).sum(axis=1)
    return counts[at], left, float((cost + (left**2 / variances).sum(axis=1)).max())


def _guess(plan: _Plan, changes: RowChanges, assumptions: Assumptions, limit: Fraction) -> float:
    """About the least sigma^2: where the Gaussian distance is allowed. Decides nothing."""
    allowed = float(gaussian_mu(assumptions.epsilon, assumptions.delta)) ** 2
    low, high = 1 / PER_UNIT, float(limit)
    if _splits(plan, changes, high)[2] > allowed * 1.5:
        return math.inf
    while high > low * 1.1:
        middle = math.sqrt(low * high)
        low, high = (
            (low, middle) if _splits(plan, changes, middle)[2] <= allowed else (middle, high)
        )
    return high


# --- one plan -----------------------------------------------------------------------------------


def _least(
    plan: _Plan, changes: RowChanges, assumptions: Assumptions, limit: Fraction, guess: float
) -> TopUp | None:
    """The least sigma^2 below `limit` that passes, to within FINENESS; verified where returned."""

    def at(sigma_squared: Fraction) -> TopUp | None:
        return _passes(plan, changes, assumptions, sigma_squared)

    top = (math.ceil(limit * PER_UNIT) - 1) if limit < 2**40 else 2**46
    if top < 1:
        return None
    high = min(top, max(1, math.ceil(guess * PER_UNIT)))
    low = 0
    found = at(Fraction(high, PER_UNIT))
    while found is None:
        if high >= top:
            return None
        low, high = high, min(top, high + max(1, high // 4))
        found = at(Fraction(high, PER_UNIT))
    step = max(1, high // 8)
    while high - low > 1 and high > FINENESS * max(low, 1):
        middle = max(low + 1, high - step) if low == 0 else (low + high) // 2
        better = at(Fraction(middle, PER_UNIT))
        if better is None:
            low = middle
        else:
            high, found, step = middle, better, 2 * step
    return found


def _passes(
    plan: _Plan, changes: RowChanges, assumptions: Assumptions, sigma_squared: Fraction
) -> TopUp | None:
    noise, design = DiscreteGaussian(sigma_squared), plan.design
    epsilon, delta = float(assumptions.epsilon), assumptions.delta
    counts, left, _ = _splits(plan, changes, float(sigma_squared))
    shifts = _worst_shifts(plan, np.abs(np.concatenate([counts, left], axis=1)))
    if shifts is None:
        return None
    reached = 0.0
    for hidden in sorted((_parts(plan, s, noise) for s in shifts), key=_distance, reverse=True):
        reached = max(reached, hidden_delta(hidden, epsilon))
        if reached + design.spent > delta:
            return None
    strides = np.array([plan.wide(j)[1] for j in range(left.shape[1])])
    widened = np.array([j in plan.widening for j in range(left.shape[1])])
    moved = -(-np.abs(left) // strides) * widened
    factor = 1 + int((np.abs(counts).sum(axis=1) + moved.sum(axis=1)).max())  # S1.12
    return TopUp(
        epsilon=assumptions.epsilon,
        delta=delta,
        sigma_squared=sigma_squared,
        steps=design.steps,
        coins=design.coins,
        factor=factor,
        reached=reached + design.spent,
        unconditional_mu=math.sqrt(changes.longest_squared / sigma_squared) * (1 + 1e-12),
    )


def _worst_shifts(plan: _Plan, shifts: NDArray[np.int64]) -> list[Combination] | None:
    """Those to look at: larger ones are harder to hide where a law is log-concave (TB.6).

    Coins of a stride above 1 make combs: there every shift is looked at, or the plan is dropped.
    """
    first = len(plan.alone)
    combs = [first + j for j, k in plan.widening.items() if plan.wide(j)[1] > 1]
    groups: dict[Combination, set[Combination]] = {}
    for shift in np.unique(shifts, axis=0):
        own = tuple(map(int, shift))
        groups.setdefault(tuple(own[i] for i in combs), set()).add(own)
    if len(groups) > MOST_SHIFTS:
        return None
    return [shift for group in groups.values() for shift in maximal(group)]


def _parts(plan: _Plan, shift: Combination, noise: DiscreteGaussian) -> list[Hidden]:
    first = len(plan.alone)
    coins = [Hidden(plan.design.coins[k], s) for k, s in zip(plan.alone, shift, strict=False)]
    for j, s in enumerate(shift[first:]):
        n, stride = plan.wide(j)
        coins.append(Hidden(n, s, noise, stride))
    return coins


def _distance(parts: Sequence[Hidden]) -> float:
    return math.hypot(*(part.distance for part in parts))
