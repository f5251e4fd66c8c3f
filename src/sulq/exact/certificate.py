"""Certify a batch for exact release, or say why not. Reads public facts only. S1.8, S1.15

Each intact row that may hold a or b, each with a chance of at least m, is a fair coin of step
u = b - a with chance 2m. If every change v that one row can make is a whole combination of the
steps, and the coins hide that combination, the exact sums hide the row.
Proofs: docs/proofs/exact.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import add, mul

import numpy as np

from sulq.errors import UnsafeExactly
from sulq.exact.combinations import MOST_KINDS, Integers, RowChanges, changes_of, designs, shortest
from sulq.exact.domain import Assumptions, Domain, PublicClass, Vector
from sulq.exact.hiding import Hidden, fewest_coins, hidden_delta
from sulq.kernel.accounting.gaussian import gaussian_mu

TAIL_SHARE = Fraction(1, 10)
"""Of delta, for the chance that there are fewer coins than counted on."""
MOST_SHIFTS = 64
EVERY_SPLIT = math.lcm(*range(1, MOST_KINDS + 1))

Combination = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Certificate:
    """Why a batch is safe: coins of each step, the worst shift, and what it costs."""

    epsilon: Fraction
    delta: Fraction
    steps: tuple[Vector, ...]
    coins: tuple[int, ...]
    worst: Combination
    factor: int
    reached: float

    @property
    def guarantee(self) -> str:
        return "noiseless, under assumptions"


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Steps to count on, the coins of each, and the combination that makes up each change."""

    steps: tuple[Vector, ...]
    coins: tuple[int, ...]
    counts: Integers
    made: bool
    spent: float

    @property
    def shifts(self) -> set[Combination]:
        return {tuple(map(int, c)) for c in np.unique(np.abs(self.counts), axis=0)}

    @property
    def factor(self) -> int:
        """r = 1 + max over v of sum |c_k(v)|: rows that move with one row. S1.12"""
        return 1 + int(np.abs(self.counts).sum(axis=1).max())

    @property
    def distance(self) -> float:
        """What a Gaussian would show of the worst change: ranks designs, decides nothing."""
        if (self.counts[:, np.array(self.coins) == 0] != 0).any():
            return math.inf
        weights = 4 / np.maximum(1, np.array(self.coins))
        return math.sqrt(float((self.counts**2 @ weights).max()))


def certify(domain: Domain, sizes: Sequence[int], assumptions: Assumptions) -> Certificate:
    """The certificate of least factor for a batch on classes of these public sizes."""
    views = views_of(domain, sizes)
    epsilon, delta = assumptions.epsilon, assumptions.delta
    changes = changes_of(views[-1])
    if not len(changes.vectors):
        return Certificate(
            epsilon=epsilon, delta=delta, steps=(), coins=(), worst=(), factor=1, reached=0.0
        )
    tried = designs_for(views, changes, assumptions)
    if not tried:
        known = f", {assumptions.known_rows:,} of them known" if assumptions.known_rows else ""
        raise UnsafeExactly(
            f"refused: too few other rows are uncertain in what the batch asks{known}, so nothing"
            " hides a row; ask with noise instead"
        )
    whole = [design for design in tried if design.made]
    if not whole:
        raise UnsafeExactly(
            "refused: a row can change the answers in a way that no other row's uncertainty could"
            " (off the lattice, or alone in its class); ask with noise instead"
        )
    enough = 1.3 * float(gaussian_mu(epsilon, delta))
    likely = [design for design in whole if design.distance <= enough]
    likely.sort(key=lambda design: (design.factor, design.distance))
    for design in likely or [min(whole, key=lambda design: design.distance)]:
        found = _certificate(design, assumptions)
        if found.reached <= delta:
            return found
    raise UnsafeExactly(
        f"refused: the rows' own uncertainty reaches delta {found.reached:.3g} at epsilon"
        f" {float(epsilon):g}, {float(delta):.3g} is wanted; ask with noise instead"
    )


def views_of(domain: Domain, sizes: Sequence[int]) -> list[list[PublicClass]]:
    """Ways to divide the rows, fixed beforehand, by the columns whose values are not revealed.

    In a row whose one column is open, all else may be revealed: its least chance is not
    multiplied by the others'. The last view has rows of every sort.
    """
    held = [(given, n) for given, n in zip(domain.classes(), sizes, strict=True) if n]
    whole = [domain.table(given, n) for given, n in held]
    if len(domain.uncertain) < 2:
        return [whole]
    single = [[domain.table(given, n, [name]) for given, n in held] for name in domain.uncertain]
    return [whole, _shared(single), _shared([whole, *single])]


def _shared(sorts: Sequence[Sequence[PublicClass]]) -> list[PublicClass]:
    """Each class's rows split evenly over the sorts."""
    return [
        replace(part, rows=(part.rows + i) // len(sorts))
        for i, sort in enumerate(sorts)
        for part in sort
    ]


def designs_for(
    views: Sequence[Sequence[PublicClass]], changes: RowChanges, assumptions: Assumptions
) -> list[Design]:
    """Every set of steps worth trying, with its coins and combinations."""
    found = []
    for steps in designs(changes):
        counts, made = shortest(changes, steps)
        for classes in views:
            coins, spent = coins_of(steps, classes, assumptions)
            if any(coins):
                found.append(
                    Design(
                        steps=steps, coins=coins, counts=counts, made=bool(made.all()), spent=spent
                    )
                )
    return found


def coins_of(
    steps: Sequence[Vector], classes: Sequence[PublicClass], assumptions: Assumptions
) -> tuple[tuple[int, ...], float]:
    """At least so many coins of each step, but for a chance that is returned too. S1.8

    Rows of all classes with one chance are one binomial. Known rows come off at the end: they may
    be picked after the answer (S1.8 e).
    """
    rows: list[Counter[Fraction]] = [Counter() for _ in steps]
    shares: dict[tuple[object, ...], list[Fraction]] = {}
    for part in classes:
        key = (part.contexts, part.chances)
        if key not in shares:
            shares[key] = _allotted(steps, part)
        for kind, share in zip(rows, shares[key], strict=True):
            kind[share] += part.rows
    draws = sum(share > 0 for kind in rows for share in kind)
    failure = float(assumptions.delta * TAIL_SHARE) / max(1, draws)
    coins = [
        # the target is one of them, and any may be the target
        sum(fewest_coins(n - 1, float(2 * share), failure) for share, n in kind.items())
        for kind in rows
    ]
    return tuple(max(0, n - assumptions.known_rows) for n in coins), failure * draws


def _certificate(design: Design, assumptions: Assumptions) -> Certificate:
    reached, worst = 0.0, (0,) * len(design.steps)
    for shift in maximal(design.shifts):
        parts = [Hidden(n, s) for n, s in zip(design.coins, shift, strict=True)]
        here = hidden_delta(parts, float(assumptions.epsilon))
        if here > reached:
            reached, worst = here, shift
    return Certificate(
        epsilon=assumptions.epsilon,
        delta=assumptions.delta,
        steps=design.steps,
        coins=design.coins,
        worst=worst,
        factor=design.factor,
        reached=min(1.0, reached + design.spent),
    )


def maximal(shifts: set[Combination]) -> list[Combination]:
    """Shifts that no other exceeds in every kind: larger ones are harder to hide (TB.6)."""
    table = np.array(sorted(shifts, key=lambda shift: (-sum(shift), shift)))
    kept: list[Integers] = []
    while len(table):  # the largest sum is exceeded by none of the others
        kept.append(table[0])
        table = table[(table > table[0]).any(axis=1)]
    kept.sort(key=tuple)
    while len(kept) > MOST_SHIFTS:  # two neighbours become one that is at least both
        pairs = [np.max(kept[i : i + 2], axis=0) for i in range(0, len(kept), 2)]
        kept = list(np.unique(pairs, axis=0))
    return [tuple(map(int, shift)) for shift in kept]


# --- chances of a step --------------------------------------------------------------------------


def _allotted(steps: Sequence[Vector], part: PublicClass) -> list[Fraction]:
    """For each step a chance m such that, in every context, disjoint pairs of values hold it.

    Each value's chance is split evenly over the steps that can use it, so no chance is used twice.
    """
    unit = math.lcm(*(chance.denominator for chance in part.chances)) * EVERY_SPLIT
    chances = [int(chance * unit) for chance in part.chances]
    contexts = set(part.contexts)
    shares = [_in_context(steps, cells, chances) for cells in contexts]
    return [Fraction(min(share), unit) for share in zip(*shares, strict=True)]


def _in_context(
    steps: Sequence[Vector], cells: Sequence[Vector], chances: Sequence[int]
) -> list[int]:
    weight: Counter[Vector] = Counter()
    for cell, chance in zip(cells, chances, strict=True):
        weight[cell] += chance
    up = [[(cell, there) for cell in weight if (there := _plus(cell, u)) in weight] for u in steps]
    users: Counter[Vector] = Counter()
    for pairs in up:
        users.update({cell for pair in pairs for cell in pair})
    found = []
    for u, pairs in zip(steps, up, strict=True):
        left = {cell: weight[cell] // users[cell] for pair in pairs for cell in pair}
        total = 0
        for low, high in sorted(pairs, key=lambda pair: _along(pair[0], u)):
            taken = min(left[low], left[high])
            left[low] -= taken
            left[high] -= taken
            total += taken
        found.append(total)
    return found


def _plus(a: Vector, b: Vector) -> Vector:
    return tuple(map(add, a, b))


def _along(cell: Vector, u: Vector) -> int:
    return sum(map(mul, cell, u))
