"""A table as it was before an amendment: the same rows, under the facts that held then."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

from sulq.accounting.calibration import calibrate
from sulq.engines.engine import open_engine
from sulq.errors import Refused
from sulq.ledger.changes import Amended
from sulq.ledger.journal import Journal
from sulq.schema.columns import Schema
from sulq.schema.promise import Promise

if TYPE_CHECKING:
    from sulq.database.database import Database


class Until:
    """A ledger in which what was answered before an event still stands."""

    def __init__(self, ledger: Journal, seq: int) -> None:
        self._ledger, self._seq = ledger, seq

    def stands(self, seq: int) -> bool:
        return seq < self._seq

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


def as_it_was(database: Database, before: Amended, engines: ExitStack) -> Database:
    """For binding and reading alone; its engine is closed with `engines`."""
    if database._source is None:
        raise Refused(
            "this table was amended, and its rows came from a frame: open it from its file, so that"
            " they can be read as they were declared before"
        )
    schema = Schema.from_json(json.loads(before.facts["schema"]))
    promise = Promise.from_json(json.loads(before.facts["promise"]))
    engine = open_engine(database._source, schema)
    engines.callback(engine.close)
    if engine.fingerprint() != database.engine.fingerprint():
        raise Refused("the source has other rows than were published; restore it, then replay")
    found = type(database)(
        schema,
        promise,
        engine,
        database.ledger,
        calibrate(promise),
        database._exactly.assumptions,
    )
    found._recall.ledger = cast("Journal", Until(database.ledger, before.seq))
    return found
