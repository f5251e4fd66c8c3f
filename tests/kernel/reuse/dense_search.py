"""The search that builds every vector in full: slow, plain, and what the quick one must equal.

It looks at the same stored questions, writes each of their sums as a dense row over all pieces and
solves for the question asked among all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

import numpy as np

from sulq.kernel.noise.laws import NoNoise
from sulq.kernel.reuse import solve as exact
from sulq.kernel.reuse import store
from sulq.kernel.reuse.estimate import LinearEstimate, StoredDraws
from sulq.kernel.reuse.solve import MOST_SIZES, ROUNDING, Floats, Weights
from sulq.kernel.reuse.store import (
    MOST_NEAR,
    MOST_PIECES,
    MOST_SUMS,
    AnswerStore,
    Integers,
    Known,
    StoredDraw,
    features_of,
)
from sulq.kernel.reuse.symbolic import Grid, Marks, marks_of, pieces_of
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.program import Always, BoundChoice, Fixed, Integer, RowSums

sums_of, atoms_of, merged, variance = store._sums, store._atoms, store._merged, store._variance
_exactly, _shared, _least_squares = exact._exactly, exact._shared, exact._least_squares
_peeled, _eliminated = exact._peeled, exact._eliminated


def joined(marks: Iterable[Marks]) -> Marks:
    """The common refinement."""
    found: Marks = {}
    for each in marks:
        for key, own in each.items():
            found.setdefault(key, {}).update(own)
    return found


def dense(grid: Grid, program: RowSums) -> dict[Integer, Integers]:
    """Summand -> one vector over all pieces for each sum of the question."""
    cells, cell, terms = grid.coefficients(program)
    here = np.flatnonzero(cell >= 0)
    found: dict[Integer, Integers] = {}
    for place, parts in enumerate(terms):
        for atom, value in parts.items():
            if atom not in found:
                found[atom] = np.zeros((cells * len(terms), grid.cells), dtype=np.int64)
            found[atom][cell[here] * len(terms) + place, here] = value[here]
    return found


class DenseStore(AnswerStore):
    """An answer store with this search."""

    def _combined(
        self, bound: BoundQuery, program: RowSums, among: Collection[int] | None, most: int
    ) -> LinearEstimate | None:
        marks = marks_of(program)
        if pieces_of(marks) > MOST_PIECES or sums_of(program) > MOST_SUMS:
            return None
        self._wake(frozenset(store._COLUMN.findall(bound.text)))
        lines = None if among is None else self._lines_of(among)
        if self._tells_news(program, marks, lines):
            return None
        helpers, marks = self._near(program, marks, among, lines, most)
        grid = Grid(marks, self._is_public)
        asked = dense(grid, program)
        table = [(dense(grid, known.program), known, draws) for known, draws in helpers]
        atoms = list(dict.fromkeys([*asked, *(atom for rows, _, _ in table for atom in rows)]))
        if len(atoms) * grid.cells > 4 * MOST_PIECES:
            return None
        wanted = stacked(asked, atoms, sums_of(program), grid)
        rows, sources, variances = [], [], []
        for vectors, known, draws in table:
            block = stacked(vectors, atoms, len(draws[0].values), grid)
            for place, row in enumerate(block):
                noisy = not isinstance(draws[0].laws[place % len(known.lifts)], NoNoise)
                if noisy and row.any():
                    rows.append(row)
                    own = merged(draws, place, known.lifts)
                    sources.append(own)
                    variances.append(float(variance(own)))
        matrix = np.array(rows, dtype=np.int64).reshape(len(rows), len(atoms), grid.cells)
        open_ = [self._sizes_public and grid.is_public(atom) for atom in atoms]
        solved = dense_solve(
            apart(matrix, open_, grid), apart(wanted, open_, grid), np.array(variances)
        )
        if any(each is None for each in solved):
            return None
        weights = [each for each in solved if each is not None]
        return dense_derivation(bound, weights, sources, matrix, wanted, atoms, open_, grid)

    def _near(
        self,
        program: RowSums,
        marks: Marks,
        among: Collection[int] | None,
        lines: Integers | None,
        most: int,
    ) -> tuple[list[tuple[Known, list[StoredDraw]]], Marks]:
        """Stored questions near the one asked, as many as can be told apart together."""
        features = features_of(marks, atoms_of(program))
        near = self._questions(self._index.nearest(features, lines, max(MOST_NEAR, most), most))
        # what tells little apart first: one wide question must not crowd the narrow ones out
        own = marks
        near.sort(key=lambda it: (it.program != program, pieces_of(joined([own, it.marks]))))
        chosen: list[tuple[Known, list[StoredDraw]]] = []
        sums = -sums_of(program)  # a draw of the question itself always has room
        for known in near:
            draws = self._allowed(known.digest, among)
            wider = joined([marks, known.marks])
            count = sums_of(known.program)
            if draws and sums + count <= MOST_SUMS and pieces_of(wider) <= MOST_PIECES:
                chosen.append((known, draws))
                marks, sums = wider, sums + count
        return chosen, marks


def dense_solve(rows: Integers, wanted: Integers, variances: Floats) -> list[Weights | None]:
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


def dense_derivation(
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
