"""The k-th question of a mixed stream: what an answer costs beyond the engine's work, with a past.

So many answers of mixed kinds are stored; then new questions of the same kinds are asked, of the
builder and in SQL. Processor time of a whole answer, less what the engine took to read the rows;
beside it the search for what stored answers already say.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from sulq import (
    Category,
    Database,
    Flag,
    Number,
    Promise,
    Schema,
    col,
    count,
    distribution,
    histogram,
    mean,
    total,
    when,
)
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.pricing import price
from sulq.kernel.ledger.events import PricedRequest
from sulq.kernel.query.sum_query import SumQuery, group, outer
from sulq.kernel.query.vectors import columns

Line = dict[str, Any]
CITIES = ["Oslo", "Paris", "Rome", "Bern", "Riga", "Cork"]
JOBS = ["care", "craft", "office", "trade", "none"]
SCHEMA = Schema(
    Number("age", 0, 120, step=1),
    Number("income", 0, 200_000),
    Number("hours", 0, 80),
    Flag("smoker"),
    Category("city", CITIES),
    Category("job", JOBS),
    Category("region", [f"r{i}" for i in range(50)]),
)
KINDS = {
    "count": 6,
    "total": 3,
    "mean": 4,
    "histogram": 3,
    "average by group": 3,
    "distribution": 1,
    "moments": 1,
}
"""How often each kind comes in a stream."""
GOAL = 5e-3
PAST = (10, 100, 1_000, 10_000)


def people(folder: Path, rows: int) -> Path:
    path = folder / f"stream-{rows}" / "people.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        words = ", ".join(
            f"{values}[1 + (hash(i, {len(name)}) % {len(values)})::INTEGER] AS {name}"
            for name, values in (("city", CITIES), ("job", JOBS))
        )
        duckdb.execute(
            "COPY (SELECT (hash(i, 20) % 100)::INTEGER AS age,"
            " (hash(i, 21) % 20000000)::DOUBLE / 100 AS income,"
            " (hash(i, 22) % 8000)::DOUBLE / 100 AS hours, hash(i, 23) % 4 = 0 AS smoker,"
            f" 'r' || (hash(i, 24) % 50) AS region, {words}"
            f" FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"
        )
    return path


def conditions(random: np.random.Generator) -> tuple[Any, str]:
    """One to three conditions as people write them: for the builder and in SQL."""
    low, high = sorted(int(x) for x in random.choice(101, 2, replace=False))
    city, pay = str(random.choice(CITIES)), 1_000 * int(random.integers(1, 100))
    one, two = (str(job) for job in random.choice(JOBS, 2, replace=False))
    smokes = bool(random.random() < 0.5)
    listed = [
        ((col("age") >= low) & (col("age") < high), f"age >= {low} AND age < {high}"),
        (col("age") >= low, f"age >= {low}"),
        (col("city") == city, f"city = '{city}'"),
        (col("job").isin([one, two]), f"job IN ('{one}', '{two}')"),
        (col("smoker") if smokes else ~col("smoker"), "smoker" if smokes else "NOT smoker"),
        (col("income") >= pay, f"income >= {pay}"),
    ]
    chosen = random.choice(len(listed), int(random.integers(1, 4)), replace=False)
    where, text = listed[chosen[0]]
    for place in chosen[1:]:
        where, text = where & listed[place][0], f"{text} AND {listed[place][1]}"
    return where, text


def question(random: np.random.Generator, kind: str) -> tuple[Any, str | None]:
    """A question of this kind, and the same in SQL where it has words for it."""
    where, text = conditions(random)
    summed = str(random.choice(["income", "hours"]))
    by = str(random.choice(["city", "job", "region"]))
    tail = f"FROM people WHERE {text}"
    match kind:
        case "count":
            return count(where=where), f"SELECT COUNT(*) {tail}"
        case "total":
            return total(summed, where=where), f"SELECT SUM({summed}) {tail}"
        case "mean":
            return mean(summed, where=where), f"SELECT AVG({summed}) {tail}"
        case "histogram":
            return histogram(by, where=where), f"SELECT {by}, COUNT(*) {tail} GROUP BY {by}"
        case "average by group":
            there = when(col(summed).is_not_null()).then(1).otherwise(0)
            asked = SumQuery((col(summed), there), rows=where, groups=(group(by),))
            return asked, f"SELECT {by}, AVG({summed}) {tail} GROUP BY {by}"
        case "distribution":
            return distribution(summed, where=where), None
    sides = columns(["income", "hours"])
    return outer(sides, sides, rows=where), None


def kinds(random: np.random.Generator, questions: int) -> list[str]:
    names = list(KINDS)
    weights = np.array([KINDS[name] for name in names], dtype=float)
    return [str(name) for name in random.choice(names, questions, p=weights / weights.sum())]


class Past:
    """Stored answers, put straight into the ledger: a search does not look at their values."""

    def __init__(self, db: Database) -> None:
        self._db, self._random = db, np.random.default_rng(5)
        self._known: set[str] = set()

    def grow(self, answers: int) -> None:
        """Store answers until there are so many."""
        db, unit = self._db, Loss.zero()
        batch: list[tuple[PricedRequest, int]] = []
        while len(self._known) < answers:
            (kind,) = kinds(self._random, 1)
            bound = db.bind(question(self._random, kind)[0])
            if bound.digest not in self._known:
                self._known.add(bound.digest)
                noise = price(bound, db.calibration, Fraction(1)).noise
                priced = PricedRequest(bound.text, bound.digest, noise, {}, unit)
                batch.append((priced, bound.width))
            if batch and (len(batch) == 500 or len(self._known) == answers):
                entries = db.ledger.charge_all([one for one, _ in batch], analyst="owner")
                sums = [[1_000 << 30] * width for _, width in batch]
                db.ledger.settle_all(list(zip(entries, sums, strict=True)))
                batch = []


class Clocks:
    """Processor time of the engine's reading and of the searches, while questions are asked."""

    def __init__(self, db: Database) -> None:
        self.read = self.searched = 0.0
        prepare = db.engine.prepare

        def timed_prepare(program: Any) -> Callable[[], list[int]]:
            read = prepare(program)

            def timed() -> list[int]:
                begun = time.process_time()
                try:
                    return read()
                finally:
                    self.read += time.process_time() - begun

            return timed

        db.engine.prepare = timed_prepare  # type: ignore[method-assign]
        for name in ("find", "quoted"):
            setattr(db.reuse, name, self._timed(getattr(db.reuse, name)))

    def _timed(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            begun = time.process_time()
            try:
                return work(*given, **named)
            finally:
                self.searched += time.process_time() - begun

        return timed

    def of(self, work: Callable[[], object]) -> tuple[float, float, float]:
        """Seconds of the engine, of the search, and of all that is not the engine."""
        self.read = self.searched = 0.0
        begun = time.process_time()
        work()
        whole = time.process_time() - begun
        return self.read, self.searched, whole - self.read


def asked(
    db: Database, clocks: Clocks, past: int, questions: int
) -> Iterator[tuple[str, str, tuple[float, float, float]]]:
    """How it was asked, its kind, and its times; none of these questions is stored."""
    random = np.random.default_rng([abs(past), past > 0])
    for kind in list(KINDS) * questions:
        built, _ = question(random, kind)
        yield "builder", kind, clocks.of(lambda built=built: db.ask(built))
        _, text = question(random, kind)
        if text is not None:
            yield "SQL", kind, clocks.of(lambda text=text: db.sql(text))


def measure(
    folder: Path,
    full: bool,
    rows: int = 100_000,
    past: Sequence[int] = PAST,
    questions: int = 5,
) -> list[Line]:
    """Lines by how a question is asked, its kind, and how many answers are stored."""
    before = os.environ.get("SULQ_STATE")
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as home:
        os.environ["SULQ_STATE"] = f"{home}/state"
        promise = Promise(2, "1e-6", queries=10**6)
        try:
            with Database.open(
                people(folder, rows), SCHEMA, promise, f"{home}/ledger", publish=True
            ) as db:
                clocks, stored = Clocks(db), Past(db)
                for answers in past:
                    stored.grow(answers)
                    first = [times[2] for *_, times in asked(db, clocks, -answers, 1)]
                    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
                    for how, kind, times in asked(db, clocks, answers, questions):
                        found.setdefault((how, kind), []).append(times)
                    lines += [
                        {
                            "past": answers,
                            "rows": rows,
                            "goal": GOAL,
                            "how": how,
                            "question": kind,
                            "engine": float(np.median([each[0] for each in times])),
                            "search": float(np.median([each[1] for each in times])),
                            "ours": float(np.median([each[2] for each in times])),
                            "worst": max(each[2] for each in times),
                        }
                        for (how, kind), times in found.items()
                    ]
                    lines.append({"past": answers, "rows": rows, "first": sum(first)})
        finally:
            os.environ.pop("SULQ_STATE")
            if before is not None:
                os.environ["SULQ_STATE"] = before
    return lines
