"""From nothing to the first answer, against a raw DuckDB process; and the size of an install."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

RAW = """
import duckdb
print(duckdb.execute("SELECT count(*) FROM '{path}' WHERE age >= 65").fetchall())
"""
OURS = """
import sulq
from sulq import *
schema = Schema(Number("age", 0, 120, step=1), Number("income", 0, 500000))
with Database.open("{path}", schema, Promise(1, 1e-6, 100), "{ledger}", publish={new}) as db:
    print(db.ask(count(where=col("age") >= {least})))
"""
POLICY = """
[people]
source = "people.parquet"
ledger = "asked.ledger"
promise = {epsilon = 1, delta = "1e-6", queries = 100}
columns.age = {number = [0, 120], step = 1}
columns.income = {number = [0, 500_000]}
"""
BASE = """
    duckdb numpy sqlglot apsw nacl fastapi starlette pydantic pydantic_core uvicorn httpx httpcore
    jinja2 markupsafe typer rich pygments click h11 anyio idna certifi sniffio
"""


def figures(rows: int = 1_000_000, rounds: int = 9) -> list[tuple[str, float, str]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        duckdb.execute(
            "COPY (SELECT (hash(i) % 100)::INTEGER AS age,"
            " (hash(i + 1) % 500000)::DOUBLE AS income"
            f" FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"
        )
        (Path(folder) / "sulq.toml").write_text(POLICY, "utf-8")
        _cpu(["-m", "sulq", "publish", "--yes"], folder, "ask")
        first = OURS.format(path=path, ledger=f"{folder}/known.ledger", new=True, least=1)
        _cpu(["-c", first], folder, "known")
        times: dict[str, list[float]] = {}
        for number in range(rounds):
            new = {"path": path, "ledger": f"{folder}/ledger{number}", "new": True, "least": 65}
            known = {
                "path": path,
                "ledger": f"{folder}/known.ledger",
                "new": False,
                "least": 2 + number,
            }
            select = f"SELECT AVG(income) FROM people WHERE age >= {2 + number}"
            for name, words in {
                "raw": ["-c", RAW.format(path=path)],
                "new": ["-c", OURS.format(**new)],
                "known": ["-c", OURS.format(**known)],
                "ask": ["-m", "sulq", "ask", select],
            }.items():
                state = f"new{number}" if name == "new" else name
                times.setdefault(name, []).append(_cpu(words, folder, state))
        raw, new_, known_, ask = (min(times[name]) for name in ("raw", "new", "known", "ask"))
    return [
        ("cold: raw DuckDB process, first aggregate", raw, "s cpu"),
        ("cold: import sulq, publish, first answer", new_, "s cpu"),
        ("cold: ratio (goal <= 3)", new_ / raw, "x"),
        ("cold: import sulq, first answer on a published table", known_, "s cpu"),
        ("cold: ratio (goal <= 2)", known_ / raw, "x"),
        ("sulq ask of a SELECT (goal <= 0.6)", ask, "s cpu"),
        ("base install, packages on disk (goal <= 240)", _installed(), "MB"),
    ]


def _cpu(words: list[str], folder: str, state: str) -> float:
    """User and system CPU of a fresh process in this folder, with a state of this name there."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    own = {"SULQ_STATE": f"{folder}/{state}", "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(  # as installed: modules are compiled once, by the first of the rounds
        [sys.executable, *words], check=True, stdout=subprocess.DEVNULL, cwd=folder, env=kept | own
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _installed() -> float:
    """The packages of the base install where this interpreter finds them."""
    site = Path(duckdb.__file__).parents[1]
    wanted = [*BASE.split(), "numpy.libs", "_duckdb", "PyNaCl", "sulq"]
    found = [path for path in site.iterdir() if path.name.split("-")[0] in wanted]
    files = (f for path in found for f in ([path] if path.is_file() else path.rglob("*")))
    return sum(f.stat().st_size for f in files if f.is_file()) / 1e6


if __name__ == "__main__":
    for name, value, unit in figures():
        print(f"{name:60} {value:12.3f} {unit}")
