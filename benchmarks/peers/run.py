"""The peers, one after the other: `python -m benchmarks peers [--full]`.

Everybody answers about the rows with age >= t of one Parquet file, for 200 thresholds t, protecting
the presence of one row at (epsilon, delta) = (1, 1e-6); each with the mechanism that is its best at
that guarantee. Cold is a new process from the import to the first count; the second of two counts,
so that compiled modules and file caches are there. Memory is that process's peak.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb

ROOT = Path(__file__).parents[2]
ROWS, QUESTIONS = 1_000_000, 200
PEERS = {  # name: module, environment, packages whose versions are told
    "sulq": ("ours", None, ("duckdb",)),
    "OpenDP": ("opendp_context", "opendp", ("opendp", "polars")),
    "Tumult Analytics": ("tumult", "tumult", ("tmlt.analytics", "pyspark")),
    "SmartNoise SQL": ("smartnoise", "smartnoise", ("smartnoise-sql", "opendp")),
    "PipelineDP": ("pipelinedp", "pipelinedp", ("pipeline-dp", "python-dp")),
    "diffprivlib": ("diffprivlib_tools", "diffprivlib", ("diffprivlib", "scikit-learn")),
    "PyDP": ("pydp_counts", "pydp", ("python-dp",)),
}
Line = dict[str, Any]


def measure(
    folder: Path, full: bool, rows: int = ROWS, seconds: float = 5.0, names: tuple[str, ...] = ()
) -> list[Line]:
    """One line a peer; of one that cannot be had, the reason."""
    path, truth = _table(folder, rows)
    told = {
        "path": str(path), "ats": [20 + place / 10 for place in range(QUESTIONS)], "truth": truth,
        "epsilon": 1.0, "delta": 1e-6, "repeats": 100, "seconds": seconds * (4 if full else 1),
    }  # fmt: skip
    lines = []
    for name in names or PEERS:
        line: Line = {"peer": name, "rows": rows}
        try:
            lines.append(line | _measured(name, told))
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError) as error:
            said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
            lines.append(line | {"missing": said[-1][:300] if said else "no word"})
    return lines


def _measured(name: str, told: Line) -> Line:
    module, environment, packages = PEERS[name]
    python = _python(environment)
    _run(python, module, "cold", told)
    _, seconds, cpu, memory = _run(python, module, "cold", told)
    single, *_ = _run(python, module, "single", told)
    many, *_ = _run(python, module, "many", told)
    return {
        "versions": _versions(python, packages),
        "cold": seconds, "cold_cpu": cpu, "memory": memory, "single": single, "many": many,
    }  # fmt: skip


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


def _run(python: str, module: str, task: str, told: Line) -> tuple[Line, float, float, float]:
    """What the worker says; seconds, CPU seconds and MB at the peak of its process and children."""
    worker = Path(__file__).with_name("worker.py")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src") if module == "ours" else ""}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    begun = time.perf_counter()
    process = subprocess.Popen(
        [python, str(worker), module, task], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    memory = _Peak(process.pid)
    out, said = process.communicate(json.dumps(told), timeout=600)
    seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, module, out, said)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(out), seconds, cpu, memory.stop()


class _Peak:
    """The most memory of a process and what it starts (a Java machine), looked at often."""

    def __init__(self, pid: int) -> None:
        self.pid, self.most, self._end = pid, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._end.wait(0.02):
            self.most = max(self.most, sum(map(_resident, _family(self.pid))))

    def stop(self) -> float:
        self._end.set()
        self._thread.join()
        return self.most


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


def _table(folder: Path, rows: int) -> tuple[Path, dict[str, list[Any]]]:
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
        connection.execute(f"CREATE VIEW t AS FROM read_parquet('{path}')")
        truth: dict[str, list[Any]] = {"count": [], "mean": [], "groups": []}
        for place in range(QUESTIONS):
            rows_of = f"FROM t WHERE age >= {20 + place / 10}"
            number, mean = connection.execute(f"SELECT count(*), avg(income) {rows_of}").fetchone()
            by_region = f"SELECT region, count(*) {rows_of} GROUP BY region"
            found = dict(connection.execute(by_region).fetchall())
            truth["count"].append(number)
            truth["mean"].append(mean)
            truth["groups"].append([found.get(f"region {i}", 0) for i in range(50)])
    return path, truth
