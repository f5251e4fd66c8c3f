"""sulq verify receipts.jsonl --head HASH, and the chain as a file: no data, no ledger."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import pytest


@pytest.fixture
def asked(sulq):
    sulq("grant", "ann", "5")
    for place in (30, 31):
        sulq("ask", "count", "--where", f"smoker AND age > {place}", "--receipts", "r.jsonl")
    sulq(
        "ask",
        "count",
        "--where",
        "smoker AND city = 'Oslo'",
        "--as",
        "ann",
        "--receipts",
        "r.jsonl",
    )
    return sulq


@pytest.fixture
def away(asked, state_directory):
    """An auditor's desk: receipts and chain, and nothing else."""
    head = asked("ledger", "--export", "ledger.jsonl", "--json").json["head"]
    asked("ledger", "--export", "hidden.jsonl", "--redact")
    asked("ledger", "--export", "ann.jsonl", "--for", "ann")
    for gone in ("people.ledger", "people.parquet", "sulq.toml"):
        Path(gone).unlink()
    shutil.rmtree(state_directory)
    return asked, head


def test_an_export_overwrites_nothing_and_is_for_somebody(asked):
    Path("kept.jsonl").write_text("mine", "utf-8")
    again = asked("ledger", "--export", "kept.jsonl")
    assert (again.code, "is there already" in again.err) == (2, True)
    assert Path("kept.jsonl").read_text("utf-8") == "mine"
    stranger = asked("ledger", "--export", "zoe.jsonl", "--for", "zoe")
    assert (stranger.code, "nobody called 'zoe'" in stranger.err) == (2, True)
    assert not Path("zoe.jsonl").exists() and asked("ledger", "--last", "-3").code == 2
    told = asked("plan", "count where age > 7", "--yes", "--receipts", "one.jsonl")
    assert told.err.startswith("receipt ") and " appended to one.jsonl" in told.err


def results(reply):
    return [one["result"] for one in reply.json["results"]]


def test_receipts_are_checked_against_a_chain_and_its_head(away):
    sulq, head = away
    reply = sulq("verify", "r.jsonl", "--head", head, "--json")
    assert (reply.code, reply.json["verified"], reply.json["head"]) == (0, True, head)
    assert reply.json["head_is"] == "the last event"
    assert results(reply) == ["genuine"] * 3
    assert "verified" in sulq("verify", "r.jsonl", "--head", head.upper()).out
    other = sulq("verify", "r.jsonl", "--head", "00" * 32)
    assert (other.code, "another or an older ledger" in other.err) == (3, True)


def test_a_key_alone_tells_who_signed(away):
    sulq, _ = away
    key = sulq("verify", "r.jsonl", "--json").json["public_key"]
    alone = sulq("verify", "r.jsonl", "--key", key, "--json")
    assert (alone.code, results(alone)) == (0, ["signed"] * 3)  # no chain was seen
    assert "Download on the console's Ledger page" in alone.json["note"]
    wrong = sulq("verify", "r.jsonl", "--key", "00" * 32, "--json")
    assert (wrong.code, set(results(wrong))) == (3, {"not signed by this table"})
    assert sulq("verify", "r.jsonl", "--chain", "ledger.jsonl", "--key", key).code == 0
    assert sulq("verify", "r.jsonl", "--chain", "ledger.jsonl", "--key", "00" * 32).code == 3
    assert sulq("verify", "r.jsonl", "--key", key, "--head", "00" * 32).code == 2


def test_each_receipt_gets_its_own_result(away):
    sulq, head = away
    lines = Path("r.jsonl").read_text().splitlines()
    lines[1] = lines[1].replace('"owner"', '"eve"')
    Path("bad.jsonl").write_text("\n".join([*lines, "{}", ""]))
    reply = sulq("verify", "bad.jsonl", "--head", head, "--json")
    assert reply.code == 3
    assert results(reply) == [
        "genuine",
        "not signed by this table",
        "genuine",
        "not a receipt",
    ]
    assert "receipt on line 2" in reply.err
    assert all(one["remedy"] for one in reply.json["results"] if one["result"] != "genuine")
    plain = sulq("verify", "bad.jsonl")
    assert "no: 2 of 4 receipts" in plain.out


def test_a_receipt_of_another_history_is_signed_but_not_here(asked, state_directory):
    shutil.copytree(state_directory, "state.old")
    for file in ("people.ledger", "people.ledger-wal"):
        if Path(file).exists():
            shutil.copy(file, f"{file}.old")
    asked("ask", "count", "--where", "age > 50", "--receipts", "late.jsonl")
    late = asked("ledger", "--export", "full.jsonl", "--json").json["head"]
    shutil.rmtree(state_directory)
    shutil.copytree("state.old", state_directory)  # the whole volume is put back
    for file in ("people.ledger", "people.ledger-wal"):
        if Path(f"{file}.old").exists():
            shutil.copy(f"{file}.old", file)
    asked("ask", "count", "--where", "age > 60")
    early = asked("ledger", "--export", "ledger.jsonl", "--json").json["head"]
    reply = asked("verify", "late.jsonl", "--json")
    assert (reply.code, results(reply)) == (3, ["signed, but not in this chain"])
    assert asked("verify", "late.jsonl", "--chain", "full.jsonl", "--head", early).code == 3
    assert asked("verify", "late.jsonl", "--chain", "full.jsonl", "--head", late).code == 0


def test_what_comes_after_a_noted_head_is_told_apart(asked):
    noted = asked("ledger", "--json").json["head"]
    asked("ask", "count", "--where", "age > 50", "--receipts", "r.jsonl")
    asked("ledger", "--export", "ledger.jsonl")
    reply = asked("verify", "r.jsonl", "--head", noted, "--json")
    assert reply.code == 3
    assert results(reply) == ["genuine"] * 3 + ["signed, but later than this head"]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda lines: lines[:-1],
        lambda lines: [*lines[:3], *lines[4:]],
        lambda lines: [*lines[:4], lines[4].replace("smoker", "smoked"), *lines[5:]],
        lambda lines: [*lines[:-1], _without(lines[-1], "seal")],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: lines[1:],
        lambda lines: ["{}"],
        lambda lines: [*lines, "["],
    ],
    ids=["cut", "missing", "changed", "unsealed", "no start", "no format", "empty", "torn"],
)
def test_a_spoiled_chain_does_not_verify(away, spoil):
    sulq, head = away
    lines = Path("ledger.jsonl").read_text().splitlines()
    Path("spoiled.jsonl").write_text("\n".join(spoil(lines)))
    reply = sulq("verify", "r.jsonl", "--chain", "spoiled.jsonl", "--head", head)
    assert reply.code == 3
    assert reply.err.startswith("error: ")


def _without(line, name):
    form = json.loads(line)
    form.pop(name)
    return json.dumps(form)


def test_a_redacted_chain_names_nobody_and_still_serves(away):
    sulq, head = away
    text = Path("hidden.jsonl").read_text()
    for word in ("ann", 'smoker\\",', "noisy", '\\"values\\"', '\\"question\\"'):
        assert word not in text
    reply = sulq("verify", "r.jsonl", "--chain", "hidden.jsonl", "--head", head, "--json")
    assert (reply.code, results(reply)) == (0, ["genuine"] * 3)
    assert reply.json["closed"] > 0
    assert "rest on" in reply.json["links"]
    seals = [json.loads(line) for line in text.splitlines()[1:]]
    seals[5]["seal"] = seals[6].get("seal", "00")
    spoiled = [text.splitlines()[0], *map(json.dumps, seals)]
    Path("spoiled.jsonl").write_text("\n".join(spoiled))
    assert sulq("verify", "r.jsonl", "--chain", "spoiled.jsonl").code == 3


def test_an_analyst_s_chain_shows_their_own_events(away):
    text = Path("ann.jsonl").read_text()
    assert text.count('\\"analyst\\":\\"ann\\"') == 2  # the grant and the question
    assert "owner" not in text
    assert "noisy" not in text


def test_a_full_chain_is_for_the_owner_s_eyes(away):
    assert Path("ledger.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["ledger", "--redact"], 2, "go with --export"),
        (["ledger", "--export", "x.jsonl"], 3, "there is no ledger"),
        (["verify", "none.jsonl"], 2, "there is no file none.jsonl"),
    ],
)
def test_bad_input_is_one_clear_line(sulq, words, code, reason):
    reply = sulq(*words)
    assert (reply.code, reason in reply.err) == (code, True)


def test_nothing_to_check_against_says_what_is_missing(away):
    sulq, _ = away
    Path("ledger.jsonl").unlink()
    reply = sulq("verify", "r.jsonl")
    assert (reply.code, "--key" in reply.err, "--chain" in reply.err) == (2, True, True)


def test_without_a_table_every_ledger_is_verified_and_a_sick_one_stops_no_other(sulq):
    text = Path("sulq.toml").read_text("utf-8")
    town, farm = (
        text.replace("people]", f"{name}]\napart = true").replace("people.ledger", f"{name}.ledger")
        for name in ("town", "farm")
    )
    farm = farm.replace("[0, 110]", '["?", "?"]')
    duckdb.sql("COPY (SELECT * FROM 'people.parquet' LIMIT 1500) TO 'town.parquet'")
    town = town.replace("people.parquet", "town.parquet")
    Path("sulq.toml").write_text(text + town + farm, "utf-8")
    for name in ("people", "town"):
        assert sulq("ask", name, "count").code == 0
    reply = sulq("verify", "--json")
    assert (reply.code, reply.json["verified"]) == (0, True)
    assert reply.json["tables"]["farm"] == {"verified": None, "note": "not published"}
    Path("people.ledger").write_bytes(b"not a ledger")
    for leftover in Path().glob("people.ledger-*"):
        leftover.unlink()
    reply = sulq("verify", "--json")
    assert (reply.code, reply.json["verified"]) == (3, False)
    assert reply.json["tables"]["people"]["verified"] is False
    assert reply.json["tables"]["town"]["verified"] is True
    assert "error: people: " in reply.err
