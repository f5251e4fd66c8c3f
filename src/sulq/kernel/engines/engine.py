"""The role of an engine, and which one opens a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from sulq.errors import Refused
from sulq.kernel.engines.duckdb.remote import is_remote
from sulq.kernel.engines.sql.compile import KeyRow
from sulq.kernel.engines.sql.study import check_sources
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.keys import KeyCounts
from sulq.kernel.schema.study import Study

if TYPE_CHECKING:
    from sulq.kernel.schema.bind import Program

POSTGRES_SCHEMES = ("postgresql", "postgres")
SPARK_SCHEMES = ("spark", "spark+local", "spark+session", "sc")


class Engine(Protocol):
    """Adds integers over the rows of one table: the same ones on every engine, in any row order."""

    def prepare(self, program: Program) -> Callable[[], list[int]]:
        """What will read the rows and give the sums. This step may refuse, and reads no row.

        Sums stand cell by cell in row-major order, within a cell term by term; a matrix row by
        row; trees one after the other, each from the top.
        """

    def exact_sums(self, program: Program) -> list[int]:
        """Both steps at once."""

    def prepare_keys(self, program: KeyCounts) -> Callable[[], Iterator[list[KeyRow]]]:
        """What will read the keys that nobody declared: those that occur, each once, with its
        count and its sums."""

    def fingerprint(self) -> str:
        """A hash of the content. It is kept in the owner's state directory and nowhere else."""

    def size(self) -> int:
        """How many rows there are; for a person unit how many persons."""

    def unchanged(self) -> bool:
        """Whether the source still is what was opened."""

    def close(self) -> None:
        """Let go of the table. A second time does nothing."""


def scheme_of(source: object) -> str:
    """postgresql of postgresql://host/database/table; empty for what is no address."""
    if not isinstance(source, str) or "://" not in source:
        return ""
    return source.partition("://")[0].lower()


def open_study_engine(sources: Any, study: Study, *, size_is_public: bool) -> Engine:
    """An engine over the tables of a study, all of which lie in one place.

    `size_is_public`: how many persons there are is public, as under replace; else their `at_most`.
    """
    listed = check_sources(sources, study)
    schemes = {scheme_of(source) for source in listed.values()}
    if schemes & set(SPARK_SCHEMES):
        raise Refused(
            "a study is read from files, frames or PostgreSQL, not from Spark yet: its values of"
            " persons are not proved there. Write the tables to Parquet"
        )
    if schemes <= set(POSTGRES_SCHEMES):
        from sulq.kernel.engines.postgres.engine import open_postgres_study

        return open_postgres_study(listed, study, size_is_public=size_is_public)
    if any(is_remote(source) for source in listed.values()) or schemes != {""}:
        raise Refused(
            "the tables of a study lie in one place: all are files or frames here, or all are in"
            " one PostgreSQL database"
        )
    from sulq.kernel.engines.duckdb.engine import open_duckdb_study

    return open_duckdb_study(listed, study, size_is_public=size_is_public)


def open_engine(source: Any, schema: Schema, *, threads: int | None = None) -> Engine:
    """DuckDB for a path to Parquet or CSV, for a pandas, polars or Arrow table and for a `Remote`,
    which is fetched; PostgreSQL or Spark for an address of theirs.

    A driver is loaded when it is needed.
    """
    scheme = scheme_of(source)
    if scheme in POSTGRES_SCHEMES:
        from sulq.kernel.engines.postgres.engine import open_postgres

        return open_postgres(source, schema, threads=threads)
    if scheme in SPARK_SCHEMES:
        from sulq.kernel.engines.spark.engine import open_spark

        return open_spark(source, schema, threads=threads)
    if is_remote(source):
        raise Refused(
            "files over the network are read only if their owner says so: remote = true in the"
            " policy, or Remote(address) of sulq.kernel.engines.duckdb.remote"
        )
    if scheme:
        raise Refused(f"no engine for {scheme[:20]!r} addresses; give a file or a table")
    from sulq.kernel.engines.duckdb.engine import open_duckdb

    return open_duckdb(source, schema, threads=threads)
