"""Statements as people write them in seven dialects mean what DuckDB's words beside them mean."""

from __future__ import annotations

import datetime
from collections import Counter
from fractions import Fraction

import pytest
from tests.learn.exact_oracle import ExactOracle
from tests.sql.dialects.fixtures import fixtures
from tests.sql.small_table import LOOKUPS, SCHEMA, duck, rows
from tests.sql.test_statements import check

from sulq import Database, InvalidQuery, Promise
from sulq.kernel.query.canonical import spelling, truth
from sulq.sql.api import ask_sql, quote_sql
from sulq.sql.parse.grammar import DIALECTS
from sulq.sql.parse.statement import read_statement

EVERY = fixtures()
FIXTURES = [fixture for fixture in EVERY if fixture.answered]
MISSING = [fixture for fixture in EVERY if not fixture.answered]


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SULQ_STATE", str(tmp_path_factory.mktemp("dialects")))
        promise = Promise(epsilon=1, delta=1e-6, queries=1000)
        with Database.open(rows(), SCHEMA, promise, ":memory:") as database:
            yield database


@pytest.fixture(scope="module")
def engine():
    return duck(rows())


@pytest.mark.parametrize(
    "fixture", FIXTURES, ids=[f"{f.subject}-{f.dialect}-{f.text[:50]}" for f in FIXTURES]
)
def test_reads_as_duckdb_does(fixture, database, engine):
    ours = ask_sql(
        ExactOracle(database),
        fixture.text,
        lookups=LOOKUPS,
        table="people",
        dialect=fixture.dialect,
    )
    check(ours, engine.execute(fixture.reads).fetchall(), ordered=False)


def test_every_dialect_has_its_statements():
    assert len(FIXTURES) >= 100
    by_dialect = Counter(fixture.dialect for fixture in FIXTURES)
    assert set(by_dialect) == set(DIALECTS) and min(by_dialect.values()) >= 5


def test_most_are_answered_without_a_word_about_their_dialect(database):
    """The house dialect takes spellings of other engines that mean nothing else."""
    answered = 0
    some = FIXTURES[::3]
    for fixture in some:
        try:
            quote_sql(database, fixture.text, lookups=LOOKUPS, table="people")
        except InvalidQuery:
            continue
        answered += 1
    assert answered >= 0.8 * len(some)


@pytest.mark.parametrize("fixture", MISSING, ids=[f.text[:60] for f in MISSING])
def test_what_is_said_to_be_refused_is(fixture, database):
    with pytest.raises(InvalidQuery) as refusal:
        quote_sql(database, fixture.text, lookups=LOOKUPS, table="people", dialect=fixture.dialect)
    assert refusal.value.credits_spent == 0


def test_nine_of_ten_are_answered_as_they_are_written():
    """Of statements that analysts and BI programs write, written down before they were tried."""
    assert len(FIXTURES) >= 0.9 * len(EVERY) and len(EVERY) >= 400


ROUNDED = {
    "SELECT AVG(LN(income + 1)) AS m FROM people": 0.005,
    "SELECT AVG(SQRT(income)) AS m FROM people": 0.02,
    "SELECT SUM(EXP(income / 1000)) AS m FROM people": 0.4,
    "SELECT AVG(CASE WHEN smoker THEN LN(income + 1) ELSE 0 END) AS m FROM people": 0.005,
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("text", ROUNDED)
def test_a_function_of_a_column_without_a_step_is_rounded_as_it_says(text, database, engine):
    ours = ask_sql(ExactOracle(database), text, table="people")
    ((found,),) = ours.rows
    ((wanted,),) = engine.execute(text).fetchall()
    assert abs(found.value - wanted) <= ROUNDED[text]
    assert any("is read off a table of" in note and "off by at most" in note for note in ours.notes)


def test_an_unknown_dialect_is_refused(database):
    with pytest.raises(InvalidQuery, match="no dialect 'cobol'; there are postgres"):
        database.sql("SELECT COUNT(*) FROM people", dialect="cobol")


def test_the_weekday_is_numbered_as_the_dialect_counts(database):
    asked = {
        "postgres": "EXTRACT(DOW FROM seen)",
        "mysql": "DAYOFWEEK(seen)",
        "spark": "weekday(seen)",
    }
    for dialect, part in asked.items():
        text = f"SELECT {part} AS d, COUNT(*) FROM people WHERE seen IS NOT NULL GROUP BY {part}"
        found = [row[0] for row in database.sql(text, dialect=dialect).rows]
        assert found == list(range(1, 8) if dialect == "mysql" else range(7))


# --- parameters ---------------------------------------------------------------------------------


def condition(text, params=None, dialect=None, today=None):
    asked = f"SELECT COUNT(*) FROM people WHERE {text}"
    read = read_statement(asked, SCHEMA, "people", None, dialect, params, today)
    return spelling(truth(read.rows))


@pytest.mark.parametrize(
    ("text", "params", "same"),
    [
        ("age > ?", [30], "age > 30"),
        ("age > %s AND city = %s", (30, "it's"), "age > 30 AND city = 'it''s'"),
        ("age > :low AND age < :high", {"low": 1, "high": 9}, "age > 1 AND age < 9"),
        ("age > $2 AND city = $1", ["Oslo", 5], "age > 5 AND city = 'Oslo'"),
        ("age > %(low)s", {"low": Fraction(5, 2)}, "age > 2.5"),
        ("city IN (?)", [["Oslo", "Paris"]], "city IN ('Oslo', 'Paris')"),
        ("seen >= ?", [datetime.date(2024, 1, 2)], "seen >= DATE '2024-01-02'"),
        ("seen >= ?", ["2024-01-02"], "seen >= DATE '2024-01-02'"),
        ("smoker = ? AND city <> ?", [True, "' OR 1=1 --"], "smoker AND city <> ''' OR 1=1 --'"),
        ("balance < ?", [-3.5], "balance < -3.5"),
        ("city LIKE ?", ["O%"], "city LIKE 'O%'"),
    ],
)
def test_a_parameter_is_a_literal(text, params, same):
    assert condition(text, params) == condition(same)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("text", "params"),
    [("age > ?", [7]), ("age > %s", [7]), ("age > :a", {"a": 7}), ("age > $1", [7])],
)
def test_marks_are_known_in_every_dialect(dialect, text, params):
    assert condition(text, params, dialect) == '["lt",["num","7"],["col","age"]]'


@pytest.mark.parametrize(
    ("text", "params", "said"),
    [
        ("age > ?", [], "no value for the parameter '1'"),
        ("age > ?", [1, 2], "no place for 2"),
        ("age > :a", {"b": 1}, "no value for the parameter 'a'; given: b"),
        ("age > ?", [[1]], "a list of values goes into IN"),
        ("age > ?", [object()], "got object"),
        ("age > ?", [float("nan")], "must be finite"),
        ("age > ?", "7", "params are a list"),
        ("age > ?", None, "a parameter is not in the language"),
    ],
)
def test_wrong_parameters_are_refused(text, params, said):
    with pytest.raises(InvalidQuery, match=said):
        condition(text, params)


# --- today --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("seen >= CURRENT_DATE - 30", "seen >= DATE '2024-01-31'"),
        ("seen >= NOW() - INTERVAL '30 days'", "seen >= DATE '2024-01-31'"),
        ("seen < CURRENT_DATE - INTERVAL '1 month'", "seen < DATE '2024-02-01'"),
        ("seen >= DATE_TRUNC('month', CURRENT_DATE)", "seen >= DATE '2024-03-01'"),
        ("YEAR(seen) = EXTRACT(YEAR FROM CURRENT_DATE)", "YEAR(seen) = 2024"),
        ("seen > DATE '2024-03-31' - INTERVAL '1 month'", "seen > DATE '2024-02-29'"),
        ("seen + INTERVAL '7 days' > CURRENT_DATE", "seen + 7 > DATE '2024-03-01'"),
    ],
)
def test_today_is_a_constant_of_the_question(text, same):
    today = datetime.date(2024, 3, 1)
    assert condition(text, today=today) == condition(same)


def test_the_reply_says_which_day_it_was(database):
    said = database.sql("SELECT COUNT(*) FROM people WHERE seen < CURRENT_DATE").notes
    assert any("tomorrow it is a new question" in note for note in said)
    said = database.sql("SELECT COUNT(*) FROM people WHERE seen < '2024-01-01'").notes
    assert not any("CURRENT_DATE" in note for note in said)
