"""One statement is few questions, priced first and asked together or not at all."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from tests.learn.exact_oracle import ExactOracle
from tests.sql.small_table import LOOKUPS, SCHEMA, rows

from sulq import (
    BudgetSpent,
    Database,
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
    variance,
)
from sulq.sql.api import ask_sql, explain_sql, quote_sql
from sulq.sql.evaluate.linear_forms import Estimate, Noisy

GAUSSIAN = Promise(epsilon=1, delta=1e-6, queries=1000)


@pytest.fixture
def database():
    with Database.open(rows(), SCHEMA, GAUSSIAN, ":memory:") as database:
        yield database


@pytest.fixture
def exact(database):
    return ExactOracle(database)


def spent(database):
    return GAUSSIAN.credits - database.remaining


# --- few questions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "builder"),
    [
        ("SELECT COUNT(*) FROM people WHERE smoker", count(where=col("smoker"))),
        ("SELECT COUNT(age) FROM people WHERE smoker", count("age", where=col("smoker"))),
        ("SELECT SUM(age) FROM people", total("age")),
        ("SELECT AVG(age) FROM people WHERE age > 3", mean("age", where=col("age") > 3)),
        ("SELECT AVG(age) FILTER (WHERE smoker) FROM people", mean("age", where=col("smoker"))),
        ("SELECT COUNT(age), SUM(age), AVG(age) FROM people", mean("age")),
        ("SELECT AVG(income), STDDEV(income) FROM people", variance("income")),
        (
            "SELECT city, COUNT(*) FROM people WHERE city IS NOT NULL GROUP BY city",
            histogram("city", where=col("city").is_not_null()),
        ),
        ("SELECT MEDIAN(age), MIN(age), QUANTILE(age, 0.9) FROM people", quantiles("age", [0.5])),
    ],
)
def test_a_statement_shares_its_answer_with_the_builder(text, builder, database):
    database.ask(builder)
    before = spent(database)
    assert quote_sql(database, text).credits == 0
    assert database.sql(text).credits == 0
    assert spent(database) == before


def test_all_linear_aggregates_are_one_question_and_quantiles_one_per_column(exact):
    found = ask_sql(
        exact,
        "SELECT COUNT(*), SUM(age), AVG(income), VAR_POP(balance), COUNT_IF(age > 3),"
        " MEDIAN(age), QUANTILE(age, 0.9), MAX(age), MEDIAN(balance) FROM people WHERE smoker",
    )
    assert len(exact.asked) == len(found.receipts) == 4  # the variance is cheaper by itself
    assert found.credits == sum(credits for _, credits in exact.asked)


def test_joint_price_is_the_price_of_the_vector(database):
    text = "SELECT city, COUNT(*), SUM(balance), COUNT_IF(smoker) FROM people GROUP BY city"
    found = database.quote_sql(text)
    (question,) = found.plan.questions
    assert found.credits == database.quote(question).credits == Fraction(9, 2)


def test_what_is_cheaper_apart_is_asked_apart(database):
    found = database.quote_sql("SELECT AVG(age), AVG(income) FROM people WHERE member")
    assert len(found.plan.questions) == 2
    assert found.credits == Fraction(5, 2)  # as two means; as one vector it would be 4


def test_number_of_rows_is_public(database):
    found = database.sql("SELECT COUNT(*) AS n, AVG(age) AS a FROM people")
    assert found.cell("n").interval() == (400, 400)
    assert found.credits == Fraction(5, 4)  # as mean(age) alone
    assert database.sql("SELECT COUNT(*) AS n FROM people").receipts == ()


def test_number_of_rows_is_private_under_add_remove():
    promise = Promise(epsilon=1, delta=1e-6, queries=100, neighbours="add-remove")
    with Database.open(rows(), SCHEMA, promise, ":memory:") as database:
        assert database.sql("SELECT COUNT(*) AS n FROM people").credits == 1


def test_group_keys_alone_are_public_and_free(database):
    found = database.sql("SELECT city FROM people GROUP BY city")
    assert [row[0] for row in found.rows] == [*SCHEMA["city"].values, None]
    assert spent(database) == 0


# --- all or nothing -----------------------------------------------------------------------------


def test_nothing_is_asked_if_not_all_can_be_paid(database):
    database.grant("ann", 3)
    before = spent(database)
    ann = database.as_analyst("ann")
    text = "SELECT COUNT(*), MEDIAN(age), MEDIAN(balance) FROM people WHERE smoker"
    quote = ann.quote_sql(text)
    assert (quote.affordable, quote.left_before) == (False, 3)
    with pytest.raises(BudgetSpent, match="nothing was asked"):
        ann.sql(text)
    assert (spent(database), ann.remaining) == (before, 3)


def test_credits_are_for_the_whole_statement(database):
    text = "SELECT COUNT(*), MEDIAN(age) FROM people WHERE smoker"
    plain = database.quote_sql(text).credits
    found = database.sql(text, credits=6)
    assert found.credits == pytest.approx(6, rel=1e-9)
    assert plain < 6
    assert spent(database) == pytest.approx(6, rel=1e-9)


def test_a_repeat_is_free(database):
    text = "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY city"
    first, again = database.sql(text), database.sql(text.lower().replace("people", "x"))
    assert len(first) == len(again)
    assert (first.credits > 0, again.credits) == (True, 0)


def test_key_makes_a_retry_free(database):
    text = "SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM people WHERE smoker"
    first = database.sql(text, key="report")
    second = database.sql(text, key="report")
    assert first.records() == second.records()
    assert second.credits == 0


def test_quote_and_explain_spend_nothing(database):
    text = "SELECT city, COUNT(*), MEDIAN(age) FROM people GROUP BY city"
    assert "question 2" in explain_sql(database, text)
    lines = [row[0] for row in database.sql("explain " + text).rows]
    assert any("asked together or not at all" in line for line in lines)
    assert spent(database) == 0
    assert database.quote_sql(text).credits == database.sql(text).credits


# --- what the answer says -----------------------------------------------------------------------


def test_ratio_of_sums_knows_what_they_share(database):
    found = database.sql("SELECT SUM(balance) - SUM(balance) AS nothing FROM people")
    assert found.cell("nothing").interval() == (0, 0)


def test_shares_add_up_to_one(database):
    found = database.sql(
        "SELECT smoker, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY smoker",
        credits=900,
    )
    assert sum(cell.value for cell in found.column("share")) == pytest.approx(1)


def test_interval_ends_are_those_of_the_column(database):
    found = database.sql(
        "SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high FROM people"
        " WHERE smoker",
        confidence=0.8,
    )
    assert found.cell("n").interval(0.8) == (found.cell("low").value, found.cell("high").value)


def test_noise_of_a_cell_is_the_law_of_the_question(database):
    found = database.sql("SELECT COUNT(*) AS n FROM people WHERE smoker").cell("n")
    same = database.ask(count(where=col("smoker")))
    assert isinstance(found, Noisy)
    assert found.standard_error == pytest.approx(same.standard_error, rel=1e-9)
    assert abs(found.value - same.value) <= 0.5


def test_derived_sums_that_may_share_noise_state_their_own_intervals(exact):
    class Derived(ExactOracle):
        def ask(self, *args, **terms):
            return replace(super().ask(*args, **terms), sources=(1, 2))

    plain = "SELECT COUNT(*) AS n, AVG(age) AS a, VAR_POP(age) AS v, SUM(age) AS s, MEDIAN(age)"
    text = plain + " AS m FROM people WHERE smoker"
    usual, derived = ask_sql(exact, text), ask_sql(Derived(exact.database), text)
    for name in "navs":
        assert not isinstance(derived.cell(name), Noisy)
        assert derived.cell(name).value == pytest.approx(usual.cell(name).value)
        low, high = derived.cell(name).interval()
        assert low <= derived.cell(name).value <= high


def test_having_order_and_limit_cost_nothing(database):
    database.sql("SELECT city, COUNT(*) AS n FROM people GROUP BY city")
    found = database.sql(
        "SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING n > 0 ORDER BY n DESC LIMIT 2"
    )
    assert found.credits == 0
    assert [cell.value for cell in found.column("n")] == sorted(
        (cell.value for cell in found.column("n")), reverse=True
    )


def test_cells_that_where_rules_out_are_not_shown(exact):
    found = ask_sql(
        exact, "SELECT city, FLOOR(age / 10) AS d, COUNT(*) FROM people"
        " WHERE city IN ('Oslo', 'Paris') AND age BETWEEN 20 AND 39 GROUP BY city, d",
    )  # fmt: skip
    assert [row[:2] for row in found.rows] == [("Oslo", 2), ("Oslo", 3), ("Paris", 2), ("Paris", 3)]


def test_values_outside_declared_bounds_are_moved_to_them(table_of=rows):
    schema = Schema(Number("balance", -10, 10, step=1))
    with Database.open(table_of(), schema, GAUSSIAN, ":memory:") as database:
        found = ask_sql(ExactOracle(database), "SELECT MIN(balance), MAX(balance) FROM people")
    assert [cell.value for cell in found.rows[0]] == [-10, 10]


# --- WITHIN -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS x FROM people WHERE smoker WITHIN 50 CONFIDENCE 95",
        "SELECT SUM(balance) AS x FROM people WITHIN 900 CONFIDENCE 90",
        "SELECT AVG(age) AS x FROM people WHERE member WITHIN 3",
        "SELECT COUNT(*) - COUNT_IF(smoker) AS x FROM people WHERE member WITHIN 20",
        "SELECT city, COUNT(*) AS x FROM people GROUP BY city WITHIN 30",
    ],
)
def test_price_of_a_target_is_the_least_that_meets_it(text, database):
    quote = database.quote_sql(text, rows=400)
    amount = quote.plan.select.target.amount
    ((_, half),) = quote.half_widths
    assert float(amount) * 0.98 <= half <= float(amount) * 1.000001
    if "AVG" not in text:
        found = database.sql(text)
        assert f"WITHIN {float(amount):g}: met" in found.notes
        assert found.credits == quote.credits


def test_target_may_cost_less_than_the_plain_price(database):
    text = "SELECT COUNT(*) FROM people WHERE smoker"
    assert database.quote_sql(text + " WITHIN 1000").credits < database.quote_sql(text).credits


def test_percentage_is_priced_from_the_stated_rows(database):
    text = "SELECT COUNT(*) AS n FROM people WHERE smoker WITHIN 50 PERCENT CONFIDENCE 95"
    quote = database.quote_sql(text, rows=100)
    same = database.quote_sql("SELECT COUNT(*) AS n FROM people WHERE smoker WITHIN 50")
    assert quote.credits == same.credits


def test_percentage_is_priced_from_an_earlier_answer(database):
    text = "SELECT COUNT(*) AS n FROM people WHERE member"
    with pytest.raises(InvalidQuery, match="never from the rows"):
        database.sql(text + " WITHIN 10 PERCENT")
    noisy = database.sql(text, credits=200).cell("n").value
    assert database.quote_sql(text + " WITHIN 10 PERCENT").credits == 0  # it is met already
    finer = database.quote_sql(text + " WITHIN 6 PERCENT")
    ((_, half),) = finer.half_widths
    assert half == pytest.approx(0.06 * noisy, rel=0.02)
    assert finer.credits > 0


def test_a_missed_target_is_said(database):
    found = database.sql("SELECT AVG(age) AS a FROM people WHERE smoker WITHIN 9", rows=400)
    assert any("met by 0 of 1" in note for note in found.notes)  # 98 rows match, not 400


def test_target_and_credits_exclude_each_other(database):
    with pytest.raises(InvalidQuery, match="not both"):
        database.sql("SELECT COUNT(*) FROM people WHERE smoker WITHIN 5", credits=3)


# --- OPTIONS ------------------------------------------------------------------------------------


def test_epsilon_caps_what_a_statement_spends(database):
    head = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={}) COUNT(*) AS n, MEDIAN(age) FROM"
    tight = database.quote_sql(head.format("0.01") + " people WHERE smoker")
    loose = database.quote_sql(head.format("1") + " people WHERE smoker")
    plain = database.quote_sql("SELECT COUNT(*) AS n, MEDIAN(age) FROM people WHERE smoker")
    assert tight.credits == pytest.approx(0.19016, rel=1e-3)
    assert tight.credits < loose.credits == plain.credits
    assert "more noise" in tight.note


def test_epsilon_of_the_whole_promise_is_the_whole_budget():
    from sulq.sql.plan.pricing import most_credits

    for promise in (GAUSSIAN, Promise(epsilon=2, queries=50)):
        cap = most_credits({"epsilon": promise.epsilon}, promise, "row", 1)
        assert cap == pytest.approx(promise.credits, rel=1e-6)
    half = most_credits({"epsilon": Fraction(1)}, Promise(epsilon=2, queries=50), "row", 1)
    assert half == 25  # pure noise adds up


def test_options_do_not_go_with_more(database):
    head = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.01) COUNT(*) FROM people WHERE smoker"
    )
    with pytest.raises(InvalidQuery, match="allows"):
        database.sql(head, credits=10)
    with pytest.raises(InvalidQuery, match="allows"):
        database.sql(head + " WITHIN 1")


def test_groups_of_a_person_are_what_the_owner_declared():
    from sulq.sql.plan.pricing import most_credits

    assert most_credits({"max_groups_contributed": Fraction(4)}, GAUSSIAN, "person_id", 4) is None
    with pytest.raises(InvalidQuery, match="up to 4 rows of a person"):
        most_credits({"max_groups_contributed": Fraction(3)}, GAUSSIAN, "person_id", 4)
    with pytest.raises(InvalidQuery, match="protects persons"):
        most_credits({"privacy_unit_column": "age"}, GAUSSIAN, "person_id", 4)


# --- lookups ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lookups", "reason"),
    [
        ({"regions": {"key": ["Oslo", "Oslo"], "name": ["a", "b"]}}, "twice"),
        ({"regions": {"key": ["Oslo"], "name": ["a", "b"]}}, "differ in length"),
        ({"regions": {"key": "Oslo", "name": "a"}}, "a list of values"),
        ({"regions": ["Oslo"]}, "columns by name"),
        ({"regions": {"key": [object()], "name": ["a"]}}, "cannot use a object"),
        (["regions"], "tables by name"),
        (None, "public lookup tables only"),
    ],
)
def test_bad_lookup_is_refused(lookups, reason, database):
    text = "SELECT name, COUNT(*) FROM people JOIN regions ON city = key GROUP BY name"
    with pytest.raises(InvalidQuery, match=reason):
        database.sql(text, lookups=lookups)


def test_lookup_merges_cells_before_the_noise(database):
    text = "SELECT half, COUNT(*) AS n FROM people JOIN regions ON city = key GROUP BY half"
    merged = database.sql(text, lookups=LOOKUPS)
    single = database.sql("SELECT city, COUNT(*) AS n FROM people GROUP BY city")
    errors = {cell.standard_error for cell in (*merged.column("n"), *single.column("n"))}
    assert max(errors) == pytest.approx(min(errors))
    assert all(isinstance(cell, Estimate) for cell in merged.column("n"))


def test_several_questions_are_one_transaction(database, monkeypatch):
    """A statement whose second question fails after the first was charged cannot be."""

    def never(*_args, **_terms):
        raise AssertionError("asked one by one")

    monkeypatch.setattr(database, "ask", never)
    found = database.sql("SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM people WHERE smoker")
    assert len(found.receipts) == 2
    assert found.credits == spent(database) > 1


def test_mean_of_nothing_is_anything(database):
    """Also where all can see that no row matches: then there is no noise, and no mean."""
    found = database.sql("SELECT AVG(age) AS a, VAR_POP(age) AS v FROM people WHERE age IS NULL")
    assert found.credits == 0
    assert found.cell("a").interval() == (0, 120)
    assert found.cell("v").interval() == (0, 3600)
    assert found.cell("a").note == "no row matches"
