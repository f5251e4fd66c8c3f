"""Statements that nest without end: a refusal of ours, never the end of the process.

The compiled SQL parser (`sqlglot[c]`) recurses on the stack of the machine: too deep is a dead
process there, where Python's own parser raises an error. Nesting is bounded on the tokens, before
any parser sees them. `python -m tests.attacks.test_deep_statements 100000` runs as many, in the
environment in which it is started: with the compiled parser installed, against that.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter

import pytest

from sulq import Category, Flag, InvalidQuery, Number, Schema, parse_sql

SCHEMA = Schema(Number("age", 0, 120, step=1), Flag("smoker"), Category("city", ["Oslo", "Paris"]))
DEPTHS = (3, 90, 99, 100, 101, 150, 1_000, 3_000, 20_000)


def statement(rng: random.Random) -> str:
    """One statement, nested in one way or in several."""
    deep = rng.choice(DEPTHS)
    around = {
        "brackets": ("(" * deep, "age", ")" * deep),
        "minus": ("- " * deep, "age", ""),
        "plus": ("", " + ".join(["age"] * deep), ""),
        "not": ("SUM(CASE WHEN " + "NOT " * deep, "smoker", " THEN 1 ELSE 0 END)"),
        "case": ("CASE WHEN smoker THEN 1 ELSE " * deep, "0", " END" * deep),
        "coalesce": ("COALESCE(" * deep, "age", ", 0)" * deep),
        "cast": ("CAST(" * deep, "age", " AS INT)" * deep),
        "list": ("", "age IN (" + ", ".join(["1"] * deep) + ")", ""),
        "casts": ("", "age" + "::INT" * deep, ""),
        "array": ("[" * deep, "age", "]" * deep),
        "interval": ("INTERVAL " * deep, "'1 day'", ""),
        "between": ("", "age" + " BETWEEN 1 AND 2" * deep, ""),
        "arrow": ("", "age" + "->'a'" * deep, ""),
        "comment": ("/*" * deep, "age", "*/" * deep),
    }
    first, middle, last = around[rng.choice(list(around))]
    value = f"{first}{middle}{last}"
    chain = f" {rng.choice(['AND', 'OR', 'XOR'])} ".join(["age > 1"] * deep)
    ctes = ", ".join(f"c{at} AS (SELECT * FROM c{at - 1})" for at in range(1, min(deep, 2_000)))
    return rng.choice(
        [
            f"SELECT SUM({value}) FROM people",
            f"SELECT COUNT(*) FROM people WHERE {value} > 1",
            f"SELECT COUNT(*) FROM people WHERE {chain}",
            f"WITH c0 AS (SELECT COUNT(*) AS n FROM people), {ctes} SELECT * FROM c1",
            "SELECT * FROM (" * deep + "SELECT COUNT(*) FROM people" + ") AS x" * deep,
            " UNION ALL ".join(["SELECT COUNT(*) FROM people"] * min(deep, 3_000)),
            f"SELECT COUNT(*) FROM people GROUP BY {'GROUPING SETS (' * deep}city{')' * deep}",
            value,
        ]
    )


def outcomes(first: int, number: int) -> Counter[str]:
    """How so many statements end; anything but a refusal of ours is raised."""
    found: Counter[str] = Counter()
    for seed in range(first, first + number):
        try:
            parse_sql(statement(random.Random(seed)), SCHEMA)
            found["read"] += 1
        except InvalidQuery:
            found["refused"] += 1
    return found


def survived(first: int, number: int) -> bool:
    """Whether a child process lives through them."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = int(sum(outcomes(first, number).values()) != number)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [300, pytest.param(20_000, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_nothing_that_is_nested_ends_the_process(number: int) -> None:
    assert survived(0, number)


@pytest.mark.slow
def test_both_ends_are_reached() -> None:
    """Some of these are read and some are refused: else the test shows nothing."""
    found = outcomes(0, 120)
    assert min(found["read"], found["refused"]) > 5


def main() -> None:
    wanted, piece, start, done = int(sys.argv[1]), 500, time.monotonic(), 0
    while done < wanted and time.monotonic() - start < float((sys.argv[2:] or ["600"])[0]):
        if not survived(done, piece):
            sys.exit(f"a process died between statements {done} and {done + piece}")
        done += piece
    from sqlglot import parser

    print(f"{done} statements, no process died; parser {parser.__file__}")


if __name__ == "__main__":
    main()
