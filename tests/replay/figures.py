"""How many pairs are compared on each path: in every run of the tests, and in `make attacks`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.replay import elsewhere, fits, paths, served  # noqa: F401

WANTED = {
    "ask": 20_000,
    "sql": 10_000,
    "plan": 10_000,
    "top": 10_000,
    "alerts": 10_000,
    "mixed": 10_000,
    "individual": 8_000,
    "growth": 6_000,
    "keys": 6_000,
    "http": 5_000,
    "console": 5_000,
    "postgres": 6_000,
    "spark": 1_000,
    "learners": 300,
    "federation": 300,
    "exact": 300,
}
"""Pairs of neighbouring tables and questions, in `make attacks`: 10^5 in all."""
FEW = {
    "ask": 216,
    "sql": 72,
    "plan": 72,
    "top": 72,
    "alerts": 72,
    "mixed": 72,
    "individual": 72,
    "growth": 72,
    "keys": 72,
    "http": 84,
    "console": 41,
    "postgres": 144,
    "learners": 8,
    "federation": 12,
    "exact": 10,
}
"""In every run of the tests: 1,000 in all."""


def compared(
    path: str, wanted: int, first: int = 0, near: int = 6, where: Any = None
) -> tuple[int, int]:
    """Replay until so many pairs are compared, from the seed `first` on. `Divergence` if one tells.

    The number of pairs, and the seed to go on from.
    """
    pairs, seed = 0, first
    while pairs < wanted:
        if path in fits.SEVERAL:
            pairs += fits.SEVERAL[path](seed, min(near, 2 if path == "learners" else near))
        elif path == "keys":
            pairs += paths.by_keys(seed, near)
        elif path == "postgres":
            pairs += elsewhere.postgres(where, seed, near)
        elif path == "spark":
            pairs += elsewhere.spark(where, seed, near)
        else:
            pairs += paths.by_path(path, seed, near)
        seed += 1
    return pairs, seed


@contextmanager
def place_for(path: str) -> Iterator[Any]:
    """What a path needs beside this process: a PostgreSQL server, a session of Spark."""
    if path == "postgres":
        from tests.postgres_server import running

        with running() as server:
            yield server
    elif path == "spark":
        from tests.spark_session import spark_session

        with tempfile.TemporaryDirectory() as folder:
            spark_session(Path(folder))
            yield Path(folder)
    else:
        yield None
