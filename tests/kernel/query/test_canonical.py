"""One spelling: re-spelled questions share it, and it means what was written."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from random import Random

import pytest
from tests.kernel.query.meaning import holds, value
from tests.kernel.query.random_questions import Questioner

from sulq.answers.statistics import count, histogram, mean, quantiles, total, variance
from sulq.errors import InvalidQuery
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Expression, Operation, col, lit, operation, when
from sulq.kernel.query.sum_query import SumQuery, digest_of, text_of
from sulq.kernel.schema.columns import Category, Flag, Number, Schema

SCHEMA = Schema(
    Number("a", 0, 2, step=1),
    Number("b", -1, 1, step=1),
    Flag("f"),
    Category("c", ["x", "y"]),
)
ROWS = [
    dict(zip("abfc", cells, strict=True))
    for cells in product([0, 1, 2, None], [-1, 0, 1, None], [True, False, None], ["x", "w", None])
]

a, b, f, c = col("a"), col("b"), col("f"), col("c")

SAME = [
    [(a >= 1) & f, f & (a >= 1), f & (lit(1) <= a), ~(~f | (a < 1)), ~~((a >= 1) & (f == True))],  # noqa: E712
    [a.between(0, 1), (a >= 0) & (a <= 1), ~((a < 0) | (a > 1))],
    [
        c.isin(["x", "y"]),
        (c == "y") | (c == "x"),
        ~((c != "x") & (c != "y")),
        c.isin(["y", "x", "x"]),
    ],
    [(a > 0) & ((b > 0) & f), ((a > 0) & (b > 0)) & f],
    [a > 2 + 3, a > 5, lit(5) < a],
    [~f, f == False, ~(f == True), f != True],  # noqa: E712
    [a.is_not_null(), ~a.is_null()],
]
SAME_VALUES = [
    [a - (b + 1), (a - b) - 1, -(b + 1 - a), a + -1 * b - 1],
    [2 * a / 4, a * Fraction(1, 2), a / 2, a * 0.5],
    [a * b, b * a],
    [a.min(b).min(1), lit(1).min(b.min(a))],
    [(a * 3) / (b * 6), a / (b * 2), (a / b) / 2],
    [a + (b + 0.5), (a + 0.5) + b, 0.5 + b + a],
]


@pytest.mark.parametrize("spellings", SAME, ids=lambda s: canonical.spelling(s[0])[:40])
def test_conditions_that_say_the_same_share_a_spelling(spellings: list[Expression]) -> None:
    assert len({canonical.spelling(canonical.truth(s)) for s in spellings}) == 1


@pytest.mark.parametrize("spellings", SAME_VALUES, ids=lambda s: canonical.spelling(s[0])[:40])
def test_values_that_say_the_same_share_a_spelling(spellings: list[Expression]) -> None:
    assert len({canonical.spelling(canonical.value(s)) for s in spellings}) == 1


def test_different_questions_have_different_digests() -> None:
    questions = [
        count(),
        count("a"),
        count(where=a > 1),
        count(where=a >= 1),
        count(where=~(a > 1)),
        total("a"),
        total(a, where=f),
        mean("a"),
        variance("a"),
        histogram("c"),
        histogram("c", other=True),
        histogram("a", edges=[0, 1, 2]),
        quantiles("a", [0.5]),
    ]
    digests = {digest_of(text_of(question.query.canonical())) for question in questions}
    assert len(digests) == len(questions)


@pytest.mark.parametrize("times", [1, pytest.param(7, marks=pytest.mark.slow)])
def test_canonical_form_means_what_was_written(times: int) -> None:
    """Random conditions and values on small rows, NULLs included."""
    random = Random(1)
    asker = Questioner(SCHEMA, random)
    rows = random.sample(ROWS, 40)
    for _ in range(300 * times):
        condition = asker.condition(3)
        plain = canonical.truth(condition)
        assert [holds(plain, row, SCHEMA) for row in rows] == [
            holds(condition, row, SCHEMA) for row in rows
        ], canonical.spelling(condition)
    for _ in range(200 * times):
        number = asker.number(3)
        plain = canonical.value(number)
        wanted = [value(number, row, SCHEMA) for row in rows]
        assert [value(plain, row, SCHEMA) for row in rows] == wanted, canonical.spelling(number)


def test_canonical_form_is_its_own_canonical_form() -> None:
    asker = Questioner(SCHEMA, Random(2))
    for _ in range(1_000):
        query = SumQuery((asker.number(3),), asker.condition(3))
        once = query.canonical()
        assert text_of(once) == text_of(once.canonical())


def test_json_reads_back_to_the_same_question() -> None:
    asker = Questioner(SCHEMA, Random(3), divide=True)
    for _ in range(500):
        query = SumQuery((asker.number(3),), asker.condition(3)).canonical()
        assert text_of(SumQuery.from_json(json.loads(text_of(query)))) == text_of(query)
    grouped = histogram("c", "a", edges={"a": [0, 1, 2]}, other=True).query.canonical()
    assert text_of(SumQuery.from_json(json.loads(text_of(grouped)))) == text_of(grouped)


def shuffled(expression: Expression, random: Random) -> Expression:
    """The same expression with commuting operands swapped, comparisons flipped, ~~ added."""
    if not isinstance(expression, Operation):
        return expression
    parts = [shuffled(part, random) for part in expression.operands]
    if expression.name in ("add", "multiply", "and", "or", "least", "greatest", "eq", "ne"):
        random.shuffle(parts)
    if expression.name in ("and", "or", "add") and len(parts) > 2:
        parts = [operation(expression.name, *parts[:2]), *parts[2:]]
    again: Expression = operation(expression.name, *parts)
    if expression.name in ("lt", "le") and random.random() < 0.5:
        again = ~operation("le" if expression.name == "lt" else "lt", *reversed(parts))
    if expression.name in canonical.CONDITIONS and random.random() < 0.3:
        again = ~~again
    return again


def test_shuffled_spellings_share_a_digest() -> None:
    random = Random(4)
    asker = Questioner(SCHEMA, random)
    for _ in range(1_000):
        query = SumQuery((asker.number(3),), asker.condition(3))
        other = SumQuery((shuffled(query.terms[0], random),), shuffled(query.rows, random))
        assert text_of(query.canonical()) == text_of(other.canonical())


@pytest.mark.parametrize(
    "form",
    [
        [],
        "x",
        ["nonsense"],
        ["col"],
        ["col", 3],
        ["num", "abc"],
        ["num", "1/0"],
        ["num", "9" * 500],
        ["add", ["num", "1"]],
        ["date", "yesterday"],
        ["bool", 1],
        ["lt", ["col", "a"]],
        ["text", "\ud800"],
    ],
)
def test_json_outside_the_language_is_refused(form: object) -> None:
    with pytest.raises(InvalidQuery):
        canonical.from_json(form)


def test_deeply_nested_json_is_refused_not_crashed() -> None:
    form: list[object] = ["col", "a"]
    for _ in range(5_000):
        form = ["negate", form]
    with pytest.raises(InvalidQuery):
        canonical.from_json(form)


def test_a_condition_is_not_a_number_and_says_what_to_write() -> None:
    with pytest.raises(InvalidQuery, match="when"):
        canonical.value((a > 1) + 1)
    with pytest.raises(InvalidQuery, match="not a condition"):
        canonical.truth(a + 1)
    with pytest.raises(InvalidQuery, match=r"'age > 3' is not a condition; write col\("):
        count(where="age > 3").query.canonical()
    with pytest.raises(InvalidQuery, match="zero"):
        canonical.value(a / 0)


def test_choice_keeps_nulls_apart() -> None:
    """when(NULL) takes otherwise, so swapping branches under a negation is not the same."""
    one = canonical.value(when(f).then(1).otherwise(0))
    two = canonical.value(when(~f).then(0).otherwise(1))
    assert canonical.spelling(one) != canonical.spelling(two)


@pytest.mark.parametrize("text", ["1e20000000", "1e9", "9" * 300, "0x10", "1.5", " 1", "1/-2", "²"])
def test_json_numbers_are_plain_and_short(text: str) -> None:
    with pytest.raises(InvalidQuery):
        canonical.from_json(["num", text])


def test_nothing_is_provably_outside_a_list_that_holds_null() -> None:
    assert canonical.truth(~a.isin([1, None])) is canonical.FALSE
    assert canonical.spelling(canonical.truth(a.isin([1, None]))) == canonical.spelling(
        canonical.truth(a == 1)
    )
