"""`sulq access`: grant a share with a token, take both back, list tokens, name other owners.

While a server holds the ledger, the commands go through it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from sulq.cli.context import (
    LocalSession,
    TableName,
    command,
    companions,
    database_of,
    named,
    opened,
)
from sulq.cli.output import Json, key_values, print_note, show, show_json, table
from sulq.formatting import credits_left, credits_text

if TYPE_CHECKING:
    from sulq.policy import TablePolicy
    from sulq.server.auth.grants import GrantTerms
    from sulq.server.auth.tokens import TokenLine

DAY = 86_400
Table = Annotated[str | None, typer.Option("--table", "-t", help="Which table of the policy.")]


@command
def grant(
    session: LocalSession,
    words: Annotated[
        list[str],
        typer.Argument(metavar="[TABLE] NAME [CREDITS]", show_default=False),
    ],
    credits: Annotated[
        str | None, typer.Option(help="An analyst's share; grants add up.", show_default=False)
    ] = None,
    role: Annotated[
        str, typer.Option(help="analyst, auditor, owner or monitor (no table: watches the server).")
    ] = "analyst",
    days: Annotated[
        float | None, typer.Option(help="How long the token is good.", show_default=False)
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help="Requests it may send: 60/min, 5/s.", show_default=False)
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Let this token carry the table too, by its id in `sulq tokens`.",
            show_default=False,
        ),
    ] = None,
    named: Table = None,
) -> None:
    """Give somebody a share of the lifetime budget and a token. The token is printed once."""
    from sulq.errors import InvalidQuery
    from sulq.server.auth.grants import give
    from sulq.server.auth.tokens import Access
    from sulq.server.local_control import serving

    if role == "monitor":
        _grant_monitor(
            session.as_json, words, replace(_terms(credits, role, days, rate), token_id=token)
        )
        return
    source, rest = _chosen(session.policy, words, named)
    said = rest[1] if len(rest) == 2 else credits
    if not 1 <= len(rest) <= 2 or (len(rest) == 2 and credits is not None):
        raise InvalidQuery(
            f"want [TABLE] ANALYST CREDITS, or NAME --credits, got {' '.join(words)!r:.60}"
        )
    terms, name = replace(_terms(said, role, days, rate), token_id=token), rest[0]
    found: dict[str, Any]
    if (server := serving(source.ledger_path)) is not None:
        body = {"name": name, "role": str(terms.role), **_changes(terms)}
        found = server.request("POST", f"{server.path(source.name)}/grants", body)
    else:
        with opened(source) as database, closing(Access.open()) as access:
            made, line = give(database, source.name, access, name, terms)
        found = {"token": made, "link": None, "role": str(terms.role), **line}
    if session.as_json:
        show_json({"analyst": found["name"], **found})
        return
    print_note(_told(found))
    if found["token"] is None:
        print_note(f"token {token} carries {found['table']} too, as {found['role']}")
        return
    print_note("the token, shown this once; only its hash is kept:")
    print(found["token"])
    if found["link"]:
        print_note(f"or a link to the console, good once within 10 minutes: {found['link']}")


def _grant_monitor(as_json: bool, words: list[str], terms: GrantTerms) -> None:
    """Give out a token that watches the servers of this machine; they share one file."""
    from sulq.errors import InvalidQuery
    from sulq.server.auth.grants import give_monitor
    from sulq.server.auth.tokens import Access

    if len(words) != 1:
        raise InvalidQuery(f"a monitor has a name and no table, got {' '.join(words)!r:.60}")
    with closing(Access.open()) as access:
        token = give_monitor(access, words[0], terms)
    if as_json:
        show_json({"name": words[0], "role": str(terms.role), "token": token})
        return
    print_note(f"{words[0]} may watch the servers of this machine: GET /v1/monitor, GET /metrics")
    print_note("the token, shown this once; only its hash is kept:")
    print(token)


@command
def revoke(
    session: LocalSession,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[TABLE] NAME", show_default=False)
    ] = None,
    reason: Annotated[str, typer.Option(help="For the ledger, where everybody reads it.")] = "",
    token: Annotated[
        str | None,
        typer.Option(metavar="ID", help="End this one token, by its id in `sulq tokens`."),
    ] = None,
    named: Table = None,
) -> None:
    """End somebody's tokens at once and take back the unspent share. What was spent stays."""
    from sulq.errors import InvalidQuery
    from sulq.kernel.ledger.ledger import Ledger
    from sulq.server.auth.grants import take
    from sulq.server.auth.tokens import Access
    from sulq.server.local_control import serving

    if token is not None:
        if words or reason or named is not None:
            raise InvalidQuery("--token ends one token and no share: leave name and reason out")
        _end_one(token, session.as_json)
        return
    source, rest = _chosen(session.policy, words or [], named)
    if len(rest) != 1:
        raise InvalidQuery(f"want [TABLE] NAME, or --token ID, got {' '.join(words or [])!r:.60}")
    if (server := serving(source.ledger_path)) is not None:
        path = f"{server.path(source.name)}/grants/{quote(rest[0], safe='')}"
        found = server.request("DELETE", path, reason=reason)
    else:
        access = Access.open()
        try:
            with closing(Ledger.attach(source.ledger_path, source.name)) as ledger:
                found = take(ledger, source.name, access, rest[0], reason)
        finally:
            access.close()
    if session.as_json:
        show_json({"analyst": found["name"], **found})
        return
    ended, back = found["tokens_ended"], credits_text(Fraction(found["returned_exact"]))
    many = "1 token" if ended == 1 else f"{ended} tokens"
    print_note(f"{found['name']} on {found['table']}: {many} ended, {back} free to grant again")


def _end_one(token_id: str, as_json: bool) -> None:
    """One token ends, wherever it is in use: servers read the same file. The share stays."""
    from sulq.errors import Refused
    from sulq.server.auth.tokens import Access

    access = Access.open()
    try:
        name = access.end(token_id)
    finally:
        access.close()
    if name is None:
        raise Refused(f"no token {token_id!r:.40} is good; `sulq tokens` lists them with their ids")
    if as_json:
        show_json({"token": token_id, "name": name, "tokens_ended": 1})
        return
    print_note(f"token {token_id} of {name} ended; the share and other tokens stay as they are")


@command
def tokens(as_json: Json = False) -> None:
    """Tokens that were given out on this machine, whom to, and until when. No secrets."""
    from sulq.server.auth.tokens import Access

    access = Access.open()
    try:
        found = access.list()
    finally:
        access.close()
    if as_json:
        show_json([line.to_json() for line in found])
        return
    rows = [
        (
            line.token_id,
            line.name,
            str(line.role),
            ", ".join(sorted(_reach(line))),
            line.state,
            _day(line.created),
            "no end" if line.expires is None else _day(line.expires),
            "" if line.rate is None else str(line.rate),
        )
        for line in found
    ]
    show(table(("id", "name", "role", "tables", "state", "given", "good until", "rate"), rows))


def _chosen(policy: Path, words: list[str], named: str | None) -> tuple[TablePolicy, list[str]]:
    from sulq.cli import context

    if named is not None:
        return context.named(policy, named), list(words)
    return context.chosen(policy, words)


def _terms(credits: str | None, role: str, days: float | None, rate: str | None) -> GrantTerms:
    from sulq.cli.question_text import credits_of
    from sulq.errors import InvalidQuery
    from sulq.server.auth.grants import GrantTerms
    from sulq.server.auth.rate_limit import Rate
    from sulq.server.auth.tokens import Role

    if role not in list(Role):
        raise InvalidQuery(f"got the role {role!r:.40}, wanted {', '.join(Role)}")
    if days is not None and not 0 < days <= 36_500:
        raise InvalidQuery(f"got {days:g} days, wanted more than 0 and at most 36,500")
    ends = None if days is None else int(time.time() + DAY * days)
    limit = None if rate is None else Rate.of(rate)
    return GrantTerms(Role(role), credits_of(credits), ends, limit)


def _changes(terms: GrantTerms) -> dict[str, Any]:
    said = {
        "credits": None if terms.credits is None else str(terms.credits),
        "expires": terms.expires,
        "rate": None if terms.rate is None else str(terms.rate),
        "token_id": terms.token_id,
    }
    return {name: value for name, value in said.items() if value is not None}


def _told(found: dict[str, Any]) -> str:
    name, role = found["name"], found["role"]
    if role != "analyst":
        return f"{name} may come in as {role} of {found['table']}"
    granted, left = Fraction(found["granted_exact"]), Fraction(found["left_to_grant_exact"])
    return (
        f"{name} has {credits_text(granted)} of {found['table']} in all,"
        f" {credits_text(Fraction(found['spent_exact']))} of them spent;"
        f" left to grant: {credits_left(left)}"
    )


def _reach(line: TokenLine) -> Iterator[str]:
    """Yield the tables that a token carries, with its role there where that is another one."""
    for identity, name in line.tables.items():
        role = line.role_at(identity)
        yield name if role == line.role else f"{name} ({role})"


def _day(moment: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(moment))


# Other owners: the keys with which shares are added securely.


@command
def partners(session: LocalSession, name: TableName = None) -> None:
    """The key that other owners need to add securely with a table, and those you have named."""
    from sulq.errors import Refused
    from sulq.server.local_control import serving

    source = named(session.policy, name)
    if (server := serving(source.ledger_path)) is not None:
        raise Refused(f"the server at {server.url} has the ledger of {source.name}: stop it first")
    with companions(source), database_of(source, source.ledger_path) as database:
        own = database.share_key
    known = source.partners
    keys = [] if known is None else list(known.keys)
    colluding = None if known is None else known.colluding
    if session.as_json:
        told = {"table": source.name, "key": own, "partners": keys, "colluding": colluding}
        show_json(told)
        return
    lines = [("table", source.name), ("key", own)]
    lines += [("partner", key) for key in keys]
    show(key_values([*lines, ("colluding", "" if colluding is None else str(colluding))]))
    if known is None:
        print_note(
            "give this key to the other owners yourself, not through an analyst; then write theirs"
            ' into the policy: partners = {keys = ["...", "..."], colluding = 1}'
        )
