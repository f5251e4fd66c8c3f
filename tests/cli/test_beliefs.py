"""sulq beliefs: the promise as what anyone may come to believe."""

from __future__ import annotations

import math

import pytest


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
