"""The shared store: one table on a PostgreSQL server, for any number of replicas.

Whoever writes holds the ledger's lock from its first look to its commit, so all decisions are in
one order. A connection that breaks, or on which the server has gone silent, is replaced at the next
use, never inside a transaction.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, TypeVar

from sulq.errors import Refused
from sulq.kernel.ledger.state_dir import LedgerLocation
from sulq.kernel.ledger.stores.store import FORMAT, Interrupted, Row
from sulq.kernel.postgresql import connect, driver

T = TypeVar("T")

COLUMNS = "seq, hash, body, noisy, seal"
PAGE = 1024  # rows read at a time
MARK = "sulq ledger, format "
PATIENCE = 5.0  # seconds to wait for a server that is being restarted
SILENCE = 20.0  # seconds without a word in a statement; longer than one waits for its turn
PAUSE = 0.05
NEEDED_BY = "a shared ledger"
SETTINGS = (
    "search_path = pg_catalog",  # no name resolves to what a user of the database made
    "standard_conforming_strings = on",
    "lock_timeout = '10s'",
    "statement_timeout = '60s'",
    # A replica that stands still in its turn would stop all others: the server ends its turn.
    "idle_in_transaction_session_timeout = '20s'",
)


class PostgresStore:
    """Rows in one table, and a turn that one replica has at a time. Its owner serialises."""

    def __init__(self, place: LedgerLocation, *, create: bool = False, joins: bool = True) -> None:
        """With `create` a missing table is made. Who only looks does not join as a replica."""
        self._driver = driver(NEEDED_BY)
        self._place = place
        self._connection: Any = None
        self._in_turn = False
        self.replica = secrets.randbits(62) + 1 if joins else None
        try:
            self._again(lambda: self._check(create))
        except BaseException:
            self.close(tidy=False)
            raise

    # -- connections ------------------------------------------------------------------------------

    def _connect(self) -> Any:
        """A connection, waiting for a server that is not up yet."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self._connected()
            except self._driver.Error:
                if time.monotonic() >= deadline:
                    raise Interrupted(charged=False) from None
            time.sleep(PAUSE)

    def _connected(self) -> Any:
        connection = connect(
            self._place.server,
            seconds=int(PATIENCE),
            silence=SILENCE,
            name="sulq ledger",
            needed_by=NEEDED_BY,
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: Any) -> None:
        """Refuse a server that would forget what it says is durable; join as a replica."""
        connection.execute("; ".join(f"SET {setting}" for setting in SETTINGS))
        fsync, commits, standby = connection.execute(
            "SELECT current_setting('fsync'), current_setting('synchronous_commit'),"
            " pg_is_in_recovery()"
        ).fetchone()
        if standby:  # until it is promoted, or the address leads to another server
            raise Interrupted(charged=False)
        if fsync != "on":
            raise Refused("the server has fsync off and would forget what is spent; turn it on")
        if commits in ("off", "local"):
            connection.execute("SET synchronous_commit = on")
        if self.replica is not None:  # ours as long as the connection lives
            connection.execute(f"SELECT pg_advisory_lock({self.replica})")

    def _drop(self) -> None:
        self._in_turn = False
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
            self._connection = None

    def _do(self, work: Callable[[], T]) -> T:
        """Any failure ends the connection, and with it the turn."""
        try:
            return work()
        except self._driver.errors.UndefinedTable:
            self._drop()
            raise Refused(
                f"the ledger {self._place.shown} is lost; restore it from a backup, then run"
                " `sulq recover`"
            ) from None
        except self._driver.errors.InsufficientPrivilege:
            self._drop()
            raise self._not_allowed() from None
        except (self._driver.Error, UnicodeError):
            self._drop()
            raise Interrupted(charged=False) from None

    def _not_allowed(self) -> Refused:
        return Refused(
            f"the ledger {self._place.shown} may not be used by this user of the server; grant it"
            " SELECT and INSERT on the table, and USAGE on the schema sulq"
        )

    def _again(self, work: Callable[[], T]) -> T:
        """As `_do`, for work outside a turn: once more if the connection had died meanwhile."""
        if self._in_turn:
            return self._do(work)
        if self._connection is not None:
            with suppress(Interrupted):
                return self._do(work)
        self._connection = self._connect()
        return self._do(work)

    def _check(self, create: bool) -> None:
        one = self._connection.execute
        table = self._place.table
        if create and one(f"SELECT to_regclass('{table}')").fetchone()[0] is None:
            with self._connection.transaction():
                one(f"SELECT pg_advisory_xact_lock({self._place.lock})")
                if one("SELECT to_regnamespace('sulq')").fetchone()[0] is None:
                    one("CREATE SCHEMA sulq")
                if one(f"SELECT to_regclass('{table}')").fetchone()[0] is None:
                    one(
                        f"CREATE TABLE {table} (seq bigint PRIMARY KEY, hash bytea NOT NULL,"
                        " body text NOT NULL, noisy text, seal bytea)"
                    )
                    one(f"COMMENT ON TABLE {table} IS '{MARK}{FORMAT}'")
        found = one(f"SELECT obj_description(to_regclass('{table}'), 'pg_class')").fetchone()[0]
        if found is None and one(f"SELECT to_regclass('{table}')").fetchone()[0] is None:
            raise NoLedger(self._place.shown)
        if found != f"{MARK}{FORMAT}":
            raise Refused(
                f"{self._place.shown} is not a ledger of sulq in format {FORMAT}; use the version"
                " of sulq that wrote it, or give another name"
            )
        wanted = "SELECT" if self.replica is None else "INSERT"
        if not one(f"SELECT has_table_privilege('{table}', '{wanted}')").fetchone()[0]:
            raise self._not_allowed()

    # -- a turn -----------------------------------------------------------------------------------

    def begin(self, after: int) -> list[Row]:
        """Wait for the turn; the row of that number and those behind it. Ended by `append` or
        `end`. Of the row `after` itself only number and hash are read."""
        found = self._again(lambda: self._read(self._first_words(), after))
        self._in_turn = True
        return found

    def _first_words(self) -> str:
        # A snapshot per statement: the look comes after the lock, whatever the server's default.
        return (
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
            f" SELECT pg_advisory_xact_lock({self._place.lock}); "
        )

    def since(self, after: int) -> list[Row]:
        """As `begin`, without a turn: a look at what is there now."""
        return self._again(lambda: self._read("", after))

    def _read(self, words: str, after: int) -> list[Row]:
        cursor = self._connection.execute(
            f"{words}SELECT seq, hash, CASE WHEN seq > {after} THEN body ELSE '' END,"
            f" CASE WHEN seq > {after} THEN noisy END, seal"
            f" FROM {self._place.table} WHERE seq >= {after} ORDER BY seq"
        )
        while cursor.nextset():
            pass
        return [Row(*found) for found in cursor.fetchall()]

    def append(self, rows: Sequence[Row]) -> None:
        """Write and end the turn. After `Interrupted` nobody knows whether it was written."""
        if not self._in_turn:
            raise Interrupted(charged=False)

        def work() -> None:
            places = ",".join(["(%s,%s,%s,%s,%s)"] * len(rows))
            values = tuple(chain.from_iterable(rows))
            self._connection.execute(f"INSERT INTO {self._place.table} VALUES {places}", values)
            if self._connection.execute("COMMIT").statusmessage != "COMMIT":
                raise self._driver.OperationalError("rolled back")

        self._do(work)
        self._in_turn = False

    def end(self) -> None:
        """Give the turn back without having written."""
        if self._in_turn:
            with suppress(Interrupted):
                self._do(lambda: self._connection.execute("ROLLBACK"))
            self._in_turn = False

    def present(self) -> set[int]:
        """The numbers of the replicas that are connected."""
        query = (
            "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks"
            " WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        found = self._again(lambda: self._connection.execute(query).fetchall())
        return {int(row[0]) for row in found}

    # -- reading ----------------------------------------------------------------------------------

    def rows(self, after: int = 0) -> Iterator[Row]:
        while True:
            query = (
                f"SELECT {COLUMNS} FROM {self._place.table} WHERE seq > {after}"
                f" ORDER BY seq LIMIT {PAGE}"
            )
            page = self._fetch(query)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].seq

    def row(self, seq: int) -> Row:
        found = self._fetch(f"SELECT {COLUMNS} FROM {self._place.table} WHERE seq = {seq}")
        if not found:
            raise Refused(f"the ledger has no entry {seq}")
        return found[0]

    def _fetch(self, query: str) -> list[Row]:
        found = self._again(lambda: self._connection.execute(query).fetchall())
        return [Row(*row) for row in found]

    def close(self, *, tidy: bool) -> None:
        """What was not committed is rolled back by the server."""
        self._drop()


class NoLedger(Refused):
    """Nothing of that name is on the server."""

    def __init__(self, shown: str) -> None:
        super().__init__(f"there is no ledger at {shown}")
