"""`sulq serve` as 1, 2 and 4 replicas on one PostgreSQL ledger, under load.

    python -m benchmarks replicas [--full]

Real servers, each a process with a state directory of its own, joined by the owner's key; a real
PostgreSQL that syncs. The table is small (10,000 rows), so that what is measured is the service and
the ledger and not the scan. Each replica has its own clients (a process); all start together. The
run fails unless every question was answered once and the books of all replicas add up.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
from tests.postgres_server import MISSING, PostgresServer, running
from tests.postgres_server import programs as postgres_programs

from benchmarks.ledger import ENDLESS, ask, per_second
from benchmarks.service import POLICY, questions, serving, write
from sulq.kernel.ledger.ledger import Ledger
from sulq.wire import question_json

ROWS, ASKS, CLIENTS = 10_000, 2_000, 32
ROOT = Path(__file__).parents[1]
Line = dict[str, Any]


def measure(folder: Path, full: bool, asks: int = ASKS) -> list[Line]:
    """Answers a second by number of replicas, paced and not; the ledger alone beside it."""
    if postgres_programs() is None:
        return [{"missing": MISSING}]
    lines: list[Line] = []
    with running() as server, tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        write(home / "people.parquet", ROWS)
        lines.append(_ledger_alone(server, home))
        for pacing in (False, True) if full else (False,):
            for count in (1, 2, 4):
                lines.append(_served(server, home / f"{count}-{pacing}", count, asks, pacing))
        if not full:
            lines.append(_served(server, home / "paced", 2, asks // 2, True))
    return lines


def _ledger_alone(server: PostgresServer, home: Path) -> Line:
    """Charge and settle from one process, on SQLite and on PostgreSQL; bytes of an ask."""
    found: Line = {"kind": "ledger alone"}
    before = os.environ.get("SULQ_STATE")
    os.environ["SULQ_STATE"] = str(home / "bare")
    try:
        for name, place in (
            ("sqlite", home / "ledger"),
            ("postgres", server.url() + "&ledger=bare"),
        ):
            opened = Ledger.open(
                place,
                name="people",
                facts={},
                accounts=("",),
                cap=ENDLESS,
                fingerprint=None,
                publish=True,
            )
            for callers in (1, 64):
                found[f"{name}, {callers}"] = per_second(callers, lambda one: ask(opened, one))  # noqa: B023
            entries = sum(1 for _ in opened.entries()) if hasattr(opened, "entries") else None
            opened.close()
            if name == "sqlite" and entries:
                found["bytes"] = (home / "ledger").stat().st_size / entries
    finally:
        os.environ.pop("SULQ_STATE")
        if before is not None:
            os.environ["SULQ_STATE"] = before
    return found


def _served(server: PostgresServer, home: Path, count: int, asks: int, pacing: bool) -> Line:
    name = home.name.replace("-", "_").lower()
    address = f"{server.url()}&ledger=r{name}"
    words = () if pacing else ("--no-pacing",)
    share = 20 * asks // (count * CLIENTS)
    with ExitStack() as stack:
        owners: list[httpx.Client] = []
        told: list[dict[str, Any]] = []
        for number in range(count):
            mine = home / str(number)
            mine.mkdir(parents=True)
            (mine / "people.parquet").symlink_to(home.parent / "people.parquet")
            policy = POLICY.format(credits=20 * asks).replace("people.ledger", address)
            (mine / "sulq.toml").write_text(policy)
            if number:
                _sulq(home / "0", "share-key", str(mine / "key"))
                _sulq(mine, "join", str(mine / "key"))
            process, url, owner = stack.enter_context(serving(mine, *words))
            owners.append(owner)
            tokens = [_token(owner, f"analyst-{number}-{n}", share) for n in range(CLIENTS)]
            told.append({"url": url, "tokens": tokens, "pid": process.pid})
        for number, one in enumerate(told):
            asked = questions(asks)[number::count]
            one["bodies"] = [json.dumps({"question": question_json(each)}) for each in asked]
        found, seconds = _load(told)
        books = owners[-1].get("/v1/tables/people/statement").json()
    errors = [error for one in found for error in one["errors"]]
    answers = sum(one["answers"] for one in found)
    paid = sum(Fraction(c) for one in found for each in one["credits"] for c in each)
    if errors or answers != asks or Fraction(books["spent_exact"]) != paid:
        raise SystemExit(f"{errors[:2]}: {answers} answers of {asks}; {paid} paid, books {books}")
    return {
        "kind": "replicas",
        "replicas": count,
        "paced": pacing,
        "clients": count * CLIENTS,
        "asks": asks,
        "per_second": asks / seconds,
        "p50": max(one["p50"] for one in found),
        "p99": max(one["p99"] for one in found),
        "memory": max(one["memory"][-1] for one in found),
        "cpu": sum(one["cpu"] for one in found) / asks,
    }


def _token(owner: httpx.Client, name: str, credits: int) -> str:
    grant = owner.post("/v1/tables/people/grants", json={"name": name, "credits": credits})
    return str(grant.json()["token"])


def _sulq(home: Path, *words: str) -> None:
    environment = os.environ | {"SULQ_STATE": str(home / "state"), "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "sulq", *words]
    subprocess.run(command, cwd=home, env=environment, capture_output=True, check=True)


def _load(told: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], float]:
    """All load processes at once: what each tells, and the wall time of the longest."""
    begun = time.perf_counter()
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.service_load"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in told
    ]
    for process, one in zip(processes, told, strict=True):
        assert process.stdin is not None
        process.stdin.write(json.dumps(one))
        process.stdin.close()
    found = []
    for process in processes:
        assert process.stdout is not None
        found.append(json.loads(process.stdout.read()))
        process.wait()
    return found, max([one["seconds"] for one in found], default=time.perf_counter() - begun)
