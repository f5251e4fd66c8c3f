"""Every random program gives the reference's integers, bit for bit, on awkward tables."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Literal

import duckdb
import pyarrow as pa
import pytest
from tests.kernel.engines import programs, reference, tables

import sulq.kernel.engines.duckdb.engine as engine_file
from sulq.errors import InvalidQuery
from sulq.kernel.engines import Engine, open_engine
from sulq.kernel.engines.sql.compile import statement
from sulq.kernel.engines.sql.leaves import ColumnSql, threshold
from sulq.kernel.schema import program as b
from sulq.kernel.schema.columns import Category, Number, Schema

X = b.Quantised("x", -100.0, 100.0, 8.0)
N = b.Quantised("n", 0.0, 120.0, 1.0)
OPERATORS: tuple[Literal["<", "<=", "=", "<>"], ...] = ("<", "<=", "=", "<>")


def compare(engine: Engine, content: list[reference.Row], seed: int, count: int) -> None:
    rng = random.Random(seed)
    telling = 0
    for _ in range(count):
        program = programs.program(rng, tables.FACTS)
        expected = reference.exact_sums(program, content)
        assert engine.exact_sums(program) == expected, program
        telling += any(expected)
    assert telling > 0.4 * count  # most programs must be able to fail


def opened(how: str, content: list[reference.Row], folder: Path) -> Engine:
    source = (
        tables.table(content)
        if how == "arrow"
        else tables.parquet(content, folder / "awkward.parquet")
    )
    return open_engine(source, tables.SCHEMA, threads=1)


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 10))]
)
def test_random_programs_equal_the_reference(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:  # the grouping for columns that hold too many values
        monkeypatch.setattr("sulq.kernel.engines.sql.engine.SPARE_KEYS", -(10**6))
    content = tables.rows(seed, 40)
    engine = opened("parquet" if seed % 3 else "arrow", content, tmp_path)
    compare(engine, content, seed, 200)
    engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_ten_thousand_random_programs_equal_the_reference(seed: int, tmp_path: Path) -> None:
    content = tables.rows(seed, 80)
    engine = opened("parquet", content, tmp_path)
    compare(engine, content, seed, 250)
    engine.close()


def test_row_order_and_threads_change_nothing(tmp_path: Path) -> None:
    content = tables.rows(7, 3_000)
    shuffled = random.Random(1).sample(content, len(content))
    engines = [
        open_engine(tables.table(rows), tables.SCHEMA, threads=threads)
        for rows, threads in ((content, 1), (content, 2), (shuffled, 2))
    ]
    rng = random.Random(3)
    for _ in range(60):
        program = programs.program(rng, tables.FACTS)
        one, two, three = (engine.exact_sums(program) for engine in engines)
        assert one == two == three
    for engine in engines:
        engine.close()


PLACES = {name: ColumnSql(f"c{i}", "real") for i, name in enumerate(("x", "y"))} | {
    "n": ColumnSql("c2", "whole"),
    "city": ColumnSql("c3", "text"),
    "smoker": ColumnSql("c4", "flag"),
}


def emitted(program: b.RowSums) -> str:
    return statement(program, PLACES, 1_000).sql


HOSTILE = "x'); DROP TABLE people; COPY people TO 'out'; --"


def test_only_select_is_ever_emitted() -> None:
    rng = random.Random(5)
    facts = programs.Facts(
        {"x": (-1.0, 1.0), "y": (0.0, 9.0), "n": (0.0, 9.0)},
        {"city": (HOSTILE, "a", "'", "\\'")},
        {"city": (1, 2)},
        ("smoker",),
        (0.0, 1.0),
    )
    for _ in range(300):
        found = duckdb.extract_statements(emitted(programs.program(rng, facts)))
        assert [part.type for part in found] == [duckdb.StatementType.SELECT]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda v: b.Lesser(v, b.Multiplied(N, N)),
        lambda v: b.Greater(b.Added((v, v)), N),
        lambda v: b.Divided(v, b.Added((b.Magnitude(v), b.Fixed(1)))),
        lambda v: b.HashedBit(v, (1, 2, 3, 4)),
    ],
)
def test_text_grows_linearly(wrap: Callable[[b.Integer], b.Integer]) -> None:
    def size(depth: int) -> int:
        value: b.Integer = b.Lesser(X, N)
        for _ in range(depth):
            value = b.Shifted(wrap(value), 3)
        return len(emitted(b.RowSums(b.Always(), (value,))))

    assert size(12) - size(8) < 1.3 * (size(8) - size(4))


def test_what_could_overflow_is_refused_before_it_runs() -> None:
    huge = b.BoundScaled(X, 2**53)
    with pytest.raises(InvalidQuery, match="2\\^62"):
        emitted(b.RowSums(b.Always(), (b.Added((huge, N)),)))
    with pytest.raises(InvalidQuery, match="divisor"):
        emitted(b.RowSums(b.Always(), (b.Added((b.Divided(X, N), b.FlagBit("smoker"))),)))


def test_a_filter_is_a_test_of_the_bare_column() -> None:
    """So zone maps and vectorised filters work; ties go up, so the cut lies half a step lower."""
    old = b.Compared("<=", b.Fixed(65), b.Quantised("x", 0.0, 120.0, 1.0))
    cut = "c0 >= CAST('64.5' AS DOUBLE) AND c0 <= CAST('inf' AS DOUBLE)"
    assert emitted(b.RowSums(old, (b.Fixed(1),))) == f"SELECT count(*) FROM people WHERE ({cut})"
    young = b.Compared("<", N, b.Fixed(18))
    expected = "SELECT count(*) FROM people WHERE c2 < CAST(18 AS BIGINT)"
    assert emitted(b.RowSums(young, (b.Fixed(1),))) == expected


def test_sums_past_sixty_four_bits_are_exact(tmp_path: Path) -> None:
    content = [dict(tables.rows(1, 1)[0], x=100.0) for _ in range(5_000)]
    engine = opened("parquet", content, tmp_path)
    big = b.BoundScaled(b.Multiplied(X, X), 2**42)
    program = b.RowSums(b.Always(), (b.Added((big, b.BoundScaled(X, 3))), X))
    expected = reference.exact_sums(program, content)
    assert expected[0] > 2**73
    assert engine.exact_sums(program) == expected
    engine.close()


def test_not_a_number_hides_in_no_statistics(tmp_path: Path) -> None:
    """Parquet leaves NaN out of its statistics; no filter may take them as proof (as with 100)."""
    content = [dict(tables.rows(1, 1)[0], x=x) for x in (1.0, 2.0, math.nan, 5.0, None)]
    engine = opened("parquet", content, tmp_path)
    x = b.Quantised("x", -100.0, 100.0, 1.0)
    tests: list[b.Condition] = [
        b.Compared("<", x, b.Fixed(50)),
        b.Compared("<=", b.Fixed(0), x),
        b.Compared("<>", x, b.Fixed(50)),
        b.Missing(x, negated=True),
        b.Missing(x, negated=False),
    ]
    count = [engine.exact_sums(b.RowSums(test, (b.Fixed(1),)))[0] for test in tests]
    assert count == [3, 3, 3, 3, 2]
    assert engine.exact_sums(b.RowSums(b.Always(), (x, b.FirstOf(x, b.Fixed(100))))) == [8, 208]
    engine.close()


def test_clipping_is_exact_at_every_edge(tmp_path: Path) -> None:
    """Rows on both sides of each threshold of each clip; the fast branch may take none of them."""
    rng = random.Random(2)
    leaf = b.Quantised("x", -100.0, 100.0, 7.3)
    clips = [sorted(rng.sample(range(-730, 730), 2)) for _ in range(40)]
    cuts = [threshold(leaf, edge + more) for clip in clips for edge in clip for more in (0, 1)]
    near = [y for cut in cuts for y in (cut, math.nextafter(cut, 999), math.nextafter(cut, -999))]
    base = tables.rows(1, 1)[0]
    content = [dict(base, x=x) for x in near]
    engine = opened("parquet", content, tmp_path)
    for low, high in clips:
        clipped = b.Greater(b.Lesser(leaf, b.Fixed(high)), b.Fixed(low))
        program = b.RowSums(b.Always(), (clipped,))
        assert engine.exact_sums(program) == reference.exact_sums(program, content)
    engine.close()


@pytest.mark.parametrize(
    "chain",
    [
        lambda v: b.BoundScaled(v, 3),
        lambda v: b.BoundScaled(v, -3),
        lambda v: b.Added((b.Fixed(-4), b.BoundScaled(b.Added((v, b.Fixed(5))), -2))),
        lambda v: b.Shifted(b.BoundScaled(v, -5), 2),
        lambda v: b.Shifted(v, 0),
    ],
)
def test_comparisons_are_carried_down_exactly(
    chain: Callable[[b.Integer], b.Integer], tmp_path: Path
) -> None:
    content = [dict(tables.rows(1, 1)[0], x=x) for x in [None, math.nan, *range(-4, 5)]]
    engine = opened("parquet", content, tmp_path)
    value = chain(b.Quantised("x", -3.0, 3.0, 2.0))
    terms = tuple(
        b.BoundChoice(b.Compared(operator, *sides), b.Fixed(1), b.Fixed(0))
        for constant in range(-30, 31)
        for operator in OPERATORS
        for sides in ((value, b.Fixed(constant)), (b.Fixed(constant), value))
    )
    program = b.RowSums(b.Always(), terms)
    assert "FLOOR" not in emitted(program)  # every one became a test of the bare column
    assert engine.exact_sums(program) == reference.exact_sums(program, content)
    engine.close()


def test_undeclared_values_never_multiply_groups() -> None:
    """Two columns of 40 undeclared values each: the statement groups by declared cells only."""
    schema = Schema(Category("a", ["x"]), Category("b", ["y"]))
    rows = [{"a": f"u{i}", "b": f"v{j}"} for i in range(40) for j in range(40)]
    engine = engine_file.open_duckdb(pa.Table.from_pylist(rows), schema)
    groups = (b.CategoryCells("a", ("x",), True), b.CategoryCells("b", ("y",), True))
    program = b.RowSums(b.Always(), (b.Fixed(1),), groups)
    sql = statement(program, engine.places, len(rows)).sql
    assert engine._connection.execute(f"SELECT count(*) FROM ({sql})").fetchall() == [(1,)]
    assert engine.exact_sums(program) == [0, 0, 0, 1600]
    engine.close()


def test_bins_of_rounded_edges_are_found_by_division() -> None:
    """Every value beside every number of bins: the same cells as by halving."""
    frame = pa.table({"n": pa.array([float(x) for x in range(-2, 125)])})
    engine = open_engine(frame, Schema(Number("n", 0, 120, step=1)))
    places = {"n": ColumnSql('"n"', "real")}
    for first, span in ((0, 120), (-7, 101), (5, 90)):
        for bins in range(18, span):
            edges = tuple(first + round(Fraction(span * i, bins)) for i in range(bins + 1))
            cells = b.BinCells(b.Magnitude(N) if bins % 2 and first >= 0 else N, edges, other=True)
            program = b.RowSums(b.Always(), (b.Fixed(1),), (cells,))
            expected = [0] * (bins + 1)
            for x in range(-2, 125):
                clamped = min(max(x, 0), 120)
                inside = edges[0] <= clamped <= edges[-1]
                cell = min(bisect_right(edges, clamped) - 1, bins - 1) if inside else bins
                expected[cell] += 1
            assert engine.exact_sums(program) == expected, (first, span, bins)
    fine = b.Quantised("n", 0.0, 120.0, 2.0**24)
    for bins in (18, 1000, 4096):  # dividends near 2^44: each edge, and one step to both sides
        edges = tuple(round(Fraction(120 * 2**24 * i, bins)) for i in range(bins + 1))
        steps = [edge + k for edge in edges for k in (-1, 0, 1) if 0 <= edge + k <= edges[-1]]
        close = open_engine(
            pa.table({"n": [x / 2**24 for x in steps]}), Schema(Number("n", 0, 120))
        )
        program = b.RowSums(b.Always(), (b.Fixed(1),), (b.BinCells(fine, edges, other=True),))
        counts = Counter(min(bisect_right(edges, x) - 1, bins - 1) for x in steps)
        assert close.exact_sums(program) == [counts[cell] for cell in range(bins + 1)]
        close.close()
    unequal = b.BinCells(N, tuple(x * x for x in range(20)), other=True)
    halving = statement(b.RowSums(b.Always(), (b.Fixed(1),), (unequal,)), places, 100)
    assert "//" not in halving.sql and " / " not in halving.sql
