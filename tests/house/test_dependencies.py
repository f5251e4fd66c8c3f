"""The base install is enough for everything but what an extra names."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

from tests.syntax import parsed

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sulq"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

MODULE_OF = {"pynacl": "nacl", "scikit-learn": "sklearn", "vl-convert-python": "vl_convert"}
COMES_WITH = {"typer": {"click"}}

# Which files may import, at their top, the packages of which extra.
EXTRA_OF = {
    "learn/": "learn",
    "kernel/engines/postgres/engine.py": "postgres",
    "kernel/ledger/stores/postgres.py": "postgres",
    "kernel/engines/spark/engine.py": "spark",
    "dbapi/dialect.py": "sqlalchemy",
}


def modules_of(requirements: list[str]) -> set[str]:
    names = [re.split(r"[\[<>=~!; ]", text)[0] for text in requirements]
    own = {MODULE_OF.get(name, name) for name in names}
    return own.union(*(COMES_WITH.get(name, set()) for name in names))


def allowed_in(path: str) -> set[str]:
    allowed = modules_of(PROJECT["dependencies"]) | {"sulq", *sys.stdlib_module_names}
    for prefix, extra in EXTRA_OF.items():
        if path.startswith(prefix):
            allowed |= modules_of(PROJECT["optional-dependencies"][extra])
    return allowed


def imported_at_the_top(tree: ast.Module) -> set[str]:
    """Imports that run when the module is imported, inside `if` and `try` too."""
    found: set[str] = set()
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
        pending.extend(ast.iter_child_nodes(node))
    return found


def test_top_imports_are_declared():
    found = {}
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        found[name] = imported_at_the_top(parsed(path)) - allowed_in(name)
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert len(found) > 100


def test_undeclared_import_is_caught():
    tree = ast.parse("try:\n    import pandas\nexcept ImportError:\n    pandas = None\n")
    assert imported_at_the_top(tree) - allowed_in("database.py") == {"pandas"}
    assert imported_at_the_top(tree) - allowed_in("kernel/engines/spark/engine.py") == set()


def test_every_dependency_has_a_lower_bound_and_base_ones_an_upper():
    extras = PROJECT["optional-dependencies"]
    everything = PROJECT["dependencies"] + [text for extra in extras.values() for text in extra]
    assert [text for text in everything if ">=" not in text and not text.startswith("sulq[")] == []
    assert [text for text in PROJECT["dependencies"] if "<" not in text] == []
