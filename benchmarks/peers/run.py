"""The peers, one after the other: `python -m benchmarks peers [--full]`.

Everybody answers about the rows with age >= t of one Parquet file, for 200 thresholds t, protecting
the presence of one row at (epsilon, delta) = (1, 1e-6); each with the mechanism that is its best at
that guarantee. Times are of the large file: cold is a new process from the import to the first
count, the second of two, so that compiled modules and file caches are there; memory is that
process's peak. Errors are of a small file, where even slow peers answer often enough: noise in a
count does not depend on the rows, and in a mean it goes as one over them for everybody.

A task that does not end in time is stopped with all it started; the line says so.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb

ROOT = Path(__file__).parents[2]
ROWS, SMALL, QUESTIONS = 1_000_000, 10_000, 200
PEERS = {  # name: module, environment, packages whose versions are told
    "sulq": ("ours", None, ("duckdb",)),
    "OpenDP": ("opendp_context", "opendp", ("opendp", "polars")),
    "SmartNoise SQL": ("smartnoise", "smartnoise", ("smartnoise-sql", "opendp")),
    "PipelineDP": ("pipelinedp", "pipelinedp", ("pipeline-dp", "python-dp")),
    "diffprivlib": ("diffprivlib_tools", "diffprivlib", ("diffprivlib", "scikit-learn")),
    "PyDP": ("pydp_counts", "pydp", ("python-dp",)),
    "Tumult Analytics": ("tumult", "tumult", ("tmlt.analytics", "pyspark")),
}
LIMITS = {"cold": 90.0, "many": 150.0, "errors": 150.0}
"""Seconds after which a task is stopped; workers themselves end much earlier."""
MINUTES = 13.0
"""Of all peers: the part has two more."""
Line = dict[str, Any]


def measure(
    folder: Path, full: bool, rows: int = ROWS, seconds: float = 10.0, names: tuple[str, ...] = ()
) -> list[Line]:
    """One line a peer; of what could not be had, the reason."""
    more = 4 if full else 1
    end = time.monotonic() + 60 * MINUTES * more
    shared = {
        "ats": [20 + place / 10 for place in range(QUESTIONS)],
        "epsilon": 1.0,
        "delta": 1e-6,
        "repeats": 1000,
        "seconds": seconds * more,
    }
    large, small = (shared | _table(folder, size) for size in (rows, min(rows, SMALL)))
    lines = []
    for name in names or PEERS:
        line: Line = {"peer": name, "rows": rows, "small": min(rows, SMALL)}
        print(name, end=" ", flush=True)
        try:
            lines.append(line | _measured(name, large, small, end, more))
        except (subprocess.CalledProcessError, OSError) as error:
            lines.append(line | {"missing": _reason(error)})
    return lines


def _measured(name: str, large: Line, small: Line, end: float, more: int) -> Line:
    """Every task by itself: one that fails takes no other with it."""
    module, environment, packages = PEERS[name]
    python = _python(environment)
    found: Line = {"versions": _versions(python, packages), "failed": {}}
    tasks = (("cold", large), ("cold", large), ("many", large), ("errors", small))
    for task, told in tasks:
        limit = min(LIMITS[task] * more, end - time.monotonic())
        try:
            if limit <= 0:
                raise TimeoutError("no time was left")
            answer, seconds, memory = _run(python, module, task, told, limit)
        except (subprocess.SubprocessError, OSError) as error:
            found["failed"][task] = _reason(error)
            continue
        found["failed"].pop(task, None)
        found |= {"cold": seconds, "memory": memory} if task == "cold" else {task: answer}
    return found


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"not done in {error.timeout:.0f} s"
    said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
    return said[-1][:300] if said else "no word"


def _python(environment: str | None) -> str:
    if environment is None:
        return sys.executable
    script = ROOT / "scripts" / "peer_venv"
    subprocess.run([script, environment], check=True, capture_output=True, text=True)
    return str(ROOT / ".venv-peers" / environment / "bin" / "python")


def _versions(python: str, packages: tuple[str, ...]) -> dict[str, str]:
    found = f"{{name: metadata.version(name) for name in {packages}}}"
    code = f"import json; from importlib import metadata; print(json.dumps({found}))"
    run = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    versions: dict[str, str] = json.loads(run.stdout)
    return versions


def _run(
    python: str, module: str, task: str, told: Line, limit: float
) -> tuple[Line, float, float]:
    """What the worker says; seconds, and MB at the peak of its process and children."""
    worker = Path(__file__).with_name("worker.py")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src") if module == "ours" else ""}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    begun = time.perf_counter()
    with subprocess.Popen(
        [python, str(worker), module, task],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            with _peak(process.pid) as peak:
                out, said = process.communicate(json.dumps(told), timeout=limit)
                seconds = time.perf_counter() - begun
        finally:
            with suppress(ProcessLookupError):  # what it started, a Java machine, may outlive it
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, module, out, said)
    return json.loads(out), seconds, peak[0]


@contextmanager
def _peak(pid: int) -> Iterator[list[float]]:
    """The most memory of a process and what it starts, looked at often."""
    most, ended = [0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            most[0] = max(most[0], sum(map(_resident, _family(pid))))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(one for child in children for one in _family(int(child)))]


def _resident(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _table(folder: Path, rows: int) -> Line:
    """The file, and the true answers."""
    path = folder / f"peers-{rows}.parquet"
    with duckdb.connect() as connection:
        if not path.exists():
            connection.execute(
                "COPY (SELECT (hash(i, 1) % 1000)::DOUBLE / 10 AS age,"
                " (hash(i, 2) % 30000000)::DOUBLE / 100 AS income,"
                " 'region ' || (hash(i, 3) % 50) AS region"
                f" FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"
            )
        connection.execute(f"CREATE TABLE t AS FROM read_parquet('{path}')")
        truth: dict[str, list[Any]] = {"count": [], "mean": [], "groups": []}
        for place in range(QUESTIONS):
            rows_of = f"FROM t WHERE age >= {20 + place / 10}"
            number, mean = connection.execute(f"SELECT count(*), avg(income) {rows_of}").fetchone()
            by_region = f"SELECT region, count(*) {rows_of} GROUP BY region"
            found = dict(connection.execute(by_region).fetchall())
            truth["count"].append(number)
            truth["mean"].append(mean)
            truth["groups"].append([found.get(f"region {i}", 0) for i in range(50)])
    return {"path": str(path), "truth": truth}
