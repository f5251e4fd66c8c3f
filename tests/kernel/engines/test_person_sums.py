"""Sums per person: GROUP BY person inside, the clip, then the sum; bit-equal to plain Python."""

from __future__ import annotations

import random

import pandas as pd
import pytest
from tests.kernel.engines import reference
from tests.kernel.engines.test_persons import COLUMNS, X, content, kept

from sulq.kernel.engines import open_engine
from sulq.kernel.schema import program as b
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.sensitivity import PersonSums

TERMS = [
    b.Fixed(1),
    b.Fixed(0),
    b.Fixed(None),
    X,
    b.Added((b.BoundScaled(X, 3), b.Fixed(-7))),
    b.FlagBit("ill"),
    b.Multiplied(X, X),
    b.FirstOf(X, b.Fixed(12)),
    b.BoundChoice(b.FlagIs("ill", True), X, b.Fixed(-5)),
    b.Divided(X, b.Fixed(7)),
]
CONDITIONS = [
    b.Always(),
    b.Never(),
    b.FlagIs("ill", True),
    b.Compared("<", X, b.Fixed(1500)),
    b.Among("city", ("a", "c"), False),
    b.AllOf((b.Missing(X, True), b.FlagIs("ill", False))),
    b.Compared("<", b.Multiplied(X, X), b.Fixed(10**6)),
]
GROUPS: list[tuple[b.Cells, ...]] = [
    (),
    (b.CategoryCells("city", ("a", "b"), other=True),),
    (b.CategoryCells("city", ("a", "b"), other=False),),
    (b.CategoryCells("code", (1, -2), other=True),),
    (b.FlagCells("ill", other=True), b.CategoryCells("city", ("a", "b"), other=True)),
    (b.BinCells(X, (-10_000, -5_000, 0, 5_000, 10_000), other=True),),
    (b.BinCells(X, tuple(range(-10_000, 10_001, 1_000)), other=False),),
    (b.BinCells(b.Magnitude(X), tuple(range(0, 10_001, 500)), other=True),),
]


def programs(seed: int, count: int) -> list[PersonSums]:
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        low, high = sorted(rng.choice([-20_000, -3, 0, 1, 2, 900, 10**9]) for _ in range(2))
        found.append(
            PersonSums(rng.choice(CONDITIONS), rng.choice(TERMS), rng.choice(GROUPS), low, high, 3)
        )
    return found


@pytest.mark.sample(1)
@pytest.mark.parametrize("most", [1, 3, 1000])
def test_every_program_is_what_plain_python_says(most: int) -> None:
    rows = content(most + 20)
    chosen = kept(rows, most)
    frame = pd.DataFrame(random.Random(5).sample(rows, len(rows))).astype({"who": "Int64"})
    engine = open_engine(frame, Schema(*COLUMNS, unit="who", max_rows=most))
    try:
        for program in programs(most, 120):
            expected = reference.person_sums(program, chosen, "who")
            assert engine.exact_sums(program) == expected, program
    finally:
        engine.close()


def uncut_programs(most: int) -> list[PersonSums]:
    """How many rows persons have, clipped; whatever max_rows is. P.1"""
    clips = [(0, 1), (1, 2), (2, 8), (8, 16), (1, 1000), (4, 5)]
    return [PersonSums(b.Always(), b.Fixed(1), (), *clip, most, uncut=True) for clip in clips]


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_rows_beyond_max_rows_are_counted_where_that_is_asked(most: int) -> None:
    rows = content(most + 20)  # some without a person
    owned = [row for row in rows if row["who"] is not None]
    frame = pd.DataFrame(random.Random(5).sample(rows, len(rows))).astype({"who": "Int64"})
    engine = open_engine(frame, Schema(*COLUMNS, unit="who", max_rows=most))
    assert engine.size() == len({row["who"] for row in owned})
    for program in uncut_programs(most):
        assert engine.exact_sums(program) == reference.person_sums(program, owned, "who")
    engine.close()


def test_persons_named_by_text_and_large_sums() -> None:
    rows = [dict(row, who=f"p{row['who']}", x=10.0) for row in content(4) if row["who"] is not None]
    engine = open_engine(pd.DataFrame(rows), Schema(*COLUMNS, unit="who", max_rows=1000))
    fine = b.Quantised("x", -10.0, 10.0, 2.0**50)
    program = PersonSums(b.Always(), fine, (), -(2**62), 2**62, 1000)
    assert engine.exact_sums(program) == reference.person_sums(program, rows, "who")
    engine.close()


def test_the_last_edge_is_no_second_cell() -> None:
    """Values on and below the last edge lie in one cell: a person is clipped there once."""
    rows = [{"who": 1, "x": x, "city": "a", "code": 1, "ill": True} for x in (9.5, 10.0, 10.0)]
    engine = open_engine(pd.DataFrame(rows), Schema(*COLUMNS, unit="who", max_rows=3))
    bins = b.BinCells(X, tuple(range(-10_000, 10_001, 1_000)), other=False)
    assert engine.exact_sums(PersonSums(b.Always(), b.Fixed(1), (bins,), 0, 1, 3))[-1] == 1
    other = b.CategoryCells("city", ("b",), other=True)
    rows = [dict(rows[0], city=name) for name in ("x", "y", "z")]
    several = open_engine(pd.DataFrame(rows), Schema(*COLUMNS, unit="who", max_rows=3))
    assert several.exact_sums(PersonSums(b.Always(), b.Fixed(1), (other,), 0, 1, 3)) == [0, 1]
    engine.close()
    several.close()
