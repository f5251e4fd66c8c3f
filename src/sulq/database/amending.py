"""The owner's changes to a published table: revoke, amend, close for good.

Each is one event of the ledger: docs/guides/changing-a-table.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sulq.accounting.calibration import calibrate
from sulq.accounting.losses import Loss
from sulq.accounting.pricing import check_askable, grid_bits
from sulq.database.amendments import changes, keeps, scale
from sulq.database.facts import most_rows, readable_again, table_facts
from sulq.database.reading import refuse_individual
from sulq.engines.engine import check_source, open_engine
from sulq.errors import InvalidQuery, Refused
from sulq.exact.release import check_assumptions
from sulq.ledger.changes import Amendment
from sulq.schema.columns import Schema
from sulq.schema.promise import Promise

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

    What is spent stays spent. `source` is needed where the table was opened from a frame.
    """
    refuse_individual(database, "an amendment")
    new_schema, new_promise = schema or database.schema, promise or database.promise
    if not isinstance(new_schema, Schema) or not isinstance(new_promise, Promise):
        raise InvalidQuery("amend takes a Schema and a Promise, or one of them")
    new_promise = new_promise.after(database.promise)
    found = changes(database.schema, new_schema, database.promise, new_promise)  # may refuse
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
        credits, delta = scale(database.calibration, calibration)
        ledger = database.ledger.amend(
            Amendment(
                {**database.ledger.header.facts, **table_facts(gridded, new_promise)},
                Loss.cap(calibration.credits, calibration.slack_cap),
                credits,
                delta,
                keeps(database.schema, gridded, database.calibration, calibration),
                reason,
            )
        )
    except BaseException:
        engine.close()
        raise
    found_again = type(database)(gridded, new_promise, engine, ledger, calibration, exactly)
    found_again._source = readable_again(rows)
    database.close()
    return found_again
