"""parse_sql: the questions behind a statement, and the reason where there are none."""

from __future__ import annotations

import pandas as pd
import pytest

from sulq import Category, Database, InvalidQuery, Number, Promise, Schema, count, parse_sql
from sulq.kernel.query.sum_query import text_of

SCHEMA = Schema(Number("age", 0, 120, step=1), Category("city", ["Oslo", "Paris"]))


def test_a_count_is_the_builders_count() -> None:
    (asked,) = parse_sql("SELECT COUNT(*) FROM people WHERE age >= 65", SCHEMA)
    from sulq import col

    expected = count(where=col("age") >= 65)
    assert text_of(asked.query.canonical()) == text_of(expected.query.canonical())


def test_they_can_be_asked_one_by_one() -> None:
    rows = pd.DataFrame({"age": [30, 70], "city": ["Oslo", "Paris"]})
    database = Database.open(rows, SCHEMA, Promise(1), ":memory:")
    asked = parse_sql("SELECT city, AVG(age), COUNT(*) FROM t GROUP BY city", SCHEMA)
    assert len(asked) >= 1
    for question in asked:
        assert database.ask(question).credits > 0


def test_what_is_no_sum_is_refused_with_the_reason() -> None:
    with pytest.raises(InvalidQuery, match="city"):
        parse_sql("SELECT city FROM people", SCHEMA)
    with pytest.raises(InvalidQuery, match="Schema"):
        parse_sql("SELECT COUNT(*) FROM people", None)  # type: ignore[arg-type]
