"""Jobs become records, here or in several processes, with a bar that shows how far it is."""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import sklearn
from rich.progress import Progress, TimeRemainingColumn

from benchmarks.learning import ours, plain
from benchmarks.learning.cache import Record
from benchmarks.learning.data import table
from benchmarks.learning.jobs import Job
from benchmarks.learning.peers import VERSION, Peer
from benchmarks.learning.tasks import BY_NAME, Problem, problem, score


@cache
def peer() -> Peer:
    return Peer()


@cache
def fingerprint(task: str, folder: Path | None) -> str:
    return table(BY_NAME[task].table, folder).fingerprint


def version_of(job: Job, folder: Path | None) -> str:
    """Which code and which table a result is about."""
    if job.side == "peer":
        code = VERSION
    elif job.side in ("ours", "paper"):
        code = ours.version(job.model)
    else:
        code = f"scikit-learn {sklearn.__version__}"
    return f"{code}, table {fingerprint(job.task, folder)}"


def result(given: Problem, job: Job) -> Any:
    if job.side == "peer":
        return peer().learn(given, job)
    if job.side == "ceiling":
        return plain.learn(given, job.model, job.repeat)
    return ours.learn(given, job)


def done(job: Job, folder: Path | None) -> Record:
    """The score; the floor's where the product refused; an error where it failed."""
    version = version_of(job, folder)
    given = problem(job.task, job.repeat, folder)
    if job.side == "floor":
        return Record(job, version, given.floor)
    start = time.perf_counter()
    try:
        found = score(given, result(given, job))
        if not math.isfinite(found):
            raise ArithmeticError(f"the score is {found}")
    except Exception as error:  # noqa: BLE001  # reported in the table, and the run goes on
        took = time.perf_counter() - start
        if type(error).__name__ == "TooNoisy":
            return Record(job, version, given.floor, took, refused=True)
        return Record(job, version, None, took, error=f"{type(error).__name__}: {error}"[:300])
    return Record(job, version, found, time.perf_counter() - start)


@contextmanager
def stream(jobs: Sequence[Job], processes: int, folder: Path | None) -> Iterator[Iterator[Record]]:
    if processes < 2:
        yield (done(job, folder) for job in jobs)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield pool.imap_unordered(partial(done, folder=folder), jobs)
        pool.close()
        pool.join()


@dataclass(frozen=True, slots=True)
class Runner:
    """How to run: in so many processes, at most so long."""

    processes: int = 1
    seconds: float = math.inf
    folder: Path | None = None

    def run(self, jobs: Sequence[Job]) -> Iterator[Record]:
        """Records as they come; stops early when the time is over."""
        end = time.monotonic() + self.seconds
        columns = (*Progress.get_default_columns()[:-1], TimeRemainingColumn())
        with Progress(*columns) as bar, stream(jobs, self.processes, self.folder) as records:
            shown = bar.add_task("fits", total=len(jobs))
            for record in records:
                what = f"{record.job.task} {record.job.side} {record.job.model}"
                bar.update(shown, advance=1, description=what[:44].ljust(44))
                yield record
                if time.monotonic() > end:
                    bar.console.print(f"stopped after {self.seconds:.0f} s")
                    return
