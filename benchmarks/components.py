"""PCA from a file against plain float NumPy: user CPU on the same rows, and peak memory.

    python -m benchmarks.components

The plain side reads the same Parquet file through the same Arrow stream, once, and adds up sums and
products. Rows all over their bounds need one look at the data; rows in a small part of them need
up to five passes (look, distances, centre, distances, Gram matrix). Each case runs in a process of
its own with one BLAS thread.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from benchmarks.blocks import user_cpu, write
from sulq import Database, Number, Promise, Schema
from sulq.kernel.engines.duckdb.arrow import blocks
from sulq.learn import PCA

SMALL = (10, 1_000_000)
WIDE = (200, 1_000_000)
ROUNDS = 5


def schema_of(width: int, reach: int) -> Schema:
    """Values lie in [0, 1]; the bounds are `reach` times as wide."""
    return Schema(*(Number(f"n{k}", 0, reach) for k in range(width)))


def plain(path: Path, count: int) -> Any:
    """Means and covariance in one pass over float blocks, then the eigenvectors."""
    sums: Any = 0.0
    products: Any = 0.0
    rows = 0
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        for block in blocks(connection.sql(f"FROM '{path}'")):
            x = np.stack(block)
            sums = sums + x.sum(axis=1)
            products = products + x @ x.T
            rows += x.shape[1]
    covariance = (products - np.outer(sums, sums) / rows) / (rows - 1)
    return np.linalg.eigh(covariance)[1][:, ::-1][:, :count]


def fitted(path: Path, width: int, reach: int) -> tuple[float, int]:
    """User CPU of one fit on a table opened before, and its passes over the rows."""
    promise = Promise(epsilon=1, delta="1e-6")
    with Database.open(path, schema_of(width, reach), promise, ":memory:") as db:
        learner = PCA(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            used = user_cpu(lambda: learner.fit(db, [f"n{k}" for k in range(width)]))
        return used, len(learner.receipts_)


def ratio_case(path: Path, width: int, reach: int) -> tuple[float, float]:
    ours, theirs, passes = [], [], 0
    for _ in range(ROUNDS):
        used, passes = fitted(path, width, reach)
        ours.append(used)
        theirs.append(user_cpu(lambda: plain(path, 3)))
    return min(ours) / min(theirs), passes


def peak_case(path: Path, width: int, reach: int) -> tuple[float, float]:
    _, passes = fitted(path, width, reach)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, passes


CASES: dict[str, Callable[[Path, int, int], tuple[float, float]]] = {
    "ratio": ratio_case,
    "peak": peak_case,
}


def alone(case: str, path: Path, width: int, reach: int) -> tuple[float, float]:
    command = [sys.executable, "-m", "benchmarks.components", case, str(path)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [*command, str(width), str(reach)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    value, passes = json.loads(run.stdout)
    return value, passes


def figures() -> list[tuple[str, float, str]]:
    """Ratios of user CPU to float NumPy with the passes they took, and megabytes."""
    found: list[tuple[str, float, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        width, rows = SMALL
        path = write(Path(folder) / "small.parquet", width, rows)
        for reach, where in ((1, "all over their bounds"), (50, "in a 50th of their bounds")):
            value, passes = alone("ratio", path, width, reach)
            what = f"PCA, {width} columns, {rows:,} rows {where}"
            found.append((f"{what}, {passes:.0f} passes", round(value, 2), "x"))
        width, rows = WIDE
        path = write(Path(folder) / "wide.parquet", width, rows)
        value, passes = alone("peak", path, width, 1)
        what = f"PCA, {width} columns, {rows:,} rows, {passes:.0f} passes, peak memory"
        found.append((what, round(value), "MB"))
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        case, path, *sizes = sys.argv[1:]
        print(json.dumps(CASES[case](Path(path), *map(int, sizes))))
    else:
        for what, value, unit in figures():
            print(f"{what:80} {value:8.2f} {unit}")
