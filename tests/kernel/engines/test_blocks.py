"""Every random vector gives the reference's integers, bit for bit, on awkward tables."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.kernel.engines import tables, vector_reference
from tests.kernel.query.random_vectors import VectorMaker

from sulq.kernel.engines import blocks as blocks_file
from sulq.kernel.engines import open_engine
from sulq.kernel.engines.blocks import OuterSums, Totals, _root_down, _shrunk
from sulq.kernel.query.expressions import col
from sulq.kernel.query.sum_query import outer
from sulq.kernel.query.vectors import bins, columns, concat, norm, one_hot, ones, scaled
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.program import Always
from sulq.kernel.schema.vector_program import BlockSums, BoundConstant, leaves_of

NAMES = ("x", "y", "n", "d", "small", "city", "code", "smoker", "bit")


def programs(seed: int, count: int) -> list[BlockSums]:
    rng = random.Random(seed)
    maker = VectorMaker(tables.SCHEMA, rng, NAMES)
    found = []
    for number in range(count):
        left = maker.vector()
        right = left if number % 4 == 0 else maker.vector()
        rows = maker.condition() if rng.random() < 0.3 else None
        bound = bind(outer(left, right, rows), tables.SCHEMA)
        assert isinstance(bound.sums, BlockSums)
        found.append(bound.sums)
    return found


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))]
)
def test_random_vectors_equal_the_reference(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:  # many slices, and one-hot sides counted instead of multiplied
        monkeypatch.setattr(blocks_file, "SLICE", 8)
        monkeypatch.setattr(blocks_file, "FEWEST_ROWS", 7)
        monkeypatch.setattr(blocks_file, "FEW_CELLS", 1)
    content = tables.rows(seed, 40)
    source = (
        tables.parquet(content, tmp_path / "awkward.parquet") if seed % 3 else tables.table(content)
    )
    engine = open_engine(source, tables.SCHEMA, threads=1)
    telling = 0
    for program in programs(seed, 60):
        expected = vector_reference.outer_sums(program, content)
        assert engine.exact_sums(program) == expected, program
        telling += any(expected)
    assert telling > 45  # most programs must be able to fail
    engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_thousands_of_random_vectors_equal_the_reference(seed: int) -> None:
    content = tables.rows(seed, 60)
    engine = open_engine(tables.table(content), tables.SCHEMA, threads=2)
    for program in programs(seed, 150):
        assert engine.exact_sums(program) == vector_reference.outer_sums(program, content)
    engine.close()


@pytest.mark.slow
def test_row_order_and_threads_change_nothing() -> None:
    content = tables.rows(7, 3_000)
    shuffled = random.Random(1).sample(content, len(content))
    engines = [
        open_engine(tables.table(rows), tables.SCHEMA, threads=threads)
        for rows, threads in ((content, 1), (content, 2), (shuffled, 2))
    ]
    for program in programs(3, 30):
        one, two, three = (engine.exact_sums(program) for engine in engines)
        assert one == two == three
    for engine in engines:
        engine.close()


def test_no_row_at_all_is_a_matrix_of_zeros() -> None:
    engine = open_engine(tables.table(tables.rows(1, 5)), tables.SCHEMA)
    v = columns(["x", "y"])
    program = bind(outer(v, v, (col("x") > 3) & (col("x") < 2)), tables.SCHEMA).sums
    assert engine.exact_sums(program) == [0, 0, 0, 0]
    engine.close()


def test_a_program_without_columns_counts_rows() -> None:
    engine = open_engine(tables.table(tables.rows(1, 5)), tables.SCHEMA)
    both = bind(outer(ones(), scaled(ones(), 3)), tables.SCHEMA)
    assert engine.exact_sums(both.sums) == [5]
    assert both.terms[0].step == 3
    engine.close()


# --- sums that pass 2^53 and 2^62 ---------------------------------------------------------------


def test_totals_stay_exact_beyond_binary64_and_beyond_64_bits() -> None:
    odd = 2**40 - 1
    program = BlockSums(
        Always(), BoundConstant((2**20 - 1,)), BoundConstant((2**20 + 1,)), (1, 1), odd
    )
    sums = OuterSums(program, {})
    assert sums.rows == 2**13  # 2^13 (2^40 - 1) is the last that fits 2^53
    block = [np.ones(2**20)]
    assert sums.of([block] * 40) == [odd * 40 * 2**20]  # above 2^65
    assert sums.of([block]) == [odd * 2**20]  # a second reading starts anew


def test_totals_flush_before_a_sum_can_pass_what_holds_it() -> None:
    totals = Totals.of(1, 2**40)
    for _ in range(5):
        totals.make_room(2**13)
        totals.near += float(2**53)
        assert totals.near[0] <= 2**53
    assert totals.result() == [5 * 2**53]


def test_every_slice_is_small_enough_for_exact_products() -> None:
    v = columns(["x", "y"])
    program = bind(outer(v, v), tables.SCHEMA).sums
    assert isinstance(program, BlockSums)
    place = dict.fromkeys(leaves_of(program.left), 0)
    sums = OuterSums(program, place)
    assert sums.rows * program.largest <= 2**53
    assert sums.rows == blocks_file.MOST_ROWS
    for bits in (42, 45, 52):  # products so large that fewer rows may be added at once
        assert OuterSums(replace(program, largest=2**bits), place).rows == 2 ** (53 - bits)


# --- integer roots and clips --------------------------------------------------------------------


def test_the_root_is_exact_where_floats_round() -> None:
    roots = np.array([1, 2, 3, 2**25, 2**26 - 1, 67_108_863, 47_453_132], np.float64)
    for offset in (-1, 0, 1):
        squares = roots * roots + offset
        squares = squares[(squares >= 0) & (squares < 2**52)]
        expected = [math.isqrt(int(s)) for s in squares]
        assert _root_down(squares).tolist() == expected


def test_the_clip_of_the_claims() -> None:
    """G.4 rule 2c: (3, 4, 12) at 10 becomes (2, 3, 9), of squared norm 94.

    (7, -7) at 8 is (5.6, -5.6) and becomes (5, -5): to the nearest it would leave the ball.
    """
    for vector, bound, clipped in (
        ([3, -4, 12], 10, [2, -3, 9]),
        ([7, -7], 8, [5, -5]),
        ([5, -5, 10], 10, [3, -3, 7]),
    ):
        assert _shrunk(np.array(vector, float)[:, None], float(bound))[:, 0].tolist() == clipped
        assert vector_reference.shrunk(vector, bound) == clipped
        assert sum(x * x for x in clipped) <= bound**2


def test_clipped_vectors_never_leave_the_ball() -> None:
    rng = np.random.default_rng(5)
    for bound in (1, 7, 1000, 2**18):
        rows = np.rint(rng.normal(size=(6, 2000)) * bound)
        squares = np.square(_shrunk(rows, float(bound))).sum(axis=0)
        assert squares.max() <= bound**2
        assert squares.max() > 0


# --- against plain NumPy ------------------------------------------------------------------------


def test_a_gram_matrix_is_the_one_of_the_rounded_columns() -> None:
    content = tables.rows(11, 500)
    engine = open_engine(tables.table(content), tables.SCHEMA)
    v = concat(scaled(ones(), 0.5), columns(["n", "smoker"], centre=0.5))
    bound = bind(outer(v, v), tables.SCHEMA)
    found = np.array(engine.exact_sums(bound.sums), float).reshape(3, 3) * float(
        bound.terms[0].step
    )
    n = np.array([np.nan if row["n"] is None else float(row["n"]) for row in content])
    n = np.where(np.isnan(n), 0.0, np.clip(n, 0, 120) / 120 - 0.5)
    smoker = np.array([{None: 0.0, True: 0.5, False: -0.5}[row["smoker"]] for row in content])
    x = np.stack([np.full(500, 0.5), n, smoker])
    assert np.abs(found - x @ x.T).max() < 500 / 2**18
    engine.close()


def test_bins_of_a_norm_and_of_a_column_hold_what_they_say() -> None:
    content = tables.rows(12, 400)
    engine = open_engine(tables.table(content), tables.SCHEMA)
    v = columns(["n"], centre=0.5)
    by_norm = bind(outer(ones(), bins(norm(v), [0, 0.25, 0.5])), tables.SCHEMA)
    n = np.array([np.nan if row["n"] is None else float(row["n"]) for row in content])
    away = np.nan_to_num(np.abs(np.clip(n, 0, 120) / 120 - 0.5))
    assert engine.exact_sums(by_norm.sums) == [int((away < 0.25).sum()), int((away >= 0.25).sum())]
    by_age = bind(outer(bins("n", [0, 60, 120], other=True), one_hot("smoker")), tables.SCHEMA)
    table = np.array(engine.exact_sums(by_age.sums)).reshape(3, 2)
    known = [row["smoker"] is not None for row in content]
    assert table.sum() == sum(known)
    assert table[1].sum() == sum(k and x >= 60 for k, x in zip(known, n, strict=True))
    engine.close()
