"""The import paths that README, docs and CONTRIBUTING show in their code, as module:name.

`python -m tests.golden.shown` adds those that imports.txt does not have yet.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LISTED = HERE / "imports.txt"
HEAD = (
    "# Paths as the documents have shown them. No script renames them: old paths stay importable."
)
FENCED = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.S | re.M)
IMPORT = re.compile(
    r"^[ ]*(?:from\s+sulq[\w.]*\s+import\s+(?:\([^)]*\)|[^\n(;]+)|import\s+sulq[\w., ]*)", re.M
)
NAMED = re.compile(r"`(sulq(?:\.[A-Za-z]\w*)+)[`(]")


def listed() -> list[str]:
    """What was shown when the list was made."""
    lines = LISTED.read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def shown() -> set[str]:
    """What is shown now."""
    found: set[str] = set()
    for page in _pages():
        text = page.read_text("utf-8")
        for block in FENCED.finditer(text):
            found |= set(_imported(_code(block[3])))
    for page in sorted(ROOT.glob("docs/**/*.ipynb")):
        for cell in json.loads(page.read_text("utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                found |= set(_imported("".join(cell["source"])))
    return found


def _pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]


def _code(block: str) -> str:
    """The code of a block: without prompts, where it is a session."""
    if ">>> " in block:
        lines = [line.strip() for line in block.splitlines()]
        return "\n".join(line[4:] for line in lines if line.startswith((">>> ", "... ")))
    return textwrap.dedent(block)


def _imported(code: str) -> Iterator[str]:
    for found in IMPORT.finditer(code):
        try:
            tree = ast.parse(textwrap.dedent(found[0]).strip())
        except SyntaxError:  # prose in a block of text
            continue
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                yield from (f"{node.module}:{name.name}" for name in node.names)
            elif isinstance(node, ast.Import):
                names = [name.name for name in node.names]
                yield from (f"{name}:" for name in names if name.split(".")[0] == "sulq")


def named() -> set[str]:
    """Paths that the prose names: `sulq.client.connect_async(...)`."""
    found: set[str] = set()
    for page in _pages():
        for match in NAMED.finditer(page.read_text("utf-8")):
            if (path := _split(match[1])) is not None:
                found.add(path)
    return found


def _split(path: str) -> str | None:
    """module:name of a dotted path; None if it names neither (sulq.toml)."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            module = import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        rest = parts[cut:]
        if not rest:
            return f"{path}:"
        return f"{module.__name__}:{rest[0]}" if hasattr(module, rest[0]) else None
    return None


def is_there(path: str) -> bool:
    """Whether this module, or this name of it, can be imported."""
    module, _, name = path.partition(":")
    try:
        found = import_module(module)
        return name in ("", "*") or hasattr(found, name) or bool(import_module(f"{module}.{name}"))
    except ImportError:
        return False


if __name__ == "__main__":
    every = sorted({*listed(), *shown(), *named()})
    LISTED.write_text("\n".join([HEAD, *every]) + "\n", "utf-8")
