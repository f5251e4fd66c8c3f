"""Whether a published table is what its policy says: for `sulq check`."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sulq.cli.opening import companions, database_of
from sulq.cli.screen import credits_text
from sulq.database.amendments import changes
from sulq.errors import Refused
from sulq.ledger.inspection import inspect, is_there
from sulq.ledger.statement import Statement
from sulq.policy import TablePolicy
from sulq.schema.columns import Schema
from sulq.schema.promise import Promise
from sulq.server.presence import serving


@dataclass(frozen=True, slots=True)
class Standing:
    """What the ledger says that the policy does not."""

    notes: tuple[str, ...] = ()
    refused: str = ""  # why no question would be answered as things are


def standing(table: TablePolicy) -> Standing:
    """Compare a policy with the ledger, if the table is published; changes nothing."""
    path = table.ledger_path
    found = inspect(path).statements.get(table.name) if is_there(path) else None
    if found is None or found.withdrawn is not None:
        table.check_grants()
        gone = () if found is None else (f"withdrawn unused ({found.withdrawn})",)
        return Standing(gone)
    notes = []
    if found.closed is not None:
        notes.append(f"closed for good ({found.closed}): nothing new is answered")
    now = found.versions[-1].budget
    if table.version_budget not in (None, now):
        may = "all that is left" if now is None else credits_text(now)
        notes.append(
            f"version_budget is for the next version of the data; the present one may spend {may}"
        )
    return Standing(tuple(notes), _differs(table, found) or _closed_to(table))


def _differs(table: TablePolicy, found: Statement) -> str:
    """Schema and promise, where the ledger has others."""
    schema = Schema.from_json(json.loads(found.facts["schema"]))
    promise = Promise.from_json(json.loads(found.facts["promise"]))
    refused = ""
    try:
        differ = changes(schema, table.schema(), promise, table.promise)
    except Refused as why:
        if found.unused:
            return (
                "the policy is not what the ledger has: nothing was asked yet, so `sulq amend`"
                " records any change, or write it as it was"
            )
        refused = f"the policy is not what the ledger has, and {why}; write it as it was"
    if refused or not differ:
        return refused
    listed = "; ".join(f"{one.what}: {one.was} there, {one.now} here" for one in differ)
    return (
        f"the policy is not what the ledger has ({listed}): `sulq amend` records it, or write it"
        " as it was"
    )


def _closed_to(table: TablePolicy) -> str:
    """Why the table does not open; a server that holds it has opened it."""
    if serving(table.ledger_path) is not None:
        return ""
    try:
        with companions(table), database_of(table, table.ledger_path):
            return ""
    except Refused as why:
        return str(why)
