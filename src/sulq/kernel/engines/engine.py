"""The role of an engine, and which one opens a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from sulq.errors import EngineFailed, Refused
from sulq.kernel.engines.duckdb.remote import is_remote
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.keys import KeyCounts
from sulq.kernel.schema.persons import PersonSums
from sulq.kernel.schema.program import RowSums
from sulq.kernel.schema.trees import TreeSums

if TYPE_CHECKING:  # outer products load their part when first asked
    from sulq.kernel.schema.vector_program import BlockSums

    Program: TypeAlias = RowSums | TreeSums | PersonSums | BlockSums
SPARK_SCHEMES = ("spark", "spark+local", "spark+session", "sc")


class Engine(Protocol):
    """Adds integers over rows. Bit-equal on every engine, in any row order."""

    def exact_sums(self, program: Program) -> list[int]:
        """Cells in row-major order, within a cell the terms in order; a matrix row by row; trees
        one after the other, each from the top."""

    def prepare(self, program: Program) -> Callable[[], list[int]]:
        """The same, in two steps: this one may refuse and reads no row, the next one does."""

    def prepare_keys(self, program: KeyCounts) -> Callable[[], Iterator[list[tuple[str, int]]]]:
        """The same for keys nobody declared: those that occur, each once, with their counts."""

    def fingerprint(self) -> str:
        """A hash of the content. Only ever kept in the owner's state directory."""

    def size(self) -> int:
        """Rows; for a person unit the number of persons."""

    def unchanged(self) -> bool:
        """Whether the source still is what was opened."""

    def close(self) -> None:
        """Let go of the table; idempotent."""


def check_source(engine: Engine) -> None:
    """Before a charge: the source must be what was opened."""
    if not engine.unchanged():
        raise Refused(
            "the data has changed since it was opened; restore it, or if it got new rows,"
            " `sulq grow` it and open it again. Nothing was charged"
        )


def check_read(engine: Engine) -> None:
    """After rows were read: if the source has changed meanwhile, nothing of them leaves."""
    if not engine.unchanged():
        raise EngineFailed


def open_engine(source: Any, schema: Schema, *, threads: int | None = None) -> Engine:
    """The engine for a path to Parquet or CSV, a pandas, polars or Arrow table, or an address; a
    `Remote` is fetched."""
    if isinstance(source, str) and "://" in source:
        scheme = source.split("://", 1)[0]
        if scheme.lower() in ("postgresql", "postgres"):
            from sulq.kernel.engines.postgres.engine import open_postgres

            return open_postgres(source, schema, threads=threads)
        if scheme.lower() in SPARK_SCHEMES:
            from sulq.kernel.engines.spark.engine import open_spark

            return open_spark(source, schema, threads=threads)
        if is_remote(source):
            raise Refused(
                "files over the network are read only if their owner says so: remote = true in the"
                " policy, or Remote(address) of sulq.kernel.engines.duckdb.remote"
            )
        raise Refused(f"no engine for {scheme[:20]!r} addresses; give a file or a table")
    from sulq.kernel.engines.duckdb.engine import (
        open_duckdb,  # the driver is loaded when it is needed
    )

    return open_duckdb(source, schema, threads=threads)
