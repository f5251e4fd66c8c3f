"""What is public about a table, and what the caller may read of its books."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import HTMLResponse

from sulq.database import Database
from sulq.report.style import SHA256
from sulq.server.auth.tokens import AT_TABLES, Caller, Role, require
from sulq.server.errors import not_found
from sulq.server.executor import Anybody, Asker, Reader, run_free, service_of
from sulq.server.service import books
from sulq.wire import LedgerReply, MeReply, SchemaReply, StatementReply, TableLine, TablesReply

router = APIRouter(prefix="/v1", tags=["tables"])
Whoever = Annotated[Caller, Depends(require(*AT_TABLES))]
After = Annotated[int, Query(ge=0, le=2**62)]


@router.get("/me")
async def me(request: Request, caller: Whoever) -> MeReply:
    """Whose token this is, and which tables it reaches."""
    found = await run_free(request, service_of(request).listed, caller)
    roles = {line["name"]: line["role"] for line in found}
    return MeReply(name=caller.name, role=str(caller.role), roles=roles, tables=list(roles))


@router.get("/tables")
async def tables(request: Request, caller: Whoever) -> TablesReply:
    """The tables that the caller may see."""
    found = await run_free(request, service_of(request).listed, caller)
    return TablesReply(tables=[TableLine.model_validate(line) for line in found])


@router.get("/tables/{table}/schema", response_model_by_alias=True)
async def schema(request: Request, session: Anybody) -> SchemaReply:
    """The public facts: columns, promise, size."""
    return await run_free(request, books.schema, session)


@router.get("/tables/{table}/statement")
async def statement(request: Request, session: Anybody) -> StatementReply:
    """What is spent and left."""
    return await run_free(request, books.statement, session)


@router.get("/tables/{table}/ledger")
async def ledger(
    request: Request,
    session: Anybody,
    after: After = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 500,
) -> LedgerReply:
    """The chain of events: an analyst's own in full, others' as prices and hashes."""
    return await run_free(request, books.ledger, session, after, limit)


@router.get("/tables/{table}/receipts/{number}")
async def receipt(
    request: Request, session: Anybody, number: Annotated[int, Path(ge=0, le=2**62)]
) -> dict[str, Any]:
    """A signed receipt."""
    return await run_free(request, books.receipt, session, number)


@router.get("/tables/{table}/answers")
async def answers(
    request: Request,
    session: Asker,
    after: After = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> LedgerReply:
    """Answers that the caller has paid for and may read again for nothing.

    A page may be empty and yet have a `next`: so many events were looked through.
    """
    return await run_free(request, books.answers, session, after, limit)


@router.get("/tables/{table}/dummy")
async def dummy(
    request: Request,
    session: Anybody,
    rows: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> dict[str, list[Any]]:
    """Made-up rows of this schema, by column; they belong to nobody."""
    return await run_free(request, books.dummy, session, rows)


@router.get("/tables/{table}/report", response_class=HTMLResponse)
async def report(request: Request, session: Reader) -> HTMLResponse:
    """The audit report, one page of HTML; for auditors without the noise test's word."""
    made: Callable[[Database, bool], str] | None = request.app.state.report
    if made is None:
        raise not_found("this server makes no reports; `sulq report` does")

    def page() -> str:
        return made(session.database, session.caller.role != Role.OWNER)

    content = await run_free(request, page)
    return HTMLResponse(content, headers={"Content-Security-Policy": REPORT_POLICY})


REPORT_POLICY = (
    f"default-src 'none'; style-src 'sha256-{SHA256}'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing may load; the report's own style is let in by its hash."""
