"""What released sums already say is found on functions, and is exactly the engine's sum. S1.15"""

from __future__ import annotations

import random
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.engines.reference import exact_sums

from sulq import Category, Flag, Number, Schema, col, count, total
from sulq.exact.domain import Domain, everything_in
from sulq.exact.release import consequence, evaluate
from sulq.kernel.schema.bind import NoiseGrid, bind

SCHEMA = Schema(
    Flag("ill"),
    Flag("smoker"),
    Number("visits", 0, 3, step=1),
    Number("odd", 0, 2.5, step=1),
    Number("income", 0, 100),
    Category("city", ["Oslo", "Paris"], public=True),
    Category("blood", ["A", "B", "0"]),
)
ILL, SMOKER, OSLO = col("ill"), col("smoker"), col("city") == "Oslo"


def programs(questions):
    return [bind(question, SCHEMA, grid=NoiseGrid(0)).sums for question in questions]


CASES = [
    # (released, asked)
    ([count(where=ILL)], [count(where=ILL)]),
    (
        [count(where=ILL), count(where=SMOKER), count(where=ILL & SMOKER)],
        [count(where=ILL | SMOKER)],
    ),
    ([count(where=ILL), count(where=col("ill").is_null())], [count(where=~ILL)]),
    (
        [total(col("visits")), count(where=~col("visits").is_null())],
        [total(2 * col("visits") + 3, where=~col("visits").is_null())],
    ),
    ([count(where=ILL & OSLO)], [count(where=ILL & OSLO), count(where=OSLO), count()]),
    (
        [count(where=ILL), count(where=ILL & OSLO)],
        [count(where=ILL & (~OSLO | col("city").is_null()))],
    ),
    ([count(where=col("visits") >= k) for k in (1, 2, 3)], [total(col("visits"))]),
    ([], [count(where=OSLO)]),
]
NOT = [
    ([count(where=ILL)], [count(where=SMOKER)]),
    ([count(where=ILL)], [count(where=~ILL)]),  # a flag may be missing
    ([count(where=ILL), count(where=ILL & SMOKER)], [count(where=ILL & ~SMOKER)]),
    ([count(where=ILL), count(where=ILL & OSLO)], [count(where=ILL & ~OSLO)]),
    ([count(where=ILL)], [count(where=ILL), count(where=ILL & OSLO)]),
    ([total(col("visits"))], [count(where=col("visits") >= 1)]),
    ([count(where=ILL), count(where=SMOKER)], [count(where=ILL & SMOKER)]),
    # rounding is no straight line, even where most of its values are on one
    ([count(where=col("odd") >= 1), count(where=col("odd") >= 2)], [total(col("odd"))]),
    ([count(where=ILL)], [total(col("income"))]),
    ([], [count(where=ILL)]),
]


def random_table(n, seed):
    draw = random.Random(seed)
    rows = []
    for _ in range(n):
        row = {
            name: draw.choice(everything_in(SCHEMA[name]))
            for name in ("ill", "smoker", "visits", "odd", "city", "blood")
        }
        rows.append({k: float(v) if isinstance(v, Fraction) else v for k, v in row.items()})
    return rows


def class_sizes(asked, rows):
    domain = Domain.of(asked, SCHEMA, {"ill": Fraction(1, 10)})
    return [
        sum(all(row[k] == v for k, v in given.items()) for row in rows)
        for given in domain.classes()
    ]


@pytest.mark.parametrize(("released", "asked"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_the_combination_is_the_engines_sum(released, asked, seed):
    known, wanted = programs(released), programs(asked)
    found = consequence(known, wanted, SCHEMA)
    assert found is not None
    rows = random_table(40, seed)
    sums = [x for program in known for x in exact_sums(program, rows)]
    sizes = class_sizes([*known, *wanted], rows)
    expected = [x for program in wanted for x in exact_sums(program, rows)]
    assert [evaluate(*one, sums, sizes) for one in found] == expected


@pytest.mark.parametrize(("released", "asked"), NOT)
def test_what_does_not_follow_is_not_claimed(released, asked):
    assert consequence(programs(released), programs(asked), SCHEMA) is None


@settings(max_examples=24, deadline=None)
@given(data=st.data())
def test_any_batch_is_right_or_silent(data):
    atoms = [ILL, SMOKER, OSLO, col("visits") >= 2, col("blood") == "A"]
    condition = st.sampled_from([*atoms, *(a & b for a in atoms for b in atoms if a is not b)])
    batch = st.lists(condition.map(lambda where: count(where=where)), min_size=1, max_size=5)
    known, wanted = programs(data.draw(batch)), programs(data.draw(batch))
    found = consequence(known, wanted, SCHEMA)
    if found is None:
        return
    rows = random_table(30, data.draw(st.integers(0, 10**6)))
    sums = [x for program in known for x in exact_sums(program, rows)]
    sizes = class_sizes([*known, *wanted], rows)
    expected = [x for program in wanted for x in exact_sums(program, rows)]
    assert [evaluate(*one, sums, sizes) for one in found] == expected


def test_large_domains_are_quick_and_too_large_ones_are_not_decided():
    """Processor time of this process, which others do not add to: one of the twenty seconds."""
    schema = Schema(Number("a", 0, 97, step=1), Number("b", 0, 99, step=1), Flag("c"))
    known = [bind(total(col(n)), schema, grid=NoiseGrid(0)).sums for n in ("a", "b")]
    started = time.process_time()
    sum_of_both = [bind(total(col("a") + col("b")), schema, grid=NoiseGrid(0)).sums]
    assert consequence(known, sum_of_both, schema) is None  # one may be missing where one is not
    filled = ~col("a").is_null() & ~col("b").is_null()
    filled_only = [
        bind(total(col(n), where=filled), schema, grid=NoiseGrid(0)).sums for n in ("a", "b")
    ]
    assert consequence(filled_only, sum_of_both, schema) is not None
    assert time.process_time() - started < 20
    wide = [bind(total(col(n), where=col("c")), schema, grid=NoiseGrid(0)).sums for n in ("a", "b")]
    assert consequence(wide, wide, schema) is None  # 30,000 joint values
