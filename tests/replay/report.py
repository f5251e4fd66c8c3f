"""python -m tests.replay.report: plant faults, audit, measure channels; write docs/threats.md.

The figures of the replay come from `python -m tests.replay`; both keep them in
tests/replay/figures.json. Faults, audits and channels that stand there already are not run again;
`--seconds 400` ends the planting after so long, and the next run goes on.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.attacks.channels import CASES, CHANNELS
from tests.attacks.sandbox import honest
from tests.replay.__main__ import FIGURES, keep, kept
from tests.replay.figures import WANTED
from tests.replay.test_planted_faults import FAILED, FAULTS, planted

from sulq import Promise
from sulq.attacks.audit import audit
from sulq.attacks.suite import SURE

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "threats.md"
START, END = "<!-- figures of make attacks: start -->", "<!-- figures of make attacks: end -->"
AUDITED = {"Laplace": Promise(1, queries=1), "Gaussian": Promise(1, "1e-6", queries=1)}


def find_faults(out: Path, until: float) -> None:
    """Which named test found which fault; those that are known are not planted again."""
    known: dict[str, str | None] = kept(out).get("faults", {})
    names = {fault["name"] for fault in FAULTS}
    known = {name: by for name, by in known.items() if name in names}
    due = [fault for fault in FAULTS if known.get(fault["name"]) != fault["test"]]
    with tempfile.TemporaryDirectory() as folder:
        for fault, (code, said) in zip(due, planted(due, Path(folder) / "src"), strict=False):
            known[fault["name"]] = fault["test"] if code == FAILED else None
            keep(out, "faults", known)
            if code != FAILED:
                print(f"not found: {fault['name']}\n{said[-1500:]}", flush=True)
            if time.monotonic() > until:
                break


def find_audits(out: Path) -> None:
    known: dict[str, dict[str, float]] = kept(out).get("audits", {})
    for name, promise in AUDITED.items():
        if name not in known:
            start = time.perf_counter()
            found = audit(honest(promise), confidence=SURE)
            taken = time.perf_counter() - start
            known[name] = {"proved": found.reached, "draws": found.trials, "seconds": taken}
    keep(out, "audits", known)


def find_channels(out: Path) -> None:
    known: dict[str, dict[str, float]] = kept(out).get("channels", {})
    for name, measured in CHANNELS.items():
        if name not in known:
            load, found = os.getloadavg()[0], measured(CASES)
            known[name] = found._asdict() | {"load": load}
            keep(out, "channels", known)


def page(told: dict[str, Any]) -> str:
    """The part of the page between the markers."""
    none: dict[str, Any] = {"pairs": 0, "divergences": []}
    paths = {path: told.get(path, none) for path in WANTED}
    earlier: dict[str, int] = told.get("earlier", {})
    pairs = sum(found["pairs"] for found in paths.values())
    commits = sorted({each for found in paths.values() for each in found.get("commits", ())})
    wrong = sum(len(found["divergences"]) for found in paths.values())
    before = sum(earlier.values())
    lines = [
        f"{pairs:,} pairs of neighbouring tables compared, {wrong} told apart."
        + f" Commits: {', '.join(commits)}."
        + (f" An earlier run, of an older commit: {before:,}, 0." if before else ""),
        "",
        "| path | pairs | told apart | earlier | wanted |",
        "|---|--:|--:|--:|--:|",
        *(
            f"| {path} | {f['pairs']:,} | {len(f['divergences'])} | {earlier.get(path, 0):,}"
            f" | {WANTED[path]:,} |"
            for path, f in paths.items()
        ),
        "",
        "| audit of a true epsilon of 1 | epsilon proved | draws |",
        "|---|--:|--:|",
        *(
            f"| {name} | {found['proved']:.2f} | {found['draws']:,} |"
            for name, found in told.get("audits", {}).items()
        ),
        "",
        "| channel: is one row there? | cases judged | right | replies late | load |",
        "|---|--:|--:|--:|--:|",
        *(
            f"| {name} | {found['judged']:,} | {found['right'] / found['judged']:.1%}"
            f" | {found['missed']:.0%} | {found['load']:.0f} |"
            for name, found in told.get("channels", {}).items()
        ),
        "",
    ]
    kinds = {fault["name"]: fault["kind"] for fault in FAULTS}
    faults = {name: by for name, by in told.get("faults", {}).items() if name in kinds}
    found_by = sum(by is not None for by in faults.values())
    lines += [
        f"{len(faults)} faults planted in a copy, {found_by} found. A path is one of the replay.",
        "",
        "| fault | kind | found by |",
        "|---|---|---|",
        *(f"| {name} | {kinds[name]} | {by or 'nobody'} |" for name, by in faults.items()),
    ]
    return "\n".join(lines)


def write(told: dict[str, Any]) -> None:
    whole = PAGE.read_text("utf-8")
    before, rest = whole.split(START)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{START}\n\n{page(told)}\n\n{END}{after}", "utf-8")


def main() -> None:
    reader = argparse.ArgumentParser("python -m tests.replay.report", description=__doc__)
    reader.add_argument("--out", type=Path, default=FIGURES)
    reader.add_argument("--seconds", type=float, default=float("inf"))
    given = reader.parse_args()
    find_faults(given.out, time.monotonic() + given.seconds)
    find_audits(given.out)
    find_channels(given.out)
    told = kept(given.out)
    write(told)
    bad = [path for path in WANTED if told.get(path, {}).get("divergences")]
    missed = [name for name, by in told["faults"].items() if by is None]
    if bad or missed:
        sys.exit(f"told apart: {bad}; missed: {missed}")


if __name__ == "__main__":
    main()
