"""The only module of the golden tests that reaches below the documented names.

When the tree moves, this file moves with it; what it returns must not change.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.server.serving import serving
from typer.main import get_command
from typer.testing import CliRunner

from sulq import Database, EngineFailed, Schema
from sulq.cli import app as command
from sulq.database import alerts, keys  # noqa: F401 - loaded before draws are silenced
from sulq.kernel.engines.duckdb.engine import HELD, DuckDBEngine
from sulq.kernel.engines.duckdb.physical import read_typed
from sulq.kernel.engines.postgres.dialect import Held, PostgresDialect
from sulq.kernel.engines.postgres.dialect import read_held as read_postgres
from sulq.kernel.engines.postgres.engine import PostgresEngine
from sulq.kernel.engines.spark.dialect import SparkDialect
from sulq.kernel.engines.spark.dialect import read_held as read_spark
from sulq.kernel.engines.spark.engine import SparkEngine
from sulq.kernel.engines.sql.compile import (
    PERSON,
    TABLE,
    held_sql,
    held_statement,
    key_statements,
    person_statement,
    row_select,
    small_outer,
    statement,
)
from sulq.kernel.engines.sql.leaves import ColumnSql
from sulq.kernel.engines.sql.persons import kept_rows_sql
from sulq.kernel.noise import sampler as samplers
from sulq.kernel.schema.keys import bind_keys
from sulq.kernel.schema.program import RowSums
from sulq.kernel.schema.sensitivity import PersonSums
from sulq.kernel.schema.trees import TreeSums
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Role
from sulq.server.limits import Settings
from sulq.server.middleware import Log
from sulq.server.service.catalog import Tables

READ = "read"

# --- draws --------------------------------------------------------------------------------------


def _zeros(law: object, count: int) -> list[int]:
    return [0] * count


@contextmanager
def quiet() -> Iterator[None]:
    """Every draw is 0, by whatever name a module has imported it; all names are put back."""
    drawing = {"draw": samplers.draw, "draw_one_sided": samplers.draw_one_sided}
    silent = {name: _silent() for name in drawing}
    _swap({id(found): silent[name] for name, found in drawing.items()})
    try:
        yield
    finally:
        _swap({id(found): drawing[name] for name, found in silent.items()})


def _silent() -> Any:
    return lambda law, count: _zeros(law, count)


def _swap(instead: Mapping[int, Any]) -> None:
    for name, module in list(sys.modules.items()):
        if name == "sulq" or name.startswith("sulq."):
            for word, held in list(vars(module).items()):
                if id(held) in instead:
                    setattr(module, word, instead[id(held)])


# --- questions ----------------------------------------------------------------------------------


def bound_facts(db: Database, question: object, credits: Any = None) -> dict[str, str]:
    """Canonical text, digest and noise of a question, priced as on a new table."""
    bound = db.bind(question)
    price = db.price(bound, None, 0.95, credits, None)
    return {"text": bound.text, "digest": bound.digest, "noise": price.noise}


def event_bodies(db: Database, after: int = 0) -> list[dict[str, Any]]:
    """The events of a database's ledger, as they are written."""
    return [json.loads(row.body) for row in db.ledger._book.rows() if row.seq > after]


@contextmanager
def failing(db: Database) -> Iterator[None]:
    """The engine breaks down whenever it reads rows: after the charge."""
    prepare = db.engine.prepare

    def broken(program: Any) -> Any:
        prepare(program)

        def read() -> list[int]:
            raise EngineFailed()

        return read

    db.engine.prepare = broken  # type: ignore[method-assign]
    try:
        yield
    finally:
        db.engine.prepare = prepare  # type: ignore[method-assign]


# --- SQL for the engines ------------------------------------------------------------------------

ENGINES = {"duckdb": DuckDBEngine, "postgresql": PostgresEngine, "spark": SparkEngine}
DIALECTS = tuple(ENGINES)


def places_of(db: Database, dialect: str) -> dict[str, ColumnSql]:
    """Where the columns are found, spelled for an engine that need not run."""
    spoken = {"postgresql": PostgresDialect, "spark": SparkDialect}.get(dialect)
    found = db.engine.places
    if spoken is None:
        return dict(found)
    return {name: replace(place, dialect=spoken) for name, place in found.items()}


def emitted(db: Database, question: object, dialect: str) -> list[str]:
    """The statements that read the rows for a question."""
    return _emitted(db.bind(question).sums, places_of(db, dialect), dialect, db.engine.rows)


def _emitted(program: Any, places: Mapping[str, ColumnSql], dialect: str, rows: int) -> list[str]:
    if isinstance(program, TreeSums):
        return _emitted(program.cells, places, dialect, rows)
    if isinstance(program, PersonSums) and program.uncut:
        held = HELD if dialect == "duckdb" else f"({held_sql(READ)}) AS persons_held"
        return [held_statement(program, places, rows, held).sql]
    if isinstance(program, PersonSums):
        return [person_statement(program, places, rows).sql]
    if isinstance(program, RowSums):
        return [statement(program, places, rows).sql]
    most = ENGINES[dialect].most_products
    small = small_outer(program, most) if most else None
    if small is not None:
        return [statement(small.sums, places, rows).sql]
    return [row_select(program, places, TABLE)[0]]


def emitted_keys(db: Database, column: str, dialect: str, rows: int) -> list[str]:
    """The statements that read undeclared keys of a table of so many rows."""
    from sulq.kernel.accounting.pricing import noise_grid

    grid = noise_grid(db.calibration)
    bound = bind_keys(column, None, 1000, db.schema, db.promise.neighbours, grid)
    return list(key_statements(bound.program, places_of(db, dialect), rows).parts)


def kept_rows(db: Database, schema: Schema, dialect: str) -> str:
    """Which rows of a person count."""
    return kept_rows_sql(schema, places_of(db, dialect), PERSON, READ)


POSTGRES_TYPES = {
    "whole": "int8",
    "real": "numeric",
    "day": "date",
    "time": "timestamptz",
    "text": "text",
    "flag": "int2",
}
SPARK_TYPES = {
    "whole": "bigint",
    "real": "decimal(10,2)",
    "day": "date",
    "time": "timestamp",
    "text": "string",
    "flag": "int",
}
DUCKDB_TYPES = {
    "whole": "BIGINT",
    "real": "FLOAT",
    "day": "DATE",
    "time": "TIMESTAMP",
    "text": "VARCHAR",
    "flag": "TINYINT",
}


def column_readings(schema: Schema, kinds: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """How each engine reads a declared column of a usual type."""
    found: dict[str, dict[str, str]] = {}
    for number, column in enumerate(schema.columns):
        kind = kinds[column.name]
        held = Held(column.name, number, POSTGRES_TYPES[kind], -1, False, "")
        found[column.name] = {
            "duckdb": " ".join(read_typed(column, f'"{column.name}"', DUCKDB_TYPES[kind])),
            "postgresql": " ".join(read_postgres(column, held)),
            "spark": " ".join(read_spark(column, {column.name: SPARK_TYPES[kind]})),
        }
    return found


# --- the service --------------------------------------------------------------------------------


@contextmanager
def served(databases: Mapping[str, Database]) -> Iterator[tuple[str, dict[str, str]]]:
    """A server without pacing: its address, and a token for each role and for `rival`."""
    access = Access.open()
    tokens = {str(role): access.lend(str(role), role) for role in Role}
    tokens["rival"] = access.lend("rival", Role.ANALYST)
    made = create_app(
        Tables(dict(databases)), access, settings=Settings(pacing=False), log=Log(io.StringIO())
    )
    try:
        with serving(made) as port:
            yield f"http://127.0.0.1:{port}", tokens
    finally:
        access.close()


# --- the command line ---------------------------------------------------------------------------


def run(*words: str) -> tuple[int, str, str]:
    """`sulq ...` in this process: exit code, stdout, stderr."""
    result = CliRunner().invoke(command, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def options() -> dict[str, list[str]]:
    """Every command, also those of groups and hidden ones, with its options.

    A group takes the options of the command that it stands for where none is named.
    """
    found: dict[str, list[str]] = {}

    def walk(of: Any, path: tuple[str, ...]) -> None:
        for name, inner in getattr(of, "commands", {}).items():
            walk(inner, (*path, name))
        if (meant := getattr(of, "default", None)) is not None:
            walk(of.commands[meant], path)
        if path and not getattr(of, "commands", {}):
            known = [word for param in of.params for word in (*param.opts, *param.secondary_opts)]
            found[" ".join(path)] = sorted(word for word in known if word.startswith("-"))

    walk(get_command(command), ())
    return found
