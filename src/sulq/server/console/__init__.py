"""The console: pages rendered on the server, in front of the same Service as /v1.

How a page is added: see `sulq.server.console.pages`.
"""

from __future__ import annotations

from fastapi import FastAPI

from sulq.server.console import (
    access_page,
    ask_page,
    budget_page,
    learn_page,
    ledger_page,
    pages,
    publish_page,
    risk_page,
    shell,
    table_page,
)
from sulq.server.service import Service

ROUTERS = (
    shell.router,
    table_page.router,
    ask_page.router,
    learn_page.router,
    budget_page.router,
    ledger_page.router,
    risk_page.router,
    access_page.router,
    publish_page.router,
    pages.router,
)


def mount_console(app: FastAPI, service: Service) -> None:
    """Add every page to the application; they reach the service by `app.state.service`."""
    app.state.service = service
    for router in ROUTERS:
        app.include_router(router)
