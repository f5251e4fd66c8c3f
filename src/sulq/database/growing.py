"""New rows for a published table, on the account it has: docs/guides/growth.md."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sulq.accounting.pricing import grid_bits
from sulq.database.facts import most_rows, readable_again, table_facts
from sulq.database.reading import refuse_individual
from sulq.engines.engine import Engine, open_engine
from sulq.errors import Refused
from sulq.ledger.growing import allowed, attach, grow, reads
from sulq.ledger.header import TableHeader
from sulq.ledger.journal import Journal
from sulq.ledger.register import note_rows, noted_rows
from sulq.ledger.statement import INDIVIDUAL
from sulq.ledger.versions import steps_of
from sulq.schema.promise import Numeric, Promise, exact_number

if TYPE_CHECKING:
    from sulq.database.database import Database


def grow_table(
    database: Database, source: Any, *, reason: str = "", budget: Numeric | None = None
) -> Database:
    """The same table with new rows, as a new version of its data; this object is closed.

    What is spent stays spent. Stored answers stay with the rows they were given on: none is
    repeated for the new ones, or combined with theirs. `budget`: the credits that this version may
    spend of what is left, so that something is left for the next; unsaid, as the one before.
    """
    steps = budget_of(budget)
    refuse_individual(database, "growth")
    terms, promise = database.calibration, database.promise
    engine = open_engine(source, database.schema)
    try:
        if engine.fingerprint() == database.engine.fingerprint():
            raise Refused("nothing has grown: these are the rows that the table has")
        rows = most_rows(database.schema, promise, engine)
        gridded = database.schema.on_grid(grid_bits(rows, terms))
        facts = {**database.ledger.header.facts, **table_facts(gridded, promise)}
        ledger = grow(database.ledger, facts, engine.fingerprint(), reason, steps)
    except BaseException:
        engine.close()
        raise
    assumptions = database._exactly.assumptions
    found = type(database)(gridded, promise, engine, ledger, terms, assumptions)
    found._source = readable_again(source)
    note_size(ledger, promise, engine)
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
    """Give the table a new version, unless this is the data of its last one."""
    journal = attach(ledger, name)
    try:
        if not reads(journal, fingerprint):
            _check_same(journal.header, facts)
            grow(journal, facts, fingerprint, reason, budget).close()
        elif budget not in (None, allowed(journal._table)):
            raise Refused(
                f"nothing has grown, and the present version of {name!r} has another budget; a new"
                " one goes with new rows"
            )
    finally:
        journal.close()


def _check_same(header: TableHeader, facts: dict[str, str]) -> None:
    """Only rows are new: the grid may follow their number, nothing else may differ."""
    found = [
        name
        for name in sorted({*header.facts, *facts})
        if _but_grid(name, header.facts.get(name)) != _but_grid(name, facts.get(name))
    ]
    if found:
        raise Refused(
            f"table {header.name!r} has other {', '.join(found)}: what grows is its rows alone;"
            " open it as it was published, or `sulq amend` it first"
        )
    if INDIVIDUAL in header.facts:
        raise Refused("this table has individual accounting, whose balances belong to its rows")


def _but_grid(name: str, fact: str | None) -> object:
    if name != "schema" or fact is None:
        return fact
    return {key: value for key, value in json.loads(fact).items() if key != "bits"}
