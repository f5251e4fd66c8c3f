"""PostgreSQL: exact sums over one table, in transactions that only read.

Sums are added on the server in 128-bit integers and numeric; outer products by SQL where they are
small, else rows are streamed. Each question proves in its own transaction that the table still is
what was opened. The server's own words never leave this file.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sulq.errors import EngineFailed, InvalidQuery, Refused, SulqError
from sulq.kernel.engines.duckdb.physical import Holds, RawIds, RawTable
from sulq.kernel.engines.postgres.dialect import (
    INTEGERS,
    TEXTS,
    PostgresDialect,
    person_sql,
    read_held,
)
from sulq.kernel.engines.postgres.session import (
    UNREACHED,
    PostgresAddress,
    PostgresSessions,
    complaint,
    read_address,
)
from sulq.kernel.engines.postgres.source import (
    READ,
    Moment,
    PostgresCatalogue,
    PostgresSource,
    check_here,
    look,
    source_of,
)
from sulq.kernel.engines.proved import silenced
from sulq.kernel.engines.sql.compile import FETCHED, PERSON, TABLE, held_sql
from sulq.kernel.engines.sql.engine import Batches, SqlEngine, few_at_most, surveyed
from sulq.kernel.engines.sql.leaves import ColumnSql
from sulq.kernel.engines.sql.persons import kept_rows_sql
from sulq.kernel.engines.sql.study import (
    KEPT,
    HeldTable,
    StudySql,
    ceilings,
    event_rows_sql,
    own_schema,
)
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.study import Study

if TYPE_CHECKING:
    from sulq.kernel.engines.sql.engine import Blocks
    from sulq.kernel.schema.vector_program import Leaf

MOST_LATER = 2**30
"""Transactions after which the content is looked at again: their age is a number of 32 bits."""
FRESH = 1.0
"""Seconds for which a proof that nothing changed spares the next look before a charge."""
LEAST_SECONDS, MOST_SECONDS = 60, 3_600
SECONDS_PER_LETTER_ROW = 3e-9
"""Some twenty times what a row costs per letter of its statement."""
SHORTEST = 2_000
UNREAD = (
    "the table cannot be read: check the address, that the table is there, and that the role may"
    " SELECT from the whole of it"
)


@dataclass(frozen=True, slots=True)
class Seen:
    """The last state that was proved to be what was opened."""

    moment: Moment
    since: int
    """The writers that `versions` tells one by one: from this number on."""
    versions: tuple[int, ...]

    def holds(self, moment: Moment) -> bool:
        """Whether `since` still cuts: all before it have ended there too, and 32 bits tell who."""
        cuts = self.since <= moment.ended and moment.begun - self.since < MOST_LATER
        return moment.started == self.moment.started and cuts


class PostgresEngine(SqlEngine):
    """Exact sums over one table."""

    terms_each = 200  # PostgreSQL has room for 1,664 columns
    most_products = 28  # 7 coordinates; more cost less on blocks
    held = f"({held_sql(READ)}) AS persons_held"

    def __init__(
        self,
        sessions: PostgresSessions,
        address: PostgresAddress,
        source: PostgresSource,
        schema: Schema,
        catalogue: PostgresCatalogue,
        content: tuple[int, ...],
        counts: tuple[int, int],
        seen: Seen,
    ) -> None:
        super().__init__(source.places, *counts, source.fingerprint(schema, content))
        self._sessions = sessions
        self._address, self.source = address, source
        self._schema, self.catalogue = schema, catalogue.of(schema)
        self._most_rows = schema.at_most
        self._content = content
        self._seen: Seen | None = seen
        self._proved_at = time.monotonic()
        self._seeing = threading.Lock()

    # --- questions ------------------------------------------------------------------------------

    @contextmanager
    def _reading(self, letters: int) -> Iterator[Any]:
        """A cursor in a transaction that proved the table to be what was opened."""
        seconds = allowed_seconds(letters, self._most_rows)
        with self._sessions.reading(seconds) as cursor:
            if not self.is_what_was_opened(cursor):
                raise EngineFailed()
            yield cursor
        self._proved_at = time.monotonic()

    def _failed(self, error: Exception) -> EngineFailed:
        self.forget()
        return super()._failed(error)

    def _sent(self, sql: str) -> str:
        return f"{self.source.with_rows} {sql}"

    def _execute(self, session: Any, sql: str) -> list[Any]:
        return _run(session, sql)

    def _batches(self, session: Any, sql: str) -> Batches:
        _run(session, f"DECLARE k CURSOR FOR {sql}")
        while batch := _run(session, f"FETCH {FETCHED} FROM k"):
            yield batch
        session.execute("CLOSE k")

    def _blocks(self, session: Any, sql: str, place: Mapping[Leaf, int]) -> Blocks:
        from sulq.kernel.schema.vector_program import UnitLeaf

        reals = [False] * (max(place.values(), default=0) + 1)
        for leaf, number in place.items():
            reals[number] = isinstance(leaf, UnitLeaf)
        with session.copy(f"COPY ({self._sent(sql)}) TO STDOUT (FORMAT BINARY)") as copy:
            yield from copy_blocks(pieces_of(copy, session.connection), reals)

    # --- is it still what was opened ------------------------------------------------------------

    def is_what_was_opened(self, cursor: Any) -> bool:
        """Proved for what this transaction sees, by the cheapest mark that still holds."""
        catalogue, moment = look(cursor, self._address)
        if catalogue.of(self._schema) != self.catalogue:
            return False
        seen = self._seen
        if seen is not None and not seen.holds(moment):
            seen = None
        if seen is not None and moment.snapshot is not None and moment == seen.moment:
            return True
        check_here(cursor, self.catalogue)
        if seen and _numbers(cursor, self.source.versions_sql(seen.since)) == seen.versions:
            self._saw(replace(seen, moment=moment))
            return True
        if _numbers(cursor, self.source.content_sql) != self._content:
            return False
        self._saw(_seen(cursor, self.source, moment))
        return True

    def _saw(self, seen: Seen) -> None:
        with self._seeing:
            self._seen = seen

    def forget(self) -> None:
        """After a failure the server may be another one: the content itself is looked at again."""
        with self._seeing:
            self._seen = None
            self._proved_at = -FRESH

    def unchanged(self) -> bool:
        """Spares a charge that `read` would waste; `read` proves it again for what it reads."""
        if time.monotonic() - self._proved_at < FRESH:
            return True
        why = UNREACHED

        def said(error: Exception) -> bool | None:
            nonlocal why
            if isinstance(error, InvalidQuery):
                return False
            why = complaint(error) or UNREACHED
            self.forget()
            return None

        for anew in (False, True):  # connections may have died since the last question
            same = silenced(partial(self._looked, anew), said)
            if same is not None:
                return same
        raise Refused(f"the table cannot be read just now: {why}. Nothing was charged")

    def _looked(self, anew: bool) -> bool | None:
        seconds = allowed_seconds(SHORTEST, self._most_rows)
        with self._sessions.reading(seconds, anew=anew) as cursor:
            same = self.is_what_was_opened(cursor)
        if same:
            self._proved_at = time.monotonic()
        return same

    def close(self) -> None:
        self._sessions.close()


class PostgresStudyEngine(PostgresEngine):
    """Exact sums over the tables of a study, all in one database and one transaction."""

    def __init__(
        self,
        parts: Sequence[PostgresEngine],
        sessions: PostgresSessions,
        first: PostgresSource,
        study: StudySql,
    ) -> None:
        held = study.tables[study.study.name]
        prints = repr((list(study.tables), [part.fingerprint() for part in parts]))
        whole = hashlib.sha256(prints.encode()).hexdigest()
        SqlEngine.__init__(self, held.places, held.rows, held.rows, whole)
        self._sessions, self.source, self._schema = sessions, first, study.study
        self._most_rows = study.study.rows_bound()
        self.study, self._parts = study, parts
        self._proved_at = time.monotonic()

    def is_what_was_opened(self, cursor: Any) -> bool:
        return all(part.is_what_was_opened(cursor) for part in self._parts)

    def forget(self) -> None:
        for part in self._parts:
            part.forget()
        self._proved_at = -FRESH


def allowed_seconds(letters: int, most_rows: int) -> int:
    """How long a statement may take: by its length and the declared `at_most`, nothing else."""
    wanted = LEAST_SECONDS + SECONDS_PER_LETTER_ROW * max(letters, SHORTEST) * most_rows
    return min(MOST_SECONDS, int(wanted))


def _run(cursor: Any, sql: str) -> list[Any]:
    if "\x00" in sql:  # would end the statement early
        raise EngineFailed()
    cursor.execute(sql)
    found: list[Any] = cursor.fetchall() if cursor.description else []
    return found


def _numbers(cursor: Any, sql: str) -> tuple[int, ...]:
    return tuple(int(x or 0) for x in _run(cursor, sql)[0])


def _seen(cursor: Any, source: PostgresSource, moment: Moment) -> Seen:
    return Seen(moment, moment.ended, _numbers(cursor, source.versions_sql(moment.ended)))


# --- opening ------------------------------------------------------------------------------------


def open_postgres(url: str, schema: Schema, *, threads: int | None = None) -> PostgresEngine:
    """Open a table; every complaint names the remedy and quotes neither rows nor the address."""
    address = read_address(url)
    sessions = PostgresSessions(address, threads)

    def opened() -> PostgresEngine:
        with sessions.reading(allowed_seconds(SHORTEST, schema.at_most)) as cursor:
            return _opened(sessions, cursor, address, schema)

    try:
        return silenced(opened, _unread)
    except BaseException:
        sessions.close()
        raise


def _unread(error: Exception) -> SulqError:
    """Our own complaints as they are; the server's words may quote rows or the address."""
    return error if isinstance(error, SulqError) else InvalidQuery(complaint(error) or UNREAD)


def _opened(
    sessions: PostgresSessions, cursor: Any, address: Any, schema: Schema
) -> PostgresEngine:
    catalogue, moment = look(cursor, address)
    check_here(cursor, catalogue)
    source = source_of(address, catalogue, schema)
    content = _numbers(cursor, source.content_sql)
    rows = size = content[0]
    if schema.unit != "row":
        counted = f"SELECT count(*), count(DISTINCT {PERSON})"
        rows = _numbers(cursor, f"{source.with_rows} {counted} FROM {TABLE}")[0]
        size = _numbers(cursor, f"{source.with_rows} {counted} FROM {READ}")[1]
    if rows == 0:
        raise InvalidQuery("the table has no rows; publish one that has")
    source = replace(source, places=_surveyed(cursor, source, schema))
    seen = _seen(cursor, source, moment)
    return PostgresEngine(sessions, address, source, schema, catalogue, content, (rows, size), seen)


def open_postgres_study(
    sources: Mapping[str, str], study: Study, *, size_is_public: bool, threads: int | None = None
) -> PostgresStudyEngine:
    """Open the tables of a study that lie in one database."""
    addresses = {name: read_address(url) for name, url in sources.items()}
    if len({address.server for address in addresses.values()}) != 1:
        raise InvalidQuery(
            "the tables of a study lie in one PostgreSQL database, named alike; got several"
        )
    sessions = PostgresSessions(addresses[study.name], threads)

    def opened() -> PostgresStudyEngine:
        with sessions.reading(allowed_seconds(SHORTEST, study.rows_bound())) as cursor:
            return _opened_study(sessions, cursor, addresses, study, size_is_public)

    try:
        return silenced(opened, _unread)
    except BaseException:
        sessions.close()
        raise


def _opened_study(
    sessions: PostgresSessions,
    cursor: Any,
    addresses: Mapping[str, PostgresAddress],
    study: Study,
    size_is_public: bool,
) -> PostgresStudyEngine:
    parts = [
        _part(sessions, cursor, address, name, own_schema(study, name))
        for name, address in addresses.items()
    ]
    first, *rest = (part.source for part in parts)
    named = _persons_with(first, own_schema(study, study.name))
    size = _numbers(cursor, f"WITH {', '.join(named)} SELECT count(*) FROM {TABLE}")[0]
    limits = ceilings(study, size, size_is_public)
    tables = {study.name: HeldTable(TABLE, first.places, size, size)}
    for number, (source, table) in enumerate(zip(rest, study.tables, strict=True), 1):
        called, listed = f"events{number}", _listed(source)
        known = (
            f"(SELECT {listed}, CAST(r.{PERSON} AS TEXT) AS {PERSON} FROM ({source.read}) AS r"
            f" JOIN (SELECT {PERSON} AS id FROM {TABLE}) AS ids"
            f" ON ids.id = CAST(r.{PERSON} AS TEXT)) AS known"
        )
        named.append(
            f"{called} AS ({event_rows_sql(table, source.places, known, limits[table.name])})"
        )
        kept = f"count(*) FILTER (WHERE {KEPT} <= {table.max_rows})"
        counted = f"WITH {', '.join(named)} SELECT count(*), {kept} FROM {called}"
        rows, counting = _numbers(cursor, counted)
        tables[table.name] = HeldTable(called, source.places, rows, counting)
    whole = replace(first, with_rows=f"WITH {', '.join(named)}")
    return PostgresStudyEngine(parts, sessions, whole, StudySql(study, tables))


def _part(
    sessions: PostgresSessions, cursor: Any, address: PostgresAddress, name: str, schema: Schema
) -> PostgresEngine:
    """One table of a study, as it is now; the study alone is asked."""
    catalogue, moment = look(cursor, address)
    check_here(cursor, catalogue)
    try:
        source = source_of(address, catalogue, schema)
    except InvalidQuery as error:
        raise InvalidQuery(f"{name}: {error}") from None
    content = _numbers(cursor, source.content_sql)
    source = replace(source, places=_surveyed(cursor, source, schema))
    seen, counts = _seen(cursor, source, moment), (content[0], content[0])
    return PostgresEngine(sessions, address, source, schema, catalogue, content, counts, seen)


def _listed(source: PostgresSource) -> str:
    return ", ".join(place.sql for place in source.places.values())


def _persons_with(source: PostgresSource, schema: Schema) -> list[str]:
    """The persons, one row each: what a WITH says. 7 and '7' are one person."""
    person = f"CAST({PERSON} AS TEXT) AS {PERSON}"
    read = f"SELECT {_listed(source)}, {person} FROM ({source.read}) AS r"
    kept = kept_rows_sql(schema, source.places, PERSON, READ)
    return [f"{READ} AS ({read})", f"{TABLE} AS ({kept})"]


def _surveyed(cursor: Any, source: PostgresSource, schema: Schema) -> dict[str, ColumnSql]:
    """Which categories hold few values."""
    most, seen = few_at_most(schema), dict[str, int]()
    for name, limit in most.items():
        distinct = f"SELECT DISTINCT {source.places[name].sql} FROM {READ}"
        known = f"SELECT count(*) FROM ({distinct} LIMIT {max(0, limit) + 1}) AS known"
        seen[name] = _numbers(cursor, f"{source.with_rows} {known}")[0]
    return surveyed(source.places, seen, most)


# --- the owner's counts --------------------------------------------------------------------------


def raw_postgres(url: str) -> RawTable:
    """A table as it lies there, for `sulq.kernel.engines.tally` alone."""
    address = read_address(url)
    sessions = PostgresSessions(address, None)
    try:
        catalogue = _guarded(sessions, lambda cursor: _checked(cursor, address))
    except BaseException:
        sessions.close()
        raise
    held = {column.name: column for column in catalogue.columns}
    return RawTable(
        address.sql if catalogue.parts else f"ONLY {address.sql}",
        {name: _holds(column.kind) for name, column in held.items()},
        lambda column: read_held(column, held[column.name]),
        lambda sql: _guarded(sessions, lambda cursor: _run(cursor, sql)[0]),
        sessions.close,
        PostgresDialect,
        text_type="TEXT",
        told_apart=lambda text: f"hashtextextended({text}, 0)",
    )


def ids_postgres(sources: Mapping[str, tuple[str, str]]) -> RawIds:
    """How many rows each id has in each of several tables of one database, for
    `sulq.kernel.engines.tally` alone. `sources` has the address of each and its person column."""
    addresses = {name: read_address(url) for name, (url, _) in sources.items()}
    sessions = PostgresSessions(next(iter(addresses.values())), None)
    named = []
    try:
        for number, (name, (_, person)) in enumerate(sources.items()):
            address = addresses[name]
            catalogue = _guarded(sessions, partial(_checked, address=address))
            held = {column.name: column for column in catalogue.columns}
            if person not in held:
                raise InvalidQuery(f"{name}: no column {person!r} in the table")
            x = f"CAST({person_sql(PostgresDialect.name(person), held[person])} AS TEXT)"
            rows = address.sql if catalogue.parts else f"ONLY {address.sql}"
            named.append(f"ids{number} AS (SELECT {x} AS id, count(*) AS n FROM {rows} GROUP BY 1)")
    except BaseException:
        sessions.close()
        raise
    return RawIds(
        f"WITH {', '.join(named)} ",
        lambda sql: _guarded(sessions, lambda cursor: _run(cursor, sql)[0]),
        sessions.close,
    )


def _checked(cursor: Any, address: PostgresAddress) -> PostgresCatalogue:
    catalogue, _ = look(cursor, address)
    check_here(cursor, catalogue)
    return catalogue


def _guarded(sessions: PostgresSessions, work: Callable[[Any], Any]) -> Any:
    """Run the owner's work in one transaction; the server's own words are dropped."""

    def done() -> Any:
        with sessions.reading(MOST_SECONDS) as cursor:
            return work(cursor)

    return silenced(done, _unread)


def _holds(kind: str) -> Holds:
    if kind in INTEGERS:
        return "whole"
    return "text" if kind in TEXTS | {"enum", "uuid"} else "other"


# Blocks of rows from COPY ... (FORMAT BINARY): every field 8 bytes, so every row has one length.
#
# A row is a count of fields (16 bits) and for each field its length (32 bits) and its bytes, all
# big-endian; a header comes first, a count of -1 last.


SIGNATURE = b"PGCOPY\n\xff\r\n\x00"
HEADER = len(SIGNATURE) + 8
END = b"\xff\xff"
LAST = (len(END), HEADER + len(END))
"""Lengths of the piece with the end, without rows that of the header too; no row has them."""
BYTES = 8 << 20
"""About so much is parsed at once."""


def pieces_of(copy: Any, connection: Any) -> Iterator[bytearray]:
    """What the driver hands out, by what has arrived: its own wait for each row costs most."""
    take = connection.pgconn.get_copy_data
    while piece := copy.read():
        held = bytearray(piece)
        while len(piece) not in LAST:  # after the end only the driver may ask
            size, piece = take(1)
            if size <= 0:
                break
            held += piece
        yield held


def copy_blocks(
    pieces: Iterable[bytes | bytearray | memoryview], reals: Sequence[bool]
) -> Iterator[list[NDArray[np.generic]]]:
    """One array per column: binary64 where `reals` says so, else 64-bit integers."""
    fields = [("count", ">i2")]
    for number, real in enumerate(reals):
        fields += [(f"size{number}", ">i4"), (f"value{number}", ">f8" if real else ">i8")]
    row = np.dtype(fields)
    headed = False
    for held in _gathered(pieces):
        if not headed:
            if len(held) < HEADER:
                continue
            if held[: len(SIGNATURE)] != SIGNATURE or any(held[len(SIGNATURE) : HEADER]):
                raise EngineFailed()
            del held[:HEADER]
            headed = True
        whole = len(held) // row.itemsize
        if whole:
            yield _columns(np.frombuffer(held, row, whole), reals)
            held[: whole * row.itemsize] = b""
    if not headed or held != END:
        raise EngineFailed()


def _gathered(pieces: Iterable[bytes | bytearray | memoryview]) -> Iterator[bytearray]:
    """One growing buffer, shown when it is large enough and at the end."""
    held = bytearray()
    for piece in pieces:
        held += piece
        if len(held) >= BYTES:
            yield held
    yield held


def _columns(rows: NDArray[np.void], reals: Sequence[bool]) -> list[NDArray[np.generic]]:
    if (rows["count"] != len(reals)).any():
        raise EngineFailed()
    found: list[NDArray[np.generic]] = []
    for number, real in enumerate(reals):
        if (rows[f"size{number}"] != 8).any():
            raise EngineFailed()
        found.append(rows[f"value{number}"].astype(np.float64 if real else np.int64))
    return found
