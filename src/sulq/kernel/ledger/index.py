"""Which charge a question, a key or a number belongs to: looked up on disk, not kept in memory.

Made from the chain whenever it is read, in a temporary database that ends with the process; a few
pages of it are in memory, however long the chain is.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw

from sulq.errors import Refused

_TABLES = """
pragma cache_size=-1024; pragma journal_mode=off; pragma synchronous=off;
create table records (seq integer primary key, digest text, noise text, answer integer,
  lost integer default 0, release integer, old integer default 0, found integer default 1);
create index by_name on records (digest, noise);
create table repeats (seq integer primary key, record integer);
create table got (record integer, analyst text, seq integer, primary key (record, analyst))
  without rowid;
create table keys (analyst text, key text, record integer, attempts integer default 1,
  primary key (analyst, key)) without rowid;
create table plans (analyst text, key text, questions text, attempts integer default 0,
  old integer default 0, primary key (analyst, key)) without rowid;
"""
_FIELDS = "seq, digest, noise, answer, lost, release, old, found"


class IndexUnavailable(Exception):
    """The temporary database cannot be read or written. No refusal: on the writer's thread the
    outcome is unknown then."""


def no_room() -> Refused:
    """What a caller is told of `IndexUnavailable`, such as a full disk under the index."""
    return Refused(
        "there is no room for the ledger's temporary index; make some where temporary files"
        " are kept (TMPDIR) and open the ledger again"
    )


class Record(NamedTuple):
    """One question at one noise, as it is now: charged once, answered at most once."""

    seq: int
    digest: str
    noise: str
    answer: int | None  # the answer's event
    lost: bool  # an answer may have been released that the ledger no longer has
    release: bool  # under assumptions
    old: bool  # from before an amendment or version by which it means something else
    found: bool  # its question finds it today

    @property
    def name(self) -> tuple[str, str]:
        return self.digest, self.noise


class Keyed(NamedTuple):
    """What an idempotency key stands for."""

    record: Record
    attempts: int


class Planned(NamedTuple):
    """What an idempotency key of a whole batch stands for."""

    questions: tuple[tuple[str, str, tuple[int, ...]], ...]  # digest, noise, what it is added to
    attempts: int
    old: bool  # as of a record

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        return tuple((digest, noise) for digest, noise, _ in self.questions)


class ChargeIndex:
    """The charges, keys and plans of one table. Thread-safe; every failure is
    `IndexUnavailable`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection = apsw.Connection("")  # a file without a name, if it is large
        self._do(_TABLES)

    def _do(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except apsw.Error:
                raise IndexUnavailable from None

    def _one(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        try:
            found = self._do(query, *values)
        except UnicodeEncodeError:  # half a character, which nothing stored has
            return None
        return found[0] if found else None

    # -- looking up -------------------------------------------------------------------------------

    def named(self, name: tuple[str, str]) -> Record | None:
        """Return the record that a question at this noise finds today."""
        query = f"select {_FIELDS} from records where digest = ? and noise = ? and found"
        return _record(self._one(query, *name))

    def at(self, seq: int) -> Record | None:
        """The record that a charge or repeat of this number is about."""
        if abs(seq) >= 2**63:
            return None
        query = (
            f"select {_FIELDS} from records"
            " where seq = coalesce((select record from repeats where seq = ?1), ?1)"
        )
        return _record(self._one(query, seq))

    def record(self, seq: int) -> Record:
        """As `at`; `LookupError` if there is none."""
        if (found := self.at(seq)) is None:
            raise LookupError(seq)
        return found

    def of(self, digest: str) -> list[Record]:
        """Return the records that a question finds today, at any noise; oldest first."""
        query = f"select {_FIELDS} from records where digest = ? and found order by seq"
        return [Record(*row[:4], *map(bool, row[4:])) for row in self._do(query, digest)]

    def numbers(self, digest: str) -> list[int]:
        """Return the numbers of all charges for a question, oldest first, with those that it no
        longer finds."""
        found = self._do("select seq from records where digest = ? order by seq", digest)
        return [seq for (seq,) in found]

    def everybody(self, record: Record) -> list[int]:
        """Return, for each analyst who has the record, the event that gave it to them."""
        return [seq for (seq,) in self._do("select seq from got where record = ?", record.seq)]

    def got(self, record: Record, analyst: str) -> int | None:
        """Return the event that gave the record to this analyst, or None."""
        found = self._one(
            "select seq from got where record = ? and analyst = ?", record.seq, analyst
        )
        return None if found is None else found[0]

    def given(self, digest: str, analyst: str) -> list[int]:
        """Return the records of a question that this analyst has, in the order they were given."""
        query = (
            "select got.record from got join records on got.record = records.seq"
            " where records.digest = ? and got.analyst = ? order by got.seq"
        )
        return [record for (record,) in self._do(query, digest, analyst)]

    def keyed(self, analyst: str, key: str) -> Keyed | None:
        query = "select record, attempts from keys where analyst = ? and key = ?"
        found = self._one(query, analyst, key)
        record = None if found is None else self.at(found[0])
        return None if found is None or record is None else Keyed(record, found[1])

    def planned(self, analyst: str, key: str) -> Planned | None:
        query = "select questions, attempts, old from plans where analyst = ? and key = ?"
        if (found := self._one(query, analyst, key)) is None:
            return None
        listed = tuple(
            (digest, noise, tuple(added)) for digest, noise, added in json.loads(found[0])
        )
        return Planned(listed, found[1], bool(found[2]))

    # -- what events do ---------------------------------------------------------------------------

    def charge(self, seq: int, name: tuple[str, str], *, release: bool) -> None:
        query = "insert into records (seq, digest, noise, release) values (?, ?, ?, ?)"
        self._do(query, seq, *name, release)

    def answer(self, record: Record, seq: int) -> None:
        self._do("update records set answer = ? where seq = ?", seq, record.seq)

    def hand(self, seq: int, record: int, analyst: str, key: str | None) -> None:
        """Give the record to this analyst, under this key."""
        if seq != record:
            self._do("insert into repeats values (?, ?)", seq, record)
        self._do("insert or ignore into got values (?, ?, ?)", record, analyst, seq)
        if key is not None:
            query = "insert or replace into keys (analyst, key, record) values (?, ?, ?)"
            self._do(query, analyst, key, record)

    def retry(self, analyst: str, key: str) -> None:
        query = (
            "update keys set attempts = attempts + 1 where analyst = ? and key = ? returning record"
        )
        if self._one(query, analyst, key) is None:
            raise LookupError(key)

    def plan(self, analyst: str, key: str, questions: Sequence[Any]) -> None:
        """Another attempt at a batch, or the first one."""
        self._do(
            "insert into plans (analyst, key, questions, attempts) values (?, ?, ?, 1)"
            " on conflict do update set attempts = attempts + 1",
            *(analyst, key, json.dumps(questions)),
        )

    def put_away(self) -> None:
        """Let no question find an earlier answer any more."""
        self._do("update records set old = 1, found = 0 where found")
        self._do("update plans set old = 1")

    def lose(self, *, answered: bool) -> None:
        """Unanswered questions find nothing any more, or no question does; a release is lost for
        good: no later payment would cover a second draw."""
        self._do(
            "update records set lost = 1, found = release where found and (answer is null or ?)",
            answered,
        )


def _record(row: tuple[Any, ...] | None) -> Record | None:
    return None if row is None else Record(*row[:4], *map(bool, row[4:]))
