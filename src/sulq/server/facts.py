"""Under which facts a table is asked: an amendment changes columns, bounds and prices."""

from __future__ import annotations

from typing import TypeVar

from sulq.database import Database
from sulq.server.problems import Problem
from sulq.wire.replies import Reply

R = TypeVar("R", bound=Reply)


def facts_of(database: Database) -> str:
    """A random id and how often the table was amended; it says nothing of any row."""
    return f"{database.ledger.header.version}.{database.ledger._generation}"


def check_facts(database: Database, given: str | None) -> None:
    """Refuse, free, what was made for other bounds: its answer would be read by them."""
    if given is not None and given != facts_of(database):
        raise Problem(
            409,
            "table_amended",
            "this table was amended, and the request was made for it as it was",
            "connect again, or GET schema, then ask; nothing was charged",
        )


def stamped(reply: R, database: Database) -> R:
    """The reply, and the facts that it is to be read by."""
    return reply.model_copy(update={"facts_id": facts_of(database)})
