"""python -m tests.replay [PATH ...]: replay all pairs of `figures.WANTED`; the figures as JSON.

`--part 0.01` replays that share of them; `--out FILE` keeps what is done, and goes on from there.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
from pathlib import Path
from typing import Any

from tests.postgres_server import programs
from tests.replay.figures import WANTED, compared, place_for
from tests.replay.world import Divergence
from tests.spark_session import why_not

PIECE = 500
"""Pairs between two savings."""
LONGEST = 1_800
"""Seconds that they may take."""


def run(path: str, wanted: int, told: dict[str, Any]) -> None:
    """Add what this path has compared to `told`, as far as it gets."""
    found = told.setdefault(path, {"pairs": 0, "seconds": 0.0, "divergences": []})
    with place_for(path) as where:
        while found["pairs"] < wanted:
            start, seed = time.perf_counter(), 1_000_000 + found["pairs"]
            signal.alarm(LONGEST)  # a question that never ends is a finding too
            try:
                some = min(PIECE, wanted - found["pairs"])
                found["pairs"] += compared(path, some, seed, where=where)
            except Divergence as problem:
                found["divergences"].append(str(problem))
                return
            signal.alarm(0)
            found["seconds"] += round(time.perf_counter() - start, 1)
            yield_to(told)


def yield_to(told: dict[str, Any]) -> None:
    if OUT is not None:
        OUT.parent.mkdir(parents=True, exist_ok=True)
        OUT.write_text(json.dumps(told, indent=1), "utf-8")


OUT: Path | None = None


def main() -> None:
    global OUT
    reader = argparse.ArgumentParser("python -m tests.replay", description=__doc__)
    reader.add_argument("paths", nargs="*", default=list(WANTED))
    reader.add_argument("--part", type=float, default=1.0)
    reader.add_argument("--out", type=Path)
    given = reader.parse_args()
    OUT = given.out
    told: dict[str, Any] = {}
    if OUT is not None and OUT.exists():
        told = json.loads(OUT.read_text("utf-8"))
    for path in given.paths or WANTED:
        if (path == "spark" and why_not()) or (path == "postgres" and programs() is None):
            continue
        run(path, max(1, round(WANTED[path] * given.part)), told)
        print(path, json.dumps(told[path]), flush=True)
    yield_to(told)


if __name__ == "__main__":
    main()
