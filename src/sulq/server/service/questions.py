"""Keys, the largest cells, alerts and declarations for a caller, through the one Service."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sulq.database.alerts import Alert
from sulq.errors import InvalidQuery
from sulq.kernel.query.statistics import count
from sulq.server.auth.tokens import Caller
from sulq.server.pacing import Delayed
from sulq.server.service.catalog import check_facts, with_version
from sulq.server.service.request import PreparedRequest
from sulq.server.service.reservations import LEAST
from sulq.server.service.service import check_price
from sulq.sql import parse_condition
from sulq.wire.discovery import (
    AlertBody,
    AlertLine,
    AlertReply,
    AlertsReply,
    CheckBody,
    CheckReply,
    DeclareBody,
    DeclaredReply,
    KeysBody,
    KeysQuoteReply,
    KeysReply,
    TopBody,
    TopReply,
    keys_quote_reply,
    keys_reply,
    menu_texts,
    ranked,
    receipt_json,
    rows_of,
    top_reply,
)

if TYPE_CHECKING:
    from sulq.server.service.service import Service


def quote_keys(service: Service, caller: Caller, table: str, body: KeysBody) -> KeysQuoteReply:
    """Price and threshold; free."""
    oracle = service.oracle(caller, table, body.reservation, body.facts_id)
    terms = _keys_terms(service, body)
    service.wide(caller, table, count(body.column, where=terms["where"]))  # refused here too
    found = oracle.quote_keys(body.column, **terms)
    return with_version(keys_quote_reply(found), service.database(caller, table))


def asked_keys(
    service: Service, caller: Caller, table: str, body: KeysBody, key: str
) -> PreparedRequest:
    """What is refused here is refused free."""
    oracle = service.oracle(caller, table, body.reservation, body.facts_id)
    terms = _keys_terms(service, body)
    wide = service.wide(caller, table, count(body.column, where=terms["where"]))
    quote = oracle.quote_keys(body.column, **terms)

    def work() -> KeysReply:
        if body.max_credits is not None:
            check_price(quote.credits, body.max_credits)
        return keys_reply(oracle.keys(body.column, key=key, **terms))

    return PreparedRequest([wide], work)


def _keys_terms(service: Service, body: KeysBody) -> dict[str, Any]:
    asked = None if body.question is None else service.question(body.question)
    where = parse_condition(body.where) if body.where is not None else rows_of(asked)
    return {"where": where, "credits": body.credits, "delta": body.delta, "most": body.most}


def asked_top(
    service: Service, caller: Caller, table: str, body: TopBody, key: str
) -> PreparedRequest:
    oracle = service.oracle(caller, table, body.reservation, body.facts_id)
    question = service.question(body.question)
    bound = service.bound(caller, table, question)
    cells, by = ranked(question)
    chosen = Fraction(body.k) if body.credits is None else body.credits
    due = chosen + service.database(caller, table).calibration.timing.credits_fraction

    def work() -> TopReply:
        if body.max_credits is not None:
            check_price(due, body.max_credits)
        terms: dict[str, Any] = {"by": by, "k": body.k, "edges": cells.edges, "key": key}
        return top_reply(oracle.top(cells.of, credits=body.credits, **terms), bound)

    return PreparedRequest([bound], work)


# --- alerts: kept, since a server is stopped and started -----------------------------------------


def asked_alert(
    service: Service, caller: Caller, table: str, body: AlertBody, key: str
) -> PreparedRequest:
    """Arming reads no row; it is charged, and so it is answered like everything that is."""
    _check_free(service, table)
    oracle = service.oracle(caller, table, body.reservation, body.facts_id)
    if body.credits < LEAST:
        raise InvalidQuery(f"an alert costs at least {float(LEAST):g} credits; got less")
    question = service.question(body.question)
    bound = service.bound(caller, table, question)

    def work() -> AlertReply:
        found = oracle.alert(
            question, above=body.above, firings=body.firings, credits=body.credits,
            keep=True, key=key,
        )  # fmt: skip
        paid = found.credits
        return AlertReply(**_line(found), credits=float(paid), credits_exact=paid)

    return PreparedRequest([bound], work)


def asked_check(
    service: Service, caller: Caller, table: str, number: int, body: CheckBody, key: str
) -> PreparedRequest:
    """Free, and it reads rows: on the clock, under a key."""
    _check_free(service, table)
    alert = service.oracle(caller, table, None, body.facts_id).kept_alert(number)
    question = None if body.question is None else service.question(body.question)
    bound = alert.asked if question is None else service.bound(caller, table, question)

    def work() -> CheckReply:
        fired = alert.check(question, key=key)
        return CheckReply(fired=fired, left=alert.left)

    return PreparedRequest([bound], work)


def alerts(service: Service, caller: Caller, table: str) -> AlertsReply:
    """The caller's own."""
    found = service.oracle(caller, table).alerts()
    return AlertsReply(alerts=[AlertLine(**_line(alert)) for alert in found])


def _line(alert: Alert) -> dict[str, Any]:
    return {
        "number": alert.number,
        "question": alert.question,
        "above": alert.above,
        "firings": alert.firings,
        "left": alert.left,
        "noise": [law.to_json() for law in alert.laws],
        "step": Fraction(alert.step),
        "receipt": receipt_json(alert.receipt),
        "terms": alert.terms,
    }


def _check_free(service: Service, table: str) -> None:
    """Checks are free, and many random delays average out: their time must be on a clock."""
    if isinstance(service.clock(table), Delayed):
        raise InvalidQuery(
            "this server hides running times behind a random delay, for which each reading of rows"
            " pays, and an alert's checks are free: each would have to cost as much as a count; ask"
            " for the count itself, or have the table served on a clock"
        )


# --- what may be asked exactly --------------------------------------------------------------------


def declaration(service: Service, caller: Caller, table: str) -> DeclaredReply:
    database = service.database(caller, table)
    declared = database.ledger.declaration
    return DeclaredReply(
        menu=menu_texts(database.declaration),
        terms="" if declared is None else declared.terms,
    )


def asked_declaration(
    service: Service, caller: Caller, table: str, body: DeclareBody, key: str
) -> PreparedRequest:
    """The owner's, and before anything is answered; no row is read."""
    database = service.database(caller, table)
    check_facts(database, body.facts_id)
    menu = [[service.question(one) for one in batch] for batch in body.menu]
    bounds = [service.bound(caller, table, one) for batch in menu for one in batch]

    def work() -> DeclaredReply:
        database.declare_exactly(*menu)
        return declaration(service, caller, table)

    return PreparedRequest(bounds, work)
