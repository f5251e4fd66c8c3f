"""PostgreSQL: exact sums over one table, in transactions that only read.

Sums are added on the server in 128-bit integers and numeric; outer products by SQL where they are
small, else rows are streamed. Each question proves in its own transaction that the table still is
what was opened. The server's own words never leave this file.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sulq.errors import EngineFailed, InvalidQuery, Refused, SulqError
from sulq.kernel.engines.postgres.dialect import INTEGERS, TEXTS, PostgresDialect, read_held
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
from sulq.kernel.engines.proved import Guard
from sulq.kernel.engines.sql.compile import (
    FETCHED,
    PERSON,
    TABLE,
    SqlStatement,
    counted,
    held_sql,
    held_statement,
    key_statements,
    person_statement,
    statement,
)
from sulq.kernel.engines.sql.leaves import ColumnSql
from sulq.kernel.engines.tally import Holds, RawTable
from sulq.kernel.schema.columns import Category, Schema
from sulq.kernel.schema.keys import KeyCounts
from sulq.kernel.schema.persons import PersonSums
from sulq.kernel.schema.program import RowSums
from sulq.kernel.schema.trees import TreeSums

if TYPE_CHECKING:
    from sulq.kernel.engines.engine import Program

TERMS_EACH = 200
"""Terms of one SELECT: PostgreSQL has room for 1,664 columns."""
MOST_PRODUCTS = 28
"""Products of an outer product added up by SQL (7 coordinates); more cost less on blocks."""
SPARE_KEYS = 1_000
"""Undeclared values a category may hold and still be grouped by as it is."""
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
Work = tuple[int, Callable[[Any], list[int]]]
"""The letters of its SQL, and what to do with a cursor."""


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


class PostgresEngine:
    """Exact sums over one table."""

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
        self._sessions = sessions
        self._address, self._source = address, source
        self._schema, self._catalogue = schema, catalogue.of(schema)
        self._content = content
        self._rows, self._size = counts
        self._most = schema.at_most
        self._fingerprint = source.fingerprint(schema, content)
        self._seen: Seen | None = seen
        self._proved_at = time.monotonic()
        self._seeing = threading.Lock()
        self._guard = Guard()

    # --- questions ------------------------------------------------------------------------------

    def exact_sums(self, program: Program) -> list[int]:
        """The program's integers, exactly."""
        return self.prepare(program)()

    def prepare(self, program: Program) -> Callable[[], list[int]]:
        """What will read the rows, once everything that may be refused was checked."""
        self._guard.check()
        letters, work = self._work(program)

        def read() -> list[int]:
            found: list[int] | None = None
            try:
                with self._sessions.reading(allowed_seconds(letters, self._most)) as cursor:
                    if self._is_what_was_opened(cursor):
                        found = work(cursor)
                self._proved_at = time.monotonic()
            except Exception as error:  # noqa: BLE001 - the server's own words may quote rows
                self._guard.saw(error)
                found = None
            if found is None:
                self._forget()
                raise EngineFailed()
            return found

        return read

    def _work(self, program: Program) -> Work:
        if isinstance(program, TreeSums):
            letters, cells = self._work(program.cells)
            counts = program.tree.counts
            return letters, lambda cursor: counts(cells(cursor))
        if isinstance(program, PersonSums) and program.uncut:
            held = f"({held_sql(READ)}) AS persons_held"
            return self._asked(held_statement(program, self._source.places, self._rows, held))
        if isinstance(program, PersonSums):
            return self._asked(person_statement(program, self._source.places, self._rows))
        if isinstance(program, RowSums):
            return self._row_sums(program)
        from sulq.kernel.engines.sql.compile import small_outer

        small = small_outer(program, MOST_PRODUCTS)
        if small is not None:
            letters, sums = self._row_sums(small.sums)
            return letters, lambda cursor: small.matrix(sums(cursor))
        from sulq.kernel.engines.blocks import OuterSums
        from sulq.kernel.engines.sql.compile import row_select
        from sulq.kernel.schema.vector_program import UnitLeaf

        rows, place = row_select(program, self._source.places, TABLE)
        sql = f"COPY ({self._source.with_rows} {rows}) TO STDOUT (FORMAT BINARY)"
        reals = [False] * (max(place.values(), default=0) + 1)
        for leaf, number in place.items():
            reals[number] = isinstance(leaf, UnitLeaf)
        outer = OuterSums(program, place)

        def streamed(cursor: Any) -> list[int]:
            with cursor.copy(sql) as copy:
                return outer.of(copy_blocks(pieces_of(copy, cursor.connection), reals))

        return len(sql), streamed

    def _row_sums(self, program: RowSums) -> Work:
        """One SELECT, or several where there are many terms: all of the same transaction."""
        terms = program.terms
        if len(terms) <= TERMS_EACH:
            return self._asked(statement(program, self._source.places, self._rows))
        slices = [terms[at : at + TERMS_EACH] for at in range(0, len(terms), TERMS_EACH)]
        works = [self._row_sums(replace(program, terms=part)) for part in slices]

        def together(cursor: Any) -> list[int]:
            tables = [
                _rows_of(work(cursor), len(part))
                for (_, work), part in zip(works, slices, strict=True)
            ]
            return [x for cell in zip(*tables, strict=True) for part in cell for x in part]

        return max(letters for letters, _ in works), together

    def _asked(self, question: SqlStatement) -> Work:
        sql = f"{self._source.with_rows} {question.sql}"
        return len(sql), lambda cursor: question.decode(_run(cursor, sql))

    def prepare_keys(self, program: KeyCounts) -> Callable[[], Iterator[list[tuple[str, int]]]]:
        """What will read the keys that occur with their counts, a batch at a time."""
        self._guard.check()
        statements = key_statements(program, self._source.places, self._rows)
        longest = max(len(sql) for sql in statements) + len(self._source.with_rows)

        def read() -> Iterator[list[tuple[str, int]]]:
            failed = False
            try:
                with self._sessions.reading(allowed_seconds(longest, self._most)) as cursor:
                    failed = not self._is_what_was_opened(cursor)
                    for sql in () if failed else statements:
                        _run(cursor, f"DECLARE k CURSOR FOR {self._source.with_rows} {sql}")
                        while batch := _run(cursor, f"FETCH {FETCHED} FROM k"):
                            yield counted(batch, self._rows)
                        cursor.execute("CLOSE k")
                self._proved_at = time.monotonic()
            except Exception as error:  # noqa: BLE001 - as in `prepare`
                self._guard.saw(error)
                failed = True
            if failed:
                self._forget()
                raise EngineFailed()

        return read

    # --- is it still what was opened ------------------------------------------------------------

    def _is_what_was_opened(self, cursor: Any) -> bool:
        """Proved for what this transaction sees, by the cheapest mark that still holds."""
        catalogue, moment = look(cursor, self._address)
        if catalogue.of(self._schema) != self._catalogue:
            return False
        seen = self._seen
        if seen is not None and not seen.holds(moment):
            seen = None
        if seen is not None and moment.snapshot is not None and moment == seen.moment:
            return True
        check_here(cursor, self._catalogue)
        if seen and _numbers(cursor, self._source.versions_sql(seen.since)) == seen.versions:
            self._saw(replace(seen, moment=moment))
            return True
        if _numbers(cursor, self._source.content_sql) != self._content:
            return False
        self._saw(_seen(cursor, self._source, moment))
        return True

    def _saw(self, seen: Seen) -> None:
        with self._seeing:
            self._seen = seen

    def _forget(self) -> None:
        """After a failure the server may be another one: the content itself is looked at again."""
        with self._seeing:
            self._seen = None
            self._proved_at = -FRESH

    def fingerprint(self) -> str:
        return self._fingerprint

    def size(self) -> int:
        return self._size

    def unchanged(self) -> bool:
        """Spares a charge that `read` would waste; `read` proves it again for what it reads."""
        if time.monotonic() - self._proved_at < FRESH:
            return True
        why: str | None = None
        for anew in (False, True):  # connections may have died since the last question
            try:
                seconds = allowed_seconds(SHORTEST, self._most)
                with self._sessions.reading(seconds, anew=anew) as cursor:
                    same = self._is_what_was_opened(cursor)
                if same:
                    self._proved_at = time.monotonic()
                return same
            except InvalidQuery:
                return False
            except Exception as error:  # noqa: BLE001 - its text may quote rows
                why = complaint(error)
                self._forget()
        raise Refused(f"the table cannot be read just now: {why or UNREACHED}. Nothing was charged")

    def close(self) -> None:
        self._sessions.close()


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


def _rows_of(values: list[int], width: int) -> list[list[int]]:
    return [values[at : at + width] for at in range(0, len(values), width)]


# --- opening ------------------------------------------------------------------------------------


def open_postgres(url: str, schema: Schema, *, threads: int | None = None) -> PostgresEngine:
    """Open a table; every complaint names the remedy and quotes neither rows nor the address."""
    sessions = PostgresSessions(read_address(url), threads)
    engine: PostgresEngine | None = None
    refused: SulqError | None = None
    try:
        with sessions.reading(allowed_seconds(SHORTEST, schema.at_most)) as cursor:
            engine = _opened(sessions, cursor, read_address(url), schema)
    except SulqError as said:
        refused = said
    except Exception as error:  # noqa: BLE001 - its words may quote rows or the address
        refused = InvalidQuery(complaint(error) or UNREAD)
    if engine is None:
        sessions.close()
        raise refused or InvalidQuery(UNREAD)
    return engine


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


def _surveyed(cursor: Any, source: PostgresSource, schema: Schema) -> Mapping[str, ColumnSql]:
    """Which categories hold few values."""
    places = dict(source.places)
    for column in schema.columns:
        if isinstance(column, Category) and column.values is not None:
            most = len(column.values) + SPARE_KEYS
            place = places[column.name]
            distinct = f"SELECT DISTINCT {place.sql} FROM {READ} LIMIT {max(0, most) + 1}"
            sql = f"{source.with_rows} SELECT count(*) FROM ({distinct}) AS known"
            places[column.name] = replace(place, few=_numbers(cursor, sql)[0] <= most)
    return places


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


def _checked(cursor: Any, address: PostgresAddress) -> PostgresCatalogue:
    catalogue, _ = look(cursor, address)
    check_here(cursor, catalogue)
    return catalogue


def _guarded(sessions: PostgresSessions, work: Callable[[Any], Any]) -> Any:
    """Run the owner's work in one transaction; the server's own words are dropped."""
    said = UNREAD
    try:
        with sessions.reading(MOST_SECONDS) as cursor:
            return work(cursor)
    except SulqError:
        raise
    except Exception as error:  # noqa: BLE001 - its words may quote rows or the address
        said = complaint(error) or UNREAD
    raise InvalidQuery(said)


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
