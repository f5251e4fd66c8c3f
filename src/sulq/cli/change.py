"""The owner's changes to a published table: amend, withdraw, grow, close, book outside releases."""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from dataclasses import asdict, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sulq.cli.context import LocalSession, TableName, command, database_of, named, opened, repair
from sulq.cli.output import key_values, print_note, promise_text, show, show_json, table
from sulq.errors import Refused
from sulq.formatting import credits_left, credits_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sulq.database.amend import Change
    from sulq.kernel.ledger.inspect import PopulationLine, Statement
    from sulq.kernel.schema.columns import Schema
    from sulq.kernel.schema.promise import Promise
    from sulq.policy import TablePolicy

Reason = Annotated[str, typer.Option(help="Kept in the ledger, where everybody reads it.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@command
def amend(
    session: LocalSession,
    name: TableName = None,
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Compare the policy with the ledger, and record what is new.

    A larger promise, new columns, tighter bounds. What is spent stays spent. Before anything was
    asked, anything may change: then all shares and tokens end.
    """
    from sulq.database.amend import declared_in
    from sulq.kernel.ledger.ledger import Ledger
    from sulq.kernel.ledger.transactions import STAMP_LOST

    source = named(session.policy, name)
    _check_not_served(source)
    before = published(source)
    schema, promise = declared_in(before.facts)
    found, unused = _changes(source, before, schema, promise)
    if unused:
        _repair(source, before, found, reason, yes, session.as_json)
        return
    if not found:
        if session.as_json:
            show_json({"table": source.name, "changes": []})
        print_note("nothing to amend: the policy says what the ledger has")
        return
    with closing(Ledger.attach(source.ledger_path, source.name)) as ledger:
        if ledger.recovered:  # said before anything is shown
            raise Refused(STAMP_LOST)
    report = _amendment(source, before, promise, found)
    if not session.as_json:
        _show_changes(found)
        _show_promises(source, promise, report)
    _confirm_report(
        report,
        "A promise is never taken back, and this is recorded for good.",
        yes,
        session.as_json,
    )
    with database_of(source, source.ledger_path, schema, promise) as database:
        amended = database.amend(source.schema(), source.promise, reason=reason)
        left = amended.remaining
        amended.close()
    print_note(f"amended {source.name}; the old policy does not open it any more")
    if session.as_json:
        show_json({**report, "amended": True, "left": left})


def _check_not_served(source: TablePolicy) -> None:
    """Raise if a server has the table open: it would go on under the old policy."""
    from sulq.server.local_control import serving

    if (server := serving(source.ledger_path)) is not None:
        raise Refused(
            f"the server at {server.url} serves {source.name} as it is: stop it, amend, and start"
            " it again with the new policy"
        )


def _changes(
    source: TablePolicy, before: Statement, schema: Schema, promise: Promise
) -> tuple[Sequence[Change], bool]:
    """Return how the policy differs from the ledger, and whether the table must be unused for it.

    A table that was used takes only what `changes` allows; `Refused` says what it does not take.
    """
    from sulq.database.amend import changes, differences

    declared = (schema, source.schema(), promise, source.promise.after(promise))
    other = _other_changes(source, before)
    try:
        found = changes(*declared)
        unused = bool(other) and before.unused
    except Refused:
        if not before.unused:
            raise
        unused = True
    return ((*differences(*declared), *other), True) if unused else (found, False)


def _amendment(
    source: TablePolicy, before: Statement, promise: Promise, found: Sequence[Change]
) -> dict[str, Any]:
    """Return the amendment as JSON: the changes, both promises, and what is spent of each."""
    from sulq.database.amend import scale
    from sulq.kernel.accounting.calibration import calibrate

    wanted = source.promise.after(promise)
    worth, _ = scale(calibrate(promise), calibrate(wanted))
    spent = before.spent.credits_fraction
    return {
        "table": source.name,
        "changes": [asdict(one) for one in found],
        "promise": {"was": promise.to_json(), "now": wanted.to_json()},
        "spent": {"was": spent, "now": spent * worth},
        "credits": {"was": promise.credits, "now": source.promise.credits},
    }


def _show_changes(found: Sequence[Change]) -> None:
    drawn = table(("what", "was", "now"), [(one.what, one.was, one.now) for one in found])
    drawn.columns[1].justify = drawn.columns[2].justify = "left"
    show(drawn)


def _show_promises(source: TablePolicy, promise: Promise, report: dict[str, Any]) -> None:
    spent = report["spent"]
    show(
        key_values(
            [
                ("promise was", promise_text(promise, source.unit)),
                ("promise now", promise_text(source.promise, source.unit)),
                ("spent was", _part(spent["was"], promise.credits)),
                ("spent now", _part(spent["now"], source.promise.credits)),
            ]
        )
    )


def _confirm_report(report: dict[str, Any], warning: str, yes: bool, as_json: bool) -> None:
    """Ask before a change; with --json, show the report and end unless --yes was given."""
    if as_json and not yes:
        show_json({**report, "amended": False})
        print_note("look, then add --yes; nothing was changed")
        raise typer.Exit(2)
    confirm(warning, yes)


def _other_changes(source: TablePolicy, before: Statement) -> list[Change]:
    """Where the policy differs beside schema and promise; only an unused table takes that."""
    from sulq.database.amend import Change, population_of

    was, now = population_of(before.facts), source.population
    found = []
    if was != now:
        found.append(Change("population", was.name if was else "none", now.name if now else "none"))
    exact = ("assumptions" in before.facts, source.exact is not None)
    for what, (old, new) in (
        ("individual", (before.individual, source.individual)),
        ("exact release", exact),
    ):
        if old != new:
            found.append(Change(what, "on" if old else "off", "on" if new else "off"))
    return found


def _repair(
    source: TablePolicy,
    before: Statement,
    found: Sequence[Change],
    reason: str,
    yes: bool,
    as_json: bool,
) -> None:
    """`amend` of a table that was never used: anything may change, all shares and tokens end."""
    from sulq.cli.check import review
    from sulq.database.amend import declared_in
    from sulq.database.facts import check_told
    from sulq.errors import InvalidQuery
    from sulq.server.auth.grants import end_tokens, were_given

    looked = review(source)  # as before publishing: this is a publication anew
    if looked.advice.faults:
        if not as_json:
            looked.show()
        raise InvalidQuery(f"{source.name} is not ready: {'; '.join(looked.advice.faults)}")
    schema, promise = declared_in(before.facts)
    if promise.neighbours == "replace" and were_given(before.ledger, before.table):
        check_told(schema.unit, source.schema(), source.promise)
    report = {"table": source.name, "changes": [asdict(one) for one in found], "unused": True}
    if not as_json:
        _show_changes(found)
    warning = f"Nothing was asked of {source.name} yet. All its shares and tokens end."
    _confirm_report(report, warning, yes, as_json)
    ended = end_tokens(before.ledger, before.table)  # before: a crash between leaves none good
    repair(source, reason)
    print_note(
        f"amended {source.name}; {_many(ended)} ended: `sulq grant` gives shares and tokens anew"
    )
    if as_json:
        show_json({**report, "amended": True, "tokens_ended": ended})


@command
def withdraw(
    session: LocalSession,
    name: TableName = None,
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Take a table back before anything was asked of it. Its file may be published anew.

    Refused once a question was charged or answered, publicly too, or credits were reserved.
    """
    from sulq.database.amend import public_number
    from sulq.kernel.ledger.ledger import Ledger
    from sulq.server.auth.grants import end_tokens, were_given
    from sulq.server.local_control import serving

    source = named(session.policy, name)
    if (server := serving(source.ledger_path)) is not None:
        raise Refused(
            f"the server at {server.url} serves from the ledger of {source.name}: stop it, withdraw"
            " the table, and start it again"
        )
    before = published(source, withdrawn=True)
    if before.withdrawn is None:
        confirm(f"{source.name} is taken back; all its shares and tokens end.", yes)
    told, shown = public_number(before.facts), were_given(before.ledger, before.table)
    with closing(Ledger.attach(source.ledger_path, source.name)) as ledger:
        ended = ledger.withdraw(reason, told, shown=shown)
    tokens = end_tokens(before.ledger, before.table)
    if session.as_json:
        said = {"withdrawn": ended.at, "reason": ended.reason, "tokens_ended": tokens}
        show_json({"table": source.name, **said})
        return
    show(key_values([("table", source.name), ("withdrawn", str(ended))]))
    print_note(
        f"{_many(tokens)} ended; the file is free: change the policy, then `sulq publish` it anew"
    )


def _many(tokens: int) -> str:
    return "1 token" if tokens == 1 else f"{tokens} tokens"


@command
def close(
    session: LocalSession,
    name: TableName = None,
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Turn a table off for good. What was paid for stays readable by whoever paid."""
    from sulq.kernel.ledger.ledger import Ledger
    from sulq.server.local_control import serving

    source = named(session.policy, name)
    if (server := serving(source.ledger_path)) is not None:
        confirm(f"{source.name} will never answer anything new.", yes)
        server.request("POST", f"{server.path(source.name)}/close", {"reason": reason})
        if session.as_json:
            show_json({"table": source.name, "closed": int(time.time()), "reason": reason})
        print_note(f"closed {source.name} for good, through the server at {server.url}")
        return
    before = published(source)
    if before.closed is None:
        left = before.cap.credits_fraction - before.spent.credits_fraction
        confirm(
            f"{source.name} will never answer anything new; {credits_left(left)} are left.", yes
        )
        with closing(Ledger.attach(source.ledger_path, source.name)) as ledger:
            ledger.close_for_good(reason)
    closed = published(source).closed
    assert closed is not None  # noqa: S101
    if session.as_json:
        show_json({"table": source.name, "closed": closed.at, "reason": closed.reason})
        return
    show(key_values([("table", source.name), ("closed for good", str(closed))]))


def published(source: TablePolicy, *, withdrawn: bool = False) -> Statement:
    """What the ledger has of the table; `Refused` if it has nothing, or it was withdrawn."""
    from sulq.kernel.ledger.header import gone
    from sulq.kernel.ledger.inspect import inspect, is_there
    from sulq.kernel.ledger.state_dir import location_name

    if not is_there(source.ledger_path):
        raise Refused(f"{source.name} is not published yet: change the policy itself")
    found = inspect(source.ledger_path).statements.get(source.name)
    if found is None:
        raise Refused(
            f"the ledger {location_name(source.ledger_path)} has no table {source.name!r}"
        )
    if found.withdrawn is not None and not withdrawn:
        raise gone(found.withdrawn)
    return found


def _part(spent: Fraction, credits: int) -> str:
    return f"{credits_text(spent).split()[0]} of {credits_text(Fraction(credits))}"


def confirm(what: str, yes: bool) -> None:
    from sulq.errors import InvalidQuery

    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidQuery(f"{what} Look, then add --yes; nothing was changed")
    typer.confirm(f"{what} Go on?", abort=True, err=True)


# The owner's commands for people who are in more than one release, or version of a table.


Budget = Annotated[
    str | None,
    typer.Option(
        help="Credits that the new version may spend of what is left; default: the policy's"
        " version_budget, else as many as the version before.",
        show_default=False,
    ),
]


@command
def outside(
    session: LocalSession,
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
) -> None:
    """Book a release about the same people that was made elsewhere, beyond the cap too."""
    from sulq.account import exceeded
    from sulq.errors import InvalidQuery
    from sulq.server.local_control import serving

    source = named(session.policy, name)
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
    if session.as_json:
        total = None if beyond is None else {"epsilon": beyond.epsilon, "delta": beyond.delta}
        show_json({**found, "total": total})
        return
    lines = [
        ("table", source.name),
        ("outside", str(booked)),
        ("costs", credits_text(booked.loss.credits_fraction)),
        ("left", credits_left(statement.left)),
    ]
    if beyond is not None:
        lines.append(("promise exceeded", f"in all {beyond}"))
    show(key_values(lines))


@command
def grow(
    session: LocalSession,
    name: TableName = None,
    reason: Reason = "",
    budget: Budget = None,
    yes: Yes = False,
) -> None:
    """Record that a table got new rows, and what the policy says anew, in one step.

    New columns, tighter bounds, a larger promise. What was spent stays spent, on the same accounts.
    """
    from sulq.account import version_lines
    from sulq.kernel.schema.promise import exact_number
    from sulq.server.local_control import serving

    source = named(session.policy, name)
    if (server := serving(source.ledger_path)) is not None:
        raise Refused(
            f"the server at {server.url} reads {source.name} as it was: stop it, let it grow, and"
            " start it again"
        )
    changed = _changed(source)
    rows, before = _sizes(source)
    if before is not None and rows < before:
        print_note("WARNING: there are fewer rows than before; what leaves a table is no growth")
    whom = "rows" if source.unit == "row" else "persons"
    was = "" if before is None else f"; there were {before:,}"
    if changed and not session.as_json:
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
    if session.as_json:
        show_json(found)
        return
    lines = [
        ("table", source.name),
        ("version", f"{found['versions']} ({statement.version[:8]})"),
        ("left", credits_left(statement.left)),
        *(("", said) for said in version_lines(statement)[1:]),
    ]
    if size is not None:
        lines.insert(2, (whom, f"{size:,}, public"))
    show(key_values(lines))


def _changed(source: TablePolicy) -> tuple[Change, ...]:
    """What the policy says otherwise than the ledger; `Refused` where that cannot be amended."""

    from sulq.database.amend import changes
    from sulq.kernel.schema.promise import Promise
    from sulq.kernel.schema.study import schema_from_json

    facts = published(source).facts
    schema = schema_from_json(json.loads(facts["schema"]))
    promise = Promise.from_json(json.loads(facts["promise"]))
    return changes(schema, source.schema(), promise, source.promise)


def _sizes(source: TablePolicy) -> tuple[int, int | None]:
    """How many there are now, for the owner's eyes; and were, where that was public."""
    from sulq.kernel.engines.duckdb.quarantine import check_file
    from sulq.kernel.engines.engine import open_engine
    from sulq.kernel.ledger.register import noted_rows

    found = published(source)
    check_file(source.rows, source.schema())
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
