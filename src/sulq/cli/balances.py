"""The owner's view of people's own balances, where a table has them."""

from __future__ import annotations

import typer

from sulq.cli.options import TableName
from sulq.cli.screen import POLICY, Json, Policy, guarded, show, show_json, table, talk

PRIVATE = "this is an exact function of the rows, with no noise: for the owner's eyes alone"


def register(app: typer.Typer, role: str) -> None:
    app.command(rich_help_panel=role)(balances)


@guarded
def balances(name: TableName = None, policy: Policy = POLICY, as_json: Json = False) -> None:
    """How many people have spent how much of their own balance. For the owner's eyes alone."""
    from sulq.cli.opening import companions, database_of, named
    from sulq.database.reading import spent_by_people
    from sulq.errors import InvalidQuery, Refused
    from sulq.server.presence import serving

    source = named(policy, name)
    if not source.individual:
        raise InvalidQuery(f"{source.name} has one account for all: `sulq ledger` shows it")
    if (server := serving(source.ledger_path)) is not None:
        raise Refused(f"the server at {server.url} has the ledger of {source.name}: stop it first")
    with companions(source), database_of(source, source.ledger_path) as database:
        found = spent_by_people(database)
    ends = [f"{10 * bar} to {10 * (bar + 1)} %" for bar in range(len(found))]
    if as_json:
        show_json({"table": source.name, "private": PRIVATE, "people": found})
        return
    show(table(("spent", source.unit + "s" if source.unit == "row" else "people"), [
        (end, f"{people:,}") for end, people in zip(ends, found, strict=True)
    ]))  # fmt: skip
    talk(PRIVATE)
