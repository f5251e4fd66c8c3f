"""The owner's changes to a published table: revoke, amend, close for good; withdraw an unused one.

Each is one event of the ledger: docs/guides/changing-a-table.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sulq.accounting.calibration import calibrate
from sulq.accounting.losses import Loss
from sulq.accounting.pricing import check_askable, grid_bits
from sulq.database.amendments import changes, differences, keeps, scale
from sulq.database.facts import most_rows, readable_again, table_facts
from sulq.database.populations import member_of, population_of
from sulq.database.reading import refuse_individual
from sulq.engines.engine import check_source, open_engine
from sulq.errors import InvalidQuery, Refused
from sulq.exact.release import check_assumptions
from sulq.ledger.changes import Amendment
from sulq.ledger.growing import Repair, attach, grow, reads
from sulq.ledger.header import TableHeader
from sulq.ledger.statement import INDIVIDUAL
from sulq.schema.columns import Schema
from sulq.schema.promise import Promise
from sulq.schema.strata import accounts

if TYPE_CHECKING:
    from sulq.database.database import Database


def revoke(database: Database, analyst: str, reason: str = "") -> None:
    """Take back what an analyst has not spent: it can be granted again. What was spent stays.

    The name gets nothing more, not even repeats, until a new grant.
    """
    database.ledger.revoke(analyst, reason)


def close_for_good(database: Database, reason: str = "") -> None:
    """Turn the table off, for ever: nothing new is answered, granted, reserved or compared.

    What was paid for stays readable by whoever paid, as a free repeat.
    """
    database.ledger.close_for_good(reason)


def amend(
    database: Database,
    schema: Schema | None = None,
    promise: Promise | None = None,
    *,
    source: Any = None,
    reason: str = "",
) -> Database:
    """The same table with a larger promise, new columns or tighter bounds; this one is closed.

    What is spent stays spent. `source` is needed where the table was opened from a frame. Before
    anything was asked schema and promise may change in any way; then every share ends.
    """
    new_schema, new_promise = schema or database.schema, promise or database.promise
    if not isinstance(new_schema, Schema) or not isinstance(new_promise, Promise):
        raise InvalidQuery("amend takes a Schema and a Promise, or one of them")
    new_promise = new_promise.after(database.promise)
    declared = (database.schema, new_schema, database.promise, new_promise)
    free = False
    try:
        refuse_individual(database, "an amendment")
        found = changes(*declared)
    except Refused:
        if not database.ledger.unused:
            raise
        free, found = True, differences(*declared)
    if not found:
        raise Refused("nothing to amend: schema and promise are what the ledger has")
    exactly = database._exactly.assumptions
    if exactly is not None:
        check_assumptions(exactly, new_schema, new_promise)
    calibration = calibrate(new_promise)
    check_askable(calibration)
    rows = source if source is not None else database._source
    if rows is None:
        raise InvalidQuery("this table was opened from a frame: give it again, amend(source=...)")
    check_source(database.engine)
    engine = open_engine(rows, new_schema)
    try:
        if engine.fingerprint() != database.engine.fingerprint():
            raise Refused("this source has other rows than the table was published with")
        gridded = new_schema.on_grid(
            grid_bits(most_rows(new_schema, new_promise, engine), calibration)
        )
        header, cap = database.ledger.header, Loss.cap(calibration.credits, calibration.slack_cap)
        facts = {**header.facts, **table_facts(gridded, new_promise)}
        if free:
            if INDIVIDUAL in header.facts:
                raise Refused(
                    "a table with individual accounting is repaired by `sulq amend`, or withdrawn"
                    " and published anew"
                )
            people, exact = population_of(header.facts), exactly is not None
            member, _ = member_of(people, calibration, gridded, individual=False, exactly=exact)
            own = tuple(accounts(gridded))
            wanted = replace(header, facts=facts, accounts=own, cap=cap, member=member)
            told = public_number(header.facts)

            def check(shown: bool) -> None:
                check_told(told if shown else None, new_schema, new_promise)

            ledger = database.ledger.repair(wanted, reason, check)
        else:
            credits, delta = scale(database.calibration, calibration)
            kept = keeps(database.schema, gridded, database.calibration, calibration)
            ledger = database.ledger.amend(Amendment(facts, cap, credits, delta, kept, reason))
    except BaseException:
        engine.close()
        raise
    found_again = type(database)(gridded, new_promise, engine, ledger, calibration, exactly)
    found_again._source = readable_again(rows)
    database.close()
    return found_again


def withdraw(database: Database, reason: str = "") -> None:
    """Take the table back before anything was asked: its rows may be published anew.

    `Refused` once a question was charged, reserved or answered, publicly too. This object is
    closed.
    """
    database.ledger.withdraw(reason, public_number(database.ledger.header.facts))
    database.close()


def repair_at(
    ledger: str | Path, wanted: TableHeader, fingerprint: str | None, reason: str
) -> None:
    """Give a table that was never used another header, and in the same step other rows if they
    have changed, or how they are read."""
    journal = attach(ledger, wanted.name)
    try:
        header = journal.header
        schema, promise = declared_in(wanted.facts)
        told = public_number(header.facts)

        def check(shown: bool) -> None:
            check_told(told if shown else None, schema, promise)

        fixed = replace(wanted, version=header.version)
        if reads(journal, fingerprint):
            journal.repair(fixed, reason, check).close()
        else:
            repair, named = Repair(fixed, reason, check), (wanted.facts, fingerprint, reason)
            grow(journal, *named, wanted.budget, repair=repair).close()
    finally:
        journal.close()


def declared_in(facts: Mapping[str, str]) -> tuple[Schema, Promise]:
    """Schema and promise as a ledger's facts have them."""
    schema, promise = (json.loads(facts[name]) for name in ("schema", "promise"))
    return Schema.from_json(schema), Promise.from_json(promise)


def public_number(facts: Mapping[str, str]) -> str | None:
    """What whoever has a share may read of an unused table, free: how many units it has.

    Under replace that number is public; the unit is what was counted.
    """
    schema, promise = declared_in(facts)
    return schema.unit if promise.neighbours == "replace" else None


def check_told(told: str | None, schema: Schema, promise: Promise) -> None:
    """`Refused` if a number that somebody may have read would be private: nothing takes it back."""
    if told is not None and (promise.neighbours, schema.unit) != ("replace", told):
        what = "rows" if told == "row" else f"different values of {told!r}"
        raise Refused(
            f"the number of {what} was public, and shares or tokens were given out, so somebody may"
            f" have read it; keep neighbours = 'replace' and the unit {told!r}"
        )
