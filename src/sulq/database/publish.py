"""A table on its ledger: published, or found as it was published."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sulq.database.amend import grow_at, member_of, repair_at
from sulq.database.facts import (
    budget_of,
    check_told,
    facts_text,
    most_rows,
    name_of,
    note_size,
    table_facts,
)
from sulq.database.individual import open_individual
from sulq.database.table import Table
from sulq.database.vault import known_vault, wants_vault, with_vault
from sulq.errors import InvalidQuery, Refused
from sulq.exact.domain import Assumptions
from sulq.exact.release import check_assumptions
from sulq.exact.terms import assumptions_json
from sulq.kernel.accounting.calibration import Calibration, calibrate
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.pricing import check_askable, grid_bits
from sulq.kernel.engines.duckdb.quarantine import check_file
from sulq.kernel.engines.engine import Engine, open_engine, open_study_engine
from sulq.kernel.ledger.header import TableHeader
from sulq.kernel.ledger.inspect import INDIVIDUAL
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.ledger.register import told_of
from sulq.kernel.schema.columns import Schema, accounts
from sulq.kernel.schema.promise import Numeric, Population, Promise
from sulq.kernel.schema.study import Study, refuse_study


@dataclass(frozen=True, slots=True)
class Options:
    """What an owner may turn on when a table is published."""

    exactly: Assumptions | None = None
    individual: bool = False
    population: Population | None = None
    grown_from: bool | str = False  # the rows are new ones; text says why
    version_budget: Numeric | None = None  # credits that this version of the data may spend
    publish: bool = False  # if the ledger does not have the table
    receipts: str | Path | None = None  # the ledger's receipts journal
    vault: bool | None = None  # clamped and rounded once, in a file; None: for large tables
    repaired: str | None = None  # the reason: an unused table goes by these facts from now on


@dataclass(frozen=True, slots=True)
class Opened:
    """The parts of a table that is open."""

    schema: Schema
    promise: Promise
    engine: Engine
    ledger: Ledger
    terms: Calibration


def open_table(
    source: Any,
    schema: Schema,
    promise: Promise,
    ledger: str | Path,
    name: str | None,
    options: Options,
) -> Opened:
    """Open a table on the ledger that has its history; publish it if that is wished."""
    if not isinstance(schema, Schema) or not isinstance(promise, Promise):
        raise InvalidQuery("open takes a source, a Schema, a Promise and a ledger")
    exactly, individual = options.exactly, options.individual
    more = {}
    _check_study(schema, options)
    if exactly is not None and individual:
        raise InvalidQuery("exact release pays from no balance: give exactly or individual")
    if exactly is not None:
        given = check_assumptions(exactly, schema, promise)
        more["assumptions"] = facts_text(assumptions_json(given))
    terms = calibrate(promise)
    check_askable(terms)
    budget = budget_of(options.version_budget)
    if budget is not None and individual:
        raise InvalidQuery("people pay from balances of their own here: leave version_budget out")
    member, shared = None, dict[str, str]()
    if (people := options.population) is not None:
        exact = exactly is not None
        member, shared = member_of(people, terms, schema, individual=individual, exactly=exact)
    shares = member is not None and member.persons
    if options.grown_from:  # new rows may be somebody else's: not in this process
        check_file(source, schema)
    called = name or ("study" if isinstance(schema, Study) else name_of(source))
    engine, facts = _rows_of(source, schema, terms, ledger, called, options, shares)
    try:
        gridded = schema.on_grid(grid_bits(most_rows(schema, promise, engine), terms))
        said = table_facts(gridded, promise) | more | facts | shared
        cap = Loss.cap(terms.credits, terms.slack_cap)
        if options.publish or options.repaired is not None:
            check_told(told_of(engine.fingerprint()), gridded, promise)
        if options.repaired is not None:
            parts = (said, tuple(accounts(gridded)), cap, member, budget)
            wanted = TableHeader(called, "", *parts)
            repair_at(ledger, wanted, engine.fingerprint(), options.repaired)
        if options.grown_from:
            reason = options.grown_from if isinstance(options.grown_from, str) else ""
            grow_at(ledger, called, said, engine.fingerprint(), reason, budget)
        journal = Ledger.open(
            ledger,
            name=called,
            facts=said,
            accounts=accounts(gridded),
            cap=cap,
            fingerprint=engine.fingerprint(),
            member=member,
            budget=budget,
            publish=options.publish,
            receipts=options.receipts,
        )
        engine = _settled(engine, source, gridded, promise, journal, options)
    except BaseException:
        engine.close()
        raise
    kept = Promise.from_json(json.loads(journal.header.facts["promise"]))
    if kept.lattice != promise.lattice:  # published before there was another, S2.6
        promise, terms = kept, calibrate(kept)
    return Opened(gridded, promise, engine, journal, terms)


def _rows_of(
    source: Any,
    schema: Schema,
    terms: Calibration,
    ledger: str | Path,
    called: str,
    options: Options,
    shares: bool,
) -> tuple[Engine, dict[str, str]]:
    """The engine, over the table's vault if it has one, and what the ledger pins of it."""
    individual = options.individual
    if isinstance(schema, Study):
        if individual:
            refuse_study(schema, "individual accounting")
        wants_vault(options.vault, source, schema, ledger, individual)  # which it cannot have
        public = terms.promise.neighbours == "replace"
        return open_study_engine(source, schema, size_is_public=public), {}
    if wants_vault(options.vault, source, schema, ledger, individual):
        known = known_vault(source, schema, ledger, called)
        if known is not None:
            return known, {}
    if not individual:
        return open_engine(source, schema), {}
    return open_individual(source, schema, terms, ledger, shares), {INDIVIDUAL: "true"}


def _settled(
    engine: Engine,
    source: Any,
    schema: Schema,
    promise: Promise,
    journal: Ledger,
    options: Options,
) -> Engine:
    """What questions are read with, now that the table is known to be published."""
    try:
        note_size(journal, promise, engine)
        if wants_vault(options.vault, source, schema, journal.place or "", options.individual):
            return with_vault(engine, source, schema, promise, journal, options.vault)
        return engine
    except BaseException:
        journal.close()
        raise


def _check_study(schema: Schema, options: Options) -> None:
    """`Refused` for what a study cannot have."""
    if options.exactly is not None:
        refuse_study(schema, "exact release")
    if options.grown_from:
        refuse_study(schema, "growth")


# After a failed write: the ledger again, verified as at the start, without reading a row.


def broken(database: Table) -> bool:
    """True if a write failed: nothing more is answered until the ledger is opened again."""
    return database.ledger.broken


def reopen(database: Table) -> None:
    """Open the ledger again; what is on the disk decides what was charged. `Refused` if it cannot.

    Charge, compute, store, release: who was in between finds the charge in the chain, or pays.
    """
    old = database.ledger
    header, place = old.header, old.place
    if place is None:
        raise Refused("a ledger in memory cannot be opened again")
    journal = Ledger.open(
        place,
        name=header.name,
        facts=header.facts,
        accounts=header.accounts,
        cap=header.cap,
        fingerprint=database.engine.fingerprint(),
        wait=1.0,
    )
    try:
        database.move_to(journal)
    except BaseException:
        journal.close()
        raise
    old.close()
