"""The form of a question as JSON Schema: it describes what is read, no more and no less."""

from __future__ import annotations

import copy
from fractions import Fraction

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.golden.asking import ASKED as RECORDED

from sulq import col, count, histogram, outer, quantiles
from sulq.errors import InvalidQuery
from sulq.kernel.query import vectors
from sulq.kernel.query.sum_query import group
from sulq.wire import question_json, question_of, question_schema

SCHEMA = jsonschema.Draft202012Validator(question_schema())
AGE = vectors.columns(["age", "income"], centre=[0.5, Fraction(1, 3)], clip=1)
VECTORS = [
    vectors.ones(),
    AGE,
    vectors.one_hot("city"),
    vectors.bins("age", [0, 18, 65]),
    vectors.cells(col("age") > 3, col("smoker")),
    vectors.project(AGE, [[1, 0], [0, 1]]),
    vectors.nearest(AGE, [[0, 0], [1, 1]]),
    vectors.concat(vectors.ones(), AGE),
    vectors.norm(AGE),
    vectors.squares(AGE),
]
ASKED = [
    count(where=(col("age") >= 65) & col("city").isin(["Oslo", "Paris"]) & ~col("smoker")),
    histogram("age", edges=[0, 18, 65, 120]),
    histogram("city", "smoker", other=True),
    quantiles("age", [0.25, 0.5]),
    *(outer(vector, vectors.ones()) for vector in VECTORS),
]


def fits(form: object) -> bool:
    return bool(SCHEMA.is_valid(form))


def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(question_schema())


@pytest.mark.sample(30)
@pytest.mark.parametrize("question", [*ASKED, *RECORDED.values()])
def test_what_is_asked_fits(question):
    form = question_json(question)
    SCHEMA.validate(form)
    assert question_json(question_of(form)) == form


def changed(path: list[object], value: object) -> dict[str, object]:
    form = copy.deepcopy(question_json(ASKED[0]))
    place = form
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return form


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["kind"], "median"),
        (["more"], 1),
        (["query", "sulq"], 2),
        (["query", "terms"], []),
        (["query", "rows"], ["age"]),
        (["query", "rows"], ["col"]),
        (["query", "rows"], ["lt", ["col", "age"]]),
        (["query", "rows"], ["num", "1e5"]),
        (["query", "rows"], ["num", 5]),
        (["query", "rows"], ["drop", ["col", "age"]]),
        (["query", "groups"], [{"of": ["col", "age"]}]),
        (["query", "clip"], [["num", "1"]]),
    ],
)
def test_what_does_not_fit_is_not_read(path, value):
    form = changed(path, value)
    assert not fits(form)
    with pytest.raises(InvalidQuery):
        question_of(form)


def part() -> st.SearchStrategy[object]:
    """Anything that JSON can hold, often shaped like a question."""
    words = st.sampled_from(["col", "num", "lt", "and", "clip", "age", "1", "null", "columns"])
    leaf = st.none() | st.booleans() | st.integers(-3, 3) | words | st.text(max_size=3)
    return st.recursive(leaf, lambda inner: st.lists(inner, max_size=4), max_leaves=12)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(rows=part(), term=part())
def test_what_is_read_fits(rows, term):
    form = {
        "kind": "sums",
        "query": {"sulq": 1, "rows": rows, "terms": [term], "groups": []},
        "shares": [],
    }
    try:
        question_of(form)
    except InvalidQuery:
        return
    assert fits(form)


def test_a_tree_of_bins_fits():
    by = group("age", bins=16, tree=True)
    form = question_json(histogram("age"))
    form["query"]["groups"] = [by.to_json()]
    assert fits(form)
