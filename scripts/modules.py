"""Write docs/modules.md from the docstrings of the modules: .venv/bin/python scripts/modules.py

The rooms of the house are listed here, once: ARCHITECTURE.md draws them, tests/house counts them.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "sulq"
PAGE = ROOT / "docs" / "modules.md"

# A module is in the first room that names it or a folder above it.
ROOMS = {
    "trusted edge": (
        "server/pacing.py",
        "server/auth/",
        "policy/",
        "kernel/engines/duckdb/csv_files.py",
        "kernel/engines/duckdb/remote.py",
        "kernel/engines/duckdb/quarantine.py",
        "kernel/engines/duckdb/workbooks.py",
    ),
    "trusted base": ("kernel/",),
    "public face": ("database/", "exact/", "shares.py"),
    "seam": ("answers/", "account.py", "errors.py", "formatting.py", "synthetic.py"),
    "sees only the seam": ("learn/", "attacks/", "beliefs/", "client/", "federation/"),
    "translates": ("sql/", "wire/", "server/", "cli/", "report/", "studies.py", "suggest.py"),
    "beside": ("",),
}
ABOUT = {
    "trusted base": "The privacy argument rests on it. A fault here can break the promise.",
    "trusted edge": "Decides when a reply leaves, who may ask, what is public, how a file is read.",
    "public face": "Binds, prices, and hands to the trusted base what is to be released.",
    "seam": "What an analyst holds: quotes, answers, error bars. Post-processing only.",
    "sees only the seam": "Works with noisy answers. A fault here cannot break the promise.",
    "translates": "Turns text, JSON and pages into questions, and answers back into them.",
    "beside": "The package's public page, moved import paths, sandboxes and the demo.",
}
COUNTED = ("trusted base", "trusted edge", "public face")


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def named(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def room(path: Path) -> str:
    return next(name for name, parts in ROOMS.items() if named(path).startswith(parts))


def lines(name: str) -> int:
    """Lines of Python in one room."""
    return sum(path.read_text("utf-8").count("\n") for path in modules() if room(path) == name)


@cache
def summary(path: Path) -> str:
    """The first paragraph of the module's docstring, as one line."""
    told = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(told.split("\n\n")[0].split()).replace("|", "\\|")


def page() -> str:
    text = [
        "# Modules",
        "",
        "Written from the docstrings of the modules by `python scripts/modules.py`; `tests/house`",
        "compares them. The rooms are drawn in [ARCHITECTURE](../ARCHITECTURE.md).",
    ]
    for name in ABOUT:
        text += ["", f"## {name.capitalize()}", "", ABOUT[name]]
        folder = None
        for path in modules():
            if room(path) != name or not summary(path):
                continue
            if path.parent != folder:
                folder = path.parent
                text += ["", f"### `{folder.relative_to(SOURCE.parent).as_posix()}/`", ""]
                text += ["| module | what |", "|---|---|"]
            text.append(f"| `{path.name}` | {summary(path)} |")
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(modules())} modules")
