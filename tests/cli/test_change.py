"""sulq amend and sulq close: shown first, recorded once, and what the ledger says afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import POLICY

LARGER = POLICY.replace(
    "epsilon = 1, delta = 1e-6, queries = 20", "epsilon = 2, delta = 1e-6, queries = 40"
)


def written(text):
    Path("sulq.toml").write_text(text, "utf-8")


def test_amend_shows_what_changes_and_asks(sulq):
    assert sulq("ask", "count").code == 0
    written(LARGER)
    refused = sulq("ask", "count", "--where", "smoker")
    assert (refused.code, "`sulq amend` it" in refused.err) == (3, True)
    looked = sulq("amend")
    assert (looked.code, "add --yes; nothing was changed" in looked.err) == (2, True)
    assert "epsilon" in looked.out and "promise now" in looked.out
    assert sulq("ledger", "--json").json["amended"] == []


def test_amend_records_a_larger_promise_and_the_old_policy_is_refused(sulq):
    sulq("ask", "count", "--where", "smoker")
    before = sulq("ledger", "--json").json
    written(LARGER)
    shown = sulq("amend", "--json")
    assert (shown.code, shown.json["amended"], len(shown.json["changes"]) > 0) == (2, False, True)
    found = sulq("amend", "--yes", "--json", "--reason", "second wave").json
    assert (found["amended"], found["changes"]) == (True, shown.json["changes"])
    assert found["credits"] == {"was": 20, "now": 40}
    after = sulq("ledger", "--json").json
    assert after["spent"] == pytest.approx(found["spent"]["now"], rel=1e-9)
    assert after["spent"] / before["spent"] == pytest.approx(0.55748, rel=1e-3)  # R'/R
    assert after["epsilon"] == 2
    assert [line["reason"] for line in after["amended"]] == ["second wave"]
    assert "until event" in sulq("ledger").out
    assert sulq("ask", "count", "--where", "age > 50").code == 0
    written(POLICY)
    refused = sulq("ask", "count", "--where", "age > 60")
    assert (refused.code, "as it was amended, or `sulq amend` it" in refused.err) == (3, True)


def test_amend_takes_a_new_column_and_tighter_bounds(sulq):
    sulq("ask", "mean", "income")
    tighter = POLICY.replace("income = {number = [0, 1000]}", "income = {number = [0, 500]}")
    written(tighter + "columns.person_id = {number = [0, 20000]}\n")
    found = sulq("amend", "--yes", "--json").json
    assert {one["what"]: (one["was"], one["now"]) for one in found["changes"]} == {
        "column income": ("0 to 1000", "0 to 500"),
        "column person_id": ("hidden", "0 to 20000"),
    }
    assert found["spent"]["was"] == found["spent"]["now"]
    assert sulq("ask", "mean", "person_id").code == 0
    assert sulq("amend", "--json").json["changes"] == []


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        ("{flag = true}", "{flag = true, public = true}", "would be given away"),
        (", public = true}", "}", "strata would lose their past"),
        ("[0, 1000]", "[0, 2000]", "is no part of it"),
        ("queries = 20", "queries = 19", "only be raised"),
        ("epsilon = 1", "epsilon = 0.5", "only be raised"),
        ("columns.smoker = {flag = true}\n", "", "stays declared"),
        ('["Oslo", "Paris"]', '["Oslo"]', "account with a past"),
    ],
)
def test_amend_refuses_what_would_undo_the_promise(sulq, was, now, why):
    sulq("ask", "count")
    before = sulq("ledger", "--json").json
    assert was in POLICY
    written(POLICY.replace(was, now))
    reply = sulq("amend", "--yes")
    assert (reply.code, why in reply.err) == (3, True)
    assert sulq("ledger", "--json").json == before


def test_an_unpublished_table_is_neither_amended_nor_closed(sulq):
    for verb in ("amend", "close"):
        reply = sulq(verb, "--yes")
        assert (reply.code, "not published yet" in reply.err) == (3, True)
    assert not Path("people.ledger").exists()


def test_close_is_for_good(sulq):
    first = sulq("ask", "count", "--where", "smoker", "--json").json
    assert (sulq("close").code, sulq("ledger", "--json").json["closed"]) == (2, None)
    assert "end of study" in sulq("close", "--yes", "--reason", "end of study").out
    again = sulq("ask", "count", "--where", "smoker", "--json").json
    assert (again["value"], again["credits"]) == (first["value"], 0)
    refused = sulq("ask", "mean", "age")
    assert (refused.code, "closed for good" in refused.err) == (3, True)
    assert sulq("quote", "mean", "age").code == 3
    found = sulq("ledger", "--json").json
    assert (found["closed"]["reason"], found["left"]) == ("end of study", 0)
    assert "nothing: closed for good" in sulq("ledger").out
    assert "end of study" in sulq("close", "--yes", "--reason", "another").out
    written(LARGER)
    assert "closed for good" in sulq("amend", "--yes").err


def test_a_table_of_before_whole_numbers_has_nothing_to_amend(unpublished):
    """Its promise names no lattice, and neither does the policy."""
    promise = "promise = {epsilon = 1, delta = 1e-6, queries = 20}"
    older = POLICY.replace(promise, 'promise = {epsilon = 1, queries = 20, lattice = "fine"}')
    Path("sulq.toml").write_text(older, "utf-8")
    assert unpublished("publish", "--yes").code == 0
    Path("sulq.toml").write_text(older.replace(', lattice = "fine"', ""), "utf-8")
    done = unpublished("amend", "--json")
    assert (done.code, done.json["changes"]) == (0, [])
