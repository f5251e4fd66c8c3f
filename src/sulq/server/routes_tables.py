"""What is public about a table, and what it has spent."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from sulq.server.access import Caller, Role, require
from sulq.server.routes_ask import in_thread, service_of

router = APIRouter(prefix="/v1")
Anybody = Annotated[Caller, Depends(require(*Role))]


@router.get("/me")
async def me(request: Request, caller: Anybody) -> dict[str, Any]:
    names = [line["name"] for line in service_of(request).listed(caller)]
    return {"name": caller.name, "role": str(caller.role), "tables": names}


@router.get("/tables")
async def tables(request: Request, caller: Anybody) -> dict[str, Any]:
    return {"tables": await in_thread(request, service_of(request).listed, caller)}


@router.get("/tables/{table}/schema")
async def schema(request: Request, table: str, caller: Anybody) -> dict[str, Any]:
    return dict(await in_thread(request, service_of(request).schema, caller, table))


@router.get("/tables/{table}/statement")
async def statement(request: Request, table: str, caller: Anybody) -> dict[str, Any]:
    return dict(await in_thread(request, service_of(request).statement, caller, table))
