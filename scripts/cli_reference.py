# ruff: noqa: E501
"""docs/reference/cli.md: the part about commands, written from the commands themselves.

`python scripts/cli_reference.py` writes it between the two marks of the page; the rest is prose.
tests/cli/test_reference.py keeps it so.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from typer.main import get_command

from sulq.cli import ALIASES, GROUPS, VERBS, app
from sulq.cli.context import Session

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
BEGIN = "<!-- commands: scripts/cli_reference.py writes from here -->\n"
END = "<!-- commands: to here -->\n"
SHARED = [field.name for field in fields(Session)]
VALUES = {int: "N", float: "N", Path: "PATH", str: "TEXT"}

NOTES = {
    "demo": "In a throw-away directory. The console is open until Ctrl-C; in a pipe the tour answers once and ends.",
    "init": 'Where the policy is there, the table is added to it. It finds out [how a CSV file is read](../guides/csv-files.md), yes/no columns, dates, missing marks and identifiers; an identifier that repeats becomes the `unit`. Bounds and values are `"?"`. A table that is there already is refused before anything is read. FILE may be a [table in PostgreSQL](../guides/postgresql.md): `postgresql://host/database/table`. `--from-data` proposes bounds and values and marks each `proposed = true`; a marked column stays closed: remove the mark only if everybody may know what it says.',
    "check": "[What it looks at](../guides/check.md). Of a published table it also says whether the policy and the data are still what the ledger has, and whether it is closed. Exit 2 while a table is not ready.",
    "publish": "The only command that publishes. Without a terminal it wants `--yes`, else exit 2. Without effect on a published table. It fixes schema and promise, but for what `sulq table amend` records. Until then `ask`, `access grant`, `table suggest` and all that spends refuse the table (exit 3) and make nothing; `quote`, `plan` without `--yes` and `EXPLAIN` work from the policy alone, marked *not published*.",
    "serve": "[What it serves](http.md). With no table at all the console publishes the first one.",
    "ask": "In SQL, `EXPLAIN SELECT ...` is free. With `--exact` [without noise](../guides/exact-release.md), where certified.",
    "learn": "See [Learning](#learning).",
    "table amend": "Shows it and asks first: [guide](../guides/changing-a-table.md).",
    "table grow": "[Guide](../guides/growth.md).",
    "table recover": "`--dry-run` changes nothing; in a script `--yes` is needed, else exit 2. [Guide](../guides/backup-and-recover.md).",
    "table withdraw": "Frees its file; all its shares and tokens end: [guide](../guides/changing-a-table.md#before-anything-was-asked).",
    "table book-release": "[Guide](../guides/same-people.md).",
    "table balances": "Where people have [balances of their own](../guides/individual.md); without noise.",
    "table partners": "For [secure addition](../guides/split-tables.md#adding-securely).",
    "table suggest": "[Which bounds](../guides/distributions.md#which-bounds): 2 credits a column; for persons 1 more for each band of rows (of all rows, also of those that are cut) and of sums.",
    "table derive": "[Any rows](../guides/any-rows.md) as bounded numbers, before publication.",
    "access grant": "Grants add up: [access](../guides/access.md).",
    "access revoke": "`--token ID` ends one token; share and other tokens stay.",
    "ledger show": "Never opens the data. The word `show` may be left out: `sulq ledger people`.",
    "ledger export": "As JSON lines.",
    "ledger verify": 'Of receipts, offline: genuine, not signed by this table, not in this chain; with `--key` alone "signed": no chain was seen. Of a table: chain, anchor, receipts, and that the chain contains a head noted earlier. A sick ledger stops no other. Never opens the data.',
    "ledger audit": "For the owner: [audit](../guides/audit.md).",
    "ledger report": "HTML or PDF.",
    "ledger backup": "Exit 3 if a table had to be left out; it is named. [Guide](../guides/backup-and-recover.md).",
    "ledger restore": "By backup, anchor, receipts journal and receipts; without a journal or an anchor of this machine everything counts as spent. Asks first as `table recover` does; ends the tokens.",
    "privacy exact": "[The printed checks](../guides/exact-printed-checks.md).",
    "privacy attack": "[Attacks](../guides/attacks.md) under the table's promise. `--epsilon`, `--delta` and `--credits` take the place of a table.",
    "replica share-key": "[Guide](../guides/shared-ledger.md).",
    "replica join": "[Guide](../guides/shared-ledger.md).",
}
"""What is worth knowing beside a command's own help, and where to read on."""


def page(written: str) -> str:
    """Return the page with the part between the marks written anew."""
    before, _, rest = written.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{commands()}\n{END}{after}"


def commands() -> str:
    """Return the reference of every listed command, as Markdown."""
    tree: Any = get_command(app)
    told: list[str] = []
    for heading, verbs in VERBS.items():
        told += [f"## {heading}", ""]
        for name in verbs:
            told += [*_entry(name, tree.commands[name]), ""]
    for name, group in GROUPS.items():
        told += [f"## {group.help}: `sulq {name}`", ""]
        for word in group.commands:
            told += [*_entry(f"{name} {word}", tree.commands[name].commands[word]), ""]
    told += ["## Shared options", "", "Each command names those that it takes.", ""]
    told += _options(tree.commands["ask"], _is_shared)
    return "\n".join(told) + "\n"


def _entry(path: str, command: Any) -> Iterator[str]:
    own = list(_options(command, lambda param: not _is_shared(param)))
    shared = [f"`{param.opts[0]}`" for param in command.params if _is_shared(param)]
    earlier = [old for old, now in ALIASES.items() if now == path]
    told = " ".join(inspect.cleandoc(command.help or "").split())
    words = [_argument(param) for param in command.params if param.param_type_name == "argument"]
    yield f"### sulq {path}"
    yield ""
    yield f"`{' '.join(['sulq', path, *words, *(['[options]'] if own else [])])}`"
    yield ""
    yield " ".join(filter(None, (told, NOTES.get(path))))
    if own:
        yield ""
        yield from own
    if shared or earlier:
        yield ""
        was = f" Earlier name: `sulq {earlier[0]}`." if earlier else ""
        yield f"Shared options: {', '.join(shared)}.{was}".strip() if shared else was.strip()


def _is_shared(param: Any) -> bool:
    return param.name in SHARED


def _argument(param: Any) -> str:
    told: str = param.metavar or param.name.upper()
    return told if param.required or told.startswith("[") else f"[{told}]"


def _options(command: Any, wanted: Callable[[Any], bool]) -> Iterator[str]:
    for param in command.params:
        if param.param_type_name == "argument" or param.hidden or not wanted(param):
            continue
        names = ", ".join(f"`{name}`" for name in (*param.opts, *param.secondary_opts))
        value = "" if param.is_flag else f" {param.metavar or _value(command, param.name)}"
        told = [param.help or ""]
        if param.required:
            told.append("Required.")
        elif isinstance(param.default, str | int | float | Path) and not param.is_flag:
            told.append(f"Default: {param.default}." if str(param.default) else "")
        if param.envvar:
            told.append(f"Else the variable {param.envvar}.")
        yield f"- {names}{value}: {' '.join(filter(None, told))}"


def _value(command: Any, name: str) -> str:
    """What stands after an option of this type."""
    hint = get_type_hints(command.callback)[name]
    kinds = {hint, *get_args(hint)}
    return next((word for kind, word in VALUES.items() if kind in kinds), "TEXT")


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
