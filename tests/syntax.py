"""Syntax trees of the package, parsed once for all tests that read its source."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "sulq"


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def source_trees() -> dict[str, ast.Module]:
    """Return the tree of every module of the package, by its path below `src/sulq`."""
    return {
        path.relative_to(SOURCE).as_posix(): parsed(path) for path in sorted(SOURCE.rglob("*.py"))
    }


@cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return a node and all below it, walked once for all rules that read it."""
    return tuple(ast.walk(tree))
