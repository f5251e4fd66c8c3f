"""A hundred and twenty things that are refused, for nothing. Each by its text; public names only.

What is frozen is the class of the error and that nothing was charged: words may improve. In SQL
also the letters that are meant.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.golden import inside
from tests.golden.asking import kind_of, opened
from tests.golden.records import Records, plain
from tests.golden.world import LOOKUPS, SCHEMA, table

import sulq
from sulq import Database, SulqError
from sulq.answers import statistics
from sulq.kernel.query import vectors

SQL = [
    "",
    "SELECT * FROM people",
    "SELECT age FROM people",
    "SELECT age, COUNT(*) FROM people",
    "SELECT age + 1, COUNT(*) FROM people GROUP BY city",
    "SELECT COUNT(*) FROM nobody",
    "SELECT AVG(wealth) FROM people",
    "SELECT AVG(Incom) FROM people",
    "SELECT COUNT(*) FROM people WHERE person = 3",
    "SELECT COUNT(*) AS n FROM people WHERE n > 5",
    "SELECT COUNT(*)",
    "DROP TABLE people",
    "INSERT INTO people VALUES (1)",
    "COPY people TO 'x.csv'",
    "SELECT COUNT(*) FROM people; DROP TABLE people",
    "SELECT COUNT(*) FROM people; SELECT 1",
    "SELECT COUNT(*) FROM people INTERSECT SELECT COUNT(*) FROM people",
    "SELECT COUNT(*) FROM people TABLESAMPLE (10 PERCENT)",
    "SELECT COUNT(* FROM people",
    "SELECT COUNT(*) FROM people WHERE age = 'x",
    "SELECT " + "(" * 200 + "COUNT(*)" + ")" * 200 + " FROM people",
    "SELECT COUNT(*) FROM people a JOIN people b ON a.age = b.age",
    "SELECT COUNT(*) FROM people CROSS JOIN regions",
    "SELECT COUNT(*) FROM people JOIN regions r ON city > key",
    "SELECT COUNT(*) FROM people JOIN regions r ON age = key",
    "SELECT COUNT(*) FROM people JOIN regions r ON city = half",
    "SELECT COUNT(*) FROM people WHERE age > (SELECT age FROM people)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT city FROM people) t",
    "SELECT COUNT(*) FROM (SELECT * FROM people LIMIT 5) t",
    "WITH RECURSIVE a AS (SELECT age FROM people) SELECT COUNT(*) FROM a",
    "SELECT SUM(city) FROM people",
    "SELECT SUM(1 / age) FROM people",
    "SELECT SUM(age / 0) FROM people",
    "SELECT SUM(RANDOM()) FROM people",
    "SELECT SUM(POWER(age, city)) FROM people",
    "SELECT COUNT(*) FROM people WHERE age",
    "SELECT COUNT(*) FROM people WHERE city > 5",
    "SELECT COUNT(*) FROM people WHERE age = 'x'",
    "SELECT COUNT(*) FROM people WHERE age LIKE '3%'",
    "SELECT COUNT(*) FROM people WHERE city ~ '('",
    "SELECT COUNT(*) FROM people WHERE born > DATE '2023-02-30'",
    "SELECT COUNT(*) FROM people WHERE born > '2003-02-30'",
    "SELECT COUNT(*) FROM people WHERE age = ?",
    "SELECT SUM(DISTINCT age) FROM people",
    "SELECT SUM(AVG(age)) FROM people",
    "SELECT QUANTILE(age, 2) FROM people",
    "SELECT ROW_NUMBER() OVER () FROM people",
    "SELECT SUM(born) FROM people",
    "SELECT city, COUNT(*) FROM people GROUP BY city HAVING city > 5",
    "SELECT city, COUNT(*) FROM people GROUP BY city HAVING COUNT(*)",
    "SELECT COUNT(*) / 0 FROM people",
    "SELECT SQRT(-COUNT(*)) FROM people",
    "SELECT note, MEDIAN(age) FROM people GROUP BY note",
    "SELECT income, COUNT(*) FROM people GROUP BY income",
    "SELECT age / 10, COUNT(*) FROM people GROUP BY age / 10",
    "SELECT FLOOR(income * 1000), COUNT(*) FROM people GROUP BY 1",
    "SELECT COUNT(*) FROM people GROUP BY 7",
    "SELECT COUNT(*) FROM people LIMIT -1",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2) COUNT(*) FROM people",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(noise='none') COUNT(*) FROM people",
    "SELECT COUNT(*) FROM people WITHIN 0",
    "SELECT COUNT(*) FROM people WHERE smoker WITHIN 2 PERCENT",
    "SELECT MEDIAN(age) FROM people WITHIN 2",
    "SELECT COUNT(*) FROM people WHERE smoker WITHIN 0.0001",
]

PYTHON = [
    # expressions
    "count(where=col('wealth') > 3)",
    "count(where=col('age'))",
    "count(where=col('city') > 'a')",
    "count(where=col('age') == 'old')",
    "count(where=col('born') == 'x')",
    "count(where=(col('born') > datetime.datetime(2020, 1, 1)) & (col('seen') > col('born')))",
    "count(where=col('age').like('3%'))",
    "count(where=col('age').isin([]))",
    "count(where=col('age') > float('nan'))",
    "count(where=col('age') > 2**70)",
    "count(where=True and col('age') > 3 and col('smoker'))",
    "count(where='age > 3')",
    "count(col('age') > 3)",
    "total('city')",
    "total('note')",
    "total(1 / col('age'))",
    "total(col('age') / 0)",
    "total(col('income').clip(5, 3))",
    "total(col('income').clip(0, 10**-12))",
    "mean('city')",
    "variance('note')",
    "when('age').then(1)",
    "statistics.count_persons()",
    "statistics.per_person(count(), (0, 2))",
    "statistics.per_person(mean('age'), (0, 2))",
    # cells, trees, quantiles
    "histogram()",
    "histogram('note')",
    "histogram('income')",
    "histogram('age', edges=[3, 2, 1])",
    "histogram('age', 'visits', edges=[0, 1])",
    "histogram('id', 'age', edges={'id': list(range(1000)), 'age': list(range(1100))})",
    "quantiles('age', [2])",
    "quantiles('age', [])",
    "quantiles('city', [0.5])",
    "distribution('age', resolution=1)",
    "cdf('blood')",
    # sums and vectors
    "SumQuery(())",
    "SumQuery((col('age'),) * 1001)",
    "outer(vectors.ones(), vectors.ones(), rows=col('wealth') > 1)",
    "outer(vectors.columns(['note']), vectors.ones())",
    "outer(vectors.columns([]), vectors.ones())",
    "outer(vectors.nearest(vectors.columns(['age']), [[1, 2]]), vectors.ones())",
    "outer(vectors.project(vectors.columns(['age']), [[1], [1, 2]]), vectors.ones())",
    "outer(vectors.one_hot('age'), vectors.ones())",
    "vectors.scaled(vectors.ones(), 0)",
    "vectors.residual(vectors.columns(['age']), [1], 'smoker', 'cubic')",
]

ACTS: dict[str, Callable[[Database], Any]] = {
    "ask('count')": lambda db: db.ask("count"),
    "within and credits": lambda db: db.ask(sulq.count(), within=3, credits=1),
    "credits=0": lambda db: db.ask(sulq.mean("age"), credits=0),
    "credits beyond the budget": lambda db: db.ask(sulq.mean("age"), credits=10**9),
    "confidence=1": lambda db: db.ask(sulq.mean("age"), confidence=1),
    "rows=0": lambda db: db.ask(sulq.mean("age"), rows=0),
    "no grant": lambda db: db.as_analyst("eve").ask(sulq.mean("age")),
    "grant beyond": lambda db: db.grant("ann", 10**9),
    "keys of a Number": lambda db: db.keys("age"),
    "keys of declared values": lambda db: db.keys("city"),
    "top of k=9": lambda db: db.top("blood", k=9),
    "alert on a mean": lambda db: db.alert(sulq.mean("age"), above=3),
    "exactly is off": lambda db: db.ask_exactly([sulq.count(where=sulq.col("ill"))]),
}

OPENING: dict[str, Callable[[], Any]] = {
    "Promise(0)": lambda: sulq.Promise(0),
    "Promise(1, 2)": lambda: sulq.Promise(1, 2),
    "Promise laplace with delta": lambda: sulq.Promise(1, "1e-6", noise="laplace"),
    "Promise gaussian without delta": lambda: sulq.Promise(1, noise="gaussian"),
    "Number upside down": lambda: sulq.Number("x", 3, 1),
    "Schema with two of one name": lambda: sulq.Schema(sulq.Flag("a"), sulq.Flag("a")),
    "Schema of persons without rows": lambda: sulq.Schema(
        sulq.Flag("a"), unit="person", max_rows=0
    ),
    "a column that is not there": lambda: Database.open(
        table(), sulq.Schema(sulq.Flag("absent")), sulq.Promise(1), ":memory:"
    ),
    "a column of another type": lambda: Database.open(
        table(), sulq.Schema(sulq.Number("note", 0, 1)), sulq.Promise(1), ":memory:"
    ),
    "an address without engine": lambda: Database.open(
        "gopher://host/table", SCHEMA, sulq.Promise(1), ":memory:"
    ),
    "not published": lambda: Database.open(
        table(), SCHEMA, sulq.Promise(1), "absent.ledger", name="people"
    ),
}

SEEN = {
    **{name: getattr(sulq, name) for name in sulq.__all__},
    "datetime": datetime,
    "statistics": statistics,
    "vectors": vectors,
}


def refusals() -> Records:
    told: Records = {}
    for unit, promise in (("row", "gaussian"), ("person", "person")):
        with opened(promise) as db:
            if unit == "row":
                for text in SQL:
                    shown = text if len(text) < 120 else text[:100] + " ..."
                    told[f"sql {shown}"] = _refused(partial(db.sql, text, lookups=LOOKUPS), db)
                for text in PYTHON:
                    told[f"python {text}"] = _refused(partial(_python, db, text), db)
                for name, act in ACTS.items():
                    told[f"act {name}"] = _refused(partial(act, db), db)
            else:
                for text in ("statistics.count_persons(where=col('note'))", "mean('person')"):
                    told[f"persons {text}"] = _refused(partial(_python, db, text), db)
            left = inside.event_bodies(db)
            told[f"events after all, by {unit}"] = [body["kind"] for body in left]
    for name, work in OPENING.items():
        told[f"open {name}"] = _refused(work, None)
    return told


def _python(db: Database, text: str) -> Any:
    return db.ask(eval(text, dict(SEEN)))


def _refused(work: Callable[[], Any], db: Database | None) -> dict[str, Any]:
    before = None if db is None else db.remaining
    try:
        work()
    except SulqError as error:
        found = {"kind": kind_of(error)}
        for name in ("start", "end"):
            if getattr(error, name, None) is not None:
                found[name] = getattr(error, name)
    else:
        found = {"kind": "answered"}
    if db is not None and before is not None:
        found["paid"] = plain(before - db.remaining)
    return found
