"""A fit either refuses before its first charge or comes to its end: any learner, any column."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.learn.exact_oracle import ExactOracle
from tests.people import publish

from sulq import Category, Database, Flag, Number, Promise, Schema, SulqError, col
from sulq.learn import (
    PCA,
    SVD,
    AssociationRules,
    Classifier,
    Conjunction,
    DecisionList,
    DecisionTree,
    FactorAnalysis,
    GaussianMixture,
    KMeans,
    LinearDiscriminant,
    LinearRegression,
    LinearSVC,
    LinkAnalysis,
    LogisticRegression,
    NaiveBayes,
    Perceptron,
    SQLearner,
)

ROWS = 40
RANDOM = np.random.default_rng(1)
DAY = datetime.date(2020, 1, 1)


def some(*values: Any) -> list[Any]:
    return [values[place] for place in RANDOM.integers(0, len(values), ROWS)]


def days(most: int) -> list[datetime.date]:
    return [DAY + datetime.timedelta(days=int(day)) for day in RANDOM.integers(0, most, ROWS)]


# what a table may declare, and what its rows may hold
COLUMNS: dict[Any, Any] = {
    Category("zero_one", [0, 1]): some(0, 1),
    Category("one_zero", [1, 0]): some(0, 1),
    Category("one_two", [1, 2]): some(1, 2),
    Category("three", [0, 1, 2]): some(0, 1, 2),
    Category("signs", [-1, 1]): some(-1, 1),
    Category("large", [2**53, 2**53 + 1]): some(2**53, 2**53 + 1),
    Category("digits", ["0", "1"]): some("0", "1"),
    Category("truths", ["True", "False"]): some("True", "False"),
    Category("words", ["a", "b", "", "A"]): some("a", "b", ""),
    Category("only", ["x"]): some("x"),
    Category("only_0", [0]): some(0),
    Category("text"): some("x", "y"),
    Category("undeclared", ["p", "q"]): some("z"),
    Category("public_0", [0, 1], public=True): some(0, 1),
    Category("it's \"=", ["x'", '"y']): some("x'", '"y'),
    Category("label", ["rows", "class"]): some("rows", "class"),
    Flag("flag"): some(True, False),
    Flag("class"): some(True, False),
    Flag("public_flag", public=True): some(True, False),
    Flag("unknown"): pd.array([None] * ROWS, dtype="boolean"),
    Flag("always"): some(True),
    Number("whole", 0, 100, step=1): some(*range(0, 101, 7)),
    Number("bit", 0, 1, step=1): some(0, 1),
    Number("sevens", 0, 100, step=7): some(0, 7, 14),
    Number("wide_step", 0, 1, step=5): some(0, 1),
    Number("real", -1.5, 2.5): RANDOM.normal(0, 1, ROWS),
    Number("tiny", 0, 1e-8): RANDOM.random(ROWS) * 1e-8,
    Number("huge", -(2**53), 2**53): RANDOM.normal(0, 1e15, ROWS),
    Number("day", DAY, datetime.date(2021, 1, 1)): days(366),
    Number("two_days", DAY, datetime.date(2020, 1, 2)): days(2),
    Number("rows", 0, 10): RANDOM.random(ROWS) * 10,
    Number("gaps", 0, 1): np.where(RANDOM.random(ROWS) < 0.5, np.nan, 0.5),
    Number("void", 0, 1): np.full(ROWS, np.nan),
    Number("still", 0, 1): np.full(ROWS, 0.5),
}
SCHEMA = Schema(*COLUMNS)
FRAME = pd.DataFrame({column.name: values for column, values in COLUMNS.items()})
NAMES = tuple(FRAME.columns)
CONDITIONS = [
    col("real") > -100,  # every row
    col("real") > 100,  # none
    col("zero_one") == 1,
    ~col("flag"),
    col("words").isin(["a"]),
    col("void").is_null(),
]
CLASSES = [
    *(Classifier(method="discriminant"), Classifier(method="tree"), Classifier(method="grid")),
    *(LogisticRegression(max_iter=2), LinearSVC(max_iter=2), Perceptron(max_iter=2)),
    *(LinearDiscriminant(), DecisionTree(max_depth=2), NaiveBayes(), Conjunction(), DecisionList()),
]
OTHERS = [
    *(PCA(1), PCA(2), SVD(1), FactorAnalysis(1, max_iter=5), KMeans(2), GaussianMixture(2)),
    *(AssociationRules(), LinkAnalysis()),
]

NUMBERS = LinearRegression()
LEARNERS = [*CLASSES, *OTHERS, NUMBERS]


@pytest.fixture(scope="module")
def table() -> Database:
    return publish(FRAME, SCHEMA, Promise(8, "1e-6"))


def ends(learner: Any, table: Database, features: list[str], label: Any = None) -> bool:
    """Whether it learned; else it was refused before any charge. Anything else fails the test."""
    oracle = ExactOracle(table)
    learner = clone(learner).set_params(on_noise="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            learner.fit(oracle, features, label)
        except SulqError:
            assert oracle.asked == [], (learner, features, label)
            return False
        if hasattr(learner, "predict"):
            assert len(learner.predict(FRAME[features].head(3))) == 3
    return True


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "learner",
    [
        pytest.param(each, marks=[pytest.mark.slow] * (each is CLASSES[1]))  # a choice of trees
        for each in CLASSES
    ],
    ids=repr,
)
def test_whatever_is_predicted(learner, table):
    two = {"zero_one", "one_zero", "one_two", "signs", "large", "digits", "truths", "flag"}
    features = ["class", "public_flag" if isinstance(learner, SQLearner) else "real"]
    for name in NAMES:
        others = [feature for feature in features if feature != name]
        assert ends(learner, table, others, name) or name not in two
    for condition in CONDITIONS:
        ends(learner, table, features, condition)
    assert not ends(learner, table, ["zero_one", "class"], "zero_one")


def learns_from_them_all(learner: Any, table: Database, groups: Sequence[Sequence[str]]) -> None:
    label = "flag" if learner in CLASSES else "whole" if learner is NUMBERS else None
    for group in groups:
        ends(learner, table, [name for name in group if name != label], label)


@pytest.mark.sample(9)
@pytest.mark.parametrize(
    "learner",
    [
        pytest.param(each, marks=[pytest.mark.slow] * isinstance(each, KMeans | GaussianMixture))
        for each in LEARNERS
    ],
    ids=repr,
)
def test_whatever_is_learned_from(learner, table):
    """Columns a few at a time; what some learners do not take is apart."""
    cells = [column.name for column in SCHEMA.columns if isinstance(column, Flag)]
    cells += [c.name for c in SCHEMA.columns if isinstance(c, Category) and c.values]
    numbers = [column.name for column in SCHEMA.columns if isinstance(column, Number)]
    groups = [cells[0::3], cells[1::3], cells[2::3], numbers[0::2], numbers[1::2], ["text", "flag"]]
    learns_from_them_all(learner, table, [*groups, ["only", "only_0"], ["bit"], ["undeclared"]])


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_every_column_alone_and_beside_another(learner, table):
    pairs = [[name, "class"] for name in NAMES if name != "class"]
    learns_from_them_all(learner, table, [*([name] for name in NAMES), *pairs])


def test_whatever_number_is_predicted(table):
    for name in NAMES:
        if name != "void":  # of which a count without noise says for sure: no row
            assert ends(NUMBERS, table, ["flag", "words"], name) == isinstance(SCHEMA[name], Number)


@pytest.mark.sample(7)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(
    "learner",
    [LogisticRegression(), LinearSVC(), Perceptron(), Classifier(), DecisionList()],
    ids=repr,
)
def test_integers_that_equal_no_and_yes_are_classes_under_noise_too(learner, noise, neighbours):
    """`(False, True) == (0, 1)`: four learners asked whether y is True, after 3.6 credits."""
    promise = Promise(8, 0 if noise == "laplace" else "1e-6", neighbours=neighbours)
    data = FRAME[["zero_one", "label", "class"]]
    schema = Schema(*(SCHEMA[name] for name in data.columns))
    learner = clone(learner).set_params(on_noise="warn")
    with publish(data, schema, promise) as db, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.fit(db, ["label", "class"], "zero_one")
    assert learner.classes_.tolist() == [0, 1]
    assert set(learner.predict(data)) <= {0, 1}
