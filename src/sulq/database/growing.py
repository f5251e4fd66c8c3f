"""New rows for a published table, on the account it has: docs/guides/growth.md."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sulq.accounting.calibration import calibrate
from sulq.accounting.losses import Loss
from sulq.accounting.pricing import check_askable, grid_bits
from sulq.database.amending import declared_in
from sulq.database.amendments import changes, scale
from sulq.database.facts import most_rows, readable_again, table_facts
from sulq.database.reading import refuse_individual
from sulq.engines.engine import Engine, open_engine
from sulq.errors import InvalidQuery, Refused
from sulq.ledger.changes import Amendment
from sulq.ledger.growing import allowed, attach, grow, reads
from sulq.ledger.header import TableHeader, as_published
from sulq.ledger.journal import Journal
from sulq.ledger.register import note_rows, noted_rows
from sulq.ledger.statement import INDIVIDUAL
from sulq.ledger.versions import steps_of
from sulq.schema.columns import Schema
from sulq.schema.promise import Numeric, Promise, exact_number

if TYPE_CHECKING:
    from sulq.database.database import Database


def grow_table(
    database: Database,
    source: Any,
    *,
    schema: Schema | None = None,
    promise: Promise | None = None,
    reason: str = "",
    budget: Numeric | None = None,
) -> Database:
    """The same table with new rows, as a new version of its data; this object is closed.

    A new `schema` or `promise` is recorded in the same step, if `amend` would take it.

    What is spent stays spent. Stored answers stay with the rows they were given on: none is
    repeated for the new ones, or combined with theirs. `budget`: the credits that this version may
    spend of what is left, so that something is left for the next; unsaid, as the one before.
    """
    steps = budget_of(budget)
    refuse_individual(database, "growth")
    new_schema, new_promise = schema or database.schema, promise or database.promise
    if not isinstance(new_schema, Schema) or not isinstance(new_promise, Promise):
        raise InvalidQuery("grow takes a source, and a Schema or a Promise if these change too")
    new_promise = new_promise.after(database.promise)
    terms = calibrate(new_promise)
    check_askable(terms)
    engine = open_engine(source, new_schema)
    try:
        if engine.fingerprint() == database.engine.fingerprint():
            raise Refused("nothing has grown: these are the rows that the table has")
        rows = most_rows(new_schema, new_promise, engine)
        gridded = new_schema.on_grid(grid_bits(rows, terms))
        header = database.ledger.header
        facts = {**header.facts, **table_facts(gridded, new_promise)}
        change = amendment(header, facts, reason)
        ledger = grow(database.ledger, facts, engine.fingerprint(), reason, steps, change)
    except BaseException:
        engine.close()
        raise
    assumptions = database._exactly.assumptions
    found = type(database)(gridded, new_promise, engine, ledger, terms, assumptions)
    found._source = readable_again(source)
    note_size(ledger, new_promise, engine)
    database.close()
    return found


def budget_of(credits: Numeric | None) -> int | None:
    """A version's budget as the ledger keeps it."""
    return steps_of(None if credits is None else exact_number("budget", credits))


def note_size(journal: Journal, promise: Promise, engine: Engine) -> None:
    """The number of rows where it is public, in the state directory, for the next `sulq grow`."""
    book, table = journal._book, journal._table
    if promise.neighbours != "replace" or book.file is None:
        return
    named = (book.history.ledger, table.header.name, table.data_version)
    with suppress(OSError):  # nobody needs it to ask
        if noted_rows(*named) is None:
            note_rows(*named, engine.size())


def grow_at(
    ledger: str | Path,
    name: str,
    facts: dict[str, str],
    fingerprint: str | None,
    reason: str,
    budget: int | None,
) -> None:
    """Give the table a new version, unless this is the data of its last one; what else is new in
    `facts` is amended in the same step."""
    journal = attach(ledger, name)
    try:
        if not reads(journal, fingerprint):
            facts = as_published(facts, journal.header.facts)
            change = amendment(journal.header, facts, reason)
            grow(journal, facts, fingerprint, reason, budget, change).close()
        elif budget not in (None, allowed(journal._table)):
            raise Refused(
                f"nothing has grown, and the present version of {name!r} has another budget; a new"
                " one goes with new rows"
            )
    finally:
        journal.close()


def amendment(header: TableHeader, facts: dict[str, str], reason: str) -> Amendment | None:
    """What a version with these facts amends beside its rows; None if only the grid follows them.

    `Refused` where an amendment would be. Answers are put away with the rows they were given on,
    so none is kept.
    """
    if INDIVIDUAL in header.facts:
        raise Refused("this table has individual accounting, whose balances belong to its rows")
    names = {*header.facts, *facts} - {"schema", "promise"}
    if found := sorted(name for name in names if header.facts.get(name) != facts.get(name)):
        raise Refused(
            f"table {header.name!r} has other {', '.join(found)}: beside its rows a table that"
            " grows may get new columns, tighter bounds and a larger promise, nothing else"
        )
    (old, before), (new, after) = declared_in(header.facts), declared_in(facts)
    if not changes(old, new, before, after):
        return None
    terms = calibrate(after)
    cap = Loss.cap(terms.credits, terms.slack_cap)
    return Amendment(facts, cap, *scale(calibrate(before), terms), keeps=False, reason=reason)
