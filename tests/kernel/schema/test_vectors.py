"""Norms, diameters and prices of vectors against every pair of rows there is, and known values."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from itertools import combinations_with_replacement, product
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.kernel.engines.reference import holds
from tests.kernel.engines.vector_reference import vector
from tests.kernel.query.random_vectors import VectorMaker
from tests.kernel.schema.tables import FIVE, NAMES, ROW, SCHEMA

from sulq.kernel.query import vectors as q
from sulq.kernel.query.expressions import col
from sulq.kernel.query.sum_query import SumQuery, outer
from sulq.kernel.query.vectors import Vector
from sulq.kernel.schema.bind import BoundQuery, bind
from sulq.kernel.schema.bind_vectors import VectorBinder
from sulq.kernel.schema.columns import Category, Flag, Number, Schema, accounts
from sulq.kernel.schema.norms import BoundVector

DOMAIN: dict[str, list[Any]] = {
    "a": [0.0, 0.7, 2.0, None],
    "b": [-1, 0, 1, None],
    "f": [True, False, None],
    "c": ["x", "y", "w"],
    "z": [0.0, 2.0, None],
    "g": ["p", "q", None],
}
PUBLIC = ("z", "g")
EVERY_ROW = [dict(zip(DOMAIN, row, strict=True)) for row in product(*DOMAIN.values())]


def exact_gap(one: list[int], two: list[int]) -> tuple[int, int]:
    gaps = [a - b for a, b in zip(one, two, strict=True)]
    return sum(abs(g) for g in gaps), sum(g * g for g in gaps)


def widest(values: list[list[int]]) -> tuple[int, int]:
    """The largest L1 and squared L2 distance of two of them, exactly."""
    distinct = [list(v) for v in {tuple(v) for v in values}]
    floats = np.array(distinct, float)
    one = squared = 0
    for place, row in enumerate(floats):
        gaps = np.abs(floats - row)
        for far in (gaps.sum(axis=1).argmax(), np.square(gaps).sum(axis=1).argmax()):
            l1, l2 = exact_gap(distinct[place], distinct[int(far)])
            one, squared = max(one, l1), max(squared, l2)
    return one, squared


def by_public(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in PUBLIC)].append(row)
    return found


def check_size(v: BoundVector) -> None:
    """Everything a bound vector says of itself, on every row."""
    for rows in by_public(EVERY_ROW).values():
        values = [vector(v.node, row) for row in rows]
        for x in values:
            assert len(x) == len(v) == len(v.keys)
            assert all(a <= y <= b for a, y, b in zip(v.lows, x, v.highs, strict=True))
            assert sum(y * y for y in x) <= v.norm_squared
            assert sum(map(abs, x)) <= v.norm_one
            if v.indicator:
                assert sum(y != 0 for y in x) <= 1
        if v.indicator:
            assert len({y for x in values for y in x if y}) <= 1
        one, squared = widest(values)
        assert one <= v.wide_one
        assert squared <= v.wide_squared
        if not v.private:
            assert squared == 0


def true_change(bound: BoundQuery, neighbours: str, g: object) -> tuple[int, int]:
    """The largest change over all neighbours whose public g is `g`, in steps."""
    program = bound.sums
    one = squared = 0
    for (_, stratum), rows in by_public(EVERY_ROW).items():
        if stratum != g:
            continue
        added = []
        for row in rows:
            left, right = vector(program.left, row), vector(program.right, row)
            inside = int(holds(program.rows, row))
            added.append([inside * a * b for a in left for b in right])
        if neighbours == "add-remove":
            one = max(one, *(sum(map(abs, x)) for x in added))
            squared = max(squared, *(sum(y * y for y in x) for x in added))
        else:
            l1, l2 = widest(added)
            one, squared = max(one, l1), max(squared, l2)
    return one, squared


def claimed(bound: BoundQuery, g: object, schema: Schema = SCHEMA) -> tuple[Fraction, Fraction]:
    names = accounts(schema)
    number = names.index("g=*" if g is None else f"g={g}")
    (found,) = [s for s, numbers in bound.reach if number in numbers]
    unit = bound.terms[0].unit
    return found.l1 * unit, found.l2_squared * unit**2


def check(query: SumQuery, neighbours: str) -> None:
    bound = bind(query, SCHEMA, neighbours)
    for g in DOMAIN["g"]:
        one, squared = true_change(bound, neighbours, g)
        says_one, says_squared = claimed(bound, g)
        assert one <= says_one, query.to_json()
        assert squared <= says_squared, query.to_json()


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(6))
def test_no_two_neighbours_differ_by_more_than_is_charged(seed: int) -> None:
    rng = Random(seed)
    maker = VectorMaker(SCHEMA, rng, list(DOMAIN))
    for number in range(12):
        left = maker.vector(2)
        right = left if number % 4 == 0 else maker.vector(2)
        rows = maker.condition() if rng.random() < 0.5 else None
        check_size(maker.binder.bind(left))
        if len(maker.binder.bind(left)) * len(maker.binder.bind(right)) <= 60:
            check(outer(left, right, rows), rng.choice(["replace", "replace", "add-remove"]))


@pytest.mark.parametrize(
    "v",
    [
        q.columns(["a", "b"], centre=-0.25, clip=0.5),  # shrinks below its lowest coordinate
        q.columns(["a", "z"], centre=1.25, clip=0.5),  # a public column moves with the private
        q.concat(q.scaled(q.ones(), 0.6), q.columns(["c"], centre=[0.2, 0.9], clip=0.3)),
        q.clipped(q.concat(q.ones(), q.columns(["a"])), 0.5),
        q.from_nearest(q.columns(["a", "c"]), [[0, 0, 0], [1, 2, -1]]),
        q.scaled(q.crossed(q.one_hot("c"), q.columns(["a"])), -0.37),
        q.scaled(q.one_hot("c"), -3),
    ],
)
def test_what_a_vector_says_of_itself_holds_on_every_row(v: Vector) -> None:
    check_size(VectorBinder(SCHEMA).bind(v))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50, 80))
def test_no_two_neighbours_differ_by_more_than_is_charged_at_length(seed: int) -> None:
    rng = Random(seed)
    maker = VectorMaker(SCHEMA, rng, list(DOMAIN))
    for number in range(30):
        left = maker.vector(3)
        right = left if number % 4 == 0 else maker.vector(3)
        rows = maker.condition() if rng.random() < 0.5 else None
        check_size(maker.binder.bind(left))
        check(outer(left, right, rows), rng.choice(["replace", "add-remove"]))


X = q.columns(["a", "b"], centre=0.5)
TIGHT = {
    "a constant side": outer(q.ones(), X),
    "a constant coordinate": outer(q.ones(), q.concat(q.scaled(q.ones(), 0.5), X)),
    "a one-hot side": outer(q.one_hot("c"), q.concat(q.ones(), q.columns(["a"]))),
    "two one-hots": outer(q.one_hot("c", other=True), q.one_hot("f", other=True)),
    "a public one-hot": outer(q.one_hot("g"), q.columns(["a"])),
    "a table per attribute": outer(
        q.concat(q.one_hot("c", other=True), q.bins("a", [0, 1, 2], other=True)), q.one_hot("f")
    ),
    "the square of a one-hot": outer(q.columns(["c"]), q.columns(["c"])),
    "signed sides": outer(q.residual(X, [0, 0], "f", "hinge"), X),
    "rows that private columns choose": outer(q.ones(), q.ones(), col("f")),
}


@pytest.mark.parametrize("name", TIGHT)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_where_the_price_is_exactly_what_two_neighbours_can_do(name: str, neighbours: str) -> None:
    bound = bind(TIGHT[name], SCHEMA, neighbours)
    assert true_change(bound, neighbours, "p")[1] == claimed(bound, "p")[1]


# --- known values: V.3, and what the learners count on ------------------------------------------

CENTRES = [[i / 10] * 5 for i in range(10)]


def credits(query: SumQuery, neighbours: str, schema: Schema = FIVE) -> Fraction:
    return max(s.l2_squared for s, _ in bind(query, schema, neighbours).reach)


@pytest.mark.parametrize(
    ("query", "replace", "add_remove"),
    [
        (outer(q.one_hot("label"), q.one_hot("y")), 2, 1),
        (outer(q.nearest(ROW, CENTRES), q.concat(q.ones(), ROW)), 12, 6),
        (outer(q.columns(NAMES, clip=1), q.columns(NAMES, clip=1)), 2, 1),
        (outer(q.one_hot("town"), q.columns(["n0"])), 1, 1),
        (outer(q.ones(), ROW), 5, 5),
        (outer(q.ones(), q.ones()), 0, 1),
    ],
    ids=["contingency", "k-means", "clipped outer product", "public groups", "sums", "size"],
)
def test_joint_credits_of_the_claims(query: SumQuery, replace: int, add_remove: int) -> None:
    """V.3 golden values."""
    assert credits(query, "replace") == replace
    assert credits(query, "add-remove") == add_remove


def length(query: SumQuery, neighbours: str) -> float:
    """The L2 sensitivity in user units."""
    bound = bind(query, FIVE, neighbours)
    term = bound.terms[0]
    squared = max(s.l2_squared for s, _ in bound.reach) * (term.unit * term.step) ** 2
    return math.sqrt(squared)


B = 0.5
CLIPPED = q.columns(NAMES, centre=0.4, clip=B)
R = math.sqrt(1.25) * B
SETTINGS = {
    "mean": (
        outer(q.ones(), q.concat(q.scaled(q.ones(), math.sqrt(5) / 2), q.columns(NAMES, 0.5))),
        math.sqrt(5 / 2),
        math.sqrt(5),
    ),
    "norms": (outer(q.ones(), q.bins(q.norm(CLIPPED), [i / 20 for i in range(41)])), 1, 2**0.5),
    "gram": (outer(CLIPPED, CLIPPED), B**2, 2**0.5 * B**2),
    "lloyd": (
        outer(
            q.nearest(ROW, CENTRES),
            q.concat(q.scaled(q.ones(), 0.6 * B), q.from_nearest(ROW, CENTRES, B)),
        ),
        B * math.sqrt(1.36),
        2 * B,
    ),
    "class moments": (
        outer(q.columns(["label"], centre=[1 / 3] * 3), CLIPPED),
        B * math.sqrt(2 / 3),
        2 * B * math.sqrt(2 / 3),
    ),
    "regression": (
        outer(
            q.concat(CLIPPED, q.scaled(q.ones(), B / 2)),
            q.concat(CLIPPED, q.scaled(q.ones(), B / 2)),
        ),
        R**2,
        2**0.5 * R**2,
    ),
    "gradient": (outer(q.residual(CLIPPED, [1] * 5, "y", "logistic"), CLIPPED), B, 2 * B),
    "class gradient": (
        outer(q.residual(CLIPPED, [[1] * 5] * 3, "label", "logistic"), CLIPPED),
        2**0.5 * B,
        2 * 2**0.5 * B,
    ),
    "perceptron": (
        outer(q.margin(CLIPPED, "y", [1] * 5, 0.02), q.signed(CLIPPED, "y")),
        B,
        2 * B,
    ),
    "labelled rows": (outer(q.ones(), q.signed(CLIPPED, "y")), B, 2 * B),
    "bayes bins": (
        outer(q.concat(*(q.bins(name, [0, 0.5, 1]) for name in NAMES)), q.one_hot("label")),
        5**0.5,
        10**0.5,
    ),
    "tree level": (
        outer(
            q.concat(*(q.bins(name, [0, 0.5, 1]) for name in NAMES)),
            q.crossed(q.one_hot("label"), q.cells(col("n0") < 0.3, col("n1") < 0.6)),
        ),
        5**0.5,
        10**0.5,
    ),
    "bayes numbers": (
        outer(q.one_hot("label"), q.concat(q.scaled(q.ones(), 0.3 * B), CLIPPED)),
        B * math.sqrt(1.09),
        2 * B,
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_what_the_learners_count_on(name: str) -> None:
    query, add_remove, replace = SETTINGS[name]
    assert length(query, "add-remove") == pytest.approx(add_remove, rel=2e-5)
    assert length(query, "replace") == pytest.approx(replace, rel=2e-5)


def test_a_projection_on_orthonormal_rows_does_not_make_vectors_longer() -> None:
    rows, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(5, 2)))
    projected = VectorBinder(FIVE).bind(q.project(CLIPPED, rows.T))
    assert math.sqrt(projected.norm_squared) * projected.step == pytest.approx(B, rel=1e-4)


def test_persons_pay_for_their_rows() -> None:
    """M.5: m rows move m times as much; and no column of a person is public."""
    schema = Schema(*FIVE.columns, unit="who", max_rows=3)
    query = outer(q.one_hot("label"), q.one_hot("y"))
    assert credits(query, "replace", schema) == 9 * 2
    assert credits(outer(q.one_hot("town"), q.ones()), "replace", schema) == 9 * 2
    assert credits(outer(q.one_hot("town"), q.ones()), "replace") == 0
    assert credits(outer(q.ones(), q.ones()), "replace", schema) == 9
    assert credits(outer(q.ones(), q.columns(["n0"], 0.5)), "replace", schema) == 9 * 4


PERSON = Schema(Flag("f"), Category("c", ["x", "y"]), unit="who", max_rows=2)
PERSON_QUESTIONS = [
    outer(q.ones(), q.ones()),
    outer(q.ones(), q.columns(["f"], 0.5)),
    outer(q.one_hot("c"), q.one_hot("f")),
    outer(q.columns(["c", "f"], 0.5), q.columns(["c", "f"], 0.5)),
    outer(q.signed(q.columns(["c"]), "f"), q.concat(q.ones(), q.columns(["c"])), col("f")),
]


@pytest.mark.parametrize("query", PERSON_QUESTIONS)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_no_person_moves_more_than_is_charged(query: SumQuery, neighbours: str) -> None:
    """Every person of at most two rows against every other, and against nobody."""
    bound = bind(query, PERSON, neighbours)
    program, ((says, _),) = bound.sums, bound.reach
    added = []
    for f, c in product([True, False, None], ["x", "y", None]):
        row = {"f": f, "c": c}
        left, right = vector(program.left, row), vector(program.right, row)
        added.append([int(holds(program.rows, row)) * a * b for a in left for b in right])
    none = [0] * len(added[0])
    pairs = combinations_with_replacement([none, *added], 2)
    persons = [[a + b for a, b in zip(*pair, strict=True)] for pair in pairs]
    if neighbours == "add-remove":
        gaps = [exact_gap(person, none) for person in persons]
        one, squared = max(g[0] for g in gaps), max(g[1] for g in gaps)
    else:
        one, squared = widest(persons)
    unit = bound.terms[0].unit
    assert one <= says.l1 * unit
    assert 0 < squared <= says.l2_squared * unit**2


def test_a_stratum_outside_s_pays_nothing() -> None:
    bound = bind(outer(ROW, ROW, col("town") == "p"), FIVE)
    paid = {accounts(FIVE)[n]: s.l2_squared for s, ns in bound.reach for n in ns}
    assert paid["town=q"] == paid["town=*"] == 0 < paid["town=p"]


def test_private_rows_also_pay_for_coming_and_going() -> None:
    near = q.concat(q.ones(), q.scaled(q.columns(["n0"]), 0.1))
    assert credits(outer(q.ones(), near), "replace") < credits(
        outer(q.ones(), near, col("y")), "replace"
    )
    assert credits(outer(q.ones(), near, col("y")), "replace") == pytest.approx(1.01, rel=1e-4)


# --- binding ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [64, 91, 128])
def test_a_projection_of_many_numbers_is_not_underpriced(size: int) -> None:
    """Sums of squares beyond 64 bits: a wrapped trace would make the price almost nothing."""
    schema = Schema(Number("x", 0, size, step=1))
    edges = list(range(size + 1))
    spread = q.project(q.bins("x", edges), [[1] * size] * size)
    bound = bind(outer(q.ones(), spread), schema, "add-remove").outer
    assert bound is not None
    coordinate = max(abs(high) for high in bound.right.highs)
    assert bound.right.norm_squared >= size * coordinate**2  # one row adds 1 to every coordinate
