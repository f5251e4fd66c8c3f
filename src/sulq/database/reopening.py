"""After a failed write: the ledger again, verified as at the start, without reading a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sulq.database.exactly import Exactly
from sulq.database.recall import Recall
from sulq.errors import Refused
from sulq.ledger.journal import Journal

if TYPE_CHECKING:
    from sulq.database.database import Database


def broken(database: Database) -> bool:
    """True if a write failed: nothing more is answered until the ledger is opened again."""
    ledger = database.ledger
    return ledger._forgotten.alive and not ledger._shared.usable


def reopen(database: Database) -> None:
    """Open the ledger again; what is on the disk decides what was charged. `Refused` if it cannot.

    Charge, compute, store, release: who was in between finds the charge in the chain, or pays.
    """
    old = database.ledger
    header, place = old.header, old._shared.place
    if place is None:
        raise Refused("a ledger in memory cannot be opened again")
    schema, promise, engine = database.schema, database.promise, database.engine
    journal = Journal.open(
        place,
        name=header.name,
        facts=header.facts,
        accounts=header.accounts,
        cap=header.cap,
        fingerprint=engine.fingerprint(),
        wait=1.0,
    )
    terms, assumed = database.calibration, database._exactly.assumptions
    database._recall = Recall(schema, promise.neighbours, engine, journal, terms)
    database._exactly = Exactly(schema, promise, engine, journal, terms, assumed)
    database.ledger = journal
    old.close()
