"""A real server, a real Chromium, and a page that notices what must not happen.

Skipped, with the reason, where Playwright or Chromium is missing.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.server.serving import serving
from tests.waiting import LONGEST

from sulq import Category, Database, Flag, Number, Promise, Schema
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Role
from sulq.server.limits import Settings
from sulq.server.middleware import Log
from sulq.server.service.catalog import Tables

FLAGS = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
FITS = """() => [document.documentElement.scrollWidth,
  [...document.querySelectorAll("main .button")].filter((button) => button.offsetParent
    && button.getBoundingClientRect().height < 44).map((button) => button.textContent)]"""
AXE = """(options) => axe.run(document, options).then((found) => found.violations.map(
  (each) => [each.id, each.nodes.map((node) => node.html.slice(0, 160))]))"""
CANARY = "canary-5be0c2"
"""In a hidden column: it must reach no page."""
ROWS = 200_000
SCHEMA = Schema(
    Number("age", 0, 110, step=1),
    Number("stay_days", 0, 60, step=1),
    Category("region", ["North", "Coast", "Valley"], public=True),
    Category("sex", ["F", "M", "X"]),
    Flag("smoker"),
)


@dataclass
class Site:
    """A server that runs, its tables, and a token for each account."""

    url: str
    access: Access
    database: Database
    tokens: dict[str, str]
    log: io.StringIO
    tables: Tables


@dataclass
class Visit:
    """A page of a browser, and what it did that it should not have."""

    page: Any
    site: Site
    wrong: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)

    def enter(self, who: str, page: str = "table") -> None:
        """With the token of an account, straight to a page: one load. Doors have their own test."""
        self.page.goto(f"{self.site.url}/healthz")
        self.page.evaluate(
            "(token) => sessionStorage.setItem('sulq.token', token)", self.site.tokens[who]
        )
        self.page.goto(f"{self.site.url}/t/admissions/{page}")
        self.ready(page.partition("?")[0].partition("/")[0])

    def walk(self, page: str) -> None:
        """By its tab: no new document."""
        self.page.click(f".tab[href$='/{page}']")
        self.ready(page)

    def ready(self, page: str) -> None:
        self.page.wait_for_selector(f"html[data-ready='admissions/{page}']")

    def price(self, sql: str, state: str = "ready") -> None:
        """Type a statement and wait for its quote."""
        self.page.fill("#sql", sql)
        self.page.wait_for_selector(f"#bar [data-state={state}]:not(.stale)")

    def ask(self) -> None:
        self.page.click("#go")
        self.page.wait_for_selector("#answer-head")
        self.page.wait_for_selector("#bar [data-state=asked]")

    def fits(self, widths: Sequence[int]) -> None:
        """Nothing is wider than the screen, and every button is as large as a thumb."""
        for width in widths:
            self.page.set_viewport_size({"width": width, "height": 900})
            wide, small = self.page.evaluate(FITS)
            assert wide <= width, f"{self.page.url} at {width}: {wide}"
            assert small == [], f"{self.page.url} at {width}"

    def accessible(self, what: str) -> None:
        """axe has nothing to say: of the page in light, of its colours also in dark."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(axe_source())
        for theme in ("light", "dark"):
            self.page.emulate_media(color_scheme=theme)
            only = {} if theme == "light" else {"runOnly": ["color-contrast"]}
            faults = self.page.evaluate(AXE, {"resultTypes": ["violations"], **only})
            assert faults == [], f"{what}, {theme}"

    def left(self) -> str:
        """What the header says is left."""
        return str(self.page.inner_text(".left b"))


@cache
def axe_source() -> str:
    axe = pytest.importorskip("axe_playwright_python.base", reason="axe is not installed")
    return str(axe.AXE_FILE_PATH.read_text())


def write_admissions(path: Path) -> Path:
    duckdb.sql(
        "SELECT i * 7 % 100 AS age, i * 11 % 8 + CASE i % 3 WHEN 0 THEN 6 ELSE 1 END AS stay_days,"
        " ['North', 'Coast', 'Valley'][i % 3 + 1] AS region, ['F', 'M', 'X'][i % 5 % 3 + 1] AS sex,"
        f" i % 4 = 0 AS smoker, '{CANARY}-' || i AS note FROM range({ROWS}) AS t(i)"
    ).write_parquet(str(path))
    return path


@pytest.fixture(scope="module")  # while it runs, so does an event loop: not for other tests
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    found = found or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One table, admissions: 200 credits, of which epi-team has 60 and small has 3."""
    place = tmp_path_factory.mktemp("site")
    before = os.environ.get("SULQ_STATE")
    os.environ["SULQ_STATE"] = str(place / "state")
    promise = Promise(epsilon=1, delta="1e-6", queries=200)
    source = write_admissions(place / "admissions.parquet")
    try:
        with Database.open(
            source, SCHEMA, promise, place / "ledger", name="admissions", publish=True
        ) as database:
            database.grant("epi-team", 60)
            database.grant("small", 3)
            access, log = Access.open(), io.StringIO()
            accounts = {
                "data-office": Role.OWNER,
                "epi-team": Role.ANALYST,
                "small": Role.ANALYST,
                "audit-board": Role.AUDITOR,
            }
            tokens = {name: access.lend(name, role) for name, role in accounts.items()}
            tables = Tables({"admissions": database})
            app = create_app(tables, access, settings=Settings(), log=Log(log))
            with serving(app) as port:
                yield Site(f"http://127.0.0.1:{port}", access, database, tokens, log, tables)
            access.close()
    finally:
        os.environ.pop("SULQ_STATE")
        if before is not None:
            os.environ["SULQ_STATE"] = before


@pytest.fixture
def visit(chromium: Any, site: Site) -> Iterator[Callable[..., Visit]]:
    """Open a page; at the end nothing may have gone wrong on it."""
    opened: list[tuple[Any, Visit]] = []

    def make(theme: str = "light", width: int = 1280) -> Visit:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce"
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        context.set_default_timeout(1_000 * LONGEST)
        page = context.new_page()
        found = Visit(page, site)
        opened.append((context, found))

        def console(message: Any) -> None:
            if message.type in ("error", "warning"):
                found.wrong.append(f"console: {message.text}")

        def requested(request: Any) -> None:
            if not request.url.startswith((site.url, "blob:", "data:")):
                found.wrong.append(f"left the host: {request.url}")

        def replied(response: Any) -> None:
            kind = response.headers.get("content-type", "")
            given = response.url.endswith("/v1/enter")  # the one reply that hands a token out
            if ("html" in kind or "json" in kind) and not given:
                try:
                    found.bodies.append(response.text())
                except Exception:  # noqa: BLE001 - the page has gone on meanwhile
                    return

        page.on("console", console)
        page.on("pageerror", lambda error: found.wrong.append(f"script: {error}"))
        page.on("request", requested)
        page.on("response", replied)
        return found

    yield make
    for context, found in opened:
        context.close()
        assert found.wrong == []
