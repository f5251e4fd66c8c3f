"""Whatever is written: our refusal, or a statement of the language on declared columns."""

from __future__ import annotations

import json
import random

import pytest
from tests.sql.accepted import SAME as PLAIN
from tests.sql.dialects.fixtures import fixtures
from tests.sql.refused import REFUSED
from tests.sql.small_table import LOOKUPS, SCHEMA

from sulq.errors import InvalidQuery
from sulq.kernel.query.sum_query import Statistic, text_of
from sulq.kernel.schema.bind import bind
from sulq.sql.parse.select import Select, aggregates_of
from sulq.sql.parse.statement import read_statement
from sulq.sql.plan.plan import plan_of

SAME = [*PLAIN, *(fixture.text for fixture in fixtures())]
DIALECTS = ("postgres", "snowflake", "bigquery", "duckdb", "mysql", "tsql", "spark")
COLUMNS = {column.name for column in SCHEMA.columns}
WORDS = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AND OR NOT IN LIKE IS NULL BETWEEN CASE WHEN THEN
ELSE END COUNT SUM AVG MIN MAX MEDIAN QUANTILE FILTER WITHIN PERCENT CONFIDENCE OVER ( ) , * + -
/ = < > <= <> . ; 'Oslo' 'x' 1 2.5 0 -3 1e9 people regions p r age income city smoker seen
"Blood Pressure" secret rowid DATE '2024-01-01' FLOOR DATE_TRUNC 'month' JOIN LEFT ON USING WITH
AS UNION DISTINCT EXPLAIN DIFFERENTIAL_PRIVACY OPTIONS epsilon CLAMP COALESCE NULLIF ROUND
DP_INTERVAL_LOW PARTITION ROW_NUMBER EXISTS INTO :: INT % || [ ] { } ? @ $1 \\ `a` -- /* */ %s
read_csv getenv pg_sleep ATTACH PRAGMA COPY
EXTRACT MONTH DOW HOUR visited TO_CHAR 'YYYY-MM' CURRENT_DATE INTERVAL '30 days' NOW() LOWER UPPER
SUBSTRING ILIKE ~ '^O' LN SQRT POWER MOD // ROUND TRUNC IF IFF IIF NVL TRUE IS TOP
public. '2024-01-02'
"""
LANGUAGE = WORDS.split()


def words(draw: random.Random) -> str:
    """Words of the language, and some that are not, in any order."""
    return " ".join(draw.choice(LANGUAGE) for _ in range(draw.randint(1, 25)))


def mutated(draw: random.Random) -> str:
    """A statement of the tables with some words changed, dropped, doubled or swapped."""
    text = draw.choice(SAME) if draw.random() < 0.7 else draw.choice(REFUSED)[0][:300]
    parts = text.split(" ")
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(parts))
        match draw.randrange(4):
            case 0:
                parts[at] = draw.choice(LANGUAGE)
            case 1:
                parts[at : at + 1] = [] if len(parts) > 1 else parts[at : at + 1]
            case 2:
                parts.insert(at, draw.choice(LANGUAGE))
            case 3:
                other = draw.randrange(len(parts))
                parts[at], parts[other] = parts[other], parts[at]
    return " ".join(parts)


def scribbled(draw: random.Random) -> str:
    """Random characters, or a statement with some of them."""
    letters = [
        chr(draw.choice([draw.randrange(128), draw.randrange(0x11_0000)])) for _ in range(40)
    ]
    if draw.random() < 0.5:
        return "".join(letters)
    text = list(draw.choice(SAME))
    for letter in letters[: draw.randint(1, 5)]:
        text[draw.randrange(len(text))] = letter
    return "".join(text)


def columns_in(form: object) -> set[str]:
    if isinstance(form, list):
        if len(form) == 2 and form[0] == "col":
            return {form[1]}
        return set().union(*map(columns_in, form))
    if isinstance(form, dict):
        return set().union(*map(columns_in, form.values()))
    return set()


def judge(text: str, dialect: str | None = None) -> bool:
    """Whether it is answered; then it is bound to declared columns and shows no row."""
    try:
        select = read_statement(text, SCHEMA, "people", LOOKUPS, dialect)
        plan = plan_of(select, SCHEMA, 400, lambda question: 1)
    except InvalidQuery as refusal:
        assert str(refusal)
        return False
    assert isinstance(select, Select)
    around = select.source is not None  # released tables, which show no row
    assert around or select.groups or any(aggregates_of(item.of) for item in select.items)
    for question in plan.questions:
        query = question.query if isinstance(question, Statistic) else question
        assert columns_in(json.loads(text_of(query))) <= COLUMNS
        try:
            bind(question, SCHEMA, "replace")
        except InvalidQuery:
            return False
    return True


def fuzzed(seed: int, count: int) -> int:
    draw = random.Random(seed)
    makers = (words, mutated, mutated, scribbled)
    return sum(judge(draw.choice(makers)(draw), draw.choice(DIALECTS)) for _ in range(count))


def test_three_thousand_strings():
    answered = fuzzed(1, 3_000)
    assert 20 < answered < 1_000  # mutants that still mean something, and many that do not


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_a_hundred_thousand_strings(seed):
    assert fuzzed(seed, 10_000) > 100


def test_large_numbers_are_refused_before_they_are_written_out():
    """Each took time without end: the table of a function is worked out when a text is read."""
    for value in (
        "ROUND(age, 999999999)",
        "TRUNC(age, 999999999)",
        "POWER(" * 12 + "age" + ", 8)" * 12,
        "age % 1e999999999",
        "FLOOR(age / 1e999999999)",
        "POWER(10, 999999999)",
    ):
        assert not judge(f"SELECT AVG({value}) FROM people"), value


def test_words_outside_the_language_are_never_answered():
    for word in ("read_csv('a')", "getenv('HOME')", "pg_sleep(9)", "secret", "rowid", "SLEEP(1)"):
        for text in (
            f"SELECT {word} FROM people",
            f"SELECT COUNT(*) FROM people WHERE {word} = 1",
            f"SELECT SUM({word}) FROM people",
            f"SELECT COUNT(*) FROM people GROUP BY {word}",
            f"SELECT city, COUNT(*) FROM people GROUP BY city HAVING {word} > 1",
            f"SELECT city, COUNT(*) FROM people GROUP BY city ORDER BY {word}",
            f"SELECT COUNT(*) FROM (SELECT {word} AS x FROM people) t WHERE x = 1",
            f"SELECT COUNT(*) FILTER (WHERE {word} = 1) FROM people",
        ):
            assert not judge(text), text


def test_filling_in_names_cannot_blow_up():
    text = "WITH c0 AS (SELECT age AS x FROM people)"
    for level in range(1, 40):
        text += f", c{level} AS (SELECT x + x AS x FROM c{level - 1})"
    with pytest.raises(InvalidQuery, match="5000 parts"):
        read_statement(text + " SELECT SUM(x) FROM c39", SCHEMA, "people")
