"""Vectors of many questions side by side, and weights of their rows as a derivation."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sulq.derivation.estimates import Derivation, Source
from sulq.derivation.solving import Integers, Weights
from sulq.derivation.vectors import Grid
from sulq.schema.binding import BoundQuery
from sulq.schema.bound import Always, Chosen, Fixed, Integer, RowSums

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
    sources: Sequence[Sequence[Source]],
    matrix: Integers,
    wanted: Integers,
    atoms: Sequence[Integer],
    public: Sequence[bool],
    grid: Grid,
) -> Derivation | None:
    """Weights of noisy integers, and of public sums for what is left."""
    estimates: list[list[Source]] = []
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
        terms.append(Chosen(grid.public_condition(cell), atom, Fixed(0)) if grid.outer else atom)
    program = RowSums(Always(), tuple(terms)) if terms else None
    every = all(found.exact for found in weights)
    return Derivation(bound, estimates, constants, program, every)
