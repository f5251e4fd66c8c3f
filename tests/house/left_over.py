"""What the rules of the house still have to bear: counted, recorded, and only ever fewer.

    .venv/bin/python -m tests.house.left_over     writes tests/house/left_over.toml again

A file may move, so the writer looks at the total of each rule; it refuses to write a larger one.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import grimp
from tests.syntax import SOURCE, source_trees

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_suffix(".toml")

# Methods of NamedTuple, os._exit, and what PySpark has no public name for.
PUBLIC = {"_replace", "_asdict", "_fields", "_make", "_exit", "_jvm", "_jsc", "_gateway"} | {
    "_active_spark_context",
    "_activeSession",
    "_instantiatedSession",
}
LONGEST_TEMPLATE_LINE = 120
SIZES = {
    "C901": "mccabe.max-complexity=12",
    "PLR0913": "pylint.max-args=8",
    "PLR0915": "pylint.max-statements=50",
}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def _of_this_module(tree: ast.Module) -> set[str]:
    """Names that the module itself defines: at any depth, or on `self`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "cls"):
            names.add(node.attr)
    return names


def reached(tree: ast.Module) -> list[str]:
    """`x._y` where neither x nor _y is of this module, and private names imported from ours."""
    own = _of_this_module(tree)
    found = [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and _is_private(node.attr)
        and node.attr not in own
        and ast.unparse(node.value) not in ("self", "cls")
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sulq"):
            found += [alias.name for alias in node.names if _is_private(alias.name)]
    return found


def private_reach() -> Counter[str]:
    return Counter(
        {name: len(found) for name, tree in source_trees().items() if (found := reached(tree))}
    )


def in_cycles(graph: grimp.ImportGraph) -> Counter[str]:
    """Modules that reach themselves, with how many others on the way. TYPE_CHECKING counts."""
    down = {
        module: graph.find_upstream_modules(module) for module in graph.modules if module != "sulq"
    }
    return Counter(
        {
            module: len(ring)
            for module, reach in down.items()
            if (ring := [other for other in reach if module in down.get(other, ())])
        }
    )


def import_cycles() -> Counter[str]:
    return in_cycles(grimp.build_graph("sulq", cache_dir=None))


def doubled(texts: Iterable[tuple[str, ast.Module]]) -> Counter[str]:
    """Classes, and names that a public page exports, which more than one module defines."""
    classes: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    exported: set[str] = set()
    for _, tree in texts:
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes[node.name] += 1
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions[node.name] += 1
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                exported |= {
                    part.value for part in ast.walk(node) if isinstance(part, ast.Constant)
                }
    homes = classes + Counter({n: k for n, k in functions.items() if n in exported})
    return Counter({n: k for n, k in homes.items() if k > 1 and not n.startswith("_")})


def names_with_two_homes() -> Counter[str]:
    return doubled(source_trees().items())


def too_long(text: str) -> int:
    return sum(len(line) > LONGEST_TEMPLATE_LINE for line in text.splitlines())


def long_template_lines() -> Counter[str]:
    folder = SOURCE / "server" / "console"
    pages = {path: too_long(path.read_text("utf-8")) for path in folder.rglob("*.html")}
    return Counter({path.relative_to(folder).as_posix(): n for path, n in pages.items() if n})


def large(*places: str) -> Counter[str]:
    """Functions too complex, with too many parameters or too many statements, by rule."""
    settings = [word for value in SIZES.values() for word in ("--config", f"lint.{value}")]
    ruff = Path(sys.executable).with_name("ruff")
    command = [ruff, "check", "--isolated", "--no-cache", "--ignore-noqa", "--output-format=json"]
    run = subprocess.run(
        [*command, "--target-version=py311", f"--select={','.join(SIZES)}", *settings, *places],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    return Counter(found["code"] for found in json.loads(run.stdout))


def large_functions() -> Counter[str]:
    return large("src", "tests", "scripts", "benchmarks")


RULES = {
    rule.__name__: rule
    for rule in (
        private_reach,
        import_cycles,
        names_with_two_homes,
        long_template_lines,
        large_functions,
    )
}


def recorded() -> dict[str, dict[str, int]]:
    return tomllib.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}


def grown(found: Counter[str], told: dict[str, int]) -> dict[str, str]:
    return {
        place: f"{count} > {told.get(place, 0)}"
        for place, count in sorted(found.items())
        if count > told.get(place, 0)
    }


def main() -> None:
    told = recorded()
    text = [
        "# Written by `python -m tests.house.left_over`: what is left to mend. Only ever fewer."
    ]
    for name, rule in RULES.items():
        found = rule()
        if name in told and found.total() > sum(told[name].values()):
            raise SystemExit(f"{name} has grown: {grown(found, told[name])}")
        text += ["", f"[{name}]", *(f'"{place}" = {found[place]}' for place in sorted(found))]
        print(f"{name}: {found.total()} in {len(found)}")
    RECORD.write_text("\n".join(text) + "\n", "utf-8")


if __name__ == "__main__":
    main()
