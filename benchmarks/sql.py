"""What SQL costs over the builder: user CPU per statement, and 500 groups against raw DuckDB."""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from sulq import Category, Database, Flag, Number, Promise, Schema, col, count, histogram, mean
from sulq.answers.oracle import Answer, Quote
from sulq.sql.api import ask_sql
from sulq.sql.plan import pricing

SCHEMA = Schema(
    Number("age", 0, 120, step=1),
    Number("income", 0, 500_000),
    Flag("smoker"),
    Category("city", [f"c{i}" for i in range(500)]),
)
PAIRS = [
    (
        "SELECT COUNT(*) FROM people WHERE age >= 65 AND smoker",
        count(where=(col("age") >= 65) & col("smoker")),
    ),
    (
        "SELECT AVG(income) FROM people WHERE age BETWEEN 30 AND 40",
        mean("income", where=col("age").between(30, 40)),
    ),
    (
        "SELECT smoker, COUNT(*) AS n FROM people WHERE smoker IS NOT NULL GROUP BY smoker",
        histogram("smoker", where=col("smoker").is_not_null()),
    ),
]
LONG = (
    "WITH grown AS (SELECT age, income, smoker FROM people WHERE age >= 18) SELECT CASE WHEN age"
    " < 40 THEN 'young' WHEN age < 65 THEN 'middle' ELSE 'old' END AS part, COUNT(*) AS n,"
    " AVG(income) AS income, 100 * COUNT_IF(smoker) / COUNT(*) AS smokers FROM grown"
    " WHERE income > 0 GROUP BY part HAVING COUNT(*) > 100 ORDER BY n DESC LIMIT 3"
)


class Replaying:
    """An oracle that gives back what was answered before: what is left is the language."""

    def __init__(self, database: Database, questions: Sequence[object]) -> None:
        self.schema, self.promise = database.schema, database.promise
        self.size, self.remaining = database.size, database.remaining
        self.quotes = [database.quote(question) for question in questions]
        self.answers = [database.ask(question) for question in questions]
        self.asked = 0

    def quote(self, query: object, **terms: Any) -> Quote:
        return self._next(self.quotes)

    def ask(self, query: object, **terms: Any) -> Answer:
        return self._next(self.answers)

    def _next(self, listed: list[Any]) -> Any:
        self.asked += 1
        return listed[(self.asked - 1) % len(listed)]


def _user(work: Any, rounds: int) -> float:
    """Milliseconds of user CPU per call, the best of five runs."""
    best = float("inf")
    for _ in range(5):
        start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        for _ in range(rounds):
            work()
        best = min(best, resource.getrusage(resource.RUSAGE_SELF).ru_utime - start)
    return 1000 * best / rounds


def _language(database: Database, text: str, rounds: int, anew: bool = True) -> float:
    """Reading, planning and showing a statement, with its answers at hand; or not reading it."""
    replay = Replaying(database, database.quote_sql(text).plan.questions)

    def work() -> None:
        if anew:
            pricing._plans.clear()
        ask_sql(replay, text).records()

    return _user(work, rounds)


def figures(rows: int = 10_000_000, rounds: int = 100) -> list[tuple[str, float, str]]:
    found: list[tuple[str, float, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SULQ_STATE"] = folder
        path = Path(folder) / "people.parquet"
        duckdb.execute(
            "COPY (SELECT (hash(i) % 100)::INTEGER AS age,"
            " (hash(i + 1) % 500000)::DOUBLE AS income, hash(i + 2) % 5 = 0 AS smoker,"
            " 'c' || (hash(i + 3) % 500) AS city"
            f" FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"
        )
        promise = Promise(epsilon=1, delta=1e-6, queries=1000)
        grouped = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
        with Database.open(path, SCHEMA, promise, f"{folder}/ledger", publish=True) as database:
            start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
            database.sql(grouped).records()
            ours = resource.getrusage(resource.RUSAGE_SELF).ru_utime - start
            for text, _ in PAIRS:
                found.append((f"language: {text[:50]}", _language(database, text, rounds), "ms"))
            means = "SELECT city, COUNT(*) AS n, AVG(income) AS a FROM people GROUP BY city"
            for name, text in (
                ("a statement of 400 characters", LONG),
                ("500 groups", grouped),
                ("500 groups, counts and means", means),
            ):
                for how, anew in (("read anew", True), ("asked before", False)):
                    spent = _language(database, text, max(1, rounds // 10), anew)
                    found.append((f"language: {name}, {how}", spent, "ms"))
            for text, question in PAIRS:
                database.sql(text)
                whole = _user(lambda text=text: database.sql(text), rounds // 5)
                plain = _user(lambda question=question: database.ask(question), rounds // 5)
                found.append((f"SQL less builder (goal <= 2): {text[:30]}", whole - plain, "ms"))
        with duckdb.connect() as raw:
            start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
            raw.execute(f"SELECT city, COUNT(*) AS n FROM '{path}' GROUP BY city").fetchall()
            theirs = resource.getrusage(resource.RUSAGE_SELF).ru_utime - start
        found.append((f"500 groups of {rows:,} rows: ours", ours, "s cpu"))
        found.append(("the same, raw DuckDB", theirs, "s cpu"))
        found.append(("ratio (goal <= 1.5)", ours / theirs, "x"))
    return found
