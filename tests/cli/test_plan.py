"""`sulq plan`: prices first; with --yes all or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sulq import mean
from sulq.cli.context import database_of, named

QUESTIONS = ("count where smoker", "mean age", "histogram city where smoker")


def test_a_plan_is_free_and_publishes_nothing(sulq):
    shown = sulq("plan", *QUESTIONS, "--credits", "10")
    assert shown.code == 0
    assert "together     10 credits" in shown.out
    assert "left after   10 credits" in shown.out
    assert "count where smoker" in shown.out and "±" in shown.out
    assert "--yes asks all of it" in shown.err
    assert not Path("people.ledger").exists()


def test_the_prices_as_data(sulq):
    found = sulq("plan", "people", *QUESTIONS, "--credits", "10", "--json").json
    assert [line["asked"] for line in found["questions"]] == list(QUESTIONS)
    assert sum(line["credits"] for line in found["questions"]) == pytest.approx(found["credits"])
    assert found["affordable"]
    assert found["questions"][0]["half_width"] > 0


def test_yes_asks_all_and_again_is_free(sulq):
    first = sulq("plan", *QUESTIONS, "--credits", "10", "--yes", "--key", "k", "--json").json
    assert [line["statistic"] for line in first["answers"]] == ["count", "mean", "histogram"]
    assert first["credits"] == pytest.approx(10)
    assert first["left"] == pytest.approx(10)
    assert abs(first["answers"][0]["value"] - 5000) < 500
    again = sulq("plan", *QUESTIONS, "--credits", "10", "--yes", "--key", "k", "--json").json
    assert again["credits"] == 0
    values = [[line["value"] for line in reply["answers"]] for reply in (first, again)]
    assert values[0] == values[1]
    free = sulq("plan", *QUESTIONS, "--credits", "10")
    assert "free" in free.out


def test_the_answers_as_a_table_and_their_receipts(sulq):
    shown = sulq("plan", *QUESTIONS, "--yes", "--receipts", "kept")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[0].split() == ["question", "value", "low", "high", "credits", "receipt"]
    assert any(line.strip().startswith("Oslo") for line in lines)
    assert len(Path("kept").read_text().splitlines()) == 3
    assert sulq("verify", "--receipts", "kept").code == 0


def test_what_does_not_fit_charges_nothing(sulq):
    assert "not affordable" in sulq("plan", *QUESTIONS, "--credits", "21").out
    refused = sulq("plan", *QUESTIONS, "--credits", "21", "--yes", "--json")
    assert refused.code == 4
    assert refused.json["credits_spent"] == 0
    assert sulq("ledger", "--json").json["entries"] == 0


def test_an_analyst_plans_within_the_share(sulq):
    sulq("grant", "ann", "5")
    assert sulq("plan", *QUESTIONS, "--credits", "6", "--yes", "--as", "ann").code == 4
    found = sulq("plan", *QUESTIONS, "--credits", "5", "--yes", "--as", "ann", "--json").json
    assert found["left"] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mean nobody"], "nobody"),
        (["count", "--credits", "0"], "above 0"),
        (["count", "--credits", "2", "--within", "3"], "not both"),
        (["count", "--key", "k"], "--yes"),
        (["people"], "name the questions"),
    ],
)
def test_what_is_wrong_is_said(sulq, words, said):
    reply = sulq("plan", *words)
    assert reply.code == 2
    assert said in reply.err


def test_the_ledger_lists_open_reservations(sulq):
    """Those of a process at work; the next opening ends what a dead one left."""
    sulq("ask", "count", "--where", "smoker")
    assert "reserved" not in sulq("ledger").out
    with database_of(named(Path("sulq.toml"), None), Path("people.ledger")) as database:
        with database.reserve(5) as reserved:
            reserved.ask(mean("age"))
            shown = sulq("ledger")
            assert "reserved" in shown.out and "owner" in shown.out
            (line,) = json.loads(sulq("ledger", "--json").out)["reservations"]
        assert (line["analyst"], line["credits"]) == ("owner", 5)
        assert line["left"] == pytest.approx(5 - 1.25)
    assert sulq("ledger", "--json").json["reservations"] == []


@pytest.mark.parametrize(
    "text",
    [
        "quantiles age 0.25 0.5 0.75 where smoker",
        "quantiles age 0.25, 0.5, .75 where smoker",
        "quantiles age --shares 0.25,0.5,0.75 where smoker",
        "quantiles age / 1 --shares=0.25,0.5,0.75 where smoker",
    ],
)
def test_quantiles_name_their_shares_in_the_line(text, sulq):
    found = sulq("plan", text, "--yes", "--json").json["answers"][0]
    assert found["statistic"] == "quantiles"
    assert found["value"] == sorted(found["value"])
    assert len(found["value"]) == 3


def test_quantiles_without_shares_say_how(sulq):
    refused = sulq("plan", "quantiles age")
    assert refused.code != 0
    assert "quantiles VALUE 0.25 0.5" in refused.err
