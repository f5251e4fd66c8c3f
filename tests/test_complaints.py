"""What users of other tools complain about, one test for each complaint that belongs here."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from tests.learn.exact_oracle import ExactOracle
from tests.people import frame, publish

from sulq import (
    Category,
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
    quantiles,
    total,
)
from sulq.errors import BudgetSpent, SulqError
from sulq.sql.api import ask_sql


def test_how_many_questions_are_left() -> None:
    """Every reply says it, and it is an exact number."""
    db = publish(frame(2_000))
    quote = db.quote(count(where=col("smoker")))
    db.ask(count(where=col("smoker")))
    assert quote.left_after == db.remaining == 99


def test_the_epsilon_typed_is_the_epsilon_paid() -> None:
    """One price list: what is quoted is what is charged is what the ledger has."""
    db = publish(frame(2_000))
    for question in (count(where=col("smoker")), mean("income"), histogram("blood"), total("age")):
        quoted, before = db.quote(question).credits, db.remaining
        answer = db.ask(question)
        assert quoted == answer.credits == before - db.remaining
    assert float(db.statement().promise.epsilon) == 1


def test_a_batch_is_priced_before_it_runs_and_fits_a_budget() -> None:
    db = publish(frame(2_000))
    plan = db.plan([count(where=col("smoker")), mean("age"), histogram("blood")], credits=12)
    assert plan.credits <= 12
    assert db.remaining == 100
    answers = plan.ask()
    assert sum(answer.credits for answer in answers) == plan.credits == 100 - db.remaining


def test_error_bars_come_with_results_and_before_them() -> None:
    db = publish(frame(2_000))
    bar = db.quote(count(where=col("smoker"))).interval()[1]
    low, high = db.ask(count(where=col("smoker"))).interval()
    assert high - low == pytest.approx(2 * bar, abs=2)


def test_alpha_is_the_level_it_says() -> None:
    """A wider confidence gives a wider bar, and 0.95 is not 0.05."""
    answer = publish(frame(2_000)).ask(count(where=col("smoker")))
    widths = [
        high - low for low, high in (answer.interval(level) for level in (0.05, 0.5, 0.95, 0.999))
    ]
    assert widths == sorted(widths)
    assert widths[2] == pytest.approx(2 * 1.96 * answer.standard_error, abs=2)


def test_many_quantiles_cost_one_question() -> None:
    db = publish(frame(20_000))
    one = db.quote(quantiles("income", [0.5])).credits
    assert db.quote(quantiles("income", [k / 10 for k in range(1, 10)])).credits == one


def test_a_median_in_sql() -> None:
    db = publish(frame(20_000), promise=Promise(8, "1e-6", 100))
    truth = frame(20_000).income.median()
    (record,) = db.sql("SELECT MEDIAN(income) AS middle FROM people").records()
    assert record["middle_low"] <= truth * 1.05
    assert record["middle_high"] >= truth * 0.95


def test_grouped_medians_are_never_silent() -> None:
    db = publish(frame(20_000), promise=Promise(8, "1e-6", 100))
    found = db.sql("SELECT blood, MEDIAN(income) AS middle FROM people GROUP BY blood")
    known = {record["blood"]: record for record in found.records()}
    for blood in ("A", "B", "0"):
        assert math.isfinite(known[blood]["middle"])
    nobody = known[None]  # no such row: nearly always no reading, and the interval says so
    assert 0 <= nobody["middle_low"] <= nobody["middle_high"] <= 500_000
    assert nobody["middle"] is not None or "too few rows match to tell" in str(found)


def test_a_public_join_works() -> None:
    data = frame(5_000)
    oracle = ExactOracle(publish(data))
    names = {"city": ["Oslo", "Paris"], "country": ["Norway", "France"]}
    found = ask_sql(
        oracle,
        "SELECT c.country, COUNT(*) AS n FROM people JOIN c ON people.city = c.city"
        " GROUP BY c.country",
        lookups={"c": names},
    ).records()
    assert {r["country"]: r["n"] for r in found if r["country"]} == {
        "Norway": (data.city == "Oslo").sum(),
        "France": (data.city == "Paris").sum(),
    }


def test_an_average_of_an_expression() -> None:
    """Bounds of `avg(a - b)` follow from those of a and b."""
    data = frame(5_000)
    found = ask_sql(ExactOracle(publish(data)), "SELECT AVG(income - 100 * age) AS x FROM people")
    (record,) = found.records()
    assert record["x"] == pytest.approx((data.income - 100 * data.age).mean(), rel=1e-4)


def test_missing_bounds_mean_no_answer_and_never_no_noise() -> None:
    with pytest.raises(InvalidQuery):
        Number("income", None, None)  # type: ignore[arg-type]
    db = publish(frame(100))
    with pytest.raises(InvalidQuery, match="no column"):
        db.ask(total("salary"))
    assert db.remaining == 100


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_one_odd_value_changes_no_answer_by_more_than_its_bound(value: float | None) -> None:
    """NaN, infinities and NULL: the sums stay where a row can move them."""
    schema = Schema(Number("x", 0, 10))
    sums = []
    for last in (5.0, value):
        table = pd.DataFrame({"x": [1.0] * 50 + [last]})
        db = Database.open(table, schema, Promise(1, "1e-6"), ":memory:")
        bound = db.bind(total("x"))
        sums.append(db.engine.exact_sums(bound.sums)[0] * float(bound.terms[0].step))
    assert abs(sums[0] - sums[1]) <= 10
    assert all(map(math.isfinite, sums))


def test_a_clip_is_the_last_thing_that_happens() -> None:
    """An expression after a clamp cannot leave its proved range (stale truncation bounds)."""
    db = publish(frame(100))
    narrow = db.bind(total((col("income").clip(0, 1000) * 3).clip(0, 2000)))
    assert (narrow.terms[0].low, float(narrow.terms[0].high)) == (0, pytest.approx(2000, abs=0.1))
    grown = db.bind(total(col("income").clip(0, 1000) * 3))
    assert (grown.terms[0].low, float(grown.terms[0].high)) == (0, pytest.approx(3000, abs=0.1))


@pytest.mark.usefixtures("settled")
def test_vanished_groups_have_a_shown_threshold_and_a_noisy_remainder() -> None:
    rng = np.random.default_rng(3)
    notes = ["flu"] * 3_000 + ["cold"] * 2_000 + [f"rare {i}" for i in range(40)]
    table = pd.DataFrame({"note": rng.permutation(notes)})
    schema = Schema(Category("note"))
    db = Database.open(table, schema, Promise(2, "1e-5", 10), ":memory:")
    found = db.keys("note")
    assert {"flu", "cold"} <= set(found.keys)
    assert found.threshold > 0
    assert not any(key.startswith("rare") for key in found.keys)
    assert found.held_back == pytest.approx(found.total - sum(found.counts))  # all that is said


def test_errors_say_what_why_and_the_remedy_and_cost_nothing() -> None:
    db = publish(frame(100))
    wrong = [
        lambda: db.ask(total("incom")),
        lambda: db.ask(count(where=col("age") > "old")),
        lambda: db.ask("count"),
        lambda: db.sql("SELECT * FROM people"),
        lambda: db.sql("SELEC COUNT(*)"),
        lambda: db.ask(count(where=col("smoker")), credits=10**9),
    ]
    for act in wrong:
        with pytest.raises(SulqError) as refusal:
            act()
        said = str(refusal.value)
        assert len(said) > 20
        for internal in ("Traceback", "duckdb", "sqlglot", "NoneType", "object at 0x"):
            assert internal not in said
    assert db.remaining == 100


def test_bounds_are_declared_once_not_in_every_question() -> None:
    db = publish(frame(2_000))
    assert db.ask(mean("income", where=col("smoker"))).standard_error is not None


def test_negative_counts_are_explained() -> None:
    table = pd.DataFrame({"rare": [False] * 1_000, "k": [1] * 1_000})
    schema = Schema(Flag("rare"), Number("k", 0, 40, step=1))
    db = Database.open(table, schema, Promise("0.1", "1e-6", 100), ":memory:")
    answers = [db.ask(count(where=col("rare") & (col("k") == k))) for k in range(30)]
    negative = [answer for answer in answers if answer.value < 0]
    assert negative  # thirty draws around 0 are all positive once in 2^30
    assert negative[0].nonnegative().value == 0
    assert negative[0].interval()[0] >= 0


def test_a_budget_that_is_spent_says_so_and_repeats_stay_free() -> None:
    db = publish(frame(500), promise=Promise(1, "1e-6", 2))
    first = db.ask(count(where=col("smoker")))
    db.ask(count(where=col("age") > 50))
    with pytest.raises(BudgetSpent, match="repeat an old one"):
        db.ask(count(where=col("age") > 30))
    assert db.ask(count(where=col("smoker"))).value == first.value


def test_a_notebook_is_written_on_rows_that_cannot_be_real() -> None:
    from sulq.sandbox import open_dummy

    real = publish(frame(500))
    sandbox = open_dummy(real.schema, real.promise, 1_000)
    sandbox.sql("SELECT blood, COUNT(*) AS n FROM people GROUP BY blood")
    assert real.remaining == 100
    with pytest.raises((TypeError, Refused)):
        open_dummy(real.schema, real.promise, source="people.parquet")  # type: ignore[call-arg]
