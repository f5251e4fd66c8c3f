"""`sulq keys` and `sulq top`."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def open_city(sulq):
    """The same table, its cities not declared."""
    policy = Path("sulq.toml")
    declared = 'columns.city = {category = ["Oslo", "Paris"], public = true}'
    text = policy.read_text("utf-8")
    assert declared in text
    policy.write_text(text.replace(declared, "columns.city = {text = true}"), "utf-8")
    return sulq


def test_keys_are_shown_with_what_is_held_back(open_city):
    reply = open_city("keys", "city", "--json")
    assert reply.code == 0, reply.err
    found = reply.json
    assert {row["city"] for row in found["keys"]} == {"Oslo", "Paris"}
    assert all(9_000 < row["low"] < row["value"] < row["high"] < 11_000 for row in found["keys"])
    assert abs(found["held_back"]) < 6 * found["held_back_error"]
    assert (found["credits"], found["left"]) == (2, 18)
    plain = open_city("keys", "people", "city")
    assert "held back" in plain.out and "shown from" in plain.out and "Oslo" in plain.out
    assert "nothing new" in plain.out


def test_keys_are_quoted_for_nothing(open_city):
    found = open_city(
        "keys", "city", "--quote", "--delta", "1e-10", "--credits", "4", "--json"
    ).json
    assert (found["credits"], found["delta"]) == (4, 1e-10)
    assert not Path("people.ledger").exists()
    assert "a delta of 1e-10" in open_city("keys", "city", "--quote", "--delta", "1e-10").out
    dear = open_city("keys", "city", "--quote", "--delta", "1e-8")
    assert "not affordable" in dear.out and "`keys` with a `delta` of 9e-10 can" in dear.out


def test_keys_with_a_condition(open_city):
    found = open_city("keys", "city", "--where", "age < 50", "--most", "1", "--json").json
    assert len(found["keys"]) == 1 and 4_000 < found["held_back"] < 6_000


def test_keys_refused(sulq, open_city):
    assert open_city("keys").code == 2
    assert open_city("keys", "age").code == 2
    assert open_city("keys", "city", "--delta", "much").code == 2
    assert open_city("keys", "city", "--delta", "1e-7").code == 4
    assert "(0 credits spent)" in open_city("keys", "age").err


def test_top_names_the_largest(sulq):
    reply = sulq("top", "smoker", "total", "income", "-k", "2", "--credits", "20", "--json")
    assert reply.code == 0, reply.err
    assert reply.json["keys"] == [False, True]
    assert (reply.json["credits"], reply.json["left"]) == (20, 0)
    again = sulq("top", "smoker", "total", "income", "-k", "2", "--credits", "20")
    assert again.code == 0 and "place" in again.out and "False" in again.out


def test_top_counts_if_nothing_else_is_said(sulq):
    reply = sulq("top", "smoker", "--where", "age >= 10", "--credits", "10", "--json")
    assert reply.code == 0 and reply.json["keys"] == [False]


def test_top_refused(sulq):
    assert sulq("top").code == 2
    assert sulq("top", "city").code == 2  # public: exact and free
    assert sulq("top", "smoker", "mean", "age").code == 2
    assert sulq("top", "smoker", "-k", "9").code == 2
    assert sulq("top", "smoker", "--credits", "21").code == 4
