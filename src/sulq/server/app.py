"""create_app: the service as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI

from sulq.database import Database
from sulq.server.auth.tokens import Access
from sulq.server.console import mount_console
from sulq.server.errors import handle_problems
from sulq.server.executor import Workers
from sulq.server.idempotency import Replies
from sulq.server.limits import Settings
from sulq.server.middleware import Log, Metrics, RequestGuard
from sulq.server.openapi import describe
from sulq.server.postgres.listener import Listener, PostgresPort
from sulq.server.routes import about, drafts, grants, questions
from sulq.server.routes import tables as routes_tables
from sulq.server.service.catalog import Tables
from sulq.server.service.session import Service

__all__ = ["Settings", "create_app"]

ROUTERS = (
    about.router,
    routes_tables.router,
    questions.router,
    grants.router,
    drafts.router,
)


def create_app(
    tables: Tables,
    access: Access,
    *,
    settings: Settings = Settings(),  # noqa: B008 - a frozen value
    log: Log | None = None,
    replies: Replies | None = None,
    report: Callable[[Database, bool], str] | None = None,
    postgres: PostgresPort | None = None,
) -> FastAPI:
    """The application. Who starts it opens the tables, and closes them after it has stopped.

    `report` makes the audit report of a table; True: the one for an auditor. `postgres` is a port
    on which the tables are asked in PostgreSQL's protocol too.
    """
    log = log or Log()
    service = Service(tables, access, replies or Replies.open(days=settings.reply_days), settings)
    workers, counts = Workers(settings.threads, settings.most_waiting, settings.each), Metrics()

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        await workers.pages.run("", lambda: service.clocks)  # measured before anybody waits
        door = None if postgres is None else Listener(postgres, service, workers, log, counts)
        if door is not None:
            await door.start()
        yield
        if door is not None:
            await door.close()
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
    app.add_middleware(RequestGuard, settings=settings, log=log, metrics=counts)
    return app
