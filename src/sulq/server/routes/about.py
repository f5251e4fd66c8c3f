"""The service itself: is it well, how much is asked of it, and what does it offer."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from sulq.server.auth.tokens import Access, Caller, Role, require
from sulq.server.errors import unknown_token
from sulq.server.executor import run_free, service_of
from sulq.server.middleware import Metrics
from sulq.server.openapi import page
from sulq.wire import MonitorLine, MonitorReply, question_schema

router = APIRouter(tags=["service"])


class Health(BaseModel):
    status: str = "ok"


class EnterBody(BaseModel):
    model_config = ConfigDict(extra="forbid")
    code: Annotated[str, Field(min_length=1, max_length=200)]


class EnterReply(BaseModel):
    token: str
    name: str
    role: str


@router.get("/healthz")
async def healthz() -> Health:
    """The process answers. Says nothing of any table."""
    return Health()


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(
    request: Request, caller: Annotated[Caller, Depends(require(Role.OWNER, Role.MONITOR))]
) -> PlainTextResponse:
    """Requests by route and class of status, in the Prometheus text format; for a monitor also
    the credits that each table has left."""
    counts: Metrics = request.app.state.metrics
    tables: list[MonitorLine] = []
    if caller.role == Role.MONITOR:
        tables = (await run_free(request, service_of(request).watched)).tables
    return PlainTextResponse(counts.text(tables), media_type="text/plain; version=0.0.4")


@router.get("/v1/monitor")
async def monitor(
    request: Request, caller: Annotated[Caller, Depends(require(Role.MONITOR))]
) -> MonitorReply:
    """Version, and of every table its credits and how many replies missed their tick each day."""
    return await run_free(request, service_of(request).watched)


@router.get("/v1/question-schema")
async def schema_of_questions() -> dict[str, Any]:
    """The form of a `question` as JSON Schema: the same for every table."""
    return question_schema()


@router.post("/v1/enter")
async def enter(request: Request, body: EnterBody) -> EnterReply:
    """The token behind a one-time code."""
    access: Access = request.app.state.access
    token = access.redeem(body.code)
    caller = None if token is None else access.caller(token)
    if token is None or caller is None:
        raise unknown_token()
    return EnterReply(token=token, name=caller.name, role=str(caller.role))


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> HTMLResponse:
    return HTMLResponse(page(request.app.openapi()))
