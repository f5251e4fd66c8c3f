"""sulq beliefs: the promise as what anyone may come to believe."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest

from sulq import Promise
from sulq.beliefs.confidence import worst
from sulq.cli.beliefs import NOTHING, PROMISED, SPENT, picture


def test_a_table_of_priors_and_the_most_moved_one(sulq):
    run = sulq("beliefs", "--epsilon", "1", "--delta", "0")
    assert run.code == 0
    assert "24.5%" in run.err  # tanh(1/4), S2.4
    assert "at most after" in run.out


def test_json_matches_bayes_rule(sulq):
    found = sulq("beliefs", "--epsilon", "1", "--delta", "0", "--prior", "0.4", "--json").json
    (belief,) = found["beliefs"]
    odds = 0.4 / 0.6 * math.e
    assert belief["posterior"] == pytest.approx(odds / (1 + odds))
    assert "believed 40 %" in belief["text"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--prior", "1.5"], "between 0 and 1"),
        (["--about", "presence"], "add-remove"),
        (["--about", "luck"], "value"),
    ],
)
def test_wrong_words_are_refused(sulq, words, said):
    run = sulq("beliefs", "--epsilon", "1", *words)
    assert run.code == 2
    assert said in run.err


def test_the_picture_is_drawn_and_named(sulq):
    run = sulq("beliefs", "--epsilon", "1", "--delta", "0", "--plot", "beliefs.png")
    assert run.code == 0
    assert Path("beliefs.png").read_bytes().startswith(b"\x89PNG")
    assert "drew beliefs.png" in run.err
    assert sulq("beliefs", "--epsilon", "1", "--plot", "beliefs.pdf").code == 2
    assert not Path("beliefs.pdf").exists()


def test_the_picture_shows_promise_diagonal_and_what_is_spent():
    told = picture(Promise(1, "1e-6", 20), spent=Fraction(5)).to_dict()
    points = told["layer"][0]["data"]["values"]
    lines = {line: [p for p in points if p["line"] == line] for line in (PROMISED, SPENT, NOTHING)}
    assert [(p["before"], p["after"]) for p in lines[NOTHING]] == [(0, 0), (1, 1)]
    pairs = list(zip(lines[PROMISED], lines[SPENT], strict=True))
    assert len(pairs) > 90
    for promised, so_far in pairs[1:-1]:
        assert promised["before"] == so_far["before"] < so_far["after"] < promised["after"]
    unpublished = picture(Promise(1)).to_dict()["layer"][0]["data"]["values"]
    assert {p["line"] for p in unpublished} == {PROMISED, NOTHING}


def test_a_published_table_says_what_is_spent_and_marks_it(sulq):
    before = sulq("beliefs", "--json").json
    assert before["so_far_indicative"] is None
    assert not Path("people.ledger").exists()  # looking publishes nothing
    assert sulq("ask", "count", "--where", "age < 30").code == 0
    run = sulq("beliefs", "--prior", "0.4")
    assert "so far (indicative)" in run.out
    assert "after what was said so far (indicative)" in run.err
    (promised,), (so_far,) = (
        sulq("beliefs", "--prior", "0.4", "--json").json[key]
        for key in ("beliefs", "so_far_indicative")
    )
    assert 0.4 < so_far["posterior"] < promised["posterior"]


def test_the_promise_of_a_published_table_is_the_ledgers(sulq):
    """Editing the policy afterwards changes nothing about what was promised."""
    sulq("ask", "count")
    said = sulq("beliefs", "--json").json["change"]
    policy = Path("sulq.toml")
    policy.write_text(policy.read_text("utf-8").replace("epsilon = 1", "epsilon = 0.1"), "utf-8")
    assert sulq("beliefs", "--json").json["change"] == said


def test_check_says_it_to_a_person(sulq):
    sentence = str(worst(Promise(1, "1e-6", 20), 0.4))
    assert sentence in sulq("check").out.replace("\n", " ")
    belief = sulq("check", "--json").json["belief"]
    assert belief["text"] == sentence
    assert belief["prior"] == 0.4
    assert 0.70 < belief["posterior"] < 0.71
