"""Break one line of a copy at a time and run one test on it: python planted.py COPY < faults.json

Prints a line of JSON for each fault: how it ended (PASSED, FAILED, or what pytest ended with where
no test ran) and what was said. What tests import beside the product is imported once, and every
fault has a process of its own.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ["duckdb", "numpy", "pandas", "pyarrow", "scipy.stats", "scipy.optimize", "sklearn"]
PASSED, FAILED, NOT_RUN = 0, 1, 3


class Reports:
    """Whether a test itself failed: not the collecting of it, nor pytest."""

    failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed and report.when == "call"


def on_copy(test: str, source: Path) -> int:
    reports = Reports()
    terms = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    paths = ["-o", f"pythonpath={source} {ROOT}", f"tests/{test}"]
    code = pytest.main([*terms, *paths], plugins=[reports])
    return FAILED if reports.failed else PASSED if code == pytest.ExitCode.OK else NOT_RUN


def ended(fault: dict[str, str], source: Path) -> tuple[int, str]:
    """How the test ends on the broken copy, and what it said."""
    path = source / "sulq" / fault["file"]
    whole = path.read_text("utf-8")
    path.write_text(whole.replace(fault["old"], fault["new"]), "utf-8")
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        child = os.fork()
        if child == 0:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            os._exit(on_copy(fault["test"], source))
        _, status = os.waitpid(child, 0)
        path.write_text(whole, "utf-8")
        said.seek(0)
        return os.waitstatus_to_exitcode(status), said.read()


def main() -> None:
    os.chdir(ROOT)
    source = Path(sys.argv[1])
    sys.dont_write_bytecode = True
    os.environ |= {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    for name in HEAVY:
        with suppress(ImportError):
            importlib.import_module(name)
    for fault in json.load(sys.stdin):
        print(json.dumps(ended(fault, source)), flush=True)


if __name__ == "__main__":
    main()
