"""`sulq serve` as a process, for tests that break what is around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.server.conftest import write_people
from tests.waiting import LONGEST

from sulq import col, count
from sulq.wire import question_json

ROOT = Path(__file__).parents[2]
CREDITS = 50
POLICY = f"""
[people]
source = "people.parquet"
ledger = "people.ledger"
promise = {{epsilon = 1, delta = 1e-6, queries = {CREDITS}}}
columns.age = {{number = [0, 110], step = 1}}
columns.income = {{number = [0, 200000], identifier_ok = true, partial = true}}
columns.smoker = {{flag = true}}
columns.region = {{category = ["North", "South"], partial = true}}
"""


def environment(home: Path, **more: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return os.environ | {"SULQ_STATE": str(home / "state"), "PYTHONPATH": path, **more}


def published(
    home: Path, rows: int = 2_000, write: Callable[[Path, int], object] = write_people
) -> Path:
    """A directory with a table, its policy and its ledger."""
    home.mkdir(exist_ok=True)
    write(home / "people.parquet", rows)
    (home / "sulq.toml").write_text(POLICY)
    command = [sys.executable, "-m", "sulq", "publish", "people", "--yes"]
    subprocess.run(command, cwd=home, env=environment(home), capture_output=True, check=True)
    return home


@dataclass
class Process:
    """A server that runs, and its owner's token."""

    process: subprocess.Popen[str]
    url: str
    token: str

    @property
    def pid(self) -> int:
        return self.process.pid

    def ask(self, number: int, key: str | None = None) -> httpx.Response:
        """A count of its own for every number."""
        body = {"question": question_json(count(where=col("income") > number))}
        return self.post("ask", body, key or f"question-{number}")

    def post(self, path: str, body: Any, key: str) -> httpx.Response:
        return httpx.post(
            f"{self.url}/v1/tables/people/{path}",
            json=body,
            headers={"Authorization": f"Bearer {self.token}", "Idempotency-Key": key},
            timeout=120,
        )

    def delete(self, path: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.delete(f"{self.url}/v1/tables/people/{path}", headers=headers, timeout=LONGEST)

    def get(self, path: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.get(f"{self.url}{path}", headers=headers, timeout=LONGEST)

    def spent(self) -> float:
        return float(self.get("/v1/tables/people/statement").json()["spent"])


def start(home: Path, *words: str, program: tuple[str, ...] = ("-m", "sulq"), **more: str) -> Any:
    """The command, started; its own words go to home/log."""
    command = [sys.executable, *program, "serve", "--port", "0", "--json", *words]
    with (home / "log").open("a") as log:
        return subprocess.Popen(
            command,
            cwd=home,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment(home, **more),
        )


@contextmanager
def running(home: Path, *words: str, **more: Any) -> Iterator[Process]:
    """A server without pacing; killed at the end if it still runs."""
    with start(home, "--no-pacing", *words, **more) as process:
        try:
            line = process.stdout.readline()
            assert line, (home / "log").read_text()
            told = json.loads(line)
            code = told["link"].partition("#")[2]
            entered = httpx.post(
                f"{told['address']}/v1/enter", json={"code": code}, timeout=LONGEST
            )
            yield Process(process, told["address"], entered.json()["token"])
        finally:
            if process.poll() is None:
                process.kill()


def refused(home: Path, **more: str) -> bool:
    """True if a server does not start here, and says so as a refusal."""
    with start(home, **more) as process:
        try:
            return bool(process.wait(60) == 3)
        except subprocess.TimeoutExpired:
            return False
        finally:
            process.kill()


def stopped(server: Process) -> None:
    server.process.terminate()
    assert server.process.wait(120) == 0
