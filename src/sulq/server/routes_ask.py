"""Questions over HTTP: quote, ask, sql."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request

from sulq.server.access import Caller, Role, require
from sulq.server.bodies import AskBody, QuoteBody, SqlBody
from sulq.server.service import Service

router = APIRouter(prefix="/v1/tables/{table}")
Asker = Annotated[Caller, Depends(require(Role.OWNER, Role.ANALYST))]
Key = Annotated[
    str,
    Header(alias="Idempotency-Key", min_length=8, max_length=128, pattern="^[A-Za-z0-9._~-]+$"),
]


def service_of(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


async def in_thread(request: Request, work: Any, *given: Any) -> Any:
    """Blocking work, off the event loop."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(request.app.state.executor, work, *given)


@router.post("/quote")
async def quote(request: Request, table: str, body: QuoteBody, caller: Asker) -> dict[str, Any]:
    return dict(await in_thread(request, service_of(request).quote, caller, table, body))


@router.post("/ask")
async def ask(
    request: Request, table: str, body: AskBody, caller: Asker, key: Key
) -> dict[str, Any]:
    return dict(await in_thread(request, service_of(request).ask, caller, table, body, key))


@router.post("/sql")
async def sql(
    request: Request, table: str, body: SqlBody, caller: Asker, key: Key
) -> dict[str, Any]:
    return dict(await in_thread(request, service_of(request).sql, caller, table, body, key))
