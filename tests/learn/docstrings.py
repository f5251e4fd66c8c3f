"""Read numpydoc docstrings: the names that their sections describe."""

from __future__ import annotations

import inspect
import re

SECTIONS = ("Parameters", "Attributes", "Notes", "Examples")


def sections(kind: type) -> dict[str, str]:
    """Return the text of each section of the docstring that a class has of its own."""
    text = inspect.cleandoc(vars(kind).get("__doc__") or "")
    parts = re.split(r"^(\w+)\n-+\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def described(section: str) -> set[str]:
    """Return the names before the colon of each unindented line: `a, b : int` describes two."""
    heads = [line.partition(" : ")[0] for line in section.splitlines() if line[:1].strip()]
    return {name.strip() for head in heads for name in head.split(",")}
