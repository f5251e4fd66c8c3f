"""Exact outer products against plain float NumPy: user CPU on the same rows, and peak memory.

    python -m benchmarks.blocks

Each case runs in a process of its own with one BLAS thread (idle ones burn CPU). "stream" reads
the same Parquet file through the same Arrow stream on both sides; "memory" starts from float
arrays, so the exact side also pays for rounding them. Peak memory is the whole process's.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from sulq.kernel.engines import open_engine
from sulq.kernel.engines.blocks import OuterSums
from sulq.kernel.engines.duckdb.arrow import blocks
from sulq.kernel.query.sum_query import SumQuery, outer
from sulq.kernel.query.vectors import columns, concat, from_nearest, nearest, ones, scaled
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.columns import Number, Schema
from sulq.kernel.schema.vector_program import BlockSums, leaves_of

GRAMS = ((10, 1_000_000), (50, 400_000), (200, 100_000))
STEP = (10, 20, 1_000_000)
MEMORY = (10, 2_000_000)
ROUNDS = 7


def write(path: Path, width: int, rows: int) -> Path:
    wanted = ", ".join(f"hash(i * 1000 + {k}) % 1000003 / 1000003.0 AS n{k}" for k in range(width))
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {wanted} FROM range({rows}) AS t(i)) TO '{path}'")
    return path


def schema_of(width: int) -> Schema:
    return Schema(*(Number(f"n{k}", 0, 1) for k in range(width)))


def program_of(query: SumQuery, width: int) -> BlockSums:
    program = bind(query, schema_of(width)).sums
    assert isinstance(program, BlockSums)
    return program


def gram(width: int) -> SumQuery:
    v = columns([f"n{k}" for k in range(width)], centre=0.5)
    return outer(v, v)


def centres(width: int, count: int) -> Any:
    return np.random.default_rng(1).uniform(0, 1, (count, width)).round(3)


def lloyd(width: int, count: int) -> SumQuery:
    v, chosen = columns([f"n{k}" for k in range(width)]), centres(width, count)
    return outer(nearest(v, chosen), concat(scaled(ones(), 0.5), from_nearest(v, chosen)))


def user_cpu(work: Callable[[], object]) -> float:
    start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    work()
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime - start


def ratio(exact: Callable[[], object], plain: Callable[[], object]) -> float:
    """Of the least of several interleaved runs."""
    times = [(user_cpu(exact), user_cpu(plain)) for _ in range(ROUNDS)]
    return min(a for a, _ in times) / min(b for _, b in times)


def loaded(path: Path) -> Any:
    """The file as an array (rows, columns)."""
    with duckdb.connect() as connection:
        relation = connection.sql(f"FROM '{path}'")
        return np.concatenate([np.stack(block, axis=1) for block in blocks(relation)])


def float_gram(path: Path) -> Any:
    total: Any = 0.0
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        for block in blocks(connection.sql(f"FROM '{path}'")):
            x = np.stack(block)
            total = total + x @ x.T
    return total


def stream_case(path: Path, width: int) -> float:
    engine = open_engine(path, schema_of(width), threads=2)
    program = program_of(gram(width), width)
    return ratio(lambda: engine.exact_sums(program), lambda: float_gram(path))


def memory_case(path: Path, width: int) -> float:
    x, program = loaded(path), program_of(gram(width), width)
    place = {leaf: number for number, leaf in enumerate(dict.fromkeys(leaves_of(program.left)))}
    arrays = [x[:, k].copy() for k in range(width)]
    return ratio(lambda: OuterSums(program, place).of([arrays]), lambda: x.T @ x)


def float_step(x: Any, chosen: Any) -> Any:
    """One Lloyd round: nearest centre, then counts and sums."""
    squares = np.square(chosen).sum(axis=1)
    counts, sums = np.zeros(len(chosen)), np.zeros_like(chosen)
    for start in range(0, len(x), 65_536):
        part = x[start : start + 65_536]
        near = (squares - 2 * part @ chosen.T).argmin(axis=1)
        here = np.zeros((len(part), len(chosen)))
        here[np.arange(len(part)), near] = 1.0
        counts += here.sum(axis=0)
        sums += here.T @ part
    return counts, sums


def step_case(path: Path, width: int, count: int) -> float:
    """From the file on the exact side, from memory on the plain one."""
    engine = open_engine(path, schema_of(width), threads=2)
    x, chosen, program = loaded(path), centres(width, count), program_of(lloyd(width, count), width)
    return ratio(lambda: engine.exact_sums(program), lambda: float_step(x, chosen))


def peak_case(path: Path, width: int) -> float:
    """Megabytes of a process that opens the file and asks for a Gram matrix, at its peak."""
    engine = open_engine(path, schema_of(width), threads=2)
    engine.exact_sums(program_of(gram(width), width))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


CASES: dict[str, Callable[..., float]] = {
    "stream": stream_case,
    "memory": memory_case,
    "step": step_case,
    "peak": peak_case,
}


def alone(case: str, path: Path, *sizes: int) -> float:
    """The case in its own process."""
    command = [sys.executable, "-m", "benchmarks.blocks", case, str(path), *map(str, sizes)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(json.loads(run.stdout))


def figures() -> list[tuple[str, float, str]]:
    """Ratios of user CPU to float NumPy, and megabytes."""
    found: list[tuple[str, float, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for width, rows in GRAMS:
            path = write(Path(folder) / f"{width}.parquet", width, rows)
            what = f"gram, {width} columns, {rows:,} rows"
            found.append((f"{what}, stream", round(alone("stream", path, width), 2), "x"))
            found.append((f"{what}, memory", round(alone("memory", path, width), 2), "x"))
        width, count, rows = STEP
        path = write(Path(folder) / "step.parquet", width, rows)
        what = f"k-means step, {count} centres, {width} columns, {rows:,} rows"
        found.append((what, round(alone("step", path, width, count), 2), "x"))
        width, rows = MEMORY
        for many in (rows, 4 * rows):
            path = write(Path(folder) / "peak.parquet", width, many)
            what = f"gram, {width} columns, {many:,} rows, peak memory"
            found.append((what, round(alone("peak", path, width)), "MB"))
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        case, path, *sizes = sys.argv[1:]
        print(json.dumps(CASES[case](Path(path), *map(int, sizes))))
    else:
        for what, value, unit in figures():
            print(f"{what:60} {value:8.2f} {unit}")
