"""Sandboxes: fictional tables to attack, and made-up rows of a schema to try questions on.

What is attacked stands under a real promise, in a directory that is thrown away. No real row is
read and no real ledger is opened; the flow, the noise and the ledger are the product's own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

import duckdb
import numpy as np

from sulq.answers.oracle import Oracle
from sulq.attacks.target import ROW, SECRET, Bits, Target
from sulq.database import Database
from sulq.demo import own_state
from sulq.errors import InvalidQuery
from sulq.kernel.schema.columns import Flag, Number, Schema
from sulq.kernel.schema.promise import Promise
from sulq.policy import StudyPolicy, TablePolicy, write_policy
from sulq.synthetic import dummy_source

T = TypeVar("T", bound=TablePolicy)
FEWEST, MOST = 2, 100_000
EDITION = "edition"
"""An undeclared column where equal secrets are published again, as data of another owner."""


@contextmanager
def sandbox(promise: Promise, rows: int) -> Iterator[Target]:
    """A Target of so many rows under `promise`; all it published is gone at the end."""
    if isinstance(rows, bool) or not isinstance(rows, int) or not FEWEST <= rows <= MOST:
        raise InvalidQuery(f"a sandbox has {FEWEST} to {MOST:,} rows, got {rows!r:.20}")
    editions = count()
    published: set[bytes] = set()
    open_ones: WeakSet[Database] = WeakSet()  # what an attack drops closes itself

    with tempfile.TemporaryDirectory(prefix="sulq-sandbox-") as made, own_state(Path(made)):
        directory = Path(made)

        def publish(secrets: Bits) -> Oracle:
            edition = next(editions)
            bits = np.asarray(secrets, dtype=np.bool_)
            table = {ROW: np.arange(len(bits)), SECRET: bits}
            if (content := bits.tobytes()) in published:
                table[EDITION] = np.full(len(bits), edition)
            published.add(content)
            ledger = directory / f"{edition}.ledger"
            database = Database.open(
                table, schema(len(secrets)), promise, ledger, name="fiction", publish=True
            )
            open_ones.add(database)
            return database

        try:
            yield Target(promise, rows, publish, analysts)
        finally:
            for database in list(open_ones):
                database.close()


def open_dummy(schema: Schema, promise: Promise, rows: int = 10_000, seed: int = 0) -> Database:
    """A table of made-up rows with that schema; it takes no source, so it opens no real one."""
    return Database.open(dummy_source(schema, rows, seed), schema, promise, ":memory:")


def write_dummies(table: TablePolicy, directory: Path, rows: int) -> Path:
    """Made-up rows of a table as Parquet, and a policy for them, in a new directory."""
    made = dummy_source(table.schema(), rows)
    directory.mkdir(parents=True)
    if isinstance(table, StudyPolicy):
        events = tuple(_dummy(one, f"{one.name}.parquet", directory) for one in table.events)
        first = _dummy(table, f"{table.person_table}.parquet", directory)
        study = replace(first, events=events)
        for part in study.tables:
            _write_rows(made[part.name], part.source_path)
        write_policy(directory / "sulq.toml", [study])
    else:
        copy = _dummy(table, "dummy.parquet", directory)
        _write_rows(made, copy.source_path)
        write_policy(directory / "sulq.toml", [copy])
    return directory / "sulq.toml"


def _dummy(table: T, source: str, directory: Path) -> T:
    """The policy of a table for made-up rows of it."""
    copy = replace(table, source=source, ledger="dummy.ledger", grants={}, home=directory)
    fine = {"proposed": False, "identifier_ok": True, "partial": True}  # nobody's rows
    columns = tuple(replace(one, facts={**one.facts, **fine}) for one in copy.columns)
    return replace(copy, remote=False, reading=None, columns=columns)


def _write_rows(made: Mapping[str, Any], path: str) -> None:
    with duckdb.connect(":memory:") as connection:
        connection.register("made", dict(made))
        quoted = "'" + path.replace("'", "''") + "'"
        connection.execute(f"COPY (SELECT * FROM made) TO {quoted} (FORMAT parquet)")  # noqa: S608


def schema(rows: int) -> Schema:
    """What is public of a fictional table: the number of each row."""
    return Schema(Number(ROW, 0, max(1, rows - 1), step=1, public=True), Flag(SECRET))


def analysts(oracle: Oracle, number: int) -> Sequence[Oracle]:
    """So many analysts of a fictional table, with equal shares of all that is left."""
    if not isinstance(oracle, Database):
        raise InvalidQuery(f"only a table has analysts, got a {type(oracle).__name__}")
    share = oracle.remaining / number
    names = [f"analyst {place + 1}" for place in range(number)]
    for name in names:
        oracle.grant(name, share)
    return [oracle.as_analyst(name) for name in names]
