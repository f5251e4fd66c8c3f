"""The service itself: is it well, how much is asked of it, and what does it offer."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from sulq.server.auth.tokens import Access, Caller, Role, require
from sulq.server.errors import unknown_token
from sulq.server.middleware import Metrics
from sulq.server.openapi import page

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
    request: Request, caller: Annotated[Caller, Depends(require(Role.OWNER))]
) -> PlainTextResponse:
    """Requests by route and class of status, in the Prometheus text format."""
    counts: Metrics = request.app.state.metrics
    return PlainTextResponse(counts.text(), media_type="text/plain; version=0.0.4")


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
