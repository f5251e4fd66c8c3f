"""The command line: one file per role. Nothing heavy is loaded before a command runs."""

from __future__ import annotations

from typing import Annotated

import typer

import sulq
from sulq.cli import (
    access,
    alert,
    analyst,
    attack,
    audit,
    auditor,
    backup,
    balances,
    beliefs,
    changes,
    derive,
    explain_exact,
    finding,
    learn,
    owner,
    partners,
    plan,
    publish,
    replicas,
    same_people,
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
    ("Owner", owner.register),
    ("Owner", publish.register),
    ("Owner", access.register),
    ("Owner", serve.register),
    ("Owner", backup.register),
    ("Owner", changes.register),
    ("Owner", same_people.register),
    ("Owner", replicas.register),
    ("Owner", balances.register),
    ("Owner", partners.register),
    ("Owner", derive.register),
    ("Owner", beliefs.register),
    ("Owner", explain_exact.register),
    ("Owner", suggest.register),
    ("Owner", attack.register),
    ("Analyst", analyst.register),
    ("Analyst", plan.register),
    ("Analyst", finding.register),
    ("Analyst", alert.register),
    ("Analyst", learn.register),
    ("Analyst", sandbox.register),
    ("Owner", audit.register),
    ("Auditor", auditor.register),
    ("Auditor", verify.register),
):
    register(app, role)


def main() -> None:
    """The `sulq` command."""
    app()
