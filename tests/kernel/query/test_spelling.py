"""What is written back in SQL means the same."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.answers.statistics import count, histogram, mean
from sulq.errors import InvalidQuery
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import col, when
from sulq.kernel.query.sql_text import question_text, sql_text, told_apart
from sulq.kernel.query.sum_query import text_of
from sulq.sql import parse_condition, parse_value

names = st.sampled_from(["age", "Income", "blood pressure", 'quo"te', "end", "date", "år", "x2"])
columns = names.map(col)
numbers = st.one_of(st.integers(-(10**6), 10**6), st.fractions(-99, 99, max_denominator=64))
dates = st.dates(datetime.date(1000, 1, 1))
texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=8)


def values(inner):
    return st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] - p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] * p[1]),
        st.tuples(inner, st.integers(1, 9)).map(lambda p: p[0] / p[1]),
        st.tuples(inner, columns).map(lambda p: p[0] / p[1]),
        inner.map(abs),
        inner.map(lambda x: -x),
        inner.map(lambda x: x.clip(-3, Fraction(7, 3))),
        st.tuples(inner, inner).map(lambda p: p[0].min(p[1]).max(0)),
        st.tuples(inner, inner).map(lambda p: p[0].coalesce(p[1])),
        st.tuples(inner, inner).map(lambda p: when(p[0] > 2).then(p[1]).otherwise(None)),
    )


value_trees = st.recursive(st.one_of(columns, columns.map(lambda c: c * 2)), values, max_leaves=6)
leaves = st.one_of(
    columns,
    st.tuples(value_trees, numbers).map(lambda p: p[0] <= p[1]),
    st.tuples(value_trees, numbers).map(lambda p: p[0] > p[1]),
    st.tuples(value_trees, value_trees).map(lambda p: p[0] != p[1]),
    st.tuples(columns, dates).map(lambda p: p[0] < p[1]),
    st.tuples(columns, st.lists(texts, min_size=1, max_size=3)).map(lambda p: p[0].isin(p[1])),
    st.tuples(columns, texts).map(lambda p: p[0].like(p[1])),
    value_trees.map(lambda x: x.is_null()),
)
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] & p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] | p[1]),
        inner.map(lambda x: ~x),
    ),
    max_leaves=6,
)


def test_only_mixed_connectives_get_brackets():
    text = "(age > 3 OR smoker) AND NOT ill"
    assert sql_text(parse_condition(text)) == text


@given(value_trees)
def test_values_come_back(tree):
    try:
        form = canonical.value(tree)
    except InvalidQuery:
        return
    again = canonical.value(parse_value(sql_text(form)))
    assert canonical.spelling(again) == canonical.spelling(form)


@given(conditions)
def test_conditions_come_back(tree):
    try:
        form = canonical.truth(tree)
    except InvalidQuery:
        return
    again = canonical.truth(parse_condition(sql_text(form)))
    assert canonical.spelling(again) == canonical.spelling(form)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (count(where=(col("age") >= 65) & col("smoker")), "COUNT(*) WHERE smoker AND age >= 65"),
        (count(), "COUNT(*)"),
        (
            mean("income", where=~col("smoker")),
            "COUNT(*), SUM(CENTRED(income)) WHERE NOT smoker AND income IS NOT NULL",
        ),
        (
            histogram("city", "age", edges={"age": [0, 18.5]}, other=True),
            "COUNT(*) GROUP BY city WITH OTHER, age CUT AT (0, 18.5) WITH OTHER",
        ),
    ],
)
def test_questions_read_as_sql(asked, text):
    assert question_text(text_of(asked.query.canonical())) == text


SMOKERS = text_of(count(where=col("smoker")).query.canonical())
BLOODS = text_of(histogram("blood").query.canonical())


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        (
            f'{{"sulq":1,"alert":{SMOKERS},"above":"101/2","firings":1,"arming":"b1"}}',
            "ALERT ABOVE 50.5: COUNT(*) WHERE smoker",
        ),
        (f'{{"sulq":1,"top":2,"of":{BLOODS}}}', "TOP 2: COUNT(*) GROUP BY blood"),
        (
            '{"sulq":1,"keys":"word","rows":["not_null",["col","word"]],"most":9,"longest":20}',
            "KEYS: word",
        ),
        (
            '{"sulq":1,"keys":"word","rows":["among",["col","smoker"],["bool",true]],"most":9}',
            "KEYS: word WHERE smoker",
        ),
    ],
)
def test_alerts_and_keys_read_as_words(stored, text):
    assert question_text(stored) == text


@pytest.mark.parametrize("stored", ["", "{}", "[1]", '{"sulq": 99}', "not json"])
def test_what_is_no_sum_stays_as_it_is(stored):
    assert question_text(stored) == stored


def test_different_questions_stay_different_when_cut():
    long = "COUNT(*) WHERE city = 'Oslo' AND smoker AND blood = 'A' AND income > "
    asked = [f"{long}{k} AND age > 30 AND age < 60" for k in (100, 200)]
    cut = told_apart([*asked, "COUNT(*)", asked[0]])
    assert cut[0] == "COUNT(*) WHERE city ... income > 100 AND age > 30 AND ..."
    assert cut[1] == "COUNT(*) WHERE city ... income > 200 AND age > 30 AND ..."
    assert cut[2] == "COUNT(*)" and cut[3] == cut[0]
    alone = "COUNT(*) WHERE city = 'Oslo' AND smoker AND blood = 'A' ..."
    assert told_apart(asked[:1]) == [alone]  # its beginning tells it, and no number is cut in two
    three = [
        f"{long}{'9' * 70}{end} OR {last}" for end, last in (("", "a"), ("1", "b"), ("1", "c"))
    ]
    assert told_apart(three) == three or len(set(told_apart(three))) == 3


@given(st.lists(st.text("ab ", min_size=0, max_size=90), max_size=6))
def test_texts_are_cut_apart_or_not_at_all(asked):
    cut = told_apart(asked)
    assert [cut.index(one) for one in cut] == [asked.index(one) for one in asked]
    assert all(len(one) <= 64 or one == whole for one, whole in zip(cut, asked, strict=True))
