"""`sulq serve` under load, against the bare engine and the bare ledger in the same run.

    python -m benchmarks.service [asks]

64 clients (benchmarks/service_load.py, a process of its own) ask distinct questions of a table of a
million rows. The engine alone answers the same questions, the ledger alone charges and settles as
many, with the server's number of threads. The slower of the two is the limit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import duckdb
import httpx

from benchmarks.ledger import ask as charge_and_settle
from benchmarks.ledger import journal
from sulq.answers.statistics import count, mean
from sulq.kernel.engines import open_engine
from sulq.kernel.query.expressions import col
from sulq.kernel.query.sum_query import Statistic
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.server.limits import Settings
from sulq.wire import question_json

ROWS, ASKS, CLIENTS = 1_000_000, 10_000, 64
EACH = 4
"""Credits for each question: all are asked twice, the second time by somebody else."""
REGIONS = ("North", "East", "South", "West")
SCHEMA = Schema(
    Number("age", 0, 110, step=1),
    Number("income", 0, 500_000),
    Flag("smoker"),
    Category("region", REGIONS),
)
POLICY = """
[people]
source = "people.parquet"
ledger = "people.ledger"
promise = {{epsilon = 1, delta = 1e-6, queries = {credits}}}
columns.age = {{number = [0, 110], step = 1}}
columns.income = {{number = [0, 500000]}}
columns.smoker = {{flag = true}}
columns.region = {{category = ["North", "East", "South", "West"]}}
"""
Figure = tuple[str, float, str]


def write(path: Path, rows: int) -> None:
    duckdb.execute(
        "COPY (SELECT (hash(i) % 110)::INTEGER AS age, (hash(i + 1) % 500000)::DOUBLE AS income,"
        " hash(i + 2) % 5 = 0 AS smoker,"
        " ['North', 'East', 'South', 'West'][(hash(i + 3) % 4)::INTEGER + 1] AS region"
        f" FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"
    )


def questions(number: int) -> list[Statistic]:
    """Distinct: each has a threshold of its own; seven counts for one mean."""
    found = []
    for place in range(number):
        rich = col("income") >= 1_000 + place * 400_000 // number
        old = col("age") >= place % 97
        here = col("region") == REGIONS[place % 4]
        where = (rich & old, rich & here, rich & old & here, rich)[place % 4]
        found.append(mean("age", where=where) if place % 8 == 7 else count(where=where))
    return found


@contextmanager
def serving(home: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str, httpx.Client]]:
    """`sulq serve` as a process: it, its address, and a client with the owner's token."""
    command = [sys.executable, "-m", "sulq", "serve", "--port", "0", "--json", *words]
    source = str(Path(__file__).parents[1] / "src")
    environment = os.environ | {"SULQ_STATE": str(home / "state"), "PYTHONPATH": source}
    publish = [sys.executable, "-m", "sulq", "publish", "people", "--yes"]
    subprocess.run(publish, cwd=home, env=environment, capture_output=True, check=True)
    with (home / "log").open("a") as log:
        process = subprocess.Popen(
            command, cwd=home, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
        )
    with process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        url = told["address"]
        code = told["link"].partition("#")[2]
        token = httpx.post(f"{url}/v1/enter", json={"code": code}).json()["token"]
        headers = {"Authorization": f"Bearer {token}"}
        try:
            with httpx.Client(base_url=url, headers=headers, timeout=60) as owner:
                yield process, url, owner
        finally:
            process.terminate()
            process.wait(60)


def served(home: Path, asked: Sequence[Statistic], *words: str) -> dict[str, Any]:
    """Ask everything through a server; its figures, once the books were found exact."""
    home.mkdir()
    (home / "people.parquet").symlink_to(home.parent / "people.parquet")
    (home / "sulq.toml").write_text(POLICY.format(credits=EACH * len(asked)))
    bodies = [json.dumps({"question": question_json(one)}) for one in asked]
    with serving(home, *words) as (process, url, owner):
        share = EACH * len(asked) // CLIENTS
        grants = [{"name": f"analyst-{n}", "credits": share} for n in range(CLIENTS)]
        tokens = [owner.post("/v1/tables/people/grants", json=g).json()["token"] for g in grants]
        told = {"url": url, "tokens": tokens, "bodies": bodies, "pid": process.pid}
        found = load(told | {"keys": "question"})
        books = owner.get("/v1/tables/people/statement").json()
        _check(found, books, share, len(asked))
        found["overruns"] = books["overruns"]
        again = load(told | {"keys": "again"})
        if again["errors"] or again["receipts"] > len(asked):
            raise SystemExit(f"asked again: {again['errors']}, {again['receipts']} receipts")
        found["memory"].append(again["memory"][-1])
        found["each again"] = again["each"]
    return found


def load(told: dict[str, Any]) -> dict[str, Any]:
    """All clients at once, in a process of their own; what they saw."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.service_load"],
        cwd=Path(__file__).parents[1],
        input=json.dumps(told),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def _check(found: dict[str, Any], books: dict[str, Any], share: int, asks: int) -> None:
    """No error, no question answered twice or not at all, and every credit accounted for."""
    paid = [sum(map(Fraction, each), Fraction(0)) for each in found.pop("credits")]
    if found["errors"] or found["answers"] != asks or found["receipts"] != asks:
        raise SystemExit(f"{found['errors']}: {found['answers']} answers of {asks}")
    lines = {line["name"]: Fraction(line["spent_exact"]) for line in books["analysts"]}
    mine = [lines[f"analyst-{number}"] for number in range(CLIENTS)]
    if paid != mine or max(mine) > share or books["answered"] != asks:
        raise SystemExit("what the clients paid is not what the ledger says")
    if Fraction(books["spent_exact"]) + Fraction(books["left_exact"]) != EACH * asks:
        raise SystemExit("spent and left are not the promise")


def per_second(work: Callable[[int], object], number: int, threads: int) -> float:
    """How often `work(0)`, `work(1)`, ... return."""
    waiting: SimpleQueue[int] = SimpleQueue()
    for place in range(number):
        waiting.put(place)

    def run() -> None:
        while True:
            try:
                work(waiting.get_nowait())
            except Empty:
                return

    running = [threading.Thread(target=run) for _ in range(threads)]
    start = time.perf_counter()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return number / (time.perf_counter() - start)


def alone(home: Path, asked: Sequence[Statistic]) -> tuple[float, float]:
    """The engine and the ledger, each for itself: questions a second."""
    threads = Settings().threads
    engine = open_engine(home / "people.parquet", SCHEMA)
    programs = [bind(question, SCHEMA).sums for question in asked]
    read = per_second(lambda n: engine.exact_sums(programs[n]), len(programs), threads)
    engine.close()
    with tempfile.TemporaryDirectory(dir=home) as fresh, journal(Path(fresh)) as ledger:
        kept = per_second(lambda n: charge_and_settle(ledger, str(n)), len(asked), threads)
    return read, kept


def figures(asks: int = 2_000, sample: int = 1_000) -> list[Figure]:
    """The goal: at least 0.5x of the slower one, with pacing. Unpaced only a sample is asked."""
    before = os.environ.get("SULQ_STATE")
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        os.environ["SULQ_STATE"] = str(home / "bare")
        try:
            write(home / "people.parquet", ROWS)
            asked = questions(asks)
            some = asked[:: max(1, asks // sample)]
            first = alone(home, some)
            unpaced = served(home / "unpaced", some, "--no-pacing")
            paced = served(home / "paced", asked)
            last = alone(home, some)
        finally:
            if before is None:
                del os.environ["SULQ_STATE"]
            else:
                os.environ["SULQ_STATE"] = before
    engine, ledger = ((one + other) / 2 for one, other in zip(first, last, strict=True))
    limit = min(engine, ledger)
    found: list[Figure] = [("engine alone", engine, "/s"), ("ledger alone", ledger, "/s")]
    for name, run in (("unpaced", unpaced), ("paced", paced)):
        found += [
            (f"service, {CLIENTS} clients, {name}", run["per_second"], "/s"),
            (f"service against the slower, {name}", run["per_second"] / limit, "x"),
            (f"latency p50, {name}", 1_000 * run["p50"], "ms"),
            (f"latency p99, {name}", 1_000 * run["p99"], "ms"),
            (f"memory after a tenth, {name}", run["memory"][0], "MB"),
            (f"memory at the end, {name}", run["memory"][1], "MB"),
            (f"memory when all was asked again, {name}", run["memory"][2], "MB"),
            (f"memory for each question of the second half, {name}", run["each"], "bytes"),
            (f"the same when all was asked again, {name}", run["each again"], "bytes"),
        ]
    return [*found, ("replies that missed their tick, paced", paced["overruns"], "")]


if __name__ == "__main__":
    for what, value, unit in figures(int(sys.argv[1]) if sys.argv[1:] else ASKS):
        print(f"{what:60s} {value:12,.2f} {unit}")
