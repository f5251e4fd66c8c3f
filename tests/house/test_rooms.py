"""The rooms of ARCHITECTURE.md: what is trusted is counted, and lists of modules are generated."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest
from tests.syntax import parsed

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "modules.py"))
IMPORTS = runpy.run_path(str(ROOT / "tests" / "house" / "test_imports.py"))
TOLD = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
MOST_LINES = 250


def recorded() -> dict[str, tuple[int, str]]:
    rows = re.findall(r"^\| ([a-z ]+) \| ([\d,]+) \| (.+) \|$", TOLD, re.MULTILINE)
    return {room: (int(count.replace(",", "")), why) for room, count, why in rows}


def has_moved(count: int, told: int) -> bool:
    """More than 2 %."""
    return 50 * abs(count - told) > told


@pytest.mark.parametrize("room", SCRIPT["COUNTED"])
def test_what_is_trusted_has_the_recorded_size(room):
    told, why = recorded()[room]
    count = SCRIPT["lines"](room)
    assert not has_moved(count, told), f"record {count:,} for {room!r}, and say why"
    assert len(why) > 10


def test_a_change_of_more_than_two_percent_is_one():
    assert [count for count in (979, 980, 1000, 1020, 1021) if has_moved(count, 1000)] == [
        979,
        1021,
    ]


def test_every_room_and_every_name_in_it_exists():
    assert set(SCRIPT["ABOUT"]) == set(SCRIPT["ROOMS"])
    names = [name for names in SCRIPT["ROOMS"].values() for name in names]
    assert [name for name in names if not (SCRIPT["SOURCE"] / name).exists()] == []


def test_the_list_of_modules_is_what_their_docstrings_say():
    assert SCRIPT["PAGE"].read_text("utf-8") == SCRIPT["page"](), "run scripts/modules.py"


def test_every_module_says_what_it_is():
    silent = [SCRIPT["named"](path) for path in SCRIPT["modules"]() if not SCRIPT["summary"](path)]
    assert [name for name in silent if not name.endswith("__init__.py")] == []


@pytest.mark.parametrize("rows", ["LAYERS", "KERNEL_LAYERS"])
def test_the_page_shows_the_layers_that_are_held(rows):
    assert "\n".join("  " + " | ".join(sorted(row)) for row in IMPORTS[rows]) in TOLD


def test_the_page_stays_short():
    assert TOLD.count("\n") <= MOST_LINES


GUARDS = re.compile(r"^\| \d+ \|.*\| (.+) \|$", re.MULTILINE)


def is_fast(node: ast.AST) -> bool:
    """A test function that is not marked slow as a whole."""
    named = isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    return named and "pytest.mark.slow" not in map(ast.unparse, node.decorator_list)


def test_every_guard_of_an_invariant_keeps_a_fast_test():
    table = TOLD.partition("## Founding invariants")[2].partition("\n## ")[0]
    guards = sorted({path for row in GUARDS.findall(table) for path in re.findall("`(.+?)`", row)})
    assert len(guards) >= 15
    assert [path for path in guards if not any(map(is_fast, parsed(ROOT / path).body))] == []


def test_a_guard_that_is_slow_as_a_whole_is_caught():
    slow = ast.parse("@pytest.mark.slow\ndef test_it(): ...\ndef helper(): ...\n")
    assert not any(map(is_fast, slow.body))
