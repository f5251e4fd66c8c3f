"""How many pairs are compared on each path: in every run of the tests, and in `make attacks`."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.replay import acts, elsewhere, fits, paths, served, studies  # noqa: F401

WANTED = {
    "ask": 8_000,
    "sql": 6_000,
    "plan": 8_000,
    "top": 12_000,
    "alerts": 6_000,
    "mixed": 5_000,
    "individual": 8_000,
    "growth": 5_000,
    "keys": 8_000,
    "owner": 5_000,
    "population": 6_000,
    "remote": 8_000,
    "http": 5_000,
    "console": 5_000,
    "purposes": 5_000,
    "wire": 5_000,
    "studies": 5_000,
    "vault": 5_000,
    "postgres": 5_000,
    "spark": 5_000,
    "replicas": 300,
    "learners": 300,
    "federation": 300,
    "exact": 300,
}
"""Pairs of neighbouring tables and questions, in `make attacks`: 10^5 in all."""
FEW = {
    "ask": 144,
    "sql": 72,
    "plan": 72,
    "top": 72,
    "alerts": 72,
    "mixed": 72,
    "individual": 72,
    "growth": 48,
    "keys": 48,
    "owner": 72,
    "population": 24,
    "remote": 24,
    "http": 56,
    "console": 41,
    "purposes": 40,
    "wire": 40,
    "studies": 36,
    "vault": 24,
    "postgres": 84,
    "replicas": 12,
    "learners": 8,
    "federation": 12,
    "exact": 10,
}
"""In every run of the tests: 1,000 in all."""
ON_A_SERVER = ("postgres", "replicas")
"""Paths that need a PostgreSQL server."""


def compared(
    path: str, wanted: int, first: int = 0, near: int = 2, where: Any = None
) -> tuple[int, int]:
    """Replay until so many pairs are compared, from the seed `first` on. `Divergence` if one tells.

    Few neighbours of each table: a new table comes with new questions. The number of pairs, and
    the seed to go on from.
    """
    pairs, seed = 0, first
    while pairs < wanted:
        if path in fits.SEVERAL:
            pairs += fits.SEVERAL[path](seed, near)
        elif path == "keys":
            pairs += paths.by_keys(seed, near)
        elif path == "studies":
            pairs += studies.studies(seed, near)
        elif path in ON_A_SERVER:
            pairs += getattr(elsewhere, path)(where, seed, near)
        elif path == "vault":
            pairs += elsewhere.vault(seed, near)
        elif path == "spark":
            pairs += elsewhere.spark(where, seed, near)
        else:
            pairs += paths.by_path(path, seed, near)
        seed += 1
    return pairs, seed


@cache
def spark_folder() -> Path:
    """Where a process's one session of Spark keeps its files, for as long as the process lives."""
    found = tempfile.TemporaryDirectory()
    atexit.register(found.cleanup)
    return Path(found.name)


@contextmanager
def place_for(path: str) -> Iterator[Any]:
    """What a path needs beside this process: a PostgreSQL server, a session of Spark."""
    if path in ON_A_SERVER:
        from tests.postgres_server import running

        with running() as server:
            yield server
    elif path == "spark":
        from tests.spark_session import spark_session

        folder = spark_folder()
        spark_session(folder)
        yield folder
    else:
        yield None
