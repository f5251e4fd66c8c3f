"""SELECT on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

TEXT = "SELECT city, COUNT(*) AS n, AVG(income) AS income FROM people WHERE smoker GROUP BY city"


def test_select_has_values_bars_price_and_receipt(sulq):
    found = sulq("ask", TEXT, "--json").json
    assert [row["city"] for row in found["rows"]] == ["Oslo", "Paris", None]
    for row, truth in zip(found["rows"], (5000, 0, 0), strict=True):
        assert abs(row["n"] - truth) < 400  # sigma 18.9, twenty of them
        assert row["n_low"] <= max(row["n"], 0) <= row["n_high"] or row["n"] < 0
    assert found["credits"] == 2.25
    assert found["left"] == 17.75
    assert len(found["receipt_numbers"]) == 1


def test_select_is_drawn_as_a_table(sulq):
    reply = sulq("ask", TEXT)
    assert reply.code == 0
    for word in ("city", "income", "Oslo", "NULL", "2.25 credits", "receipt"):
        assert word in reply.out


def test_quote_is_free_and_agrees(sulq):
    sulq("ask", "count", "--where", "age < 3")
    found = sulq("quote", TEXT, "--json").json
    assert (found["credits"], found["questions"], found["affordable"]) == (2.25, 1, True)
    assert found["half_width"]["n"] > 0
    text = sulq("quote", TEXT)
    assert "left after" in text.out
    assert "question 1" in text.err


def test_explain_shows_the_questions(sulq):
    reply = sulq("ask", "EXPLAIN " + TEXT)
    assert "question 1" in reply.out
    assert "asked together or not at all" in reply.out


def test_table_may_stand_first_and_quotes_be_left_out(sulq):
    words = ["SELECT", "COUNT(*)", "FROM", "people", "WHERE", "smoker"]
    assert sulq("ask", "people", " ".join(words), "--json").json["credits"] == 1
    assert sulq("ask", *words, "--json").json["credits"] == 0


def test_lookup_is_a_file(sulq):
    Path("regions.csv").write_text("key,name,weight\nOslo,North,1\nParis,South,2\n", "utf-8")
    text = (
        "SELECT r.name, SUM(r.weight) AS w FROM people JOIN regions r ON city = key GROUP BY r.name"
    )
    found = sulq("ask", text, "--lookup", "regions=regions.csv", "--json").json
    assert [row["name"] for row in found["rows"]] == ["North", "South"]
    assert [row["w"] for row in found["rows"]] == [10_000, 20_000]  # city is public


def test_receipts_are_appended(sulq):
    sulq("ask", TEXT, "--receipts", "r.jsonl")
    assert len(Path("r.jsonl").read_text("utf-8").splitlines()) == 1


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["SELECT COUNT(*) FROM persons"], "no table 'persons'"),
        (["SELECT * FROM people"], "rows are never shown"),
        (["SELECT COUNT(*) FROM people", "--where", "smoker"], "takes no --where"),
        (["SELECT COUNT(*) FROM people", "--exact"], "takes no --exact"),
        ([TEXT, "--lookup", "regions"], "NAME=FILE.csv"),
        ([TEXT, "--lookup", "regions=missing.csv"], "there is no file 'missing.csv'"),
        ([TEXT, "--lookup", "regions=."], "cannot be read as CSV"),
        (['SELECT COUNT(*) FROM people WHERE city = "Oslo"'], "single quotes"),
        (["SELECT COUNT(*) FROM people WHERE smoker WITHIN 0.1"], "this costs"),
    ],
)
def test_refusals_cost_nothing(words, reason, sulq):
    reply = sulq("ask", *words)
    assert reply.code != 0
    assert reason in reply.err
    assert "0 credits spent" in reply.err
