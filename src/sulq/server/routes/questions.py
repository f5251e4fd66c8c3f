"""Questions over HTTP: prices, answers, plans, keys, alerts, exact batches, reservations."""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Request
from fastapi.responses import Response

from sulq.errors import Reason
from sulq.formatting import sheet_text
from sulq.server.errors import HttpProblem
from sulq.server.executor import Anybody, Asker, Owner, run_charged, run_free, service_of
from sulq.server.idempotency import PreparedRequest
from sulq.server.service import questions
from sulq.server.service.session import TableSession
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
    reply_columns,
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

router = APIRouter(prefix="/v1/tables/{table}", tags=["questions"])
Number = Annotated[int, Path(ge=1, le=2**53)]
KEY = "Idempotency-Key"
_KEY = Header(
    alias=KEY,
    min_length=8,
    max_length=128,
    pattern="^[A-Za-z0-9._~-]+$",
    description="Of your choice, new for every new question: a retry with it is free. It is"
    " written in the ledger, which owner and auditors read: random, and no secret.",
)
Key = Annotated[str, _KEY]


async def key_or_new(request: Request, key: Annotated[str | None, _KEY] = None) -> str:
    """Return the caller's key; on a server with a clock, a new random one where there is none.

    A reply that was lost is not lost for good: the same question, asked again, is a repeat and
    free. The reply names the key.
    """
    if key is not None:
        return key
    if service_of(request).settings.pacing:
        return secrets.token_urlsafe(16)
    raise HttpProblem(
        422,
        "invalid_query",
        f"header.{KEY}: Field required on a server without a clock",
        f"send {KEY} with 8 to 128 random letters, new for every new question",
        reason=Reason.INVALID_VALUE,
    )


OptionalKey = Annotated[str, Depends(key_or_new)]


# The format of a table that leaves: JSON, CSV or an Arrow stream, as the caller's Accept says.


JSON = "application/json"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
SPENT = "Sulq-Credits"
"""The header that tells what was charged, where the body has no place for it."""
TABLES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            CSV: {"schema": {"type": "string"}},
            ARROW: {"schema": {"type": "string", "format": "binary"}},
        }
    }
}
"""What the description of the API says beside JSON."""


def had() -> tuple[str, ...]:
    """Return the formats that this server has; Arrow needs pyarrow."""
    return (JSON, CSV, ARROW) if find_spec("pyarrow") else (JSON, CSV)


def chosen_format(accept: str) -> str:
    """Return the format that the caller likes best, or refuse with 406, free."""
    ranges = [_range(part) for part in accept.split(",") if part.strip()] or [("*/*", 1.0)]
    ranges.sort(key=lambda one: -one[1])  # stable: as they were written
    formats = had()
    for wanted, weight in ranges:
        for media in formats:
            if weight > 0 and _matches(wanted, media):
                return media
    raise HttpProblem(
        406,
        "not_acceptable",
        f"Accept has none of the formats of a table: {', '.join(formats)}",
        "send Accept with one of them; nothing was charged",
    )


async def accepted_format(request: Request) -> str:
    return chosen_format(request.headers.get("accept", ""))


Format = Annotated[str, Depends(accepted_format)]


def table_response(reply: bytes, media: str, key: str) -> Response:
    """Return a reply to a statement, kept as JSON, in the format that was chosen."""
    headers = {"Vary": "Accept", KEY: key}
    if media == JSON:
        return Response(reply, media_type=JSON, headers=headers)
    read = SqlReply.model_validate_json(reply)
    content = _csv(read) if media == CSV else _arrow(read)
    return Response(content, media_type=media, headers={**headers, SPENT: str(read.credits_exact)})


def _csv(reply: SqlReply) -> bytes:
    """Return keys and aggregates, `n` also as n_low and n_high; NULL is empty. RFC 4180

    Texts that a spreadsheet would run as formulas are quoted.
    """
    columns, file = reply_columns(reply, intervals=True), io.StringIO(newline="")
    table = csv.writer(file)
    table.writerow(map(sheet_text, columns))
    for row in zip(*columns.values(), strict=True):
        table.writerow(sheet_text(cell) if isinstance(cell, str) else cell for cell in row)
    return file.getvalue().encode()


def _arrow(reply: SqlReply) -> bytes:
    import pyarrow
    from pyarrow import ipc

    days = {"date": pyarrow.date32(), "datetime": pyarrow.timestamp("s")}
    kinds = [
        None if column.is_key else days.get(column.type, pyarrow.float64())
        for column in reply.columns
        for _ in range(1 if column.is_key else 3)  # the value, low and high
    ]
    columns = reply_columns(reply, intervals=True).items()
    arrays = {
        name: pyarrow.array(cells, kind) for (name, cells), kind in zip(columns, kinds, strict=True)
    }
    table, sink = pyarrow.table(arrays), pyarrow.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _range(part: str) -> tuple[str, float]:
    """Return a media range and its weight; what cannot be read weighs 0."""
    media, *parameters = (word.strip().lower() for word in part.split(";"))
    weights = [word[2:] for word in parameters if word.startswith("q=")]
    try:
        return media, float(weights[0]) if weights else 1.0
    except ValueError:
        return media, 0.0


def _matches(wanted: str, media: str) -> bool:
    kind = media.partition("/")[0]
    return wanted in (media, "*/*", f"{kind}/*")


# The routes.


async def answer(
    request: Request,
    session: TableSession,
    key: str,
    prepare: Callable[..., PreparedRequest],
    *given: Any,
) -> Response:
    """Run `prepare(session, *given, key)` and what it prepares; once per key, on the clock."""
    prepared = partial(prepare, session, *given, key)
    content = await run_charged(request, session, key, prepared)
    return Response(content, media_type="application/json", headers={KEY: key})


@router.post("/quote")
async def quote(request: Request, session: Asker, body: QuoteBody) -> QuoteReply:
    """Price and error bar of a question or a statement; free, and no row is read."""
    return await run_free(request, questions.quote, session, body)


@router.post("/ask", response_model=AnswerReply)
async def ask(request: Request, session: Asker, body: AskBody, key: OptionalKey) -> Response:
    """A noisy answer, charged."""
    return await answer(request, session, key, questions.prepare_ask, body)


@router.post("/share/quote")
async def quote_share(request: Request, session: Asker, body: ShareQuoteBody) -> ShareQuoteReply:
    """Price of this owner's share of a joint sum, who takes part, the bar of the total; free."""
    return await run_free(request, questions.quote_share, session, body)


@router.post("/share", response_model=ShareReply)
async def share(request: Request, session: Asker, body: ShareBody, key: Key) -> Response:
    """This owner's masked share of the joint sum that the key names, charged."""
    return await answer(request, session, key, questions.prepare_share, body)


@router.post("/sql", response_model=SqlReply, responses=TABLES)
async def sql(
    request: Request, session: Asker, body: SqlBody, key: OptionalKey, media: Format
) -> Response:
    """A SELECT, answered with noise and charged, as JSON, CSV or an Arrow stream; `dummy`: from
    made-up rows, free."""
    reply = await answer(request, session, key, questions.prepare_sql, body)
    return table_response(bytes(reply.body), media, key)


@router.post("/plan")
async def plan(request: Request, session: Asker, body: PlanBody) -> PlanReply:
    """Prices of several questions together; free."""
    return await run_free(request, questions.quote_plan, session, body)


@router.post("/plan/ask", response_model=AnswersReply)
async def ask_plan(request: Request, session: Asker, body: PlanBody, key: Key) -> Response:
    """All of a plan, charged together or not at all."""
    return await answer(request, session, key, questions.prepare_plan, body)


@router.post("/exact/quote")
async def quote_exactly(request: Request, session: Asker, body: ExactBody) -> ExactQuoteReply:
    """What an exact answer would be and do; free."""
    return await run_free(request, questions.quote_exactly, session, body)


@router.post("/exact", response_model=AnswersReply)
async def exact(request: Request, session: Asker, body: ExactBody, key: Key) -> Response:
    """A declared batch without noise, under the owner's assumptions."""
    return await answer(request, session, key, questions.prepare_exact, body)


@router.post("/reservations", status_code=201)
async def reserve(request: Request, session: Asker, body: ReserveBody) -> ReservationReply:
    """Set credits aside; what is not spent goes back when it ends or lies idle."""
    return await run_free(request, questions.reserve, session, body)


@router.delete("/reservations/{reservation}", status_code=204)
async def release(request: Request, session: Asker, reservation: str) -> None:
    """Give back what is left of a reservation."""
    await run_free(request, questions.release_reservation, session, reservation)


@router.post("/keys/quote")
async def quote_keys(request: Request, session: Asker, body: KeysBody) -> KeysQuoteReply:
    """Price and threshold of keys that nobody declared; free, and no row is read."""
    return await run_free(request, questions.quote_keys, session, body)


@router.post("/keys", response_model=KeysReply)
async def keys(request: Request, session: Asker, body: KeysBody, key: Key) -> Response:
    """Counts by the values of an open text column, of those that many rows share; charged."""
    return await answer(request, session, key, questions.prepare_keys, body)


@router.post("/top", response_model=TopReply)
async def top(request: Request, session: Asker, body: TopBody, key: Key) -> Response:
    """Which cells are largest, names only; charged."""
    return await answer(request, session, key, questions.prepare_top, body)


@router.get("/alerts")
async def alerts(request: Request, session: Asker) -> AlertsReply:
    """The alerts that you have armed here."""
    return await run_free(request, questions.alerts, session)


@router.post("/alerts", response_model=AlertReply)
async def arm(request: Request, session: Asker, body: AlertBody, key: Key) -> Response:
    """Arm an alert: all its firings are charged now."""
    return await answer(request, session, key, questions.prepare_alert, body)


@router.post("/alerts/{number}/check", response_model=CheckReply)
async def check(
    request: Request, session: Asker, number: Number, body: CheckBody, key: Key
) -> Response:
    """Whether it fires: free, and never the value."""
    return await answer(request, session, key, questions.prepare_check, number, body)


@router.get("/exact/declaration")
async def declaration(request: Request, session: Anybody) -> DeclaredReply:
    """What may be asked exactly; no menu: nothing was declared."""
    return await run_free(request, questions.declaration, session)


@router.post("/exact/declaration", response_model=DeclaredReply)
async def declare(request: Request, session: Owner, body: DeclareBody, key: Key) -> Response:
    """Fix what may be asked exactly, before anything is answered."""
    return await answer(request, session, key, questions.prepare_declaration, body)
