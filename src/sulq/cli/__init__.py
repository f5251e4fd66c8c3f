"""The command line: one file per role. Nothing heavy is loaded before a command runs."""

from __future__ import annotations

import typer

from sulq.cli import analyst, auditor, owner

app = typer.Typer(
    name="sulq",
    help="A private statistical database: noisy sums, exact prices, one promise for life.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for role, commands in (("Owner", owner), ("Analyst", analyst), ("Auditor", auditor)):
    commands.register(app, role)


def main() -> None:
    """The `sulq` command."""
    app()
