"""A refusal points at the text it means, and offers statements that would be answered."""

from __future__ import annotations

import pickle

import pytest
from tests.sql.refused import REFUSED
from tests.sql.small_table import LOOKUPS, SCHEMA, rows

from sulq import Database, InvalidQuery, Promise
from sulq.errors import Reason
from sulq.sql.api import quote_sql

PROMISE = Promise(epsilon=1, delta=1e-6, queries=1000)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SULQ_STATE", str(tmp_path_factory.mktemp("refusals")))
        with Database.open(rows(), SCHEMA, PROMISE, ":memory:") as database:
            yield database


def refusal(database, text):
    with pytest.raises(InvalidQuery) as refused:
        quote_sql(database, text, lookups=LOOKUPS, table="people")
    return refused.value


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("SELECT secret FROM people", "secret"),
        ('SELECT "Blood Presure" FROM people', '"Blood Presure"'),
        ("SELECT COUNT(*) FROM people WHERE age > 3 AND NOT (city > 5 OR smoker)", "city > 5"),
        ("SELECT COUNT(*), SUM( city ) FROM people", "SUM( city )"),
        ("SELECT AVG(POWER(age, city)) FROM people", "POWER(age, city)"),
        ("SELECT COUNT(*) FROM people GROUP BY comment, city", "comment"),
        ("SELECT COUNT(*) / 0 FROM people", "COUNT(*) / 0"),
        ("EXPLAIN SELECT COUNT(*) FROM persons", "persons"),
        ("SELECT COUNT(*)\nFROM people\n  WHERE WHERE age", "WHERE"),
        ("SELECT COUNT(*) FROM people WHERE city = 'x", "'x"),
        ("SELECT MEDIAN(age) FROM people WITHIN 2", "WITHIN 2"),
        ("SELECT COUNT(*) FROM people WITHIN 2 PEARS", "PEARS"),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=9) COUNT(*) FROM people",
            "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=9)",
        ),
        ("SELECT COUNT(CASE WHEN city > 5 THEN 1 END) FROM people",
         "COUNT(CASE WHEN city > 5 THEN 1 END)"[:35]),
    ],
)  # fmt: skip
def test_the_span_is_what_is_meant(text, meant, database):
    found = refusal(database, text)
    assert text[found.start : found.end].startswith(meant[:20])
    if "CASE" not in meant:
        assert text[found.start : found.end] == meant


def test_nearly_every_refusal_points_at_its_text(database):
    blind = []
    for text, _ in REFUSED:
        found = refusal(database, text)
        if found.start is None:
            blind.append(text)
            assert found.end is None
        else:
            assert 0 <= found.start < found.end <= len(text)
    assert len(blind) <= 8  # empty, too long, too deep, a fault of the lookup


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("SELECT * FROM people", "SELECT COUNT(*) FROM people"),
        ("SELECT city FROM people", "SELECT city, COUNT(*) FROM people GROUP BY city"),
        ("SELECT age FROM people WHERE smoker", "SELECT AVG(age) FROM people WHERE smoker"),
        ("SELECT AVG(incom) FROM people", "SELECT AVG(income) FROM people"),
        ("SELECT AVG(blood_pressure) FROM people", 'SELECT AVG("Blood Pressure") FROM people'),
        ("SELECT COUNT(*) FROM peple", "SELECT COUNT(*) FROM people"),
        ('SELECT COUNT(*) FROM people WHERE city = "Oslo"',
         "SELECT COUNT(*) FROM people WHERE city = 'Oslo'"),
        ("SELECT age / 10, COUNT(*) FROM people GROUP BY age / 10",
         "SELECT FLOOR(age / 10), COUNT(*) FROM people GROUP BY FLOOR(age / 10)"),
        ("SELECT city, age, COUNT(*) FROM people GROUP BY city HAVING COUNT(*) > 3",
         "SELECT city, age, COUNT(*) FROM people GROUP BY city, age HAVING COUNT(*) > 3"),
        ("SELECT income, COUNT(*) FROM people GROUP BY income",
         "SELECT FLOOR(income / 100) * 100, COUNT(*) FROM people GROUP BY"
         " FLOOR(income / 100) * 100"),
        ("SELECT MEDIAN(age) FROM people WITHIN 2", "SELECT MEDIAN(age) FROM people"),
    ],
)  # fmt: skip
def test_obvious_rewrites_are_offered(text, offered, database):
    assert offered in refusal(database, text).alternatives


def test_what_is_offered_would_be_answered(database):
    count = 0
    for text, _ in REFUSED:
        offers = refusal(database, text).alternatives
        assert len(offers) <= 3
        for offer in offers:
            assert offer != text
            assert quote_sql(database, offer, lookups=LOOKUPS, table="people").credits >= 0
            count += 1
    assert count > 30


def test_asking_says_the_same_as_quoting(database):
    with pytest.raises(InvalidQuery) as refused:
        database.sql("SELECT SUM(city) FROM people WHERE smoker")
    assert (refused.value.start, refused.value.end) == (7, 16)


def test_other_refusals_have_no_place():
    plain = InvalidQuery("no")
    assert (plain.start, plain.end, plain.alternatives) == (None, None, ())
    assert plain.reason is Reason.INVALID_VALUE and str(plain) == plain.text == "no"
    error = InvalidQuery("no", reason=Reason.NO_COLUMN, start=1, end=2, about={"column": "a"})
    sent = pickle.loads(pickle.dumps(error))
    assert (sent.text, sent.start, sent.end) == ("no", 1, 2)
    assert (sent.reason, sent.about) == (Reason.NO_COLUMN, {"column": "a"})
    assert str(sent) == "no (near character 2)"
