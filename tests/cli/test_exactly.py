"""`sulq ask --exact`: assumptions and menu from the policy, the label, and what is said after."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import POLICY

EXACT = """exact.epsilon = 1
exact.delta = 1e-6
exact.known_rows = 10
exact.least = {smoker = 0.1}
exact.menu = ["count where smoker"]
"""


@pytest.fixture
def exact(sulq):
    Path("sulq.toml").write_text(POLICY + EXACT, "utf-8")
    return sulq


def test_a_declared_question_is_exact_labelled_and_free(exact):
    assert "declared for exact release" in exact("publish", "--yes").err
    reply = exact("ask", "count", "--where", "smoker", "--exact", "--json")
    assert reply.code == 0
    assert (reply.json["value"], reply.json["low"], reply.json["high"]) == (5000, 5000, 5000)
    assert reply.json["guarantee"] == "noiseless, under assumptions"
    assert reply.json["credits"] == 0
    assert reply.json["left"] == 5  # 20 / 2^2
    shown = exact("ask", "count", "--where", "smoker", "--exact")
    assert "noiseless, under assumptions" in shown.out
    assert "declared" not in shown.err


def test_afterwards_no_worst_case_promise_is_stated(exact):
    before = exact("ledger", "--json")
    assert before.code == 3  # nothing is published by looking
    exact("ask", "count", "--where", "smoker", "--exact")
    ledger = exact("ledger", "--json").json
    assert ledger["released"] == 1
    assert "no worst-case promise is left" in ledger["guarantee"]
    assert not {"epsilon", "delta", "tail", "belief"} & ledger.keys()
    assert "divided by 4" in exact("ledger").out
    beliefs = exact("beliefs")
    assert beliefs.code == 3
    assert "no worst-case promise" in beliefs.err
    assert "no worst-case promise" in exact("ask", "count", "--where", "age > 40").out


def test_what_was_not_declared_is_refused_and_costs_nothing(exact):
    reply = exact("ask", "count", "--where", "age > 50", "--exact", "--json")
    assert reply.code == 3
    assert reply.json["kind"] == "UnsafeExactly"
    assert exact("ledger", "--json").json["spent"] == 0


def test_off_without_a_policy(sulq):
    reply = sulq("ask", "count", "--where", "smoker", "--exact")
    assert reply.code == 3
    assert "exact release is off" in reply.err


def test_a_menu_that_cannot_be_certified_publishes_nothing(sulq):
    bad = EXACT.replace("count where smoker", "total income")
    Path("sulq.toml").write_text(POLICY + bad, "utf-8")
    reply = sulq("publish", "--yes")
    assert reply.code == 2
    assert "no natural lattice" in reply.out
    assert not Path("people.ledger").exists()


def test_a_menu_that_comes_too_late_leaves_the_table_open(exact):
    Path("sulq.toml").write_text(POLICY + EXACT.replace('["count where smoker"]', "[]"), "utf-8")
    assert exact("ask", "count", "--where", "smoker").code == 0
    Path("sulq.toml").write_text(POLICY + EXACT, "utf-8")
    reply = exact("ask", "count", "--where", "age > 40")
    assert reply.code == 0
    assert "was not declared" in reply.err


def test_exact_takes_no_accuracy(exact):
    reply = exact("ask", "count", "--exact", "--credits", "2")
    assert reply.code == 2
    assert "--exact takes no" in reply.err


@pytest.mark.parametrize("menu", ["count where", "sum age", "count where nothing"])
def test_a_misspelled_menu_says_so(sulq, menu):
    Path("sulq.toml").write_text(POLICY + EXACT.replace("count where smoker", menu), "utf-8")
    assert sulq("publish", "--yes").code == 2
    assert not Path("people.ledger").exists()
