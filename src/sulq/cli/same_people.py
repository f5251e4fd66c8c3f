"""The owner's commands for people who are in more than one release, or version of a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sulq.cli.changes import Reason, Yes, confirm, published
from sulq.cli.options import TableName
from sulq.cli.screen import (
    POLICY,
    Json,
    Policy,
    credits_text,
    facts,
    guarded,
    show,
    show_json,
    table,
    talk,
)

if TYPE_CHECKING:
    from sulq.database.amendments import Change
    from sulq.ledger.statement import PopulationLine, Statement
    from sulq.policy import TablePolicy

Budget = Annotated[
    str | None,
    typer.Option(
        help="Credits that the new version may spend of what is left; default: the policy's"
        " version_budget, else as many as the version before.",
        show_default=False,
    ),
]


def register(app: typer.Typer, role: str) -> None:
    app.command(rich_help_panel=role)(outside)
    app.command(rich_help_panel=role)(grow)


@guarded
def outside(
    name: TableName = None,
    credits: Annotated[
        str | None, typer.Option(help="What it cost, in credits of this table.", show_default=False)
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="The epsilon of that release.", show_default=False)
    ] = None,
    delta: Annotated[str, typer.Option(help="Its delta.")] = "0",
    reason: Reason = "",
    yes: Yes = False,
    policy: Policy = POLICY,
    as_json: Json = False,
) -> None:
    """Book a release about the same people that was made elsewhere, beyond the cap too."""
    from sulq.account import exceeded
    from sulq.cli.opening import named, opened
    from sulq.errors import InvalidQuery, Refused
    from sulq.server.presence import serving

    source = named(policy, name)
    if not reason.strip():
        raise InvalidQuery("say which release it was: --reason '...', kept in the ledger")
    if (server := serving(source.ledger_path)) is not None:
        raise Refused(
            f"the server at {server.url} has the ledger of {source.name}: stop it, book the"
            " release, and start it again"
        )
    said = f"{credits} credits" if epsilon is None else f"epsilon {epsilon}, delta {delta}"
    confirm(f"A release of {said} is booked on {source.name} for good.", yes)
    with opened(source) as database:
        booked = database.charge_outside(credits, epsilon=epsilon, delta=delta, reason=reason)
        statement = database.statement().statement
    beyond = exceeded(statement, source.promise)
    found: dict[str, Any] = {
        "table": source.name,
        "event": booked.seq,
        "credits": booked.loss.credits_fraction,
        "spent": statement.spent.credits_fraction,
        "left": statement.left,
        "exceeded": statement.exceeded.credits_fraction,
    }
    if as_json:
        total = None if beyond is None else {"epsilon": beyond.epsilon, "delta": beyond.delta}
        show_json({**found, "total": total})
        return
    lines = [
        ("table", source.name),
        ("outside", str(booked)),
        ("costs", credits_text(booked.loss.credits_fraction)),
        ("left", credits_text(statement.left)),
    ]
    if beyond is not None:
        lines.append(("promise exceeded", f"in all {beyond}"))
    show(facts(lines))


@guarded
def grow(
    name: TableName = None,
    reason: Reason = "",
    budget: Budget = None,
    yes: Yes = False,
    policy: Policy = POLICY,
    as_json: Json = False,
) -> None:
    """Record that a table got new rows, and what the policy says anew, in one step.

    New columns, tighter bounds, a larger promise. What was spent stays spent, on the same accounts.
    """
    from sulq.account import version_lines
    from sulq.cli.opening import database_of, named
    from sulq.errors import Refused
    from sulq.schema.promise import exact_number
    from sulq.server.presence import serving

    source = named(policy, name)
    if (server := serving(source.ledger_path)) is not None:
        raise Refused(
            f"the server at {server.url} reads {source.name} as it was: stop it, let it grow, and"
            " start it again"
        )
    changed = _changed(source)
    rows, before = _sizes(source)
    if before is not None and rows < before:
        talk("WARNING: there are fewer rows than before; what leaves a table is no growth")
    whom = "rows" if source.unit == "row" else "persons"
    was = "" if before is None else f"; there were {before:,}"
    if changed and not as_json:
        drawn = table(("what", "was", "now"), [(one.what, one.was, one.now) for one in changed])
        drawn.columns[1].justify = drawn.columns[2].justify = "left"
        show(drawn)
    confirm(
        f"The {rows:,} {whom} at {source.source} become a new version of {source.name}{was}."
        " Nobody gets a new budget, and answers on the old rows are not given again.",
        yes,
    )
    if budget is not None:
        source = replace(source, version_budget=exact_number("budget", budget))
    with database_of(source, source.ledger_path, grown_from=reason or True) as database:
        statement = database.statement().statement
        size = database.size
    found = {
        "table": source.name,
        "version": statement.version,
        "versions": len(statement.grown) + 1,
        "rows": size,
        "rows_before": before,
        "left": statement.left,
        "budget": statement.versions[-1].budget,
        "changes": [{"what": one.what, "was": one.was, "now": one.now} for one in changed],
    }
    if as_json:
        show_json(found)
        return
    lines = [
        ("table", source.name),
        ("version", f"{found['versions']} ({statement.version[:8]})"),
        ("left", credits_text(statement.left)),
        *(("", said) for said in version_lines(statement)[1:]),
    ]
    if size is not None:
        lines.insert(2, (whom, f"{size:,}, public"))
    show(facts(lines))


def _changed(source: TablePolicy) -> tuple[Change, ...]:
    """What the policy says otherwise than the ledger; `Refused` where that cannot be amended."""
    import json

    from sulq.database.amendments import changes
    from sulq.schema.columns import Schema
    from sulq.schema.promise import Promise

    facts = published(source).facts
    schema = Schema.from_json(json.loads(facts["schema"]))
    promise = Promise.from_json(json.loads(facts["promise"]))
    return changes(schema, source.schema(), promise, source.promise)


def _sizes(source: TablePolicy) -> tuple[int, int | None]:
    """How many there are now, for the owner's eyes; and were, where that was public."""
    from sulq.engines.engine import open_engine
    from sulq.ledger.register import noted_rows

    found = published(source)
    engine = open_engine(source.rows, source.schema())
    try:
        rows = engine.size()
    finally:
        engine.close()
    return rows, noted_rows(found.ledger, found.table, found.data_version)


def versions_json(statement: Statement) -> list[dict[str, Any]]:
    """The versions of the data, for a program."""
    return [
        {
            "version": one.version,
            "spent": one.spent,
            "budget": one.budget,
            "newcomers_lost": one.newcomers,
            "newcomers_outside": one.outside,
        }
        for one in statement.versions
    ]


def population_json(line: PopulationLine | None) -> dict[str, Any] | None:
    """The joint account, for a program."""
    from sulq.account import joint_exceeded, joint_promise

    if line is None:
        return None
    beyond = joint_exceeded(line)
    return {
        "name": line.name,
        "promise": joint_promise(line).to_json(),
        "tables": line.tables,
        "persons": line.persons,
        "credits": line.cap.credits_fraction,
        "spent": line.spent.credits_fraction,
        "left": line.left,
        "exceeded": None if beyond is None else str(beyond),
    }
