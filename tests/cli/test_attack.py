"""sulq attack: fictional rows, the owner's promise, lights that mean something."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

from sulq.attacks import suite
from sulq.attacks.result import SHARE, AttackResult
from sulq.attacks.suite import Attack
from sulq.cli.attack import CHART_ROWS, SIGMAS, standing
from sulq.errors import BudgetSpent
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.schema.promise import Promise


def attack(name: str, reached: float, bound: float = 0.6, note: str = "") -> Attack:
    def attempt(target):
        faced.append(target)
        return AttackResult(name, SHARE, reached, bound, 0.01, 100, Fraction(2), note)

    return Attack(name, f"what {name} tries", attempt, attempt)


def stopped(target):
    raise BudgetSpent("this costs 4 credits, 1 is left")


faced: list = []


@pytest.fixture
def planted(monkeypatch):
    faced.clear()
    green = attack("green", 0.5, note="a remark")
    amber = attack("amber", 0.9, 0.95)
    red = attack("red", 0.9)
    refused = Attack("refused", "what costs too much", stopped, stopped)
    monkeypatch.setattr(suite, "ATTACKS", (green, amber, red, refused))


def test_a_live_table_is_never_attacked(sulq):
    run = sulq("attack", "people")
    assert run.code == 2
    assert "never attacked" in run.err
    assert "sulq attack --sandbox people" in run.err
    assert "--epsilon 2" in sulq("attack", "--epsilon", "2").err


def test_green_ends_well_and_red_with_1(sulq, planted):
    fine = sulq("attack", "--sandbox", "people", "--only", "green,refused")
    assert fine.code == 0
    assert "light: green" in fine.out
    wrong = sulq("attack", "--sandbox", "people")
    assert wrong.code == 1
    assert "light: red" in wrong.out
    assert sulq("attack", "--sandbox", "people", "--only", "amber").code == 0


def test_the_table_says_what_was_reached_and_what_is_possible(sulq, planted):
    run = sulq("attack", "--sandbox", "people")
    heads, green, amber, red, refused, _ = run.out.splitlines()
    assert heads.split() == ["attack", "measure", "reached", "best", "possible", "light", "credits"]
    assert green.split()[-6:] == ["0.500", "±", "0.030", "0.600", "green", "2"]
    assert (amber.split()[-2], red.split()[-2]) == ("amber", "red")
    assert refused.split()[-4:] == ["-", "-", "none", "0"]
    assert "refused: this costs 4 credits" in run.err
    assert "green: a remark" in run.err
    assert run.err.splitlines()[-1].startswith("red: more was learned than the promise allows")


def test_it_takes_the_policys_promise_and_its_public_size(sulq, planted):
    run = sulq("attack", "--sandbox", "--only", "green", "--json").json
    assert run["promise"] == {
        "epsilon": "1",
        "delta": "1/1000000",
        "queries": 20,
        "noise": "gaussian",
        "neighbours": "replace",
    }
    assert (run["table"], run["rows"], run["fictional_rows"]) == ("people", 20_000, 1000)
    assert "1,000 fictional rows instead of 20,000. Nothing else is scaled" in run["notes"][0]
    assert (faced[0].rows, faced[0].promise.queries) == (1000, 20)
    assert run["findings"][0]["light"] == run["light"] == "green"


def test_a_policy_may_be_named_instead_of_a_table(sulq, planted):
    Path("sulq.toml").rename("other.toml")
    run = sulq("attack", "--sandbox", "other.toml", "--only", "green", "--json")
    assert run.json["table"] == "people"


def test_few_rows_are_taken_as_they_are(sulq, planted):
    run = sulq("attack", "--sandbox", "--only", "green", "--rows", "40", "--json").json
    assert (run["rows"], run["fictional_rows"], run["notes"]) == (40, 40, [])
    assert faced[0].rows == 40


@pytest.mark.parametrize("change", ["add-remove", "person", "no file"])
def test_a_private_number_of_rows_is_not_read(sulq, planted, change):
    policy = Path("sulq.toml")
    if change == "add-remove":
        told = policy.read_text().replace(
            "queries = 20}", 'queries = 20, neighbours = "add-remove"}'
        )
        policy.write_text(told)
    elif change == "person":
        unit = '[people]\nunit = {column = "person_id", max_rows = 3}\n'
        policy.write_text(policy.read_text().replace("[people]\n", unit))
    else:
        Path("people.parquet").unlink()
    run = sulq("attack", "--sandbox", "--only", "green", "--json").json
    assert (run["rows"], run["fictional_rows"]) == (None, 1000)
    assert any("--rows says how many yours has" in note for note in run["notes"])
    assert any("a person is one row" in note for note in run["notes"]) is (change == "person")


def test_nothing_real_is_opened(sulq, planted, state_directory, monkeypatch):
    """No ledger, no state, and of the file only its footer: the rows may be unreadable."""
    file = Path("people.parquet")
    footer = int.from_bytes(file.read_bytes()[-8:-4], "little") + 8
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(4)
        opened.write(b"\0" * (size - footer - 4))
    with pytest.raises(duckdb.Error):
        duckdb.sql("SELECT sum(age) FROM 'people.parquet'").fetchall()
    assert sulq("attack", "--sandbox", "--only", "green", "--json").json["rows"] == 20_000
    assert not Path("people.ledger").exists()
    assert list(state_directory.iterdir()) == []


def test_a_promise_of_ones_own_needs_no_policy(sulq, planted):
    Path("sulq.toml").unlink()
    words = ["--epsilon", "0.5", "--delta", "0", "--queries", "7", "--only", "green", "--json"]
    run = sulq("attack", "--sandbox", *words).json
    assert run["promise"]["noise"] == "laplace"
    assert (run["promise"]["queries"], run["table"], run["rows"]) == (7, None, None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "gren"], "did you mean 'green'"),
        (["--rows", "1"], "above 1"),
        (["people", "--epsilon", "1"], "not both"),
        (["--queries", "5"], "goes with --epsilon"),
        (["--plot", "x.gif"], ".png"),
        (["nobody"], "no table 'nobody'"),
    ],
)
def test_wrong_words_are_refused_before_anything_runs(sulq, planted, words, said):
    run = sulq("attack", "--sandbox", *words)
    assert run.code == 2
    assert said in run.err
    assert faced == []


def test_the_list_names_all_and_attacks_nothing(sulq, planted):
    run = sulq("attack", "--list")
    assert run.code == 0
    assert [line.split()[0] for line in run.out.splitlines()] == [
        "attack",
        "green",
        "amber",
        "red",
        "refused",
    ]
    assert sulq("attack", "--list", "--json").json["attacks"][0] == {
        "attack": "green",
        "tries": "what green tries",
    }
    assert faced == []


@pytest.mark.slow
def test_the_picture_shows_the_curve_the_dots_and_the_table(sulq, planted):
    run = sulq("attack", "--sandbox", "--only", "green", "--plot", "picture.svg", "--json")
    assert (run.code, run.json["plot"]) == (0, "picture.svg")
    drawn = Path("picture.svg").read_text("utf-8")
    assert "√n = 16" in drawn
    assert "20 credits spent as 256 questions" in drawn
    assert drawn.count('aria-roledescription="point"') == len(SIGMAS) + 1  # and this table


@pytest.mark.slow
def test_a_refusal_leaves_the_picture_without_the_table(sulq, planted, monkeypatch):
    monkeypatch.setattr(
        "sulq.attacks.reconstruction.reconstruction", lambda *_, **__: stopped(None)
    )
    run = sulq("attack", "--sandbox", "--only", "green", "--plot", "picture.svg")
    assert run.code == 0
    drawn = Path("picture.svg").read_text("utf-8")
    assert drawn.count('aria-roledescription="point"') == len(SIGMAS)


def test_the_axis_places_every_promise_by_what_it_hides():
    """T credits spent as n questions: Phi(mu/2) is then the same, whatever T. TB.1, S4.13"""
    few, many = (standing(Promise(1, "1e-6", queries)) for queries in (10, 10_000))
    assert few == pytest.approx(many, rel=1e-3)
    assert standing(Promise(1, 0, 10)) == pytest.approx(np.sqrt(2) * CHART_ROWS)
    mu = float(calibrate(Promise(1, "1e-6", 10)).mu_squared) ** 0.5
    assert few == pytest.approx(np.sqrt(CHART_ROWS) / mu, rel=1e-3)
