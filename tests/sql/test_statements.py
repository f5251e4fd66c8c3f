"""Every statement of the table: answered as DuckDB answers it, or refused for the stated reason."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import pyarrow.parquet
import pytest
from tests.learn.exact_oracle import ExactOracle
from tests.sql.accepted import ACCEPTED
from tests.sql.refused import HINTED, REFUSED
from tests.sql.small_table import LOOKUPS, SCHEMA, duck, rows

from sulq import Database, InvalidQuery, Promise
from sulq.sql.api import ask_sql, quote_sql
from sulq.sql.evaluate.linear_forms import Estimate

DAY_ONE = datetime.date(1970, 1, 1)


@pytest.fixture(scope="module")
def table():
    return rows()


@pytest.fixture(scope="module")
def truth(table):
    return duck(table)


@pytest.fixture(scope="module")
def database(table, tmp_path_factory):
    promise = Promise(epsilon=1, delta=1e-6, queries=1000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SULQ_STATE", str(tmp_path_factory.mktemp("statements")))
        with Database.open(table, SCHEMA, promise, ":memory:") as database:
            yield database


@pytest.fixture
def oracle(database):
    return ExactOracle(database)


def plain(value):
    """DuckDB's values as ours: numbers as floats, days as numbers where ours are."""
    if isinstance(value, datetime.datetime):
        value = value.date()
    if isinstance(value, Decimal):
        return float(value)
    return value


def number(value):
    value = plain(value)
    return float((value - DAY_ONE).days) if isinstance(value, datetime.date) else float(value)


def key_of(row, keys):
    found = []
    for place in keys:
        value = plain(row[place])
        found.append(float(value) if type(value) in (int, float) else value)
    return tuple(found)


def is_empty(row, keys):
    """A cell without rows: all that is counted or added is 0."""
    return any(
        isinstance(cell, Estimate) and cell.value == 0
        for place, cell in enumerate(row)
        if place not in keys
    ) or any(cell.unread() or "too few" in cell.note for cell in row if isinstance(cell, Estimate))


def check(ours, theirs, ordered):
    keys = [place for place, column in enumerate(ours.columns) if column.is_key]
    by_key = {key_of(row, keys): row for row in ours.rows}
    wanted = {key_of(row, keys): row for row in theirs}
    assert len(by_key) == len(ours.rows)
    assert wanted.keys() <= by_key.keys()
    for key, row in by_key.items():
        assert key in wanted or is_empty(row, keys), key
    for key, row in wanted.items():
        for place, expected in enumerate(row):
            if place in keys:
                continue
            found = by_key[key][place]
            if expected is None:
                assert found.value == 0 or math.isnan(found.value) or found.note
                continue
            assert found.value == pytest.approx(number(expected), rel=1e-6, abs=1e-6), (key, place)
            low, high = found.interval(0.95)
            assert low - 1e-9 <= found.value <= high + 1e-9
    if ordered:
        assert [k for k in by_key if k in wanted] == list(wanted)


@pytest.mark.parametrize(("text", "same"), ACCEPTED, ids=[text[:80] for text, _ in ACCEPTED])
def test_answered_as_duckdb_does(text, same, oracle, truth):
    ours = ask_sql(oracle, text, lookups=LOOKUPS, table="people")
    check(ours, truth.execute(same).fetchall(), "ORDER BY" in same and "DISC" not in same)
    assert len(oracle.asked) <= 3


@pytest.mark.parametrize(("text", "remedy"), HINTED, ids=[text[:80] for text, _ in HINTED])
def test_a_refusal_names_the_remedy(text, remedy, oracle):
    with pytest.raises(InvalidQuery) as refusal:
        quote_sql(oracle, text, lookups=LOOKUPS, table="people")
    assert remedy in str(refusal.value)


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=[text[:80] for text, _ in REFUSED])
def test_refused_with_the_reason_and_free(text, reason, oracle):
    with pytest.raises(InvalidQuery) as refusal:
        ask_sql(oracle, text, lookups=LOOKUPS, table="people")
    assert refusal.value.reason is reason
    assert oracle.asked == []
    with pytest.raises(InvalidQuery):
        quote_sql(oracle, text, lookups=LOOKUPS, table="people")


def test_the_table_of_statements_is_long_and_has_none_twice():
    texts = [text for text, _ in ACCEPTED] + [text for text, _ in REFUSED]
    assert len(texts) == len(set(texts)) >= 120


def test_a_table_that_has_a_name_goes_by_no_other(tmp_path):
    promise, stored = Promise(epsilon=1, queries=9), tmp_path / "stays.parquet"
    pyarrow.parquet.write_table(rows(), stored)
    for source, name in ((stored, None), (rows(), "stays")):
        with Database.open(source, SCHEMA, promise, ":memory:", name=name) as database:
            analyst = database.as_analyst("ann")
            for ask in (database.sql, database.quote_sql, analyst.sql, analyst.quote_sql):
                with pytest.raises(InvalidQuery, match=r"'patients'.*there is 'stays'") as no:
                    ask("SELECT COUNT(*) FROM patients WHERE smoker")
                assert no.value.credits_spent == 0
            assert database.remaining == 9
            assert database.sql("SELECT COUNT(*) FROM Stays WHERE smoker").credits > 0
