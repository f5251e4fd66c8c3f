"""docs/claims.md is what its source says, and what it says is there: code, tests, figures, numbers.

Tests are found by reading files, not by running them.
"""

from __future__ import annotations

import ast
import re
import runpy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.syntax import parsed

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "claims.py"))
SECTIONS: list[dict[str, Any]] = SCRIPT["sections"]()
ITEMS: dict[str, dict[str, Any]] = {item["id"]: item for part in SECTIONS for item in part["item"]}
ID = re.compile(r"\b(?:TB|S0|S1|S2|S4|V|G|M|P)\.\d+(?:\.\d+)?\b(?!\.\d)")
DIGITS = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.]*\d)")

# (first, last) of each part, and how many rules an item of G has
NUMBERS = {
    "TB": (1, 8),
    "S0": (1, 16),
    "S4": (1, 27),
    "S2": (1, 8),
    "S1": (0, 24),
    "V": (1, 4),
    "G": (1, 4),
    "M": (1, 9),
    "P": (1, 4),
}
RULES = {"G.1": 5, "G.2": 5, "G.3": 7, "G.4": 6}
STILL_OPEN = ("language", "service", "scale")


def expected() -> list[str]:
    found = []
    for part, (first, last) in NUMBERS.items():
        for number in range(first, last + 1):
            found.append(f"{part}.{number}")
            rules = RULES.get(found[-1], 0)
            found += [f"{part}.{number}.{rule}" for rule in range(1, rules + 1)]
    return found


def names(body: list[ast.stmt], before: str = "") -> set[str]:
    """What a file or class defines: functions, classes with their members, and constants."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(before + node.name)
        elif isinstance(node, ast.ClassDef):
            found.add(before + node.name)
            found |= names(node.body, f"{before}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            flat = [t for target in targets for t in ast.walk(target)]
            found |= {before + target.id for target in flat if isinstance(target, ast.Name)}
    return found


def defined(path: Path) -> set[str]:
    return names(parsed(path).body) if path.is_file() else set()


def numbers_in(path: Path) -> list[float]:
    """Every number a test file spells, also inside text (as Fraction("0.005"))."""
    found = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
            try:
                found.append(float(node.value))
            except (ValueError, OverflowError):
                continue
    return found


def files(folder: str) -> list[Path]:
    return [path for path in (ROOT / folder).rglob("*.py") if path.name != Path(__file__).name]


# --- the page -----------------------------------------------------------------------------------


def test_the_page_is_what_the_source_says() -> None:
    written = (ROOT / "docs" / "claims.md").read_text("utf-8")
    assert written == SCRIPT["page"](SECTIONS), "run: python scripts/claims.py"


def test_every_claim_is_listed_once_and_in_order() -> None:
    assert [item["id"] for part in SECTIONS for item in part["item"]] == expected()


def test_every_item_says_what_it_must() -> None:
    for name, item in ITEMS.items():
        assert item.keys() <= {
            *("id", "name", "kind", "verdict", "printed", "holds", "figure", "code", "tests"),
            "open",
        }, name
        assert item["kind"] in SCRIPT["KINDS"], name
        assert item["verdict"] in SCRIPT["VERDICTS"], name
        assert item["holds"].strip(), name
        if item["verdict"] not in ("ours", "right"):
            assert item["printed"].strip(), name


def test_no_item_is_without_a_test_or_a_figure_unless_it_is_open() -> None:
    bare = [
        name
        for name, item in ITEMS.items()
        if "open" not in item and not (item.get("tests") and item.get("figure"))
    ]
    assert bare == []


def test_what_is_open_names_the_part_that_will_close_it() -> None:
    for name, item in ITEMS.items():
        assert item.get("open", "scale").startswith(STILL_OPEN), name


# --- what it points to --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ITEMS)
def test_code_and_tests_are_there(name: str) -> None:
    for place in ITEMS[name].get("code", []):
        path, _, symbol = place.partition(":")
        assert symbol in defined(ROOT / "src" / "sulq" / path), place
    for place in ITEMS[name].get("tests", []):
        path, _, test = place.partition("::")
        assert test.startswith("test_"), place
        assert test in defined(ROOT / "tests" / path), place


@pytest.mark.parametrize("name", [name for name in ITEMS if "figure" in ITEMS[name]])
def test_long_figures_stand_in_a_cited_test(name: str) -> None:
    """Numbers of five digits or more, to the last digit shown."""
    item = ITEMS[name]
    cited = {place.partition("::")[0] for place in item.get("tests", [])}
    known = [number for path in cited for number in numbers_in(ROOT / "tests" / path)]
    for text in long_figures(item["figure"]):
        shown = float(text)
        last = 10.0 ** int(f"{shown:.{significant(text) - 1}e}".split("e")[1])
        allowed = 0.51 * last * 10.0 ** (1 - significant(text))
        assert any(abs(number - shown) <= allowed for number in known), text


def significant(text: str) -> int:
    return len(text.partition("e")[0].replace(".", "").lstrip("0"))


def long_figures(text: str) -> list[str]:
    return [found for found in DIGITS.findall(text) if "." in found and significant(found) >= 5]


def test_long_figures_are_read_from_text() -> None:
    text = "R = 2763.102, at 8.853263947e-04 (0.02 and 7140), 1784.791172."
    assert long_figures(text) == ["2763.102", "8.853263947e-04", "1784.791172"]
    assert significant("0.06513864998") == 10


# --- a cited test runs the product --------------------------------------------------------------


@dataclass(frozen=True)
class Names:
    """What a test file calls things: the product's names, its own, and those of other helpers."""

    product: frozenset[str]
    own: dict[str, ast.stmt]
    helpers: dict[str, tuple[Path, str]]


@cache
def names_of(path: Path) -> Names:
    product: set[str] = set()
    own: dict[str, ast.stmt] = {}
    helpers: dict[str, tuple[Path, str]] = {}
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            product |= {a.asname or "sulq" for a in node.names if a.name.split(".")[0] == "sulq"}
        elif isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".")
            there = ROOT.joinpath(*parts).with_suffix(".py")
            for alias in node.names:
                if parts[0] == "sulq":
                    product.add(alias.asname or alias.name)
                elif there.is_file():
                    helpers[alias.asname or alias.name] = (there, alias.name)
    for stmt in parsed(path).body:
        if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own[stmt.name] = stmt
        elif isinstance(stmt, ast.Assign | ast.AnnAssign):
            own |= dict.fromkeys(names([stmt]), stmt)
    return Names(frozenset(product), own, helpers)


def root_of(called: ast.expr) -> str:
    """`a` of a.b(c)[d].e"""
    while isinstance(called, ast.Attribute | ast.Call | ast.Subscript):
        called = called.func if isinstance(called, ast.Call) else called.value
    return called.id if isinstance(called, ast.Name) else ""


def spells(node: ast.AST) -> list[str]:
    found = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
    return [text for text in found if isinstance(text, str)]


def runs_the_product(path: Path, name: str, seen: set[tuple[Path, str]] | None = None) -> bool:
    """Whether this function, or one that it uses or is given, calls something of sulq.

    By reading: a call of a name imported from sulq (or handing one to a call), a script beside the
    test that imports sulq, or the command `sulq` itself.
    """
    seen = set() if seen is None else seen
    if (path, name) in seen:
        return False
    seen.add((path, name))
    known = names_of(path)
    if name in known.helpers:
        return runs_the_product(*known.helpers[name], seen)
    node = known.own.get(name)
    if node is None:
        return False
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
        given = {a.id for a in call.args if isinstance(a, ast.Name)} & known.product
        if root_of(call.func) in known.product or (given and root_of(call.func) != "pytest"):
            return True
    for text in spells(node):
        script = path.parent / text if text.endswith(".py") else None
        if text == "sulq" or "import sulq" in text or "from sulq" in text:
            return True
        if script is not None and script.is_file() and names_of(script).product:
            return True
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - {name}
    if any(runs_the_product(path, other, seen) for other in sorted(used)):
        return True
    fixtures = [a.arg for a in node.args.args] if isinstance(node, ast.FunctionDef) else []
    homes = [path, *(folder / "conftest.py" for folder in path.parents if folder != ROOT.parent)]
    homes = [home for home in homes if home.is_file() and ROOT in home.parents]
    return any(runs_the_product(home, one, seen) for one in fixtures for home in homes)


@pytest.mark.parametrize("name", ITEMS)
def test_every_cited_test_runs_the_product(name: str) -> None:
    idle = [
        place
        for place in ITEMS[name].get("tests", [])
        if not runs_the_product(ROOT / "tests" / place.split("::")[0], place.split("::")[1])
    ]
    assert idle == []


def test_arithmetic_alone_is_seen(tmp_path: Path) -> None:
    """The scan itself: a sum of its own, a call in a helper, and a script beside the test."""
    file = tmp_path / "test_some.py"
    (tmp_path / "script.py").write_text("import sulq\n")
    file.write_text(
        "import math\nimport pytest\nfrom sulq.beliefs import conf\nfrom sulq import InvalidQuery\n"
        "def helper(): return conf(0.5)\n"
        "def test_arithmetic(): assert math.log(2) > 0\n"
        "def test_refusal_of_nothing():\n    with pytest.raises(InvalidQuery):\n        1 / 0\n"
        "def test_helped(): assert helper() == 0\n"
        "def test_script(): run('script.py')\n"
    )
    found = {
        name: runs_the_product(file, name) for name in defined(file) if name.startswith("test_")
    }
    assert found == {
        "test_arithmetic": False,
        "test_refusal_of_nothing": False,
        "test_helped": True,
        "test_script": True,
    }


# --- what points to it --------------------------------------------------------------------------


def cited(folder: str) -> dict[str, str]:
    """Every number cited in a folder, and one place that cites it."""
    found: dict[str, str] = {}
    for path in files(folder):
        for number in ID.findall(path.read_text("utf-8")):
            found.setdefault(number, path.relative_to(ROOT).as_posix())
    return found


def test_what_code_and_documents_cite_is_on_the_page() -> None:
    strangers = {k: v for folder in ("src", "tests") for k, v in cited(folder).items()}
    for path in (ROOT / "docs").rglob("*.md"):
        for number in ID.findall(path.read_text("utf-8")):
            strangers.setdefault(number, path.relative_to(ROOT).as_posix())
    assert {number: where for number, where in strangers.items() if number not in ITEMS} == {}


def spelled(name: str) -> str:
    """An item as test names have it: S4.10 is s410."""
    return name.replace(".", "").lower()


def test_every_item_with_code_is_cited_in_code_or_tests() -> None:
    """By its number, in a test's name, or, for a rule of G, by the number of its theorem."""
    mentioned = cited("src").keys() | cited("tests").keys()
    mentioned |= {f"{name}.{rule}" for name in RULES if name in mentioned for rule in range(1, 8)}
    words = {word for path in files("tests") for test in defined(path) for word in test.split("_")}
    silent = [
        name
        for name, item in ITEMS.items()
        if item.get("code") and name not in mentioned and spelled(name) not in words
    ]
    assert silent == []
