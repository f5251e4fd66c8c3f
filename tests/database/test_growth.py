"""A table gets new rows: the promise over its whole history, sizes, and what is never combined."""

from __future__ import annotations

import pandas as pd
import pytest
from tests.people import SCHEMA, frame

from sulq import (
    BudgetSpent,
    Database,
    Flag,
    InvalidQuery,
    Number,
    Promise,
    Refused,
    Schema,
    col,
    count,
    histogram,
    mean,
)
from sulq.kernel.schema.promise import Population

PROMISE = Promise(epsilon=1, delta="1e-6", queries=100)
SMOKERS = count(where=col("smoker"))


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def old():
    return frame(400)


@pytest.fixture(scope="module")
def new(old):
    return pd.concat([old, frame(150, seed=9)], ignore_index=True)


def opened(tmp_path, rows, schema=SCHEMA, promise=PROMISE, **more):
    return Database.open(
        rows, schema, promise, tmp_path / "people.ledger", name="people", **more, publish=True
    )


def test_one_account_over_all_versions(tmp_path, old, new):
    with opened(tmp_path, old) as db:
        assert (db.size, db.ask(SMOKERS, credits=60).credits) == (400, 60)
    with pytest.raises(Refused, match="`sulq grow` it"):
        opened(tmp_path, new)
    with opened(tmp_path, new, grown_from="spring") as db:
        assert (db.size, db.remaining) == (550, 40)  # public sizes, of each version
        again = db.ask(SMOKERS, credits=30)
        assert again.credits == 30  # not a repeat: it is another count
        with pytest.raises(BudgetSpent):
            db.ask(mean("age"), credits=11)
        assert "version 2 of the data" in str(db.statement())
    with opened(tmp_path, new, grown_from="spring") as db:  # a second time changes nothing
        assert len(db.statement().statement.grown) == 1
        assert db.ask(SMOKERS, credits=30).credits == 0
    with opened(tmp_path, new) as db:
        assert db.remaining == 10
    with pytest.raises(Refused, match="is not what was published"):
        opened(tmp_path, old)


def test_nothing_is_combined_across_versions(old, new):
    db = Database.open(old, SCHEMA, PROMISE, ":memory:")
    db.ask(histogram("blood"), credits=20)
    first = db.ask(SMOKERS, credits=10)
    kept = db.quote(count(where=col("blood") == "A"), credits=10)
    assert kept.repeat  # a cell of the histogram
    larger = db.grow(new, reason="spring")
    assert not larger.quote(count(where=col("blood") == "A"), credits=10).repeat
    finer = larger.ask(SMOKERS, credits=20)
    assert finer.credits == 20  # a finer answer pays no top-up of the old one
    assert finer.receipt.body["version"] != first.receipt.body["version"]
    assert larger.receipt(first.receipt.seq) == first.receipt
    with pytest.raises(Refused, match="has grown"):
        db.ask(mean("age"))
    assert larger.statement().spent == 50


def test_a_crossing_mean_is_of_the_new_rows(old, new):
    big = Database.open(old, SCHEMA, Promise(50, "1e-6", 100), ":memory:").grow(new)
    assert big.ask(mean("age"), credits=40).value == pytest.approx(new["age"].mean(), abs=1)
    assert big.ask(SMOKERS, credits=40).value == pytest.approx(new["smoker"].sum(), abs=5)


def test_the_grid_follows_the_number_of_rows(tmp_path):
    schema = Schema(Number("x", 0, 1), Flag("y"))
    few = pd.DataFrame({"x": [0.5] * 10, "y": [True] * 10})
    many = pd.concat([few] * 20_000, ignore_index=True)
    one = opened(tmp_path, few, schema)
    bits = one.schema.bits
    one.close()
    with opened(tmp_path, many, schema, grown_from=True) as db:
        assert db.schema.bits >= bits
        assert db.ask(mean("x"), credits=90).value == pytest.approx(0.5, abs=0.01)
    opened(tmp_path, many, schema).close()


WIDER = Schema(*SCHEMA.columns, Number("secret", 0, 10**9, step=1))


def test_new_rows_and_a_new_column_are_one_step(tmp_path, old, new):
    """newuser F7: grow said amend first, and amend said grow."""
    with opened(tmp_path, old) as db:
        db.grant("ann", 10)
        db.ask(SMOKERS, credits=60)
        head = db.ledger.head
    with opened(tmp_path, new, WIDER, Promise(2, "1e-6", 100), grown_from="spring") as db:
        told = db.statement().statement
        assert (len(told.amended), len(told.grown), db.ledger.head - head) == (1, 1, 2)
        assert (db.size, told.amended[0].reason) == (550, "spring")
        assert 100 / 4 > told.spent.credits_fraction > 60 / 4  # epsilon 2: a credit is more
        assert db.as_analyst("ann").ask(mean("secret"), credits=1).credits == 1
        assert not db.quote(SMOKERS, credits=1).repeat  # of the old rows
    with opened(tmp_path, new, WIDER, Promise(2, "1e-6", 100), grown_from="spring") as db:
        assert len(db.statement().statement.grown) == 1  # a second time changes nothing
    with pytest.raises(Refused, match="amended"):
        opened(tmp_path, new)


def test_an_open_table_takes_rows_and_columns_together(old, new):
    db = Database.open(old, SCHEMA, PROMISE, ":memory:")
    db.ask(SMOKERS, credits=60)
    wider = db.grow(new, schema=WIDER, budget=6)
    assert (wider.remaining, wider.ask(mean("secret"), credits=5).credits) == (6, 5)
    with pytest.raises(Refused, match=r"has grown|was amended"):
        db.ask(mean("age"))


def test_what_cannot_be_amended_does_not_come_with_rows(tmp_path, old, new):
    opened(tmp_path, old).close()
    other = Schema(*(column for column in SCHEMA.columns if column.name != "income"))
    for wrong, said in (
        ({"schema": other}, "stays declared"),
        ({"promise": Promise("1/2", "1e-6", 100)}, "only be raised"),
        ({"population": Population("town", PROMISE)}, "nothing else"),
    ):
        with pytest.raises(Refused, match=said):
            opened(tmp_path, new, **wrong, grown_from=True)
    with opened(tmp_path, old) as db:
        assert (db.statement().statement.grown, db.statement().statement.amended) == ((), ())
    with opened(tmp_path, old, grown_from=True) as db:  # nothing grew: nothing happened
        assert db.statement().statement.grown == ()
        with pytest.raises(Refused, match="nothing has grown"):
            db.grow(old)
    with pytest.raises(Refused):
        Database.open(new, SCHEMA, PROMISE, tmp_path / "none.ledger", name="p", grown_from=True)


def test_add_remove_tables_grow_without_telling_their_size(old, new):
    promise = Promise(1, "1e-6", 100, neighbours="add-remove")
    db = Database.open(old, SCHEMA, promise, ":memory:").grow(new)
    assert db.size is None
    assert db.ask(count(), credits=10).credits == 10


# --- budgets of versions ------------------------------------------------------------------------


def test_a_version_spends_its_own_budget_and_nothing_comes_back(tmp_path, old, new):
    with opened(tmp_path, old, version_budget=60) as db:
        assert db.remaining == 60
        db.grant("ann", 80)  # a grant outlives the version: the lifetime cap bounds it
        assert db.as_analyst("ann").remaining == 60
        db.revoke("ann")
        db.ask(SMOKERS, credits=55)
        with pytest.raises(BudgetSpent, match="present version of the data may still spend"):
            db.ask(mean("age"), credits=6)
        with pytest.raises(BudgetSpent, match="cannot be reserved"):
            db.reserve(6)
        with db.reserve(4), pytest.raises(BudgetSpent):  # what is reserved is there
            db.ask(mean("age"), credits=2)
        assert db.quote(mean("age"), credits=2).left_after == 3
    with opened(tmp_path, old, version_budget=70) as db:  # a new one goes with new rows
        assert db.remaining == 5
    with pytest.raises(Refused, match="another budget"):
        opened(tmp_path, old, version_budget=70, grown_from=True)
    with opened(tmp_path, new, grown_from="spring", version_budget=30) as db:
        assert db.remaining == 30
        db.ask(SMOKERS, credits=20)
        first, second = db.statement().statement.versions
        assert (first.spent, first.budget, first.newcomers) == (55, 60, 75)
        assert (second.spent, second.budget, second.newcomers) == (20, 30, 20)
        text = str(db.statement())
        assert "adds over the versions they are in: 55 on version 1, 20 on version 2;" in text
        assert "who came with version 2 has lost at most 20" in text
        assert "this version may spend 30 credits of the lifetime budget and has spent 20" in text
    larger = pd.concat([new, new.head(3)], ignore_index=True)
    with opened(tmp_path, larger, grown_from=True, version_budget=90) as db:
        assert db.remaining == 25  # of 100: the cap stays, whatever a version may spend
    with opened(tmp_path, larger) as db:  # reopened without saying it: what the ledger has
        assert db.statement().statement.versions[-1].budget == 90


def test_newcomers_lose_by_outside_releases_too(old, new):
    db = Database.open(old, SCHEMA, PROMISE, ":memory:")
    db.charge_outside(7, reason="before they came")
    db.ask(SMOKERS, credits=10)
    db = db.grow(new)
    db.ask(SMOKERS, credits=5)
    db.charge_outside(50, reason="yearbook")
    said = "version 2 has lost at most 55 of the credits, 50 of them released elsewhere"
    assert said in str(db.statement())
    db = db.grow(old)  # what was booked on version 2 stays with those who came with it
    first, second, third = db.statement().statement.versions
    assert (first.newcomers, second.newcomers, third.newcomers) == (72, 55, 0)
    db = db.amend(promise=Promise(epsilon=1, delta="1e-6", queries=200), source=old)
    assert abs(db.statement().statement.versions[1].newcomers - 110) < 1e-3


def test_a_budget_is_inherited_and_never_refills(old, new):
    db = Database.open(old, SCHEMA, PROMISE, ":memory:", version_budget=20)
    db.ask(SMOKERS, credits=20)
    for larger in (Promise(2, "1e-6", 100), Promise(3, "1e-6", 177)):
        db = db.amend(promise=larger, source=old)
        assert db.remaining == 0
    budget = db.statement().statement.versions[0].budget
    assert 0 < budget < 20  # the same loss, in credits that are worth more
    db = db.grow(new)
    assert db.remaining == db.statement().statement.versions[1].budget == budget
    db = db.grow(old, budget=177)
    assert db.remaining == 177 - db.statement().spent


def test_outside_releases_and_amendments_move_no_versions_budget(tmp_path, old, new):
    path = tmp_path / "people.parquet"
    old.to_parquet(path)
    with Database.open(
        path, SCHEMA, PROMISE, tmp_path / "l", version_budget=30, publish=True
    ) as db:
        db.ask(SMOKERS, credits=10)
        db.charge_outside(50, reason="yearbook")
        assert db.remaining == 20  # 60 of 100 are gone, and the version has 20 of its 30
        assert db.statement().statement.versions[0].spent == 10
        db.charge_outside(25, reason="yearbook, again")
        assert db.remaining == 15
    new.to_parquet(path)
    with Database.open(path, SCHEMA, PROMISE, tmp_path / "l", grown_from=True) as db:
        twice = Promise(epsilon=1, delta="1e-6", queries=200)
        with db.amend(promise=twice) as amended:  # a credit is worth half as much
            first, second = amended.statement().statement.versions
            assert abs(first.spent - 20) < 1e-3 and first.budget is not None
            assert second.spent == 0
            assert abs(amended.remaining - 30) < 1e-3


def test_strata_go_on_from_the_worst(old, new):
    schema = Schema(Number("age", 0, 120, step=1), Flag("smoker", public=True))
    db = Database.open(old, schema, PROMISE, ":memory:", version_budget=40)
    db.ask(count(where=col("smoker") & (col("age") > 30)), credits=40)  # charges smokers alone
    assert db.ask(count(where=~col("smoker") & (col("age") > 30)), credits=40).credits == 40
    larger = db.grow(new, budget=10)
    assert larger.statement().statement.versions[0].spent == 40  # not 80: nobody was in both
    assert larger.remaining == 10


def test_no_budget_where_people_have_their_own(old):
    promise = Promise(1, "1e-6", queries=10, neighbours="add-remove")
    with pytest.raises(InvalidQuery, match="leave version_budget out"):
        Database.open(old, SCHEMA, promise, ":memory:", individual=True, version_budget=3)
    with pytest.raises(InvalidQuery, match="above 0"):
        Database.open(old, SCHEMA, PROMISE, ":memory:", version_budget=0)
