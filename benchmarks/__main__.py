"""`make bench`: measures everything the project says about speed and writes docs/benchmarks.md.

    python -m benchmarks                    the parts of the page (half an hour), then the page
    python -m benchmarks duckdb peers       some parts; the others stay as they were measured
    python -m benchmarks --full             more sizes and threads, and the older parts
    python -m benchmarks --page             the page again, from what is stored
    python -m benchmarks --small --into X   tiny tables, results and pages in the folder X: a trial

Each part runs in a process of its own; one that fails leaves what was stored of it. Tables are
written to a temporary folder and shared by the parts of a run.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import page, profiles_page
from benchmarks.results import FOLDER, ROOT, Clocked, load, save

PARTS = {  # part: module, keywords of a trial
    "duckdb": ("benchmarks.engines", {"sizes": (200_000,)}),
    "vault": ("benchmarks.vault", {"sizes": (200_000,)}),
    "postgres": ("benchmarks.postgres", {"sizes": (50_000,)}),
    "spark": ("benchmarks.spark", {"sizes": (200_000,)}),
    "studies": ("benchmarks.studies", {"persons": 20_000}),
    "kernels": ("benchmarks.kernels", {"share": 20}),
    "peers": ("benchmarks.peers.run", {"rows": 20_000, "seconds": 1.0}),
    "replicas": ("benchmarks.replicas", {"asks": 128}),
    "profiles": ("benchmarks.profiles", {"rows": 100_000}),
    "stream": (
        "benchmarks.stream",
        {"rows": 2_000, "past": (10, 30), "questions": 1},
    ),
    "start": ("benchmarks.start", {}),
    "simulation": ("benchmarks.simulation", {}),  # last: it goes by the others
}
FURTHER = ("blocks", "components", "clusters", "noise", "ledger", "sql", "derivation", "service")
"""Modules with `figures()`: measured by --full, or by name."""
MINUTES = 15
"""Of a part; with --full four times as long."""


def measured(part: str, folder: Path, into: Path, full: bool, small: bool) -> None:
    """One part, in this process."""
    clock = Clocked()
    if part in FURTHER or part == "start":
        found = importlib.import_module(f"benchmarks.{part}").figures()
        lines = [{"what": what, "value": value, "unit": unit} for what, value, unit in found]
    else:
        name, less = PARTS[part]
        keywords: dict[str, Any] = less if small else {}
        if part == "simulation":
            keywords = {"results": into}
        module = importlib.import_module(name)
        if small and hasattr(module, "SECONDS"):
            module.SECONDS = 0.3
        lines = module.measure(folder, full, **keywords)
    save(into, part, list(lines), clock.facts() | {"full": full})


def all_of(parts: Sequence[str], folder: Path, given: argparse.Namespace) -> list[str]:
    """Each part in a process of its own; those that failed."""
    failed = []
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    for part in parts:
        words = [part, "--data", str(folder), "--into", str(given.into), "--alone"]
        words += ["--full"] * given.full + ["--small"] * given.small
        begun = time.perf_counter()
        limit = 60 * MINUTES * (4 if given.full else 1)
        print(f"{part} ...", end=" ", flush=True)
        command = [sys.executable, "-m", "benchmarks", *words]
        process = subprocess.Popen(command, cwd=ROOT, env=environment)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            process.terminate()  # servers that it started are stopped
            code = process.wait(120) or 1
        if code:
            print("FAILED", end=" ")
            failed.append(part)
        print(f"{time.perf_counter() - begun:.0f} s", flush=True)
    return failed


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, *FURTHER, []], metavar="part")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--into", type=Path, default=FOLDER)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.small and given.into == FOLDER:
        parser.error("--small needs --into FOLDER: a trial does not replace what was measured")
    return given


def main(words: Sequence[str] | None = None) -> int:
    given = parsed(words)
    if given.alone:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        measured(given.parts[0], given.data, given.into, given.full, given.small)
        return 0
    failed: list[str] = []
    if not given.page:
        parts = given.parts or [*PARTS, *(FURTHER if given.full else ())]
        with tempfile.TemporaryDirectory(prefix="sulq-bench-") as folder:
            failed = all_of(parts, given.data or Path(folder), given)
    docs = ROOT / "docs" if given.into == FOLDER else given.into
    results = load(given.into)
    (docs / "benchmarks.md").write_text(page.document(results), "utf-8")
    (docs / "profiles.md").write_text(profiles_page.document(results), "utf-8")
    print(f"wrote {docs.name}/benchmarks.md and {docs.name}/profiles.md")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
