"""Parameters of learners: each is declared, and a wrong one is refused before anything is asked."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from tests.learn.test_every_learner import LEARNERS
from tests.people import publish

from sulq import InvalidQuery
from sulq.errors import Reason
from sulq.learn import KMeans
from sulq.learn.parameters import InstanceOf, Interval, OneOf, Whole, check_parameter

CHECKED_WITH_THE_TABLE = {"init", "means_init"}  # their shape follows from the columns


@pytest.mark.parametrize("name", LEARNERS)
def test_every_parameter_is_declared(name):
    learner = LEARNERS[name][0]
    assert set(learner.get_params()) - CHECKED_WITH_THE_TABLE == set(
        learner.parameter_constraints()
    )


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_wrong_value_is_refused_by_name_and_costs_nothing(name):
    learner, features, label = LEARNERS[name]
    db = publish()
    for parameter in learner.parameter_constraints():
        wrong = clone(learner).set_params(**{parameter: "wrong"})
        for act in (wrong.quote, wrong.fit):
            with pytest.raises(
                InvalidQuery, match=f"^{parameter} must be .*, got 'wrong'$"
            ) as told:
                act(db, features, label)
            assert told.value.reason is Reason.INVALID_VALUE
    assert db.remaining == 100


@pytest.mark.parametrize(
    ("constraint", "allowed", "refused"),
    [
        (Whole(2, 6), [2, 6, np.int64(3)], [1, 7, 2.0, True, "2", None]),
        (Interval(0, 1, "[)"), [0, 0.5, Fraction(1, 3)], [1, -1e-9, math.nan, True, "0"]),
        (Interval(0, math.inf), [1e300, 1], [0, math.inf, math.nan]),
        (OneOf(True, False, None), [True, False, None], [0, 1, "True"]),
        (InstanceOf(dict, "a dict"), [{}], [[], None]),
    ],
)
def test_constraints_hold_for_what_they_say(constraint, allowed, refused):
    assert all(constraint.allows(value) for value in allowed)
    assert not any(constraint.allows(value) for value in refused)


def test_the_error_says_what_was_got_and_all_that_is_wanted():
    with pytest.raises(InvalidQuery) as told:
        check_parameter("rounds", 0, KMeans.parameter_constraints()["rounds"])
    assert str(told.value) == "rounds must be a whole number from 1 or None, got 0"
