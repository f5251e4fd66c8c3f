"""Spark: exact sums over one table, added up on its executors.

Sums and groups are Spark SQL in 64-bit integers and decimals; outer products are added up by
partition with our own kernel. Only cells reach the driver, never a row. Spark's own words never
leave this file.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from sulq.errors import InvalidQuery, Refused, SulqError
from sulq.kernel.engines.duckdb.physical import Holds, RawTable
from sulq.kernel.engines.proved import all_within, silenced
from sulq.kernel.engines.spark.dialect import INTEGERS, UNSIGNED, SparkDialect, read_held
from sulq.kernel.engines.spark.session import UNREACHED, SparkSessions, read_address
from sulq.kernel.engines.spark.source import READ, SOURCE, SparkSource, raw_rows, source_of
from sulq.kernel.engines.sql.compile import FETCHED, PERSON, TABLE, held_sql
from sulq.kernel.engines.sql.engine import Batches, SqlEngine, few_at_most, surveyed
from sulq.kernel.schema.columns import Schema

if TYPE_CHECKING:  # outer products load their part when first asked
    from sulq.kernel.schema.vector_program import BlockSums, Leaf

UNREAD = (
    "the table cannot be read: check the address, that Spark runs there, that the table or path is"
    " there and may be read"
)


class SparkEngine(SqlEngine):
    """Exact sums over one table."""

    terms_each = 64  # Spark compiles a method for them, which must not grow too long
    most_products = 66  # 11 coordinates
    held = f"({held_sql(READ)}) AS persons_held"

    def __init__(
        self, sessions: SparkSessions, source: SparkSource, rows: int, size: int, fingerprint: str
    ) -> None:
        super().__init__(source.places, rows, size, fingerprint)
        self._sessions = sessions
        self.source = source
        self._opening = threading.Lock()

    # --- questions ------------------------------------------------------------------------------

    def _reading(self, letters: int) -> AbstractContextManager[Any]:
        return nullcontext(self._session())

    def _session(self) -> Any:
        """A session that lives, with the rows named; a new one after a failure."""
        with self._opening:
            session, new = self._sessions.session()
            if new:
                self.source.settle(session)
            return session

    def _execute(self, session: Any, sql: str) -> list[Any]:
        found: list[Any] = session.sql(sql).collect()
        return found

    def _batches(self, session: Any, sql: str) -> Batches:
        rows = iter(session.sql(sql).toLocalIterator())
        while batch := list(islice(rows, FETCHED)):
            yield batch

    def _outer_sums(
        self, program: BlockSums, sql: str, place: Mapping[Leaf, int]
    ) -> Callable[[Any], list[int]]:
        from sulq.kernel.engines.blocks import OuterSums
        from sulq.kernel.engines.spark.blocks import PARTS, added_up, partial_sums

        OuterSums(program, place)  # what it refuses, it refuses here
        kernel = partial_sums(program, place)
        size = program.shape[0] * program.shape[1]

        def by_partition(session: Any) -> list[int]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # of pandas, which is not used
                parts = session.sql(sql).mapInArrow(kernel, PARTS)
            summed = parts.groupBy("entry").sum("high", "low")
            return all_within(added_up(summed.collect(), size), program.largest * self.rows)

        return by_partition

    # --- the source -----------------------------------------------------------------------------

    def unchanged(self) -> bool:
        """Whether files or snapshot are those of the opening; Refused where Spark is away."""

        def said(error: Exception) -> bool | Refused | None:
            if isinstance(error, Refused):
                return error
            return False if _is_gone(error) else None

        for _ in range(2):  # its driver may have died since the last question
            same = silenced(lambda: self.source.still(self._session()), said)
            if same is not None:
                return same
        raise Refused(UNREACHED)

    def close(self) -> None:
        self._sessions.close()


def _is_gone(error: Exception) -> bool:
    """Whether Spark says that the table or the file is not there."""
    java = getattr(error, "java_exception", None)
    name = "" if java is None else silenced(lambda: str(java.getClass().getName()), lambda _: "")
    condition = getattr(error, "getCondition", lambda: None)() or ""
    return name.endswith("FileNotFoundException") or condition in (
        "PATH_NOT_FOUND",
        "TABLE_OR_VIEW_NOT_FOUND",
    )


# --- opening ------------------------------------------------------------------------------------


def open_spark(url: str, schema: Schema, *, threads: int | None = None) -> SparkEngine:
    """Open a table; every complaint names the remedy and quotes neither rows nor the address."""
    sessions = SparkSessions(read_address(url), threads)
    try:
        return silenced(lambda: _opened(sessions, schema), _unread)
    except BaseException:
        sessions.close()
        raise


def _unread(error: Exception) -> SulqError:
    """Our own complaints as they are; Spark's words may quote rows or the address."""
    return error if isinstance(error, SulqError) else InvalidQuery(UNREAD)


def _opened(sessions: SparkSessions, schema: Schema) -> SparkEngine:
    session, _ = sessions.session()
    source = source_of(session, sessions.address, schema)
    source.settle(session)
    most = few_at_most(schema)
    distinct = [f"approx_count_distinct({source.places[name].sql})" for name in most]
    asked = ", ".join((source.content_sql, *distinct))
    found = _numbers(session, f"SELECT {asked} FROM {READ}")
    content, seen = found[:3], dict(zip(most, found[3:], strict=True))
    rows = size = content[0]
    if schema.unit != "row":
        rows = _numbers(session, f"SELECT count(*) FROM {TABLE}")[0]
        size = _numbers(session, f"SELECT count(DISTINCT {PERSON}) FROM {READ}")[0]
    if rows == 0:
        raise InvalidQuery("the table has no rows; publish one that has")
    source = replace(source, places=surveyed(source.places, seen, most))
    return SparkEngine(sessions, source, rows, size, source.fingerprint(schema, content))


def _numbers(session: Any, sql: str) -> tuple[int, ...]:
    return tuple(int(x or 0) for x in session.sql(sql).collect()[0])


# --- the owner's counts --------------------------------------------------------------------------


def raw_spark(url: str) -> RawTable:
    """A table as it lies there, for `sulq.kernel.engines.tally` alone."""
    sessions = SparkSessions(read_address(url), None)
    try:
        held = silenced(lambda: raw_rows(sessions.session()[0], sessions.address), _unread)
    except BaseException:
        sessions.close()
        raise
    return RawTable(
        SOURCE,
        {name: _holds(kind) for name, kind in held.items()},
        lambda column: read_held(column, held),
        lambda sql: silenced(lambda: tuple(sessions.session()[0].sql(sql).collect()[0]), _unread),
        sessions.close,
        SparkDialect,
        text_type="STRING",
    )


def _holds(kind: str) -> Holds:
    if kind in INTEGERS or kind == UNSIGNED:
        return "whole"
    return "text" if kind == "string" else "other"
