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
with Database.open("{path}", schema, Promise(1, 1e-6, 100), "{ledger}", publish=True) as db:
    print(db.ask(count(where=col("age") >= 65)))
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
        times: dict[str, list[float]] = {"raw": [], "ours": []}
        for number in range(rounds):
            for name, code in (("raw", RAW), ("ours", OURS)):
                filled = code.format(path=path, ledger=Path(folder) / f"ledger{number}")
                times[name].append(_cpu(filled, folder + f"/state{number}"))
        raw, ours = (min(times[name]) for name in ("raw", "ours"))
    return [
        ("cold: raw DuckDB process, first aggregate", raw, "s cpu"),
        ("cold: import sulq, publish, first answer", ours, "s cpu"),
        ("cold: ratio (goal <= 3)", ours / raw, "x"),
        ("base install, packages on disk (goal <= 240)", _installed(), "MB"),
    ]


def _cpu(code: str, state: str) -> float:
    """User and system CPU of a fresh process."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(  # as installed: modules are compiled once, by the first of the rounds
        [sys.executable, "-c", code],
        check=True,
        stdout=subprocess.DEVNULL,
        env=kept | {"SULQ_STATE": state},
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
