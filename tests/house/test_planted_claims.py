"""A planted fault for each claim: the line is broken in a copy, and the cited test must see it.

The faults stand in planted_claims.toml. That each still has its line, and its test its citation, is
checked at once; that the test fails on the broken copy, and passes on a whole one, is slow.
"""

from __future__ import annotations

import ast
import json
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
FAULTS: list[dict[str, str]] = tomllib.loads((HERE / "planted_claims.toml").read_text("utf-8"))[
    "fault"
]
SECTIONS: list[dict[str, Any]] = runpy.run_path(str(ROOT / "scripts" / "claims.py"))["sections"]()
ITEMS: dict[str, dict[str, Any]] = {item["id"]: item for part in SECTIONS for item in part["item"]}
PASSED, FAILED = 0, 1


def broken(fault: dict[str, str]) -> str:
    """The text of the file with the fault."""
    text = (ROOT / "src" / "sulq" / fault["file"]).read_text("utf-8")
    assert text.count(fault["old"]) == 1, f"{fault['file']}: {fault['old']}"
    return text.replace(fault["old"], fault["new"])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["item"])
def test_a_fault_is_a_line_of_the_product_and_its_test_is_cited(fault: dict[str, str]) -> None:
    ast.parse(broken(fault))
    assert fault["new"] != fault["old"]
    assert fault["test"] in ITEMS[fault["item"]]["tests"]


def test_every_claim_has_a_planted_fault() -> None:
    assert ITEMS.keys() - {fault["item"] for fault in FAULTS} == set()


def ends(faults: list[dict[str, str]], copy: Path) -> list[tuple[int, str]]:
    """How each test ends on the copy, one fault at a time."""
    shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, str(HERE / "planted.py"), str(copy)]
    run = subprocess.run(
        command, input=json.dumps(faults), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return [tuple(json.loads(line)) for line in run.stdout.splitlines()]


@pytest.mark.slow
def test_the_cited_tests_see_the_faults(tmp_path: Path) -> None:
    found = ends(FAULTS, tmp_path / "src")
    missed = {
        f"{fault['item']}: {fault['test']}": f"{code}: {said[-2000:]}"
        for fault, (code, said) in zip(FAULTS, found, strict=True)
        if code != FAILED
    }
    assert missed == {}


@pytest.mark.slow
def test_the_cited_tests_pass_on_a_whole_copy(tmp_path: Path) -> None:
    """So that what they see is the fault."""
    names = dict.fromkeys(fault["test"] for fault in FAULTS)
    whole = [{"file": "errors.py", "old": "", "new": "", "test": name} for name in names]
    found = ends(whole, tmp_path / "src")
    wrong = [
        (name, said) for name, (code, said) in zip(names, found, strict=True) if code != PASSED
    ]
    assert wrong == []
