"""The best linear unbiased estimate of a sum from measured ones: w = c A, least c' V c.

Whether w is a combination of rows is decided exactly: weights found in floating point are turned
into fractions and checked on every piece in integers. Only what passes is ever derived. Where more
rows than needed are measured, least squares shares the weight by precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sulq.kernel.reuse.estimate import LinearEstimate, StoredDraws
from sulq.kernel.reuse.symbolic import Grid, PieceSums
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
    """For each wanted vector its weights, or None if it is no combination of the rows.

    Least squares share the weights where all of them are combinations.
    """
    forced, kept, rest = _peeled(rows.astype(np.float64), wanted.astype(np.float64))
    places, able, basic = _eliminated(rows[kept].astype(np.float64), rest)
    basic_all = forced.copy()
    basic_all[:, kept] = basic
    exact = [
        _exactly(rows, target, weights) if can else None
        for target, weights, can in zip(wanted, basic_all, able, strict=True)
    ]
    if not 0 < len(places) < len(kept) or any(each is None for each in exact):
        return list(exact)
    matrix = rows[kept][:, places].astype(np.float64)
    better = forced
    better[:, kept] = _least_squares(matrix, rest[:, places], variances[kept])
    return [
        found and (_shared(rows, target, weights, variances, found) or found)
        for target, weights, found in zip(wanted, better, exact, strict=True)
    ]


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
        common = math.lcm(common, weight.denominator)
    used = [(i, int(weight * common)) for i, weight in found.items()]
    largest = int(np.abs(rows[[i for i, _ in used]]).max(initial=0))
    most = common * int(np.abs(target).max(initial=0)) + largest * sum(abs(w) for _, w in used)
    kind = np.int64 if most < SAFE else object
    total = target.astype(kind) * -common
    for i, times in used:
        total = total + rows[i].astype(kind) * times
    return Weights(found, True) if not total.any() else None


def _least_squares(matrix: Floats, wanted: Floats, variances: Floats) -> Floats:
    """c = V^-1 A (A' V^-1 A)^-1 w, by QR of V^-1/2 A, for each block of rows that share pieces."""
    root = np.sqrt(variances)
    found = np.zeros((len(wanted), len(matrix)))
    for rows, pieces in _blocks(matrix != 0):
        q, r = np.linalg.qr(matrix[np.ix_(rows, pieces)] / root[rows, None])
        try:
            inner = np.linalg.solve(r.T, wanted[:, pieces].T)
        except np.linalg.LinAlgError:
            return np.full((len(wanted), len(matrix)), np.nan)
        found[:, rows] = ((q @ inner) / root[rows, None]).T
    return found


def _blocks(told: NDArray[np.bool_]) -> Iterator[tuple[Integers, Integers]]:
    """Rows and columns that are connected by what is told: each block has the least of its rows
    as its name."""
    names = np.arange(len(told))
    while True:
        across = np.where(told, names[:, None], len(told)).min(axis=0)
        again = np.where(told, across, len(told)).min(axis=1, initial=len(told))
        if (again == names).all():
            break
        names = again
    for name in np.unique(names[told.any(axis=1)]):
        yield np.flatnonzero(names == name), np.flatnonzero(across == name)


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


# Vectors of many questions by their entries that are not 0, and which rows may have a weight.


MOST_SIZES = 64
"""Public sums that a derivation may need from the engine."""
ROUNDING = 1e-9
"""Of a factor of a public sum, where weights are not fractions."""
LARGEST_SCALE = 2.0**42
"""Of wanted coefficients whose remainders floats tell from 0."""
MOST_WORK = 2**23
"""Products of the elimination that one search may take: rows x rows x different pieces."""
GOLDEN = (5**0.5 - 1) / 2


class Entries(NamedTuple):
    """Sparse integer vectors: row, column (summand and piece) and value of each entry."""

    rows: Integers
    columns: Integers
    values: Integers

    def of(self, kept: NDArray[np.bool_]) -> Entries:
        return Entries(self.rows[kept], self.columns[kept], self.values[kept])


def entries_of(
    listed: Sequence[PieceSums],
    atoms: Sequence[Integer],
    public: Sequence[bool],
    grid: Grid,
    *,
    first_pieces: bool = False,
) -> Entries:
    """The vectors of some questions, one row for each sum, in this order.

    Within a public piece a public summand's constant drops out of differences (G.2.1);
    `first_pieces`: only what is left out so.
    """
    place = {atom: number for number, atom in enumerate(atoms)}
    rows, columns, values = [], [], []
    first = 0
    for cells, cell, terms in listed:
        for number, parts in enumerate(terms):
            row = first + cell * len(terms) + number
            for atom, value in parts.items():
                at = place[atom]
                for own, here, entry in _split(row, value, grid, public[at], first_pieces):
                    rows.append(own)
                    columns.append(here + at * grid.cells)
                    values.append(entry)
        first += cells * len(terms)
    none = np.zeros(0, dtype=np.int64)
    return Entries(*(np.concatenate([none, *parts]) for parts in (rows, columns, values)))


Blocks = list[tuple[Integers, Integers, Integers]]


def _split(row: Integers, value: Integers, grid: Grid, public: bool, first: bool) -> Blocks:
    inner = grid.cells // grid.public_cells
    if first and not public:
        return []
    if public and not first and value[::inner].any():
        return _differences(row, value, grid)
    here = np.flatnonzero(value)
    if first:
        here = here[here % inner == 0]
    return [(row[here], here, value[here])]


def _differences(row: Integers, value: Integers, grid: Grid) -> Blocks:
    """Every piece less the first one of its public piece, which may belong to another row."""
    shape = (grid.public_cells, grid.cells // grid.public_cells)
    row, value = row.reshape(shape), value.reshape(shape)
    same = row == row[:, :1]
    own = np.where(same, value - value[:, :1], value).ravel()
    base = np.where(same, 0, -value[:, :1]).ravel()
    first = np.broadcast_to(row[:, :1], shape).ravel()
    here, there = np.flatnonzero(own), np.flatnonzero(base)
    here = here[here % shape[1] != 0]
    return [(row.ravel()[here], here, own[here]), (first[there], there, base[there])]


def _added(entries: Entries, weights: Floats, columns: int) -> Floats:
    """The sum of the rows times their weights."""
    found: Floats = np.zeros(columns)
    if len(entries.rows):
        found += np.bincount(entries.columns, weights[entries.rows] * entries.values, columns)
    return found


def able_rows(rows: Entries, wanted: Entries, columns: int) -> Integers | None:
    """The rows that may have a weight; None if some wanted vector is no combination of the rows.

    One mixture of all wanted vectors is looked at, which is a combination if each of them is. On a
    piece where only one row is not 0 its weight is forced; where no row is left, nothing may be.
    Rows that share no piece with what is then left have weight 0.
    """
    count = int(wanted.rows.max(initial=0)) + 1
    mixture: Floats = 1.0 + np.arange(1, count + 1, dtype=np.float64) * GOLDEN % 1.0
    rest = _added(wanted, mixture, columns)
    scale = max(1.0, float(np.abs(rest).max(initial=0.0)))
    if scale > LARGEST_SCALE:
        return np.unique(rows.rows)
    none, zero = 1e-6 * scale, 1e-13 * scale
    weights = np.zeros(int(rows.rows.max(initial=-1)) + 1)
    left = rows
    while True:
        times = np.bincount(left.columns, minlength=columns)
        if (np.abs(rest[times == 0]) > none).any():
            return None
        alone = left.of(times[left.columns] == 1)
        if not len(alone.rows):
            break
        owed = rest[alone.columns]
        weights[alone.rows] = np.where(np.abs(owed) > zero, owed / alone.values, 0.0)
        if (np.abs(owed - weights[alone.rows] * alone.values) > none).any():
            return None  # two pieces force two weights
        peeled = np.zeros(len(weights), dtype=np.bool_)
        peeled[alone.rows] = True
        taken = peeled[left.rows]
        told = left.of(taken)
        rest -= _added(told, weights, columns)
        rest[alone.columns] = 0.0
        left = left.of(~taken)
    found = weights != 0
    found[_reached(left, np.abs(rest) > zero)] = True
    return np.flatnonzero(found)


def _reached(left: Entries, open_: NDArray[np.bool_]) -> Integers:
    """The rows that are connected to these pieces."""
    reached = np.zeros(int(left.rows.max(initial=-1)) + 1, dtype=np.bool_)
    pieces = open_.copy()
    while True:
        before = int(np.count_nonzero(reached))
        reached[left.rows[pieces[left.columns]]] = True
        if np.count_nonzero(reached) == before:
            return np.flatnonzero(reached)
        pieces[left.columns[reached[left.rows]]] = True


def combination(
    rows: Entries, wanted: Entries, count: int, chosen: Integers, variances: Floats
) -> list[Weights] | None:
    """The weights of the chosen rows for each of `count` wanted vectors; None if one of them is no
    combination, or if it takes more work than one search may."""
    place = np.full(int(max(rows.rows.max(initial=-1), chosen.max(initial=-1))) + 1, -1)
    place[chosen] = np.arange(len(chosen))
    own = rows.of(place[rows.rows] >= 0)
    own = own._replace(rows=place[own.rows])
    below = wanted._replace(rows=wanted.rows + len(chosen))
    both = Entries(*(np.concatenate(parts) for parts in zip(own, below, strict=True)))
    pieces = _different(both, len(chosen) + count)
    if len(chosen) ** 2 * len(pieces) > MOST_WORK:
        return None
    at = np.full(int(both.columns.max(initial=-1)) + 1, -1)
    at[pieces] = np.arange(len(pieces))
    few = both.of(at[both.columns] >= 0)
    table = np.zeros((len(chosen) + count, len(pieces)), dtype=np.int64)
    table[few.rows, at[few.columns]] = few.values
    solved = solve(table[: len(chosen)], table[len(chosen) :], variances)
    found = [each for each in solved if each is not None]
    if len(found) < len(solved) or not all(
        _holds(each, own, wanted.of(wanted.rows == number)) for number, each in enumerate(found)
    ):
        return None
    return [
        Weights({int(chosen[row]): weight for row, weight in each.weights.items()}, each.exact)
        for each in found
    ]


def _different(entries: Entries, rows: int) -> Integers:
    """One piece of all those on which every row has the same hash."""
    keys = np.arange(1, rows + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    hashed = np.zeros(int(entries.columns.max(initial=-1)) + 1, dtype=np.uint64)
    np.add.at(hashed, entries.columns, keys[entries.rows] * entries.values.view(np.uint64))
    told = np.unique(entries.columns)
    _, first = np.unique(hashed[told], return_index=True)
    return told[np.sort(first)]


def _holds(found: Weights, rows: Entries, wanted: Entries) -> bool:
    """Whether the weights give the wanted vector on every piece: integers, or nearly."""
    used = rows.of(np.isin(rows.rows, list(found.weights)))
    columns = max(int(part.columns.max(initial=-1)) for part in (used, wanted)) + 1
    if not found.exact:
        weights = np.zeros(int(used.rows.max(initial=-1)) + 1)
        for row, weight in found.weights.items():
            weights[row] = weight
        off = _added(used, weights, columns)
        off[wanted.columns] -= wanted.values
        most = max(1.0, float(np.abs(wanted.values).max(initial=0)))
        return bool(np.abs(off).max(initial=0.0) <= TOLERANCE * most)
    common = math.lcm(*(weight.denominator for weight in found.weights.values()))
    times = {row: int(weight * common) for row, weight in found.weights.items()}
    largest = max((int(np.abs(part.values).max(initial=0)) for part in (used, wanted)), default=0)
    kind = np.int64 if largest * (common + sum(map(abs, times.values()))) < SAFE else object
    factors = np.zeros(int(used.rows.max(initial=-1)) + 1, dtype=kind)
    for row, factor in times.items():
        factors[row] = factor
    total = np.zeros(columns, dtype=kind)
    np.add.at(total, used.columns, factors[used.rows] * used.values.astype(kind))
    np.subtract.at(total, wanted.columns, common * wanted.values.astype(kind))
    return not total.any()


def derivation_of(
    bound: BoundQuery,
    weights: Sequence[Weights],
    sources: Mapping[int, Sequence[StoredDraws]],
    constants: Sequence[Mapping[tuple[int, int], Fraction]],
    atoms: Sequence[Integer],
    grid: Grid,
) -> LinearEstimate | None:
    """Weights of noisy integers, and of public sums, by summand and public piece, for the rest."""
    estimates: list[list[StoredDraws]] = []
    factors: list[dict[int, Fraction]] = []
    needed: dict[tuple[int, int], int] = {}
    for number, (found, own) in enumerate(zip(weights, constants, strict=True)):
        lift = bound.terms[number % len(bound.terms)].lift
        estimates.append(
            [
                source._replace(weight=source.weight * weight * lift)
                for row, weight in found.weights.items()
                for source in sources[row]
            ]
        )
        factors.append(
            {needed.setdefault(at, len(needed)): factor * lift for at, factor in own.items()}
        )
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
    return LinearEstimate(bound, estimates, factors, program, every)


def constants_of(
    found: Weights, rows: Entries, wanted: Entries, grid: Grid
) -> dict[tuple[int, int], Fraction]:
    """The factors of public sums: what the weights leave on the first piece of every public one.

    `rows` and `wanted` are the vectors of public summands there, as they are.
    """
    inner = grid.cells // grid.public_cells
    own: dict[int, tuple[list[tuple[Fraction, int]], int]] = {}
    largest: dict[int, float] = {}
    for row, column, value in zip(*(part.tolist() for part in rows), strict=True):
        if row in found.weights:
            parts, goal = own.get(column, ([], 0))
            own[column] = [*parts, (found.weights[row], value)], goal
            largest[column // grid.cells] = max(largest.get(column // grid.cells, 1.0), abs(value))
    for column, value in zip(wanted.columns.tolist(), wanted.values.tolist(), strict=True):
        parts, goal = own.get(column, ([], 0))
        own[column] = parts, goal + value
    left: dict[tuple[int, int], Fraction] = {}
    for column in sorted(own):
        parts, goal = own[column]
        about = goal - sum(float(weight) * value for weight, value in parts)
        if abs(about) > ROUNDING * largest.get(column // grid.cells, 1.0):
            rest = goal - sum((weight * value for weight, value in parts), Fraction(0))
            left[column // grid.cells, column % grid.cells // inner] = rest
    return left
