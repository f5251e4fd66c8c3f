"""`make bench-learning`: is what we learn better than what others learn?

    python -m benchmarks.learning                      all of it, 20 repeats; writes the document
    python -m benchmarks.learning --sides floor,ceiling,peer
    python -m benchmarks.learning --check              every estimator, a few fits, 3 minutes
    python -m benchmarks.learning --tasks wine,classify-digits --eps 0.1 --repeats 5 --quick
    ... --models LogisticRegression --promises pure,replace --set max_iter=4 --quick

--quick runs ours only, keeps nothing, writes nothing, and shows the peer's stored figures.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Before NumPy starts: idle threads would take the other core.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

from rich.console import Console

from benchmarks.learning import ours, peers
from benchmarks.learning.cache import Cache, Record
from benchmarks.learning.jobs import EPSILONS, OURS, PROMISES, Job, Plan
from benchmarks.learning.run import Runner, version_of
from benchmarks.learning.table import document, failures, headline, screen, summaries
from benchmarks.learning.tasks import ADULT, EXTRA, TASKS, chosen

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks-learning.md"
SIDES = ("floor", "ceiling", "peer", "paper", "ours")
CHECKED = "classify-wine,classify-breast_cancer,kmeans-wine,pca-wine,svd-wine,regress-diabetes"


def words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=words, default=[], help="names, kinds or tables (all)")
    parser.add_argument("--eps", type=words, default=list(EPSILONS))
    parser.add_argument("--models", type=words, default=[], help="of ours (all)")
    parser.add_argument("--promises", type=words, default=list(PROMISES))
    parser.add_argument("--sides", type=words, default=list(SIDES), help=",".join(SIDES))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--set", type=setting, action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--adult", type=Path, help="folder of the real census: its tasks too")
    parser.add_argument("--quick", action="store_true", help="ours only; keep and write nothing")
    parser.add_argument("--check", action="store_true", help="a few fits of every estimator")
    given = parser.parse_args(arguments)
    if given.set and not given.quick:
        parser.error("--set is for --quick: the document is about defaults")
    for name, known in (("sides", SIDES), ("promises", PROMISES)):
        if unknown := set(getattr(given, name)) - set(known):
            parser.error(f"--{name}: no {sorted(unknown)}; there are {known}")
    every = {model for models in OURS.values() for model in models}
    if unknown := set(given.models) - every:
        parser.error(f"--models: no {sorted(unknown)}; there are {sorted(every)}")
    return given


def plan_of(given: argparse.Namespace) -> Plan:
    among = (*TASKS, *(ADULT if given.adult else ()))
    if given.check:
        tasks = chosen(words(CHECKED), (*among, *EXTRA))
        return Plan(tasks, ("1",), 2, ("paper", "ours"), given.models, given.promises)
    if given.quick or given.tasks:
        among = (*among, *EXTRA)
    tasks = chosen(given.tasks, among)
    sides = [side for side in given.sides if side in ("paper", "ours") or not given.quick]
    if given.quick and given.sides == list(SIDES):
        sides = ["ours"]
    extra = tuple(sorted(given.set))
    return Plan(tasks, given.eps, given.repeats, sides, given.models, given.promises, extra)


def split_off_missing(jobs: Sequence[Job]) -> tuple[list[Job], list[str]]:
    """Jobs of estimators that are there, and a line for each that is not."""
    missing = {}
    for model in dict.fromkeys(job.model for job in jobs if job.side in ("ours", "paper")):
        try:
            ours.version(model)
        except Exception as error:  # noqa: BLE001  # a broken estimator must not stop the others
            missing[model] = f"{model}: {error}"
    there = [job for job in jobs if job.side not in ("ours", "paper") or job.model not in missing]
    return there, list(missing.values())


def current(cache: Cache, folder: Path | None) -> list[Record]:
    """What the cache knows about the code and the tables as they are now."""
    kept = []
    for (job, version), record in cache.records.items():
        try:
            if version == version_of(job, folder):
                kept.append(record)
        except Exception:  # noqa: BLE001  # an estimator or a table that is not there now
            continue
    return kept


def main(arguments: Sequence[str] | None = None) -> int:
    given = parsed(arguments)
    plan, cache = plan_of(given), Cache()
    console = Console(width=None if sys.stdout.isatty() else 180)
    jobs, missing = split_off_missing(list(plan.jobs()))
    if "peer" in plan.sides:
        subprocess.run([ROOT / "scripts" / "peer_venv"], check=True)
        assert peers.PYTHON.exists()
    runner = Runner(given.jobs, 170 if given.check else float("inf"), given.adult)
    passing = given.quick or given.check
    if not passing:
        jobs = [job for job in jobs if not cache.has(job, version_of(job, given.adult))]
    fresh = []
    try:
        for record in runner.run(jobs):
            fresh.append(record)
            if not passing:
                cache.add(record)
    except KeyboardInterrupt:
        console.print("stopped; what is done is kept" if not passing else "stopped")
    stored = [r for r in current(cache, given.adult) if r.job.side not in ("ours", "paper")]
    shown = [*stored, *fresh] if passing else current(cache, given.adult)
    view = screen if passing else headline
    console.print(view(summaries(shown), plan.tasks, plan.eps))
    wrong = [*missing, *failures(fresh)]
    for line in wrong:
        console.print(f"FAILED {line}", markup=False)
    if not passing:
        PAGE.write_text(document(current(cache, None), missing), "utf-8")
        console.print(f"wrote {PAGE.relative_to(ROOT)}")
    return 1 if wrong and given.check else 0


if __name__ == "__main__":
    sys.exit(main())
