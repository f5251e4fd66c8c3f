"""Row expressions in SQL spelling: a closed language onto our own tree."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.errors import InvalidQuery
from sulq.kernel.query.canonical import spelling
from sulq.sql import parse_condition, parse_value

AGE, SMOKER = ["col", "age"], ["col", "smoker"]


def num(text):
    return ["num", text]


CONDITIONS = [
    ("smoker", SMOKER),
    ("TRUE", ["bool", True]),
    ("age >= 65 AND smoker", ["and", ["le", num("65"), AGE], SMOKER]),
    ("age > 65 or not smoker", ["or", ["lt", num("65"), AGE], ["not", SMOKER]]),
    ("age < 65 AND smoker AND age <= 3",
     ["and", ["lt", AGE, num("65")], SMOKER, ["le", AGE, num("3")]]),
    ("smoker OR smoker AND smoker", ["or", SMOKER, ["and", SMOKER, SMOKER]]),
    ("NOT age = 1", ["not", ["eq", AGE, num("1")]]),
    ("age <> 1", ["ne", AGE, num("1")]),
    ("age != 1", ["ne", AGE, num("1")]),
    ("age BETWEEN 1 AND 2 AND smoker",
     ["and", ["and", ["le", num("1"), AGE], ["le", AGE, num("2")]], SMOKER]),
    ("city IN ('Oslo', 'it''s')", ["among", ["col", "city"], ["text", "Oslo"], ["text", "it's"]]),
    ("age NOT IN (1, -2)", ["not", ["among", AGE, num("1"), num("-2")]]),
    ("city LIKE 'O%'", ["like", ["col", "city"], ["text", "O%"]]),
    ("city NOT LIKE 'O%'", ["not", ["like", ["col", "city"], ["text", "O%"]]]),
    ("age IS NULL", ["is_null", AGE]),
    ("age IS NOT NULL", ["not", ["is_null", AGE]]),
    ("age = 1 -- all", ["eq", AGE, num("1")]),
    ("IF(smoker, 1, 2) = 1", ["eq", ["choose", SMOKER, num("1"), num("2")], num("1")]),
    ("CASE age WHEN 1 THEN 2 END = 2",
     ["eq", ["choose", ["eq", AGE, num("1")], num("2"), ["null"]], num("2")]),
    ("smoker IS TRUE", ["eq", ["choose", SMOKER, num("1"), num("0")], num("1")]),
    ("/* x */ age = 1", ["eq", AGE, num("1")]),
    ('"Blood Pressure" = 3', ["eq", ["col", "Blood Pressure"], num("3")]),
    ("Age = 3", ["eq", ["col", "Age"], num("3")]),
    ("seen < DATE '2024-02-29'", ["lt", ["col", "seen"], ["date", "2024-02-29"]]),
    ("seen < TIMESTAMP '2024-02-29 12:30:00'",
     ["lt", ["col", "seen"], ["datetime", "2024-02-29T12:30:00"]]),
]  # fmt: skip

VALUES = [
    ("age", AGE),
    ("0.1", num("1/10")),
    ("1e3", num("1000")),
    ("-5.50", num("-11/2")),
    ("0.10000000000000000555", num("2000000000000000111/20000000000000000000")),
    ("NULL", ["null"]),
    ("age - 1 + 2", ["add", AGE, ["negate", num("1")], num("2")]),
    ("age - (1 + 2)", ["add", AGE, ["negate", ["add", num("1"), num("2")]]]),
    ("age * 2 / 3 * age", ["multiply", ["divide", ["multiply", AGE, num("2")], num("3")], AGE]),
    ("age + 2 * 3", ["add", AGE, ["multiply", num("2"), num("3")]]),
    ("-age * 2", ["multiply", ["negate", AGE], num("2")]),
    ("ABS(age)", ["abs", AGE]),
    ("LEAST(age, 3)", ["least", AGE, num("3")]),
    ("greatest(age, 3, 4)", ["greatest", AGE, num("3"), num("4")]),
    ("CLAMP(age, 0, 9)", ["clip", AGE, num("0"), num("9")]),
    ("COALESCE(age, 1)", ["coalesce", AGE, num("1")]),
    ("COALESCE(age, 1, 2)", ["coalesce", AGE, ["coalesce", num("1"), num("2")]]),
    ("CASE WHEN smoker THEN 1 END", ["choose", SMOKER, num("1"), ["null"]]),
    ("CASE WHEN smoker THEN 1 WHEN age > 2 THEN 3 ELSE 0 END",
     ["choose", SMOKER, num("1"), ["choose", ["lt", num("2"), AGE], num("3"), num("0")]]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tree"), CONDITIONS)
def test_condition_has_its_tree(text, tree):
    assert json.loads(spelling(parse_condition(text))) == tree


@pytest.mark.parametrize(("text", "tree"), VALUES)
def test_value_has_its_tree(text, tree):
    assert json.loads(spelling(parse_value(text))) == tree


REFUSED = [
    ("", "empty"),
    ("   ", "empty"),
    ("age = 1; age = 2", "semicolon"),
    ("age = 1;", "semicolon"),
    ("SELECT 1", "cannot be read"),
    ("(SELECT 1) = 1", "a SELECT"),
    ("age IN (SELECT 1)", "IN with query"),
    ("EXISTS (SELECT 1)", "EXISTS"),
    ("age = 1 LIMIT 3", "'LIMIT'"),
    ("age = 1, age = 2", "','"),
    ("people.age = 1", "without its table"),
    ("age % 2 = 1", "%"),
    ("city || 'x' = 'y'", "||"),
    ("age::int = 1", "CAST"),
    ("CAST(age AS DATE) = 1", "CAST"),
    ("city ILIKE 'a'", "LIKE minds capitals"),
    ("city LIKE 'a' ESCAPE 'b'", "ESCAPE"),
    ("city LIKE name", "LIKE wants a text"),
    ("age IN ()", "list of constants"),
    ("age IN (age)", "list of constants"),
    ("1 < age < 5", "low < x AND x < high"),
    ("COUNT(*) > 1", "the statistic is named before"),
    ("SQRT(age) > 1", "SQRT"),
    ("RANDOM() > 1", "RAND"),
    ("CURRENT_DATE > age", "CURRENT_DATE"),
    ("pg_sleep(10) > 1", "PG_SLEEP"),
    ("read_csv('x') = 1", "READ_CSV"),
    ("CLAMP(age, 1) > 0", "three values"),
    ("LEAST(age) > 0", "at least 2"),
    ("COALESCE(age) > 0", "at least 2"),
    ("age = ?", "a parameter"),
    ("age = :x", "a parameter"),
    ("age = @x", "PARAMETER"),
    ("age = 1e500", "not a number"),
    ("age = 1_000", "cannot be read"),
    ("age = 99999999999999999999", "64 bits"),
    ("age = 0x1F", "HEX STRING"),
    ("[" * 90, "not closed"),
    ("age = DATE '2023-02-29'", "a day or time that exists"),
    ("age = DATE '20230201'", "a day or time that exists"),
    ("age = INTERVAL '1' DAY", "INTERVAL"),
    ("age = 'open", "not closed"),
    ("(age = 1", "cannot be read"),
    ("age = ", "cannot be read"),
    ("age + 1", "wanted a condition"),
    ("5", "wanted a condition"),
    ("age = 1\x00", "NUL"),
    ("age = 'x" + "y" * 10_000 + "'", "10,000 characters"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=[text[:30] for text, _ in REFUSED])
def test_refused_with_its_reason(text, reason):
    with pytest.raises(InvalidQuery) as caught:
        parse_condition(text)
    assert reason in str(caught.value)


def test_value_is_not_a_condition():
    with pytest.raises(InvalidQuery, match="CASE WHEN"):
        parse_value("age > 3")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 4000 + "a" + ")" * 4000,
        "NOT " * 2400 + "a",
        "- " * 4900 + "a",
        "abs(" * 1900 + "a" + ")" * 1900,
        "case when " * 900,
        "a = " * 2400 + "a",
        "array<" * 1500,
        "struct<a " * 1000,
        "a / " * 2400 + "a",
    ],
    ids=lambda text: text[:10],
)
def test_depth_is_an_error_of_ours(text):
    with pytest.raises(InvalidQuery, match="levels deep"):
        parse_value(text)


def test_long_chains_are_not_deep():
    assert parse_value("+".join(["age"] * 2000)).depth == 2
    assert parse_condition(" AND ".join(["smoker"] * 900)).depth == 2


WORDS = [
    "age", "smoker", "'x'", "1", "2.5", "(", ")", ",", "AND", "OR", "NOT", "=", "<", "+", "-", "*",
    "/", "BETWEEN", "IN", "LIKE", "IS", "NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "ABS(",
    "CLAMP(", "DATE", "TIMESTAMP", "SELECT", "FROM", ";", "--", "[", "]", "{", "}", ".", "::",
    "->", "@", "$1", ":", "?", "INTERVAL", "OVER", "FILTER", "DISTINCT", "ARRAY", "STRUCT", "MAP",
    "CAST(", "AS", "COLLATE", "EXISTS", "ANY", "ALL", "ESCAPE", "\"", "'", "`", "/*", "*/", "||",
]  # fmt: skip


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)))
def test_only_invalid_query_escapes(text):
    for parse in (parse_condition, parse_value):
        try:
            read = parse(text)
        except InvalidQuery:
            continue
        spelling(read)
