"""Credits are turned into text by `sulq.formatting` alone: it knows which way to round."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.syntax import parsed

WHOLE = ("f','", "f'g'")
"""Formats that keep a whole number, or a constant, as it is."""
SOURCE = Path(__file__).parents[2] / "src" / "sulq"


def formatted_by_hand(tree: ast.Module) -> list[int]:
    """Return the lines of f-strings that format a number and then say "credit"."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for part, after in zip(node.values, node.values[1:], strict=False):
            says = isinstance(after, ast.Constant) and str(after.value).startswith(" credit")
            spec = part.format_spec if isinstance(part, ast.FormattedValue) else None
            if says and spec is not None and ast.unparse(spec) not in WHOLE:
                found.append(node.lineno)
    return found


def test_nobody_else_formats_credits():
    faults = {
        path.relative_to(SOURCE).as_posix(): lines
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "formatting.py"
        and "kernel" not in path.parts  # below the formats; it repeats what it was given
        and (lines := formatted_by_hand(parsed(path)))
    }
    assert faults == {}


def test_a_format_by_hand_is_caught():
    text = 'a = f"{x:.4g} credits"\nb = f"{text} credits"\nc = f"{x:,} credits"\n'
    assert formatted_by_hand(ast.parse(text)) == [1]
