"""Exactly once: a key is paid for once and answered with the same bytes each time."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import apsw

from sulq.database import Database
from sulq.database.publish import broken
from sulq.database.table import paid_by
from sulq.errors import EngineFailed, SulqError
from sulq.kernel.ledger.state_dir import private_directory
from sulq.server.errors import HttpProblem, out_of_order, problem_of
from sulq.server.pacing import Paced
from sulq.server.service.catalog import facts_of, with_version
from sulq.wire import AnswerReply, AnswersReply, SqlReply
from sulq.wire.discovery import Paid

PER_CALLER = 20_000
"""Replies kept for one caller and table; older ones are forgotten, the ledger still knows them."""
BYTES_PER_CALLER = 200_000_000
SWEEP = 500  # writes between two sweeps
_FIND = "SELECT digest, head, body FROM replies WHERE place = ? AND caller = ? AND key = ?"


class ReplyKey(NamedTuple):
    """The name that a reply is stored under."""

    table: str
    caller: str
    key: str


class StoredReply(NamedTuple):
    """A request that was begun, with its reply; `body` is None until the work has ended."""

    head: int  # of the ledger, when the work first began
    body: bytes | None
    again: bool  # the note was there already: an earlier attempt did not end


class Replies:
    """The store of replies, in a SQLite file of the state directory. Thread-safe."""

    def __init__(self, connection: apsw.Connection, days: int) -> None:
        self._connection, self._days = connection, days
        self._lock, self._written, self._bytes = threading.Lock(), 0, 0

    @classmethod
    def open(cls, path: Path | None = None, *, days: int = 30) -> Replies:
        """Open the store; without `path`, replies.sqlite in the state directory."""
        where = path or private_directory() / "replies.sqlite"
        where.touch(0o600)
        connection = apsw.Connection(str(where))
        connection.set_busy_timeout(5_000)
        connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS replies (place TEXT, caller TEXT, key TEXT, digest BLOB,"
            " head INTEGER, body BLOB, at INTEGER, PRIMARY KEY (place, caller, key)) WITHOUT ROWID"
        )
        found = cls(connection, days)
        found._sweep()
        return found

    def find(self, name: ReplyKey, digest: bytes) -> bytes | None:
        """Return the stored reply, or None if there is none yet."""
        with self._using():
            row: Any = self._connection.execute(_FIND, name).fetchone()
        return None if row is None else _checked(row, digest)[2]

    def begin(self, name: ReplyKey, digest: bytes, head: int) -> StoredReply:
        """Note that work begins, or find what there is; 409 if the key stands for something else.

        The head that comes back is the first one noted.
        """
        with self._using():
            self._connection.execute(
                "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?, NULL, ?)",
                (*name, digest, head, int(time.time())),
            )
            again = self._connection.changes() == 0
            row: Any = self._connection.execute(_FIND, name).fetchone()
        _, first, body = _checked(row, digest)
        return StoredReply(first, body, again)

    def finish(self, name: ReplyKey, body: bytes) -> None:
        """Store the reply, before a byte of it leaves."""
        with self._using():
            self._connection.execute(
                "UPDATE replies SET body = ? WHERE place = ? AND caller = ? AND key = ?",
                (body, *name),
            )
            self._written, self._bytes = self._written + 1, self._bytes + len(body)
        if self._written % SWEEP == 0 or self._bytes > BYTES_PER_CALLER // 4:
            self._bytes = 0
            self._sweep(name.table, name.caller)

    def forget(self, name: ReplyKey) -> None:
        """Free the key of work that was refused, which cost nothing."""
        with self._using():
            self._connection.execute(
                "DELETE FROM replies WHERE place = ? AND caller = ? AND key = ? AND body IS NULL",
                name,
            )

    def _sweep(self, table: str = "", caller: str = "") -> None:
        with self._using():
            self._connection.execute(
                "DELETE FROM replies WHERE at < ?", (int(time.time()) - 86_400 * self._days,)
            )
            self._connection.execute(
                "DELETE FROM replies WHERE place = ?1 AND caller = ?2 AND key IN (SELECT key FROM"
                " replies WHERE place = ?1 AND caller = ?2 ORDER BY at DESC LIMIT -1 OFFSET ?3)",
                (table, caller, PER_CALLER),
            )
            self._connection.execute(
                "DELETE FROM replies WHERE place = ?1 AND caller = ?2 AND key IN (SELECT key FROM"
                " (SELECT key, sum(length(body)) OVER (ORDER BY at DESC, key) AS bytes FROM replies"
                " WHERE place = ?1 AND caller = ?2 AND body IS NOT NULL) WHERE bytes > ?3)",
                (table, caller, BYTES_PER_CALLER),
            )

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Lock the store; any failure to read or write it becomes one constant problem."""
        with self._lock:
            try:
                yield
            except apsw.Error:
                raise out_of_order() from None

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def _checked(row: Any, digest: bytes) -> Any:
    """The row, if the key stands for this request; 409 if for another one."""
    if row[0] != digest:
        raise HttpProblem(
            409,
            "key_reused",
            "this Idempotency-Key was used for another request",
            "use a new key for a new request; nothing was charged",
        )
    return row


def digest_of(method: str, path: str, body: bytes) -> bytes:
    """Return the digest of a request: what its key stands for."""
    return hashlib.sha256(b"\n".join([method.encode(), path.encode(), body])).digest()


# Replies that are kept: a retry gets the same bytes. Killed in between, the ledger's key answers.
#
# A note is made before the work, with the ledger's head: after a crash it says from where on to
# look for what a key has paid.


Charged = AnswerReply | AnswersReply | SqlReply | Paid


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request that was checked: what it asks the engine, and how to answer it."""

    bounds: Sequence[Paced]
    work: Callable[[], Charged]
    kept: bool = True  # made-up answers are not: they are free, and nobody pays for the disk

    @property
    def digests(self) -> frozenset[str]:
        return frozenset(bound.digest for bound in self.bounds)


class AtTable(Protocol):
    """Who asks which table."""

    @property
    def database(self) -> Database:
        """The table, ready to be asked; to make it so may block."""

    @property
    def account(self) -> str: ...


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """One request of a caller under an idempotency key: its stored reply is found or made here."""

    replies: Replies
    asker: AtTable
    key: str
    digest: bytes

    @property
    def database(self) -> Database:
        return self.asker.database

    @property
    def name(self) -> ReplyKey:
        """What the reply is stored under: the published table as it is now, not by what it is
        called. Other servers share the store, and after an amendment the same numbers would mean
        something else."""
        return ReplyKey(facts_of(self.database), self.asker.account, self.key)

    def find(self) -> bytes | None:
        """Return the reply that this key has got already."""
        return self.replies.find(self.name, self.digest)

    def answer(self, prepared: PreparedRequest) -> bytes:
        """Return the reply's bytes: stored ones, or made, stored and handed out in this order.

        What was charged by an attempt that a crash cut short is found in the ledger, under the same
        key: it is not charged again.
        """
        if not prepared.kept:
            return _encoded(with_version(prepared.work(), self.database))
        name = self.name
        stored = self.replies.begin(name, self.digest, self.database.ledger.head)
        if stored.body is not None:
            return stored.body
        try:
            reply = with_version(prepared.work(), self.database)
        except (SulqError, HttpProblem) as error:
            raise self._refusal(error, name, stored, prepared.digests) from None
        if stored.again:
            paid = self._paid_since(stored.head, prepared.digests)
            reply = reply.model_copy(update={"credits": float(paid), "credits_exact": paid})
        body = _encoded(reply)
        self.replies.finish(name, body)
        return body

    def _refusal(
        self,
        error: SulqError | HttpProblem,
        name: ReplyKey,
        stored: StoredReply,
        questions: Collection[str],
    ) -> HttpProblem:
        """The key stands for nothing, unless something was charged under it."""
        database = self.database
        if broken(database):
            return out_of_order()  # only the next opening tells whether the charge stands
        paid, unknown = Fraction(0), isinstance(error, EngineFailed)
        if isinstance(error, SulqError):
            unknown |= error.charged_unknown
        if stored.again or unknown or database.ledger.head != stored.head:
            paid = self._paid_since(stored.head, questions)
        if not paid and not unknown:
            self.replies.forget(name)
        return error if isinstance(error, HttpProblem) else problem_of(error, paid)

    def _paid_since(self, head: int, questions: Collection[str]) -> Fraction:
        """Return what the ledger has charged under the key after event `head`.

        `questions` are the digests that the work may charge for. The parts of a statement have
        keys of their own (key/2, ...). A plan's charges and the draw that is added to earlier
        answers have none: of these it is the question that tells.
        """
        parts = f"{self.key}/"  # no key of a caller has a slash
        return sum(
            (
                paid_by(entry)
                for entry in self.database.ledger.entries(self.asker.account, after=head)
                if entry.key == self.key
                or (entry.key or "").startswith(parts)
                or (entry.key is None and entry.digest in questions)
            ),
            Fraction(0),
        )


def _encoded(reply: Charged) -> bytes:
    return reply.model_dump_json().encode()
