"""The page's part about peers: who leads in which column, and why."""

# ruff: noqa: E501 - sentences of the page

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.tables import duration, table

Line = dict[str, Any]

COLUMNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("cold", ("cold",), "s"),
    ("memory", ("memory",), "MB"),
    ("warm count", ("many", "seconds"), "s"),
    ("error: one count", ("single", "count", "rmse"), ""),
    ("one mean", ("single", "mean", "rmse"), ""),
    ("50 groups", ("single", "groups", "rmse"), ""),
    ("each of 200 counts", ("many", "rmse"), ""),
)


def _at(line: Line, path: Sequence[str]) -> float:
    for name in path:
        line = line[name]
    return float(line)  # type: ignore[arg-type]


def _shown(value: float, unit: str) -> str:
    if unit == "s":
        return duration(value)
    if unit == "MB":
        return f"{value:,.0f} MB"
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def peers(part: dict[str, Any] | None) -> str:
    if part is None:
        return ""
    lines = [line for line in part["lines"] if "missing" not in line]
    best = {
        name: min((_at(line, path) for line in lines), default=0.0) for name, path, _ in COLUMNS
    }
    rows = []
    for line in lines:
        cells = []
        for name, path, unit in COLUMNS:
            value = _at(line, path)
            text = _shown(value, unit)
            cells.append(f"**{text}**" if value == best[name] else text)
        asked = line["many"]["asked"]
        rows.append((line["peer"], *cells, asked))
    about = "; ".join(
        f"{line['peer']}: "
        + ", ".join(f"{name} {number}" for name, number in line["versions"].items())
        for line in lines
    )
    missing = [
        f"- {line['peer']}: {line['missing']}" for line in part["lines"] if "missing" in line
    ]
    return "\n".join(
        [
            "## Peers, each in its own environment\n",
            f"{part['lines'][0]['rows']:,} rows in one Parquet file; questions about the rows with age >= t. Everybody protects the presence of one row at"
            " (epsilon, delta) = (1, 1e-6), each with the mechanism that is its best there: Laplace or geometric noise for one question, Gaussian"
            " under zCDP or the peer's own composition for 200 counts, asked one after the other. Cold: a new process from import to first"
            " answer, with its peak memory. Warm: one of the 200 counts. Errors are root mean squares; three runs at least, so"
            " those of one count and one mean are rough where a peer is slow. Best in a column is **bold**.\n",
            table(("", *(name for name, _, _ in COLUMNS), "of 200 asked in time"), rows),
            about + ".\n",
            *(["Not run:\n", *missing, ""] if missing else []),
            _lead(lines),
        ]
    )


BEHIND = {
    "cold": "publishing is part of it: the file is hashed, schema and promise are checked, a signed ledger is made and synced to disk",
    "memory": "DuckDB keeps its buffers; a list of numbers or one NumPy array is less",
    "warm count": "each of our answers is priced, charged and synced to disk before a row is read; a count of a NumPy mask or a list in memory has"
    " no ledger and no accounts (and PyDP no accounting at all)",
    "error: one count": "the same law of noise within the error of so few runs",
    "one mean": "who takes the number of rows for public (diffprivlib) or adds noise to deviations from the middle (PyDP, PipelineDP) spends less or all of epsilon on the sum",
    "50 groups": "the same law of noise within the error of so few runs",
    "each of 200 counts": "the same law of noise within the error of so few runs",
}
CLOSE = 1.1


def _lead(lines: list[Line]) -> str:
    """Column by column: who leads, and why where it is not us."""
    ours = next((line for line in lines if line["peer"] == "sulq"), None)
    if ours is None or len(lines) < 2:
        return ""
    said = []
    for name, path, unit in COLUMNS:
        mine = _at(ours, path)
        others = sorted((_at(line, path), line["peer"]) for line in lines if line is not ours)
        value, peer = others[0]
        if mine <= value:
            said.append(f"- {name}: we lead; next {peer} with {value / mine:.1f} times ours.")
        elif mine <= CLOSE * value:
            said.append(f"- {name}: level with {peer} ({_shown(value, unit)}).")
        else:
            said.append(
                f"- {name}: **{peer} leads**; ours is {mine / value:.1f} times as much: {BEHIND[name]}."
            )
    note = (
        "\nA batch that is known beforehand is another matter: 200 public partitions in one PipelineDP aggregate with Gaussian noise, or one"
        " vector in OpenDP, have about the error of our 200 single questions. The column is about questions one after the other.\n"
    )
    return "Where we lead, and where not:\n\n" + "\n".join(said) + "\n" + note
