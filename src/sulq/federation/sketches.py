"""Sums of products across two databases, from sums under shared public signs. V.1

U = sum s_i x_i + noise with one owner, V = sum s_i y_i + noise with the other: E[UV] = <x, y>. The
signs are a hash of a public, immutable row id, so a row's sign is known to all and its sensitivity
is what it was. Proof: docs/proofs/federation.md, section 2.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sulq.errors import InvalidQuery
from sulq.kernel.query.expressions import Expression, col, hashed, lit, when
from sulq.kernel.query.sum_query import SumQuery
from sulq.kernel.schema.bind_rows import coefficients_of
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.kernel.schema.program import PRIME

Array = NDArray[np.float64]
CHUNK = 240
"""Sums asked at once: what an engine plans comfortably."""
MOST_SKETCHES = 512
FEWEST_SKETCHES = 16


def coordinates(schema: Schema, name: str) -> list[Expression]:
    """A column as `columns` scales it, about the public middle; where it is missing, 0."""
    column = schema[name]
    match column:
        case Number():
            low, high = column.range
            return [(col(name) - low) / (high - low) - Fraction(1, 2)]
        case Flag():
            half = Fraction(1, 2)
            no = when(~col(name)).then(-half).otherwise(0)
            return [when(col(name)).then(half).otherwise(no)]
        case Category(values=None):
            raise InvalidQuery(f"{name} is {column.opened}, which has no coordinates")
        case Category(values=values):
            declared: list[Any] = list(values or ())
            share = Fraction(1, len(declared))
            rest = when(col(name).isin(declared)).then(-share).otherwise(0)
            return [when(col(name) == value).then(1 - share).otherwise(rest) for value in declared]
    raise InvalidQuery(f"{name} has no coordinates")


def middles(schema: Schema, name: str) -> list[Fraction]:
    """What `coordinates` took off."""
    column = schema[name]
    if isinstance(column, Category):
        count = len(column.values or ())
        return [Fraction(1, count)] * count
    return [Fraction(1, 2)]


def bit_total(rows: int, seed: int) -> int:
    """The sum of `hashed` over the ids 0, 1, ... rows - 1."""
    ids = np.arange(rows, dtype=np.int64) % PRIME
    found = np.zeros(rows, dtype=np.int64)
    for coefficient in coefficients_of(seed):
        found = (found * ids + coefficient) % PRIME  # below 2^62
    return int((found % 2).sum())


def sketch_questions(parts: list[Expression], row: str, seeds: range) -> list[tuple[SumQuery, int]]:
    """Every coordinate under every seed's signs, in questions of bounded size; and their sums."""
    each = max(1, CHUNK // len(parts))
    found = []
    for start in range(seeds.start, seeds.stop, each):
        taken = range(start, min(start + each, seeds.stop))
        terms = tuple((lit(2) * hashed(row, seed) - 1) * part for seed in taken for part in parts)
        found.append((SumQuery(terms), len(terms)))
    return found


def best_count(rows: int, noise: float, width: int) -> int:
    """How many sign vectors: t* = sqrt(A B + <x, y>^2) / c, for rows spread evenly over their
    bounds, A = B = rows / 12; flat about its best, and never more than engines take. V.1

    `noise` is c: the variance of one sum had all the credits gone to it, times the coordinates.
    """
    if noise <= 0:
        return FEWEST_SKETCHES
    wanted = math.ceil(rows / 12 / noise)
    return max(FEWEST_SKETCHES, min(wanted, MOST_SKETCHES, MOST_SKETCHES * 8 // width))


def products(left: Array, right: Array) -> Array:
    """<x, y> for every pair of coordinates: the mean over the seeds of U V."""
    return left.T @ right / len(left)


def product_errors(
    found: Array, left_squares: Array, right_squares: Array, noise: tuple[float, float], count: int
) -> Array:
    """Var(UV) <= (|x|^2 + R)(|y|^2 + R) + <x, y>^2, over the seeds. V.1"""
    a = np.maximum(left_squares, 0.0)[:, None] + noise[0]
    b = np.maximum(right_squares, 0.0)[None, :] + noise[1]
    squared = (a * b + found**2) / count
    errors: Array = np.sqrt(squared)
    return errors
