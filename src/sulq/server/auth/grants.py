"""Shares and tokens together: what an owner gives, changes and takes back on one table.

The ledger records the share, the file of tokens who may come in. For the routes and for the
command line alike.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sulq.database import Database
from sulq.errors import InvalidQuery, Refused, SulqError
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.ledger.inspect import AnalystLine
from sulq.kernel.ledger.ledger import Ledger
from sulq.server.auth.rate_limit import Rate
from sulq.server.auth.tokens import Access, Role, check_name
from sulq.server.idempotency import Replies, ReplyKey
from sulq.server.service.books import event_lines
from sulq.server.service.catalog import id_of

RATE = Rate(600, "min")
"""Of an analyst's token, unless the owner says otherwise."""


@dataclass(frozen=True, slots=True)
class GrantTerms:
    """What is given: credits of the table, and how a token may be used."""

    role: Role = Role.ANALYST
    credits: Fraction | None = None
    expires: int | None = None
    rate: Rate | None = None
    token_id: str | None = None
    """Of a token that was given out: it is to carry this table too."""


def give(
    database: Database, table: str, access: Access, name: str, terms: GrantTerms
) -> tuple[str | None, dict[str, Any]]:
    """A new token, shown once; of an analyst with a share, which the ledger records first.

    None where a token that was given out carries the table from now on.
    """
    spelled = check_name(name)
    if terms.role == Role.MONITOR:
        raise InvalidQuery(
            "a monitor watches the whole server and reaches no table: who runs the server gives"
            " such a token, by `sulq grant NAME --role monitor` on its machine"
        )
    if terms.token_id is not None:
        if terms.expires is not None or terms.rate is not None:
            raise InvalidQuery("a token keeps its end and its rate: leave days and rate out")
        access.check_carries(terms.token_id, spelled, id_of(database), terms.role)
    if terms.role != Role.ANALYST:
        if terms.credits is not None:
            raise InvalidQuery(f"only an analyst has credits of their own, not an {terms.role}")
    elif spelled == Role.OWNER:
        raise Refused("the owner needs no grant; give the analyst a name of their own")
    elif terms.credits is None and not _has_share(database.ledger, spelled):
        raise InvalidQuery(
            f"{spelled!r} has no share of {table!r} yet: say how many credits, [TABLE] ANALYST"
            " CREDITS or --credits"
        )
    if terms.credits is not None:
        database.grant(spelled, terms.credits)
    rate, reach, token = terms.rate, {id_of(database): table}, None
    if terms.token_id is not None:
        access.carry(terms.token_id, spelled, reach, terms.role)
    else:
        rate = rate or (RATE if terms.role == Role.ANALYST else None)
        token = access.issue(spelled, terms.role, reach, terms.expires, rate)
    return token, line_of(database.ledger, table, access, spelled)


def give_monitor(access: Access, name: str, terms: GrantTerms) -> str:
    """Return a new token that watches the whole server and reaches no table."""
    if terms.credits is not None or terms.token_id is not None:
        raise InvalidQuery("a monitor has neither credits nor a table: leave both out")
    return access.issue(name, Role.MONITOR, {}, terms.expires, terms.rate or RATE)


@dataclass(frozen=True, slots=True)
class Given:
    """What a grant is known by, should it be sent again."""

    replies: Replies
    name: ReplyKey
    digest: bytes


def give_once(
    given: Given, database: Database, table: str, access: Access, name: str, terms: GrantTerms
) -> tuple[str | None, dict[str, Any]]:
    """As `give`, the share once for a key. Of the token only its id is kept: sent again, it is
    ended and another one takes its place."""
    kept = given.replies.begin(given.name, given.digest, database.ledger.head)
    if kept.again and (kept.body is not None or _granted_since(database, name, kept.head)):
        terms = replace(terms, credits=None)
    if kept.body is not None:
        access.end(kept.body.decode())
    try:
        token, line = give(database, table, access, name, terms)
    except SulqError:
        if not kept.again and not _granted_since(database, name, kept.head):
            given.replies.forget(given.name)
        raise
    caller = None if token is None else access.caller(token)
    given.replies.finish(given.name, b"" if caller is None else caller.token_id.encode())
    return token, line


def _granted_since(database: Database, name: str, head: int) -> bool:
    """Whether an attempt that was cut short has come as far as the books."""
    while events := event_lines(database, None, head, 1_000):
        if any(e["kind"] == "grant" and e.get("analyst") == check_name(name) for e in events):
            return True
        head = events[-1]["seq"]
    return False


def change(
    database: Database, table: str, access: Access, name: str, terms: GrantTerms
) -> dict[str, Any]:
    """More credits, another end or another rate; tokens stay what they are."""
    spelled = check_name(name)
    if terms.credits is not None and not _has_share(database.ledger, spelled):
        raise Refused(f"{spelled!r} has no share of {table!r} to add to; grant one first")
    met = access.change(spelled, id_of(database), expires=terms.expires, rate=terms.rate)
    if not met and (terms.expires is not None or terms.rate is not None):
        raise Refused(f"{spelled!r} has no token for {table!r} that is good; grant one first")
    if terms.credits is not None:
        database.grant(spelled, terms.credits)
    return line_of(database.ledger, table, access, spelled)


def take(ledger: Ledger, table: str, access: Access, name: str, reason: str = "") -> dict[str, Any]:
    """End the tokens for this table at once, then give back what the share has not spent.

    The ledger is enough: whoever loses access loses it while the rows are away too.
    """
    spelled = check_name(name)
    ended, shared = access.revoke(spelled, ledger.identity), _has_share(ledger, spelled)
    if not ended and not shared:
        raise Refused(f"{spelled!r} has neither a share of {table!r} nor a token for it")
    returned = Fraction(0)
    if shared:
        returned = max(Fraction(0), left_of(_share(ledger, spelled)))
        ledger.revoke(spelled, reason)
    found = line_of(ledger, table, access, spelled)
    return {**found, "tokens_ended": ended, **both("returned", returned)}


def end_tokens(ledger: str, table: str | None = None) -> int:
    """Of all of a ledger's tables, or of one: what came from a backup may hold tokens that were
    revoked since, and what was repaired or withdrawn is another table."""
    with closing(Access.open()) as access:
        return access.end_ledger(ledger, table)


def were_given(ledger: str, table: str) -> bool:
    """True if somebody beside owners was ever given a token for this table, on this machine."""
    with closing(Access.open()) as access:
        return any(
            line.role_at(reached) != Role.OWNER
            for line in access.list()
            for reached in line.reached(ledger, table)
        )


def lines(database: Database, table: str, access: Access) -> list[dict[str, Any]]:
    """Everybody with a share of the table or a token for it."""
    shares = [line.name for line in database.statement().statement.analysts if line.granted]
    held = [line.name for line in access.list() if id_of(database) in line.tables]
    names = sorted({*shares, *held})
    return [line_of(database.ledger, table, access, name) for name in names]


def line_of(ledger: Ledger, table: str, access: Access, name: str) -> dict[str, Any]:
    """One person: the share, and every token for this table without its secret."""
    share = _share(ledger, name)
    granted = spent = left = Fraction(0)
    if share is not None and share.granted is not None:
        granted, spent = share.granted.credits_fraction, share.spent.credits_fraction
        left = Fraction(0) if share.revoked is not None else left_of(share)
    return {
        "table": table,
        "name": name,
        **both("granted", granted),
        **both("spent", spent),
        **both("left", left),
        "revoked": share is not None and share.revoked is not None,
        "tokens": [
            line.to_json(only=ledger.identity)
            for line in access.list()
            if line.name == name and ledger.identity in line.tables
        ],
        **both("left_to_grant", ledger.remaining(OWNER).credits_fraction),
    }


def both(name: str, credits: Fraction) -> dict[str, Any]:
    """A number for people, and the exact one as text."""
    return {name: float(credits), f"{name}_exact": str(credits)}


def left_of(share: AnalystLine | None) -> Fraction:
    if share is None or share.granted is None:
        return Fraction(0)
    return share.granted.credits_fraction - share.spent.credits_fraction


def _share(ledger: Ledger, name: str) -> AnalystLine | None:
    found = ledger.statement().analysts
    return next((line for line in found if line.name == name), None)


def _has_share(ledger: Ledger, name: str) -> bool:
    share = _share(ledger, name)
    return share is not None and share.granted is not None and share.revoked is None
