"""The Ledger page: every question that was ever charged, and the chain that binds them.

A link is SHA-256(previous hash, body), so the browser can check those whose body its reader may
see; over the others the server's own check stands, and the page says which is which.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import Field

from sulq.database import Database
from sulq.database.audit import FEWEST, last_replay
from sulq.errors import Refused, SulqError
from sulq.formatting import ordinal, price_text, spelled
from sulq.kernel.ledger.export import (
    GENUINE,
    NO_RECEIPT,
    NOT_HERE,
    NOT_SIGNED,
    export,
    judge_signature,
)
from sulq.server.auth.tokens import Role
from sulq.server.console.boards import acts_text
from sulq.server.console.framework import fragment, problem_card
from sulq.server.console.history import (
    CHANGES,
    Books,
    Event,
    books,
    change_text,
    history,
    step_text,
    when_text,
)
from sulq.server.errors import HttpProblem, problem_of
from sulq.server.executor import Anybody, run_free
from sulq.server.service.books import ANOTHER
from sulq.server.service.session import TableSession
from sulq.wire.bodies import Body

router = APIRouter(include_in_schema=False)
PAGE = 12
LAST = 5
KINDS = {
    "": "All kinds",
    "mine": "My own",
    "asked": "Questions",
    "learn": "Learning",
    "change": "Changes",
}
STATES = {"answered": "ok", "not delivered": "warn", "change": "", "exact": "warn", "step": ""}


@dataclass(frozen=True, slots=True)
class EntryLine:
    newest: bool
    number: str
    at: str
    account: str
    question: str
    credits: str
    state: str
    state_kind: str
    print: str
    then: str = ""  # the event that holds the answer, on the same line
    then_print: str = ""
    href: str = ""
    """Where its answer is opened, for who may."""


@dataclass(frozen=True, slots=True)
class EntriesView:
    lines: tuple[EntryLine, ...]
    said: str
    newer: str
    older: str
    paged: bool


@dataclass(frozen=True, slots=True)
class LedgerView:
    table: str
    count: int
    chain: tuple[tuple[str, str, str], ...]
    between: str
    state: str
    first: str
    more: str
    entries: EntriesView
    kinds: tuple[tuple[str, str], ...]
    public_key: str
    full: bool
    noise: tuple[str, str, str]
    noise_more: str
    report: bool
    unit: str
    acts: tuple[tuple[str, str, str], ...] = ()
    """Who shared what with whom, for owner and auditor."""


def short(print_: str) -> str:
    return f"{print_[:4]}…{print_[-4:]}"


def ledger_view(session: TableSession) -> LedgerView:
    database = session.database
    anchor = database.ledger.anchor()  # first: the ledger only runs ahead of it
    found = books(database)
    state, first, more = chain_state(database, anchor, found)
    statement = database.statement().statement
    rows = found.events
    tail = rows[-LAST:] if len(rows) > LAST + 1 else rows[1:]
    names = [(rows[0], "opened"), *((row, "") for row in tail)]
    chain = tuple(
        (
            f"{ordinal(row.seq)}{' ' + word if word else ''}"
            f"{' head' if row is rows[-1] and not word else ''}",
            short(row.hash),
            "headmost" if row is rows[-1] else "",
        )
        for row, word in names
    )
    hidden = len(rows) - 1 - len(tail)
    return LedgerView(
        table=session.table,
        count=len(rows),
        chain=chain,
        between=f"{spelled(hidden, 0)} {'entry' if hidden == 1 else 'entries'}" if hidden else "",
        state=state,
        first=first,
        more=more,
        entries=entries_view(session),
        kinds=tuple(
            pair
            for pair in KINDS.items()
            if pair[0] != "mine" or session.caller.role != Role.AUDITOR
        ),
        public_key=statement.public_key,
        full=session.caller.role != Role.ANALYST,
        noise=noise_state(session),
        noise_more="The owner computes every stored answer again and compares: do the replies"
        " scatter as much as claimed?",
        report=session.caller.role != Role.ANALYST,
        unit="row" if database.schema.unit == "row" else "person",
        acts=acts_text(session),
    )


def chain_state(database: Database, anchor: bytes | None, found: Books) -> tuple[str, str, str]:
    """(kind of note, first clause, rest): the server's own check, as far as the chain has come."""
    if found.broken:
        return (
            "bad",
            f"Entry {ordinal(found.broken)} was changed after it was written.",
            "Nothing new may rest on this chain.",
        )
    rows = found.events
    span = f"{spelled(len(rows), 0)} entries ({ordinal(rows[0].seq)} to {ordinal(found.seq)})"
    anchored = _anchored(database, anchor, found)
    if anchored is False:
        return (
            "bad",
            "The ledger is older than its anchor.",
            "Probably a restored backup; entries are missing.",
        )
    said = (
        " The anchor, kept outside this server's ledger, agrees with the head."
        if anchored
        else " This ledger has no anchor: it lives in memory."
    )
    checked = time.strftime("%H:%M:%S")
    more = f"{span}, every fingerprint matches.{said} Checked by the server at {checked}."
    return "ok", "The chain is whole.", more


def _anchored(database: Database, anchor: bytes | None, found: Books) -> bool | None:
    """Return whether the anchor names a head of this chain, or None if there is no anchor."""
    if anchor is None:
        return None
    mark = database.ledger.anchored_head(anchor)
    return mark is not None and (mark.seq == 0 or found.hashes.get(mark.seq) == mark.hash.hex())


def noise_state(session: TableSession) -> tuple[str, str, str]:
    """Pass or fail, for the owner only; any figure would be a function of exact answers."""
    if session.caller.role != Role.OWNER:
        return (
            "info",
            "For the owner.",
            "The word stands in the owner's view and never with more than pass or fail.",
        )
    try:
        found = last_replay(session.database)
    except Refused:
        found = None
    if found is None:
        return ("info", "Not run yet.", f"sulq audit --replay runs it, from {FEWEST} answers on.")
    if found.passed:
        return (
            "ok",
            "Passed.",
            "An honest table fails this test once in a thousand million."
            " Only pass or fail leaves the replay.",
        )
    return (
        "bad",
        "Failed.",
        "The replies do not scatter as claimed. Stop asking and look into it.",
    )


def entries_view(
    session: TableSession, before: int = 0, kind: str = "", text: str = ""
) -> EntriesView:
    """A page of entries, the newest first; of others an analyst sees price and fingerprint.

    Every event of the chain is there: an answer on the line of its question, any other on its own.
    """
    events, _ = history(session.database)
    answers = {event.entry: event for event in events if event.kind == "answer"}
    asked = {event.seq: event for event in events if event.kind != "answer"}
    own = session.account
    full = session.caller.role != Role.ANALYST

    role, address = session.caller.role, f"/t/{quote(session.table, safe='')}/a"

    def line(event: Event) -> EntryLine:
        made = _line(event, answers.get(event.seq), asked.get(event.entry), own, full)
        opens = role == Role.OWNER or (role == Role.ANALYST and event.analyst == own)
        told = event.asked and made.state in ("answered", "exact")
        return replace(made, href=f"{address}/{event.seq}") if opens and told else made

    shown = [event for event in events if event.kind != "answer" or event.entry not in asked]
    newest = shown[-1].seq if shown else 0
    if kind or text:
        shown = [event for event in shown if _fits(event, line(event), kind, text, own)]
    lines = shown[::-1]
    start = next((place for place, event in enumerate(lines) if event.seq < before), len(lines))
    start = start if before else 0
    part = lines[start : start + PAGE]
    end = start + len(part)
    of = f"{start + 1} to {end} of {spelled(len(lines), 0)} lines" if part else "Nothing fits."
    if part and not (kind or text):
        of += f", {spelled(len(events), 0)} entries"
    newer = lines[start - PAGE - 1].seq if start > PAGE else 0

    def at(seq: int) -> str:
        wanted = urlencode({"before": seq, "kind": kind, "text": text})
        return f"/console/{quote(session.table, safe='')}/entries?{wanted}"

    return EntriesView(
        lines=tuple(
            replace(line(event), newest=event.seq == newest and not before) for event in part
        ),
        said=of,
        newer=at(newer) if start else "",
        older=at(part[-1].seq) if end < len(lines) else "",
        paged=bool(before),
    )


def _line(
    event: Event, answer: Event | None, about: Event | None, own: str, full: bool
) -> EntryLine:
    """One line; `answer` is the event that holds its answer, `about` the one that it names."""
    asker = event.analyst or (about.analyst if about and event.kind == "return" else "")
    mine = full or asker == own
    who = asker if mine else ANOTHER if asker else ""
    credits = "0"
    if event.kind in CHANGES:
        closed = not mine and event.kind in ("grant", "revoke")
        said = "A share was changed" if closed else change_text(event, who)
        said = f"{said}: “{event.reason}”" if event.reason and not closed else said
        state = "change"
        who = who or "owner"
    elif event.asked:
        said = event.title if mine else "—"
        state = "exact" if event.kind == "release" else "answered"
        if event.kind == "charge" and answer is None:
            state = "not delivered"
        credits = price_text(event.credits if event.credits else Fraction(0))
    else:
        said, state = step_text(event) if mine or not asker else "—", "step"
    return EntryLine(
        newest=False,
        number=ordinal(event.seq),
        at=when_text(event.at),
        account=who,
        question=said,
        credits=credits,
        state=state,
        state_kind=STATES[state],
        print=short(event.hash),
        then=ordinal(answer.seq) if answer else "",
        then_print=short(answer.hash) if answer else "",
    )


def _fits(event: Event, line: EntryLine, kind: str, text: str, own: str) -> bool:
    learnt = event.title.startswith("Learning")
    kinds = {
        "": True,
        "asked": event.asked and not learnt,
        "learn": learnt,
        "change": event.kind in CHANGES,
        "mine": event.asked and event.analyst == own,
    }
    wanted = text.strip().lower()
    return kinds.get(kind, True) and (
        not wanted
        or any(
            wanted in part.lower()
            for part in (line.number, line.then, line.at, line.account, line.question)
        )
    )


class ReceiptBody(Body):
    """Receipts, one to a line, for browsers that cannot check a signature themselves."""

    text: Annotated[str, Field(max_length=200_000)]


VERDICTS = {GENUINE: "genuine", NOT_SIGNED: "forged", NO_RECEIPT: "none", NOT_HERE: "astray"}


def judged(session: TableSession, line: str) -> dict[str, Any]:
    """What a receipt is worth by this table's key and chain. Reads no data."""
    database = session.database
    said, receipt = judge_signature(line, [database.statement().statement.public_key])
    if receipt is not None and said == GENUINE:
        known = books(database).hashes.get(receipt.body["answer"])
        said = GENUINE if known == receipt.body["answer_link"] else NOT_HERE
    return {"verdict": VERDICTS[said]}


def exported(session: TableSession) -> str:
    """The chain as `sulq verify` reads it. Values are the owner's alone; an auditor reads who
    asked what, an analyst of others only the hashes."""
    database = session.database
    name = database.ledger.header.name
    redact = session.caller.role != Role.OWNER
    auditor = session.caller.role == Role.AUDITOR
    ledger = database.ledger
    rows = ledger.rows(0, ledger.head)
    lines = export(rows, table=name, redact=redact, analyst=session.reader, everybody=auditor)
    return "".join(f"{line}\n" for line in lines)


@router.get("/console/{table}/ledger")
async def ledger(request: Request, session: Anybody) -> Response:
    return await fragment(request, "ledger.html", ledger_view, session)


@router.get("/console/{table}/entries")
async def entries(
    request: Request,
    session: Anybody,
    before: Annotated[int, Query(ge=0, le=2**62)] = 0,
    kind: Annotated[str, Query(max_length=10)] = "",
    text: Annotated[str, Query(max_length=80)] = "",
) -> Response:
    return await fragment(request, "entries.html", entries_view, session, before, kind, text)


@router.post("/console/{table}/receipt")
async def check(request: Request, session: Anybody, body: ReceiptBody) -> dict[str, Any]:
    return await run_free(request, judged, session, body.text)


@router.get("/console/{table}/chain.jsonl")
async def chain(request: Request, session: Anybody) -> Response:
    try:
        made = await run_free(request, exported, session)
    except HttpProblem as problem:
        return problem_card(problem)
    except SulqError as error:
        return problem_card(problem_of(error))
    return Response(made, media_type="application/jsonl")
