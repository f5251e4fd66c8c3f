"""How pages are made and sent.

A page is added in four steps:
1. `x.py`: a frozen dataclass `XView` of finished texts, a pure function
   `x_view(session) -> XView`, and
       router = APIRouter()
       @router.get("/console/{table}/x")
       async def x(request: Request, session: Anybody) -> Response:
           return await fragment(request, "x.html", x_view, session)
   `fragment` runs the view in the thread pool, renders templates/x.html with it as `v`, and turns
   refusals into a card of the same status. `Anybody`, `Asker` and `Owner` are in `executor.py`.
2. `templates/x.html`: one root `<div data-page data-title="X · {{ v.table }} · sulq"
   data-module="{{ asset('x.js') }}">` (data-module only if there is script). No logic beyond loops
   and ifs on ready texts; no style attributes (CSP). parts.html has the macros note, icon, cell.
   Charts and gauges are Markup from `charts.py`. The classes are in static/sulq.css.
3. `static/x.js`: `export function start(root, app)`; app has
   send(path, {method, body, key, signal}) (bearer added), html(reply), parsed(html),
   made(kind, text, class), save(name, text, kind), say(text, loudly), refreshHead().
   It may return a function that stops what runs. Most pages need no script: forms and buttons
   say where they go, and the reply is one or more parts, each with the id of what it replaces:
   a macro in `templates/x_parts.html`, which the page imports too, sent as "x_parts.html#name".
   `data-send` on a form when it is submitted, `data-live` while it is filled in (the latest reply
   counts), `data-get` and `data-post` on a button, `data-again` every two seconds. On a button,
   `data-copy="#id"` copies that element's text, `data-report` opens the audit report,
   `data-point="#id"` leads to a field, `data-valid` waits until its form is filled in.
4. Add the router to ROUTERS in `__init__.py`, and the tab (if new) to TABS here.
The address of page x is /t/{table}/x (the shell), its content /console/{table}/x (the fragment).
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from jinja2.ext import Extension
from markupsafe import Markup
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from sulq.errors import SulqError
from sulq.formatting import left_text
from sulq.server.auth.tokens import AT_TABLES, Caller, Role, require
from sulq.server.console.charts import gauge
from sulq.server.errors import HttpProblem, not_found, problem_of
from sulq.server.executor import run_free, service_of
from sulq.server.service.session import Service, TableSession
from sulq.wire.bodies import Body

Whoever = Annotated[Caller, Depends(require(*AT_TABLES))]

Model = TypeVar("Model", bound=BaseModel)
Blank = BeforeValidator(lambda given: None if given == "" else given)
"""An empty field of a form is none."""
MEDIA = {
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "txt": "text/plain",
    "woff2": "font/woff2",
}
STATIC = files("sulq.server.console") / "static"
VERBATIM = re.compile(r"(?s)(<pre\b.*?</pre>)")

router = APIRouter(include_in_schema=False)


class Form(Body):
    """The fields of a form, which are texts whatever they say."""

    model_config = ConfigDict(strict=False)


def filled(kind: type[Model], **given: Any) -> Model:
    """What the API would have been sent, refused as it would be."""
    try:
        return kind(**given)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None


@cache
def static_file(name: str) -> bytes | None:
    """A file of ours; None for any other name."""
    known = {entry.name: entry for entry in STATIC.iterdir()}
    return known[name].read_bytes() if name in known else None


@cache
def asset(name: str) -> str:
    """The address of a static file: a changed file has another one."""
    body = static_file(name)
    if body is None:
        raise LookupError(f"no static file {name}")
    return f"/static/{name}?v={hashlib.sha256(body).hexdigest()[:12]}"


class Unindented(Extension):
    """Drop the indentation of a template, but for <pre>: nobody sees it, so it is not sent."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        parts = VERBATIM.split(source)
        parts[::2] = [re.sub(r"(?m)^[ \t]+", "", part) for part in parts[::2]]
        return "".join(parts)


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("sulq.server.console", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[Unindented],
    )
    made.globals["asset"] = asset
    return made


templates = _environment()


def rendered(template: str, view: object = None) -> str:
    """Render a template with its view as `v`; "x_parts.html#reply" calls the macro `reply`."""
    name, _, macro = template.partition("#")
    return _macro(name, macro)(view) if macro else templates.get_template(name).render(v=view)


def _macro(template: str, name: str) -> Callable[..., str]:
    found: Callable[..., str] = getattr(templates.get_template(template).module, name)
    return found


def note_of(kind: str, first: str, more: str = "") -> str:
    """Return a note: its kind, a first clause that stands alone, and one more sentence."""
    return _macro("parts.html", "note")(kind, first, more)


def go_to(address: str) -> HTMLResponse:
    """Tell the page to go to another address of the console."""
    return HTMLResponse(Markup('<i data-go="{}"></i>').format(address))


def page(
    template: str, view: object = None, status: int = 200, more: Mapping[str, str] | None = None
) -> HTMLResponse:
    """A template with its view."""
    return HTMLResponse(rendered(template, view), status, headers=dict(more or {}))


async def fragment(
    request: Request, template: str, view: Callable[..., object], *given: Any
) -> Response:
    """The view of a page, made off the event loop; a refusal keeps its status."""
    try:
        made = await run_free(request, view, *given)
    except HttpProblem as problem:
        return problem_card(problem)
    except SulqError as error:
        return problem_card(problem_of(error))
    return page(template, made)


def problem_card(problem: HttpProblem) -> HTMLResponse:
    """A refusal that is not about a question's text."""
    return page("parts.html#problem", problem, problem.status, problem.headers)


# --- documents: the frame only, no data, no token ---


@router.get("/")
@router.get("/t/{table}/{page_name}")
@router.get("/t/{table}/{page_name}/{part}")
async def document() -> Response:
    return page("shell.html")


@router.get("/enter")
async def enter() -> Response:
    return page("enter.html")


@cache
def squeezed(name: str) -> bytes:
    """A static file compressed once: public text, so its length tells nothing."""
    return gzip.compress(static_file(name) or b"", mtime=0)


@router.get("/static/{name}")
async def static(request: Request, name: str) -> Response:
    body = static_file(name)
    if body is None:
        raise not_found("there is no such file")
    kind = MEDIA.get(name.rpartition(".")[2], "application/octet-stream")
    kept = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if not name.endswith("woff2") and "gzip" in request.headers.get("accept-encoding", ""):
        body, kept["Content-Encoding"] = squeezed(name), "gzip"
    return Response(body, media_type=kind, headers=kept)


@router.get("/favicon.ico")
async def favicon(request: Request) -> Response:
    return await static(request, "favicon.svg")


# The frame of every page: tables, tabs, account, and how much is left.


shell_router = APIRouter(include_in_schema=False)
EVERYBODY = AT_TABLES
ASKERS = (Role.OWNER, Role.ANALYST)
TABS = (
    ("table", "Table", EVERYBODY),
    ("ask", "Ask", ASKERS),
    ("boards", "Boards", ASKERS),
    ("learn", "Learn", ASKERS),
    ("budget", "Budget", EVERYBODY),
    ("risk", "Risk", EVERYBODY),
    ("ledger", "Ledger", EVERYBODY),
    ("publish", "Publish", (Role.OWNER,)),
    ("access", "Access", (Role.OWNER,)),
)
ROOMS = {"board": "boards", "a": "ask"}
"""Pages that belong to the tab of another one."""
STATES = {"open": ("Open", "ok"), "closed": ("Closed", "warn"), "draft": ("Draft", "")}


@dataclass(frozen=True, slots=True)
class Balance:
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


def balance_of(session: TableSession) -> Balance:
    """Public prices only: nothing here depends on rows."""
    database = session.database
    statement = database.statement().statement
    whole = statement.cap.credits_fraction
    left = max(Fraction(0), whole - statement.accounts[0].spent.credits_fraction)
    if session.caller.role != Role.ANALYST:
        own = left if session.caller.role == Role.AUDITOR else database.remaining
        return Balance(own, whole, left, whole, False)
    name = session.caller.name
    lines = [line for line in statement.analysts if line.name == name and line.granted]
    granted = lines[0].granted.credits_fraction if lines and lines[0].granted else Fraction(0)
    return Balance(database.left_for(name), granted, left, whole, True)


def head_view(service: Service, caller: Caller, table: str, page: str) -> HeadView:
    lines = {str(line["name"]): line for line in service.listed(caller)}
    names, role = list(lines), ", ".join(sorted(caller.roles))
    if table not in lines:
        links = _links(names, "", page)
        return HeadView("", links, "", "", caller.name, role, (), "", "", "", Markup(""), "/")
    session = service.session(caller, table)
    purse, role = balance_of(session), str(session.caller.role)
    left, whole = (purse.own_left, purse.own_whole) if purse.shared else (purse.left, purse.whole)
    state, kind = STATES.get(str(lines[table]["state"]), ("Open", "ok"))
    tabs = [tab for tab in TABS if role in tab[2]]
    return HeadView(
        table,
        _links(names, table, page),
        state,
        kind,
        caller.name,
        role,
        tuple(
            Tab(said, f"/t/{table}/{name}", name == ROOMS.get(page, page), name == "publish")
            for name, said, _ in tabs
        ),
        "" if purse.shared else "Table: ",
        left_text(left),
        f"of {left_text(whole)} credits left",
        gauge(left, whole, purse.sentence),
        f"/t/{table}/budget",
    )


def _links(names: list[str], table: str, page: str) -> tuple[tuple[str, str, bool], ...]:
    return tuple((name, f"/t/{name}/{page or 'table'}", name == table) for name in names)


def home_view(service: Service, caller: Caller) -> HomeView:
    lines = service.listed(caller)
    only = f"/t/{lines[0]['name']}/table" if len(lines) == 1 else ""
    tables = tuple(
        (
            str(line["name"]),
            f"/t/{line['name']}/table",
            f"{left_text(Fraction(line['left_exact']))} credits left for you",
        )
        for line in lines
    )
    return HomeView(Role.OWNER in caller.roles, only, tables)


@shell_router.get("/console/head")
async def head(request: Request, caller: Whoever, table: str = "", page: str = "") -> Response:
    given = (service_of(request), caller, table, page)
    return await fragment(request, "head.html", head_view, *given)


@shell_router.get("/console/home")
async def home(request: Request, caller: Whoever) -> Response:
    return await fragment(request, "home.html", home_view, service_of(request), caller)
