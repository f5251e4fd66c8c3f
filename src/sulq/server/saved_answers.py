"""What people keep of their answers: the statement that was asked, a name, a note, a pin.

The numbers themselves are in the ledger and nowhere else: an answer is opened by reading them there
again. Words are kept per account of a published table, and can be deleted.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import apsw

from sulq.kernel.ledger.state_dir import private_directory
from sulq.server.errors import out_of_order
from sulq.wire import fraction_text

COLUMNS = "number, first, sql, credits, rows, name, note, pinned"


class AnswerShelf(NamedTuple):
    """One account at one published table."""

    table: str
    account: str


@dataclass(frozen=True, slots=True)
class SavedAnswer:
    """An answer by the number of its entry in the ledger. `first` is the first entry of a statement
    that asked several questions; `sql` is empty where it was not asked in SQL here."""

    number: int
    first: int
    sql: str = ""
    credits: Fraction | None = None
    rows: int | None = None
    name: str = ""
    note: str = ""
    pinned: bool = False


class SavedAnswers:
    """Saved answers of all tables. SQLite in the state directory; thread-safe."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()

    @classmethod
    def open(cls, path: Path | None = None) -> SavedAnswers:
        """`path` None: answers.sqlite in the state directory."""
        where = path or private_directory() / "answers.sqlite"
        where.touch(0o600)
        connection = apsw.Connection(str(where))
        connection.set_busy_timeout(5_000)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS answers (place TEXT, account TEXT, number INTEGER,"
            " first INTEGER, sql TEXT, credits TEXT, rows INTEGER, name TEXT, note TEXT,"
            " pinned INTEGER, PRIMARY KEY (place, account, number)) WITHOUT ROWID"
        )
        return cls(connection)

    def find(self, shelf: AnswerShelf, number: int) -> SavedAnswer | None:
        """Return what is kept of an entry; None if nothing is."""
        with self.transaction():
            rows = self._connection.execute(
                f"SELECT {COLUMNS} FROM answers WHERE place = ? AND account = ? AND number = ?",  # noqa: S608 - constant names
                (*shelf, number),
            ).fetchall()
        return _saved(rows[0]) if rows else None

    def listed(self, shelf: AnswerShelf) -> dict[int, SavedAnswer]:
        """Return everything that an account keeps, by number."""
        with self.transaction():
            rows = self._connection.execute(
                f"SELECT {COLUMNS} FROM answers WHERE place = ? AND account = ?",  # noqa: S608 - constant names
                shelf,
            ).fetchall()
        return {saved.number: saved for saved in map(_saved, rows)}

    def asked(
        self,
        shelf: AnswerShelf,
        numbers: list[int],
        sql: str,
        credits: Fraction | None,
        rows: int | None,
    ) -> None:
        """Keep the statement of these entries, the first time that it is asked."""
        due = None if credits is None else fraction_text(credits)
        with self.transaction():
            for number in numbers:
                self._connection.execute(
                    "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, '', '', 0)"
                    " ON CONFLICT DO UPDATE SET sql = excluded.sql, credits = excluded.credits,"
                    " rows = excluded.rows, first = excluded.first WHERE answers.sql = ''",
                    (*shelf, number, numbers[0], sql, due, rows),
                )

    def describe(
        self, shelf: AnswerShelf, number: int, name: str, note: str, *, pinned: bool
    ) -> None:
        """Give an answer a name, a note and a pin, or take them away."""
        with self.transaction():
            self._connection.execute(
                "INSERT INTO answers VALUES (?, ?, ?, ?, '', NULL, NULL, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET name = excluded.name, note = excluded.note,"
                " pinned = excluded.pinned",
                (*shelf, number, number, name, note, int(pinned)),
            )

    @contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """One at a time; what cannot be read or written is the same to all."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield self._connection
                except BaseException:
                    self._connection.execute("ROLLBACK")
                    raise
                self._connection.execute("COMMIT")
            except apsw.Error:
                raise out_of_order() from None

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def _saved(row: tuple[object, ...]) -> SavedAnswer:
    number, first, sql, credits, rows, name, note, pinned = row
    return SavedAnswer(
        number=int(str(number)),
        first=int(str(first)),
        sql=str(sql),
        credits=None if credits is None else Fraction(str(credits)),
        rows=None if rows is None else int(str(rows)),
        name=str(name),
        note=str(note),
        pinned=bool(pinned),
    )
