"""ledger and verify: the books, without data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture
def asked(sulq):
    sulq("grant", "ann", "5")
    sulq("ask", "count", "--where", "smoker AND age > 30", "--receipts", "r.jsonl")
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


def test_statement_says_who_spent_what_where(asked):
    found = asked("ledger", "people", "--json").json
    assert (found["credits"], found["spent"], found["left"]) == (20, 2, 18)
    strata = {line["name"]: line["spent"] for line in found["accounts"]}
    assert strata == {"city=Oslo": 2, "city=Paris": 1, "city=*": 1}
    assert {line["name"]: line["spent"] for line in found["analysts"]} == {"owner": 1, "ann": 1}
    assert found["epsilon"] == 1
    assert 0 < found["tail"] < 1e-3
    assert [line["credits"] for line in found["last"]] == [1, 1]
    assert json.loads(found["last"][0]["question"])["terms"] == [["num", "1"]]


def test_statement_reads_plainly(asked):
    reply = asked("ledger", "--last", "1")
    for words in ("2 of 20 credits", "18 credits", "city=Oslo", "ann", "as a tail", "Oslo"):
        assert words in reply.out
    assert "\x1b" not in reply.out


def test_books_are_read_while_another_holds_the_ledger(asked, monkeypatch):
    from sulq.cli.context import named, opened

    with opened(named(Path("sulq.toml"), "people"), publish=True) as database:
        assert asked("ledger", "--json").json["spent"] == 2
        assert asked("verify").code == 0
        assert database.remaining == 14  # 20 - 2 spent - 4 kept for ann


def test_verify_checks_chain_anchor_and_receipts(asked):
    found = asked("verify", "--receipts", "r.jsonl", "--json").json
    assert (found["verified"], found["receipts"]) == (True, 2)
    key, head = found["public_key"], found["head"]
    assert asked("verify", "--head", head).code == 0
    assert asked("verify", "--head", "00" * 32).code == 3
    offline = asked("verify", "--receipts", "r.jsonl", "--public-key", key, "--json")
    told = offline.json
    assert (told["verified"], told["receipts"], told["public_key"]) == (True, 2, key)
    assert [one["result"] for one in told["results"]] == ["signed", "signed"]  # by the key alone


def test_offline_check_needs_no_ledger(asked):
    key = asked("ledger", "--json").json["public_key"]
    Path("people.ledger").unlink()
    Path("sulq.toml").unlink()
    assert asked("verify", "--receipts", "r.jsonl", "--public-key", key).code == 0


def test_changed_receipt_is_found_by_its_line(asked):
    text = Path("r.jsonl").read_text("utf-8").splitlines()
    text[1] = text[1].replace('"ann"', '"bob"')
    Path("r.jsonl").write_text("\n".join(text))
    reply = asked("verify", "--receipts", "r.jsonl")
    assert (reply.code, "receipt on line 2" in reply.err) == (3, True)


def test_changed_ledger_does_not_verify(asked):
    content = Path("people.ledger").read_bytes()
    assert b'"analyst":"ann"' in content
    Path("people.ledger").write_bytes(content.replace(b'"analyst":"ann"', b'"analyst":"bob"'))
    for command in ("verify", "ledger"):
        reply = asked(command)
        assert reply.code == 3
        assert reply.err.startswith("error: ")


def test_lost_anchor_is_told(asked, state_directory):
    for anchor in state_directory.glob("ledgers/*/anchor"):
        anchor.unlink()
    reply = asked("verify")
    assert (reply.code, "anchor" in reply.err) == (3, True)


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["ledger"], 3, "there is no ledger"),
        (["verify"], 3, "there is no ledger"),
        (["recover"], 3, "there is no ledger"),
        (["verify", "--receipts", "none.jsonl"], 2, "there is no file none.jsonl"),
        (["verify", "--public-key", "ab"], 2, "give --receipts"),
    ],
)
def test_bad_input_is_one_clear_line(sulq, words, code, reason):
    reply = sulq(*words)
    assert reply.code == code
    assert reply.err.startswith("error: ")
    assert reason in reply.err


def test_not_a_receipt(asked):
    Path("x.jsonl").write_text("{}\n")
    assert asked("verify", "--receipts", "x.jsonl").code == 3
    Path("x.jsonl").write_bytes(b"\xff\xfe")
    assert asked("verify", "--receipts", "x.jsonl").code == 2
    reply = asked("verify", "--receipts", "r.jsonl", "--public-key", "nonsense")
    assert reply.code == 3
