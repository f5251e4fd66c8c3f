"""The answer store: how long a search takes among 10,000 answers, and what a dashboard saves."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from sulq import Category, Database, Flag, Number, Promise, Schema, col, count, histogram, mean
from sulq import total as total_of
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.pricing import price
from sulq.kernel.ledger.events import PricedRequest

UNIT = Fraction(1)
STORED = 10_000
SEARCHES = 200
ROWS = 20_000
CITIES = ["Oslo", "Paris", "Rome", "Bern", "Riga", "Cork"]
JOBS = ["care", "craft", "office", "trade", "none"]
SCHEMA = Schema(
    Number("age", 0, 120, step=1),
    Number("income", 0, 200_000),
    Flag("smoker"),
    Category("city", CITIES),
    Category("job", JOBS),
)


def table(rows: int = ROWS) -> pd.DataFrame:
    random = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": random.integers(0, 100, rows),
            "income": random.gamma(2, 20_000, rows).round(2),
            "smoker": random.random(rows) < 0.25,
            "city": random.choice(CITIES, rows),
            "job": random.choice(JOBS, rows),
        }
    )


def publish(queries: int = 1_000) -> Database:
    return Database.open(
        table(), SCHEMA, Promise(epsilon=2, delta="1e-6", queries=queries), ledger=":memory:"
    )


def some_question(random: np.random.Generator) -> Any:
    """A count or a total over one to three conditions, as people ask them."""
    low, high = sorted(int(x) for x in random.choice(101, 2, replace=False))
    conditions = [
        (col("age") >= low) & (col("age") < high),
        col("age") >= low,
        col("city") == str(random.choice(CITIES)),
        col("job").isin([str(job) for job in random.choice(JOBS, 2, replace=False)]),
        col("smoker") if random.random() < 0.5 else ~col("smoker"),
        col("income") >= 1_000 * int(random.integers(1, 100)),
    ]
    chosen = random.choice(len(conditions), int(random.integers(1, 4)), replace=False)
    where = conditions[chosen[0]]
    for place in chosen[1:]:
        where = where & conditions[place]
    return count(where=where) if random.random() < 0.7 else total_of("income", where=where)


def fill(db: Database, answers: int) -> None:
    """So many stored answers, straight into the ledger: their values do not matter here."""
    random = np.random.default_rng(5)
    unit, known, priced = Loss.zero(), set(), []
    while len(priced) < answers:
        bound = db.bind(some_question(random))
        if bound.digest in known:
            continue
        known.add(bound.digest)
        noise = price(bound, db.calibration, UNIT).noise
        priced.append(PricedRequest(bound.text, bound.digest, noise, {}, unit))
    for start in range(0, len(priced), 500):
        batch = priced[start : start + 500]
        entries = db.ledger.charge_all(batch, analyst="owner")
        db.ledger.settle_all([(entry, [1_000 << 30]) for entry in entries])


def search_times(answers: int = STORED, searches: int = SEARCHES) -> tuple[float, list[float]]:
    """Seconds to take all stored answers in, once; then milliseconds of each search."""
    db = publish()
    fill(db, answers)
    random = np.random.default_rng(11)
    questions = [db.bind(some_question(random)) for _ in range(searches)]
    prices = [price(bound, db.calibration, UNIT) for bound in questions]
    start = time.process_time()
    for bound, wanted in zip(questions[:50], prices[:50], strict=True):
        db.reuse.find(bound, wanted, "owner", 0.95)
    first = time.process_time() - start
    found = []
    for bound, wanted in zip(questions, prices, strict=True):
        start = time.process_time()
        db.reuse.find(bound, wanted, "owner", 0.95)
        found.append(1e3 * (time.process_time() - start))
    db.close()
    return first, found


def dashboard() -> list[Any]:
    """200 tiles: shares of every group, both sides of a flag, age bands three ways, roll-ups."""
    questions: list[Any] = []
    bands = [(0, 18), (18, 30), (30, 45), (45, 65), (65, 121)]
    for city in CITIES:
        questions.append(histogram("job", where=col("city") == city))
        questions += [count(where=(col("city") == city) & (col("job") == job)) for job in JOBS]
        questions.append(count(where=col("city") == city))
        questions.append(count(where=(col("city") == city) & col("smoker")))
        questions.append(count(where=(col("city") == city) & ~col("smoker")))
        questions.append(mean("income", where=col("city") == city))
        questions.append(total_of("income", where=col("city") == city))
        questions.append(count("income", where=col("city") == city))
    for low, high in bands:
        inside = (col("age") >= low) & (col("age") < high)
        questions.append(count(where=inside))
        questions.append(count(where=col("age") >= low))
        questions.append(count(where=col("age") < high))
        questions += [count(where=inside & (col("job") == job)) for job in JOBS]
        questions += [count(where=inside & col("smoker")), count(where=inside & ~col("smoker"))]
    questions.append(histogram("age", edges=[0, 18, 30, 45, 65, 120]))
    questions.append(histogram("age", edges=[0, 30, 65, 120]))
    questions.append(histogram("city", "job"))
    questions.append(histogram("job", "smoker"))
    questions += [histogram("city"), histogram("job"), histogram("smoker"), histogram("job")]
    for job in JOBS:
        questions += [count(where=col("job") == job), count(where=~(col("job") == job))]
        questions.append(count(where=(col("job") == job) & col("smoker")))
        questions.append(mean("age", where=col("job") == job))
    for one, two in itertools.combinations(CITIES, 2):
        questions.append(count(where=col("city").isin([one, two])))
    for one, two in itertools.combinations(JOBS, 2):
        questions.append(count(where=(col("job") == one) | (col("job") == two)))
    for low, high in bands:
        inside = (col("age") >= low) & (col("age") < high)
        questions += [mean("income", where=inside), total_of("income", where=inside)]
        questions += [count("income", where=inside), histogram("smoker", where=inside)]
        questions.append(histogram("job", where=inside))
    return questions[:200]


def dashboard_credits() -> tuple[float, float, int]:
    """Credits if each question were paid alone, what was paid, and how many were free."""
    db = publish(queries=1_000)
    apart = together = 0.0
    free = 0
    for question in dashboard():
        alone = price(db.bind(question), db.calibration, UNIT).worst.credits_fraction
        paid = db.ask(question).credits
        apart += float(alone)
        together += float(paid)
        free += paid == 0
    db.close()
    return apart, together, free


def figures() -> Iterator[tuple[str, float, str]]:
    first, times = search_times()
    yield f"taking in {STORED:,} stored answers, once", first, "s"
    yield "search among them, median", statistics.median(times), "ms"
    yield "search among them, 95th percentile", float(np.percentile(times, 95)), "ms"
    apart, together, free = dashboard_credits()
    yield f"dashboard of {len(dashboard())} questions, each paid alone", apart, "credits"
    yield "the same, in order, with the answer store", together, "credits"
    yield "of them free", float(free), "questions"
