"""DuckDB, locked down: Parquet scanned in place, CSV and frames held in memory.

After opening it only ever gets a SELECT, reaches no other file, writes none, and its own words
(which quote rows) never leave this file.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import duckdb

from sulq.errors import InvalidQuery
from sulq.kernel.engines.duckdb.csv_files import CsvFile
from sulq.kernel.engines.duckdb.physical import (
    INTEGERS,
    PERSON_TYPES,
    UNCOUNTED,
    Holds,
    RawIds,
    RawTable,
    Read,
    listed_sql,
    no_header_name,
    read_text,
    read_typed,
)
from sulq.kernel.engines.duckdb.remote import Remote, fetch, place_of
from sulq.kernel.engines.duckdb.workbooks import XlsxFile, as_text
from sulq.kernel.engines.proved import silenced
from sulq.kernel.engines.sql.compile import FETCHED, PERSON, TABLE, held_sql
from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.engines.sql.engine import Batches, SqlEngine, few_at_most, surveyed
from sulq.kernel.engines.sql.leaves import ColumnSql
from sulq.kernel.engines.sql.persons import PLACE, kept_rows_sql
from sulq.kernel.engines.sql.study import (
    KEPT,
    HeldTable,
    StudySql,
    ceilings,
    check_sources,
    event_rows_sql,
    own_schema,
)
from sulq.kernel.schema.columns import Category, Column, Schema
from sulq.kernel.schema.study import Study

if TYPE_CHECKING:  # outer products load their part when first asked
    from sulq.kernel.engines.sql.engine import Blocks
    from sulq.kernel.schema.vector_program import Leaf

CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
}
FAR = ("TIMESTAMP_S", "TIMESTAMP_MS")
"""Types that hold times which TIMESTAMP, in microseconds, cannot."""
FAR_TIMES = (
    "a time lies beyond what the engine can read (about the year 294,000): write that column in"
    " microseconds, with the impossible times left out"
)
SOURCE, READ, FRAME = "source", "read", "frame"
HELD = "held"
"""How many rows each person has, before any is cut."""
MEMORY_SHARE = 0.6


class DuckDBEngine(SqlEngine):
    """Exact sums over one table."""

    held = HELD

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        places: Mapping[str, ColumnSql],
        rows: int,
        size: int,
        fingerprint: str,
        path: Path | None,
        stamp: Stamp,
    ) -> None:
        super().__init__(places, rows, size, fingerprint)
        self._connection = connection
        self._path = path
        self._stamp = stamp
        self._lock = threading.Lock()
        self._close = weakref.finalize(self, connection.close)  # an open one is noisy at exit
        self._copy: weakref.finalize[..., DuckDBEngine] | None = None  # of a file fetched
        self._stamps: list[tuple[Path, Stamp]] = []  # of further files: tables of a study, a vault

    @contextmanager
    def _reading(self, letters: int) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._lock:
            cursor = self._connection.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    def _execute(self, session: duckdb.DuckDBPyConnection, sql: str) -> list[Any]:
        return session.execute(sql).fetchall()

    def _batches(self, session: duckdb.DuckDBPyConnection, sql: str) -> Batches:
        session.execute(sql)
        while batch := session.fetchmany(FETCHED):
            yield batch

    def _blocks(
        self, session: duckdb.DuckDBPyConnection, sql: str, place: Mapping[Leaf, int]
    ) -> Blocks:
        from sulq.kernel.engines.duckdb.arrow import blocks

        yield from blocks(session.sql(sql))

    def watch(self, stamps: Iterable[tuple[Path, Stamp]]) -> None:
        """Count as changed once one of these files has."""
        self._stamps += stamps

    def unchanged(self) -> bool:
        same = all(stamp_of(path) == stamp for path, stamp in self._stamps)
        return same and stamp_of(self._path) == self._stamp

    def read_through(self) -> None:
        """Decode every value of every declared column; `InvalidQuery` where that cannot be done."""
        every = ", ".join(f"bit_xor(hash({place.sql}))" for place in self.places.values())
        complaint = "the table cannot be read: a part of the file is broken; have it written again"
        with self._reading(0) as session:
            run(session, f"SELECT {every} FROM {TABLE}", complaint)

    def close(self) -> None:
        self._close()
        if self._copy is not None:
            self._copy()


Stamp: TypeAlias = tuple[int, int] | None


def stamp_of(path: Path | None) -> Stamp:
    """Size and time of the last change; (-1, -1) for a file that is gone."""
    if path is None:
        return None
    try:
        facts = path.stat()
    except OSError:
        return (-1, -1)
    return (facts.st_size, facts.st_mtime_ns)


# --- opening ------------------------------------------------------------------------------------


def open_duckdb(
    source: Any, schema: Schema, *, threads: int | None = None, held: bool = False
) -> DuckDBEngine:
    """Open a path or a frame; every complaint names the remedy and quotes no row.

    `held`: in memory, Parquet too, in the order of the source.
    """
    path, text = file_of(source)
    connection = duckdb.connect(":memory:", config=CLOSED)
    copy = None
    try:
        settle(connection, threads, held)
        if isinstance(source, Remote):
            copy = fetch(source)
            path = place_of(copy)
        engine = _load(connection, source, path, text, schema, held)
    except BaseException:
        connection.close()
        if copy is not None:
            copy.close()
        raise
    if copy is not None:
        engine._copy = weakref.finalize(engine, copy.close)
    return engine


def file_of(source: Any) -> tuple[Path | None, CsvFile | XlsxFile | None]:
    """The file of a source, if it is one, and how it is read, if it holds text."""
    if isinstance(source, CsvFile | XlsxFile):
        path = _checked_path(source.path, declared=True)
        return path, replace(source, path=path)
    if not isinstance(source, str | os.PathLike):
        return None, None
    path = _checked_path(source)
    return path, None if path.suffix == ".parquet" else CsvFile(path)


def run(connection: duckdb.DuckDBPyConnection, sql: str, complaint: object) -> list[Any]:
    """Run a statement of the opening; the engine's own words are dropped."""
    found = silenced(lambda: connection.execute(sql).fetchall(), lambda _: None)
    if found is None:
        raise InvalidQuery(str(complaint))
    return found


def settle(connection: duckdb.DuckDBPyConnection, threads: int | None, ordered: bool) -> None:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    count = threads or os.cpu_count() or 2
    for setting in (
        "temp_directory = ''",  # first: rows must never spill to disk
        f"memory_limit = '{int(pages * MEMORY_SHARE) >> 20}MiB'",
        f"threads = {count}",
        "enable_logging = false",
        "enable_progress_bar = false",  # DuckDB draws one in sessions that it takes for interactive
        "TimeZone = 'UTC'",
        f"preserve_insertion_order = {str(ordered).lower()}",
        "python_enable_replacements = false",
        # Parquet's statistics leave NaN out, and this would take x < 9 as proved by them
        "disabled_optimizers = 'statistics_propagation'",
    ):
        run(connection, f"SET {setting}", "the engine could not be prepared")


def lock_down(connection: duckdb.DuckDBPyConnection, path: Path | None) -> None:
    allowed = f"[{Dialect.text(str(path))}]" if path else "[]"
    for setting in (
        f"allowed_paths = {allowed}",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        run(connection, f"SET {setting}", "the engine could not be locked down")


def _load(
    connection: duckdb.DuckDBPyConnection,
    source: Any,
    path: Path | None,
    text: CsvFile | XlsxFile | None,
    schema: Schema,
    in_memory: bool,
) -> DuckDBEngine:
    stamp = stamp_of(path)  # before the first read: what changes from here on is noticed
    scanned = path is not None and text is None and schema.unit == "row"
    with nullcontext(None) if text is None else as_text(text) as lying:
        declared = {column.name for column in schema.columns}
        held, copied = register(connection, source, path, lying, declared)
        in_place = scanned and not in_memory and not copied
        places, chosen = chosen_columns(schema, held, None if lying is None else lying[0])
        unread = Unread(lying)
        made = "VIEW" if in_place else "TABLE"
        if schema.unit == "row":
            run(connection, f"CREATE {made} {TABLE} AS SELECT {chosen} FROM {SOURCE}", unread)
            size = int(run(connection, f"SELECT count(*) FROM {TABLE}", unread)[0][0])
        else:
            run(connection, f"CREATE VIEW {READ} AS SELECT {chosen} FROM {SOURCE}", unread)
            kept = kept_rows_sql(schema, places, PERSON, READ)
            run(connection, f"CREATE TABLE {TABLE} AS {kept}", unread)
            run(connection, f"CREATE TABLE {HELD} AS {held_sql(READ)}", unread)
            size = int(run(connection, f"SELECT count(*) FROM {HELD}", unread)[0][0])
    rows = int(run(connection, f"SELECT count(*) FROM {TABLE}", unread)[0][0])
    if rows == 0:
        raise InvalidQuery("the table has no rows; publish one that has")
    places = _surveyed(connection, schema, places, unread)
    fingerprint = file_hash(path, text) if path else _frame_hash(connection)
    if not in_place:
        run(connection, f"DROP VIEW IF EXISTS {READ}", unread)
        run(connection, f"DROP {'TABLE' if copied else 'VIEW'} {SOURCE}", unread)
    lock_down(connection, path if in_place else None)
    return DuckDBEngine(connection, places, rows, size, fingerprint, path, stamp)


# A study: every table in memory, persons by number.


IDS = "ids"


def open_duckdb_study(
    sources: Any, study: Study, *, size_is_public: bool, threads: int | None = None
) -> DuckDBEngine:
    """Open the tables of a study: their files or frames, by name."""
    listed = check_sources(sources, study)
    for source in listed.values():
        if isinstance(source, Remote):
            raise InvalidQuery("the tables of a study are read from files here: fetch them first")
    connection = duckdb.connect(":memory:", config=CLOSED)
    try:
        settle(connection, threads, False)
        return _load_study(connection, listed, study, size_is_public)
    except BaseException:
        connection.close()
        raise


def _load_study(
    connection: duckdb.DuckDBPyConnection,
    sources: Mapping[str, Any],
    study: Study,
    size_is_public: bool,
) -> DuckDBEngine:
    tables: dict[str, HeldTable] = {}
    limits: dict[str, int] = {}
    stamps, prints = [], []
    for number, (name, source) in enumerate(sources.items()):
        schema, path_text = own_schema(study, name), file_of(source)
        path, text = path_text
        if path is not None:
            stamps.append((path, stamp_of(path)))  # before the first read
        with nullcontext(None) if text is None else as_text(text) as lying:
            declared = {column.name for column in schema.columns}
            try:
                held, copied = register(connection, source, path, lying, declared)
                places, chosen = chosen_columns(schema, held, None if lying is None else lying[0])
            except InvalidQuery as error:
                raise InvalidQuery(f"{name}: {error}") from None
            unread = Unread(lying)
            listed = ", ".join(place.sql for place in places.values())
            person = f"{_id_sql(PERSON)} AS {PERSON}"
            sql = f"SELECT {listed}, {person} FROM (SELECT {chosen} FROM {SOURCE}) AS chosen"
            run(connection, f"CREATE VIEW {READ} AS {sql}", unread)
            if name == study.name:
                places = _load_persons(connection, schema, places, unread)
                persons = int(run(connection, f"SELECT count(*) FROM {TABLE}", unread)[0][0])
                limits = ceilings(study, persons, size_is_public)
                tables[name] = HeldTable(TABLE, places, persons, persons)
            else:
                known = (
                    f"(SELECT {listed}, {IDS}.{PERSON} AS {PERSON} FROM {READ} AS r"
                    f" JOIN {IDS} ON {IDS}.id = r.{PERSON}) AS known"
                )
                event, called = study.table(name), f"events{number}"
                sql = event_rows_sql(event, places, known, limits[name])
                places, stored = _in_memory(schema, places)
                listed = ", ".join((*stored, PERSON, PLACE, KEPT))
                run(connection, f"CREATE TABLE {called} AS SELECT {listed} FROM ({sql})", unread)
                kept = f"count(*) FILTER (WHERE {KEPT} <= {event.max_rows})"
                rows = run(connection, f"SELECT count(*), {kept} FROM {called}", unread)[0]
                tables[name] = HeldTable(called, places, int(rows[0]), int(rows[1]))
            few = _surveyed(connection, schema, dict(places), unread, tables[name].sql)
            tables[name] = replace(tables[name], places=few)
            prints.append(file_hash(path, text) if path else _frame_hash(connection))
        run(connection, f"DROP VIEW {READ}", unread)
        run(connection, f"DROP {'TABLE' if copied else 'VIEW'} {SOURCE}", unread)
    run(connection, f"DROP TABLE {IDS}", unread)
    lock_down(connection, None)
    first = tables[study.name]
    whole = hashlib.sha256(json.dumps([list(sources), prints]).encode()).hexdigest()
    engine = DuckDBEngine(connection, first.places, first.rows, first.rows, whole, None, None)
    engine.study = StudySql(study, tables)
    engine.watch(stamps)
    return engine


def _in_memory(
    schema: Schema, places: Mapping[str, ColumnSql]
) -> tuple[dict[str, ColumnSql], list[str]]:
    """The places of columns that are held in memory, and what is held: of a category where a value
    stands among the declared ones, worked out once instead of for every question."""
    held, stored = dict(places), []
    for column in schema.columns:
        x, values = places[column.name].sql, getattr(column, "values", None)
        if isinstance(column, Category) and values is not None:
            held[column.name] = ColumnSql(x, "listed", values=tuple(values))
            stored.append(f"CAST({listed_sql(x, values)} AS INTEGER) AS {x}")
        else:
            stored.append(x)
    return held, stored


def _id_sql(x: str) -> str:
    """Whose a row is: 7 and '7' are one person."""
    return f"CAST({x} AS VARCHAR)"


def _load_persons(
    connection: duckdb.DuckDBPyConnection,
    schema: Schema,
    places: Mapping[str, ColumnSql],
    unread: object,
) -> dict[str, ColumnSql]:
    """One row for each id that is not NULL, by the hash order; and a number for each person."""
    kept = kept_rows_sql(schema, places, PERSON, READ)
    numbered = f"SELECT *, CAST(row_number() OVER () AS BIGINT) AS number FROM ({kept}) AS kept"
    run(connection, f"CREATE TABLE numbered AS {numbered}", unread)
    held, stored = _in_memory(schema, places)
    people = f"SELECT {', '.join(stored)}, number AS {PERSON} FROM numbered"
    run(connection, f"CREATE TABLE {TABLE} AS {people}", unread)
    ids = f"SELECT {PERSON} AS id, number AS {PERSON} FROM numbered"
    run(connection, f"CREATE TABLE {IDS} AS {ids}", unread)
    run(connection, "DROP TABLE numbered", unread)
    return held


class Unread:
    """Why a table cannot be read, found out when it is asked for: of a CSV file line and reason."""

    def __init__(self, lying: tuple[CsvFile, Path] | None) -> None:
        self._lying = lying

    def __str__(self) -> str:
        if self._lying is None:
            return "the table cannot be read: text must be UTF-8 and every line complete"
        rules, place = self._lying
        return rules.complaint(place)


def register(
    connection: duckdb.DuckDBPyConnection,
    source: Any,
    path: Path | None,
    lying: tuple[CsvFile, Path] | None,
    declared: Collection[str] | None,
) -> tuple[dict[str, str], bool]:
    """Give the source a name; its columns and their types, and whether it was copied.

    `declared` are the columns that will be read; None: all.
    """
    copied, reader = path is None, f"SELECT * FROM {FRAME}"
    complaint: object
    if path is None:
        if not any(_registers(connection, frame) for frame in _readable(source)):
            raise InvalidQuery(
                f"cannot read a {type(source).__name__}; give a path to Parquet or CSV, or a"
                " pandas, polars or Arrow table"
            )
        complaint = "the frame cannot be read: each column must hold one kind of value"
    elif lying is not None:
        rules, place = lying
        reader = rules.reader(place)
        complaint = Unread(lying)
    else:
        quoted = Dialect.text(str(path))
        reader = f"SELECT * FROM read_parquet({quoted}, hive_partitioning = false)"
        called = source.name if isinstance(source, Remote) else path.name
        complaint = f"{called} is not a readable Parquet file"
        if not _milliseconds_fit(connection, path, reader, declared, complaint):
            copied = _registers(connection, _naive_times(path))
            complaint = FAR_TIMES
    if copied:  # read once: a stream has no second pass, and a frame may change meanwhile
        _copy(connection, source if path is None else None, complaint)
        connection.unregister(FRAME)
    else:
        run(connection, f"CREATE VIEW {SOURCE} AS {reader}", complaint)
    described = run(connection, f"DESCRIBE {SOURCE}", complaint)
    return {str(row[0]): str(row[1]) for row in described}, copied


def _copy(connection: duckdb.DuckDBPyConnection, frame: Any, complaint: object) -> None:
    """Read the registered frame into a table; times that the engine cannot hold become infinite.

    It fails on a time with a zone in seconds or milliseconds that is beyond its microseconds; such
    a frame is read once more without the zone, which is UTC.
    """
    made = f"CREATE TABLE {SOURCE} AS SELECT * FROM {FRAME}"
    try:
        run(connection, made, complaint)
    except InvalidQuery:
        if frame is None or not _registers(connection, _naive_times(frame)):
            raise
        run(connection, made, complaint)
    described = run(connection, f"DESCRIBE {SOURCE}", complaint)
    coarse = {str(row[0]): str(row[1]) for row in described if row[1] in FAR}
    for name, kind in coarse.items():
        x = Dialect.name(name)
        near = f"TRY_CAST({x} AS TIMESTAMP)"
        beyond = f"SELECT count(*) FROM {SOURCE} WHERE {x} IS NOT NULL AND {near} IS NULL"
        if run(connection, beyond, complaint)[0][0]:  # else its fingerprint stays as it was
            side = f"CASE WHEN {x} > CAST('1970-01-01' AS {kind}) THEN '' ELSE '-' END"
            far = f"CAST({side} || 'infinity' AS TIMESTAMP)"
            read = f"CASE WHEN {x} IS NOT NULL THEN coalesce({near}, {far}) END"
            run(
                connection,
                f"CREATE OR REPLACE TABLE {SOURCE} AS"
                f" SELECT * REPLACE ({read} AS {x}) FROM {SOURCE}",
                complaint,
            )


def _milliseconds_fit(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    reader: str,
    declared: Collection[str] | None,
    complaint: object,
) -> bool:
    """Whether the engine can read every declared time that a Parquet file holds in milliseconds."""
    sql = (
        f"SELECT DISTINCT name FROM parquet_schema({Dialect.text(str(path))})"
        " WHERE converted_type = 'TIMESTAMP_MILLIS' OR logical_type LIKE '%MilliSeconds%'"
    )
    found = {str(row[0]) for row in run(connection, sql, complaint)}
    coarse = sorted(found if declared is None else found.intersection(declared))
    if coarse:
        read = ", ".join(f"max({Dialect.name(name)}) IS NULL" for name in coarse)
        try:
            run(connection, f"SELECT {read} FROM ({reader})", complaint)
        except InvalidQuery:
            return False
    return True


def _naive_times(source: Any) -> Any:
    """The frame or Parquet file in Arrow's memory, its coarse times without a zone: so the engine
    keeps seconds and milliseconds as they are, however far."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InvalidQuery(f"{FAR_TIMES}; or install pyarrow, with which it can be read") from None

    def naive() -> Any:
        path = isinstance(source, Path)
        found = pyarrow.parquet.read_table(source) if path else pyarrow.table(source)
        for place, field in enumerate(found.schema):
            if pyarrow.types.is_timestamp(field.type) and field.type.unit in ("s", "ms"):
                without = found.column(place).cast(pyarrow.timestamp(field.type.unit))
                found = found.set_column(place, field.name, without)
        return found

    return silenced(naive, lambda _: InvalidQuery(FAR_TIMES))


def _readable(source: Any) -> Iterator[Any]:
    """The frame, and a copy of it: DuckDB cannot read a pandas frame turned upside down."""
    yield source
    if hasattr(source, "copy"):
        yield source.copy()


def _registers(connection: duckdb.DuckDBPyConnection, frame: Any) -> bool:
    return silenced(lambda: connection.register(FRAME, frame) is not None, lambda _: False)


def chosen_columns(
    schema: Schema, held: Mapping[str, str], rules: CsvFile | None
) -> tuple[dict[str, ColumnSql], str]:
    """Where each declared column will be, and the SELECT list that puts it there."""
    person = [schema.unit] if schema.unit != "row" else []
    _check_there([column.name for column in schema.columns], held, rules)
    places: dict[str, ColumnSql] = {}
    chosen: list[str] = []
    for number, column in enumerate(schema.columns):
        x = Dialect.name(column.name)
        if rules is not None:
            sql, kind = read_text(column, x, rules.spelling)
        else:
            sql, kind = read_typed(column, x, held[column.name])
        places[column.name] = ColumnSql(f"c{number}", kind)
        chosen.append(f"{sql} AS c{number}")
    chosen += [f"{_chosen_person(name, held, rules)} AS {PERSON}" for name in person]
    return places, ", ".join(chosen)


def _chosen_person(name: str, held: Mapping[str, str], rules: CsvFile | None) -> str:
    """Where the person column is, as it lies there."""
    _check_there([name], held, rules)
    if held[name] not in PERSON_TYPES:
        raise InvalidQuery(
            f"the person column {name!r} must hold integers or text, and holds {held[name]}: write"
            " it as whole numbers or as text (in pandas .astype('Int64'), which has room for"
            " missing ids)"
        )
    return Dialect.name(name)


def _check_there(names: Sequence[str], held: Mapping[str, str], rules: CsvFile | None) -> None:
    missing = [name for name in names if name not in held]
    if missing and rules is not None:
        raise no_header_name(missing[0], held)
    if missing:
        raise InvalidQuery(f"no column {missing[0]!r} in the table, which has {_listed(held)}")


def _listed(names: Sequence[str] | Mapping[str, str]) -> str:
    shown = sorted(names)
    return f"{shown[:50]}{' and more' if len(shown) > 50 else ''}"


def _surveyed(
    connection: duckdb.DuckDBPyConnection,
    schema: Schema,
    places: dict[str, ColumnSql],
    unread: object,
    table: str = TABLE,
) -> dict[str, ColumnSql]:
    """Read what could fail to decode once, now; note which categories hold few values."""
    most = few_at_most(schema)
    read = [
        f"approx_count_distinct({place.sql})" if name in most else f"max({place.sql}) IS NULL"
        for name, place in places.items()
    ]
    found = run(connection, f"SELECT {', '.join(read)} FROM {table}", unread)[0]
    seen = {name: held for name, held in zip(places, found, strict=True) if name in most}
    return surveyed(places, seen, most)


def _checked_path(source: str | os.PathLike[str], *, declared: bool = False) -> Path:
    """The file at a path; how it is read is `declared`, or its name must tell."""
    path = Path(source).expanduser().absolute()
    if any(mark in str(path) for mark in "*?[]{}\x00"):
        raise InvalidQuery("a path may not contain * ? [ ] { }; rename the file")
    if not path.exists():
        raise InvalidQuery(f"no file {path.name!r} in {path.parent}")
    if not path.is_file():
        raise InvalidQuery(f"{path.name!r} is not a file; give one Parquet or CSV file")
    if not declared and not path.name.endswith((".parquet", ".csv", ".csv.gz")):
        raise InvalidQuery(
            f"{path.name!r} should end in .parquet, .csv or .csv.gz, or declare how it is read:"
            ' csv = {delimiter = ";"} or xlsx = {sheet = "..."} in the policy'
        )
    if path.stat().st_size == 0:
        raise InvalidQuery(f"{path.name!r} is empty: the table has no rows")
    return path


# --- the owner's counts --------------------------------------------------------------------------


def raw_duckdb(source: Any) -> RawTable:
    """A file or a frame as it lies there, for `sulq.kernel.engines.tally` alone."""
    path, text = file_of(source)
    connection = duckdb.connect(":memory:", config=CLOSED)
    copy, rules = None, None
    try:
        settle(connection, None, False)
        if isinstance(source, Remote):
            copy = fetch(source)
            path = place_of(copy)
        if text is None:
            held, _ = register(connection, source, path, None, None)
        else:  # read once
            with as_text(text) as (rules, place):
                held, _ = register(connection, source, path, (rules, place), None)
                sql = f"CREATE TABLE {TABLE} AS SELECT * FROM {SOURCE}"
                run(connection, sql, Unread((rules, place)))
        lock_down(connection, path if text is None else None)
    except BaseException:
        connection.close()
        if copy is not None:
            copy.close()
        raise

    def read(column: Column) -> Read:
        x = Dialect.name(column.name)
        if rules is not None:
            return read_text(column, x, rules.spelling)
        return read_typed(column, x, held[column.name])

    def close() -> None:
        connection.close()
        if copy is not None:
            copy.close()

    return RawTable(
        TABLE if rules is not None else SOURCE,
        {name: _holds(kind) for name, kind in held.items()},
        read,
        lambda sql: tuple(run(connection, sql, UNCOUNTED)[0]),
        close,
        texts=rules is not None,
    )


def ids_duckdb(sources: Mapping[str, tuple[Any, str]]) -> RawIds:
    """How many rows each id has in each of several sources, for `sulq.kernel.engines.tally` alone.

    `sources` has the source of each table and its person column.
    """
    connection = duckdb.connect(":memory:", config=CLOSED)
    try:
        settle(connection, None, False)
        for number, (name, (source, person)) in enumerate(sources.items()):
            path, text = file_of(source)
            with nullcontext(None) if text is None else as_text(text) as lying:
                held, copied = register(connection, source, path, lying, {person})
                try:
                    x = _chosen_person(person, held, None if lying is None else lying[0])
                except InvalidQuery as error:
                    raise InvalidQuery(f"{name}: {error}") from None
                counted = f"SELECT {_id_sql(x)} AS id, count(*) AS n FROM {SOURCE}"
                sql = f"CREATE TABLE ids{number} AS {counted} GROUP BY 1"
                run(connection, sql, Unread(lying))
            run(connection, f"DROP {'TABLE' if copied else 'VIEW'} {SOURCE}", UNCOUNTED)
        lock_down(connection, None)
    except BaseException:
        connection.close()
        raise
    return RawIds("", lambda sql: tuple(run(connection, sql, UNCOUNTED)[0]), connection.close)


def _holds(kind: str) -> Holds:
    if kind in INTEGERS:
        return "whole"
    return "text" if kind in ("VARCHAR", "UUID") or kind.startswith("ENUM") else "other"


# --- fingerprints -------------------------------------------------------------------------------


def file_hash(path: Path, text: CsvFile | XlsxFile | None) -> str:
    """SHA-256 of the bytes, then that of the declared rules of reading, which are published too.

    The register knows data by the first part: no rule makes other data of the same bytes.
    """
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    if text is None or not text.rules:
        return content
    rules = json.dumps([type(text).__name__, text.rules], sort_keys=True)
    return f"{content}/{hashlib.sha256(rules.encode()).hexdigest()}"


def _frame_hash(connection: duckdb.DuckDBPyConnection) -> str:
    """Over names and rows in any order: MD5 of each row's text, added up."""
    complaint = "the frame cannot be read"
    sql = (
        "SELECT count(*), sum(md5_number_lower(row)), sum(md5_number_upper(row))"
        f" FROM (SELECT CAST({SOURCE} AS VARCHAR) AS row FROM {SOURCE}) AS rows_as_text"
    )
    facts = repr(run(connection, sql, complaint)[0])
    names = repr(run(connection, f"DESCRIBE {SOURCE}", complaint))
    return hashlib.sha256((names + facts).encode()).hexdigest()
