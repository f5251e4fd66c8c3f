"""What a table of Spark is and whether it still is what was opened.

A table of files is known by their names, sizes and times of change; one of Iceberg or Delta by its
snapshot, which is also the one that is read. Its content is known by the sum over rows of hashes
of the declared columns, whatever the files and the order. docs/proofs/spark.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sulq.errors import InvalidQuery
from sulq.kernel.engines.spark.dialect import SparkDialect, person_sql, read_held
from sulq.kernel.engines.spark.session import SparkAddress
from sulq.kernel.engines.sql.compile import PERSON, TABLE
from sulq.kernel.engines.sql.leaves import ColumnSql
from sulq.kernel.engines.sql.persons import kept_rows_sql
from sulq.kernel.schema.columns import Schema

SOURCE, READ = "source_rows", "rows_read"
SNAPSHOTS = ("iceberg", "delta")
FILES = ("parquet", "orc")
Stamp = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class SparkSource:
    """The declared columns as SQL over one table."""

    address: SparkAddress
    format: str
    stamp: Stamp
    places: Mapping[str, ColumnSql]
    chosen: str
    """The SELECT list that puts each declared column in its place."""
    kept: str | None
    """Of a person unit: the SELECT of the rows that count."""
    names: tuple[str, ...]

    def settle(self, session: Any) -> None:
        """Name the rows as they are read, and those that count, in a new session."""
        _rows(session, self.address, self.format, self.stamp).createOrReplaceTempView(SOURCE)
        read = session.sql(f"SELECT {self.chosen} FROM {SOURCE}")
        read.createOrReplaceTempView(READ)
        counted = read if self.kept is None else session.sql(self.kept)
        if self.kept is not None:
            from pyspark import StorageLevel

            counted.persist(StorageLevel.MEMORY_ONLY)  # ranked once, and never on disk
        counted.createOrReplaceTempView(TABLE)

    def still(self, session: Any) -> bool:
        return look(session, self.address, self.format) == self.stamp

    @property
    def content_sql(self) -> str:
        """Rows, and two sums of 64-bit hashes; NULL is told apart by the list of what is there."""
        held = ", ".join((*self.names, *(f"{name} IS NULL" for name in self.names)))
        hashes = ", ".join(
            f"COALESCE(sum(CAST(xxhash64({seed}, {held}) AS DECIMAL(20, 0))), 0)" for seed in (1, 2)
        )
        return f"count(*), {hashes}"

    def fingerprint(self, schema: Schema, content: Sequence[int]) -> str:
        facts = repr((tuple(c.name for c in schema.columns), schema.unit, tuple(content)))
        return hashlib.sha256(facts.encode()).hexdigest()


def source_of(session: Any, address: SparkAddress, schema: Schema) -> SparkSource:
    """How the declared columns are read; complaints name columns, never rows."""
    form = _format(session, address)
    stamp = look(session, address, form)  # before the first read: what changes later is noticed
    rows = _rows(session, address, form, stamp)
    held = {f.name: f.dataType.simpleString() for f in rows.schema.fields}
    person = [schema.unit] if schema.unit != "row" else []
    for name in (*(column.name for column in schema.columns), *person):
        if name not in held:
            shown = sorted(held)
            more = " and more" if len(shown) > 50 else ""
            raise InvalidQuery(f"no column {name!r} in the table, which has {shown[:50]}{more}")
    places: dict[str, ColumnSql] = {}
    chosen, names = [], []
    for number, column in enumerate(schema.columns):
        sql, kind = read_held(column, held)
        names.append(f"c{number}")
        places[column.name] = ColumnSql(f"c{number}", kind, dialect=SparkDialect)
        chosen.append(f"{sql} AS c{number}")
    for name in person:
        names.append(PERSON)
        chosen.append(f"{person_sql(name, held[name])} AS {PERSON}")
    kept = kept_rows_sql(schema, places, PERSON, READ) if person else None
    return SparkSource(address, form, stamp, places, ", ".join(chosen), kept, tuple(names))


def raw_rows(session: Any, address: SparkAddress) -> dict[str, str]:
    """Name the rows as they lie there, for the owner's counts; return the type of each column."""
    form = _format(session, address)
    rows = _rows(session, address, form, look(session, address, form))
    rows.createOrReplaceTempView(SOURCE)
    return {field.name: field.dataType.simpleString() for field in rows.schema.fields}


# --- tables and paths ---------------------------------------------------------------------------


def _name(address: SparkAddress) -> str:
    return ".".join(SparkDialect.name(part) for part in address.table)


def _format(session: Any, address: SparkAddress) -> str:
    """Of a path what the address says, of a table what the catalogue says."""
    if address.path:
        return address.format
    described = session.sql(f"DESCRIBE TABLE EXTENDED {_name(address)}").collect()
    facts = {row[0]: str(row[1]) for row in described}
    provider = facts.get("Provider", "").lower()
    if "VIEW" in facts.get("Type", "VIEW") or provider not in FILES + SNAPSHOTS:
        raise InvalidQuery(
            "the address names a view or a table that is not kept as Parquet, ORC, Iceberg or"
            " Delta, whose rows cannot be told unchanged; publish such a table: CREATE TABLE ..."
            " USING parquet AS SELECT ..."
        )
    return provider


def _rows(session: Any, address: SparkAddress, form: str, stamp: Stamp) -> Any:
    """The rows, of an Iceberg or Delta table those of the snapshot of this stamp."""
    if address.table:
        if form in SNAPSHOTS:
            return session.sql(f"SELECT * FROM {_name(address)} VERSION AS OF {stamp[0]}")
        return session.table(_name(address))
    reader = session.read.format(form)
    if form in SNAPSHOTS:
        option = "snapshot-id" if form == "iceberg" else "versionAsOf"
        reader = reader.option(option, str(stamp[0]))
    return reader.load(address.path)


def look(session: Any, address: SparkAddress, form: str) -> Stamp:
    """The source's state as of now."""
    if form == "iceberg":
        return (_iceberg_snapshot(session, address),)
    if form == "delta":
        name = _name(address) or f"delta.{SparkDialect.name(address.path)}"
        return (int(session.sql(f"DESCRIBE HISTORY {name} LIMIT 1").collect()[0]["version"]),)
    if address.table:
        session.catalog.refreshTable(_name(address))
    if getattr(session, "_jvm", None) is None:  # Spark Connect: the files say it themselves
        return _files_of_rows(_rows(session, address, form, ()))
    if address.path:
        return _files_below(session, address.path)
    return _files_named(session, session.table(_name(address)).inputFiles())


def _iceberg_snapshot(session: Any, address: SparkAddress) -> int:
    if address.table:
        refs = session.sql(f"SELECT * FROM {_name(address)}.refs")
    else:
        refs = session.read.format("iceberg").load(f"{address.path}#refs")
    return int(refs.where("name = 'main'").collect()[0]["snapshot_id"])


def _files_below(session: Any, path: str) -> Stamp:
    """Name, size and time of change of every file; Spark skips names that start with _ or dot."""
    jvm = session._jvm
    root = jvm.org.apache.hadoop.fs.Path(path)
    system = root.getFileSystem(session._jsc.hadoopConfiguration())
    below = system.listFiles(root, True)
    top = system.makeQualified(root).toString()
    found = []
    while below.hasNext():
        file = below.next()
        name = file.getPath().toString()
        if not any(part.startswith(("_", ".")) for part in name[len(top) :].split("/")):
            found.append((name, file.getLen(), file.getModificationTime()))
    return tuple(sorted(found))


def _files_named(session: Any, names: Sequence[str]) -> Stamp:
    jvm = session._jvm
    found = []
    for name in sorted(names):
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(name))
        file = path.getFileSystem(session._jsc.hadoopConfiguration()).getFileStatus(path)
        found.append((name, file.getLen(), file.getModificationTime()))
    return tuple(found)


def _files_of_rows(rows: Any) -> Stamp:
    facts = ("file_path", "file_size", "file_modification_time")
    chosen = rows.select(*(f"_metadata.{fact}" for fact in facts)).distinct()
    return tuple(sorted(tuple(row) for row in chosen.collect()))
