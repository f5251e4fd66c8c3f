"""SELECTs in conditions of rows: asked first, put as constants, reserved together."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from tests.learn.exact_oracle import ExactOracle
from tests.sql.small_table import SCHEMA, duck, rows

from sulq import BudgetSpent, Database, InvalidQuery, Promise, col, count
from sulq.sql.api import ask_sql
from sulq.sql.parse.statement import SubqueryValues, read_statement

ABOVE = "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people)"


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.setenv("SULQ_STATE", str(tmp_path))
    promise = Promise(epsilon=1, delta=1e-6, credits=100)
    with Database.open(rows(), SCHEMA, promise, ":memory:", name="people") as database:
        yield database


def test_both_are_paid_and_a_repeat_is_free(database):
    quote = database.quote_sql(ABOVE)
    assert quote.credits == Fraction(9, 4) and quote.first[0].credits == Fraction(5, 4)
    found = database.sql(ABOVE)
    assert found.credits == quote.credits and len(found.receipts) == 2
    assert database.remaining == 100 - Fraction(9, 4)
    again = database.sql(ABOVE)
    assert again.credits == 0 and again.rows[0][0].value == found.rows[0][0].value


def test_the_constant_is_the_released_value_and_is_named(database):
    found = database.sql(ABOVE)
    (mean,) = database.sql("SELECT AVG(age) FROM people").rows[0]
    (note,) = [note for note in found.notes if "asked first" in note]
    assert f"the constant {mean.value!r};" in note and "do not cover its noise" in note
    plain = database.sql(f"SELECT COUNT(*) AS n FROM people WHERE age > {mean.value!r}")
    assert plain.credits == 0 and plain.rows[0][0].value == found.rows[0][0].value


def test_nothing_is_charged_where_both_cannot_be_paid(database):
    database.grant("ann", credits=2)
    ann = database.as_analyst("ann")
    with pytest.raises(BudgetSpent, match=r"costs 2\.25 credits.*nothing was asked"):
        ann.sql(ABOVE)
    assert ann.remaining == 2


def test_the_outer_part_has_its_credits_before_the_inner_is_charged(database, monkeypatch):
    """A colleague who spends in between cannot take what was set aside."""
    database.grant("ann", credits=3)
    ann = database.as_analyst("ann")
    asked = type(ann).ask
    took = []

    def ask(self, question, **terms):
        found = asked(self, question, **terms)
        if not took:
            took.append(True)
            with pytest.raises(BudgetSpent):
                asked(ann, count(where=col("balance") > 3), credits=1)
        return found

    monkeypatch.setattr(type(ann), "ask", ask)
    assert ann.sql(ABOVE).credits == Fraction(9, 4)
    assert took and ann.remaining == Fraction(3, 4)


def test_an_unknown_constant_asks_nothing_more(database):
    text = ABOVE.replace("FROM people)", "FROM people WHERE city = 'Atlantis')")
    found = database.sql(text)
    assert found.credits == 0 and database.remaining == 100
    assert any("is not known, so nothing else was asked" in note for note in found.notes)
    assert found.rows[0][0].value != found.rows[0][0].value  # NULL


def test_credits_are_for_the_whole(database):
    assert database.quote_sql(ABOVE, credits=9).credits == 9
    assert database.sql(ABOVE, credits=9).credits == 9
    with database.reserve(5) as reserved:
        assert reserved.sql(ABOVE.replace("age", "balance")).credits > 0


def test_the_price_does_not_depend_on_the_constant(database):
    """Whatever stands there costs at most what the quote says."""
    for text in (
        ABOVE,
        "SELECT SUM(income) FROM people WHERE income < (SELECT AVG(income) FROM people)",
    ):
        most = database.quote_sql(text).own_credits
        for value in (-1e9, 0, 1, 7.25, 60, 119.5, 500, 999, 1e9):
            inner = read_statement(text, SCHEMA, "people", known=SubqueryValues(values=(value,)))
            assert inner.first
            plain = text[: text.index("(SELECT")] + (f"({value!r})" if value < 0 else repr(value))
            assert database.quote_sql(plain).credits <= most


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) + 5 FROM people)",
        "SELECT COUNT(*) FROM people WHERE age + 5 > (SELECT AVG(age) FROM people) * 1.5",
        "SELECT COUNT(*) FILTER (WHERE age > (SELECT MEDIAN(age) FROM people)) FROM people",
        "SELECT city, SUM(CASE WHEN age > (SELECT AVG(age) FROM people) THEN 1 ELSE 0 END) AS n"
        " FROM people GROUP BY city",
        "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people WHERE income >"
        " (SELECT AVG(income) FROM people))",
        "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people) AND income <"
        " (SELECT AVG(income) FROM people)",
        "SELECT AVG(income) FROM (SELECT * FROM people WHERE age >"
        " (SELECT AVG(age) FROM people)) t",
        "SELECT COUNT(*) FROM people WHERE seen > (SELECT MAX(seen) - 30 FROM people)",
    ],
)  # fmt: skip
def test_means_what_duckdb_means(text, database):
    found = ask_sql(ExactOracle(database), text, table="people")
    wanted = duck(rows()).execute(text.replace("MEDIAN(age)", "QUANTILE_DISC(age, 0.5)")).fetchall()
    ours = {row[:-1]: row[-1].value for row in found.rows}
    for *keys, value in wanted:
        assert ours[tuple(keys)] == pytest.approx(float(value), rel=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age), 1 FROM people)",
        "SELECT COUNT(*) FROM people p WHERE age > (SELECT AVG(q.age) FROM people q"
        " WHERE q.city = p.city)",
        "SELECT COUNT(*) FROM people WHERE age > (SELECT age FROM people)",
    ],
)
def test_what_is_no_single_value_is_refused_before_anything_is_charged(text, database):
    with pytest.raises(InvalidQuery):
        database.sql(text)
    assert database.remaining == 100


# --- an attacker's statements: nothing fails, or costs more than was quoted, once something is paid


def test_what_no_constant_can_stand_in_is_refused_before_anything_is_charged(database):
    text = "SELECT COUNT(*) FROM people WHERE income - age < (SELECT SUM(age) FROM people) * 1e30"
    for act in (database.quote_sql, database.sql):
        with pytest.raises(InvalidQuery):
            act(text)
    assert database.remaining == 100


def test_a_constant_that_makes_a_refusal_gives_null_and_says_why(database):
    """The inner SELECT is paid for by then: what follows is no error any more."""
    text = (
        "SELECT COUNT(*) AS n FROM people WHERE age > 1 / (SELECT COUNT(*) - COUNT(*) FROM people)"
    )
    found = database.sql(text)
    assert found.rows[0][0].value != found.rows[0][0].value
    assert any("makes it a refusal: division by zero" in note for note in found.notes)


def test_no_stored_answer_hides_what_the_rest_can_cost(database):
    """The inner SELECT and all that may stand for the outer one are stored; what comes is not."""
    inner = "(SELECT LN(COUNT(*)) FROM people WHERE smoker)"
    text = f"SELECT AVG(age) FROM people WHERE NOT (age * 2 < {inner})"
    database.sql(inner[1:-1])
    for other in ("age IS NOT NULL", "NOT (age * 2 IS NOT NULL)", "city IS NOT NULL"):
        database.sql(f"SELECT AVG(age) FROM people WHERE {other}")
    quoted, before = database.quote_sql(text).credits, database.remaining
    assert 0 < database.sql(text).credits == before - database.remaining <= quoted


def test_a_finer_inner_answer_is_not_bought_again(database):
    """Quoted with a part of the credits it is stored; at its plain price it would be topped up."""
    inner = "SELECT city FROM people GROUP BY city ORDER BY COUNT(*) DESC LIMIT 1"
    text = f"SELECT VARIANCE(age) FROM people WHERE city IN ({inner})"
    database.sql(inner, credits=Fraction(4, 5))
    quoted, before = database.quote_sql(text, credits=1), database.remaining
    assert quoted.first[0].repeat
    paid = database.sql(text, credits=1).credits
    assert paid == before - database.remaining <= quoted.credits


def attacked(rng: random.Random) -> str:
    """A statement with SELECTs in odd places of its conditions."""

    def inner() -> str:
        head = rng.choice(INNER)
        return f"(SELECT {head} FROM people{rng.choice(['', ' WHERE smoker', ' WHERE age > 50'])})"

    def condition() -> str:
        value = rng.choice(["age", "balance", "age * 2", "ABS(balance)", "age % 7", "income - age"])
        match rng.randrange(5):
            case 0:
                return (
                    f"city IN (SELECT city FROM people GROUP BY city HAVING COUNT(*) > {inner()})"
                )
            case 1:
                return f"{value} BETWEEN {inner()} AND {inner()}"
            case 2:
                return f"NOT ({value} {rng.choice('<>=')} {inner()})"
        around = rng.choice(["{}", "{} * 2", "1 / {}", "-{}", "({} + 1) / 1e20", "5 / ({} - 2)"])
        return f"{value} {rng.choice(['<', '>=', '<>'])} {around.format(inner())}"

    test = condition() + (rng.choice([" AND ", " OR "]) + condition()) * (rng.random() < 0.3)
    if rng.random() < 0.2:
        return f"SELECT SUM(CASE WHEN {test} THEN 1 ELSE 0 END) FROM people"
    return f"SELECT {rng.choice(['COUNT(*)', 'AVG(age)', 'SUM(income)'])} FROM people WHERE {test}"


INNER = (
    *("AVG(age)", "COUNT(*)", "SUM(income)", "MAX(age)", "STDDEV(income)", "1 / COUNT(*)"),
    *("COUNT(*) - COUNT(*)", "AVG(age) / AVG(balance)", "SUM(income) * SUM(income)"),
    *("SQRT(COUNT(*))", "LN(COUNT(*))", "ROUND(AVG(balance), 3)"),
)


@pytest.mark.parametrize("number", [20, pytest.param(2_000, marks=pytest.mark.slow)])
def test_what_was_quoted_is_answered_for_no_more(number, tmp_path, monkeypatch):
    monkeypatch.setenv("SULQ_STATE", str(tmp_path))
    rng = random.Random(number)
    promises = [Promise(Fraction(1, 10), "1e-6", queries=200), Promise(20, queries=200)]
    for at in range(0, number, 20):
        promise = rng.choice(promises)
        with Database.open(rows(40), SCHEMA, promise, ":memory:", name="people") as database:
            for _ in range(min(20, number - at)):
                text, terms = attacked(rng), rng.choice([{}, {}, {"credits": 3}])
                try:
                    quoted = database.quote_sql(text, **terms)
                except InvalidQuery:
                    continue
                if not quoted.affordable:
                    break
                before = database.remaining
                found = database.sql(text, **terms)
                assert before - database.remaining == found.credits <= quoted.credits, text
