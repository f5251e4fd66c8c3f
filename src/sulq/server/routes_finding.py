"""Keys, the largest cells, alerts and declarations over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import Response

from sulq.server import finding
from sulq.server.access import Caller, Role, require
from sulq.server.asked import Asked
from sulq.server.routes_ask import Asker, Key, json_reply
from sulq.server.running import charged, in_thread, service_of
from sulq.wire.finding import (
    AlertBody,
    AlertReply,
    AlertsReply,
    CheckBody,
    CheckReply,
    DeclareBody,
    DeclaredReply,
    KeysBody,
    KeysQuoteReply,
    KeysReply,
    TopBody,
    TopReply,
)

router = APIRouter(prefix="/v1/tables/{table}", tags=["questions"])
Owner = Annotated[Caller, Depends(require(Role.OWNER))]
Anybody = Annotated[Caller, Depends(require(*Role))]
Number = Annotated[int, Path(ge=1, le=2**53)]


@router.post("/keys/quote")
async def quote_keys(request: Request, table: str, body: KeysBody, caller: Asker) -> KeysQuoteReply:
    """Price and threshold of keys that nobody declared; free, and no row is read."""
    service = service_of(request)
    return await in_thread(request, finding.quote_keys, service, caller, table, body)


@router.post("/keys", response_model=KeysReply)
async def keys(request: Request, table: str, body: KeysBody, caller: Asker, key: Key) -> Response:
    """Counts by the values of an open text column, of those that many rows share; charged."""
    service = service_of(request)

    def asked() -> Asked:
        return finding.asked_keys(service, caller, table, body, key)

    return json_reply(await charged(request, caller, table, key, asked))


@router.post("/top", response_model=TopReply)
async def top(request: Request, table: str, body: TopBody, caller: Asker, key: Key) -> Response:
    """Which cells are largest, names only; charged."""
    service = service_of(request)

    def asked() -> Asked:
        return finding.asked_top(service, caller, table, body, key)

    return json_reply(await charged(request, caller, table, key, asked))


@router.get("/alerts")
async def alerts(request: Request, table: str, caller: Asker) -> AlertsReply:
    """The alerts that you have armed here."""
    return await in_thread(request, finding.alerts, service_of(request), caller, table)


@router.post("/alerts", response_model=AlertReply)
async def arm(request: Request, table: str, body: AlertBody, caller: Asker, key: Key) -> Response:
    """Arm an alert: all its firings are charged now."""
    service = service_of(request)

    def asked() -> Asked:
        return finding.asked_alert(service, caller, table, body, key)

    return json_reply(await charged(request, caller, table, key, asked))


@router.post("/alerts/{number}/check", response_model=CheckReply)
async def check(
    request: Request, table: str, number: Number, body: CheckBody, caller: Asker, key: Key
) -> Response:
    """Whether it fires: free, and never the value."""
    service = service_of(request)

    def asked() -> Asked:
        return finding.asked_check(service, caller, table, number, body, key)

    return json_reply(await charged(request, caller, table, key, asked))


@router.get("/exact/declaration")
async def declaration(request: Request, table: str, caller: Anybody) -> DeclaredReply:
    """What may be asked exactly; no menu: nothing was declared."""
    return await in_thread(request, finding.declaration, service_of(request), caller, table)


@router.post("/exact/declaration", response_model=DeclaredReply)
async def declare(
    request: Request, table: str, body: DeclareBody, caller: Owner, key: Key
) -> Response:
    """Fix what may be asked exactly, before anything is answered."""
    service = service_of(request)

    def asked() -> Asked:
        return finding.asked_declaration(service, caller, table, body, key)

    return json_reply(await charged(request, caller, table, key, asked))
