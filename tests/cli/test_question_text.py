"""quote and ask: answers with bars, prices and receipts; bad questions cost nothing."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sulq as package

OLD = ("--where", "age >= 65 AND smoker")


def test_count_has_value_bar_price_and_receipt(sulq):
    found = sulq("ask", "people", "count", *OLD, "--json").json
    assert abs(found["value"] - 1600) < 150  # the truth is 1600; sigma 18.9, eight of them
    assert found["low"] < found["value"] < found["high"]
    assert found["high"] - found["low"] == pytest.approx(75, abs=3)
    assert (found["credits"], found["left"]) == (1, 19)
    assert found["receipt"]["receipt"]["seq"] == found["receipt_number"]


def test_table_may_be_left_out_if_there_is_one(sulq):
    assert sulq("ask", "count", "--json").json["value"] == 20_000


def test_public_sizes_are_exact_and_free(sulq):
    found = sulq("ask", "count", "--where", "city = 'Oslo'", "--json").json
    assert (found["value"], found["low"], found["high"], found["credits"]) == (10_000,) * 3 + (0,)


def test_repeat_in_other_words_is_free_and_the_same(sulq):
    first = sulq("ask", "count", *OLD, "--json").json
    again = sulq("ask", "count", "--where", "smoker = TRUE AND NOT age < 65", "--json").json
    assert again["credits"] == 0
    assert again["value"] == first["value"]


def test_quote_tells_what_ask_charges_and_publishes_nothing(sulq):
    offer = sulq("quote", "mean", "income", "--where", "smoker", "--rows", "5000", "--json").json
    assert not Path("people.ledger").exists()
    paid = sulq("ask", "mean", "income", "--where", "smoker", "--json").json
    assert paid["credits"] == offer["credits"]
    assert offer["left_after"] == paid["left"]
    assert offer["half_width"] > 0


def test_within_and_credits_buy_precision(sulq):
    found = sulq("ask", "count", *OLD, "--within", "20", "--json").json
    assert found["credits"] > 3
    assert found["high"] - found["low"] <= 42
    four = sulq("quote", "count", "--where", "age < 3", "--credits", "4", "--json").json
    assert four["half_width"] == pytest.approx(18.5, abs=0.2)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("words", "cells", "head"),
    [
        (["histogram", "city"], 2, "city"),
        (["histogram", "city,smoker"], 4, "smoker"),
        (["histogram", "age", "--edges", "0,18,65,110"], 3, "0 to 18"),
        (["histogram", "age,city", "--edges", "age=0,50,110", "--other"], 9, "(other)"),
        (["histogram", "seen", "--edges", "2020-01-01,2024-01-01,2030-01-01"], 2, "2024-01-01"),
        (["cdf", "age", "--edges", "0,20,40"], 3, "age below"),
        (["cdf", "LEAST(age, income)", "--edges", "0,20,40"], 3, "below"),
        (["quantiles", "income / 2", "--shares", "0.25,0.5"], 2, "share"),
    ],
)
def test_vectors_are_tables(sulq, words, cells, head):
    plain = sulq("ask", *words)
    assert head in plain.out
    found = sulq("ask", *words, "--json").json
    flat = json.dumps(found["value"]).replace("[", "").replace("]", "").split(",")
    assert len(flat) == cells


@pytest.mark.parametrize("kind", ["total", "mean", "variance", "count"])
def test_scalars_print_plainly(sulq, kind):
    reply = sulq("ask", kind, "CLAMP(income, 0, 500)", "--where", "seen >= DATE '2021-01-01'")
    assert reply.code == 0
    for word in (kind, "95% interval", "cost", "left", "receipt"):
        assert word in reply.out
    assert "\x1b" not in reply.out


def test_analyst_pays_from_a_share(sulq):
    assert sulq("ask", "count", *OLD, "--as", "ann").code == 3
    granted = sulq("grant", "people", "ann", "2.5", "--json").json
    assert (granted["granted"], granted["left_to_grant"]) == (2.5, 17.5)
    assert sulq("ask", "count", *OLD, "--as", "ann", "--json").json["left"] == 1.5
    assert sulq("ask", "histogram", "age", "--edges", "0,9,110", "--as", "ann").code == 4


def test_grants_of_the_policy_are_given_once(sulq):
    with Path("sulq.toml").open("a") as file:
        file.write("grants.ann = 2\n")
    assert sulq("ask", "count", *OLD, "--as", "ann", "--json").json["left"] == 1
    assert sulq("ask", "count", "--where", "age < 9", "--as", "ann", "--json").json["left"] == 0


def test_key_gives_the_same_answer_twice(sulq):
    one = sulq("ask", "count", *OLD, "--key", "k", "--json").json
    two = sulq("ask", "count", *OLD, "--key", "k", "--json").json
    assert one["receipt"] == two["receipt"]
    assert sulq("ask", "count", "--key", "k", "--where", "smoker").code == 3


def test_budget_ends_with_code_4(sulq):
    assert sulq("ask", "count", *OLD, "--credits", "20").code == 0
    reply = sulq("ask", "count", "--where", "smoker")
    assert reply.code == 4
    assert reply.err.startswith("error: this costs 1 credit, 0 are left")
    assert reply.err.rstrip().endswith("(0 credits spent)")
    assert sulq("ask", "count", *OLD, "--json").json["credits"] == 0


BAD = [
    ([], "say which statistic"),
    (["people"], "say which statistic"),
    (["nonsense", "age"], "no statistic 'nonsense'; there are count"),
    (["median", "age"], "write quantiles VALUE --shares 0.5; there are count"),
    (["sum", "age"], "write total VALUE"),
    (["AVG", "age"], "write mean VALUE"),
    (["people", "average", "age"], "write mean VALUE"),
    (["peopel", "count"], "no table 'peopel'; did you mean 'people'? the policy has ['people']"),
    (["visits", "count"], "no table 'visits'; the policy has ['people']"),
    (["count", "--where", "seen >= '2024-01-01'"], "write DATE '2024-01-01' in SQL"),
    (["count", "--where", "seen IN ('2024-01-01')"], "write DATE '2024-01-01' in SQL"),
    (["count", "--where", 'city = "Oslo"'], "a text takes single quotes: 'Oslo'"),
    (["mean"], "want mean VALUE, got no value"),
    (["mean", "age", "income"], "got 2 values"),
    (["mean", "salary"], "no column 'salary'; the schema has"),
    (["mean", "person_id"], "no column 'person_id'"),
    (["mean", "city"], "city"),
    (["mean", "income / age"], "0"),
    (["mean", "age +"], "something is missing"),
    (["mean", "age > 3"], "is a condition"),
    (["count", "--where", "age"], "age"),
    (["count", "--where", "SELECT 1"], "cannot be read"),
    (["count", "--where", "1; DROP TABLE people"], "semicolon"),
    (["count", "--where", "smoker", "--within", "0"], "above 0"),
    (["count", "--where", "smoker", "--credits", "zero"], "must be a number"),
    (["count", "--where", "smoker", "--credits", "inf"], "finite"),
    (["count", "--where", "smoker", "--credits", "-1"], "above 0"),
    (["count", "--where", "smoker", "--credits", "1", "--within", "1"], "not both"),
    (["count", "--where", "smoker", "--confidence", "1"], "between 0 and 1"),
    (["mean", "age", "--rows", "0"], "above 0"),
    (["count", "--edges", "1,2"], "count takes no --edges"),
    (["mean", "age", "--shares", "0.5"], "mean takes no --shares"),
    (["cdf", "age", "--other"], "cdf takes no --other"),
    (["quantiles", "age"], "no --shares"),
    (["quantiles", "age", "--shares", "half"], "a share must be a number"),
    (["quantiles", "age", "--shares", "2"], "in [0, 1]"),
    (["histogram", "age", "--edges", "3,x"], "an edge must be a number"),
    (["histogram", "age", "--edges", "9,3"], "edges"),
    (["histogram", "age"], "give `edges`, such as 0, 18 and 65, to group by it"),
    (["histogram", "age,city", "--edges", "0,9"], "with several columns"),
    (["histogram", "city", "--edges", "age=0,9"], "not among"),
    (["histogram", "nothing"], "no column 'nothing'"),
]


@pytest.mark.parametrize("verb", ["ask", "quote"])
def test_bad_question_is_one_line_and_free(sulq, verb):
    for words, reason in BAD:
        reply = sulq(verb, *words)
        assert reply.code == 2, words
        last = reply.err.rstrip().splitlines()[-1]
        if words:
            assert last.startswith("error: "), words
            assert reason in last
            assert last.endswith("(0 credits spent)"), words
        assert reply.out == "", words
        assert "Traceback" not in reply.err


def test_error_is_data_too_with_json(sulq):
    reply = sulq("ask", "mean", "salary", "--json")
    assert reply.json["kind"] == "InvalidQuery"
    assert reply.json["credits_spent"] == 0
    assert "salary" in reply.json["error"]


def test_receipts_that_cannot_be_written_are_found_before_the_charge(sulq):
    reply = sulq("ask", "count", *OLD, "--receipts", "none/r.jsonl", "--json")
    assert (reply.code, reply.json["credits_spent"]) == (2, 0)
    assert sulq("ledger", "--json").json["spent"] == 0


def test_what_fails_after_the_charge_never_says_nothing_was_spent(sulq):
    reply = sulq("ask", "count", *OLD, "--receipts", "/dev/full", "--json")
    assert (reply.code, reply.json["credits_spent"]) == (1, 1)
    assert "the answer is stored and stays free: ask again (1 credit spent)" in reply.err
    assert sulq("ask", "count", *OLD, "--json").json["credits"] == 0


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """`sulq` as a shell runs it; the exit code is that of sulq."""
    source = str(Path(__file__).parents[2] / "src")
    return subprocess.run(
        [
            "bash",
            "-c",
            command.replace("sulq ", f"{sys.executable} -m sulq ", 1) + "; exit ${PIPESTATUS[0]}",
        ],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_full_disk_on_stdout_is_told_with_the_price(sulq):
    sulq("publish", "--yes")
    run = shell("sulq ask count --where smoker > /dev/full")
    assert run.returncode == 1
    assert "stays free: ask again (1 credit spent)" in run.stderr
    assert "0 credits" not in run.stderr
    assert "Traceback" not in run.stderr


def test_closed_pipe_is_silent(sulq):
    sulq("ask", "count", *OLD)
    for words in ("ledger --json", "check"):
        run = shell(f"sulq {words} | true")
        assert run.stderr == ""  # silent wherever it breaks: in ours (141) or in click's hands (1)
        assert run.returncode in (0, 1, 141)


def test_version_is_printed(sulq):
    assert sulq("--version").out == f"sulq {package.__version__}\n"
    assert package.__version__[0].isdigit()


def test_columns_are_the_public_facts(sulq):
    found = {line["name"]: line for line in sulq("columns", "--json").json["columns"]}
    assert set(found) == {"age", "income", "smoker", "city", "seen"}
    assert (found["age"]["kind"], found["age"]["low"], found["age"]["high"]) == ("number", 0, 110)
    assert (found["seen"]["kind"], found["seen"]["low"]) == ("date", "2020-01-01")
    assert (found["city"]["values"], found["city"]["public"]) == (["Oslo", "Paris"], True)
    assert found["smoker"]["public"] is False
    out = sulq("columns", "people").out
    for words in ("0 to 110, step 1", "Oslo, Paris", "2020-01-01 to 2030-01-01", "NULL"):
        assert words in out
    assert not Path("people.ledger").exists()


def test_no_column_is_public_where_persons_are_protected(sulq):
    with Path("sulq.toml").open("a") as file:
        file.write('unit = {column = "person_id", max_rows = 2}\n')
    assert not any(line["public"] for line in sulq("columns", "--json").json["columns"])


def test_edges_that_leave_rows_out_are_noted(sulq):
    cut = ("histogram", "age", "--edges", "0,18,65")
    assert "rows outside the edges are in no cell; add --other" in sulq("ask", *cut).err
    assert "add --other" in sulq("quote", *cut, "--json").json["note"]
    assert "no cell" not in sulq("ask", *cut, "--other").err
    assert "no cell" not in sulq("ask", "histogram", "age", "--edges", "0,18,110").err
    assert "not counted" in sulq("ask", "cdf", "seen", "--edges", "2021-01-01,2022-01-01").err


def test_answers_about_days_are_days(sulq):
    words = ("mean", "seen", "--where", "smoker")
    found = sulq("ask", *words, "--json").json
    day = datetime.date(1970, 1, 1) + datetime.timedelta(days=round(found["value"]))
    assert found["date"]["value"] == day.isoformat()
    assert f"mean           {day}" in sulq("ask", *words).out
    found = sulq("ask", "quantiles", "seen", "--shares", "0.5,0.9", "--json").json
    assert [day[:2] for day in found["date"]["high"]] == ["20", "20"]
    out = sulq("ask", "quantiles", "seen", "--shares", "0.5,0.9").out
    assert found["date"]["low"][0] in out
    assert "date" not in sulq("ask", "variance", "seen", "--json").json


def test_persons_are_counted_on_a_table_of_persons(sulq):
    assert "knows no persons" in sulq("quote", "persons").err
    assert sulq("quote", "persons", "age").code == 2
    policy = Path("sulq.toml")
    unit = 'unit = {column = "person_id", max_rows = 3}\ncolumns.age'
    policy.write_text(policy.read_text().replace("columns.age", unit, 1), "utf-8")
    found = sulq("ask", "persons", "--where", "smoker", "--json").json
    assert abs(found["value"] - 5_000) < 150  # sigma 18.9, eight of them
    assert found["credits"] == 1
    assert sulq("quote", "count", "--where", "smoker", "--json").json["credits"] == 9


@pytest.mark.parametrize(
    "options",
    [
        ("--credits", "0"),
        ("--within", "0"),
        ("--within", "5", "--credits", "1"),
        ("--confidence", "1"),
        ("--rows", "0"),
    ],
)
def test_wrong_options_are_found_before_the_ledger_is_opened(unpublished, options):
    for words in (("ask", "count", "--where", "smoker"), ("plan", "count where smoker")):
        reply = unpublished(*words, *options)
        assert reply.code == 2 and options[0] in reply.err
    assert not list(Path().glob("*.ledger"))
