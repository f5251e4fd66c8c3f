"""Made-up rows: within what is declared, marked, repeatable, and of no real table."""

from __future__ import annotations

import datetime
from pathlib import Path

import pandas as pd
import pytest

from sulq import Category, Database, Flag, InvalidQuery, Number, Promise, Schema, col, count, mean
from sulq.policy import TablePolicy, read_policy
from sulq.sandbox import open_dummy, write_dummies
from sulq.synthetic import WATERMARK, dummy_rows

SCHEMA = Schema(
    Number("age", 18, 99, step=1),
    Number("pay", -5.5, 1e5),
    Number("odd", 0, 2.5, step=1),
    Number("born", datetime.date(1900, 1, 1), datetime.date(2020, 1, 1)),
    Number("seen", datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1)),
    Category("city", ["Oslo", "Paris"], public=True),
    Category("code", [1, 2]),
    Category("note"),
    Flag("ill"),
)


def test_values_lie_within_what_is_declared():
    made = pd.DataFrame(dummy_rows(SCHEMA, 5_000))
    assert made.age.dropna().between(18, 99).all()
    assert made.age.dropna().map(lambda x: x == int(x)).all()
    assert made.pay.dropna().between(-5.5, 1e5).all()
    assert made.odd.dropna().between(0, 2.5).all()
    assert made.born.dropna().between(datetime.date(1900, 1, 1), datetime.date(2020, 1, 1)).all()
    assert set(made.city.dropna()) == {"Oslo", "Paris"}
    assert set(made.code.dropna()) == {1, 2}
    assert made[WATERMARK].all()
    assert 0.005 < made.ill.isna().mean() < 0.05


def test_the_same_seed_gives_the_same_rows():
    one, two = dummy_rows(SCHEMA, 50, 3), dummy_rows(SCHEMA, 50, 3)
    assert all((one[name] == two[name]).all() for name in one)
    assert (dummy_rows(SCHEMA, 50, 4)["age"] != one["age"]).any()


def test_a_dummy_table_answers_like_a_real_one():
    db = open_dummy(SCHEMA, Promise(8, 1e-6), 2_000)
    assert abs(float(db.ask(count(where=col("ill")))) - 980) < 300
    assert 0 < float(db.ask(mean("pay"))) < 1e5


def test_rows_of_persons_have_their_persons():
    schema = Schema(Flag("ill"), unit="person", max_rows=3)
    made = dummy_rows(schema, 10)
    assert made["person"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    assert open_dummy(schema, Promise(1, 1e-6), 10).size == 4


def test_a_sample_reads_no_row(monkeypatch):
    db = Database.open(pd.DataFrame({"ill": [True]}), Schema(Flag("ill")), Promise(1), ":memory:")
    db.close()
    made = db.sample_dummy(20)
    assert set(made) == {"ill", WATERMARK}
    with pytest.raises(InvalidQuery, match="whole number"):
        db.sample_dummy(0)


def test_a_sandbox_is_a_policy_of_its_own(tmp_path):
    table = TablePolicy.of("people", "real.parquet", "real.ledger", SCHEMA, Promise(1, "1e-6", 100))
    made = read_policy(write_dummies(table, tmp_path / "it's a sandbox", 200))["people"]
    assert made.schema() == SCHEMA
    assert made.promise == table.promise
    assert Path(made.source_path).name == "dummy.parquet"
    assert len(pd.read_parquet(made.source_path)) == 200
