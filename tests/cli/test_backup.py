"""backup, restore, recover at the command line, on one machine and on a second one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import duckdb
import pytest

from sulq.kernel.ledger.inspect import inspect

OTHER = """
[town]
source = "town.parquet"
ledger = "town.ledger"
apart = true
promise = {epsilon = 1, delta = 1e-6, queries = 20}
columns.age = {number = [0, 110], step = 1}
columns.smoker = {flag = true}
"""


def ask(sulq, where, table="people"):
    reply = sulq("ask", table, "count", "--where", where, "--json")
    assert reply.code == 0, reply.err
    return reply.json


def spent():
    return inspect("people.ledger").statements["people"].spent.credits_fraction


@pytest.fixture
def journal(tmp_path):
    """A policy with a receipts journal on a second disk."""
    second = tmp_path / "second"
    second.mkdir()
    path = Path("sulq.toml")
    path.write_text(
        path.read_text().replace("[people]\n", '[people]\nreceipts = "second/people.receipts"\n')
    )
    return second / "people.receipts"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Go to a second machine: its own directory and state, with the same policy and data."""

    def go() -> Path:
        home = tmp_path / "elsewhere"
        home.mkdir()
        for name in ("sulq.toml", "people.parquet"):
            shutil.copy(name, home)
        monkeypatch.chdir(home)
        monkeypatch.setenv("SULQ_STATE", str(home / "state"))
        return home

    return go


def test_back_up_lose_and_restore(sulq, unpublished):
    ask(sulq, "smoker")
    reply = sulq("backup", "b.backup")
    assert (reply.code, reply.out.strip()) == (0, "b.backup")
    assert Path("b.backup").stat().st_mode & 0o777 == 0o600
    Path("people.ledger").unlink()
    refused = unpublished("ask", "count", "--where", "smoker")
    assert "lost or empty; put a backup in its place with `sulq restore`" in refused.err
    tried = sulq("restore", "b.backup", "--dry-run", "--json").json
    assert tried["tables"][0]["burnt"] is False
    assert not Path("people.ledger").exists()
    reply = sulq("restore", "b.backup")
    assert reply.code == 0
    assert "nothing was lost" in reply.err
    assert "tokens and armed alerts are not restored" in reply.err
    assert spent() == 1


def test_a_directory_takes_files_named_by_the_time(sulq):
    ask(sulq, "smoker")
    Path("backups").mkdir()
    assert sulq("backup", "backups").code == 0
    (found,) = Path("backups").iterdir()
    assert found.name.endswith(".backup")


def test_what_nothing_proves_is_said_and_asked_before_it_is_spent(sulq):
    ask(sulq, "smoker")
    sulq("backup", "b.backup")
    ask(sulq, "age < 9")
    Path("people.ledger").unlink()
    tried = sulq("restore", "b.backup", "--dry-run")
    assert "people: the price of some lost event is unknown: the whole budget is spent" in tried.err
    refused = sulq("restore", "b.backup")
    assert refused.code == 2
    assert "20 credits of 20 credits of people will count as spent: look with --dry-run" in (
        refused.err
    )
    assert not Path("people.ledger").exists()
    assert sulq("restore", "b.backup", "--yes").code == 0
    assert spent() == 20
    assert sulq("ask", "count", "--where", "smoker").code == 0  # the backup has it
    assert sulq("ask", "count", "--where", "age < 9").code == 4


def test_the_journal_accounts_for_what_came_later(sulq, journal):
    ask(sulq, "smoker")
    sulq("backup", "b.backup")
    sulq("grant", "ann", "3")
    ask(sulq, "age < 9")
    Path("people.ledger").unlink()
    found = sulq("restore", "b.backup", "--yes", "--json").json["tables"][0]
    assert (found["burnt"], found["proved"], found["spent_after"]) == (False, 1, 2)
    assert found["lost_kinds"] == ["grant"]
    assert spent() == 2
    assert sulq("verify", "people", "--receipts", str(journal)).code == 3  # one is lost, and said


def test_on_a_second_machine_without_the_journal_the_rest_is_spent(sulq, elsewhere, tmp_path):
    ask(sulq, "smoker")
    sulq("backup", "b.backup")
    ask(sulq, "age < 9")
    elsewhere()
    reply = sulq("restore", str(tmp_path / "b.backup"), "--yes")
    assert "nothing newer than this copy" in reply.err
    assert spent() == 20
    assert sulq("ask", "count", "--where", "age < 50").code == 4


def test_the_second_disk_in_a_second_machine(sulq, journal, elsewhere, tmp_path, monkeypatch):
    ask(sulq, "smoker")
    sulq("backup", "b.backup")
    ask(sulq, "age < 9")
    home, state = tmp_path, os.environ.get("SULQ_STATE")
    there = elsewhere()
    policy = there / "sulq.toml"
    policy.write_text(policy.read_text().replace("second/people.receipts", str(journal)))
    assert sulq("restore", str(tmp_path / "b.backup"), "--yes").code == 0
    assert spent() == 2
    ask(sulq, "age < 50")
    monkeypatch.chdir(home)
    monkeypatch.setenv("SULQ_STATE", str(state))
    refused = sulq("ask", "count", "--where", "age < 60")
    assert refused.code == 3
    assert "restored elsewhere" in refused.err


def test_restore_ends_tokens_and_leaves_them_out(sulq):
    token = sulq("grant", "ann", "3").out.strip()
    sulq("backup", "b.backup")
    assert token.encode() not in Path("b.backup").read_bytes()
    Path("people.ledger").unlink()
    assert "ended: 1 token" in sulq("restore", "b.backup").err
    assert {line["state"] for line in sulq("tokens", "--json").json} == {"revoked"}


@pytest.fixture
def two(sulq):
    """A second table with a ledger of its own."""
    duckdb.sql("SELECT i % 90 AS age, i % 3 = 0 AS smoker FROM range(2000) AS t(i)").write_parquet(
        "town.parquet"
    )
    people = Path("sulq.toml").read_text().replace("[people]\n", "[people]\napart = true\n")
    Path("sulq.toml").write_text(people + OTHER)
    ask(sulq, "smoker", "people")
    ask(sulq, "smoker", "town")
    return sulq


def test_a_sick_ledger_is_left_out_by_name_and_the_others_are_backed_up(two):
    Path("people.ledger").write_bytes(b"ruined")
    reply = two("backup", "b.backup")
    assert reply.code == 3
    assert "left out of the backup: people:" in reply.err
    assert "town: " in reply.err
    Path("town.ledger").unlink()
    assert two("restore", "b.backup", "--json").json["tables"][0]["table"] == "town"


def test_several_ledgers_in_one_backup(two):
    two("backup", "b.backup")
    Path("people.ledger").unlink()
    reply = two("restore", "b.backup")
    assert reply.code == 3
    assert "not restored: town: the ledger" in reply.err  # it is whole
    assert spent() == 1
    Path("town.ledger").unlink()
    assert two("restore", "b.backup", "town").code == 0


def test_every_table_of_a_ledger_is_told_what_it_loses(sulq):
    """Two tables in one ledger: a rollback spends both, so both are named before."""
    policy = Path("sulq.toml")
    policy.write_text(policy.read_text() + OTHER.replace("town.ledger", "people.ledger"))
    duckdb.sql("COPY (SELECT age + 1 AS age, smoker FROM 'people.parquet') TO 'town.parquet'")
    ask(sulq, "smoker")
    ask(sulq, "smoker", "town")
    assert sulq("backup", "b.backup").code == 0
    ask(sulq, "age > 30")
    Path("people.ledger").unlink()
    looked = sulq("restore", "b.backup", "--dry-run")
    assert "people, town: the price of some lost event is unknown" in looked.err
    [line] = [each for each in looked.out.splitlines() if each.startswith("spent of town")]
    assert "1 credit before, 20 credits after, of 20 credits" in line
    asked = sulq("restore", "b.backup")
    assert "20 credits of 20 credits of town" in asked.err and asked.code == 2
    [told] = sulq("restore", "b.backup", "--yes", "--json").json["tables"]
    assert told["tables"]["town"] == {"before": 1, "after": 20, "of": 20}


def test_journals_and_ledgers_go_in_pairs(sulq):
    policy = Path("sulq.toml")
    people = policy.read_text().replace("[people]\n", '[people]\nreceipts = "r"\n')
    policy.write_text(people + OTHER.replace("town.ledger", "people.ledger"))
    assert "a ledger has one journal" in sulq("check", "people").err
    policy.write_text(people + OTHER.replace("[town]\n", '[town]\nreceipts = "r"\n'))
    assert "one receipts journal and two ledgers" in sulq("check", "people").err


def test_there_must_be_something_to_back_up_or_restore(sulq):
    reply = sulq("backup", "b.backup")
    assert reply.code == 3
    assert "no table of sulq.toml is published" in reply.err
    assert "there is no backup" in sulq("restore", "b.backup").err
    Path("b.backup").write_text("no backup")
    assert "not a whole backup" in sulq("restore", "b.backup").err
