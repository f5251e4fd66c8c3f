"""S2.1, the lecture notes' example: what three noisy counts tell about the tenth student.

Taken from the notes: ten students, three counting questions about grades, geometric noise with
P(0) = 1/4 and ratio 3/5 (so epsilon = ln(5/3)), and the posterior 14/33 = 42 %, printed there as
0.43. The grades and answers below are ours, chosen to meet those figures: nine grades are known
to the adversary, the tenth is 1 to 9, equally likely beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest

from sulq.noise.distributions import DiscreteLaplace

RATIO = Fraction(3, 5)
GRADES = range(1, 10)
KNOWN = (2, 3, 3, 4, 5, 5, 6, 8, 9)

Question = Callable[[int], bool]


def middling(grade: int) -> bool:
    return 4 <= grade <= 6


def high(grade: int) -> bool:
    return grade >= 5


def low(grade: int) -> bool:
    return grade <= 4


# Each answer is one above the count of the nine: "the tenth is among them", says each alone.
ANSWERS: tuple[tuple[Question, int], ...] = ((middling, 5), (high, 6), (low, 5))


def geometric(t: int) -> Fraction:
    """(1 - a) / (1 + a) a^|t|."""
    return (1 - RATIO) / (1 + RATIO) * RATIO ** abs(t)


def likelihood(tenth: int, answers: tuple[tuple[Question, int], ...]) -> Fraction:
    chance = Fraction(1)
    for question, answer in answers:
        count = sum(map(question, (*KNOWN, tenth)))
        chance *= geometric(answer - count)
    return chance


def posterior(event: Question, answers: tuple[tuple[Question, int], ...]) -> Fraction:
    """Bayes' rule with a uniform prior, in fractions."""
    total = sum(likelihood(grade, answers) for grade in GRADES)
    return sum(likelihood(grade, answers) for grade in GRADES if event(grade)) / total


def test_the_noise_of_the_example() -> None:
    assert geometric(0) == Fraction(1, 4)
    assert sum(geometric(t) for t in range(-400, 401)) == pytest.approx(1, abs=1e-12)
    epsilon = math.log(5 / 3)
    assert epsilon == pytest.approx(0.5108256237659907, rel=1e-12)
    law = DiscreteLaplace(1 / Fraction(epsilon))
    for t in range(5):
        assert law.pmf(t) == pytest.approx(float(geometric(t)), rel=1e-12)


def test_the_posterior_is_14_33_and_so_42_per_cent() -> None:
    belief = posterior(low, ANSWERS)
    assert belief == Fraction(14, 33)
    assert f"{float(belief):.2f}" == "0.42"  # the notes print 0.43


def test_a_question_and_its_complement_cancel() -> None:
    """With coins of their own; with shared coins their difference would be exact (S2.5)."""
    for event in (low, middling):
        assert posterior(event, ANSWERS) == posterior(event, ANSWERS[:1])


def test_no_answers_whatever_move_the_odds_by_more_than_three_epsilon() -> None:
    prior = Fraction(4, 9)
    for noise in range(-3, 4):
        answers = tuple((question, answer + noise) for question, answer in ANSWERS)
        belief = posterior(low, answers)
        change = belief / (1 - belief) / (prior / (1 - prior))
        assert RATIO**3 <= change <= RATIO**-3
    alone = tuple((question, 5) for question in (low, low, low))
    belief = posterior(low, alone)
    assert belief / (1 - belief) / (prior / (1 - prior)) == RATIO**-3  # and this much is reached
