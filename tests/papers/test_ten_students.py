"""S2.1, the example of the lecture notes: ten students, three questions, and what Eve believes.

Name and gender are public, the grade is private. The noise table, the answer 1 to "how many women
failed", the prior of 40 % and the belief (printed as 0.43) are the notes'; here each is computed
by the product and by enumeration in fractions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import pandas
import pytest

from sulq import Category, Database, Promise, Schema, col, count
from sulq.beliefs import Observation, posterior, semantic_of_pure
from sulq.kernel.query.sum_query import Statistic

RATIO = Fraction(3, 5)
PRIOR = Fraction(2, 5)
STUDENTS = (
    ("Aisha", "female", "fail"),
    ("Benny", "male", "pass"),
    ("Erica", "female", "fail"),
    ("Fabio", "male", "fail"),
    ("Johan", "male", "fail"),
    ("Ming", "male", "pass"),
    ("Orhan", "male", "pass"),
    ("Vijay", "male", "pass"),
    ("Vuk", "male", "pass"),
    ("Yoshi", "male", "pass"),
)
QUESTIONS: dict[str, tuple[Statistic, int]] = {
    "how many passed": (count(where=col("grade") == "pass"), 6),
    "did Orhan pass": (count(where=(col("name") == "Orhan") & (col("grade") == "pass")), 1),
    "how many women failed": (
        count(where=(col("gender") == "female") & (col("grade") == "fail")),
        2,
    ),
}
TOLD = 1


def geometric(t: int) -> Fraction:
    """(1 - a) / (1 + a) a^|t|."""
    return (1 - RATIO) / (1 + RATIO) * RATIO ** abs(t)


@pytest.fixture
def db() -> Iterator[Database]:
    frame = pandas.DataFrame(STUDENTS, columns=["name", "gender", "grade"])
    schema = Schema(
        Category("name", [name for name, _, _ in STUDENTS], public=True),
        Category("gender", ["female", "male"], public=True),
        Category("grade", ["pass", "fail"]),
    )
    with Database.open(frame, schema, Promise(3 * math.log(5 / 3), queries=3), ":memory:") as db:
        yield db


def test_the_printed_table_of_the_noise() -> None:
    """Exactly A with 25 %, within 1 with 55 %, within 2 with 73 %."""
    assert [geometric(t) for t in (0, 1, 2)] == [Fraction(1, 4), Fraction(3, 20), Fraction(9, 100)]
    within = [sum(geometric(t) for t in range(-h, h + 1)) for h in (0, 1, 2)]
    assert within == [Fraction(1, 4), Fraction(11, 20), Fraction(73, 100)]


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_product_draws_that_table_for_every_question(db: Database, name: str) -> None:
    question, truth = QUESTIONS[name]
    answer = db.ask(question)
    (law,) = answer.laws
    for t in range(-9, 10):
        assert law.pmf(t) == pytest.approx(float(geometric(t)), rel=1e-12)
    assert answer.credits == 1
    assert answer.value == answer.values[0]
    assert db.engine.prepare(db.bind(question).sums)() == [truth]  # the sum it was added to


def belief_by_enumeration(told: int) -> Fraction:
    """P(Aisha failed | women who failed + N = told), over both women's grades."""
    weight = {
        (aisha, erica): (PRIOR if aisha else 1 - PRIOR)
        * (PRIOR if erica else 1 - PRIOR)
        * geometric(told - aisha - erica)
        for aisha, erica in product((0, 1), repeat=2)
    }
    return (weight[1, 0] + weight[1, 1]) / sum(weight.values())


def test_eve_believes_14_of_33(db: Database) -> None:
    """0.084 / 0.198: 42 per cent, where the notes print 0.43."""
    exact = belief_by_enumeration(TOLD)
    assert exact == Fraction(84, 198) == Fraction(14, 33)
    assert float(exact) == pytest.approx(0.4242424242, abs=1e-10)
    assert math.log(5 / 3) == pytest.approx(0.5108256238, abs=1e-10)
    (law,) = db.ask(QUESTIONS["how many women failed"][0]).laws
    pairs = list(product((0, 1), repeat=2))
    prior = {pair: math.prod(0.4 if failed else 0.6 for failed in pair) for pair in pairs}
    after = posterior(prior, [Observation(TOLD, law, {pair: sum(pair) for pair in pairs})])
    assert after[1, 0] + after[1, 1] == pytest.approx(14 / 33, rel=1e-12)


def test_no_answer_moves_the_belief_further_than_one_epsilon_allows() -> None:
    odds = PRIOR / (1 - PRIOR)
    for told in range(-6, 9):
        belief = belief_by_enumeration(told)
        assert RATIO <= belief / (1 - belief) / odds <= 1 / RATIO
        assert abs(float(belief - PRIOR)) <= semantic_of_pure(math.log(5 / 3))
    assert belief_by_enumeration(8) == belief_by_enumeration(20)  # beyond 2 the answer says no more
