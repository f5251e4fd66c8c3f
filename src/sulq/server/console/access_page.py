"""The Access page: who may ask, how much, until when. The owner's; shares live inside the table."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from sulq.server import grants
from sulq.server.access import Caller, Role
from sulq.server.console.charts import LOW
from sulq.server.console.history import history, when_text
from sulq.server.console.pages import Owner, fragment
from sulq.server.service import Service
from sulq.shown import left_text, price_text

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class GrantLine:
    name: str
    role: str
    left: str
    of: str
    rate: str
    until: str
    last: str
    state: str
    state_kind: str
    open: bool
    spent: str


@dataclass(frozen=True, slots=True)
class GrantsView:
    lines: tuple[GrantLine, ...]
    said: str
    left: str
    granted: str
    free: str


@dataclass(frozen=True, slots=True)
class AccessView:
    table: str
    whole: str
    grants: GrantsView
    closed: bool
    today: str


def access_view(service: Service, caller: Caller, table: str) -> AccessView:
    database = service.database(caller, table)
    statement = database.statement().statement
    return AccessView(
        table,
        left_text(statement.cap.credits_fraction),
        grants_view(service, caller, table),
        statement.closed is not None,
        f"{datetime.now(UTC).astimezone():%Y-%m-%d}",
    )


def grants_view(service: Service, caller: Caller, table: str) -> GrantsView:
    """Everybody with a share or a token for this table; no secrets."""
    database = service.database(caller, table)
    last = {event.analyst: event.at for event in history(database)[0] if event.asked}
    lines = tuple(
        _line(found, last.get(found["name"], 0))
        for found in grants.lines(database, table, service.access)
    )
    lines = tuple(sorted(lines, key=lambda line: not line.open))
    ended = sum(not line.open for line in lines)
    statement = database.statement()
    kept = statement.statement.granted_left.credits_fraction
    return GrantsView(
        lines,
        f"{len(lines) - ended} open, {ended} ended" if lines else "nobody yet",
        f"{float(statement.left):.6g}",
        f"{float(kept):.6g}",
        f"{float(database.remaining):.6g}",
    )


def _line(found: dict[str, Any], last: int) -> GrantLine:
    tokens = found["tokens"]
    good = [token for token in tokens if token["state"] == "good"]
    newest = (good or tokens or [{}])[-1]
    role = str(newest.get("role", Role.ANALYST))
    left, granted = Fraction(found["left_exact"]), Fraction(found["granted_exact"])
    asks = role == Role.ANALYST
    state, kind = state_of(found["revoked"], bool(good), bool(tokens), left, granted, asks)
    until = newest.get("expires")
    return GrantLine(
        found["name"],
        role,
        left_text(left) if asks else "",
        left_text(granted) if asks else "",
        str(newest.get("rate") or "no limit"),
        "none" if until is None else _day(int(until)),
        when_text(last, clock=False) or "never",
        state,
        kind,
        state in ("open", "nearly used", "used up", "no token"),
        price_text(Fraction(found["spent_exact"])),
    )


def state_of(
    revoked: bool, good: bool, tokens: bool, left: Fraction, granted: Fraction, asks: bool
) -> tuple[str, str]:
    """(state, kind of chip)."""
    if revoked:
        return "revoked", ""
    if tokens and not good:
        return "ended", ""
    if asks and granted and not left:
        return "used up", "warn"
    if asks and left < LOW * granted:
        return "nearly used", "warn"
    return ("open", "ok") if good else ("no token", "")


def _day(at: int) -> str:
    local = datetime.fromtimestamp(min(at, 2**36), UTC).astimezone()
    year = f" {local.year}" if local.year != time.localtime().tm_year else ""
    return f"{local.day} {local:%b}{year}"


@router.get("/console/{table}/access")
async def access(request: Request, table: str, caller: Owner) -> Response:
    return await fragment(request, "access.html", access_view, caller, table)


@router.get("/console/{table}/grants")
async def listed(request: Request, table: str, caller: Owner) -> Response:
    return await fragment(request, "grants.html", grants_view, caller, table)
