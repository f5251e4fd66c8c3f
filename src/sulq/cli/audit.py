"""`sulq audit --replay` and `sulq report`: the owner's test of the noise, and a page for others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from sulq.cli.context import LocalSession, TableName, command, named, opened
from sulq.cli.output import print_note, show_json

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PRINTING = 120  # seconds


@command
def audit(
    session: LocalSession,
    name: TableName = None,
    replay: Annotated[bool, typer.Option("--replay", help="Compute every answer again.")] = False,
) -> None:
    """Does the noise follow the claimed law? One word, pass or fail; exit code 0 or 3.

    Needs the data, the ledger and the state directory, and 200 drawn questions. No other figure
    of the rows is said; how small a fault so many questions show is a figure of their number.
    """
    from sulq.database.audit import replay as run
    from sulq.database.audit import smallest_shortfall
    from sulq.errors import InvalidQuery

    if not replay:
        raise InvalidQuery("say --replay: every answer is computed again, and its noise tested")
    source = named(session.policy, name)
    with opened(source) as database, _progress() as told:
        found = run(database, told)
    seen = smallest_shortfall(found.questions, source.promise.noise)
    if session.as_json:
        show_json({"replay": found.word, "questions": found.questions, "shortfall_seen": seen})
    else:
        print(found.word)
        print_note(_sees(found.questions, seen, source.promise.noise))
    if not found.passed:
        raise typer.Exit(3)


def _sees(questions: int, shortfall: float | None, noise: str) -> str:
    """What the word would have been *fail* for, 99 times of 100."""
    if shortfall is None:
        return f"{questions:,} questions are too few to see noise that is only somewhat too small"
    exact = "two" if questions <= 3_000 else "three"
    return (
        f"{questions:,} questions show noise that is {shortfall:.0%} too small or more (an epsilon"
        f" of {1 / (1 - shortfall):.2f} times the promise)"
        + (f", and {exact} answers without noise" if noise in ("gaussian", "laplace") else "")
    )


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """How many questions are done, on a terminal; no times."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("replaying", total=None)
        yield lambda done, of: shown.update(task, completed=done, total=of)


@command
def report(
    session: LocalSession,
    name: TableName = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="report.html, or .pdf where there is Chromium.")
    ] = Path("report.html"),
    public: Annotated[
        bool, typer.Option("--public", help="Without names, and without the noise test's word.")
    ] = False,
) -> None:
    """One page for an auditor: promise, spent, questions, chain, hazards. Reads no data."""
    from sulq.errors import InvalidQuery

    if output.suffix.lower() not in (".html", ".htm", ".pdf"):
        raise InvalidQuery(f"a report is .html or .pdf, got {output.name!r:.60}")
    browser = _browser() if output.suffix.lower() == ".pdf" else None
    page = _page(session.policy, name, public)
    if browser is None:
        output.write_text(page, "utf-8")
    else:
        _print(browser, page, output)
    if session.as_json:
        show_json({"report": output, "public": public})
    else:
        print_note(f"wrote {output}")


def _page(policy: Path, name: str | None, public: bool) -> str:
    from sulq.account import Account
    from sulq.database.audit import noted_replay
    from sulq.errors import Refused
    from sulq.kernel.accounting.calibration import calibrate, meaning
    from sulq.kernel.ledger.accounts import from_json
    from sulq.kernel.ledger.inspect import inspect, verified_rows
    from sulq.kernel.schema.promise import Promise
    from sulq.report import asked, audit_report

    source = named(policy, name)
    found = inspect(source.ledger_path)
    if source.name not in found.statements:
        raise Refused(f"the ledger has no table {source.name!r}; it has {list(found.statements)}")
    statement = found.statements[source.name]
    promise = Promise.from_json(json.loads(statement.facts["promise"]))
    bodies = (json.loads(row.body) for row in verified_rows(source.ledger_path))
    charges = [
        asked(body["question"], body["noise"], (part.loss for part in from_json(body["charges"])))
        for body in bodies
        if body["kind"] in ("charge", "release") and body["table"] == source.name
    ]
    noted = noted_replay(statement.ledger, source.name)
    return audit_report(
        Account(statement, meaning(calibrate(promise)), promise),
        charges,
        public=public,
        noise_test=None if noted is None else noted.word,
        chain=_wrong(found.anchor is not None, found.anchored),
        at=f"{datetime.now(UTC):%d %b %Y, %H:%M} UTC",
    )


def _wrong(anchor: bool, anchored: bool) -> str | None:
    if anchored:
        return None
    return "rolled back" if anchor else "anchor lost"


def _browser() -> str:
    from sulq.errors import Refused

    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise Refused(
            "no Chromium was found to print with; install it, or write report.html and print that"
            " from any browser: it fits one page of A4"
        )
    return found


def _print(browser: str, page: str, output: Path) -> None:
    """By a browser of its own, without network; the page asks for nothing."""
    from sulq.errors import Refused

    with tempfile.TemporaryDirectory(prefix="sulq-") as private:  # mode 0700
        source, printed = Path(private) / "report.html", Path(private) / "report.pdf"
        source.write_text(page, "utf-8")
        words = [
            browser,
            "--headless",
            "--disable-gpu",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),  # it refuses to start as root
            f"--user-data-dir={private}/profile",
            "--no-pdf-header-footer",
            f"--print-to-pdf={printed}",
            source.as_uri(),
        ]
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(words, capture_output=True, timeout=PRINTING, check=False)  # noqa: S603
        if not printed.is_file():
            raise Refused(f"{browser} did not print; write report.html and print that by hand")
        output.write_bytes(printed.read_bytes())
