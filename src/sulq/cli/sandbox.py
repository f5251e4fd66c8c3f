"""`sulq sandbox`: the same schema and promise over made-up rows, to try things out for nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sulq.cli.context import LocalSession, TableName, command, named
from sulq.cli.output import print_note, show_json


@command
def sandbox(
    session: LocalSession,
    name: TableName = None,
    rows: Annotated[int, typer.Option(help="How many made-up rows.")] = 10_000,
    directory: Annotated[
        Path, typer.Option("--directory", "-d", help="A new directory to put it in.")
    ] = Path("sandbox"),
) -> None:
    """Made-up rows with the table's schema, and a policy for them: nothing real is opened.

    Write and debug questions and notebooks there; then run them once on the real table.
    """
    from sulq.errors import InvalidQuery
    from sulq.sandbox import write_dummies

    table = named(session.policy, name)
    if directory.exists():
        raise InvalidQuery(f"{directory} exists; name a new directory with -d")
    made = write_dummies(table, directory, rows)
    if session.as_json:
        show_json({"policy": made, "rows": rows, "table": table.name})
        return
    print_note(
        f"{rows:,} made-up rows of {table.name} in {directory}; every row is marked sulq_dummy"
    )
    print(f"sulq publish {table.name} --yes --policy {made}")
    print(f"sulq ask {table.name} count --policy {made}")
