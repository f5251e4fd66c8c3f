"""The owner's routes: who has a share and a token, and what becomes of them."""

from __future__ import annotations

import secrets
import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from sulq.errors import InvalidQuery
from sulq.server.address import base_of
from sulq.server.auth import grants
from sulq.server.auth.rate_limit import Rate
from sulq.server.auth.tokens import Caller, Role, require
from sulq.server.executor import Workers, run_free, service_of
from sulq.server.idempotency import ReplyKey, digest_of
from sulq.server.service.catalog import facts_of
from sulq.wire.bodies import Amount

router = APIRouter(prefix="/v1/tables/{table}", tags=["owner"])
Owner = Annotated[Caller, Depends(require(Role.OWNER))]
Person = Annotated[str, Path(min_length=1, max_length=64)]
MaybeKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=8, max_length=128, pattern="^[A-Za-z0-9._~-]+$"),
]
Reason = Annotated[str, Query(max_length=500)]
DAY = 86_400


class GrantChanges(BaseModel):
    """More credits; another end (`expires`, seconds since 1970, or `days` from now); a rate."""

    model_config = ConfigDict(extra="forbid")
    credits: Amount | None = None
    expires: Annotated[int, Field(gt=0, lt=2**40)] | None = None
    days: Annotated[float, Field(gt=0, le=36_500)] | None = None
    rate: Annotated[str, Field(max_length=40, examples=["60/min"])] | None = None

    def terms(self, role: Role = Role.ANALYST) -> grants.GrantTerms:
        if self.days is not None and self.expires is not None:
            raise InvalidQuery("give expires or days, not both")
        ends = self.expires if self.days is None else int(time.time() + DAY * self.days)
        rate = None if self.rate is None else Rate.of(self.rate)
        return grants.GrantTerms(role, self.credits, ends, rate)


class NewGrant(GrantChanges):
    name: Annotated[str, Field(min_length=1, max_length=64)]
    role: Role = Role.ANALYST


class Closing(BaseModel):
    model_config = ConfigDict(extra="forbid")
    reason: Annotated[str, Field(max_length=500)] = ""


@router.get("/grants")
async def listed(request: Request, table: str, caller: Owner) -> dict[str, Any]:
    """Everybody with a share or a token; no secrets."""
    service = service_of(request)

    def work() -> list[dict[str, Any]]:
        return grants.lines(service.database(caller, table), table, service.access)

    return {"grants": await run_free(request, work)}


@router.post("/grants", status_code=201)
async def granted(
    request: Request, table: str, body: NewGrant, caller: Owner, key: MaybeKey = None
) -> dict[str, Any]:
    """A share and a token. The token is shown here and never again; the link is good once.

    Sent again with its Idempotency-Key the share is given once; as no token is kept, a new one
    takes the place of the first.
    """
    service = service_of(request)
    digest = digest_of(request.method, request.url.path, await request.body())

    def work() -> dict[str, Any]:
        database = service.database(caller, table)
        terms = body.terms(body.role)
        if key is None:
            token, line = grants.give(database, table, service.access, body.name, terms)
        else:
            name = ReplyKey(facts_of(database), f"grant {caller.name}", key)
            given = grants.Given(service.replies, name, digest)
            token, line = grants.give_once(given, database, table, service.access, body.name, terms)
        link = f"{base_of(request)}/enter#{service.access.link_code(token)}"
        return {"token": token, "link": link, "role": str(body.role), **line}

    workers: Workers = request.app.state.workers
    async with workers.alone("grant", table, key or secrets.token_hex(8)):
        return await run_free(request, work)


@router.patch("/grants/{name}")
async def changed(
    request: Request, table: str, name: Person, body: GrantChanges, caller: Owner
) -> dict[str, Any]:
    """More credits, another end, another rate."""
    service = service_of(request)

    def work() -> dict[str, Any]:
        database = service.database(caller, table)
        return grants.change(database, table, service.access, name, body.terms())

    return await run_free(request, work)


@router.delete("/grants/{name}")
async def revoked(
    request: Request, table: str, name: Person, caller: Owner, reason: Reason = ""
) -> dict[str, Any]:
    """End the tokens at once; what the share has not spent can be granted again."""
    service = service_of(request)

    def work() -> dict[str, Any]:
        database = service.database(caller, table)
        return grants.take(database.ledger, table, service.access, name, reason)

    return await run_free(request, work)


@router.post("/close")
async def closed(request: Request, table: str, body: Closing, caller: Owner) -> dict[str, Any]:
    """Turn the table off, for ever. What was paid for stays readable by whoever paid."""
    service = service_of(request)

    def work() -> dict[str, Any]:
        service.database(caller, table).close_for_good(body.reason)
        return {"table": table, "state": "closed"}

    return await run_free(request, work)
