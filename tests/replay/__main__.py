"""python -m tests.replay [PATH ...]: replay all pairs of `figures.WANTED`; the figures as JSON.

`--part 0.01` replays that share of them. What is done is kept in tests/replay/figures.json
(or `--out FILE`) with the commits that they are of, and the next run goes on from there, so a long
run may come in pieces: `--seconds 500` ends one. Pieces of different paths may run at once.
`--anew` forgets what is kept.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.postgres_server import programs
from tests.replay.figures import ON_A_SERVER, WANTED, compared, place_for
from tests.replay.world import Divergence
from tests.spark_session import why_not

FIGURES = Path(__file__).with_name("figures.json")
PIECE = 72
"""Pairs between two savings."""
NEAR = 5
"""Neighbours of each table: more of them are cheaper, fewer bring more questions."""
LONGEST = 600
"""Seconds that they may take."""
FIRST = 1_000_000
"""The first seed; every run of the tests begins at 0."""


def run(path: str, wanted: int, until: float, out: Path) -> dict[str, Any]:
    """Compare until so many pairs are done or the time is over; a second run goes on."""
    told = kept(out).get(path, {"pairs": 0, "seconds": 0.0, "divergences": []})
    told.setdefault("seed", FIRST + told["pairs"])
    told["commits"] = sorted({*told.get("commits", ()), commit()})
    with place_for(path) as where:
        while told["pairs"] < wanted and time.monotonic() < until and not told["divergences"]:
            start = time.monotonic()
            signal.alarm(LONGEST)  # a question that never ends is a finding too
            try:
                pairs, told["seed"] = compared(
                    path, min(PIECE, wanted - told["pairs"]), told["seed"], NEAR, where
                )
                told["pairs"] += pairs
            except Divergence as problem:
                told["divergences"].append(str(problem))
            signal.alarm(0)
            told["seconds"] = round(told["seconds"] + time.monotonic() - start, 1)
            keep(out, path, told)
    return told


def commit() -> str:
    """The commit that is replayed, as far as this tree knows it."""
    asked = ["git", "-C", str(FIGURES.parent), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def kept(out: Path) -> dict[str, Any]:
    return json.loads(out.read_text("utf-8")) if out.exists() else {}


def keep(out: Path, path: str, told: dict[str, Any]) -> None:
    """Write the figures of one path; those of the others stay as another process wrote them."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with (Path(tempfile.gettempdir()) / "sulq-attacks.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        out.write_text(json.dumps(kept(out) | {path: told}, indent=1) + "\n", "utf-8")


def main() -> None:
    reader = argparse.ArgumentParser("python -m tests.replay", description=__doc__)
    reader.add_argument("paths", nargs="*", choices=[*WANTED, []], default=[], metavar="PATH")
    reader.add_argument("--part", type=float, default=1.0)
    reader.add_argument("--seconds", type=float, default=float("inf"))
    reader.add_argument("--out", type=Path, default=FIGURES)
    reader.add_argument("--anew", action="store_true")
    given = reader.parse_args()
    if given.anew:
        given.out.unlink(missing_ok=True)
    until = time.monotonic() + given.seconds
    for path in given.paths or WANTED:
        if (path == "spark" and why_not()) or (path in ON_A_SERVER and programs() is None):
            continue
        told = run(path, max(1, round(WANTED[path] * given.part)), until, given.out)
        print(path, json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
