"""One classification of what was asked, for the report and the pages."""

from __future__ import annotations

import pytest
from tests.people import publish

from sulq import Category, Number, Promise, Schema
from sulq.answers.statistics import count_persons
from sulq.kernel.query.sql_text import kind_of, question_text
from sulq.kernel.schema.bind import bind

KINDS = {
    "SELECT COUNT(*) FROM people WHERE smoker": "Counts",
    "SELECT COUNT(*), COUNT(*) FILTER (WHERE smoker) FROM people WHERE age > 3": "Counts",
    "SELECT blood, COUNT(*) FROM people GROUP BY blood": "Histograms",
    "SELECT AVG(income) FROM people": "Averages and spreads",
    "SELECT blood, AVG(income) FROM people GROUP BY blood": "Averages and spreads",
    "SELECT blood, SUM(income) FROM people GROUP BY blood": "Totals",
    "SELECT MEDIAN(age) FROM people": "Distributions and quantiles",
}


@pytest.fixture(scope="module")
def db():
    with publish(promise=Promise(1, "1e-6", queries=100)) as found:
        yield found


@pytest.mark.parametrize("sql", KINDS)
def test_a_statement_is_of_its_kind(db, sql):
    questions = db.quote_sql(sql, table="people").plan.questions
    assert [kind_of(db.bind(question).text) for question in questions] == [KINDS[sql]]


def test_persons_are_counted():
    schema = Schema(Number("age", 0, 99), Category("city", ["Oslo"]), unit="patient", max_rows=3)
    text = bind(count_persons(schema["age"] is not None), schema).text
    assert kind_of(text) == "Counts"
    assert question_text(text) == "COUNT(DISTINCT PERSON)"


def test_what_followed_and_what_was_learnt():
    assert kind_of('{"terms":[["num","1"]]}', '{"derived":[3]}').startswith("Free")
    assert kind_of('{"outer":[]}').startswith("Learning")
