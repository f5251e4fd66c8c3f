"""The kernels on rows in memory, against float NumPy and against the memory's own speed.

    python -m benchmarks kernels

One thread and one BLAS thread, user CPU. "read" and "copy" are what this core gets out of memory;
a kernel's share of it is the bytes of its rows, read once, by the time it took.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.blocks import centres, float_step, gram, lloyd, program_of
from benchmarks.timing import Work, least, repeated
from sulq.kernel.engines import open_engine
from sulq.kernel.engines.blocks import OuterSums
from sulq.kernel.query.expressions import lit
from sulq.kernel.query.sum_query import SumQuery, group
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.columns import Number, Schema
from sulq.kernel.schema.vector_program import leaves_of

GRAMS = ((10, 2_000_000), (50, 400_000), (200, 100_000))
STEPS = ((10, 5, 1_000_000), (10, 20, 1_000_000), (50, 20, 200_000))
BINS = ((100, 4_000_000), (1_000, 4_000_000))
SECONDS = 6.0
Line = dict[str, Any]


def measure(folder: Path, full: bool, share: int = 1) -> list[Line]:
    """In a process of its own: BLAS reads its number of threads once. Rows are divided by share."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-m", "benchmarks.kernels", str(folder), str(share)]
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: list[Line] = json.loads(run.stdout)
    return found


def measured(folder: Path, share: int) -> list[Line]:
    lines = [_memory(64_000_000 // share)]
    lines += [_gram(width, rows // share) for width, rows in GRAMS]
    lines += [_step(width, count, rows // share) for width, count, rows in STEPS]
    lines += [_histogram(folder, bins, rows // share) for bins, rows in BINS]
    return lines


def _pair(ours: Work, numpy: Work) -> list[float]:
    clock = repeated(3)
    return least([(clock, ours), (clock, numpy)], rounds=9, seconds=SECONDS)


def _memory(values: int) -> Line:
    x, y = np.ones(values), np.empty(values)
    read, copy = _pair(lambda: x.max(), lambda: np.copyto(y, x))
    return {"kernel": "memory", "read": x.nbytes / read, "copy": 2 * x.nbytes / copy}


def _rows(width: int, rows: int) -> Any:
    return np.random.default_rng(1).random((rows, width))


def _outer(program: Any, x: Any) -> Work:
    """The exact kernel on float columns, rounding included."""
    leaves = dict.fromkeys((*leaves_of(program.left), *leaves_of(program.right)))
    place = {leaf: number for number, leaf in enumerate(leaves)}
    arrays = [x[:, k].copy() for k in range(x.shape[1])]
    return lambda: OuterSums(program, place).of([arrays])


def _gram(width: int, rows: int) -> Line:
    x = _rows(width, rows)
    ours, numpy = _pair(_outer(program_of(gram(width), width), x), lambda: x.T @ x)
    what = {"kernel": f"Gram matrix, {width} columns", "rows": rows, "bytes": x.nbytes}
    return what | {"ours": ours, "numpy": numpy}


def _step(width: int, count: int, rows: int) -> Line:
    x, chosen = _rows(width, rows), centres(width, count)
    work = _outer(program_of(lloyd(width, count), width), x)
    ours, numpy = _pair(work, lambda: float_step(x, chosen))
    what = f"k-means round, {count} centres, {width} columns"
    return {"kernel": what, "rows": rows, "bytes": x.nbytes, "ours": ours, "numpy": numpy}


def _histogram(folder: Path, bins: int, rows: int) -> Line:
    """Ours by DuckDB, one thread, from a frame it holds; NumPy's own for equal bins."""
    import pandas as pd

    schema, x = Schema(Number("x", 0, 1)), _rows(1, rows)[:, 0]
    engine = open_engine(pd.DataFrame({"x": x}), schema, threads=1)
    program = bind(SumQuery((lit(1),), groups=(group("x", bins=bins),)), schema).sums
    ours, numpy = _pair(
        lambda: engine.exact_sums(program), lambda: np.histogram(x, bins, range=(0, 1))
    )
    engine.close()
    what = {"kernel": f"histogram, {bins:,} bins", "rows": rows, "bytes": x.nbytes}
    return what | {"ours": ours, "numpy": numpy}


if __name__ == "__main__":
    print(json.dumps(measured(Path(sys.argv[1]), int(sys.argv[2]))))
