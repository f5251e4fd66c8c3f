"""The page's part about peers: who leads in which column, and why."""

# ruff: noqa: E501 - sentences of the page

from __future__ import annotations

import math
from typing import Any

from benchmarks.tables import duration, table

Line = dict[str, Any]

COLUMNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("cold", ("cold",), "s"),
    ("memory", ("memory",), "MB"),
    ("warm count", ("many", "warm"), "s"),
    ("200 counts", ("many", "seconds"), "s"),
    ("error: one count", ("errors", "count"), ""),
    ("one mean", ("errors", "mean"), ""),
    ("50 groups", ("errors", "groups"), ""),
    ("each of 200 counts", ("errors", "many"), ""),
)
DRAWN = ("count", "mean", "groups", "many")
QUESTIONS = 200
CLOSE = 0.05
"""Times and memory this near are level."""
SURE = 3.0
"""So many standard errors apart, errors differ."""
HOW = {
    "sulq": "discrete Laplace; 200 counts: discrete Gaussian, composed exactly; every answer charged to a ledger that is synced to disk",
    "OpenDP": "discrete Laplace; 200 counts: discrete Gaussian under zCDP. Scales of noise are given to it: its Context's own search for them takes seconds of CPU a question",
    "SmartNoise SQL": "discrete Laplace, half of epsilon for each part of a mean; 200 counts: as its odometer composes them",
    "PipelineDP": "local backend, Laplace; 200 counts: Gaussian, all known beforehand, as its experimental accountant of privacy loss distributions finds it. Bounds on contributions are declared to hold",
    "diffprivlib": "geometric; a mean is a sum over a count (its own mean takes the number of rows for public); 200 counts: its analytic Gaussian mechanism on counts of the caller's, who answers for what a row moves in all of them; its own accountant with slack would give about 90",
    "PyDP": "Laplace; it has no accounting; 200 counts: its Gaussian mechanism on counts of the caller's, who answers for what a row moves in all of them",
    "Tumult Analytics": "geometric; 200 counts: discrete Gaussian under zCDP; Spark, local",
}
BEHIND = {
    "cold": "publishing is part of it: the file is hashed, schema and promise are checked, a signed ledger is made and synced to disk",
    "memory": "DuckDB keeps its buffers; a list of numbers or one NumPy array is less",
    "warm count": "each of our answers is priced, charged and synced to disk before a row is read; a count over an array or a frame in memory reads no file and has no ledger",
    "200 counts": "as the warm count: 200 times a ledger entry that is synced to disk",
    "error: one count": "another law of noise, which is narrower at this guarantee",
    "one mean": "the guarantee is divided otherwise between the sum and the number of rows",
    "50 groups": "another law of noise, which is narrower at this guarantee",
    "each of 200 counts": "a tighter composition",
}


def peers(part: dict[str, Any] | None) -> str:
    if part is None:
        return ""
    lines = [line for line in part["lines"] if "missing" not in line]
    told = part["lines"][0]
    gone = [f"- {line['peer']}: {line['missing']}" for line in part["lines"] if "missing" in line]
    gone += [
        f"- {line['peer']}, {task}: {reason}"
        for line in lines
        for task, reason in line.get("failed", {}).items()
    ]
    return "\n".join(
        [
            "## Peers, each in its own environment\n",
            f"Questions about the rows with age >= t of one Parquet file. Times are of {told['rows']:,} rows, errors of {told.get('small', told['rows']):,},"
            " where slow peers too answer often: noise in a count does not depend on the rows, and in a mean it goes as one over them for everybody."
            " Everybody protects the presence of one row (add or remove) at (epsilon, delta) = (1, 1e-6), for the same declared bounds, each with the"
            " mechanism that is its best there. Cold: a new process from import to first answer, with its peak memory. Warm: a middle one of"
            f" the {QUESTIONS} counts. {QUESTIONS} counts share one total guarantee evenly; where not all were asked in time (~), the rest is"
            f" reckoned at the warm time, and each still has a {QUESTIONS}th. Errors are root mean squares with their standard errors."
            f" Best in a column, or not to be told from it, is **bold**.{_later(lines)}\n",
            table(("", *(name for name, _, _ in COLUMNS)), [_row(line, lines) for line in lines]),
            "How each was asked, and how often:\n",
            table(
                ("", "version", "counts timed", "draws: count", "mean", "groups", "of 200", "how"),
                [_asked(line) for line in lines],
            ),
            *(["Not measured:\n", *gone, ""] if gone else []),
            _lead(lines),
        ]
    )


def _later(lines: list[Line]) -> str:
    """Errors that were measured again, when a law had changed; they do not depend on the machine."""
    again = [line["peer"] for line in lines if "errors_date" in line]
    if not again:
        return ""
    date = max(line["errors_date"] for line in lines if "errors_date" in line)
    return f" The errors of {' and '.join(again)} were measured together on {date}, in a later run."


def _at(line: Line, path: tuple[str, ...]) -> tuple[float, float] | None:
    """The figure and its standard error, if there is one."""
    found: Any = line
    for name in path:
        if name not in found:
            return None
        found = found[name]
    if isinstance(found, dict):
        return float(found["rmse"]), float(found["error"])
    return float(found), 0.0


def _level(one: tuple[float, float], other: tuple[float, float], unit: str) -> bool:
    """Not to be told apart: by the draws, or for times and memory by a few percent."""
    apart = abs(one[0] - other[0])
    return apart <= (CLOSE * other[0] if unit else SURE * math.hypot(one[1], other[1]))


def _shown(found: tuple[float, float], unit: str) -> str:
    value, error = found
    if unit == "s":
        return duration(value)
    if unit == "MB":
        return f"{value:,.0f} MB"
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 2
    return f"{value:,.{digits}f} ± {error:,.{digits}f}"


def _row(line: Line, lines: list[Line]) -> list[str]:
    cells = [line["peer"]]
    for _, path, unit in COLUMNS:
        found = _at(line, path)
        if found is None:
            cells.append("-")
            continue
        best = min(other for one in lines if (other := _at(one, path)) is not None)
        text = _shown(found, unit)
        if path == ("many", "seconds") and line["many"]["asked"] < QUESTIONS:
            text = f"~ {text}"
        cells.append(f"**{text}**" if found == best or _level(found, best, unit) else text)
    return cells


def _asked(line: Line) -> list[str]:
    draws = [f"{line['errors'][kind]['draws']:,}" if "errors" in line else "-" for kind in DRAWN]
    versions = ", ".join(f"{name} {number}" for name, number in line["versions"].items())
    timed = str(line["many"]["asked"]) if "many" in line else "-"
    return [line["peer"], versions, timed, *draws, HOW.get(line["peer"], "")]


def _lead(lines: list[Line]) -> str:
    """Column by column: who leads, and why where it is not us."""
    ours = next((line for line in lines if line["peer"] == "sulq"), None)
    if ours is None or len(lines) < 2:
        return ""
    said, led = [], 0
    for name, path, unit in COLUMNS:
        mine = _at(ours, path)
        others = sorted(
            (found, line["peer"])
            for line in lines
            if line is not ours and (found := _at(line, path)) is not None
        )
        if mine is None or not others:
            continue
        ahead = [(f, peer) for f, peer in others if f < mine and not _level(mine, f, unit)]
        level = [peer for f, peer in others if _level(mine, f, unit)]
        if ahead:
            each = ", ".join(f"{peer} ({mine[0] / found[0]:.1f} times)" for found, peer in ahead)
            said.append(
                f"- {name}: **we do not lead**; ours is more than that of {each}: {BEHIND[name]}."
            )
            continue
        led += 1
        if level:
            within = "" if unit else ", as far as the draws tell"
            said.append(f"- {name}: level with {', '.join(level)}{within}.")
        else:
            said.append(
                f"- {name}: we lead; next {others[0][1]} with {others[0][0][0] / mine[0]:.1f} times ours."
            )
    head = f"We lead, or share the lead, in {led} of {len(said)} columns:"
    return f"{head}\n\n" + "\n".join(said) + "\n"
