"""init, check, explain-noise, grant, recover: before and after a table is published."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from tests.cli.conftest import POLICY

from sulq.policy import read_policy
from sulq.server.auth.tokens import Access


def test_init_writes_types_and_no_values(sulq):
    reply = sulq("init", "people.parquet", "-o", "new.toml")
    assert reply.code == 0
    assert reply.out.strip() == "new.toml"
    text = Path("new.toml").read_text("utf-8")
    assert 'columns.age = {number = ["?", "?"], step = 1}' in text
    assert 'columns.city = {category = ["?"]}' in text
    for value in ("Oslo", "Paris", "99", "999", "2020", "2028"):
        assert value not in text + reply.out + reply.err


def test_unconfirmed_policy_is_refused_everywhere(sulq):
    sulq("init", "people.parquet", "-o", "new.toml", "--from-data")
    assert '["Oslo", "Paris"], proposed = true' in Path("new.toml").read_text("utf-8")
    checked = sulq("check", "--policy", "new.toml", "--json")
    assert checked.code == 2
    assert set(checked.json["not_askable_yet"]) == {"age", "income", "city", "seen"}
    for verb in ("ask", "quote"):
        reply = sulq(verb, "count", "--policy", "new.toml")
        assert (reply.code, "is not ready" in reply.err) == (2, True)
    assert not Path("people.ledger").exists()
    drafted = Path("new.toml").read_text("utf-8")
    Path("new.toml").write_text(drafted.replace(", proposed = true", ""), "utf-8")
    reply = sulq("check", "--policy", "new.toml", "--json")  # age is 0 to 99 there, as in the file
    assert (reply.code, reply.json["columns"][0]["marks"]) == (2, ["proposed"])
    Path("new.toml").write_text(drafted.replace("proposed = true", "proposed = false"), "utf-8")
    assert sulq("check", "--policy", "new.toml").code == 0


def test_grants_beyond_the_promise_publish_nothing(sulq):
    text = Path("sulq.toml").read_text("utf-8")
    Path("sulq.toml").write_text(text + "grants.ann = 15\ngrants.zoe = 6\n", "utf-8")
    for words in (("check",), ("publish", "--yes")):
        reply = sulq(*words)
        assert (reply.code, "grants.zoe = 6 is more than the 5 credits" in reply.err) == (2, True)
        assert not Path("people.ledger").exists()
    Path("sulq.toml").write_text(text + "grants.ann = 15\n", "utf-8")
    assert (sulq("check").code, sulq("ask", "count").code) == (0, 0)
    sulq("revoke", "ann")
    Path("sulq.toml").write_text(text + "grants.ann = 15\ngrants.zoe = 6\n", "utf-8")
    assert (sulq("check").code, sulq("ask", "count").code) == (0, 0)  # what was given came back


def test_check_compares_a_published_table_with_its_policy(sulq):
    sulq("ask", "count")
    text = Path("sulq.toml").read_text("utf-8")
    assert sulq("check", "--json").json["ledger"] == {"notes": [], "refused": None}
    for old, new, said in (
        ("epsilon = 1", "epsilon = 2", "epsilon: 1 there, 2 here): `sulq amend` records it"),
        ("epsilon = 1", "epsilon = 0.5", "cannot be amended"),
    ):
        Path("sulq.toml").write_text(text.replace(old, new), "utf-8")
        reply = sulq("check")
        assert (reply.code, said in reply.out) == (2, True), reply.out
        assert sulq("ask", "count").code == 3
    Path("sulq.toml").write_text(text.replace("columns.age", "version_budget = 7\ncolumns.age", 1))
    assert "the present one may spend all that is left" in sulq("check").out
    Path("sulq.toml").write_text(text, "utf-8")
    sulq("close", "--yes", "--reason", "done")
    reply = sulq("check")
    assert (reply.code, "closed for good" in reply.out) == (0, True)
    duckdb.sql("COPY (SELECT * FROM 'people.parquet' LIMIT 9) TO 'few.parquet'")
    Path("few.parquet").replace("people.parquet")
    assert "is not what was published" in sulq("check").out


def test_check_without_a_table_looks_at_all_and_a_sick_one_stops_no_other(sulq):
    farm = POLICY.replace("[people]", "[farm]").replace("people.parquet", "gone.parquet")
    town = POLICY.replace("[people]", "[town]\napart = true")
    Path("sulq.toml").write_text(farm + POLICY + town, "utf-8")
    reply = sulq("check", "--json")
    assert (reply.code, reply.json["ready"]) == (2, False)
    tables = reply.json["tables"]
    assert "no file 'gone.parquet'" in tables["farm"]["error"]
    assert (tables["people"]["ready"], tables["town"]["ready"]) == (False, True)
    assert "people in people and in farm lose epsilon 2" in tables["people"]["faults"][0]
    assert "error: farm: no file" in reply.err
    out = sulq("check").out
    assert "town: ready to publish" in out
    assert "people is not ready to publish" in out
    assert sulq("check", "town").code == 0


def test_check_says_first_what_a_board_understands_and_the_verdict_last(sulq):
    lines = sulq("check").out.splitlines()
    assert lines[0] == "people: 40 % becomes at most 65 %"
    assert lines[1].startswith("someone who knew everyone else's record and believed 40 %")
    assert lines[-1] == "people: ready to publish, 20,000 rows"
    assert any("one ROW: a person with several rows" in line for line in lines)
    assert any(line.startswith("public, exact and free for everybody   city") for line in lines)
    assert any(line.split() == ["hidden", "person_id"] for line in lines)


def test_init_never_overwrites(sulq):
    reply = sulq("init", "people.parquet")
    assert (reply.code, "not overwritten" in reply.err) == (2, True)
    assert Path("sulq.toml").read_text("utf-8") == POLICY
    # refused before the file is read: there is none
    assert "has a table 'people' already" in sulq("init", "nowhere/people.parquet").err
    Path("broken.toml").write_text("[people")
    assert "is not valid TOML" in sulq("init", "nowhere.csv", "-o", "broken.toml").err


def test_init_adds_a_second_table_and_touches_nothing(sulq):
    with Path("sulq.toml").open("ab") as file:
        file.write(b"# the end, without a line break")
    before = Path("sulq.toml").read_bytes()
    assert sulq("init", "people.parquet", "--name", "again").code == 0
    after = Path("sulq.toml").read_bytes()
    assert after.startswith(before + b"\n\n[again]\n")
    assert after.endswith(b"\n")
    assert set(read_policy("sulq.toml")) == {"people", "again"}


def test_init_says_in_the_file_what_its_lines_mean(sulq):
    sulq("init", "people.parquet", "-o", "new.toml")
    text = Path("new.toml").read_text("utf-8")
    for word in ("step = 1", "public = true", "[2000-01-01, 2030-12-31]", "max_rows", "sulq check"):
        assert any(word in line for line in text.splitlines() if line.startswith("#"))


CENSUS = "age, work, sex, over\n39, State-gov, Male, 0\n50, ?, Female, 1\n38, Private, Male, 0\n"


def test_init_reads_the_census_file_and_check_reads_it_again(sulq):
    Path("census.csv").write_text(CENSUS)
    assert sulq("init", "census.csv", "-o", "c.toml").code == 0
    table = read_policy("c.toml")["census"]
    assert table.reading.rules == {"delimiter": ", ", "missing": ("?",)}
    assert [column.name for column in table.columns] == ["age", "work", "sex", "over"]
    text = Path("c.toml").read_text("utf-8").replace('number = ["?", "?"]', "number = [0, 120]")
    work, sex = '["State-gov", "Private"]', '["Male", "Female"]'
    text = text.replace('work = {category = ["?"]', f"work = {{category = {work}")
    Path("c.toml").write_text(text.replace('sex = {category = ["?"]', f"sex = {{category = {sex}"))
    assert "census" in sulq("check", "--policy", "c.toml").out


@pytest.mark.parametrize("command", ["init", "check"])
def test_a_line_that_cannot_be_read_is_told_by_its_number(sulq, command):
    Path("t.csv").write_text("a,b\n1,2\n3,secret-4711,5\n")
    Path("t.toml").write_text(
        '[t]\nsource = "t.csv"\nledger = "t.ledger"\npromise = {epsilon = 1}\n'
        "columns.a = {number = [0, 9]}\n"
    )
    words = {"init": ("init", "t.csv", "-o", "u.toml"), "check": ("check", "--policy", "t.toml")}
    reply = sulq(*words[command])
    assert reply.code != 0
    assert "t.csv: line 3 has more than the 2 fields of line 1" in reply.err + reply.out
    assert "secret-4711" not in reply.err + reply.out


def test_init_names_the_columns_of_a_file_without_a_header(sulq):
    Path("bare.data").write_text("39;State-gov\n50;Private\n38;Private\n")
    sulq("init", "bare.data", "-o", "a.toml")
    assert 'names = ["column_1", "column_2"]' in Path("a.toml").read_text("utf-8")
    sulq("init", "bare.data", "-o", "b.toml", "--names", "age,work")
    assert read_policy("b.toml")["bare"].reading.rules == {
        "delimiter": ";",
        "header": False,
        "names": ("age", "work"),
    }


def test_source_is_relative_to_the_policy(sulq):
    Path("deep").mkdir()
    sulq("init", "people.parquet", "-o", "deep/sulq.toml", "--name", "folk")
    text = Path("deep/sulq.toml").read_text("utf-8")
    assert text.startswith('[folk]\nsource = "../people.parquet"\n')
    assert read_policy("deep/sulq.toml")["folk"].ledger == "folk.ledger"


def test_check_sizes_the_promise_and_publishes_nothing(sulq):
    found = sulq("check", "--json").json
    assert found["ready"] is True
    assert found["rows"] == 20_000
    assert found["sigma_of_a_count"] == pytest.approx(18.894, abs=0.01)  # sqrt(20 x 17.8479)
    assert found["bar_of_a_count"] == pytest.approx(37.03, abs=0.02)
    assert found["bar_of_a_mean"]["20000"] == pytest.approx(37.03 / 20_000, rel=1e-3)
    assert found["sampling_error"] == pytest.approx(70.71, abs=0.01)  # sqrt(n / 4)
    assert found["noise_below_sampling_error"] is True
    assert found["too_small"] is False
    assert not Path("people.ledger").exists()


def test_golden_sizing_table(sulq):
    """sigma and bar of one count at epsilon 1, delta 1e-6: T = 100, 1,000, 10,000."""
    text = POLICY.replace("queries = 20", "queries = 1000")
    Path("sulq.toml").write_text(text, "utf-8")
    lines = [line.split() for line in sulq("check").out.splitlines() if "±" in line]
    table = {line[0]: line for line in lines if line[0][0].isdigit()}
    assert table["100"][1:4] == ["42.25", "±", "82.81"]
    assert table["1,000"][1:5] == ["(yours)", "133.6", "±", "261.9"]
    assert table["10,000"][1:4] == ["422.5", "±", "828.1"]


def test_check_offers_fewer_questions_to_a_small_table(sulq):
    Path("sulq.toml").write_text(POLICY.replace("queries = 20", "queries = 10000"), "utf-8")
    plain = sulq("check").out
    assert "WARNING: 20,000 rows are few" in plain
    assert "not less privacy" in plain
    found = sulq("check", "--json").json
    assert found["too_small"] is True
    fewer = POLICY.replace("queries = 20", f"queries = {found['suggested_queries']}")
    Path("sulq.toml").write_text(fewer, "utf-8")
    assert sulq("check", "--json").json["too_small"] is False


def test_size_is_private_under_add_remove(sulq):
    text = POLICY.replace("queries = 20", 'queries = 20, neighbours = "add-remove"')
    Path("sulq.toml").write_text(text, "utf-8")
    reply = sulq("check", "--json")
    assert (reply.json["rows"], reply.json["sampling_error"]) == (None, None)
    out = sulq("check").out
    assert "how many rows there are is private here (add-remove)" in out
    assert "n=20,000" not in out  # nothing is reckoned with it; counts are for the owner's eyes


def test_declared_type_that_the_file_lacks_is_found_by_check(sulq):
    Path("sulq.toml").write_text(POLICY.replace("{flag = true}", '{category = ["a"]}'), "utf-8")
    reply = sulq("check")
    assert (reply.code, "'smoker' is declared" in reply.err) == (2, True)


def test_explain_noise_has_the_golden_variances(sulq):
    rows = sulq("explain-noise", "--queries", "100", "--json").json
    by_name = {row["name"]: row["variance"] for row in rows}
    assert by_name["Blum et al. 2005, Theorem 1, as printed"] == pytest.approx(2763.102112)
    assert by_name["analytic Gaussian"] == pytest.approx(1784.791172, rel=1e-6)
    assert "analytic Gaussian" in sulq("explain-noise", "--queries", "100").out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["init", "none.parquet"], "there is no file none.parquet"),
        (["init", "sulq.toml", "-o", "x.toml"], "should end in .parquet"),
        (["init", "people.parquet", "-o", "none/x.toml"], "cannot be written"),
        (["check", "none"], "no table 'none' in sulq.toml"),
        (["check", "--policy", "none.toml"], "there is no policy file none.toml"),
        (["explain-noise", "--epsilon", "0"], "0 < epsilon"),
        (["explain-noise", "--epsilon", "x"], "finite number"),
        (["explain-noise", "--queries", "0"], "whole number from 1"),
        (["grant", "people", "ann"], "ANALYST CREDITS"),
        (["grant", "people", "ann", "many"], "must be a number"),
        (["ask", "count", "--policy", "none.toml"], "there is no policy file"),
    ],
)
def test_bad_input_is_one_clear_line(sulq, words, reason):
    reply = sulq(*words)
    assert reply.code == 2
    assert reply.err.startswith("error: ")
    assert reason in reply.err
    assert len(reply.err.splitlines()) == 1


def test_too_large_a_grant_is_refused(sulq):
    assert sulq("grant", "ann", "21").code == 3
    assert sulq("grant", "owner", "1").code == 3


def test_two_tables_need_a_name(sulq):
    with Path("sulq.toml").open("a") as file:
        file.write(POLICY.replace("people", "folk"))
    reply = sulq("ask", "count")
    assert (reply.code, "declares folk, people" in reply.err) == (2, True)


def test_missing_source_is_named(sulq):
    Path("people.parquet").unlink()
    reply = sulq("publish", "--yes")
    assert (reply.code, "people.parquet" in reply.err) == (2, True)


def test_unknown_commands_and_options_are_wrong_usage(sulq):
    assert sulq("nonsense").code == 2
    assert sulq("ask", "count", "--nonsense").code == 2


def snapshot(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_recover_after_a_rollback_counts_receipts(sulq, state_directory):
    sulq("ask", "count", "--where", "smoker", "--receipts", "r.jsonl")
    old = Path("people.ledger").read_bytes()
    sulq("ask", "count", "--where", "age < 9", "--receipts", "r.jsonl")
    Path("people.ledger").write_bytes(old)
    assert sulq("verify").code == 3
    assert sulq("ask", "count", "--where", "age < 5").code == 3
    kept = (Path("people.ledger").read_bytes(), snapshot(state_directory))
    found = sulq("recover", "--receipts", "r.jsonl", "--dry-run", "--json").json
    assert (found["lost"], found["burnt"], found["spent_after"]) == (2, False, 2)
    refused = sulq("recover", "--receipts", "r.jsonl")
    assert (refused.code, "add --yes" in refused.err) == (2, True)
    assert kept == (Path("people.ledger").read_bytes(), snapshot(state_directory))
    found = sulq("recover", "--receipts", "r.jsonl", "--yes", "--json").json
    assert (found["lost"], found["burnt"], found["dry_run"]) == (2, False, False)
    assert sulq("verify").code == 0
    assert sulq("ledger", "--json").json["spent"] == 2
    Path("sulq.toml").write_text(POLICY.replace("epsilon = 1", "epsilon = 2"), "utf-8")
    amended = sulq("amend")  # refused before it is shown, and before it is asked for
    assert (amended.code, amended.out, "events of this ledger were lost" in amended.err) == (
        3,
        "",
        True,
    )


def test_recover_finds_a_whole_ledger_whole(sulq):
    sulq("ask", "count", "--where", "smoker")
    reply = sulq("recover")
    assert (reply.code, "nothing was lost" in reply.err) == (0, True)


def test_recover_ends_the_tokens(sulq):
    """A backup of the state may hold some that were revoked since."""
    token = sulq("grant", "ann", "--credits", "1").out.strip()
    sulq("recover", "--dry-run")
    assert sulq("tokens", "--json").json[0]["state"] == "good"
    assert "1 token for" in sulq("recover").err
    access = Access.open()
    assert access.caller(token) is None
    access.close()


def test_receipts_are_one_to_a_line(sulq):
    for age in (3, 4):
        sulq("ask", "count", "--where", f"age < {age}", "--receipts", "r.jsonl")
    lines = Path("r.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["receipt"]["analyst"] for line in lines] == ["owner", "owner"]


def test_recover_says_that_unproved_losses_burn_everything(sulq):
    sulq("ask", "count", "--where", "smoker")
    old = Path("people.ledger").read_bytes()
    sulq("ask", "count", "--where", "age < 9", "--receipts", "r.jsonl")
    sulq("ask", "count", "--where", "age < 8")
    Path("people.ledger").write_bytes(old)
    reply = sulq("recover", "--receipts", "r.jsonl", "--dry-run")
    assert reply.code == 0
    assert "do not account for every lost event" in reply.err
    assert "1 credit before, 20 credits after, of 20 credits" in reply.out
    assert sulq("recover", "--receipts", "r.jsonl", "--yes", "--json").json["burnt"] is True
    assert sulq("ledger", "--json").json["left"] == 0


def test_recover_without_an_anchor_claims_nothing(sulq, state_directory):
    sulq("ask", "count", "--where", "smoker")
    for anchor in state_directory.glob("ledgers/*/anchor"):
        anchor.unlink()
    assert sulq("recover").code == 2
    reply = sulq("recover", "--yes")
    assert "a loss can neither be shown nor excluded; collect receipts" in reply.err
    assert "whole" not in reply.err
    assert sulq("verify").code == 0


def test_dry_run_leaves_a_lost_key_lost(sulq, state_directory):
    sulq("ask", "count", "--where", "smoker")
    (key,) = state_directory.glob("ledgers/*/key")
    key.unlink()
    assert sulq("recover", "--dry-run", "--json").json["new_key"] is True
    assert not key.exists()
    assert sulq("recover", "--yes", "--json").json["new_key"] is True
    assert key.exists()


def test_check_warns_of_a_promise_that_says_little(sulq):
    text = POLICY.replace("epsilon = 1, delta = 1e-6", "epsilon = 8, delta = 1e-3")
    assert "everybody is protected" in sulq("check").out
    Path("sulq.toml").write_text(text, "utf-8")
    out = sulq("check").out
    assert "little is promised above 5" in out
    assert "delta is 0.001, above 1 / 20,000 rows" in out
    assert "everybody is protected" not in out
    assert len(sulq("check", "--json").json["warnings"]) == 2


@pytest.mark.parametrize(
    ("promise", "price", "power"),
    [("delta = 1e-6, queries = 50", 16, "max_rows^2"), ("queries = 50", 4, "max_rows")],
)
def test_check_speaks_of_persons_where_they_are_protected(sulq, promise, price, power):
    text = POLICY.replace("delta = 1e-6, queries = 20", promise)
    text = text.replace(
        "columns.age", 'unit = {column = "person_id", max_rows = 4}\ncolumns.age', 1
    )
    Path("sulq.toml").write_text(text, "utf-8")
    out = sulq("check").out
    assert "20,000 persons" in out
    assert "all rows of one person change" in out
    counts = "3 such counts" if price == 16 else "12 such counts"
    assert f"50 credits buys {counts}, for {price} credits each ({power})" in out
    assert "20,000 rows" not in out
    assert "all rows of one person change" in sulq("publish", "--yes").err
    asked = sulq("ask", "count", "--where", "smoker")
    assert (f"cost           {price} credits" in asked.out, asked.code) == (True, 0)
    books = sulq("ledger").out
    assert "confidence in anything about a person" in books
    assert "one row" not in books
