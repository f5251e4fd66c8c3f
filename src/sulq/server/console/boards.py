"""Boards: stored answers and text on a page, free to view; also as a file that needs no script.

What a board shows is read from the ledger each time, for its reader: an answer opens there if it
would open at its own address.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response
from markupsafe import Markup
from pydantic import Field

from sulq.errors import SulqError
from sulq.formatting import credits_word, ordinal
from sulq.server.address import base_of
from sulq.server.auth.tokens import Role
from sulq.server.boards import EVERYBODY, Board, BoardPart, Entry
from sulq.server.console.ask.page import own_questions, titled
from sulq.server.console.framework import Form, fragment, static_file
from sulq.server.console.history import when_text
from sulq.server.console.stored import StoredView, sharing_name, stored_view, told_entry, unnamed
from sulq.server.errors import HttpProblem, not_found
from sulq.server.executor import Asker
from sulq.server.service.catalog import id_of
from sulq.server.service.session import TableSession

router = APIRouter(include_in_schema=False)
BoardId = Annotated[str, Path(pattern=r"^[0-9a-f]{12}$")]
MOST_OFFERED = 40
FONTS = re.compile(r"@font-face \{[^}]*\}\n")
"""A file that stands alone has no server to fetch fonts from."""


class BoardForm(Form):
    """What the forms of a board send: each fills in its own field."""

    title: Annotated[str, Field(max_length=120)] = ""
    text: Annotated[str, Field(max_length=4_000)] = ""
    number: Annotated[int, Field(ge=0, le=2**62)] = 0
    at: Annotated[int, Field(ge=0, le=2**62)] = 0
    reader: Annotated[str, Field(max_length=100, pattern=r"^[^*\x00-\x1f]*$")] = ""


@dataclass(frozen=True, slots=True)
class BoardLine:
    title: str
    href: str
    about: str


@dataclass(frozen=True, slots=True)
class BoardsView:
    table: str
    mine: tuple[BoardLine, ...]
    others: tuple[BoardLine, ...]
    answers: tuple[BoardLine, ...]
    """Single answers that were shared with the reader."""
    shares: bool


@dataclass(frozen=True, slots=True)
class PartView:
    at: int
    text: str
    answer: StoredView | None
    title: str
    href: str
    missing: bool = False


@dataclass(frozen=True, slots=True)
class BoardView:
    table: str
    board: str
    title: str
    about: str
    mine: bool
    parts: tuple[PartView, ...]
    offered: tuple[tuple[str, str], ...]
    shares: bool
    readers: tuple[str, ...]
    front: bool
    owner: bool
    style: Markup | None = None


def boards_view(session: TableSession) -> BoardsView:
    """One's own boards, and what was shared with one."""
    boards, place, me = session.service.boards, id_of(session.database), session.account
    found = boards.listed(place, me)
    told = boards.shared_with(place, me) if session.shares else []
    answers = []
    for number, giver in told:
        try:
            event = told_entry(session, number)
        except HttpProblem:  # of a ledger that was restored to before it
            continue
        kept = session.service.saved.find(session.shelf(event.analyst), number)
        title = titled(event, unnamed(kept))
        answers.append(BoardLine(title, f"/t/{session.table}/a/{number}", f"from {giver}"))
    return BoardsView(
        table=session.table,
        mine=tuple(_line(session, one) for one in found if one.account == me),
        others=tuple(_line(session, one) for one in found if one.account != me)
        if session.shares
        else (),
        answers=tuple(answers),
        shares=session.shares,
    )


def front_boards(session: TableSession) -> tuple[BoardLine, ...]:
    """Boards that the owner opened for everybody at the table: the first that a newcomer reads."""
    if not session.shares or session.caller.role == Role.AUDITOR:
        return ()
    boards, place = session.service.boards, id_of(session.database)
    return tuple(_line(session, one) for one in boards.listed(place, EVERYBODY))


def _line(session: TableSession, one: Board) -> BoardLine:
    by = "" if one.account == session.account else f"by {one.account}"
    return BoardLine(one.title, f"/t/{session.table}/board/{one.board}", by)


def reached_board(session: TableSession, board: str, *, own: bool = False) -> Board:
    """Return a board that the caller may read (with `own`: change); else as if there were none."""
    found = session.service.boards.find(id_of(session.database), board)
    me = session.account
    open_ = found is not None and (
        found.account == me
        or (not own and session.shares and not {me, EVERYBODY}.isdisjoint(found.readers))
    )
    if found is None or not open_:
        raise not_found("there is no board of this name for this token")
    return found


def board_view(session: TableSession, board: str, base: str) -> BoardView:
    """A board as its reader may see it; nothing is charged, written or computed from rows."""
    found = reached_board(session, board)
    mine = found.account == session.account
    parts = tuple(_part(session, part, base) for part in found.parts)
    paid = sum((_paid(session, part) for part in found.parts), Fraction(0))
    whose = "" if mine else f"By {found.account}. "
    return BoardView(
        table=session.table,
        board=board,
        title=found.title,
        about=f"{whose}These answers cost {credits_word(paid)} once. Reading them is free.",
        mine=mine,
        parts=parts,
        offered=tuple(
            (line.href.rpartition("/")[2], f"{line.text} ({line.number})")
            for line in own_questions(session)[:MOST_OFFERED]
        )
        if mine
        else (),
        shares=session.shares,
        readers=tuple(reader for reader in found.readers if reader != EVERYBODY) if mine else (),
        front=EVERYBODY in found.readers,
        owner=session.caller.role == Role.OWNER,
    )


def _part(session: TableSession, part: BoardPart, base: str) -> PartView:
    if part.number is None:
        return PartView(part.at, part.text, None, "", "")
    try:
        if told_entry(session, part.number).hash != part.hash:
            raise not_found("this number is another answer now")
        shown = stored_view(session, part.number, base)
    except (HttpProblem, SulqError):
        return PartView(part.at, "", None, f"Answer {ordinal(part.number)}", "", missing=True)
    href = f"/t/{session.table}/a/{part.number}"
    return PartView(part.at, "", shown, shown.words.title, href)


def _paid(session: TableSession, part: BoardPart) -> Fraction:
    if part.number is None:
        return Fraction(0)
    try:
        return told_entry(session, part.number).credits
    except HttpProblem:
        return Fraction(0)


def file_view(session: TableSession, board: str, base: str) -> BoardView:
    """The same for a file: with its style inside."""
    style = FONTS.sub("", (static_file("sulq.css") or b"").decode())
    return replace(board_view(session, board, base), style=Markup(style))  # noqa: S704 - a file of ours


def made_board(session: TableSession, form: BoardForm) -> str:
    title = " ".join(form.title.split()) or "A new board"
    made = session.service.boards.create(id_of(session.database), session.account, title)
    if made is None:
        raise HttpProblem(422, "too_large", "you have too many boards", "delete one first")
    return f"/t/{session.table}/board/{made}"


def _rename(session: TableSession, found: Board, form: BoardForm) -> None:
    title = " ".join(form.title.split()) or found.title
    session.service.boards.entitle(id_of(session.database), found.board, title)


def _add(session: TableSession, found: Board, form: BoardForm) -> None:
    place, text = id_of(session.database), form.text.strip()
    if form.number:
        event = told_entry(session, form.number)
        what: Entry | str = Entry(place, event.seq, event.hash)
    elif text:
        what = text
    else:
        return
    if not session.service.boards.add(place, found.board, what):
        raise HttpProblem(422, "too_large", "this board is full", "take something off it first")


def _drop(session: TableSession, found: Board, form: BoardForm) -> None:
    session.service.boards.drop(id_of(session.database), found.board, form.at)


def _up(session: TableSession, found: Board, form: BoardForm) -> None:
    session.service.boards.raise_part(id_of(session.database), found.board, form.at)


def _share(session: TableSession, found: Board, form: BoardForm) -> None:
    reader = sharing_name(session, form.reader)
    session.service.boards.open_for(id_of(session.database), found, reader, session.account)


def _unshare(session: TableSession, found: Board, form: BoardForm) -> None:
    reader = sharing_name(session, form.reader)
    session.service.boards.close_for(id_of(session.database), found, reader, session.account)


def _front(session: TableSession, found: Board, form: BoardForm) -> None:
    """Open a board for everybody at the table, or close it again; the owner's act."""
    sharing_name(session, "everybody")
    if session.caller.role != Role.OWNER:
        raise not_found("there is no board of this name for this token")
    boards, place = session.service.boards, id_of(session.database)
    act = boards.close_for if EVERYBODY in found.readers else boards.open_for
    act(place, found, EVERYBODY, session.account)


DEEDS: dict[str, Callable[[TableSession, Board, BoardForm], None]] = {
    "title": _rename,
    "add": _add,
    "drop": _drop,
    "up": _up,
    "share": _share,
    "unshare": _unshare,
    "front": _front,
}


def changed_board(
    session: TableSession, board: str, deed: str, form: BoardForm, base: str
) -> BoardView:
    found = reached_board(session, board, own=True)
    if deed not in DEEDS:
        raise not_found("there is no board of this name for this token")
    DEEDS[deed](session, found, form)
    return board_view(session, board, base)


def deleted_board(session: TableSession, board: str) -> str:
    found = reached_board(session, board, own=True)
    session.service.boards.delete(id_of(session.database), found, session.account)
    return f"/t/{session.table}/boards"


def acts_text(session: TableSession) -> tuple[tuple[str, str, str], ...]:
    """(when, who, what) of every share, for owner and auditor; no value and no words of anybody."""
    if session.caller.role == Role.ANALYST:
        return ()
    found = session.service.boards.acts(id_of(session.database))
    return tuple(
        (
            when_text(one.at),
            one.who,
            f"{one.act} {one.what} {'with' if one.act == 'shared' else 'from'}"
            f" {'everybody at this table' if one.reader == EVERYBODY else one.reader}",
        )
        for one in found
    )


@router.get("/console/{table}/boards")
async def boards(request: Request, session: Asker) -> Response:
    return await fragment(request, "boards.html", boards_view, session)


@router.post("/console/{table}/boards")
async def make(request: Request, session: Asker, form: BoardForm) -> Response:
    return await fragment(request, "parts.html#go", made_board, session, form)


@router.get("/console/{table}/board/{board}")
async def board(request: Request, session: Asker, board: BoardId) -> Response:
    given: tuple[Any, ...] = (session, board, base_of(request))
    return await fragment(request, "board.html", board_view, *given)


@router.get("/console/{table}/board/{board}/file")
async def board_file(request: Request, session: Asker, board: BoardId) -> Response:
    given: tuple[Any, ...] = (session, board, base_of(request))
    return await fragment(request, "board_file.html", file_view, *given)


@router.post("/console/{table}/board/{board}/delete")
async def delete(request: Request, session: Asker, board: BoardId) -> Response:
    return await fragment(request, "parts.html#go", deleted_board, session, board)


@router.post("/console/{table}/board/{board}/{deed}")
async def change(
    request: Request, session: Asker, board: BoardId, deed: str, form: BoardForm
) -> Response:
    given: tuple[Any, ...] = (session, board, deed, form, base_of(request))
    return await fragment(request, "board_parts.html#content", changed_board, *given)
