"""The owner's routes: who has a share and a token, and what becomes of them."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from sulq.errors import InvalidQuery
from sulq.server.address import base_of
from sulq.server.auth import grants
from sulq.server.auth.rate_limit import Rate
from sulq.server.auth.tokens import Role
from sulq.server.executor import Owner, Workers, run_free
from sulq.server.idempotency import ReplyKey, digest_of
from sulq.server.service.catalog import facts_of
from sulq.wire.bodies import Amount

router = APIRouter(prefix="/v1/tables/{table}", tags=["owner"])
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
    """`token_id`: of a token of this name that was given out, which is to carry this table too."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    role: Role = Role.ANALYST
    token_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None

    def new_terms(self) -> grants.GrantTerms:
        return replace(self.terms(self.role), token_id=self.token_id)


class Closing(BaseModel):
    model_config = ConfigDict(extra="forbid")
    reason: Annotated[str, Field(max_length=500)] = ""


@router.get("/grants")
async def listed(request: Request, session: Owner) -> dict[str, Any]:
    """Everybody with a share or a token; no secrets."""

    def work() -> list[dict[str, Any]]:
        return grants.lines(session.database, session.table, session.service.access)

    return {"grants": await run_free(request, work)}


@router.post("/grants", status_code=201)
async def granted(
    request: Request, session: Owner, body: NewGrant, key: MaybeKey = None
) -> dict[str, Any]:
    """A share and a token. The token is shown here and never again; the link is good once.

    Sent again with its Idempotency-Key the share is given once; as no token is kept, a new one
    takes the place of the first.
    """
    service, table = session.service, session.table
    digest = digest_of(request.method, request.url.path, await request.body())

    def work() -> dict[str, Any]:
        database = session.database
        terms = body.new_terms()
        if key is None:
            token, line = grants.give(database, table, service.access, body.name, terms)
        else:
            name = ReplyKey(facts_of(database), f"grant {session.caller.name}", key)
            given = grants.Given(service.replies, name, digest)
            token, line = grants.give_once(given, database, table, service.access, body.name, terms)
        link = None
        if token is not None:
            link = f"{base_of(request)}/enter#{service.access.link_code(token)}"
        return {"token": token, "link": link, "role": str(body.role), **line}

    workers: Workers = request.app.state.workers
    async with workers.alone("grant", table, key or secrets.token_hex(8)):
        return await run_free(request, work)


@router.patch("/grants/{name}")
async def changed(
    request: Request, session: Owner, name: Person, body: GrantChanges
) -> dict[str, Any]:
    """More credits, another end, another rate."""

    def work() -> dict[str, Any]:
        access = session.service.access
        return grants.change(session.database, session.table, access, name, body.terms())

    return await run_free(request, work)


@router.delete("/grants/{name}")
async def revoked(
    request: Request, session: Owner, name: Person, reason: Reason = ""
) -> dict[str, Any]:
    """End the tokens at once; what the share has not spent can be granted again."""

    def work() -> dict[str, Any]:
        ledger, access = session.database.ledger, session.service.access
        return grants.take(ledger, session.table, access, name, reason)

    return await run_free(request, work)


@router.post("/close")
async def closed(request: Request, session: Owner, body: Closing) -> dict[str, Any]:
    """Turn the table off, for ever. What was paid for stays readable by whoever paid."""

    def work() -> dict[str, Any]:
        session.database.close_for_good(body.reason)
        return {"table": session.table, "state": "closed"}

    return await run_free(request, work)
