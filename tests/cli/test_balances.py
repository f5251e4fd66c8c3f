"""`sulq balances`: the owner's histogram of people's own balances; and `individual` in a policy."""

from __future__ import annotations

import json

import pytest
from tests.people import frame
from typer.testing import CliRunner

from sulq.cli import app
from sulq.errors import InvalidQuery
from sulq.policy import read_policy, write_policy

POLICY = """
[people]
source = "people.parquet"
ledger = "people.ledger"
promise = {epsilon = 1, delta = 1e-6, queries = 5, neighbours = "add-remove"}
individual = true
columns.age = {number = [0, 120], step = 1}
"""


@pytest.fixture
def policy(tmp_path, monkeypatch):
    frame(200).to_parquet(tmp_path / "people.parquet")
    (tmp_path / "sulq.toml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "sulq.toml"


def run(*words):
    return CliRunner().invoke(app, list(words))


def test_the_owner_sees_how_many_have_spent_how_much(policy):
    old = int((frame(200).age >= 60).sum())
    assert run("publish", "--yes").exit_code == 0
    for least in (60, 59, 58, 57, 56):
        asked = run("ask", "count", "--where", f"age >= {least}")
        assert asked.exit_code == 0, asked.output
    found = run("balances", "people", "--json")
    assert found.exit_code == 0, found.output
    said = json.loads(found.stdout)
    assert sum(said["people"]) == 200 and said["people"][-1] == old
    assert "owner" in said["private"]
    shown = run("balances")
    assert f"{old}" in shown.stdout and "90 to 100 %" in shown.stdout
    told = run("ledger", "--json")
    assert [line["credits"] for line in json.loads(told.stdout)["last"]] == [1] * 5
    assert json.loads(told.stdout)["individual"] is True
    assert not {str(people) for people in said["people"] if people} & set(told.stdout.split())
    assert "balance of their own, secret" in " ".join(run("ledger").stdout.split())


def test_looking_at_balances_publishes_nothing(policy):
    found = run("balances")
    assert found.exit_code == 3 and "is not published" in found.output
    assert not (policy.parent / "people.ledger").exists()


def test_a_table_with_one_account_for_all_has_no_balances(policy):
    policy.write_text(POLICY.replace("individual = true\n", ""))
    found = run("balances")
    assert found.exit_code == 2 and "sulq ledger" in found.output


def test_the_policy_reads_back_and_refuses_other_words(policy):
    (found,) = read_policy(policy).values()
    assert found.individual
    write_policy(policy.with_name("copy.toml"), [found], {})
    (again,) = read_policy(policy.with_name("copy.toml")).values()
    assert again.individual
    policy.write_text(POLICY.replace("= true", '= "yes"'))
    with pytest.raises(InvalidQuery, match="true or false"):
        read_policy(policy)


def test_the_command_line_opens_all_tables_that_people_share(policy):
    shared = {
        "population": "{name = 'town', epsilon = 1, delta = 1e-6, queries = 5, persons = true}"
    }
    shared["unit"] = "{column = 'id', max_rows = 1}"
    more = "".join(f"{key} = {value}\n" for key, value in shared.items())
    text = ""
    for name in ("people", "patients"):
        data = frame(50, seed=len(name)).assign(id=range(len(name), len(name) + 50))
        data.to_parquet(policy.with_name(f"{name}.parquet"))
        table = POLICY.replace("[people]", f"[{name}]").replace("people.parquet", f"{name}.parquet")
        text += table.replace("individual = true\n", f"individual = true\n{more}")
    policy.write_text(text)
    for name in ("people", "patients"):
        assert run("publish", name, "--yes").exit_code == 0
    for words in (("people", "count"), ("patients", "count"), ("people", "mean", "age")):
        asked = run("ask", *words)
        assert asked.exit_code == 0, asked.output
    found = run("balances", "patients", "--json")
    assert found.exit_code == 0, found.output
    spent = json.loads(found.stdout)["people"]
    assert sum(spent) == 50 and spent[1] == 2  # two are patients alone, and paid for one count
