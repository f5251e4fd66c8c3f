"""create_app: the service as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI

from sulq.database import Database
from sulq.server import (
    routes_about,
    routes_ask,
    routes_drafts,
    routes_finding,
    routes_grants,
    routes_tables,
)
from sulq.server.access import Access
from sulq.server.console import mount_console
from sulq.server.edge import Edge
from sulq.server.limits import Settings
from sulq.server.logs import Log
from sulq.server.metrics import Metrics
from sulq.server.openapi import describe
from sulq.server.problems import handle_problems
from sulq.server.replies import Replies
from sulq.server.running import Workers
from sulq.server.service import Service
from sulq.server.tables import Tables

__all__ = ["Settings", "create_app"]

ROUTERS = (
    routes_about.router,
    routes_tables.router,
    routes_ask.router,
    routes_finding.router,
    routes_grants.router,
    routes_drafts.router,
)


def create_app(
    tables: Tables,
    access: Access,
    *,
    settings: Settings = Settings(),  # noqa: B008 - a frozen value
    log: Log | None = None,
    replies: Replies | None = None,
    report: Callable[[Database, bool], str] | None = None,
) -> FastAPI:
    """The application. Who starts it opens the tables, and closes them after it has stopped.

    `report` makes the audit report of a table; True: the one for an auditor.
    """
    service = Service(tables, access, replies or Replies.open(days=settings.reply_days), settings)
    workers, counts = Workers(settings.threads, settings.most_waiting, settings.each), Metrics()

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        await workers.pages.run("", lambda: service.clocks)  # measured before anybody waits
        yield
        workers.close()  # what has begun is charged, answered and stored
        service.close()

    app = FastAPI(title="sulq", version="1", docs_url=None, redoc_url=None, lifespan=living)
    app.state.settings, app.state.access, app.state.service = settings, access, service
    app.state.workers, app.state.metrics, app.state.report = workers, counts, report
    handle_problems(app)
    for router in ROUTERS:
        app.include_router(router)
    mount_console(app, service)
    describe(app)
    app.add_middleware(Edge, settings=settings, log=log or Log(), metrics=counts)
    return app
