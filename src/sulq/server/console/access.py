"""The Access page: who may ask, how much, until when. The owner's; shares live inside the table."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from datetime import time as clock
from fractions import Fraction
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from sulq.formatting import credits_word, left_text, price_text
from sulq.server.auth import grants
from sulq.server.auth.tokens import Role
from sulq.server.console.charts import LOW
from sulq.server.console.framework import Blank, Form, filled, fragment
from sulq.server.console.history import history, when_text
from sulq.server.errors import not_found
from sulq.server.executor import Owner
from sulq.server.routes import grants as routes_grants
from sulq.server.routes.grants import GrantChanges, NewGrant, Person
from sulq.server.service.session import TableSession

router = APIRouter(include_in_schema=False)
Act = Literal["revoke", "change", "renew"]


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
    table: str
    lines: tuple[GrantLine, ...]
    said: str
    left: Fraction
    granted: Fraction
    free: Fraction
    told: str = ""
    """What has just been done, for whoever listens; then the list has the focus."""


@dataclass(frozen=True, slots=True)
class SumView:
    """Where the table's credits would be after a grant."""

    kind: str
    bold: str
    more: str
    help: str
    button: str
    ready: bool


@dataclass(frozen=True, slots=True)
class FormView:
    """A new grant, empty or filled in again."""

    table: str
    closed: bool
    today: str
    sum: SumView
    name: str = ""
    role: str = Role.ANALYST
    credits: str = "10"


@dataclass(frozen=True, slots=True)
class PanelView:
    """What is about to become of one account: "revoke", "change" or "renew"."""

    act: str
    table: str
    line: GrantLine
    back: str
    form: FormView


@dataclass(frozen=True, slots=True)
class AccessView:
    table: str
    whole: str
    grants: GrantsView
    form: FormView


@dataclass(frozen=True, slots=True)
class GrantedView:
    """A token, on screen once."""

    name: str
    token: str
    link: str
    grants: GrantsView
    form: FormView


class ChangeForm(Form):
    """What is left empty stays as it is."""

    credits: Annotated[float | None, Blank] = None
    until: Annotated[date | None, Blank] = None
    rate: Annotated[str, Field(max_length=40)] = ""

    @property
    def given(self) -> dict[str, Any]:
        found: dict[str, Any] = {"credits": self.credits or None, "rate": self.rate.strip() or None}
        if self.until is not None:
            last = datetime.combine(self.until, clock.max)
            found["expires"] = int(last.timestamp())
        return {name: value for name, value in found.items() if value is not None}


class GrantForm(ChangeForm):
    name: Annotated[str, Field(max_length=64)] = ""
    role: Literal["analyst", "auditor"] = "analyst"


class RevokeForm(Form):
    reason: Annotated[str, Field(max_length=500)] = ""


def access_view(session: TableSession) -> AccessView:
    statement = session.database.statement().statement
    shown = grants_view(session)
    whole = left_text(statement.cap.credits_fraction)
    return AccessView(session.table, whole, shown, form_view(session, shown))


def form_view(session: TableSession, shown: GrantsView) -> FormView:
    closed = session.database.statement().statement.closed is not None
    today = f"{datetime.now(UTC).astimezone():%Y-%m-%d}"
    return FormView(session.table, closed, today, granted_sum(shown, GrantForm(credits=10)))


def sum_view(session: TableSession, body: GrantForm) -> SumView:
    return granted_sum(grants_view(session), body)


def granted_sum(shown: GrantsView, body: GrantForm) -> SumView:
    """The sum in view: what is granted, what is asked for, what stays with the owner."""
    asks = body.role == "analyst"
    here = Fraction(repr(max(body.credits or 0, 0))) if asks else Fraction(0)
    free = shown.free - here
    over = free < 0
    many = "credit too many" if -free == 1 else "credits too many"
    one = "credit stays" if free == 1 else "credits stay"
    part = f"{left_text(here)} here, " if asks else ""
    return SumView(
        "warn" if over else "info",
        f"{price_text(-free)} {many}." if over else f"{left_text(free)} {one} ungranted.",
        f"{left_text(shown.left)} are left in the table: {left_text(shown.granted)} in granted"
        f" shares, {part}{left_text(max(free, Fraction(0)))} with you.",
        "More than is left to grant." if over else "",
        f"Grant {credits_word(here)}" if asks else "Make an auditor’s token",
        not over and bool(here or not asks),
    )


def panel_view(
    session: TableSession,
    name: str,
    act: Act,
) -> PanelView:
    shown = grants_view(session)
    found = [line for line in shown.lines if line.name == name]
    if not found:
        raise not_found("nobody of that name has a share or a token")
    form = form_view(session, shown)
    line = found[0]
    many = "credit it used stays" if line.spent == "1" else "credits it used stay"
    rest = "credit goes" if line.left == "1" else "credits go"
    back = (
        f"The {line.spent} {many} spent. Its {line.left or 0} unused {rest} back to the table’s"
        " free part."
    )
    return PanelView(act, session.table, line, back, replace(form, name=name, role=line.role))


def grants_view(session: TableSession) -> GrantsView:
    """Everybody with a share or a token for this table; no secrets."""
    database = session.database
    last = {event.analyst: event.at for event in history(database)[0] if event.asked}
    lines = tuple(
        _line(found, last.get(found["name"], 0))
        for found in grants.lines(database, session.table, session.service.access)
    )
    lines = tuple(sorted(lines, key=lambda line: not line.open))
    ended = sum(not line.open for line in lines)
    statement = database.statement()
    kept = statement.statement.granted_left.credits_fraction
    return GrantsView(
        session.table,
        lines,
        f"{len(lines) - ended} open, {ended} ended" if lines else "nobody yet",
        Fraction(statement.left),
        kept,
        database.remaining,
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
async def access(request: Request, session: Owner) -> Response:
    return await fragment(request, "access.html", access_view, session)


@router.post("/console/{table}/grants/sum")
async def summed(request: Request, session: Owner, body: GrantForm) -> Response:
    return await fragment(request, "access_parts.html#share", sum_view, session, body)


@router.get("/console/{table}/grants/{name}/{act}")
async def panel(
    request: Request,
    session: Owner,
    name: Person,
    act: Act,
) -> Response:
    return await fragment(request, "access_parts.html#panel", panel_view, session, name, act)


@router.post("/console/{table}/grants")
async def give(request: Request, session: Owner, body: GrantForm) -> Response:
    """As the API does it; the token is in this reply and nowhere else."""
    given = body.given if body.role == "analyst" else {**body.given, "credits": None}
    new = filled(NewGrant, name=body.name.strip(), role=body.role, **given)
    made = await routes_grants.granted(request, session, new)

    def view() -> GrantedView:
        shown = grants_view(session)
        form = form_view(session, shown)
        return GrantedView(new.name, made["token"], made["link"], shown, form)

    return await fragment(request, "access_parts.html#granted", view)


@router.post("/console/{table}/grants/{name}/change")
async def change(request: Request, session: Owner, name: Person, body: ChangeForm) -> Response:
    if body.given:
        await routes_grants.changed(request, session, name, filled(GrantChanges, **body.given))
    return await _done(request, session, f"{name} changed." if body.given else "")


@router.post("/console/{table}/grants/{name}/revoke")
async def revoke(request: Request, session: Owner, name: Person, body: RevokeForm) -> Response:
    done = await routes_grants.revoked(request, session, name, body.reason)
    back = left_text(Fraction(done["returned_exact"]))
    return await _done(request, session, f"{name} revoked. {back} credits are free again.")


async def _done(request: Request, session: TableSession, told: str) -> Response:
    def view() -> AccessView:
        found = access_view(session)
        return replace(found, grants=replace(found.grants, told=told))

    return await fragment(request, "access_parts.html#changed", view)
