"""`sulq partners`: a table's key for secure addition; and `partners` in a policy."""

from __future__ import annotations

import json

import pytest
from tests.people import frame
from typer.testing import CliRunner

from sulq import count
from sulq.cli import app
from sulq.cli.context import database_of
from sulq.errors import InvalidQuery
from sulq.policy import read_policy, write_policy
from sulq.shares import Partners

OTHERS = (
    "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
    "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
)
POLICY = """
[people]
source = "people.parquet"
ledger = "people.ledger"
promise = {epsilon = 1, credits = 5}
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


def test_an_owner_sees_the_key_and_names_the_partners(policy):
    assert run("publish", "--yes").exit_code == 0
    found = run("partners", "--json")
    assert found.exit_code == 0, found.output
    said = json.loads(found.stdout)
    assert (said["partners"], said["colluding"]) == ([], None)
    assert said["key"] in run("partners").stdout  # the same each time
    listed = ", ".join(f'"{key}"' for key in OTHERS)
    policy.write_text(POLICY + f"partners = {{keys = [{listed}], colluding = 1}}\n")
    told = json.loads(run("partners", "people", "--json").stdout)
    assert told == {**said, "partners": sorted(OTHERS), "colluding": 1}
    table = read_policy(policy)["people"]
    with database_of(table, table.ledger_path) as database:
        assert database.share(count(), joint="one-joint-sum").joint.owners == tuple(
            sorted((*OTHERS, said["key"]))
        )
    policy.write_text(POLICY + f'partners = {{keys = ["{said["key"]}"], colluding = 0}}\n')
    refused = run("partners")
    assert refused.exit_code != 0 and "own key is among" in " ".join(refused.output.split())


def test_partners_survive_the_file(policy):
    listed = ", ".join(f'"{key}"' for key in OTHERS)
    policy.write_text(POLICY + f"partners = {{keys = [{listed}], colluding = 1}}\n")
    table = read_policy(policy)["people"]
    assert table.partners == Partners(OTHERS, 1)
    write_policy(policy.parent / "b.toml", [table])
    assert read_policy(policy.parent / "b.toml")["people"].partners == table.partners


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("true", "partners must be"),
        ('{keys = ["a"]}', "partners must be"),
        ("{keys = 5, colluding = 0}", "64 hexadecimal digits"),
        (f'{{keys = "{OTHERS[0]}", colluding = 1}}', "draw the whole noise"),
        (f'{{keys = ["{OTHERS[0]}"], colluding = "none"}}', "number of owners"),
    ],
)
def test_wrong_partners_are_refused_when_the_policy_is_read(policy, wrong, says):
    policy.write_text(POLICY + f"partners = {wrong}\n")
    with pytest.raises(InvalidQuery, match=says):
        read_policy(policy)
