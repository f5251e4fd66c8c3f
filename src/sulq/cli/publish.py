"""`sulq publish`: the one command that publishes a table, after its owner has read what that means.

It shows what `sulq check` says, and stops where a table is not ready. The decision is taken with
the rows in view (docs/limits.md); nothing that happens later depends on them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from sulq.cli.context import (
    LocalSession,
    TableName,
    command,
    exact_outlook,
    named,
    opened,
    try_out,
)
from sulq.cli.output import print_note, promise_text, show_json

if TYPE_CHECKING:
    from sulq.database import Database
    from sulq.policy import TablePolicy

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show everything; publish nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Publish without asking for the table's name.")]
FOR_GOOD = (
    "Once anything was asked, publishing cannot be undone: columns, bounds and promise are fixed,"
    " and what is spent stays spent."
)


@contextmanager
def published(table: TablePolicy) -> Iterator[Database]:
    """Publish a table and open it: for the wizard, whose last button has asked the adviser."""
    from sulq.kernel.engines.duckdb.quarantine import check_file

    check_file(table.rows, table.schema())  # not first in a server
    try_out(table)
    with _now_published(table) as database:
        yield database


@contextmanager
def _now_published(table: TablePolicy) -> Iterator[Database]:
    from sulq.kernel.ledger.state_dir import location_name

    with opened(table, publish=True) as database:
        promised = promise_text(table.promise, table.unit)
        print_note(
            f"published {table.name}: {promised} (ledger {location_name(table.ledger_path)})"
        )
        yield database


@command
def publish(
    session: LocalSession,
    name: TableName = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Publish a table for good. Shows what that means, then asks for the table's name."""
    from sulq.cli.check import review
    from sulq.errors import Refused
    from sulq.kernel.engines.duckdb.quarantine import check_file
    from sulq.kernel.ledger.inspect import is_published
    from sulq.kernel.ledger.state_dir import location_name

    source = named(session.policy, name)
    if source.ledger == ":memory:":
        raise Refused(
            f"[{source.name}] has its ledger in memory, which forgets what was spent; give it a"
            f" file, such as ledger = '{source.name}.ledger'"
        )
    where = location_name(source.ledger_path)
    if is_published(source.ledger_path, source.name):
        if session.as_json:
            show_json({"table": source.name, "published": True, "new": False})
        print_note(f"{source.name} is published already (ledger {where}); nothing was changed")
        return
    if not source.unready:
        check_file(source.rows, source.schema())  # others may have made it: not in this process
    looked = review(source)
    problems = looked.advice.faults
    exact = exact_outlook(source) if not problems else {}
    said = {"table": source.name, "problems": problems, "advice": looked.to_json()}
    if not session.as_json:
        looked.show()
        if "text" in exact:
            print(f"exact release: {exact['text']}")
    if problems or exact.get("certified") is False:
        if session.as_json:
            show_json({**said, "published": False})
        print_note(f"{source.name} was not published")
        raise typer.Exit(2)
    try_out(source)  # refused before anything is asked
    if dry_run:
        if session.as_json:
            show_json({**said, "published": False})
        print_note("dry run: nothing was published; without --dry-run this would have been")
        return
    _confirm(source.name, yes)
    with _now_published(source) as database:
        head = database.statement().statement.head
    if session.as_json:
        show_json({**said, "published": True, "new": True, "head": head})
        return
    grant = f"`sulq grant NAME --credits N --table {source.name}`"
    print_note(f"next: {grant}, `sulq serve`, or `sulq ask`")


def _confirm(name: str, yes: bool) -> None:
    """Ask for the table's name on a terminal; elsewhere `InvalidQuery` without `--yes`."""
    from sulq.errors import InvalidQuery

    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidQuery(
            "publishing wants the table's name, and there is no terminal to ask on: look with"
            " --dry-run, then add --yes; nothing was published"
        )
    print_note(FOR_GOOD)
    if typer.prompt(f"Type the table's name ({name}) to publish it", err=True).strip() != name:
        raise InvalidQuery(f"that was not {name!r}; nothing was published")
