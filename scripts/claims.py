"""Write docs/claims.md from docs/claims.toml: .venv/bin/python scripts/claims.py"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "claims.toml"
PAGE = ROOT / "docs" / "claims.md"
VERDICTS = ("right", "right but loose", "wrong as printed", "vague", "ours")
KINDS = ("definition", "theorem", "lemma", "claim", "algorithm", "remark", "rule", "tool")


def sections() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(SOURCE.read_text("utf-8"))["section"]
    return found


def page(parts: list[dict[str, Any]]) -> str:
    """The whole page, as text."""
    intro = [
        "# Claims",
        "",
        "Written from `docs/claims.toml` by `python scripts/claims.py`; tests/house compares them.",
        "",
        "Every definition, theorem, lemma, claim and algorithm of the papers this system is built",
        "on, what became of it, where it lives, and which test breaks when it no longer holds.",
        "`# S4.1` beside a line of code means the item of that number here.",
        "",
        "Conventions: log is natural; a row takes values in [0, 1] unless said, so a sum has",
        "sensitivity 1; R is the variance of the noise, T the number of questions, l is",
        "ln(1/delta); Phi and Q are the normal distribution and its upper tail; HS is the",
        "hockey-stick divergence, the exact delta at a given epsilon. Neighbours replace one row",
        "unless said.",
        "",
        "Verdicts: *right*; *right but loose* (true, not tight); *wrong as printed* (false or",
        "mis-stated; what holds follows); *vague*; *ours* (the papers have nothing exact there).",
        "An item that is open names the part of the system that will close it.",
        "",
        *_summary(parts),
    ]
    body = [line for part in parts for line in _section(part)]
    return "\n".join([*intro, *body]).rstrip() + "\n"


def _summary(parts: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| part | items | " + " | ".join(VERDICTS) + " | partly or wholly open |",
        "|---" * (len(VERDICTS) + 3) + "|",
    ]
    for part in parts:
        told = Counter(item["verdict"] for item in part["item"])
        waiting = sum("open" in item for item in part["item"])
        counts = [str(told[verdict] or "") for verdict in VERDICTS]
        name = f"[{part['title']}](#{_anchor(part['title'])})"
        lines.append(f"| {name} | {len(part['item'])} | " + " | ".join(counts) + f" | {waiting} |")
    everything = [item for part in parts for item in part["item"]]
    cited = {test for item in everything for test in item.get("tests", [])}
    still = [item["id"] for item in everything if "open" in item]
    return [
        *lines,
        "",
        f"{len(everything)} items, {len(cited)} tests cited."
        + (f" Open, wholly or in part: {', '.join(still)}." if still else ""),
        "",
    ]


def _anchor(title: str) -> str:
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def _section(part: dict[str, Any]) -> list[str]:
    lines = [f"## {part['title']}", "", _flat(part["text"]), ""]
    return [*lines, *(line for item in part["item"] for line in _item(item))]


def _item(item: dict[str, Any]) -> list[str]:
    states = ["tested"] if item.get("tests") else []
    if "open" in item:
        states.append(f"open: {_flat(item['open'])}")
    lines = [
        f"### {item['id']} {item['name']}",
        "",
        f"*{item['kind'].capitalize()}; {item['verdict']}; {'; '.join(states)}.*",
        "",
    ]
    for word, key in (("Printed", "printed"), ("Holds", "holds"), ("Figure", "figure")):
        if key in item:
            lines.append(f"- {word}: {_flat(item[key])}")
    for word, key, home in (("Code", "code", "src/sulq"), ("Tests", "tests", "tests")):
        if item.get(key):
            lines.append(f"- {word}: {_places(item[key], home)}")
    return [*lines, ""]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _places(places: list[str], home: str) -> str:
    """Each file once, linked, with the names meant in it."""
    files: dict[str, list[str]] = {}
    for place in places:
        path, _, name = place.replace("::", ":").partition(":")
        files.setdefault(path, []).append(f"`{name}`")
    return "; ".join(
        f"[{path}](../{home}/{path}) {', '.join(names)}" for path, names in files.items()
    )


if __name__ == "__main__":
    PAGE.write_text(page(sections()), "utf-8")
