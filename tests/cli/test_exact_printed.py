"""sulq explain-exact: printed and corrected checks, and what the certificate says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

SMOKERS = "count --where smoker"
PARIS = "count --where \"smoker AND city = 'Paris'\""


def checks_of(found):
    return {check["name"].split(":")[0]: check for check in found["checks"]}


def test_one_question_on_the_owners_file(sulq):
    run = sulq("explain-exact", SMOKERS, "--least", "smoker=0.05", "--json")
    assert run.code == 0
    assert "never to be shown to analysts" in run.err
    found = run.json
    assert "never to be shown to analysts" in found["note"]
    theorem = checks_of(found)["Theorem 2"]
    assert theorem["printed"] == pytest.approx(20_000 * 0.25 * 0.75)
    assert theorem["passes"]
    assert found["certificate"]["certified"]
    assert found["certificate"]["guarantee"] == "noiseless, under assumptions"
    assert found["certificate"]["factor"] == 2
    assert not Path("people.ledger").exists()  # nothing is published or spent


def test_a_batch_as_a_table(sulq):
    run = sulq("explain-exact", "people", SMOKERS, "total age", SMOKERS, "--reasons")
    assert run.code == 0
    lines = [line for line in run.out.splitlines() if line.startswith(SMOKERS)]
    assert [line.split()[-1] for line in lines] == ["answers", "denies"]  # the duplicate
    assert "passing is not safe" in run.out
    assert "not asked" in run.out
    assert "Theorem 5" in run.out


def test_a_refusal_is_told(sulq):
    """Only the known rows differ: more of them than there are coins."""
    words = ("explain-exact", SMOKERS, "--least", "smoker=0.05", "--known-rows", "20000")
    found = sulq(*words, "--json").json
    assert not found["certificate"]["certified"]
    assert "ask with noise instead" in found["certificate"]["refusal"]
    assert checks_of(found)["Theorem 2"]["passes"]


def test_public_columns_are_not_uncertain(sulq):
    """Half the smokers question is public: ours knows, second moments do not."""
    found = sulq("explain-exact", "count --where \"city = 'Paris'\"", "--json").json
    assert checks_of(found)["Theorem 2"]["passes"]
    assert found["certificate"] is None
    run = sulq("explain-exact", PARIS, "--least", "city=0.3")
    assert run.code == 2
    assert "public" in run.err


def test_fictional_people(sulq):
    Path("sulq.toml").unlink()
    run = sulq("explain-exact", "--fictional", "2000", SMOKERS, "--least", "smoker=0.05", "--json")
    assert run.code == 0
    assert run.json["note"] == "of fictional people"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "delta"), [("sparse", 4.60864e-06), ("digit", 1), ("public", 1), ("span", 1)]
)
def test_counterexamples(sulq, name, delta):
    run = sulq("explain-exact", "--counterexample", name)
    assert run.code == 0
    assert "passes at epsilon 1" in run.out
    assert "refused" in run.out
    found = sulq("explain-exact", "--counterexample", name, "--json").json
    assert found["printed"]["passes"]
    assert found["refused"]
    assert found["true_delta"] == pytest.approx(delta, rel=1e-5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "which questions"),
        (["people"], "which questions"),
        (["--counterexample", "fifth"], "sparse, digit, public, span"),
        (["--counterexample", "span", SMOKERS], "brings its own"),
        ([SMOKERS, "--least", "smoker"], "column=share"),
        ([SMOKERS, "--least", "smoker=much"], "number above 0"),
        ([SMOKERS, "--delta", "2"], "between 0 and 1"),
        (["count --where smoker more"], "not expected here"),
        (["count 'age"], "is not closed"),
        (["histogram city"], "each group by itself"),
        (["sum age"], "write total"),
        ([SMOKERS, "--fictional", "1"], "people"),
    ],
)
def test_wrong_words_are_refused(sulq, words, said):
    run = sulq("explain-exact", *words)
    assert run.code == 2
    assert said in run.err


def test_persons_are_not_rows(sulq):
    text = Path("sulq.toml").read_text("utf-8")
    Path("sulq.toml").write_text(text + 'unit = {column = "person_id", max_rows = 2}\n', "utf-8")
    run = sulq("explain-exact", SMOKERS)
    assert run.code == 2
    assert "persons" in run.err


def test_errors_as_json(sulq):
    run = sulq("explain-exact", "--json")
    assert json.loads(run.out)["kind"] == "InvalidQuery"
