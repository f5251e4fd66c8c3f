"""Connections to a PostgreSQL server: the address of a table, and transactions that only read.

    postgresql://user@host:5432/database/table
    postgresql://user@host/database/schema.table?sslmode=verify-full
    postgresql://user@/database/table?host=/var/run/postgresql

Everything before the table is PostgreSQL's own address; what follows the question mark goes to
the driver as it is. An address may hold a password: it is never shown.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from sulq.errors import InvalidQuery, Refused
from sulq.kernel.engines.proved import silenced
from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.postgresql import connect, driver

FORM = "postgresql://user@host/database/table or .../database/schema.table"
NEEDED_BY = "PostgreSQL"
CONNECT_SECONDS = 10
LOCK_SECONDS = 10
GRACE_SECONDS = 10
"""How much longer than the server's own limit on a statement a silent server is waited for."""
SETTINGS = (
    "default_transaction_read_only = on",
    "search_path = pg_catalog",  # no name resolves to what a user of the database made
    "row_security = off",  # a table of which the role sees only some rows fails at open
    "standard_conforming_strings = on",
    "TimeZone = 'UTC'",
    "DateStyle = 'ISO, YMD'",
    "extra_float_digits = 1",  # binary64 as text, exactly
    "jit = off",
)

UNREACHED = (
    "the server cannot be reached, or does not let the role in: check host, port and database of"
    " the address, that the server runs, and the role's password (~/.pgpass, PGPASSWORD)"
)
STATES = {
    "42P01": "there is no such table: the address ends in /database/table or .../schema.table",
    "3F000": "there is no such schema: the address ends in /database/schema.table",
    "42501": "the role may not read the table: GRANT SELECT, and USAGE on its schema; where row"
    " security hides rows from it, BYPASSRLS",
    "55P03": "the table is locked by somebody who changes it: try again when that is done",
    "57014": "the time limit was reached: raise the role's statement_timeout",
}
"""What an SQLSTATE means to who opens a table."""


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where a table is."""

    server: str = field(repr=False)
    schema: str
    table: str

    @property
    def sql(self) -> str:
        return f"{Dialect.name(self.schema)}.{Dialect.name(self.table)}"


def read_address(url: str) -> PostgresAddress:
    parts = urlsplit(url)
    path = parts.path.split("/")[1:]
    names = path[1].split(".") if len(path) == 2 else []
    if "\x00" in unquote(url) or parts.fragment or not 1 <= len(names) <= 2:
        raise InvalidQuery(f"an address has the form {FORM}")
    schema, table = ("public", names[0]) if len(names) == 1 else names
    if not path[0] or not schema or not table:
        raise InvalidQuery(f"an address has the form {FORM}")
    server = urlunsplit(("postgresql", parts.netloc, f"/{path[0]}", parts.query, ""))
    return PostgresAddress(server, unquote(schema), unquote(table))


@dataclass(frozen=True, slots=True)
class PostgresLine:
    """A connection, and how long the server lets it work (0: no limit)."""

    connection: Any
    most_ms: int


class PostgresSessions:
    """Connections to one server, kept for the next question."""

    def __init__(self, address: PostgresAddress, workers: int | None) -> None:
        self._address = address
        self._settings = list(SETTINGS)
        if workers is not None:
            self._settings.append(f"max_parallel_workers_per_gather = {max(0, workers - 1)}")
        self._idle: list[PostgresLine] = []
        self._guard = threading.Lock()
        self._open = True
        self._end = weakref.finalize(self, _close_all, self._idle)

    @contextmanager
    def reading(self, seconds: int, *, anew: bool = False) -> Iterator[Any]:
        """A cursor in a read-only transaction that sees one state of the table throughout.

        The table is locked against being dropped or emptied before the state is fixed: those
        reach back into transactions that have begun. Any failure ends the connection.
        """
        line = self._taken(anew)
        done = False
        try:
            limit = min(seconds * 1000, line.most_ms or seconds * 1000)
            line.connection.silence = LOCK_SECONDS + GRACE_SECONDS
            cursor = line.connection.cursor()
            cursor.execute(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
                f" SET LOCAL statement_timeout = {limit};"
                f" SET LOCAL lock_timeout = '{LOCK_SECONDS}s';"
                f" LOCK TABLE {self._address.sql} IN ACCESS SHARE MODE"
            )
            line.connection.silence = limit / 1000 + GRACE_SECONDS
            yield cursor
            line.connection.silence = LOCK_SECONDS + GRACE_SECONDS
            cursor.execute("ROLLBACK")
            done = True
        finally:
            with self._guard:
                keep = done and self._open
                if keep:
                    self._idle.append(line)
            if not keep:
                _close(line)

    def _taken(self, anew: bool) -> PostgresLine:
        with self._guard:
            if anew:
                _close_all(self._idle)
            if self._idle:
                return self._idle.pop()
        return self._connected()

    def _connected(self) -> PostgresLine:
        connection = connect(
            self._address.server,
            seconds=CONNECT_SECONDS,
            silence=CONNECT_SECONDS,
            name="sulq",
            needed_by=NEEDED_BY,
        )
        try:
            if connection.info.parameter_status("server_encoding") != "UTF8":
                raise Refused("the database must have the encoding UTF8; make one that has")
            connection.execute("; ".join(f"SET {setting}" for setting in self._settings))
            limit = "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'"
            found = connection.execute(limit).fetchone()
        except BaseException:
            connection.close()
            raise
        return PostgresLine(connection, int(found[0]))

    def close(self) -> None:
        with self._guard:
            self._open = False
            _close_all(self._idle)
        self._end.detach()


def complaint(error: Exception) -> str | None:
    """Why a table cannot be opened, by the kind of failure: none of the server's own words."""
    state = getattr(error, "sqlstate", None)
    if state is None and isinstance(error, driver(NEEDED_BY).OperationalError):
        return UNREACHED
    return STATES.get(state or "")


def _close(line: PostgresLine) -> None:
    silenced(line.connection.close, lambda _: None)


def _close_all(lines: list[PostgresLine]) -> None:
    while lines:
        _close(lines.pop())
