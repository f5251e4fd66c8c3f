"""The frame of every page: tables, tabs, account, and how much is left."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup

from sulq.server.access import Caller, Role
from sulq.server.console.charts import gauge
from sulq.server.console.pages import Anybody, fragment
from sulq.server.service import Service
from sulq.shown import left_text

router = APIRouter(include_in_schema=False)
EVERYBODY = tuple(Role)
ASKERS = (Role.OWNER, Role.ANALYST)
TABS = (
    ("table", "Table", EVERYBODY),
    ("ask", "Ask", ASKERS),
    ("learn", "Learn", ASKERS),
    ("budget", "Budget", EVERYBODY),
    ("risk", "Risk", EVERYBODY),
    ("ledger", "Ledger", EVERYBODY),
    ("publish", "Publish", (Role.OWNER,)),
    ("access", "Access", (Role.OWNER,)),
)
STATES = {"open": ("Open", "ok"), "closed": ("Closed", "warn"), "draft": ("Draft", "")}


@dataclass(frozen=True, slots=True)
class Purse:
    """What a caller has, and what the table has, in credits."""

    own_left: Fraction
    own_whole: Fraction
    left: Fraction
    whole: Fraction
    shared: bool
    """True if the caller holds a share of the table; the owner and auditors see the whole."""

    @property
    def sentence(self) -> str:
        if self.shared:
            return f"{left_text(self.own_left)} of {left_text(self.own_whole)} credits left"
        return f"Table: {left_text(self.left)} of {left_text(self.whole)} credits left"


@dataclass(frozen=True, slots=True)
class Tab:
    name: str
    href: str
    current: bool
    apart: bool
    """True for the first of the owner's tabs: a line stands before it."""


@dataclass(frozen=True, slots=True)
class HeadView:
    table: str
    tables: tuple[tuple[str, str, bool], ...]
    state: str
    state_kind: str
    account: str
    role: str
    tabs: tuple[Tab, ...]
    prefix: str
    number: str
    rest: str
    gauge: Markup
    budget: str


@dataclass(frozen=True, slots=True)
class HomeView:
    owner: bool
    only: str
    tables: tuple[tuple[str, str, str], ...]


def purse_of(service: Service, caller: Caller, table: str) -> Purse:
    """Public prices only: nothing here depends on rows."""
    database = service.database(caller, table)
    statement = database.statement().statement
    whole = statement.cap.credits_fraction
    left = max(Fraction(0), whole - statement.accounts[0].spent.credits_fraction)
    if caller.role != Role.ANALYST:
        own = left if caller.role == Role.AUDITOR else database.remaining
        return Purse(own, whole, left, whole, False)
    lines = [line for line in statement.analysts if line.name == caller.name and line.granted]
    granted = lines[0].granted.credits_fraction if lines and lines[0].granted else Fraction(0)
    return Purse(database.left_for(caller.name), granted, left, whole, True)


def state_of(service: Service, caller: Caller, table: str) -> str:
    """ "open" or "closed", as the list of tables says."""
    found = {str(line["name"]): str(line["state"]) for line in service.listed(caller)}
    return found.get(table, "open")


def head_view(service: Service, caller: Caller, table: str, page: str) -> HeadView:
    names = [str(line["name"]) for line in service.listed(caller)]
    if table not in names:
        return HeadView("", _links(names, "", page), "", "", caller.name, str(caller.role),
                        (), "", "", "", Markup(""), "/")  # fmt: skip
    purse = purse_of(service, caller, table)
    left, whole = (purse.own_left, purse.own_whole) if purse.shared else (purse.left, purse.whole)
    state, kind = STATES.get(state_of(service, caller, table), ("Open", "ok"))
    tabs = [tab for tab in TABS if caller.role in tab[2]]
    return HeadView(
        table,
        _links(names, table, page),
        state,
        kind,
        caller.name,
        str(caller.role),
        tuple(
            Tab(said, f"/t/{table}/{name}", name == page, name == "publish")
            for name, said, _ in tabs
        ),
        "" if purse.shared else "Table: ",
        left_text(left),
        f"of {left_text(whole)} credits left",
        gauge(left, whole, purse.sentence),
        f"/t/{table}/budget",
    )  # fmt: skip


def _links(names: list[str], table: str, page: str) -> tuple[tuple[str, str, bool], ...]:
    return tuple((name, f"/t/{name}/{page or 'table'}", name == table) for name in names)


def home_view(service: Service, caller: Caller) -> HomeView:
    lines = service.listed(caller)
    only = f"/t/{lines[0]['name']}/table" if len(lines) == 1 else ""
    tables = tuple(
        (str(line["name"]), f"/t/{line['name']}/table",
         f"{left_text(Fraction(line['left_exact']))} credits left for you")
        for line in lines
    )  # fmt: skip
    return HomeView(caller.role == Role.OWNER, only, tables)


@router.get("/console/head")
async def head(request: Request, caller: Anybody, table: str = "", page: str = "") -> Response:
    return await fragment(request, "head.html", head_view, caller, table, page)


@router.get("/console/home")
async def home(request: Request, caller: Anybody) -> Response:
    return await fragment(request, "home.html", home_view, caller)
