"""SELECTs around released tables: one plan with one price, and post-processing that is free."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.learn.exact_oracle import ExactOracle
from tests.sql.small_table import SCHEMA, duck, rows

from sulq import BudgetSpent, Database, InvalidQuery, Promise
from sulq.errors import Reason
from sulq.sql.api import ask_sql

COUNTED = "SELECT city, COUNT(*) AS n FROM people WHERE age > 3 GROUP BY city"


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.setenv("SULQ_STATE", str(tmp_path))
    promise = Promise(epsilon=1, delta=1e-6, queries=100)
    with Database.open(rows(), SCHEMA, promise, ":memory:") as database:
        yield database


def test_a_union_is_charged_together_or_not_at_all(database):
    text = "SELECT COUNT_IF(smoker) AS n FROM people UNION ALL SELECT COUNT_IF(member) FROM people"
    database.grant("ann", Fraction(3, 2))
    ann = database.as_analyst("ann")
    assert ann.quote_sql(text).credits == 2
    with pytest.raises(BudgetSpent):
        ann.sql(text)
    assert ann.remaining == Fraction(3, 2)
    assert database.sql(text).credits == 2
    assert database.sql(text).credits == 0


def test_what_two_parts_ask_is_asked_once(database):
    twice, due = f"{COUNTED} UNION ALL {COUNTED}", database.quote_sql(COUNTED).credits
    assert database.quote_sql(twice).credits == due
    found = database.sql(twice)
    assert len(found) == 10 and found.credits == due
    half = len(found) // 2
    assert [r[1].value for r in found.rows[:half]] == [r[1].value for r in found.rows[half:]]


def test_a_union_shows_equal_rows_once(database):
    assert len(database.sql(f"{COUNTED} UNION {COUNTED}")) == 5


def test_shared_noise_cancels_between_tables(database):
    joined = database.sql(
        f"WITH a AS ({COUNTED}), b AS ({COUNTED}) SELECT a.city, a.n - b.n AS d FROM a JOIN b"
        " ON a.city = b.city"
    )
    assert [row[1].interval() for row in joined.rows] == [(0, 0)] * 4  # NULL joins nothing


def test_groups_of_groups_carry_the_noise_of_their_parts(database):
    text = (
        "SELECT grade, SUM(n) AS n FROM (SELECT city, grade, COUNT(*) AS n FROM people"
        " WHERE age > 3 GROUP BY city, grade) t GROUP BY grade"
    )
    inner = "SELECT city, grade, COUNT(*) AS n FROM people WHERE age > 3 GROUP BY city, grade"
    due = database.quote_sql(inner).credits
    found, one = database.sql(text), database.sql(inner)
    assert (found.credits, one.credits) == (due, 0)
    (_, half), *_ = database.quote_sql(inner).half_widths
    for row in found.rows:
        parts = [cell.unrounded for _, grade, cell in one.rows if grade == row[0]]
        assert row[1].unrounded.value == pytest.approx(sum(part.value for part in parts))
        low, high = row[1].unrounded.interval(0.95)
        assert high - low <= 2.01 * 5**0.5 * half
        assert high >= row[1].unrounded.value + 0.99 * 5**0.5 * half


# --- ROLLUP -------------------------------------------------------------------------------------


def test_levels_are_added_up_where_that_is_the_better_buy(database):
    fine = "SELECT city, smoker, COUNT(*) AS n FROM people WHERE smoker IS NOT NULL"
    levels = f"{fine} GROUP BY GROUPING SETS ((city, smoker), city)"  # a city is two cells
    quote, alone = database.quote_sql(levels), database.quote_sql(f"{fine} GROUP BY city, smoker")
    assert quote.credits == alone.credits and "added up from finer ones" in quote.note
    assert quote.half_widths[0][1] == pytest.approx(2**0.5 * alone.half_widths[0][1])
    found = database.sql(levels)
    cells = {row[:2]: row[2].unrounded for row in found.rows[:10]}
    for city, _, n in found.rows[10:]:
        parts = [cells[city, False], cells[city, True]]
        assert n.unrounded.value == pytest.approx(sum(part.value for part in parts))
        low, high = n.unrounded.interval()
        assert (high - max(low, 0)) <= 2 * quote.half_widths[0][1] * 1.01


def test_levels_are_asked_where_that_is_the_better_buy(database):
    text = "SELECT city, grade, COUNT(*) AS n FROM people GROUP BY ROLLUP (city, grade)"
    quote = database.quote_sql(text)
    alone = database.quote_sql("SELECT city, COUNT(*) FROM people GROUP BY city").credits
    assert quote.credits == 2 * alone and "asked by themselves" in quote.note
    assert "(city)" in quote.note and "the number of rows is public" in quote.note
    found = database.sql(text)
    assert found.credits == quote.credits and len(found) == 20 + 5 + 1
    assert found.rows[-1][2].interval() == (400, 400)  # public, and no sum of noisy ones


def test_the_group_null_is_not_the_total(database):
    found = ask_sql(
        ExactOracle(database),
        "SELECT city, COUNT(*) AS n, GROUPING(city) AS g FROM people GROUP BY ROLLUP (city)"
        " HAVING city IS NULL ORDER BY g",
        table="people",
    )
    assert [(row[0], row[1].value, row[2]) for row in found.rows] == [(None, 40, 0), (None, 400, 1)]


def test_order_and_limit_go_over_all_levels(database):
    text = "SELECT city, COUNT(*) AS n FROM people GROUP BY ROLLUP (city) ORDER BY COUNT(*) DESC"
    ours = ask_sql(ExactOracle(database), f"{text}, city LIMIT 3", table="people")
    theirs = duck(rows()).execute(f"{text}, city LIMIT 3").fetchall()
    assert [(row[0], row[1].value) for row in ours.rows] == theirs


# --- scalars ------------------------------------------------------------------------------------


def test_a_scalar_carries_its_own_noise(database):
    beside = "SELECT COUNT(*) - (SELECT COUNT(*) FROM people WHERE member) AS d FROM people"
    (_, half), *_ = database.quote_sql("SELECT COUNT(*) FROM people WHERE smoker").half_widths
    found = database.sql(f"{beside} WHERE smoker")
    low, high = found.rows[0][0].interval(0.95)
    assert found.credits == 2 and high - low == pytest.approx(2 * half * 2**0.5, rel=0.01)


def test_a_scalar_of_no_row_is_null(database):
    none = "(SELECT city FROM people GROUP BY city HAVING city = 'Rome' LIMIT 1)"
    assert (
        database.sql(f"SELECT {none} AS c, COUNT(*) AS n FROM people WHERE age > 3").rows[0][0]
        is None
    )


# --- open text and limits -----------------------------------------------------------------------


def test_keys_that_nobody_declared_stand_in_a_table_too(database):
    inner = "SELECT comment, COUNT(*) AS n FROM people GROUP BY comment"
    plain = database.sql(inner, credits=50)
    found = database.sql(f"SELECT comment AS c, n FROM ({inner}) t WHERE n > 0", credits=50)
    assert [row[0] for row in found.rows] == [row[0] for row in plain.rows]
    assert found.credits == 0
    with pytest.raises(InvalidQuery, match="asked for alone"):
        database.quote_sql(f"{inner} UNION ALL {inner}")


def test_names_that_double_are_refused(database):
    doubled = [f"WITH a0 AS ({COUNTED})"]
    doubled += [
        f"a{at} AS (SELECT * FROM a{at - 1} UNION ALL SELECT * FROM a{at - 1})"
        for at in range(1, 30)
    ]
    with pytest.raises(InvalidQuery) as refusal:
        database.quote_sql(f"{', '.join(doubled)} SELECT * FROM a29")
    assert refusal.value.reason is Reason.TOO_LARGE


def test_a_large_join_of_groups_is_refused(database):
    fine = 'SELECT age, "Blood Pressure" AS b, COUNT(*) AS n FROM people GROUP BY 1, 2'
    with pytest.raises(InvalidQuery, match="pairs of groups"):
        database.quote_sql(f"WITH a AS ({fine}), b AS ({fine}) SELECT a.n FROM a, b")


@pytest.mark.parametrize(
    "test", ["city LIKE 3", "LEFT(city, 'x') = 'a'", "city ~ '('", f"city LIKE '{'a' * 201}'"]
)
def test_what_a_function_of_a_key_cannot_do_is_found_out_free(database, test):
    with pytest.raises(InvalidQuery):
        database.sql(f"SELECT * FROM ({COUNTED}) t WHERE {test}")
    assert database.remaining == 100
