"""Certify a batch for exact release, or say why not. Reads public facts only. S1.8, S1.15

Each intact row that may hold a or b, each with a chance of at least m, is a fair coin of step
u = b - a with chance 2m. If every change v that one row can make is a whole combination of the
steps, and the coins hide that combination, the exact sums hide the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from sulq.errors import UnsafeExactly
from sulq.exact.coins import fewest_coins, hockey_stick
from sulq.exact.domain import Assumptions, Domain, PublicClass, Vector

TAIL_SHARE = Fraction(1, 10)
"""Of delta, for the chance that there are fewer coins than counted on."""
MOST_KINDS = 6
FARTHEST = 64
"""Coins that one change may stand for."""
MOST_SHIFTS = 64

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


def certify(domain: Domain, sizes: Sequence[int], assumptions: Assumptions) -> Certificate:
    """The best certificate for a batch on classes of these public sizes, or `UnsafeExactly`."""
    profiles = list(domain.classes())
    classes = [
        domain.table(given, rows) for given, rows in zip(profiles, sizes, strict=True) if rows
    ]
    changes = _changes(classes)
    if not changes:
        return Certificate(assumptions.epsilon, assumptions.delta, (), (), (), 1, 0.0)
    best: Certificate | None = None
    why = "no row's other values hide its own: nothing in the batch is uncertain"
    for steps in _designs(classes, changes):
        found = _attempt(steps, classes, changes, assumptions)
        if isinstance(found, str):
            why = found
        elif best is None or found.reached < best.reached:
            best = found
    if best is None:
        raise UnsafeExactly(f"refused: {why}; ask with noise instead")
    if best.reached > assumptions.delta:
        raise UnsafeExactly(
            f"refused: the rows' own uncertainty reaches delta {best.reached:.3g} at epsilon"
            f" {float(assumptions.epsilon):g}, {float(assumptions.delta):.3g} is wanted;"
            " ask with noise instead"
        )
    return best


def _changes(classes: Sequence[PublicClass]) -> set[Vector]:
    """Every change of the batch that one row can make; its class stays."""
    found: set[Vector] = set()
    for part in classes:
        for a, b in combinations(sorted(part.all), 2):
            found.add(_upright(_minus(b, a)))
    return found


def _minus(b: Vector, a: Vector) -> Vector:
    return tuple(x - y for x, y in zip(b, a, strict=True))


def _upright(v: Vector) -> Vector:
    """v or -v, the one whose first entry that is not 0 is positive."""
    first = next((x for x in v if x), 0)
    return v if first >= 0 else tuple(-x for x in v)


# --- which steps to count on --------------------------------------------------------------------


def _designs(classes: Sequence[PublicClass], changes: set[Vector]) -> Iterator[tuple[Vector, ...]]:
    """A few sets of steps worth trying, the fewest and shortest first."""
    able = _available(classes)
    if not able:
        return
    ranked = sorted(able, key=lambda u: (sum(map(abs, u)), u))
    basis: list[Vector] = []
    for u in ranked:  # every step that shorter ones do not make up already
        if len(basis) < MOST_KINDS and _combinations([u], basis) is None:
            basis.append(u)
    yield tuple(basis)
    for longest in sorted(changes & able, key=lambda u: -sum(map(abs, u)))[:3]:
        if longest not in basis and len(basis) < MOST_KINDS:
            yield (*basis, longest)
    if len(able) <= MOST_KINDS:
        yield tuple(ranked)


def _available(classes: Sequence[PublicClass]) -> set[Vector]:
    """Steps that some class offers whatever the other private values of its rows are."""
    found: set[Vector] = set()
    for part in classes:
        offers = []
        for cells in part.contexts:
            held = sorted(set(cells))
            offers.append({_upright(_minus(b, a)) for a, b in combinations(held, 2)})
        found |= set.intersection(*offers) if offers else set()
    return found


def _combinations(
    changes: Sequence[Vector] | set[Vector], steps: Sequence[Vector]
) -> dict[Vector, Combination] | None:
    """The shortest whole combination of the steps for each change; None if one has none."""
    if not steps:
        return None
    wanted = set(changes)
    bound = [max(abs(v[i]) for v in wanted) for i in range(len(next(iter(wanted))))]
    zero: Vector = (0,) * len(bound)
    found: dict[Vector, Combination] = {}
    seen = {zero: (0,) * len(steps)}
    edge = [zero]
    for _ in range(FARTHEST):
        following = []
        for place in edge:
            for k, u in enumerate(steps):
                for sign in (1, -1):
                    there = tuple(x + sign * y for x, y in zip(place, u, strict=True))
                    if there in seen or any(
                        abs(x) > 2 * b for x, b in zip(there, bound, strict=True)
                    ):
                        continue
                    c = seen[place]
                    seen[there] = (*c[:k], c[k] + sign, *c[k + 1 :])
                    following.append(there)
        found = {v: seen[v] for v in wanted if v in seen}
        if len(found) == len(wanted) or not following:
            break
        edge = following
    return found if len(found) == len(wanted) else None


# --- one set of steps ---------------------------------------------------------------------------


def _attempt(
    steps: tuple[Vector, ...],
    classes: Sequence[PublicClass],
    changes: set[Vector],
    assumptions: Assumptions,
) -> Certificate | str:
    made = _combinations(changes, steps)
    if made is None:
        return (
            "a row can change the answers in a way that no other row's uncertainty could"
            " (off the lattice, or alone in its class)"
        )
    failure = float(assumptions.delta * TAIL_SHARE) / (len(steps) * len(classes))
    coins = [0] * len(steps)
    for part in classes:
        shares = _allotted(steps, part)
        for k, share in enumerate(shares):
            # the target's own class has one row less; any class may be the target's
            coins[k] += fewest_coins(part.rows - 1, float(2 * share), failure)
    held = tuple(max(0, n - assumptions.known_rows) for n in coins)  # S1.8 (e)
    spent = failure * len(steps) * len(classes)
    shifts = {tuple(map(abs, c)) for c in made.values()}
    worst, reached = _worst(_maximal(shifts), held, float(assumptions.epsilon))
    factor = 1 + max(sum(shift) for shift in shifts)  # S1.12
    return Certificate(
        assumptions.epsilon, assumptions.delta, steps, held, worst, factor, reached + spent
    )


def _allotted(steps: Sequence[Vector], part: PublicClass) -> list[Fraction]:
    """For each step a chance m such that, in every context, disjoint pairs of values hold it.

    Each value's chance is split evenly over the steps that can use it, so no chance is used twice.
    """
    shares: list[Fraction] | None = None
    for cells in part.contexts:
        here = _in_context(steps, cells, part.chances)
        shares = here if shares is None else [min(a, b) for a, b in zip(shares, here, strict=True)]
    return shares or [Fraction(0)] * len(steps)


def _in_context(
    steps: Sequence[Vector], cells: Sequence[Vector], chances: Sequence[Fraction]
) -> list[Fraction]:
    weight: dict[Vector, Fraction] = {}
    for cell, chance in zip(cells, chances, strict=True):
        weight[cell] = weight.get(cell, Fraction(0)) + chance
    users = {
        cell: [
            k for k, u in enumerate(steps) if _plus(cell, u) in weight or _minus(cell, u) in weight
        ]
        for cell in weight
    }
    found = []
    for k, u in enumerate(steps):
        left = {cell: w / len(users[cell]) for cell, w in weight.items() if k in users[cell]}
        total = Fraction(0)
        for cell in sorted(left, key=lambda c: _along(c, u)):
            other = _plus(cell, u)
            if other in left:
                taken = min(left[cell], left[other])
                left[cell] -= taken
                left[other] -= taken
                total += taken
        found.append(total)
    return found


def _plus(a: Vector, b: Vector) -> Vector:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _along(cell: Vector, u: Vector) -> int:
    return sum(x * y for x, y in zip(cell, u, strict=True))


def _maximal(shifts: set[Combination]) -> list[Combination]:
    """Shifts that no other exceeds in every kind: larger ones are harder to hide (TB.6)."""
    kept = [
        s
        for s in shifts
        if not any(t != s and all(a <= b for a, b in zip(s, t, strict=True)) for t in shifts)
    ]
    if len(kept) <= MOST_SHIFTS:
        return sorted(kept)
    return [tuple(max(column) for column in zip(*kept, strict=True))]


def _worst(
    shifts: Sequence[Combination], coins: Sequence[int], epsilon: float
) -> tuple[Combination, float]:
    reached = {
        shift: hockey_stick(list(zip(coins, shift, strict=True)), epsilon) for shift in shifts
    }
    worst = max(reached, key=lambda shift: reached[shift])
    return worst, reached[worst]
