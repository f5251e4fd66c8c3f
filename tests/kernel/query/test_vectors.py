"""Vectors are data: they cross as JSON, come back the same, and nothing else is let in."""

from __future__ import annotations

import json
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from tests.kernel.query.random_vectors import VectorMaker

from sulq.errors import InvalidQuery
from sulq.kernel.query import vectors as q
from sulq.kernel.query.expressions import col, lit
from sulq.kernel.query.sum_query import SumQuery, digest_of, outer, text_of
from sulq.kernel.query.vectors import (
    KINDS,
    Concat,
    Vector,
    spelled,
    vector_from_json,
    vector_to_json,
)
from sulq.kernel.schema.columns import Category, Flag, Number, Schema

SCHEMA = Schema(
    Number("5", 0, 2), Number("b", -1, 1), Flag("f"), Category("c", ["x", "1"]), Flag("ones")
)
X = q.columns(["5", "b"], centre=[0.1, Fraction(1, 3)], clip=0.7)
ONE_OF_EACH = [
    q.ones(),
    X,
    q.columns(["5"]),
    q.one_hot("c", other=True),
    q.bins("b", [-1, 0, 0.1], other=True),
    q.bins(q.norm(X), [0, 0.5, 1]),
    q.cells(col("f"), col("c") == "x", (col("b") > 0) & ~col("f")),
    q.project(X, [[1, 2.5], [1e-9, -3]]),
    q.clipped(X, 2),
    q.nearest(X, [[0, 0], [0.25, 1]]),
    q.from_nearest(X, [[0, 0], [0.25, 1]], clip=0.5),
    q.from_nearest(X, [[0, 0]]),
    q.margin(X, "f", [0.1, 0.2], 0.02),
    q.signed(X, col("c") == "x"),
    q.residual(X, [1, 2], "b", "linear", clip=3),
    q.residual(X, [1, 2], "f", "hinge"),
    q.residual(X, [[1, 2], [3, 4]], "c", "logistic"),
    q.softmax(X, [[1, 2], [3, 4], [5, 6]]),
    q.squares(X),
    q.crossed(q.one_hot("f"), X),
    q.concat(q.ones(), X),
    q.scaled(X, -0.6),
]


def text(vector: Vector) -> str:
    return json.dumps(vector_to_json(vector))


@pytest.mark.parametrize("vector", ONE_OF_EACH, ids=lambda v: type(v).__name__)
def test_a_vector_comes_back_from_json_as_it_was(vector: Vector) -> None:
    again = vector_from_json(json.loads(text(vector)))
    assert type(again) is type(vector)
    assert text(again) == text(vector)


def test_every_kind_is_tried() -> None:
    inner = {q.norm(X).__class__}
    assert {type(v) for v in ONE_OF_EACH} | inner == {kind for kind, _ in KINDS.values()}


@pytest.mark.parametrize("seed", range(3))
def test_random_questions_come_back_as_they_were(seed: int) -> None:
    maker = VectorMaker(SCHEMA, Random(seed), ["5", "b", "f", "c", "ones"])
    for _ in range(40):
        query = outer(maker.vector(), maker.vector(), maker.condition()).canonical()
        again = SumQuery.from_json(json.loads(text_of(query)))
        assert digest_of(text_of(again.canonical())) == digest_of(text_of(query))


@pytest.mark.parametrize(
    "form",
    [
        None,
        {},
        [],
        ["ones"],
        ["ones", {"x": 1}],
        ["eval", {}],
        ["__class__", {}],
        [["ones"], {}],
        ["columns", {"names": "age", "centre": None, "clip": None}],
        ["columns", {"names": [], "centre": None, "clip": None}],
        ["columns", {"names": ["a", "a"], "centre": None, "clip": None}],
        ["columns", {"names": [1], "centre": None, "clip": None}],
        ["columns", {"names": ["a"], "centre": None, "clip": 1}],
        ["columns", {"names": ["a"], "centre": None, "clip": "-1"}],
        ["columns", {"names": ["a"], "centre": None, "clip": "nan"}],
        ["columns", {"names": ["a"], "centre": None, "clip": "1/0"}],
        ["columns", {"names": ["a"], "centre": None, "clip": "1e999"}],
        ["columns", {"names": ["a"], "centre": None, "clip": "9" * 60}],
        ["columns", {"names": ["a"], "centre": ["0.5", ["0"]], "clip": None}],
        ["one_hot", {"column": "a", "other": 1}],
        ["bins", {"of": ["col", "a"], "edges": [["num", "0"]], "other": False}],
        ["bins", {"of": ["col", "a"], "edges": [["col", "b"], ["num", "1"]], "other": False}],
        ["cells", {"conditions": []}],
        ["concat", {"parts": []}],
        ["norm", {"vector": ["col", "a"]}],
        ["nearest", {"vector": ["ones", {}], "centres": [["1"], ["1", "2"]]}],
        ["nearest", {"vector": ["ones", {}], "centres": []}],
        ["scaled", {"vector": ["ones", {}], "factor": "0"}],
        [
            "residual",
            {
                "vector": ["ones", {}],
                "weights": [["1"]],
                "label": ["col", "a"],
                "kind": "cubic",
                "clip": None,
            },
        ],
        [
            "residual",
            {
                "vector": ["ones", {}],
                "weights": [["1"], ["2"]],
                "label": ["col", "a"],
                "kind": "hinge",
                "clip": None,
            },
        ],
    ],
)
def test_nothing_else_is_read(form: object) -> None:
    with pytest.raises(InvalidQuery):
        vector_from_json(form)


@pytest.mark.parametrize(
    "form",
    [
        {"sulq": 1, "rows": ["bool", True], "outer": []},
        {"sulq": 1, "rows": ["bool", True], "outer": [["ones", {}]]},
        {"sulq": 2, "rows": ["bool", True], "outer": [["ones", {}], ["ones", {}]]},
        {"sulq": 1, "outer": [["ones", {}], ["ones", {}]]},
        {"sulq": 1, "rows": ["bool", True], "terms": [], "outer": [["ones", {}], ["ones", {}]]},
    ],
)
def test_a_question_with_vectors_has_two_of_them_and_nothing_else(form: dict[str, object]) -> None:
    with pytest.raises(InvalidQuery):
        SumQuery.from_json(form)


@pytest.mark.slow
def test_depth_and_size_have_limits() -> None:
    form: list[object] = ["ones", {}]
    for _ in range(5_000):
        form = ["squares", {"vector": form}]
    with pytest.raises(InvalidQuery):
        vector_from_json(form)
    deep = q.ones()
    with pytest.raises(InvalidQuery, match="deep"):
        for _ in range(20):
            deep = q.squares(deep)
    with pytest.raises(InvalidQuery, match="shorten"):
        q.cells(*[col("b") + col("5") * 2 > i for i in range(3_000)])
    wide = q.nearest(X, np.zeros((45_000, 2)))
    with pytest.raises(InvalidQuery, match="shorten"):
        q.concat(wide, wide, wide)


def test_numbers_have_one_spelling() -> None:
    assert [spelled(Fraction(x)) for x in ("1/2", "3", "-1/3", "1e-9")] == [
        "0.5",
        "3",
        "-1/3",
        "1e-09",
    ]
    same = [q.scaled(X, value) for value in (0.5, Fraction(1, 2), np.float64(0.5))]
    assert len({text(v) for v in same}) == 1


def test_a_float_is_the_number_it_prints() -> None:
    assert q.scaled(X, 0.1).factor == Fraction(1, 10)  # type: ignore[attr-defined]


def test_nested_parts_are_flattened_and_factors_joined() -> None:
    flat = q.concat(q.ones(), q.concat(X, q.ones()))
    assert isinstance(flat, Concat) and len(flat.parts) == 3
    assert text(q.scaled(q.scaled(X, 4), 0.5)) == text(q.scaled(X, 2))
    assert q.scaled(X, 1) is X and q.concat(X) is X


def test_conditions_inside_vectors_have_one_spelling() -> None:
    one = outer(q.cells(col("b") >= 0.5), q.signed(X, ~(col("b") < 0.5)))
    two = outer(q.cells(~(col("b") < 0.5)), q.signed(X, col("b") >= 0.5))
    assert text_of(one.canonical()) == text_of(two.canonical())


@pytest.mark.parametrize(
    "build",
    [
        lambda: outer(X, 3),
        lambda: q.columns("age"),
        lambda: q.columns(["a"], centre=[float("nan")]),
        lambda: q.columns(["a"], clip=float("inf")),
        lambda: q.project(X, [1, 2]),
        lambda: q.nearest(X, [[True, 0]]),
        lambda: q.residual(X, [1, 2], "f", "logistic", clip=1),
        lambda: q.bins("b", "01"),
        lambda: q.crossed(X, "b"),
    ],
)
def test_what_builders_refuse(build: object) -> None:
    with pytest.raises(InvalidQuery):
        build()  # type: ignore[operator]


def test_a_label_with_null_in_it_is_refused() -> None:
    """Where it is false and where it is missing would become one: two questions, one name."""
    for label in (col("x").isin([1, None]), (col("x") < 5) & (col("x") == lit(None))):
        with pytest.raises(InvalidQuery, match="NULL"):
            outer(q.signed(q.ones(), label), q.ones()).canonical()
