"""What is said where a newcomer slips: the right remedy, numbers that people read, no inside."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.people import SCHEMA, frame, publish

from sulq import (
    BudgetSpent,
    Category,
    Database,
    Flag,
    InvalidQuery,
    Number,
    Promise,
    Schema,
    col,
    count,
    histogram,
    mean,
    quantiles,
    total,
)
from sulq.answers.oracle import Credits
from sulq.kernel.engines import open_engine
from sulq.learn import PCA, LogisticRegression


@pytest.mark.parametrize("condition", [col("age") > 5, ~col("smoker"), col("city").isin(["Oslo"])])
def test_a_condition_to_count_goes_into_where(condition: object) -> None:
    """Its old remedy, when(...).then(1).otherwise(0), counts every row."""
    with pytest.raises(InvalidQuery, match=r"count\(where=\.\.\.\)") as caught:
        count(condition)  # type: ignore[arg-type]
    assert "[" not in str(caught.value)
    assert count("age") is not None and count(col("age") + 1) is not None
    for statistic in (total, mean):
        with pytest.raises(InvalidQuery, match=r"when\(condition\)") as caught:
            publish(frame(20)).ask(statistic(condition))  # type: ignore[arg-type]
        assert "[" not in str(caught.value)


@pytest.mark.parametrize("learner", [LogisticRegression(), PCA()])
def test_fitting_a_frame_says_what_fit_takes(learner: object) -> None:
    rows = frame(30)
    for given in (rows[["age"]], rows[["age"]].to_numpy(), "people.csv", None):
        with pytest.raises(InvalidQuery, match=r"fit takes a published table.*Database\.open"):
            learner.fit(given, rows["smoker"])  # type: ignore[attr-defined]
    with publish(rows) as db:
        with pytest.raises(
            InvalidQuery, match="name of a column or a condition, got a Series"
        ) as e:
            LogisticRegression().fit(db, ["age"], rows["smoker"])
        assert "True" not in str(e.value)  # no value of a row
        assert db.remaining == 100


def test_credits_print_as_decimals_and_are_fractions() -> None:
    with publish(frame(2_000)) as db:
        db.ask(count(where=col("smoker")), credits=Fraction(100, 3))
        left = db.remaining
        assert repr(left) == str(left) == "66.6666"  # what is left rounds down
        assert isinstance(left, Fraction) and left == Fraction(left) != Fraction("66.6666")
        assert hash(left) == hash(Fraction(left)) and type(left * 1) is Fraction
        for again in (pickle.loads(pickle.dumps(left)), copy.deepcopy(left)):
            assert again == left
        assert repr(db.left_for("owner")) == repr(db.statement().left) == "66.6666"
        assert repr(db.statement().spent) == "33.3333"
        assert repr(Credits(1_234_567)) == "1234567"
        learnt = PCA(1, credits=Fraction(10, 3), on_noise="warn").fit(db, ["age", "income"])
        assert "/" not in repr(learnt.credits_) and "Fraction" not in repr(learnt.credits_)


def test_a_name_with_signs_is_quoted_for_who_forgot() -> None:
    rows = pd.DataFrame({"hours-per-week": np.arange(30.0), "age": np.arange(30.0)})
    schema = Schema(Number("hours-per-week", 0, 99), Number("age", 0, 99))
    with Database.open(rows, schema, Promise(1, 1e-6), ":memory:", name="t") as db:
        with pytest.raises(InvalidQuery, match='in double quotes, "hours-per-week"') as caught:
            db.sql("SELECT AVG(hours-per-week) FROM t WHERE age > 3")
        assert caught.value.alternatives == ('SELECT AVG("hours-per-week") FROM t WHERE age > 3',)
        with pytest.raises(InvalidQuery) as caught:
            db.sql("SELECT AVG(age - height) FROM t")
        assert "double quotes" not in str(caught.value)


def test_who_has_no_credits_left_is_named_as_rows() -> None:
    schema = Schema(Flag("ill"), Category("region", ["North", "South"], public=True))
    rows = pd.DataFrame({"ill": [True, False] * 20, "region": ["North", "South"] * 20})
    with Database.open(rows, schema, Promise(1, 1e-6, 10), ":memory:") as db:
        db.ask(count(where=col("ill") & (col("region") == "North")), credits=10)
        with pytest.raises(
            BudgetSpent, match=r"for the rows with region=North, which this touches"
        ):
            db.ask(count(where=col("ill")))
    with publish(frame(20)) as db, pytest.raises(BudgetSpent) as caught:
        db.ask(count(where=col("smoker")), credits=101)
    assert "account" not in str(caught.value) and "everyone" not in str(caught.value)


@pytest.mark.parametrize(
    "question", [count(where=col("smoker")), total("income"), mean("age"), histogram("blood")]
)
def test_a_bar_that_is_too_dear_says_what_is_left_would_buy(question: object) -> None:
    schema = Schema(*(column for column in SCHEMA.columns if column.name != "city"))
    with publish(frame(200), schema) as db:
        bought = db.quote(question, credits=100).interval()[1]
        with pytest.raises(BudgetSpent, match="What is left would buy") as caught:
            db.ask(question, within=0.01)
        told = float(str(caught.value).split("+-")[1].split()[0].replace(",", ""))
        assert told == pytest.approx(float(np.max(bought)), rel=1e-3)
        with pytest.raises(BudgetSpent) as caught:
            db.ask(quantiles("age", [0.5]), within=1e-6)
        assert "would buy" not in str(caught.value)
        assert db.remaining == 100


def test_names_that_differ_in_capitals_are_said_to(tmp_path: Path) -> None:
    schema = Schema(Number("age", 0, 120))
    for header, said in (("age,Age", "differ only in capitals"), ("age,age", "a different name")):
        path = tmp_path / "people.csv"
        path.write_text(f"{header}\n1,2\n")
        with pytest.raises(InvalidQuery, match=said):
            open_engine(path, schema)
