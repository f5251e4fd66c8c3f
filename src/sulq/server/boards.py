"""Boards and shared answers: who lets whom read what, and a record of every such act.

A board is answers and text on a page. It holds numbers of entries, never a value: those stay in the
ledger. A share opens an answer, or a board, for a named account; a board of the owner may be opened
for everybody at the table. Shares count only where the policy says `sharing = true`, and only for
the very entry that was shared: its hash is kept, since a restored ledger may use a number again.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import NamedTuple

import apsw

from sulq.formatting import ordinal
from sulq.kernel.ledger.budget import OWNER
from sulq.server.saved_answers import SavedAnswers

EVERYBODY = "*"
"""Stands for whoever has a token of the table; no account can be called so."""
MOST_BOARDS = 100
MOST_PARTS = 60
TABLES = (
    "shares (place TEXT, number INTEGER, hash TEXT, giver TEXT, reader TEXT,"
    " PRIMARY KEY (place, number, hash, giver, reader))",
    "boards (place TEXT, board TEXT, account TEXT, title TEXT, PRIMARY KEY (place, board))",
    "parts (place TEXT, board TEXT, at INTEGER, number INTEGER, hash TEXT, text TEXT,"
    " PRIMARY KEY (place, board, at))",
    "readers (place TEXT, board TEXT, reader TEXT, PRIMARY KEY (place, board, reader))",
    "acts (at INTEGER, place TEXT, who TEXT, act TEXT, what TEXT, reader TEXT)",
)


class Entry(NamedTuple):
    """An entry of a published table's ledger."""

    place: str
    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class BoardPart:
    """An answer by its number, or a text."""

    at: int
    number: int | None
    hash: str
    text: str


@dataclass(frozen=True, slots=True)
class Board:
    board: str
    account: str
    title: str
    readers: tuple[str, ...] = ()
    parts: tuple[BoardPart, ...] = ()


@dataclass(frozen=True, slots=True)
class ShareAct:
    """Who let whom read what, or took it back."""

    at: int
    who: str
    act: str
    what: str
    reader: str


class Boards:
    """Kept beside names and notes, in the same file. Thread-safe."""

    def __init__(self, saved: SavedAnswers) -> None:
        self._saved = saved
        with saved.transaction() as store:
            for table in TABLES:
                store.execute(f"CREATE TABLE IF NOT EXISTS {table}")

    # --- answers ---

    def share(self, entry: Entry, giver: str, reader: str) -> None:
        """Let an account read an answer; recorded."""
        with self._saved.transaction() as store:
            _put(store, "shares", (*entry, giver, reader))
            _record(store, entry.place, giver, "shared", ordinal(entry.number), reader)

    def take_back(self, entry: Entry, giver: str, reader: str) -> None:
        """What was read cannot be unread; recorded."""
        with self._saved.transaction() as store:
            store.execute(
                "DELETE FROM shares WHERE place = ? AND number = ? AND hash = ? AND giver = ?"
                " AND reader = ?",
                (*entry, giver, reader),
            )
            _record(store, entry.place, giver, "took back", ordinal(entry.number), reader)

    def readers(self, entry: Entry, giver: str) -> list[str]:
        """Return whom an account lets read an answer."""
        with self._saved.transaction() as store:
            found = store.execute(
                "SELECT reader FROM shares WHERE place = ? AND number = ? AND hash = ?"
                " AND giver = ? ORDER BY 1",
                (*entry, giver),
            ).fetchall()
        return [str(reader) for (reader,) in found]

    def lets(self, entry: Entry, teller: str, reader: str) -> bool:
        """Return whether an answer that was told to `teller` is open for `reader` by a share, or by
        a board of the teller or the owner."""
        with self._saved.transaction() as store:
            (found,) = store.execute(
                "SELECT EXISTS (SELECT 1 FROM shares WHERE place = :place AND number = :number"
                " AND hash = :hash AND reader = :reader) OR EXISTS (SELECT 1 FROM parts"
                " JOIN boards USING (place, board) JOIN readers USING (place, board)"
                " WHERE place = :place AND number = :number AND hash = :hash"
                " AND account IN (:teller, :owner) AND reader IN (:reader, :everybody))",
                {
                    **entry._asdict(),
                    "teller": teller,
                    "reader": reader,
                    "owner": OWNER,
                    "everybody": EVERYBODY,
                },
            ).fetchall()
        return bool(found[0])

    def shared_with(self, place: str, reader: str) -> list[tuple[int, str]]:
        """Return (number, giver) of answers that were shared with an account, the newest first."""
        with self._saved.transaction() as store:
            found = store.execute(
                "SELECT number, giver FROM shares WHERE place = ? AND reader = ? ORDER BY 1 DESC",
                (place, reader),
            ).fetchall()
        return [(int(str(number)), str(giver)) for number, giver in found]

    def acts(self, place: str) -> list[ShareAct]:
        """Return every act, the newest first: for owner and auditor."""
        with self._saved.transaction() as store:
            found = store.execute(
                "SELECT at, who, act, what, reader FROM acts WHERE place = ? ORDER BY rowid DESC",
                (place,),
            ).fetchall()
        return [ShareAct(int(str(at)), *map(str, rest)) for at, *rest in found]

    # --- boards ---

    def create(self, place: str, account: str, title: str) -> str | None:
        """Make an empty board; its id is random. None where the account has too many."""
        board = secrets.token_hex(6)
        with self._saved.transaction() as store:
            ((many,),) = store.execute(
                "SELECT COUNT(*) FROM boards WHERE place = ? AND account = ?", (place, account)
            ).fetchall()
            if int(str(many)) >= MOST_BOARDS:
                return None
            _put(store, "boards", (place, board, account, title))
        return board

    def listed(self, place: str, account: str) -> list[Board]:
        """Return one's own boards and those that one may read, without their parts."""
        with self._saved.transaction() as store:
            found = store.execute(
                "SELECT DISTINCT board, account, title FROM boards LEFT JOIN readers"
                " USING (place, board) WHERE place = ? AND (account = ? OR reader IN (?, ?))"
                " ORDER BY title",
                (place, account, account, EVERYBODY),
            ).fetchall()
        return [Board(str(board), str(by), str(title)) for board, by, title in found]

    def find(self, place: str, board: str) -> Board | None:
        with self._saved.transaction() as store:
            key = (place, board)
            found = store.execute(
                "SELECT account, title FROM boards WHERE place = ? AND board = ?", key
            ).fetchall()
            parts = store.execute(
                "SELECT at, number, hash, text FROM parts WHERE place = ? AND board = ?"
                " ORDER BY at",
                key,
            ).fetchall()
            readers = store.execute(
                "SELECT reader FROM readers WHERE place = ? AND board = ? ORDER BY 1", key
            ).fetchall()
        if not found:
            return None
        account, title = map(str, found[0])
        return Board(
            board,
            account,
            title,
            tuple(str(reader) for (reader,) in readers),
            tuple(
                BoardPart(
                    int(str(at)), None if number is None else int(str(number)), *map(str, rest)
                )
                for at, number, *rest in parts
            ),
        )

    def entitle(self, place: str, board: str, title: str) -> None:
        with self._saved.transaction() as store:
            store.execute(
                "UPDATE boards SET title = ? WHERE place = ? AND board = ?", (title, place, board)
            )

    def add(self, place: str, board: str, what: Entry | str) -> bool:
        """Put an answer or a text at the end; False where the board is full."""
        number, hash_, text = (None, "", what) if isinstance(what, str) else (*what[1:], "")
        with self._saved.transaction() as store:
            ((many, last),) = store.execute(
                "SELECT COUNT(*), COALESCE(MAX(at), 0) FROM parts WHERE place = ? AND board = ?",
                (place, board),
            ).fetchall()
            if int(str(many)) >= MOST_PARTS:
                return False
            _put(store, "parts", (place, board, int(str(last)) + 1, number, hash_, text))
        return True

    def drop(self, place: str, board: str, at: int) -> None:
        with self._saved.transaction() as store:
            store.execute(
                "DELETE FROM parts WHERE place = ? AND board = ? AND at = ?", (place, board, at)
            )

    def raise_part(self, place: str, board: str, at: int) -> None:
        """Change places with the part above."""
        with self._saved.transaction() as store:
            ((above,),) = store.execute(
                "SELECT MAX(at) FROM parts WHERE place = ? AND board = ? AND at < ?",
                (place, board, at),
            ).fetchall()
            if above is None:
                return
            for old, new in ((at, -1), (above, at), (-1, above)):
                store.execute(
                    "UPDATE parts SET at = ? WHERE place = ? AND board = ? AND at = ?",
                    (new, place, board, old),
                )

    def open_for(self, place: str, board: Board, reader: str, who: str) -> None:
        """Let an account, or everybody, read a board; recorded."""
        with self._saved.transaction() as store:
            _put(store, "readers", (place, board.board, reader))
            _record(store, place, who, "shared", f"board {board.board}", reader)

    def close_for(self, place: str, board: Board, reader: str, who: str) -> None:
        with self._saved.transaction() as store:
            store.execute(
                "DELETE FROM readers WHERE place = ? AND board = ? AND reader = ?",
                (place, board.board, reader),
            )
            _record(store, place, who, "took back", f"board {board.board}", reader)

    def delete(self, place: str, board: Board, who: str) -> None:
        with self._saved.transaction() as store:
            for table in ("boards", "parts", "readers"):
                store.execute(
                    f"DELETE FROM {table} WHERE place = ? AND board = ?",  # noqa: S608 - constant names
                    (place, board.board),
                )
            if board.readers:
                _record(store, place, who, "took back", f"board {board.board}", "all its readers")


def _put(store: apsw.Connection, table: str, row: tuple[object, ...]) -> None:
    holes = ", ".join("?" * len(row))
    store.execute(f"INSERT OR IGNORE INTO {table} VALUES ({holes})", row)  # noqa: S608 - constant names


def _record(store: apsw.Connection, place: str, who: str, act: str, what: str, reader: str) -> None:
    _put(store, "acts", (int(time.time()), place, who, act, what, reader))
