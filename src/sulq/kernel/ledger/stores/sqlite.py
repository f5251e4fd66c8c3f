"""The default store: one SQLite file, one connection that holds it alone, WAL and full sync."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

import apsw

from sulq.errors import Refused
from sulq.kernel.ledger.stores.store import FORMAT, Row

APPLICATION = 0x73756C71  # "sulq"
LOG = "-wal"  # what SQLite calls a file's write-ahead log
COLUMNS = "seq, hash, body, noisy, seal"
PAGE = 1024  # rows read at a time
STATEMENTS = 300  # one insert for each size of batch, and the rest

# Exclusive before WAL: the WAL index then lives in memory and no other process can get in.
PRAGMAS = (
    "locking_mode=exclusive",
    "journal_mode=wal",
    "synchronous=full",
    "wal_autocheckpoint=4000",
)


def open_connection(path: str) -> apsw.Connection:
    return apsw.Connection(path, statementcachesize=STATEMENTS)


class SqliteStore:
    """Rows in one table of one file. Not thread-safe: its owner serialises."""

    def __init__(self, path: str | Path, wait: float = 0.0, *, create: bool = False) -> None:
        """Take the file or raise `Refused`; with `create` an empty file becomes an empty store."""
        self.path = str(path)
        self._log = -1  # a handle of the write-ahead log, to see whether somebody copies it
        try:
            self._connection = open_connection(self.path)
        except apsw.Error:
            raise Refused(
                f"the ledger {self.path} cannot be opened; check path and rights"
            ) from None
        try:
            self._take(wait, create)
        except apsw.BusyError:
            self._connection.close()
            raise Refused(f"the ledger {self.path} is held by another process") from None
        except apsw.Error:
            self._connection.close()
            raise unreadable(self.path) from None
        except Refused:
            self._connection.close()
            raise

    def _take(self, wait: float, create: bool) -> None:
        """Lock the file by a first read (the pragma alone locks nothing) and check its format."""
        one = self._connection.execute
        # A forked child that ends must not fold the WAL away under its parent.
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._connection.set_busy_timeout(max(0, int(wait * 1000)))
        for pragma in PRAGMAS:
            one(f"pragma {pragma}").fetchall()
        self._pages = one("pragma wal_autocheckpoint").get
        self._connection.set_wal_hook(self._fold)
        if create and one("select count(*) from sqlite_schema").get == 0:
            one("begin immediate")
            one(
                "create table events (seq integer primary key, hash blob not null, "
                "body text not null, noisy text, seal blob) strict"
            )
            one(f"pragma application_id={APPLICATION}")
            one(f"pragma user_version={FORMAT}")
            one("commit")
        if one("pragma application_id").get != APPLICATION:
            raise Refused(f"{self.path} is empty or not a ledger of sulq; give another path")
        if (version := one("pragma user_version").get) != FORMAT:
            raise Refused(
                f"the ledger {self.path} has format {version}, this sulq reads {FORMAT}; "
                "use the version of sulq that wrote it, or a newer one"
            )
        # A scan may find every row where a search by number does not: a key of the tree is wrong.
        if one("pragma quick_check(1)").get != "ok":
            raise unreadable(self.path)

    def _fold(self, connection: apsw.Connection, name: str, pages: int) -> int:
        """Fold a long write-ahead log into the file, but not while somebody copies both. The batch
        is durable already: what fails here is tried again after a later one."""
        if not 0 < self._pages <= pages:
            return 0
        with suppress(apsw.Error, OSError):
            if self._log < 0:
                self._log = os.open(f"{self.path}{LOG}", os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                connection.wal_checkpoint(name)
            finally:
                fcntl.flock(self._log, fcntl.LOCK_UN)
        return 0

    def append(self, rows: Sequence[Row]) -> None:
        try:
            with self._connection:
                # One statement: each one hands the interpreter to a waiting caller.
                places = ",".join(["(?,?,?,?,?)"] * len(rows))
                values = tuple(chain.from_iterable(rows))
                self._connection.execute(f"insert into events values {places}", values)
        except apsw.Error:
            raise Refused(f"the ledger {self.path} could not be written") from None

    def rows(self, after: int = 0) -> Iterator[Row]:
        # In pages: a cursor left open would keep a transaction open across appends.
        query = f"select {COLUMNS} from events where seq > ? order by seq limit ?"
        while True:
            try:
                page = [Row(*row) for row in self._connection.execute(query, (after, PAGE))]
            except (apsw.Error, UnicodeDecodeError):
                raise unreadable(self.path) from None
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].seq

    def row(self, seq: int) -> Row:
        query = f"select {COLUMNS} from events where seq = ?"
        try:
            found = self._connection.execute(query, (seq,)).fetchone()
        except (apsw.Error, UnicodeDecodeError):
            raise unreadable(self.path) from None
        if found is None:
            raise Refused(f"the ledger has no entry {seq}")
        return Row(*found)

    def close(self, *, tidy: bool) -> None:
        try:
            if tidy:  # one file at rest; all rows are durable already, so a failure loses nothing
                self._connection.execute("pragma wal_checkpoint(truncate)").fetchall()
        except apsw.Error:
            pass
        finally:
            self._connection.close()
            if self._log >= 0:
                os.close(self._log)
                self._log = -1


@contextmanager
def unfolded(path: str | Path) -> Iterator[None]:
    """Keep a ledger's file as it is while it is copied: whoever writes only adds to its log."""
    try:
        log = os.open(f"{path}{LOG}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # closed, or never written: if that changes meanwhile, the copy tells
        yield
        return
    try:
        with suppress(OSError):  # a disk that locks no files: the copy is checked
            fcntl.flock(log, fcntl.LOCK_SH)
        yield
    finally:
        os.close(log)


def unreadable(path: str) -> Refused:
    return Refused(
        f"the ledger {path} does not verify: it cannot be read; restore it from a "
        "backup, with no older -wal file beside it, then run `sulq recover`"
    )
