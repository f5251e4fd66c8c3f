"""create_app: the service as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import FastAPI

from sulq.server import routes_ask, routes_tables
from sulq.server.access import Access
from sulq.server.problems import handle_problems
from sulq.server.service import Service
from sulq.server.tables import Tables


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator may choose."""

    threads: int = 8
    most_bytes: int = 1_000_000
    most_depth: int = 64
    most_waiting: int = 1_000
    reservation_idle: float = 3_600.0
    pacing: bool = True


def create_app(tables: Tables, access: Access, *, settings: Settings = Settings()) -> FastAPI:  # noqa: B008
    """The application; who starts it opens and closes the tables."""

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        yield
        app.state.executor.shutdown(wait=True)

    app = FastAPI(title="sulq", docs_url=None, redoc_url=None, lifespan=living)
    app.state.settings, app.state.access = settings, access
    app.state.executor = ThreadPoolExecutor(settings.threads, "ask")
    app.state.service = Service(tables, access)
    handle_problems(app)
    app.include_router(routes_tables.router)
    app.include_router(routes_ask.router)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    return app
