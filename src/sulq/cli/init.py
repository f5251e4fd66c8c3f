"""`sulq init`, `check`, `demo`; and a promise tried out first: `explain-noise`, `sandbox`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sulq.cli.context import LocalSession, TableName, command, exact_outlook, named, several
from sulq.cli.output import POLICY, Json, print_note, show, show_json, table

if TYPE_CHECKING:
    from sulq.policy import TablePolicy


@command
def demo(
    directory: Annotated[
        Path, typer.Option("--directory", "-d", help="Where the fictional register is made.")
    ] = Path(".sulq-demo"),
    people: Annotated[int, typer.Option(help="How many fictional people.")] = 200_000,
    serve: Annotated[
        bool, typer.Option("--serve/--no-serve", help="End with the console in the browser.")
    ] = True,
    host: Annotated[str, typer.Option(help="Where the console listens.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Its port.", show_default="8765, or one that is free"),
    ] = None,
    as_json: Json = False,
) -> None:
    """A tour: a fictional health register, published, asked, and served with its console."""
    from sulq.cli.demo import tour

    steps = tour(directory, people, quiet=as_json)
    if serve:
        from sulq.cli.demo import serve_demo

        steps.append(serve_demo(directory, host, port, quiet=as_json))
    if as_json:
        show_json(steps)


@command
def init(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="A Parquet, CSV or .xlsx file, or a table: postgresql://host/database/table."
            " Several files about the same people become one study.",
            show_default=False,
        ),
    ],
    from_data: Annotated[
        bool, typer.Option("--from-data", help="Propose bounds and values from the data.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The policy to write, or to add the table to.")
    ] = POLICY,
    name: Annotated[str | None, typer.Option(help="What to call the table.")] = None,
    names: Annotated[
        str | None,
        typer.Option(help="Names of the columns, with commas: for a CSV file without a header."),
    ] = None,
    sheet: Annotated[str | None, typer.Option(help="Which sheet of an .xlsx file.")] = None,
    smartnoise: Annotated[
        Path | None,
        typer.Option(
            help="Take the facts from SmartNoise SQL metadata (YAML).", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a policy to review. No value of the rows goes into it: bounds are yours to declare."""
    from sulq.errors import InvalidQuery
    from sulq.policy.files import add_table, check_room
    from sulq.policy.smartnoise import read_smartnoise
    from sulq.policy.survey import Survey, server_policy

    if len(files) > 1:
        if names or sheet or smartnoise:
            raise InvalidQuery("--names, --sheet and --smartnoise are for one file alone")
        _init_study(files, output, name or "study", from_data, as_json)
        return
    file = files[0]
    away = "://" in file
    called = name or re.sub(r"\W+", "_", Path(file).name.split(".")[0]) or "table"
    source = file if away else os.path.relpath(file, output.parent)
    ledger = f"{called}.ledger"
    check_room(output, called)  # before anything is read
    if smartnoise is not None:
        if from_data:
            raise InvalidQuery("give --smartnoise or --from-data, not both")
        drafted, notes = read_smartnoise(smartnoise, source, ledger, name)
        called = drafted.name
    elif away:
        if from_data:
            raise InvalidQuery("--from-data reads a file; of a table on a server only types are")
        drafted, notes = server_policy(file, name)
        called = drafted.name
    else:
        given = [word.strip() for word in names.split(",")] if names else []
        survey = Survey(file, names=given, sheet=sheet)
        try:
            drafted, notes = survey.policy(called, source, ledger, from_data=from_data)
        finally:
            survey.close()
    add_table(output, drafted, notes)
    if as_json:
        show_json(
            {
                "policy": output,
                "table": called,
                "not_askable_yet": drafted.unready,
                "notes": notes,
            }
        )
        return
    print_note(f"wrote table {called} to {output}: {len(drafted.columns)} columns to review")
    for note in notes.values():
        print_note(f"note: {note.replace(chr(10), ' ')}")
    if drafted.unit != "row":
        print_note(
            f"note: {drafted.unit} repeats. The policy protects all rows of one {drafted.unit};"
        )
        print_note(
            f"of each, at most {drafted.max_rows} rows count: `sulq check` shows what that keeps"
        )
    _next_steps(from_data)
    print(output)


def _init_study(
    files: list[str], output: Path, called: str, from_data: bool, as_json: bool
) -> None:
    """Write a study of several files to review."""
    from sulq.errors import InvalidQuery
    from sulq.policy.files import add_table, check_room
    from sulq.policy.survey import Survey, study_policy

    if any("://" in file for file in files):
        raise InvalidQuery(
            "a study is drafted from files: draft it from copies of a few rows, then write the"
            " addresses as the sources"
        )
    check_room(output, called)  # before anything is read
    surveys: dict[str, tuple[Survey, str]] = {}
    try:
        for file in files:
            table = re.sub(r"\W+", "_", Path(file).name.split(".")[0])
            if table in surveys:
                raise InvalidQuery(f"two files would both be table {table!r}; rename one")
            surveys[table] = (
                Survey(file, names=[], sheet=None),
                os.path.relpath(file, output.parent),
            )
        drafted, notes = study_policy(called, surveys, from_data=from_data)
    finally:
        for survey, _ in surveys.values():
            survey.close()
    add_table(output, drafted, notes)
    if as_json:
        show_json(
            {
                "policy": output,
                "table": called,
                "tables": [table.name for table in drafted.tables],
                "person": drafted.unit,
                "not_askable_yet": drafted.unready,
                "notes": notes,
            }
        )
        return
    events = ", ".join(table.name for table in drafted.events)
    whose = " or ".join(dict.fromkeys(table.unit for table in drafted.tables))
    print_note(f"wrote study {called} to {output}: {whose} says in each table whose a row is")
    print_note(f"{drafted.person_table} has one row for each person; {events} any number, of which")
    print_note("max_rows count in sums over rows: `sulq check` shows what that keeps")
    for note in notes.values():
        print_note(f"note: {note.replace(chr(10), ' ')}")
    _next_steps(from_data)
    print(output)


def _next_steps(from_data: bool) -> None:
    """What the owner does with a policy that was written."""
    if from_data:
        print_note(
            "bounds and values are proposed from the data; each stays closed until you remove"
        )
        print_note("proposed = true, which says: everybody may know this")
    else:
        print_note('write bounds and values for "?" from what everybody knows, not from the data;')
        print_note("remove the line of a column to hide it")
    print_note("then: sulq check")


@command
def check(session: LocalSession, name: TableName = None) -> None:
    """Advise the owner: who is protected, what is public, whether columns fit. Publishes nothing.

    Without a table, all tables of the policy. What it prints of rows is for the owner's eyes.
    """
    from sulq.errors import SulqError

    sources = several(session.policy, name)
    if len(sources) == 1:
        found, fine = _checked(sources[0], quiet=session.as_json)
        if session.as_json:
            show_json(found)
    else:
        tables: dict[str, object] = {}
        fine = True
        for source in sources:
            try:
                found, ready = _checked(source, quiet=session.as_json)
            except (SulqError, OSError) as error:  # one sick table does not stop the others
                found, ready = {"error": str(error), "kind": type(error).__name__}, False
                print_note(f"error: {source.name}: {error}")
            tables[source.name], fine = found, fine and ready
            if not session.as_json:
                print()
        if session.as_json:
            show_json({"ready": fine, "tables": tables})
    if not fine:
        raise typer.Exit(2)


def _checked(source: TablePolicy, *, quiet: bool) -> tuple[dict[str, object], bool]:
    """What is found of one table, and whether nothing keeps it from being published or asked."""
    from sulq.cli.check import PolicyDrift, review, standing

    found = review(source)
    ledger = standing(source) if found.askable else PolicyDrift()
    looked = found.askable and not ledger.refused
    exact = exact_outlook(source) if looked else {"on": source.exact is not None}
    if not quiet:
        found.show()
        for note in ledger.notes:
            print(f"note: {note}")
        if ledger.refused:
            print(f"WARNING: no question is answered: {ledger.refused}")
        if "text" in exact:
            print(f"exact release: {exact['text']}")
    said = {"notes": ledger.notes, "refused": ledger.refused or None}
    fine = found.ready and looked and exact.get("certified") is not False
    return {**found.to_json(), "exact": exact, "ledger": said}, fine


@command
def explain_noise(
    epsilon: Annotated[str, typer.Option(help="Lifetime epsilon.")] = "1",
    delta: Annotated[str, typer.Option(help="Lifetime delta.")] = "1e-6",
    queries: Annotated[
        int, typer.Option("--credits", "--queries", help="For how many credits.")
    ] = 100,
    rows: Annotated[int, typer.Option(help="Table size, for Dwork's rule.")] = 1_000_000,
    as_json: Json = False,
) -> None:
    """Every published amount of noise for one promise, side by side."""
    from sulq.beliefs.comparison import explain_noise as compared

    found = compared(epsilon, delta, queries, rows)
    if as_json:
        show_json(
            [
                {
                    "name": row.name,
                    "variance": row.variance,
                    "standard_deviation": row.standard_deviation,
                    "guarantees": row.guarantees,
                    "verdict": row.verdict,
                }
                for row in found
            ]
        )
        return
    lines = [
        (row.name, f"{row.variance:,.2f}", f"{row.standard_deviation:,.2f}", row.verdict)
        for row in found
    ]
    drawn = table(("noise", "variance R", "sigma", "verdict"), lines)
    drawn.columns[3].justify = "left"
    show(drawn)
    print_note(f"for {queries:,} credits at epsilon = {epsilon}, delta = {delta} in all")


# `sulq sandbox`: the same schema and promise over made-up rows, to try things out free of charge.


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
