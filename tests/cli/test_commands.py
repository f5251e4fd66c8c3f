"""The tree of commands: ten verbs, groups, and every earlier name."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.golden.records import read
from typer.main import get_command

from sulq.cli import ALIASES, GROUPS, VERBS, app

TREE = get_command(app)


def at(path: str):
    """The command that these words name."""
    found = TREE
    for word in path.split():
        found = found.commands[word]
    return found


@pytest.mark.parametrize("group", ["", *GROUPS])
def test_help_fits_on_one_screen(sulq, group):
    lines = sulq(*group.split(), "-h").out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100
    listed = {line.split()[0] for line in lines if line.startswith("  ")}
    wanted = {name for verbs in VERBS.values() for name in verbs} | {*GROUPS}
    assert listed == (wanted if not group else {*GROUPS[group].commands})


def test_about_ten_verbs_stand_at_the_top():
    shown = [name for name, command in TREE.commands.items() if not command.hidden]
    assert len(shown) - len(GROUPS) == 10


@pytest.mark.parametrize("old", ALIASES)
def test_an_earlier_name_is_the_same_command(old):
    assert at(old).hidden
    assert at(old).callback.__wrapped__ is at(ALIASES[old]).callback.__wrapped__


def test_every_earlier_name_has_a_place_in_the_tree():
    verbs = {name for held in VERBS.values() for name in held}
    grouped = {f"{name} {word}" for name, group in GROUPS.items() for word in group.commands}
    assert {*read("options")} <= verbs | grouped | {*ALIASES} | {"ledger"}
    hidden = {name for name, command in TREE.commands.items() if command.hidden}
    assert hidden == {*ALIASES}


def test_the_group_ledger_shows_the_ledger_where_no_command_is_named(sulq):
    sulq("ask", "count", "--where", "smoker")
    shown = sulq("ledger", "show", "people", "--json").out
    for words in ((), ("people",), ("--last", "10")):
        assert sulq("ledger", *words, "--json").out == shown
    assert sulq("ledger", "nobody").code == 2


def test_the_chain_is_exported_under_both_names(sulq):
    sulq("ask", "count", "--where", "smoker")
    old = sulq("ledger", "people", "--export", "old.jsonl", "--redact", "--json").json
    new = sulq("ledger", "export", "new.jsonl", "people", "--redact", "--json").json
    assert {**old, "chain": ""} == {**new, "chain": ""}
    assert new["redacted"]
    assert Path("old.jsonl").read_bytes() == Path("new.jsonl").read_bytes()
