"""Functions of declared columns as tables: equal to DuckDB's, bounded in time, never a crash."""

from __future__ import annotations

import bisect
import random
import re
import time
from fractions import Fraction

import pytest
from tests.learn.exact_oracle import ExactOracle
from tests.sql.small_table import SCHEMA, duck, rows
from tests.sql.test_statements import check

from sulq import Database, InvalidQuery, Number, Promise, Schema
from sulq.errors import Reason
from sulq.sql.api import ask_sql, quote_sql
from sulq.sql.parse.grammar import syntax_tree
from sulq.sql.parse.normalise import normalised
from sulq.sql.parse.statement import read_statement
from sulq.sql.parse.step_functions import StepFunction
from sulq.sql.parse.tabulation import evaluated, tabulated

FAST, SLOW = 60, 100_000


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SULQ_STATE", str(tmp_path_factory.mktemp("tabulation")))
        promise = Promise(epsilon=1, delta=1e-6, queries=1000)
        with Database.open(rows(), SCHEMA, promise, ":memory:") as database:
            yield database


def number(draw, depth):
    """A whole number of one column, as DuckDB spells it too."""
    if depth == 0:
        return draw.choice(["age", "age", "3", "7"])
    a, b = number(draw, depth - 1), number(draw, depth - 1)
    return draw.choice(
        [
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * 2)",
            f"({a} % 7)",
            f"FLOOR({a} / 10)",
            f"ABS({a} - 40)",
            f"CASE WHEN {a} > {b} THEN {a} ELSE {b} END",
            f"NULLIF({a}, {b})",
            f"SIGN({a} - 20)",
        ]
    )


def text(draw, depth):
    if depth == 0:
        return draw.choice(["city", "city", "'x'"])
    a, b = text(draw, depth - 1), text(draw, depth - 1)
    return draw.choice(
        [
            f"UPPER({a})",
            f"LEFT({a}, 2)",
            f"({a} || {b})",
            f"REPLACE({a}, 's', 'S')",
            f"REVERSE({a})",
            f"SPLIT_PART({a}, 'a', 1)",
            f"CASE WHEN city = 'Oslo' THEN {a} ELSE {b} END",
        ]
    )


def day(draw):
    return draw.choice(
        [
            "LAST_DAY(seen)",
            "MONTH(seen) * 100 + DAY(seen)",
            "DATE_DIFF('month', seen, DATE '2024-05-05')",
            "STRFTIME(seen, '%Y/%m')",
            "CASE WHEN MONTH(seen) > 6 THEN 'late' ELSE 'early' END",
            "YEAR(seen) - 2000 + QUARTER(seen)",
        ]
    )


def statement(draw):
    kind = draw.randrange(5)
    if kind == 0:
        of = number(draw, draw.randint(1, 3))
        return f"SELECT SUM({of}) AS s, COUNT(*) AS n FROM people WHERE age IS NOT NULL"
    if kind == 1:
        test = f"{number(draw, 2)} {draw.choice(['<', '>=', '=', '<>'])} {number(draw, 1)}"
        return f"SELECT COUNT(*) AS n FROM people WHERE age IS NOT NULL AND {test}"
    if kind == 2:
        of = text(draw, draw.randint(1, 3))
        return f"SELECT {of} AS k, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY 1"
    if kind == 3:
        return (
            f"SELECT {day(draw)} AS k, COUNT(*) AS n FROM people WHERE seen IS NOT NULL GROUP BY 1"
        )
    tests = f"LENGTH({text(draw, 2)}) > {draw.randint(1, 9)} AND grade IN (1, 3)"
    return f"SELECT COUNT(*) AS n, AVG(balance) AS a FROM people WHERE city IS NOT NULL AND {tests}"


def compared(database, engine, seed):
    draw = random.Random(seed)
    asked = statement(draw)
    try:
        ours = ask_sql(ExactOracle(database), asked, table="people", dialect="duckdb")
    except InvalidQuery:
        return False
    check(ours, engine.execute(asked).fetchall(), ordered=False)
    return True


def test_random_functions_mean_what_duckdb_means(database):
    engine = duck(rows())
    answered = sum(compared(database, engine, seed) for seed in range(FAST))
    assert answered >= 0.7 * FAST


@pytest.mark.slow
def test_many_random_functions_mean_what_duckdb_means(database):
    engine = duck(rows())
    start = random.randrange(10**9)
    answered = sum(compared(database, engine, start + seed) for seed in range(SLOW))
    assert answered >= 0.7 * SLOW, start


@pytest.mark.parametrize(
    "of",
    [
        "REPLACE(" * 12 + "city" + ", 'o', 'oooooooooooooooooooo')" * 12,
        "REPEAT(REPEAT(REPEAT(city, 100), 100), 100)",
        "LPAD(city, 1000000000, 'x')",
        "DATE_DIFF('month', seen, seen + INTERVAL '999999' YEAR)",
        "EXP(EXP(EXP(income)))",
        "POWER(POWER(income, 99), 99)",
        "LN(" * 30 + "income" + ")" * 30,
        "REGEXP_EXTRACT(city, '(a+)+$')",
        " || ".join(["LPAD(city, 900)"] * 60),
        f"CASE {' '.join(f'WHEN MONTH(seen) + {k} = DAY(seen) THEN {k}' for k in range(150))} END",
    ],
)  # fmt: skip
def test_a_long_function_is_worked_out_soon_or_refused(of, database):
    started = time.process_time()
    for asked in (
        f"SELECT {of} AS k, COUNT(*) FROM people GROUP BY 1",
        f"SELECT SUM({of}) FROM people",
    ):
        try:
            quote_sql(database, asked, table="people", dialect="duckdb")
        except InvalidQuery as refusal:
            assert refusal.credits_spent == 0
    assert time.process_time() - started < 20  # without a bound on the work: minutes


def test_the_work_of_a_statement_is_added_up():
    one = "CASE WHEN seen + INTERVAL '1' MONTH > LAST_DAY(seen) THEN 1 ELSE 0 END"
    many = " + ".join(f"SUM({one} + {k})" for k in range(180))
    with pytest.raises(InvalidQuery) as refusal:
        read_statement(f"SELECT {many} FROM people", SCHEMA, "people")
    assert refusal.value.reason in (Reason.TOO_LARGE, Reason.NOT_IN_LANGUAGE)


def test_the_steps_of_a_statement_are_added_up():
    schema = Schema(Number("place", 0, 4_000, step=1))
    few = ", ".join(f"AVG(SQRT(place + {k}))" for k in range(3))
    read_statement(f"SELECT {few} FROM people", schema, "people")
    with pytest.raises(InvalidQuery) as refusal:
        read_statement(f"SELECT {few}, AVG(LN(place + 1)) FROM people", schema, "people")
    assert refusal.value.reason == Reason.TOO_LARGE


@pytest.mark.parametrize(
    "of",
    [
        "LN(income + 1)",
        "ABS(LN(income + 1) - 5)",
        "POWER(LN(income + 1) - 3, 2)",
        "LN(income + 1) * SQRT(1000 - income)",
        "CASE WHEN income > 700 THEN LN(income) ELSE SQRT(income) END",
    ],
)
def test_the_told_rounding_holds_at_every_place(of):
    """Also of functions that turn or jump between the ends of a cell."""
    select = read_statement(f"SELECT AVG({of}) AS m FROM people", SCHEMA, "people")
    (told,) = [note for note in select.notes if "off by at most" in note]
    found = re.search(r"at most ([\d.e-]+\d)", told)
    assert found is not None
    node = normalised(syntax_tree(of))
    low, high, cells = Fraction(0), Fraction(1000), 4_000
    table = tabulated(node, SCHEMA)
    assert isinstance(table, StepFunction)
    edges = [Fraction(edge) for edge in table.edges]
    for at in range(1, cells):
        place = low + (high - low) * at / cells
        wanted = evaluated(node, {"income": place})
        label = table.labels[max(bisect.bisect_right(edges, place) - 1, 0)]
        assert abs(Fraction(label) - Fraction(wanted)) <= Fraction(found[1]), place
