"""What a caller may read of a ledger: their own entries in full, of others only the prices."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sulq.database import Database
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger.accounts import from_json, loss_from_json
from sulq.kernel.ledger.events import Charge
from sulq.kernel.ledger.inspect import AnalystLine
from sulq.kernel.ledger.stores.store import Row
from sulq.kernel.query.sql_text import question_text
from sulq.server.auth.tokens import Role
from sulq.server.errors import not_found
from sulq.server.service.catalog import facts_of
from sulq.server.service.session import TableSession
from sulq.wire import LedgerReply, SchemaReply, StatementReply

MOST_SCANNED = 5_000
"""Events that one request for answers may look through."""
ANOTHER = "another account"
PUBLIC = {
    *("ledger", "table", "declare", "amend", "version", "outside", "close", "repair", "withdraw")
}
"""Kinds of events that belong to nobody."""


def schema(session: TableSession) -> SchemaReply:
    """Return the public facts of the table, and the caller's credits left."""
    database, left = session.database, session.left
    return SchemaReply(
        table=session.table,
        facts_id=facts_of(database),
        facts=database.schema.to_json(),
        meanings=database.schema.meanings(),
        promise=database.promise.to_json(),
        size=database.size,
        who=database.schema.who,
        neighbours=database.promise.neighbours,
        remaining=float(left),
        remaining_exact=left,
        durable=database.durable,
    )


def statement(session: TableSession) -> StatementReply:
    """Return the totals of the table and the caller's share; every analyst's share only for owner
    and auditor."""
    full = session.caller.role != Role.ANALYST
    found = statement_reply(session.database, session.table, session.left, full=full)
    if session.caller.role != Role.OWNER:
        return found
    # a fact about running times: nobody else's
    return found.model_copy(update={"overruns": session.clock.overruns})


def ledger(session: TableSession, after: int = 0, limit: int = 500) -> LedgerReply:
    """Return a page of the chain: own entries in full, others as "another account"."""
    lines = event_lines(session.database, session.reader, after, limit)
    return LedgerReply(entries=lines, next=lines[-1]["seq"] if len(lines) == limit else None)


def answers(session: TableSession, after: int = 0, limit: int = 100) -> LedgerReply:
    """Return a page of the answers that the caller may read again for nothing."""
    lines, upto = answer_lines(session.database, session.reader, after, limit)
    return LedgerReply(entries=lines, next=upto)


def receipt(session: TableSession, number: int) -> dict[str, Any]:
    """Return a signed receipt; somebody else's is as if there were none."""
    found = session.database.receipt(number)
    if session.reader not in (None, found.body["analyst"]):
        raise not_found("there is no receipt of this number for this token")
    shown: dict[str, Any] = json.loads(found.to_json())
    return shown


def dummy(session: TableSession, rows: int = 100) -> dict[str, Any]:
    """Return made-up rows of this schema, by column; of a study, by table first."""
    made = session.database.sample_dummy(rows)
    if session.database.tables:
        return {name: _plain_columns(columns) for name, columns in made.items()}
    return _plain_columns(made)


def _plain_columns(made: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {name: [_plain(value) for value in values] for name, values in made.items()}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def event_lines(
    database: Database, analyst: str | None, after: int, most: int
) -> list[dict[str, Any]]:
    """Events of the chain after that number; `analyst` None: all of this table in full.

    Of events that are not the reader's, only number, kind, price and hash.
    """
    name = database.ledger.header.name
    return [_line(row, name, analyst) for row in database.ledger.rows(after, most)]


def _line(row: Row, table: str, analyst: str | None) -> dict[str, Any]:
    body = json.loads(row.body)
    line: dict[str, Any] = {"seq": row.seq, "kind": body["kind"], "hash": row.hash.hex()}
    if body.get("table", table) != table:
        return {**line, "kind": "another table"}
    who = body.get("analyst")
    line["at"] = body.get("at")
    if analyst is not None and who != analyst and body["kind"] not in PUBLIC:
        return {**line, **_prices(body), **({} if who is None else {"analyst": ANOTHER})}
    shown = {**line, **_prices(body), "body": row.body}
    if who is not None:
        shown["analyst"] = who
    if "question" in body:
        shown["question"] = question_text(body["question"])
    return shown


def _prices(body: Mapping[str, Any]) -> dict[str, Any]:
    """What an event charged: to the account that paid most, and to a share."""
    if body["kind"] not in ("charge", "release", "repeat"):
        return {}
    parts = from_json(body.get("charges", ()))
    paid = max((part.loss.credits_fraction for part in parts), default=Fraction(0))
    share: Loss = loss_from_json(body["share"])
    return {
        "credits": float(paid),
        "credits_exact": str(paid),
        "share": float(share.credits_fraction),
        "share_exact": str(share.credits_fraction),
    }


def answer_lines(
    database: Database, analyst: str | None, after: int, most: int
) -> tuple[list[dict[str, Any]], int | None]:
    """Answers that a caller has paid for, and after which number to go on; None at the end.

    Looks through so many events and no more: who has few answers waits no longer than others.
    """
    found: list[dict[str, Any]] = []
    until = after + MOST_SCANNED
    while after < until:
        page = database.ledger.entries_page(analyst, after)
        if not page:
            return found, None
        for seq, entry in page:
            after = seq
            if entry is None or not entry.answered or entry.values is None:
                continue
            found.append(_answered(entry))
            if len(found) == most:
                return found, after
    return found, after


def _answered(entry: Charge) -> dict[str, Any]:
    receipt = None if entry.receipt is None else json.loads(entry.receipt.to_json())
    return {
        "seq": entry.seq,
        "analyst": entry.analyst,
        "question": question_text(entry.question),
        "question_text": entry.question,
        "noise": entry.noise,
        "values": [str(value) for value in entry.values or ()],
        "receipt": receipt,
    }


def statement_reply(
    database: Database, table: str, mine: Fraction, *, full: bool
) -> StatementReply:
    """Spent and left; `full`: with every analyst's share."""
    found = database.statement()
    book = found.statement
    cap = book.cap.credits_fraction
    return StatementReply(
        table=table,
        credits=float(cap),
        credits_exact=cap,
        spent=float(found.spent),
        spent_exact=found.spent,
        left=float(found.left),
        left_exact=found.left,
        mine=float(mine),
        mine_exact=mine,
        guarantee=found.guarantee,
        questions=book.entries,
        answered=book.answered,
        ledger=book.ledger,
        seq=book.seq,
        head=book.head,
        public_key=book.public_key,
        text=str(found) if full else "",
        analysts=[_analyst_line(line) for line in book.analysts] if full else None,
    )


def _analyst_line(line: AnalystLine) -> dict[str, Any]:
    granted = None if line.granted is None else line.granted.credits_fraction
    spent = line.spent.credits_fraction
    return {
        "name": line.name,
        "granted": None if granted is None else float(granted),
        "granted_exact": None if granted is None else str(granted),
        "spent": float(spent),
        "spent_exact": str(spent),
    }
