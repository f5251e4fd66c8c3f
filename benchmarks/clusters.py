"""One round of KMeans against plain float NumPy: user CPU on the same rows.

    python -m benchmarks.clusters

The question is the product's own round (rows and clipped residuals of all clusters), from DuckDB
over a Parquet file; the plain side starts from a float array in memory. Then a whole fit: passes
over the data and seconds, with what it found against scikit-learn's best of ten.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans as PlainKMeans

from benchmarks.blocks import centres, float_step, loaded, program_of, ratio, schema_of, write
from sulq import Database, Number, Promise, Schema
from sulq.kernel.engines import open_engine
from sulq.kernel.query.sum_query import outer
from sulq.kernel.query.vectors import columns, concat, from_nearest, nearest, ones, scaled
from sulq.learn import KMeans

ROWS, WIDTH, COUNTS = 1_000_000, 10, (5, 20)


def step(path: Path, count: int) -> float:
    """User CPU of an exact round over that of the float one; the clip cuts half of the rows."""
    vector, chosen = columns([f"n{k}" for k in range(WIDTH)]), centres(WIDTH, count)
    x = loaded(path)
    near = np.square(x[:10_000, None] - chosen[None]).sum(axis=2).min(axis=1)
    clip = float(np.sqrt(np.median(near)).round(6))
    right = concat(scaled(ones(), 0.6 * clip), from_nearest(vector, chosen, clip))
    program = program_of(outer(nearest(vector, chosen), right), WIDTH)
    engine = open_engine(path, schema_of(WIDTH), threads=2)
    return ratio(lambda: engine.exact_sums(program), lambda: float_step(x, chosen))


def alone(path: Path, count: int) -> float:
    """In a process of its own with one BLAS thread."""
    command = [sys.executable, "-m", "benchmarks.clusters", str(path), str(count)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(json.loads(run.stdout))


def groups(rows: int, width: int, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Unequal Gaussian groups."""
    random = np.random.default_rng(6)
    which = random.choice(count, rows, p=random.dirichlet(np.full(count, 2.0)))
    middle, spread = random.uniform(-2.5, 2.5, (count, width)), random.uniform(0.4, 1.2, count)
    return middle[which] + spread[which, None] * random.standard_normal((rows, width))


def fits() -> list[tuple[str, float, str]]:
    """Inertia over the best of ten plain runs, on groups in wide bounds."""
    found = []
    for rows, width, count in ((20_000, 4, 6), (50_000, 20, 8)):
        points = groups(rows, width, count)
        names = [f"x{k}" for k in range(width)]
        schema = Schema(*(Number(name, -20, 20) for name in names))
        best = PlainKMeans(count, n_init=10, random_state=0).fit(points).inertia_
        for epsilon in ("0.1", "1"):
            promise = Promise(epsilon, "1e-6", neighbours="add-remove")
            data = dict(zip(names, points.T, strict=True))
            database = Database.open(data, schema, promise, ":memory:")
            start = time.perf_counter()
            model = KMeans(count, random_state=0, on_noise="warn").fit(database, names)
            what = f"k-means, {count} groups, {width} columns, {rows:,} rows, epsilon {epsilon}"
            score = (
                np.square(points[:, None] - model.cluster_centers_[None]).sum(axis=2).min(axis=1)
            )
            found.append((f"{what}, inertia", float(score.sum()) / best, "x plain"))
            found.append((f"{what}, fit", time.perf_counter() - start, "s"))
    return found


def figures() -> list[tuple[str, float, str]]:
    """Ratios of user CPU to float NumPy, and of inertia to plain k-means."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "rows.parquet", WIDTH, ROWS)
        for count in COUNTS:
            what = f"k-means round, {count} centres, {WIDTH} columns, {ROWS:,} rows"
            found.append((what, alone(path, count), "x"))
    return [*found, *fits()]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(step(Path(sys.argv[1]), int(sys.argv[2]))))
    else:
        for what, value, unit in figures():
            print(f"{what:68} {value:8.3f} {unit}")
