"""docs/reference/cli.md says what the commands take."""

from __future__ import annotations

from scripts.cli_reference import NOTES, PAGE, commands, page

from sulq.cli import ALIASES, GROUPS, VERBS


def test_the_page_is_written_from_the_commands():
    written = PAGE.read_text("utf-8")
    assert written == page(written), "run scripts/cli_reference.py"


def test_every_command_is_in_it_under_its_own_name():
    paths = {name for verbs in VERBS.values() for name in verbs}
    paths |= {f"{name} {word}" for name, group in GROUPS.items() for word in group.commands}
    lines = commands().splitlines()
    assert {line.removeprefix("### sulq ") for line in lines if line.startswith("### ")} == paths
    assert {*NOTES} <= paths
    for old in ALIASES:
        assert f"Earlier name: `sulq {old}`." in commands()
