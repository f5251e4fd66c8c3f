"""The best linear unbiased estimate of a sum from measured ones: w = c A, least c' V c.

Whether w is a combination of rows is decided exactly: weights found in floating point are turned
into fractions and checked on every piece in integers. Only what passes is ever derived. Where more
rows than needed are measured, least squares shares the weight by precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sulq.kernel.reuse.estimate import LinearEstimate, StoredDraws
from sulq.kernel.reuse.symbolic import Grid
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.program import Always, BoundChoice, Fixed, Integer, RowSums

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

TOLERANCE = 1e-9
LARGEST_DENOMINATOR = 10**6
NEGLIGIBLE = 1e-11
SAFE = 2**62
"""Below it integers of 64 bits do not overflow."""


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Rows and their weights; `exact` if they are fractions that give w on every piece."""

    weights: dict[int, Fraction]
    exact: bool


def solve(rows: Integers, wanted: Integers, variances: Floats) -> list[Weights | None]:
    """For each wanted vector its weights, or None if it is no combination of the rows."""
    rows, wanted = _distinct(rows, wanted)
    forced, kept, rest = _peeled(rows.astype(np.float64), wanted.astype(np.float64))
    places, able, basic = _eliminated(rows[kept].astype(np.float64), rest)
    basic_all = forced
    basic_all[:, kept] = basic
    better = None
    if len(places) < len(kept) and len(places):
        matrix = rows[kept][:, places].astype(np.float64)
        better = forced.copy()
        better[:, kept] = _least_squares(matrix, rest[:, places], variances[kept])
    found: list[Weights | None] = []
    for number, target in enumerate(wanted):
        exact = _exactly(rows, target, basic_all[number]) if able[number] else None
        shared = None
        if exact is not None and better is not None:
            shared = _shared(rows, target, better[number], variances, exact)
        found.append(shared or exact)
    return found


def _distinct(rows: Integers, wanted: Integers) -> tuple[Integers, Integers]:
    """Pieces on which all vectors agree, once."""
    stacked = np.concatenate([rows, wanted])
    keys = np.arange(1, len(stacked) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    hashed = keys.view(np.int64) @ stacked  # modulo 2^64
    _, first, inverse = np.unique(hashed, return_index=True, return_inverse=True)
    if not np.array_equal(stacked[:, first][:, inverse], stacked):
        return rows, wanted  # two different pieces with one hash
    zero = ~stacked[:, first].any(axis=0)
    return rows[:, first[~zero]], wanted[:, first[~zero]]


def _peeled(rows: Floats, wanted: Floats) -> tuple[Floats, Integers, Floats]:
    """Weights that are forced: on some piece only one row is not 0. Then the rows left over."""
    forced = np.zeros((len(wanted), len(rows)))
    left = np.ones(len(rows), dtype=np.bool_)
    rest = wanted.copy()
    used = rows != 0
    while left.any():
        alone = np.flatnonzero(used[left].sum(axis=0) == 1)
        if not len(alone):
            break
        live = np.flatnonzero(left)
        owners = live[np.argmax(used[np.ix_(live, alone)], axis=0)]
        peeled, first = np.unique(owners, return_index=True)
        pieces = alone[first]
        forced[:, peeled] = rest[:, pieces] / rows[peeled, pieces]
        rest = rest - forced[:, peeled] @ rows[peeled]
        left[peeled] = False
    return forced, np.flatnonzero(left), rest


def _eliminated(rows: Floats, wanted: Floats) -> tuple[list[int], NDArray[np.bool_], Floats]:
    """Pieces that tell independent rows apart; which targets have weights; those of a basis."""
    count = len(rows)
    scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    work = np.concatenate([rows, wanted]).T.copy()  # pieces down; rows, then wanted across
    basis: list[int] = []
    places: list[int] = []
    free = np.ones(len(work), dtype=np.bool_)
    for column in range(count):
        candidates = np.where(free, np.abs(work[:, column]), 0.0)
        pivot = int(np.argmax(candidates)) if len(work) else 0
        if not len(work) or candidates[pivot] <= TOLERANCE * max(1.0, np.abs(rows[column]).max()):
            continue
        work[pivot] /= work[pivot, column]
        factors = work[:, column].copy()
        factors[pivot] = 0.0
        touched = np.flatnonzero(factors)
        work[touched, column:] -= np.outer(factors[touched], work[pivot, column:])
        free[pivot] = False
        basis.append(column)
        places.append(pivot)
    left = np.abs(work[free][:, count:]).max(axis=0, initial=0.0)
    weights = np.zeros((len(wanted), count))
    if basis:
        weights[:, basis] = work[places, count:].T
    return places, left <= TOLERANCE * scale * 1e3, weights


def _exactly(rows: Integers, target: Integers, weights: Floats) -> Weights | None:
    """The weights as fractions, if they give the target on every piece."""
    found = {
        int(i): Fraction(float(weights[i])).limit_denominator(LARGEST_DENOMINATOR)
        for i in np.flatnonzero(np.abs(weights) > TOLERANCE)
    }
    found = {i: weight for i, weight in found.items() if weight}
    common = 1
    for weight in found.values():
        common = common * weight.denominator // _gcd(common, weight.denominator)
    used = [(i, int(weight * common)) for i, weight in found.items()]
    largest = int(np.abs(rows[[i for i, _ in used]]).max(initial=0))
    most = common * int(np.abs(target).max(initial=0)) + largest * sum(abs(w) for _, w in used)
    kind = np.int64 if most < SAFE else object
    total = target.astype(kind) * -common
    for i, times in used:
        total = total + rows[i].astype(kind) * times
    return Weights(found, True) if not total.any() else None


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def _least_squares(matrix: Floats, wanted: Floats, variances: Floats) -> Floats:
    """c = V^-1 A (A' V^-1 A)^-1 w, by QR of V^-1/2 A."""
    root = np.sqrt(variances)
    q, r = np.linalg.qr(matrix / root[:, None])
    try:
        inner = np.linalg.solve(r.T, wanted.T)
    except np.linalg.LinAlgError:
        return np.full((len(wanted), len(matrix)), np.nan)
    found: Floats = ((q @ inner) / root[:, None]).T
    return found


def _shared(
    rows: Integers, target: Integers, weights: Floats, variances: Floats, exact: Weights
) -> Weights | None:
    """The least-squares weights, where they are sound and their variance is truly smaller."""
    if not np.isfinite(weights).all():
        return None
    spreads = np.abs(weights) * np.sqrt(variances)
    weights = np.where(spreads > NEGLIGIBLE * spreads.max(initial=0.0), weights, 0.0)
    off = np.abs(weights @ rows - target).max(initial=0.0)
    if off > TOLERANCE * max(1.0, float(np.abs(target).max(initial=0))):
        return None
    plain = sum(float(w) ** 2 * float(variances[i]) for i, w in exact.weights.items())
    if float((weights**2) @ variances) >= plain * (1 - TOLERANCE):
        return None
    return Weights({int(i): Fraction(float(weights[i])) for i in np.flatnonzero(weights)}, False)


# Vectors of many questions side by side, and weights of their rows as a derivation.


MOST_SIZES = 64
"""Public sums that a derivation may need from the engine."""
ROUNDING = 1e-9
"""Of a factor of a public sum, where weights are not fractions."""


def stacked(
    vectors: dict[Integer, Integers], atoms: Sequence[Integer], sums: int, grid: Grid
) -> Integers:
    """(sums, summands, pieces)"""
    zero = np.zeros((sums, grid.cells), dtype=np.int64)
    return np.stack([vectors.get(atom, zero) for atom in atoms], axis=1)


def apart(table: Integers, public: Sequence[bool], grid: Grid) -> Integers:
    """Within a public piece a public summand's constant drops out of differences. G.2.1"""
    inner = grid.cells // grid.public_cells
    split = table.reshape(len(table), len(public), grid.public_cells, inner)
    parts = []
    for place, known in enumerate(public):
        part = split[:, place]
        part = part[:, :, 1:] - part[:, :, :1] if known else part
        parts.append(part.reshape(len(table), part.shape[1] * part.shape[2]))
    return np.concatenate(parts, axis=1)


def derivation_of(
    bound: BoundQuery,
    weights: Sequence[Weights],
    sources: Sequence[Sequence[StoredDraws]],
    matrix: Integers,
    wanted: Integers,
    atoms: Sequence[Integer],
    public: Sequence[bool],
    grid: Grid,
) -> LinearEstimate | None:
    """Weights of noisy integers, and of public sums for what is left."""
    estimates: list[list[StoredDraws]] = []
    constants: list[dict[int, Fraction]] = []
    needed: dict[tuple[int, int], int] = {}
    origin = grid.cells // grid.public_cells
    for number, found in enumerate(weights):
        lift = bound.terms[number % len(bound.terms)].lift
        estimates.append(
            [
                source._replace(weight=source.weight * weight * lift)
                for row, weight in found.weights.items()
                for source in sources[row]
            ]
        )
        own: dict[int, Fraction] = {}
        rows = list(found.weights)
        shares = np.array([float(weight) for weight in found.weights.values()])
        for place in (place for place, known in enumerate(public) if known):
            lines = matrix[rows, place, ::origin]
            left = wanted[number, place, ::origin] - shares @ lines
            largest = max(1.0, float(np.abs(lines).max(initial=0)))
            for cell in np.flatnonzero(np.abs(left) > ROUNDING * largest).tolist():
                exact = Fraction(int(wanted[number, place, cell * origin])) - sum(
                    (
                        w * int(matrix[row, place, cell * origin])
                        for row, w in found.weights.items()
                    ),
                    Fraction(0),
                )
                own[needed.setdefault((place, cell), len(needed))] = exact * lift
        constants.append(own)
    if len(needed) > MOST_SIZES:
        return None
    terms: list[Integer] = []
    for place, cell in needed:
        atom = atoms[place]
        terms.append(
            BoundChoice(grid.public_condition(cell), atom, Fixed(0)) if grid.outer else atom
        )
    program = RowSums(Always(), tuple(terms)) if terms else None
    every = all(found.exact for found in weights)
    return LinearEstimate(bound, estimates, constants, program, every)
