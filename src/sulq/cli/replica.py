"""Another replica of a table whose ledger is on a server: give it the owner's key, or take it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sulq.cli.context import LocalSession, command, named
from sulq.cli.output import print_note, show_json

Table = Annotated[str | None, typer.Option("--table", "-t", help="Which table of the policy.")]


@command
def share(
    session: LocalSession,
    file: Annotated[Path, typer.Argument(help="A new file, for the owner's eyes alone.")],
    table: Table = None,
) -> None:
    """Write the ledger's signing key and mark to a file, for another replica.

    Whoever has the file can sign in the owner's name: carry it over a safe way, then delete it.
    """
    from sulq.kernel.ledger.shared import share_key

    ledger = share_key(named(session.policy, table).ledger_path, file)
    if session.as_json:
        show_json({"ledger": ledger, "file": str(file)})
    print_note(
        f"key and mark of ledger {ledger} are in {file}: take it to the replica, run `sulq join`"
    )
    print_note("there, and delete it in both places")


@command
def join(
    session: LocalSession,
    file: Annotated[Path, typer.Argument(help="What `sulq share-key` wrote.")],
    table: Table = None,
) -> None:
    """Make this machine a replica: take key and mark of the ledger into the state directory."""
    from sulq.kernel.ledger.shared import join as take

    ledger = take(named(session.policy, table).ledger_path, file)
    if session.as_json:
        show_json({"ledger": ledger})
    print_note(f"this is now a replica of ledger {ledger}; delete {file}")
