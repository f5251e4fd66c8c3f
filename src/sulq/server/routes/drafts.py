"""The owner's drafts over HTTP: begin, change, check, size, rehearse, publish for good."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field

from sulq.beliefs.sizing import sizing
from sulq.errors import InvalidQuery, Refused, SulqError
from sulq.kernel.schema.promise import Promise
from sulq.policy.files import with_table
from sulq.server.auth.tokens import Caller, Role, require
from sulq.server.drafts import (
    Draft,
    Drafts,
    advised,
    draft_text,
    faults,
    new_draft,
    published_policy,
    rehearsed,
    sources,
    state_of,
)
from sulq.server.errors import not_for_this_role
from sulq.server.executor import run_free, service_of
from sulq.server.service.catalog import Tables

router = APIRouter(prefix="/v1/drafts", tags=["owner"])
Owner = Annotated[Caller, Depends(require(Role.OWNER, every_table=True))]
Number = Annotated[str, InPath(min_length=1, max_length=64)]
EPSILONS = ("1/2", "1", "2", "4")
QUERIES = (100, 300, 1_000, 3_000, 10_000)
DRAFTS = Drafts()
_publishing = threading.Lock()


class DraftSource(BaseModel):
    model_config = ConfigDict(extra="forbid")
    source: Annotated[str, Field(min_length=1, max_length=200)]


class Ticks(BaseModel):
    """What the owner says before a promise is made for good."""

    model_config = ConfigDict(extra="forbid")
    bounds_not_from_data: Literal[True]
    public_columns_are_public: Literal[True]
    promise_is_for_good: Literal[True]


def home_of(tables: Tables, caller: Caller) -> Path:
    """The directory that tables are published from; for an owner of everything only."""
    return file_of(tables, caller).parent


def file_of(tables: Tables, caller: Caller) -> Path:
    """The policy file that a new table is written into; for an owner of everything only."""
    if caller.tables is not None:
        raise not_for_this_role("owner of some tables")
    if tables.policy is None or tables.publish is None:
        raise Refused("this server publishes no tables; start it with `sulq serve` and a policy")
    return tables.policy


@router.get("")
async def listed(request: Request, caller: Owner) -> dict[str, Any]:
    """Every draft, and the files that a new one may be about."""
    tables = service_of(request).tables

    def work() -> dict[str, Any]:
        home = None if tables.policy is None else tables.policy.parent
        found = [{"id": n, "name": d.name, "source": d.source} for n, d in DRAFTS.listed()]
        return {"drafts": found, "sources": sources(home)}

    return await run_free(request, work)


@router.post("", status_code=201)
async def begun(request: Request, body: DraftSource, caller: Owner) -> dict[str, Any]:
    """A draft of a file: its columns by their types, nothing from their values."""
    tables = service_of(request).tables

    def work() -> dict[str, Any]:
        draft = new_draft(home_of(tables, caller), body.source)
        return {"id": DRAFTS.add(draft), "draft": draft.model_dump()}

    return await run_free(request, work)


@router.get("/{number}")
async def shown(request: Request, number: Number, caller: Owner) -> dict[str, Any]:
    def work() -> dict[str, Any]:
        return {"id": number, "draft": DRAFTS.load(number).model_dump()}

    return await run_free(request, work)


@router.put("/{number}")
async def saved(request: Request, number: Number, body: Draft, caller: Owner) -> dict[str, Any]:
    """Keep what was typed, also while it is wrong; the file it is about stays the same."""

    def work() -> dict[str, Any]:
        if DRAFTS.load(number).source != body.source:
            raise InvalidQuery("a draft keeps its source; begin another draft")
        DRAFTS.save(number, body)
        return {"id": number}

    return await run_free(request, work)


@router.delete("/{number}")
async def removed(request: Request, number: Number, caller: Owner) -> dict[str, Any]:
    def work() -> dict[str, Any]:
        DRAFTS.load(number)
        DRAFTS.remove(number)
        return {"id": number}

    return await run_free(request, work)


@router.get("/{number}/check")
async def checked(request: Request, number: Number, caller: Owner) -> dict[str, Any]:
    """What is missing, how each column stands, and the policy so far."""
    tables = service_of(request).tables

    def work() -> dict[str, Any]:
        draft, home = DRAFTS.load(number), home_of(tables, caller)
        states = {column.name: state_of(column) for column in draft.columns}
        return {
            "faults": faults(draft, home, tables.taken()),
            "columns": {name: [state.word, state.said] for name, state in states.items()},
            "policy": draft_text(draft, home),
        }

    return await run_free(request, work)


@router.get("/{number}/advice")
async def advice(request: Request, number: Number, caller: Owner) -> dict[str, Any]:
    """What the owner should know before this draft is published: counted from the file's rows, for
    the owner's eyes only."""
    tables = service_of(request).tables

    def work() -> dict[str, Any]:
        return advised(DRAFTS.load(number), file_of(tables, caller)).to_json()

    return await run_free(request, work)


@router.get("/{number}/sizing")
async def sized(request: Request, number: Number, caller: Owner) -> dict[str, Any]:
    """The bar of one count under each promise of the grid."""

    def work() -> dict[str, Any]:
        draft = DRAFTS.load(number)
        return {"grid": grid(draft.delta, draft.neighbours)}

    return await run_free(request, work)


def grid(delta: str, neighbours: str) -> list[dict[str, Any]]:
    """Rows by epsilon, cells by questions: the 95 % bar of a count."""
    lines = []
    for epsilon in EPSILONS:
        bars = []
        for queries in QUERIES:
            promise = Promise(epsilon, delta, queries, neighbours=neighbours)
            bars.append({"queries": queries, "bar": sizing(promise, 2).bar})
        lines.append({"epsilon": epsilon, "bars": bars})
    return lines


@router.post("/{number}/rehearse")
async def rehearse(request: Request, number: Number, caller: Owner) -> dict[str, Any]:
    """Ten questions on made-up rows under this schema and promise; reads no file."""
    tables = service_of(request).tables

    def work() -> dict[str, Any]:
        draft, home = DRAFTS.load(number), home_of(tables, caller)
        lines = rehearsed(published_policy(draft, home, tables.taken()))
        DRAFTS.save(number, draft.model_copy(update={"rehearsed": True}))
        return {"questions": lines}

    return await run_free(request, work)


@router.post("/{number}/publish")
async def publish(request: Request, number: Number, body: Ticks, caller: Owner) -> dict[str, Any]:
    """Publish for good: a ledger is made, the policy file gets the table, and it is served."""
    tables = service_of(request).tables

    def work() -> dict[str, Any]:
        with _publishing:
            return one()

    def one() -> dict[str, Any]:
        draft, home = DRAFTS.load(number), home_of(tables, caller)
        policy = published_policy(draft, home, tables.taken())
        if tables.policy is None or tables.publish is None:
            raise Refused("this server publishes no tables")
        if found := advised(draft, tables.policy).faults:
            raise InvalidQuery(f"not ready to publish: {'; '.join(found)}")
        text = draft_text(draft, home)
        content = with_table(tables.policy, text, policy.name)  # refused before anything is made
        try:
            database = tables.publish(policy)
        except SulqError as error:
            raise Refused(f"it could not be published: {error}") from None
        tables.add(policy.name, database)
        written = _replaced(tables.policy, content)
        DRAFTS.remove(number)
        return {
            "table": policy.name,
            "fingerprint": hashlib.sha256(text.encode()).hexdigest(),
            "head": database.statement().statement.head,
            "policy_written": written,
        }

    return await run_free(request, work)


def _replaced(file: Path, content: bytes) -> bool:
    """Whole or not at all. The table is published whatever becomes of the file."""
    draft = file.with_name(f".{file.name}.new")
    try:
        draft.write_bytes(content)
        draft.replace(file)
    except OSError:
        return False
    return True
