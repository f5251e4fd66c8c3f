"""The auditor's commands: read the ledger and check it, without ever seeing data."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import deque
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sulq.cli.change import population_json, versions_json
from sulq.cli.context import (
    LocalSession,
    ReadSession,
    RemoteSource,
    TableName,
    command,
    companions,
    database_of,
    named,
    show_remote_ledger,
)
from sulq.cli.output import (
    key_values,
    moment_text,
    print_note,
    promise_text,
    show,
    show_json,
    table,
)
from sulq.errors import Refused
from sulq.formatting import credits_left, credits_text
from sulq.kernel.accounting.loss import CREDIT
from sulq.kernel.ledger.accounts import from_json, loss_from_json
from sulq.kernel.ledger.inspect import verified_rows
from sulq.kernel.ledger.state_dir import is_shared
from sulq.kernel.ledger.stores.sqlite import SqliteStore
from sulq.kernel.ledger.stores.store import Row
from sulq.kernel.query.sql_text import question_text

if TYPE_CHECKING:
    from sulq.kernel.accounting.calibration import Meaning
    from sulq.kernel.ledger.header import Ended
    from sulq.kernel.ledger.inspect import AnalystLine, Statement
    from sulq.kernel.schema.promise import Promise

MOST_ACCOUNTS = 12


@command
def ledger(
    session: ReadSession,
    name: TableName = None,
    last: Annotated[int, typer.Option(min=0, help="How many questions to list.")] = 10,
    export: Annotated[Path | None, typer.Option(hidden=True)] = None,
    redact: Annotated[bool, typer.Option(hidden=True)] = False,
    whose: Annotated[str | None, typer.Option("--for", hidden=True)] = None,
) -> None:
    """The statement: spent, left, per analyst and stratum, and what the promise means.

    Works while another process holds the ledger.
    """
    import json

    from sulq.errors import InvalidQuery, Refused
    from sulq.kernel.accounting.calibration import calibrate, meaning
    from sulq.kernel.ledger.inspect import inspect
    from sulq.kernel.schema.promise import Promise
    from sulq.kernel.schema.study import schema_from_json

    source = session.source(name)
    if isinstance(source, RemoteSource):
        show_remote_ledger(source, last, session.as_json)
        return
    if export is not None:
        _write_chain(source.ledger_path, source.name, export, redact, whose, session.as_json)
        return
    if redact or whose is not None:
        raise InvalidQuery("--redact and --for go with --export FILE")
    found = inspect(source.ledger_path)
    if source.name not in found.statements:
        raise Refused(f"the ledger has no table {source.name!r}; it has {list(found.statements)}")
    statement = found.statements[source.name]
    promise = Promise.from_json(json.loads(statement.facts["promise"]))
    means = meaning(calibrate(promise))
    questions = recent_questions(source.ledger_path, source.name, last, statement.individual)
    if session.as_json:
        show_json({**_statement_json(statement, promise, means), "last": questions})
        return
    unit = schema_from_json(json.loads(statement.facts["schema"])).unit
    show(key_values(_summary(statement, promise, unit, means)))
    if len({(line.spent, line.left) for line in statement.accounts}) > 1:
        print()
        show(table(("stratum, worst first", "spent", "left"), _strata(statement)))
        if len(statement.accounts) > MOST_ACCOUNTS:
            print(f"... and {len(statement.accounts) - MOST_ACCOUNTS} more strata")
    print()
    show(table(("analyst", "spent", "granted"), _analysts(statement)))
    if statement.reservations:
        print()
        show(table(("reserved by", "credits", "left", "since"), _reservations(statement)))
    if questions:
        print()
        listed = [
            (str(line["number"]), line["analyst"], line["credits_text"], line["sql"])
            for line in questions
        ]
        drawn = table(("entry", "analyst", "credits", "question"), listed)
        drawn.columns[1].justify = drawn.columns[3].justify = "left"
        show(drawn)


@command
def export(
    session: LocalSession,
    file: Annotated[
        Path, typer.Argument(help="A new file, for `sulq ledger verify --chain`.", exists=False)
    ],
    name: TableName = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Leave out noisy values, and who asked what.")
    ] = False,
    whose: Annotated[
        str | None,
        typer.Option("--for", metavar="ANALYST", help="Redact all but this name's events."),
    ] = None,
) -> None:
    """Write the chain of events to a file that anybody can verify."""
    source = named(session.policy, name)
    _write_chain(source.ledger_path, source.name, file, redact, whose, session.as_json)


def _write_chain(
    ledger: Path | str, name: str, file: Path, redact: bool, analyst: str | None, as_json: bool
) -> None:
    """The chain as JSON lines, in a file for the owner's eyes."""
    from sulq.errors import InvalidQuery
    from sulq.kernel.ledger.export import export
    from sulq.kernel.ledger.inspect import inspect, verified_rows

    if analyst is not None:
        found = inspect(ledger).statements.get(name)
        if analyst not in {line.name for line in ([] if found is None else found.analysts)}:
            raise InvalidQuery(f"--for: nobody called {analyst!r:.60} has a share of {name!r}")
    rows = verified_rows(ledger)
    hidden = redact or analyst is not None
    lines = export(rows, table=name, redact=hidden, analyst=analyst)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidQuery(f"{file} is there already; export to a new file") from None
    with os.fdopen(handle, "w", encoding="ascii") as written:
        written.writelines(f"{line}\n" for line in lines)
    head = rows[-1].hash.hex()
    if as_json:
        show_json({"chain": file, "events": len(rows), "head": head, "redacted": hidden})
        return
    show(key_values([("chain", str(file)), ("events", f"{len(rows):,}"), ("head", head)]))
    if not hidden:
        print_note(
            "note: it names every analyst, question and noisy answer; --redact leaves them out"
        )


def _strata(statement: Statement) -> list[tuple[str, str, str]]:
    return [
        (line.name, _credits(line.spent.credits_fraction), _credits(line.left.credits_fraction))
        for line in statement.accounts[:MOST_ACCOUNTS]
    ]


def _credits(credits: Any) -> str:
    return credits_text(credits).split()[0]


def _summary(
    statement: Statement, promise: Promise, unit: str, means: Meaning
) -> list[tuple[str, str]]:
    import json

    from sulq.account import BURNT, INDIVIDUALLY, joint_lines, version_lines
    from sulq.kernel.schema.promise import Promise

    spent, cap = statement.spent.credits_fraction, statement.cap.credits_fraction
    lines = [
        ("table", f"{statement.table} (version {statement.version[:8]})"),
        *_guarantee(statement, promise, unit, means),
        ("spent", f"{_credits(spent)} of {credits_text(cap)}"),
        ("left", "nothing: closed for good" if statement.closed else credits_left(statement.left)),
        ("questions", f"{statement.entries:,} charged, {statement.answered:,} answered"),
        ("chain", f"{statement.seq:,} events, head {statement.head}"),
    ]
    if len(statement.accounts) > 1:
        lines.insert(5, ("strata", f"{len(statement.accounts)}; spent is that of the worst"))
    if statement.closed is not None:
        lines.insert(1, ("closed for good", str(statement.closed)))
    if statement.withdrawn is not None:
        lines.insert(1, ("withdrawn unused", str(statement.withdrawn)))
    for before in statement.grown:
        lines.append((f"until event {before.seq}", f"version {before.version[:8]} of the data"))
    lines += [("versions", said) for said in version_lines(statement)]
    for line in statement.amended:
        was = promise_text(Promise.from_json(json.loads(line.facts["promise"])), unit)
        lines.append((f"until event {line.seq}", was))
    if statement.individual:
        lines.append(("people", INDIVIDUALLY))
    if statement.population is not None:
        lines += [
            ("population" if not at else "", said)
            for at, said in enumerate(joint_lines(statement.population))
        ]
    for one in statement.outside:
        lines.append(("outside", f"{credits_text(one.loss.credits_fraction)}, {one}"))
    if statement.recoveries:
        lines.append(("recoveries", str(statement.recoveries)))
    if statement.burnt:
        lines.append(("note", BURNT))
    return lines


def _guarantee(
    statement: Statement, promise: Promise, unit: str, means: Meaning
) -> list[tuple[str, str]]:
    from sulq.account import BEYOND, exceeded, released_terms, told_too
    from sulq.beliefs.confidence import USUAL_PRIOR, belief_up, moved, worst, worst_so_far
    from sulq.exact.terms import MAYBE_RELEASED, promised

    assumed = released_terms(statement)
    if assumed is not None:
        return [
            ("released", f"{statement.released} of the declared sums, under assumptions"),
            *_declared(statement),
            ("guarantee", promised(promise, assumed)),
            ("caps", f"divided by {statement.divisor}"),
        ]
    if statement.maybe_released:
        return [("guarantee", MAYBE_RELEASED)]
    whom = "row" if unit == "row" else "person"
    beyond = exceeded(statement, promise)
    if beyond is not None:
        return [
            ("promise", promise_text(promise, unit)),
            ("exceeded", f"{BEYOND} {beyond}"),
            *_declared(statement),
        ]
    spent, told = statement.spent.credits_fraction, float(statement.taken.delta)
    wide = means.tail if means.tail_any_belief is None else means.tail_any_belief
    believed = belief_up(moved(USUAL_PRIOR, float(means.epsilon)))
    return [
        ("promise", promise_text(promise, unit)),
        ("as (epsilon, delta)", f"({float(means.epsilon):.6g}, {float(means.delta):.3g})"),
        (
            "as a tail",
            f"confidence in anything about a {whom} rises by more than {float(means.epsilon):.6g}"
            f" (40 % to {believed} %) with probability at most {wide + told:.3g}; in one of two"
            f" guesses {means.tail + told:.3g}",
        ),
        ("beliefs", str(told_too(worst(promise), statement))),
        ("so far", str(told_too(worst_so_far(promise, spent), statement))),
        *_declared(statement),
    ]


def _analysts(statement: Statement) -> list[tuple[str, str, str]]:
    return [
        (
            line.name,
            _credits(line.spent.credits_fraction),
            _granted(line),
        )
        for line in statement.analysts
    ]


def _granted(line: AnalystLine) -> str:
    if line.revoked is not None:
        return "revoked"
    return "" if line.granted is None else _credits(line.granted.credits_fraction)


def _declared(statement: Statement) -> list[tuple[str, str]]:
    """What may be asked exactly, if anything."""
    from sulq.account import may_release
    from sulq.exact.terms import UNTIL_RELEASED
    from sulq.kernel.query.sql_text import question_text

    if not may_release(statement):
        return []
    batches = "; or ".join(", ".join(map(question_text, path)) for path in statement.menu)
    lines = [("may be exact", batches or "nothing is declared yet")]
    return lines if statement.released else [*lines, ("note", UNTIL_RELEASED)]


def _reservations(statement: Statement) -> list[tuple[str, str, str, str]]:
    """Open ones; of a process that is gone until the table is next opened."""
    return [
        (
            line.analyst,
            _credits(line.amount.credits_fraction),
            _credits(line.left.credits_fraction),
            moment_text(line.at, "datetime"),
        )
        for line in statement.reservations
    ]


def _guarantee_json(statement: Statement, promise: Promise, means: Meaning) -> dict[str, Any]:
    from sulq.account import exceeded, released_terms, told_too
    from sulq.answers.oracle import PRIVATE
    from sulq.beliefs.confidence import worst, worst_so_far
    from sulq.exact.terms import MAYBE_RELEASED, promised

    assumed = released_terms(statement)
    if assumed is not None:
        return {
            "released": statement.released,
            "guarantee": promised(promise, assumed),
            "may_be_exact": statement.menu,
        }
    if statement.maybe_released:
        return {"released": None, "guarantee": MAYBE_RELEASED}
    beyond = exceeded(statement, promise)
    if beyond is not None:
        return {
            "released": 0,
            "guarantee": f"{PRIVATE}, more than was promised",
            "epsilon": beyond.epsilon,
            "delta": means.delta if beyond.epsilon else beyond.delta,
        }
    spent = statement.spent.credits_fraction
    return {
        "released": 0,
        "guarantee": PRIVATE,
        "may_be_exact": statement.menu,
        "epsilon": means.epsilon,
        "delta": means.delta,
        "tail": means.tail + float(statement.taken.delta),
        "tail_any_belief": means.tail_any_belief,
        "belief": str(told_too(worst(promise), statement)),
        "belief_so_far_indicative": str(told_too(worst_so_far(promise, spent), statement)),
    }


def _statement_json(statement: Statement, promise: Promise, means: Meaning) -> dict[str, Any]:
    spent, cap = statement.spent.credits_fraction, statement.cap.credits_fraction
    return {
        "table": statement.table,
        "version": statement.version,
        "noise_calibrated_for" if statement.terms else "promise": promise.to_json(),
        **_guarantee_json(statement, promise, means),
        "credits": cap,
        "spent": spent,
        "left": statement.left,
        "exceeded": statement.exceeded.credits_fraction,
        "closed": _ended_json(statement.closed),
        "withdrawn": _ended_json(statement.withdrawn),
        "amended": [
            {"event": line.seq, "at": line.at, "reason": line.reason, "facts_before": line.facts}
            for line in statement.amended
        ],
        "versions": versions_json(statement),
        "individual": statement.individual,
        "versions_before": [
            {
                "version": before.version,
                "until": before.seq,
                "at": before.at,
                "reason": before.reason,
            }
            for before in statement.grown
        ],
        "population": population_json(statement.population),
        "outside": [
            {
                "event": one.seq,
                "at": one.at,
                "reason": one.reason,
                "epsilon": one.epsilon,
                "delta": one.delta,
                "credits": one.loss.credits_fraction,
            }
            for one in statement.outside
        ],
        "accounts": [
            {
                "name": line.name,
                "spent": line.spent.credits_fraction,
                "left": line.left.credits_fraction,
            }
            for line in statement.accounts
        ],
        "analysts": [
            {
                "name": line.name,
                "spent": line.spent.credits_fraction,
                "granted": None if line.granted is None else line.granted.credits_fraction,
                "revoked": _ended_json(line.revoked),
            }
            for line in statement.analysts
        ],
        "reservations": [
            {
                "number": line.number,
                "analyst": line.analyst,
                "credits": line.amount.credits_fraction,
                "left": line.left.credits_fraction,
                "since": line.at,
            }
            for line in statement.reservations
        ],
        "entries": statement.entries,
        "answered": statement.answered,
        "recoveries": statement.recoveries,
        "everything_burnt": statement.burnt,
        "seq": statement.seq,
        "head": statement.head,
        "public_key": statement.public_key,
    }


def _ended_json(ended: Ended | None) -> dict[str, Any] | None:
    return None if ended is None else {"at": ended.at, "reason": ended.reason}


# The last questions of a ledger, read from a private copy: the ledger may be in use.


LONGEST = 120


def recent_questions(
    path: Path | str, table: str, most: int, individual: bool = False
) -> list[dict[str, Any]]:
    """The newest charges, oldest first: who asked what, in canonical spelling, for how much.

    With individual accounting people pay by what they add; told is the most that one can."""
    rows = verified_rows(path) if is_shared(path) else _copied_rows(path)
    bodies = ((row.seq, json.loads(row.body)) for row in rows)
    charges = (
        _line(number, body, individual)
        for number, body in bodies
        if body["kind"] in ("charge", "release") and body["table"] == table
    )
    return list(deque(charges, maxlen=max(0, most)))


def _copied_rows(path: Path | str) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="sulq-") as private:  # mode 0700
        copy = Path(private) / "ledger"
        for end in ("", "-wal"):
            source = Path(f"{path}{end}")
            if source.exists():
                shutil.copyfile(source, f"{copy}{end}")
        try:
            store = SqliteStore(copy)
        except Refused:  # torn by the holder's writing; `inspect` has verified a whole one
            return []
        try:
            return list(store.rows())
        finally:
            store.close(tidy=False)


def _line(number: int, body: dict[str, Any], individual: bool) -> dict[str, Any]:
    most = max((part.loss.credits for part in from_json(body["charges"])), default=0)
    if individual:
        most = loss_from_json(body["share"]).credits
    credits = Fraction(most, CREDIT)
    return {
        "number": number,
        "analyst": body["analyst"],
        "credits": credits,
        "credits_text": credits_text(credits).split()[0],
        "question": body["question"],
        "sql": _short(question_text(body["question"])),
    }


def _short(text: str) -> str:
    """Matrices of a learner are long; the question is in the JSON and in the receipt whole."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


# The owner's view of people's own balances, where a table has them.


PRIVATE = "this is an exact function of the rows, with no noise: for the owner's eyes alone"


@command
def balances(session: LocalSession, name: TableName = None) -> None:
    """How many people have spent how much of their own balance. For the owner's eyes alone."""
    from sulq.errors import InvalidQuery, Refused
    from sulq.server.local_control import serving

    source = named(session.policy, name)
    if not source.individual:
        raise InvalidQuery(f"{source.name} has one account for all: `sulq ledger` shows it")
    if (server := serving(source.ledger_path)) is not None:
        raise Refused(f"the server at {server.url} has the ledger of {source.name}: stop it first")
    with companions(source), database_of(source, source.ledger_path) as database:
        found = database.spent_by_people()
    ends = [f"{10 * bar} to {10 * (bar + 1)} %" for bar in range(len(found))]
    if session.as_json:
        show_json({"table": source.name, "private": PRIVATE, "people": found})
        return
    show(
        table(
            ("spent", source.unit + "s" if source.unit == "row" else "people"),
            [(end, f"{people:,}") for end, people in zip(ends, found, strict=True)],
        )
    )
    print_note(PRIVATE)
