"""Sixty-one questions, by name: 54 built in Python, 7 in SQL. Public names only."""

from __future__ import annotations

import datetime
from typing import Any

from sulq import (
    SumQuery,
    cdf,
    col,
    count,
    distribution,
    histogram,
    lit,
    mean,
    outer,
    quantiles,
    total,
    variance,
    when,
)
from sulq.answers.statistics import count_persons, per_person, rows_held
from sulq.kernel.query.expressions import hashed
from sulq.kernel.query.vectors import (
    bins,
    cells,
    clipped,
    columns,
    concat,
    crossed,
    from_nearest,
    margin,
    nearest,
    norm,
    one_hot,
    ones,
    project,
    residual,
    scaled,
    signed,
    softmax,
    squares,
)

age, income, smoker, city = col("age"), col("income"), col("smoker"), col("city")
DAY, TIME = datetime.date(1980, 2, 29), datetime.datetime(2021, 6, 1, 12)
POINT = columns(["age", "income"])
LINE = columns(["age", "score"], centre=0, clip=1)
CENTRES = [[0.2, 0.1], [0.7, 0.25]]

ASKED: dict[str, Any] = {
    # counts, and what rows they are of
    "count all": count(),
    "count public": count(where=city == "Oslo"),
    "count where": count(where=age >= 65),
    "count respelled": count(where=~(age < 65)),
    "count present": count("income"),
    "count flag": count(where=smoker),
    "count three-valued": count(where=(smoker | (age < 18)) & ~(col("blood") == "A")),
    "count between": count(where=age.between(18, 64) & col("grade").isin([1, 3])),
    "count like": count(where=col("note").like("cold%") | (col("blood") == "undeclared")),
    "count null": count(where=col("blood").is_null() | income.is_null()),
    "count dates": count(where=(col("born") >= DAY) & (col("seen") < TIME)),
    "count hashed": count(where=hashed("id", 12345) & (age > 30)),
    "count division": count(where=age / 7 > 5),
    # totals, means, variances
    "total clip": total(income.clip(0, 100_000)),
    "total choice": total(when(age >= 65).then(income.clip(0, 1000)).otherwise(-5)),
    "total arithmetic": total((age * 3 - col("visits") * 2 + 1) / 4, where=smoker),
    "total least": total(abs(col("score")).min(lit(0.5)).max(0.1)),
    "total coalesce": total(income.coalesce(1000), where=city == "Paris"),
    "total product": total(col("score") * col("score") * age),
    "total flag": total("ill"),
    "mean": mean("age"),
    "mean short lattice": mean("visits"),
    "mean where": mean(income.clip(0, 100_000), where=smoker),
    "mean date": mean("born"),
    "mean flag": mean("smoker"),
    "variance": variance("age"),
    "variance where": variance("score", where=col("ill")),
    # cells
    "histogram category": histogram("blood"),
    "histogram other": histogram("blood", other=True),
    "histogram edges": histogram("age", edges=[0, 18, 65, 120], where=smoker),
    "histogram three": histogram(
        "city", "smoker", "age", edges={"age": [0, 18, 65, 120]}, other=True
    ),
    "histogram whole": histogram("visits", "grade", edges={"visits": [0, 1, 2, 3]}),
    "histogram expression": histogram(age * 2 + 1, edges=[1, 50, 100]),
    "cdf edges": cdf("age", edges=[20, 40, 60, 80]),
    "cdf": cdf("visits"),
    # trees
    "quantiles": quantiles("income", [0.25, 0.5, 0.75]),
    "quantiles where": quantiles("age", [0.1, 0.9], where=city == "Oslo"),
    "distribution": distribution("age", resolution=16),
    "distribution by": distribution("score", by=["city", "smoker"], resolution=8),
    # raw sums and outer products
    "sums": SumQuery((age, income, age * age), rows=(age > 3)),
    "outer gram": outer(POINT, POINT),
    "outer centred": outer(concat(ones(), LINE), concat(ones(), LINE), rows=smoker),
    "outer one_hot": outer(one_hot("blood", other=True), one_hot("city")),
    "outer nearest": outer(nearest(POINT, CENTRES), concat(ones(), POINT)),
    "outer from_nearest": outer(ones(), from_nearest(POINT, CENTRES, clip=0.5)),
    "outer softmax": outer(softmax(POINT, [[1, 2], [-1, 0.5], [0, 0]]), ones()),
    "outer residual": outer(residual(POINT, [1, -2], "smoker", "logistic"), POINT),
    "outer margin": outer(margin(POINT, "ill", [0.5, 1]), signed(POINT, "ill")),
    "outer project": outer(
        clipped(project(columns(["age", "income", "smoker"]), [[1, 0, 1], [0, 1, -1]]), 1),
        squares(POINT),
    ),
    "outer cells": outer(
        concat(cells(age < 30, smoker), bins(norm(POINT), [0, 0.5, 1, 2])),
        crossed(one_hot("city"), scaled(one_hot("smoker"), 2)),
    ),
    # persons
    "persons": count_persons(where=smoker),
    "persons by": count_persons(by="blood"),
    "persons held": rows_held((1, 4)),
    "person total": per_person(total(col("visits")), (0, 5)),
}

SQL: dict[str, str] = {
    "sql groups": "SELECT city, COUNT(*) AS n, AVG(income) AS pay FROM people"
    " WHERE age >= 18 GROUP BY city ORDER BY n DESC",
    "sql choice": "SELECT SUM(CASE WHEN smoker THEN visits ELSE 0 END) / COUNT(*) FROM people",
    "sql dates": "SELECT DATE_TRUNC('year', seen) AS y, COUNT(*) FROM people"
    " WHERE born < DATE '1990-01-01' GROUP BY 1 HAVING COUNT(*) > 3 LIMIT 3",
    "sql spread": "SELECT STDDEV(age), MEDIAN(age), QUANTILE(income, 0.9) FROM people"
    " WHERE blood IN ('A', 'B')",
    "sql lookup": "SELECT r.name, COUNT(*) FROM people p JOIN regions r ON p.city = r.key"
    " WHERE r.name LIKE 'N%' OR smoker GROUP BY r.name",
    "sql buckets": "SELECT FLOOR(age / 40) * 40 AS decade, COUNT_IF(smoker), ROUND(AVG(score), 2)"
    " FROM people GROUP BY 1",
    "sql within": "SELECT COUNT(*) FROM people WHERE NOT smoker AND age < 50 WITHIN 400",
}
