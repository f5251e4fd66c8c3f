"""A table on its ledger: published, or found as it was published."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sulq.accounting.calibration import Calibration, calibrate
from sulq.accounting.losses import Loss
from sulq.accounting.pricing import check_askable, grid_bits
from sulq.database.amending import check_told, repair_at
from sulq.database.facts import facts_text, most_rows, name_of, table_facts
from sulq.database.growing import budget_of, grow_at, note_size
from sulq.database.populations import member_of
from sulq.database.reading import opened
from sulq.engines.engine import Engine
from sulq.errors import InvalidQuery
from sulq.exact.domain import Assumptions
from sulq.exact.release import check_assumptions
from sulq.exact.terms import assumptions_json
from sulq.ledger.header import TableHeader
from sulq.ledger.journal import Journal
from sulq.ledger.register import told_of
from sulq.schema.columns import Schema
from sulq.schema.population import Population
from sulq.schema.promise import Numeric, Promise
from sulq.schema.strata import accounts


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
    repaired: str | None = None  # the reason: an unused table goes by these facts from now on


@dataclass(frozen=True, slots=True)
class Opened:
    """The parts of a table that is open."""

    schema: Schema
    promise: Promise
    engine: Engine
    ledger: Journal
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
    member, shared = member_of(
        options.population, terms, schema, individual=individual, exactly=exactly is not None
    )
    shares = member is not None and member.persons
    engine, facts = opened(source, schema, terms, ledger, individual, shares)
    try:
        gridded = schema.on_grid(grid_bits(most_rows(schema, promise, engine), terms))
        said = table_facts(gridded, promise) | more | facts | shared
        called = name or name_of(source)
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
        journal = Journal.open(
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
        note_size(journal, promise, engine)
    except BaseException:
        engine.close()
        raise
    kept = Promise.from_json(json.loads(journal.header.facts["promise"]))
    if kept.lattice != promise.lattice:  # published before there was another, S2.6
        promise, terms = kept, calibrate(kept)
    return Opened(gridded, promise, engine, journal, terms)
