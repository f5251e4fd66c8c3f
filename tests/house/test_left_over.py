"""Rules that not all code keeps yet: what is left is recorded, and only ever becomes fewer."""

from __future__ import annotations

import ast
from collections import Counter

import grimp
import pytest
from tests.house import left_over


@pytest.mark.parametrize("rule", left_over.RULES)
def test_rule_is_broken_nowhere_else(rule):
    """After a move: `python -m tests.house.left_over` records the new places, not more of them."""
    found = left_over.RULES[rule]()
    assert left_over.grown(found, left_over.recorded()[rule]) == {}


def test_a_new_place_and_a_larger_number_are_growth():
    assert left_over.grown(Counter(a=2, b=1, c=1), {"a": 1, "c": 3}) == {"a": "2 > 1", "b": "1 > 0"}


def test_a_reach_into_another_modules_object_is_caught():
    text = """
from sulq.kernel.ledger.ledger import Ledger, _hidden
class Mine:
    _own = 1
    def ask(self, other, ledger):
        self._kept = other._own
        return self._kept, ledger._book, row._replace(a=1), other.__class__
"""
    assert left_over.reached(ast.parse(text)) == ["_book", "_hidden"]


def test_a_cycle_through_typing_alone_is_caught(tmp_path, monkeypatch):
    package = tmp_path / "ring_of_two"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("import ring_of_two.b\n")
    (package / "b.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ring_of_two import a\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    graph = grimp.build_graph("ring_of_two", cache_dir=None)
    assert left_over.in_cycles(graph) == {"ring_of_two.a": 1, "ring_of_two.b": 1}


def test_a_second_home_is_caught():
    texts = {
        "page": "__all__ = ['mean']\n",
        "one": "class Row: ...\nclass _Part: ...\ndef mean(): ...\ndef ask(): ...\n",
        "two": "class Row: ...\nclass _Part: ...\ndef mean(): ...\ndef ask(): ...\n",
    }
    trees = [(name, ast.parse(text)) for name, text in texts.items()]
    assert left_over.doubled(trees) == {"Row": 2, "mean": 2}


def test_a_long_line_of_a_template_is_caught():
    assert left_over.too_long("x" * 120 + "\n" + "x" * 121 + "\n") == 1


def test_a_large_function_is_caught(tmp_path):
    parameters = ", ".join(f"a{n}" for n in range(9))
    branches = "".join(f"    if a{n % 9} == {n}:\n        a0 = {n}\n" for n in range(26))
    file = tmp_path / "large.py"
    file.write_text(f"def large({parameters}):\n{branches}")
    assert left_over.large(str(file)) == dict.fromkeys(left_over.SIZES, 1)
