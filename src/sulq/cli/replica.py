"""Another replica of a table whose ledger is on a server: give it the owner's key, or take it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sulq.cli.output import POLICY, Json, Policy, guarded, print_note, show_json

Table = Annotated[str | None, typer.Option("--table", "-t", help="Which table of the policy.")]


@guarded
def share(
    file: Annotated[Path, typer.Argument(help="A new file, for the owner's eyes alone.")],
    table: Table = None,
    policy: Policy = POLICY,
    as_json: Json = False,
) -> None:
    """Write the ledger's signing key and mark to a file, for another replica.

    Whoever has the file can sign in the owner's name: carry it over a safe way, then delete it.
    """
    from sulq.cli.context import named
    from sulq.kernel.ledger.shared import share_key

    ledger = share_key(named(policy, table).ledger_path, file)
    if as_json:
        show_json({"ledger": ledger, "file": str(file)})
    print_note(
        f"key and mark of ledger {ledger} are in {file}: take it to the replica, run `sulq join`"
    )
    print_note("there, and delete it in both places")


@guarded
def join(
    file: Annotated[Path, typer.Argument(help="What `sulq share-key` wrote.")],
    table: Table = None,
    policy: Policy = POLICY,
    as_json: Json = False,
) -> None:
    """Make this machine a replica: take key and mark of the ledger into the state directory."""
    from sulq.cli.context import named
    from sulq.kernel.ledger.shared import join as take

    ledger = take(named(policy, table).ledger_path, file)
    if as_json:
        show_json({"ledger": ledger})
    print_note(f"this is now a replica of ledger {ledger}; delete {file}")
