"""`sulq suggest`: a price first, then proposals to use at once."""

from __future__ import annotations

from pathlib import Path


def test_the_price_is_free_and_what_is_charged(sulq):
    offer = sulq("suggest", "people", "income", "--quote", "--json").json
    assert offer == {"table": "people", "credits": 2, "questions": 1}
    assert not Path("people.ledger").exists()
    found = sulq("suggest", "people", "income", "--json").json
    assert (found["credits"], found["left"]) == (2, 18)
    [income] = found["bounds"]
    assert income["declared"] == [0, 1000]
    assert found["max_rows"] is None and found["clips"] == []


def test_proposals_are_shown_with_lines_to_use(sulq):
    reply = sulq("suggest", "people", "age", "--keep", "0.9")
    assert reply.code == 0
    assert "age" in reply.out and "2 credits" in reply.out
    [line] = [each for each in reply.err.splitlines() if each.startswith("sulq.toml: columns.age")]
    assert line.endswith("], step = 1}")  # what else was declared stays
    assert "col('age').clip(" in reply.err
    assert "2 credits, 1 questions" in sulq("suggest", "income", "--quote").out


def test_refusals_cost_nothing(sulq):
    assert sulq("suggest", "people", "city").code == 2
    assert sulq("suggest", "people", "--keep", "3").code == 2
    assert sulq("suggest", "people", "--credits", "1000").code == 3
    assert sulq("ledger", "--json").json["spent"] == 0
