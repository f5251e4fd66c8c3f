"""Fifty-three command lines, in order, in one directory. Public names only.

Frozen are the exit code, and of stdout: JSON with chance and words masked, else how many lines
and columns a table has. Words on stderr are not frozen.
"""

from __future__ import annotations

import csv
import json
from contextlib import chdir
from pathlib import Path
from typing import Any

from tests.golden import inside
from tests.golden.records import Records
from tests.golden.requests import settled
from tests.golden.world import rows

POLICY = """
[people]
source = "people.csv"
ledger = "people.ledger"
promise = {epsilon = 1, delta = 1e-6, credits = 400}
columns.age = {number = [0, 120], step = 1}
columns.income = {number = [0, 500_000]}
columns.visits = {number = [0, 3], step = 1, partial = true}
columns.born = {number = [1920-01-01, 2020-12-31]}
columns.smoker = {flag = true}
columns.city = {category = ["Oslo", "Paris"], public = true}
columns.blood = {category = ["A", "B", "0"], partial = true}
columns.note = {text = true}
"""

SAID = frozenset(
    {
        *("error", "faults", "problems", "warnings", "advice", "otherwise", "text", "verdict"),
        *("guarantees", "meaning", "means", "hazards", "public", "protected", "belief", "sentence"),
    }
)
"""Words may improve."""

LINES = [
    "--version",
    "check --json",
    "columns --json",
    "quote people count --json",
    "ask people count --where smoker --json",
    "publish people --dry-run --yes --json",
    "publish people --yes --json",
    "publish people --yes --json",
    "columns people --json",
    "quote people count --where smoker --json",
    "quote people mean income --credits 2.5 --json",
    "ask people count --where smoker --json --receipts receipts.jsonl",
    "ask people count --where smoker --json",
    "ask people count --where smoker",
    "ask people mean income --where age>=65 --credits 3 --json",
    "ask people total visits --within 80 --confidence 0.9 --json",
    "ask people histogram blood --json --other",
    "ask people histogram age,city --edges age=0,18,65,120 --json",
    "ask people quantiles age --shares 0.25,0.5 --json",
    "ask people mean born --json",
    "ask people cdf age --edges 20,40,60 --json",
    "ask people variance age --json",
    "ask people persons --where smoker --json",
    "ask people mean wealth --json",
    "ask people mean income --credits 100000 --json",
    "ask people mean income --as nobody --json",
    "ask people nonsense --json",
    "ask|SELECT city, COUNT(*) AS n FROM people WHERE smoker GROUP BY city|--json",
    "ask|SELECT * FROM people|--json",
    "quote|SELECT MEDIAN(age) FROM people|--json",
    "grant people ann --credits 20 --json",
    "ask people count --where smoker --as ann --json",
    "tokens --json",
    "keys people note --credits 2 --json",
    "top people blood count -k 1 --credits 1 --json",
    "alert arm people count --where smoker --above 5 --json",
    "alert list people --json",
    "outside people --credits 4 --reason printed --yes --json",
    "revoke people ann --reason left --json",
    "ledger people --json",
    "ledger people --export chain.jsonl --json",
    "verify people --json",
    "verify receipts.jsonl --chain chain.jsonl --json",
    "audit people --replay --json",
    "beliefs people --prior 0.4 --json",
    "amend people --yes --json",
    "grow people --yes --json",
    "backup kept.backup --json",
    "withdraw people --yes --json",
    "close people --reason done --yes --json",
    "ask people count --where smoker --json",
    "ask people total income --json",
    "no-such-command",
]


def outputs(directory: Path) -> Records:
    told: Records = {}
    (directory / "sulq.toml").write_text(POLICY, "utf-8")
    with (directory / "people.csv").open("w", encoding="utf-8", newline="") as file:
        held = rows()
        writer = csv.writer(file)
        writer.writerow(held)
        writer.writerows(zip(*held.values(), strict=True))
    with chdir(directory):
        for number, line in enumerate(LINES, 1):
            words = line.split("|") if "|" in line else line.split(" ")
            code, out, err = inside.run(*words)
            told[f"{number:02} {line}"] = _shown(code, out, err)
    return told


def _shown(code: int, out: str, err: str) -> dict[str, Any]:
    try:
        return {"exit": code, "json": _paths(settled(_unsaid(json.loads(out))))}
    except ValueError:
        lines = out.splitlines()
        return {"exit": code, "lines": len(lines), "talk": bool(err.strip())}


def _unsaid(value: Any) -> Any:
    """JSON without sentences; of a list of them, how many there are. When a table closed, too."""
    if isinstance(value, list):
        return [_unsaid(held) for held in value]
    if not isinstance(value, dict):
        return value
    found = {name: _unsaid(held) for name, held in value.items()}
    for name in SAID & found.keys():
        said = found[name]
        if isinstance(said, str):
            found[name] = "*"
        elif isinstance(said, list) and all(isinstance(one, str) for one in said):
            found[name] = ["*"] * len(said)
    if isinstance(found.get("closed"), int):
        found["closed"] = "*"
    return found


def _paths(value: Any) -> Any:
    """Paths of the directory are hidden."""
    if isinstance(value, dict):
        return {name: _paths(held) for name, held in value.items()}
    if isinstance(value, list):
        return [_paths(held) for held in value]
    return value.replace(str(Path.cwd()), ".") if isinstance(value, str) else value
