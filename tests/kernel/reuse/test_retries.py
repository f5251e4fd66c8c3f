"""A derived answer under a key is the same on every retry, whatever was asked since."""

from __future__ import annotations

import random
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

from sulq import (
    Category,
    Database,
    Flag,
    Number,
    Promise,
    Schema,
    col,
    count,
    histogram,
    mean,
    total,
)
from sulq.errors import InvalidQuery
from sulq.kernel.ledger.ledger import Ledger

SCHEMA = Schema(
    Number("age", 0, 120, step=1), Number("inc", 0, 1), Flag("ill"), Category("city", ["a", "b"])
)


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 130, 2_000),
            "inc": rng.random(2_000),
            "ill": rng.random(2_000) < 0.5,
            "city": rng.choice(["a", "b"], 2_000),
        }
    )


def test_what_other_questions_helped_to_see_is_not_forgotten() -> None:
    """A count that follows from a total only where other questions cut the ages."""
    extra = [total("age"), mean("age"), count(where=col("age") >= 18)]
    db = Database.open(people(), SCHEMA, Promise(1, 1e-6), ":memory:")
    for question in extra:
        db.ask(question, credits=0.1)
    db.ask(total("age", where=col("age") >= 120), credits=1)
    asked = count(where=col("age") == 120)
    first = db.ask(asked, credits=0.1, key="k")
    again = db.ask(asked, credits=0.1, key="k")
    assert (again.value, again.credits) == (first.value, 0)


def random_question(rng: random.Random) -> object:
    age = rng.choice([0, 18, 30, 65, 120])
    where = rng.choice(
        [
            col("age") >= age,
            col("age") == age,
            col("ill"),
            col("ill") & (col("age") < age),
            ~col("ill"),
            col("city") == "a",
            (col("city") == "b") | col("ill"),
        ]
    )
    kind = rng.randrange(5)
    if kind < 2:
        return count(where=where)
    if kind == 2:
        return total("age", where=where)
    if kind == 3:
        return histogram("city", where=where)
    return histogram("age", edges=[0, 18, 30, 65, 120], where=where)


def test_retries_repeats_and_later_questions() -> None:
    rng = random.Random(5)
    for _ in range(3):
        db = Database.open(people(), SCHEMA, Promise(1, 1e-6), ":memory:")
        kept = []
        for number in range(25):
            question, credits = random_question(rng), rng.choice([0.05, 0.1])
            answer = db.ask(question, credits=credits, key=f"k{number}")
            kept.append((question, credits, f"k{number}", answer))
        before = db.remaining
        for question, credits, key, answer in kept:
            again = db.ask(question, credits=credits, key=key)
            assert np.array_equal(again.value, answer.value)
            db.ask(question, credits=credits)
        assert db.remaining == before  # what was had is free for ever


def test_wide_answers_are_repeated_and_topped_up_but_not_searched_for() -> None:
    """A search for hundreds of sums among hundreds would cost seconds; their own draws are near."""
    wide = [f"c{i}" for i in range(300)]
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"c": rng.choice(wide, 5_000), "ill": rng.random(5_000) < 0.5})
    schema = Schema(Category("c", wide), Flag("ill"))
    db = Database.open(table, schema, Promise(1, 1e-6), ":memory:")
    first = db.ask(histogram("c"), credits=1)
    assert db.ask(histogram("c"), credits=1).credits == 0
    finer = db.ask(histogram("c"), credits=3)
    assert float(finer.credits) == pytest.approx(2, rel=1e-6)
    assert finer.standard_error.max() < first.standard_error.max()
    db.ask(histogram("c", where=col("ill")), credits=1)
    some = count(where=col("ill") & col("c").isin(wide[:20]))  # few sums, of many: still free
    assert db.ask(some, credits=0.01).credits == 0


def test_a_stored_mean_stays_the_answer_when_more_is_bought() -> None:
    db = Database.open(people(), SCHEMA, Promise(1, 1e-6), ":memory:")
    first = db.ask(mean("age"))
    db.ask(total("age"), credits=2)
    again = db.ask(mean("age"))
    assert (again.value, again.interval()) == (first.value, first.interval())
    assert again.credits == 0


def test_wide_questions_do_not_crowd_out_a_narrow_one() -> None:
    """A count that is part of a stored vector stays free after many groups by other columns."""
    rng = np.random.default_rng(2)
    table = people().assign(x=rng.integers(0, 1000, 2_000), y=rng.integers(0, 1000, 2_000))
    schema = Schema(*SCHEMA.columns, Number("x", 0, 1000, step=1), Number("y", 0, 1000, step=1))
    db = Database.open(table, schema, Promise(1, 1e-6, 1000), ":memory:")
    db.sql("SELECT COUNT(*), COUNT(age), COUNT_IF(ill) FROM people")
    for name in ("x", "y"):
        db.ask(histogram(name, edges=range(0, 1001, 10)))
    db.ask(histogram("x", "city", edges={"x": range(0, 1001, 20)}))
    assert db.ask(count(where=col("ill"))).credits == 0


@pytest.mark.parametrize("text", ["COUNT(*) FROM t WHERE ill", "MEDIAN(age) FROM t"])
def test_a_price_never_reads_what_is_paid_for_and_not_yet_answered(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WITHIN a percentage looks at stored answers; the rows are for the question alone."""
    database = Database.open(people(), SCHEMA, Promise(1, 1e-6), ":memory:", name="t")
    database.grant("ann", 40)
    ann = database.as_analyst("ann")

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "settle", dies)
        patch.setattr(Ledger, "settle_all", dies)
        with pytest.raises(KeyboardInterrupt):
            ann.sql(f"SELECT {text}")
    head = database.ledger.head
    monkeypatch.setattr(database.engine, "prepare", lambda program: dies)
    plain = ann.quote_sql(f"SELECT {text}")
    assert plain.credits > 0
    with suppress(InvalidQuery):
        assert ann.quote_sql(f"SELECT {text} WITHIN 5 PERCENT").credits > 0
    assert database.ledger.head == head
