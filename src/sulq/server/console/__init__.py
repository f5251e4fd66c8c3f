"""The console: pages rendered on the server, in front of the same Service as /v1.

How a page is added: see `sulq.server.console.framework`.
"""

from __future__ import annotations

from fastapi import FastAPI

from sulq.server.console import (
    access,
    boards,
    budget,
    comparison,
    framework,
    ledger,
    publish,
    risk,
    stored,
    table,
)
from sulq.server.console.ask import basket, build, page
from sulq.server.console.learn import page as learn_page
from sulq.server.service.session import Service

ROUTERS = (
    framework.shell_router,
    table.router,
    page.router,
    build.router,
    basket.router,
    learn_page.router,
    budget.router,
    ledger.router,
    risk.router,
    stored.router,
    comparison.router,
    boards.router,
    access.router,
    publish.router,
    framework.router,
)


def mount_console(app: FastAPI, service: Service) -> None:
    """Add every page to the application; they reach the service by `app.state.service`."""
    app.state.service = service
    for router in ROUTERS:
        app.include_router(router)
