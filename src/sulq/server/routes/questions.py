"""Questions over HTTP: quote, ask, sql, plan, exact batches, and credits set aside."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Request
from fastapi.responses import Response

from sulq.server.auth.tokens import Caller, Role, require
from sulq.server.executor import run_charged, run_free, service_of
from sulq.server.service import questions
from sulq.server.service.request import PreparedRequest
from sulq.wire import (
    AnswerReply,
    AnswersReply,
    AskBody,
    ExactBody,
    ExactQuoteReply,
    PlanBody,
    PlanReply,
    QuoteBody,
    QuoteReply,
    ReservationReply,
    ReserveBody,
    SqlBody,
    SqlReply,
)
from sulq.wire.discovery import (
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
from sulq.wire.sharing import ShareBody, ShareQuoteBody, ShareQuoteReply, ShareReply

__all__ = ["Asker", "Key", "json_reply", "router", "run_free", "service_of"]

router = APIRouter(prefix="/v1/tables/{table}", tags=["questions"])
Asker = Annotated[Caller, Depends(require(Role.OWNER, Role.ANALYST))]
Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        min_length=8,
        max_length=128,
        pattern="^[A-Za-z0-9._~-]+$",
        description="Of your choice, new for every new question: a retry with it is free. It is"
        " written in the ledger, which owner and auditors read: random, and no secret.",
    ),
]


def json_reply(content: bytes) -> Response:
    return Response(content, media_type="application/json")


@router.post("/quote")
async def quote(request: Request, table: str, body: QuoteBody, caller: Asker) -> QuoteReply:
    """Price and error bar of a question or a statement; free, and no row is read."""
    return await run_free(request, service_of(request).quote, caller, table, body)


@router.post("/ask", response_model=AnswerReply)
async def ask(request: Request, table: str, body: AskBody, caller: Asker, key: Key) -> Response:
    """A noisy answer, charged."""
    asked = service_of(request).asked
    return json_reply(
        await run_charged(request, caller, table, key, lambda: asked(caller, table, body, key))
    )


@router.post("/share/quote")
async def quote_share(
    request: Request, table: str, body: ShareQuoteBody, caller: Asker
) -> ShareQuoteReply:
    """Price of this owner's share of a joint sum, who takes part, the bar of the total; free."""
    return await run_free(request, service_of(request).quote_share, caller, table, body)


@router.post("/share", response_model=ShareReply)
async def share(request: Request, table: str, body: ShareBody, caller: Asker, key: Key) -> Response:
    """This owner's masked share of the joint sum that the key names, charged."""
    asked = service_of(request).asked_share
    return json_reply(
        await run_charged(request, caller, table, key, lambda: asked(caller, table, body, key))
    )


@router.post("/sql", response_model=SqlReply)
async def sql(request: Request, table: str, body: SqlBody, caller: Asker, key: Key) -> Response:
    """A SELECT, answered with noise and charged; `dummy`: from made-up rows, free."""
    asked = service_of(request).asked_sql
    return json_reply(
        await run_charged(request, caller, table, key, lambda: asked(caller, table, body, key))
    )


@router.post("/plan")
async def plan(request: Request, table: str, body: PlanBody, caller: Asker) -> PlanReply:
    """Prices of several questions together; free."""
    return await run_free(request, service_of(request).plan, caller, table, body)


@router.post("/plan/ask", response_model=AnswersReply)
async def ask_plan(
    request: Request, table: str, body: PlanBody, caller: Asker, key: Key
) -> Response:
    """All of a plan, charged together or not at all."""
    asked = service_of(request).asked_plan
    return json_reply(
        await run_charged(request, caller, table, key, lambda: asked(caller, table, body, key))
    )


@router.post("/exact/quote")
async def quote_exactly(
    request: Request, table: str, body: ExactBody, caller: Asker
) -> ExactQuoteReply:
    """What an exact answer would be and do; free."""
    return await run_free(request, service_of(request).quote_exactly, caller, table, body)


@router.post("/exact", response_model=AnswersReply)
async def exact(request: Request, table: str, body: ExactBody, caller: Asker, key: Key) -> Response:
    """A declared batch without noise, under the owner's assumptions."""
    asked = service_of(request).asked_exactly
    return json_reply(
        await run_charged(request, caller, table, key, lambda: asked(caller, table, body, key))
    )


@router.post("/reservations", status_code=201)
async def reserve(
    request: Request, table: str, body: ReserveBody, caller: Asker
) -> ReservationReply:
    """Set credits aside; what is not spent goes back when it ends or lies idle."""
    return await run_free(request, service_of(request).reserve, caller, table, body)


@router.delete("/reservations/{reservation}", status_code=204)
async def release(request: Request, table: str, reservation: str, caller: Asker) -> None:
    """Give back what is left of a reservation."""
    await run_free(request, service_of(request).release_reservation, caller, table, reservation)


# Keys, the largest cells, alerts and declarations over HTTP.


discovery_router = APIRouter(prefix="/v1/tables/{table}", tags=["questions"])
Owner = Annotated[Caller, Depends(require(Role.OWNER))]
Anybody = Annotated[Caller, Depends(require(*Role))]
Number = Annotated[int, Path(ge=1, le=2**53)]


@discovery_router.post("/keys/quote")
async def quote_keys(request: Request, table: str, body: KeysBody, caller: Asker) -> KeysQuoteReply:
    """Price and threshold of keys that nobody declared; free, and no row is read."""
    service = service_of(request)
    return await run_free(request, questions.quote_keys, service, caller, table, body)


@discovery_router.post("/keys", response_model=KeysReply)
async def keys(request: Request, table: str, body: KeysBody, caller: Asker, key: Key) -> Response:
    """Counts by the values of an open text column, of those that many rows share; charged."""
    service = service_of(request)

    def asked() -> PreparedRequest:
        return questions.asked_keys(service, caller, table, body, key)

    return json_reply(await run_charged(request, caller, table, key, asked))


@discovery_router.post("/top", response_model=TopReply)
async def top(request: Request, table: str, body: TopBody, caller: Asker, key: Key) -> Response:
    """Which cells are largest, names only; charged."""
    service = service_of(request)

    def asked() -> PreparedRequest:
        return questions.asked_top(service, caller, table, body, key)

    return json_reply(await run_charged(request, caller, table, key, asked))


@discovery_router.get("/alerts")
async def alerts(request: Request, table: str, caller: Asker) -> AlertsReply:
    """The alerts that you have armed here."""
    return await run_free(request, questions.alerts, service_of(request), caller, table)


@discovery_router.post("/alerts", response_model=AlertReply)
async def arm(request: Request, table: str, body: AlertBody, caller: Asker, key: Key) -> Response:
    """Arm an alert: all its firings are charged now."""
    service = service_of(request)

    def asked() -> PreparedRequest:
        return questions.asked_alert(service, caller, table, body, key)

    return json_reply(await run_charged(request, caller, table, key, asked))


@discovery_router.post("/alerts/{number}/check", response_model=CheckReply)
async def check(
    request: Request, table: str, number: Number, body: CheckBody, caller: Asker, key: Key
) -> Response:
    """Whether it fires: free, and never the value."""
    service = service_of(request)

    def asked() -> PreparedRequest:
        return questions.asked_check(service, caller, table, number, body, key)

    return json_reply(await run_charged(request, caller, table, key, asked))


@discovery_router.get("/exact/declaration")
async def declaration(request: Request, table: str, caller: Anybody) -> DeclaredReply:
    """What may be asked exactly; no menu: nothing was declared."""
    return await run_free(request, questions.declaration, service_of(request), caller, table)


@discovery_router.post("/exact/declaration", response_model=DeclaredReply)
async def declare(
    request: Request, table: str, body: DeclareBody, caller: Owner, key: Key
) -> Response:
    """Fix what may be asked exactly, before anything is answered."""
    service = service_of(request)

    def asked() -> PreparedRequest:
        return questions.asked_declaration(service, caller, table, body, key)

    return json_reply(await run_charged(request, caller, table, key, asked))
