"""Spark: exact sums over one table, added up on its executors.

Sums and groups are Spark SQL in 64-bit integers and decimals; outer products are added up by
partition with our own kernel. Only cells reach the driver, never a row. Spark's own words never
leave this file.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sulq.errors import EngineFailed, InvalidQuery, Refused, SulqError
from sulq.kernel.engines.proved import Guard, all_within
from sulq.kernel.engines.spark.dialect import INTEGERS, UNSIGNED, SparkDialect, read_held
from sulq.kernel.engines.spark.session import UNREACHED, SparkSessions, read_address
from sulq.kernel.engines.spark.source import READ, SOURCE, SparkSource, raw_rows, source_of
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

if TYPE_CHECKING:  # outer products load their part when first asked
    from sulq.kernel.engines.engine import Program

TERMS_EACH = 64
"""Terms of one SELECT: Spark compiles a method for them, which must not grow too long."""
MOST_PRODUCTS = 66
"""Products of an outer product added up by SQL (11 coordinates); more are worked out on blocks."""
SPARE_KEYS = 1_000
"""Undeclared values a category may hold and still be grouped by as it is."""
UNREAD = (
    "the table cannot be read: check the address, that Spark runs there, that the table or path is"
    " there and may be read"
)
Work = Callable[[Any], list[int]]
"""What to do with a session in which the rows have a name."""


class SparkEngine:
    """Exact sums over one table."""

    def __init__(
        self, sessions: SparkSessions, source: SparkSource, rows: int, size: int, fingerprint: str
    ) -> None:
        self._sessions = sessions
        self._source = source
        self._rows = rows
        self._size = size
        self._fingerprint = fingerprint
        self._opening = threading.Lock()
        self._guard = Guard()

    # --- questions ------------------------------------------------------------------------------

    def exact_sums(self, program: Program) -> list[int]:
        """The program's integers, exactly."""
        return self.prepare(program)()

    def prepare(self, program: Program) -> Callable[[], list[int]]:
        """What will read the rows, once everything that may be refused was checked."""
        self._guard.check()
        work = self._work(program)

        def read() -> list[int]:
            found: list[int] | None = None
            try:
                found = work(self._session())
            except Exception as error:  # noqa: BLE001 - Spark's own words may quote rows
                self._guard.saw(error)
                found = None
            if found is None:
                raise EngineFailed()
            return found

        return read

    def _session(self) -> Any:
        """A session that lives, with the rows named; a new one after a failure."""
        with self._opening:
            session, new = self._sessions.session()
            if new:
                self._source.settle(session)
            return session

    def _work(self, program: Program) -> Work:
        if isinstance(program, TreeSums):
            cells, counts = self._work(program.cells), program.tree.counts
            return lambda session: counts(cells(session))
        if isinstance(program, PersonSums) and program.uncut:
            held = f"({held_sql(READ)}) AS persons_held"
            return _asked(held_statement(program, self._source.places, self._rows, held))
        if isinstance(program, PersonSums):
            return _asked(person_statement(program, self._source.places, self._rows))
        if isinstance(program, RowSums):
            return self._row_sums(program)
        from sulq.kernel.engines.sql.compile import small_outer

        small = small_outer(program, MOST_PRODUCTS)
        if small is not None:
            sums = self._row_sums(small.sums)
            return lambda session: small.matrix(sums(session))
        from sulq.kernel.engines.blocks import OuterSums
        from sulq.kernel.engines.spark.blocks import PARTS, added_up, partial_sums
        from sulq.kernel.engines.sql.compile import row_select

        sql, place = row_select(program, self._source.places, TABLE)
        OuterSums(program, place)  # what it refuses, it refuses here
        kernel = partial_sums(program, place)
        size = program.shape[0] * program.shape[1]

        def by_partition(session: Any) -> list[int]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # of pandas, which is not used
                parts = session.sql(sql).mapInArrow(kernel, PARTS)
            summed = parts.groupBy("entry").sum("high", "low")
            return all_within(added_up(summed.collect(), size), program.largest * self._rows)

        return by_partition

    def _row_sums(self, program: RowSums) -> Work:
        """One SELECT, or several where there are many terms."""
        terms = program.terms
        if len(terms) <= TERMS_EACH:
            return _asked(statement(program, self._source.places, self._rows))
        slices = [terms[at : at + TERMS_EACH] for at in range(0, len(terms), TERMS_EACH)]
        works = [self._row_sums(replace(program, terms=part)) for part in slices]

        def together(session: Any) -> list[int]:
            tables = [
                _rows_of(work(session), len(part)) for work, part in zip(works, slices, strict=True)
            ]
            return [x for cell in zip(*tables, strict=True) for part in cell for x in part]

        return together

    def prepare_keys(self, program: KeyCounts) -> Callable[[], Iterator[list[tuple[str, int]]]]:
        """What will read the keys that occur with their counts, a batch at a time."""
        self._guard.check()
        statements = key_statements(program, self._source.places, self._rows)

        def read() -> Iterator[list[tuple[str, int]]]:
            failed = False
            try:
                session = self._session()
                for sql in statements:
                    batch: list[tuple[str, int]] = []
                    for key, number in session.sql(sql).toLocalIterator():
                        batch.append((key, number))
                        if len(batch) == FETCHED:
                            yield counted(batch, self._rows)
                            batch = []
                    if batch:
                        yield counted(batch, self._rows)
            except Exception as error:  # noqa: BLE001 - as in `prepare`
                self._guard.saw(error)
                failed = True
            if failed:
                raise EngineFailed()

        return read

    # --- the source -----------------------------------------------------------------------------

    def fingerprint(self) -> str:
        return self._fingerprint

    def size(self) -> int:
        return self._size

    def unchanged(self) -> bool:
        """Whether files or snapshot are those of the opening; Refused where Spark is away."""
        for _ in range(2):  # its driver may have died since the last question
            try:
                return self._source.still(self._session())
            except Refused:
                raise
            except Exception as error:  # noqa: BLE001 - its text may quote rows
                if _is_gone(error):
                    return False
        raise Refused(UNREACHED)

    def close(self) -> None:
        self._sessions.close()


def _is_gone(error: Exception) -> bool:
    """Whether Spark says that the table or the file is not there."""
    java = getattr(error, "java_exception", None)
    try:
        name = "" if java is None else str(java.getClass().getName())
    except Exception:  # noqa: BLE001
        name = ""
    condition = getattr(error, "getCondition", lambda: None)() or ""
    return name.endswith("FileNotFoundException") or condition in (
        "PATH_NOT_FOUND",
        "TABLE_OR_VIEW_NOT_FOUND",
    )


def _asked(question: SqlStatement) -> Work:
    return lambda session: question.decode(session.sql(question.sql).collect())


def _rows_of(values: list[int], width: int) -> list[list[int]]:
    return [values[at : at + width] for at in range(0, len(values), width)]


# --- opening ------------------------------------------------------------------------------------


def open_spark(url: str, schema: Schema, *, threads: int | None = None) -> SparkEngine:
    """Open a table; every complaint names the remedy and quotes neither rows nor the address."""
    sessions = SparkSessions(read_address(url), threads)
    engine: SparkEngine | None = None
    complaint: SulqError | None = None
    try:
        engine = _opened(sessions, schema)
    except SulqError as said:
        complaint = said
    except Exception:  # noqa: BLE001 - Spark's own words may quote rows or the address
        complaint = InvalidQuery(UNREAD)
    if engine is None:
        sessions.close()
        raise complaint or InvalidQuery(UNREAD)
    return engine


def _opened(sessions: SparkSessions, schema: Schema) -> SparkEngine:
    session, _ = sessions.session()
    source = source_of(session, sessions.address, schema)
    source.settle(session)
    domains = {
        column.name: len(column.values)
        for column in schema.columns
        if isinstance(column, Category) and column.values is not None
    }
    distinct = [f"approx_count_distinct({source.places[name].sql})" for name in domains]
    asked = ", ".join((source.content_sql, *distinct))
    found = _numbers(session, f"SELECT {asked} FROM {READ}")
    content, held = found[:3], dict(zip(domains, found[3:], strict=True))
    rows = size = content[0]
    if schema.unit != "row":
        rows = _numbers(session, f"SELECT count(*) FROM {TABLE}")[0]
        size = _numbers(session, f"SELECT count(DISTINCT {PERSON}) FROM {READ}")[0]
    if rows == 0:
        raise InvalidQuery("the table has no rows; publish one that has")
    few = {name for name, number in held.items() if number <= domains[name] + SPARE_KEYS}
    places: Mapping[str, ColumnSql] = {
        name: replace(place, few=name in few) for name, place in source.places.items()
    }
    source = replace(source, places=places)
    return SparkEngine(sessions, source, rows, size, source.fingerprint(schema, content))


def _numbers(session: Any, sql: str) -> tuple[int, ...]:
    return tuple(int(x or 0) for x in session.sql(sql).collect()[0])


# --- the owner's counts --------------------------------------------------------------------------


def raw_spark(url: str) -> RawTable:
    """A table as it lies there, for `sulq.kernel.engines.tally` alone."""
    sessions = SparkSessions(read_address(url), None)
    try:
        held = _guarded(lambda: raw_rows(sessions.session()[0], sessions.address))
    except BaseException:
        sessions.close()
        raise
    return RawTable(
        SOURCE,
        {name: _holds(kind) for name, kind in held.items()},
        lambda column: read_held(column, held),
        lambda sql: _guarded(lambda: tuple(sessions.session()[0].sql(sql).collect()[0])),
        sessions.close,
        SparkDialect,
        text_type="STRING",
    )


def _guarded(work: Callable[[], Any]) -> Any:
    """Do the owner's work; Spark's own words are dropped."""
    try:
        return work()
    except SulqError:
        raise
    except Exception:  # noqa: BLE001, S110 - its words may quote rows or the address
        pass
    raise InvalidQuery(UNREAD)


def _holds(kind: str) -> Holds:
    if kind in INTEGERS or kind == UNSIGNED:
        return "whole"
    return "text" if kind == "string" else "other"
