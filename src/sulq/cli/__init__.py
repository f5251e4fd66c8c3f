"""The command line: one file per role. Nothing heavy is loaded before a command runs."""

from __future__ import annotations

from typing import Annotated

import typer

import sulq
from sulq.cli import (
    access,
    alert,
    ask,
    attack,
    audit,
    backup,
    beliefs,
    change,
    derive,
    exact,
    find,
    init,
    learn,
    ledger,
    partners,
    plan,
    publish,
    replica,
    sandbox,
    serve,
    suggest,
    verify,
)

app = typer.Typer(
    name="sulq",
    help="A private statistical database: noisy sums, exact prices, one promise for life.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"sulq {sulq.__version__}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A private statistical database: noisy sums, exact prices, one promise for life."""


for role, register in (
    ("Owner", init.register),
    ("Owner", publish.register),
    ("Owner", access.register),
    ("Owner", serve.register),
    ("Owner", backup.register),
    ("Owner", change.register),
    ("Owner", change.register_populations),
    ("Owner", replica.register),
    ("Owner", ledger.register_balances),
    ("Owner", partners.register),
    ("Owner", derive.register),
    ("Owner", beliefs.register),
    ("Owner", exact.register),
    ("Owner", suggest.register),
    ("Owner", attack.register),
    ("Analyst", ask.register),
    ("Analyst", plan.register),
    ("Analyst", find.register),
    ("Analyst", alert.register),
    ("Analyst", learn.register),
    ("Analyst", sandbox.register),
    ("Owner", audit.register),
    ("Auditor", ledger.register),
    ("Auditor", verify.register),
):
    register(app, role)


def main() -> None:
    """The `sulq` command."""
    app()
