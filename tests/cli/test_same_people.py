"""sulq outside: asked first, booked once, and what the ledger says afterwards."""

from __future__ import annotations

import pytest


def test_outside_is_shown_first_and_booked_with_yes(sulq):
    sulq("ask", "count", "--where", "smoker")
    looked = sulq("outside", "--credits", "4", "--reason", "yearbook")
    assert (looked.code, "add --yes; nothing was changed" in looked.err) == (2, True)
    assert sulq("ledger", "--json").json["outside"] == []
    found = sulq("outside", "--credits", "4", "--reason", "yearbook", "--yes", "--json").json
    assert (found["credits"], found["left"], found["exceeded"], found["total"]) == (4, 15, 0, None)
    after = sulq("ledger", "--json").json
    assert [(line["credits"], line["reason"]) for line in after["outside"]] == [(4, "yearbook")]
    assert (after["spent"], after["left"]) == (5, 15)
    assert "yearbook" in sulq("ledger").out


def test_outside_beyond_the_cap_is_said_in_the_ledger(sulq):
    sulq("ask", "count", "--where", "smoker")
    said = sulq("outside", "--epsilon", "2", "--delta", "1e-7", "--reason", "census", "--yes")
    assert (said.code, "promise exceeded" in said.out) == (0, True)
    found = sulq("ledger", "--json").json
    assert found["left"] == 0
    assert found["epsilon"] == pytest.approx(2.2, abs=0.2)
    assert "belief" not in found
    assert "exceeded by releases made elsewhere" in sulq("ledger").out
    assert sulq("ask", "count", "--where", "age > 50").code == 4
    assert sulq("ask", "count", "--where", "smoker").code == 0


def test_outside_wants_a_reason_and_one_price(sulq):
    sulq("ask", "count")
    assert sulq("outside", "--credits", "4", "--yes").code == 2
    assert sulq("outside", "--reason", "r", "--yes").code == 2
    assert sulq("outside", "--credits", "1", "--epsilon", "1", "--reason", "r", "--yes").code == 2
    assert sulq("outside", "--credits", "many", "--reason", "r", "--yes").code == 2
