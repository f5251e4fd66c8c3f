"""What a table of PostgreSQL is and whether it still is what was opened.

Three marks, each implying the next, the dearest only where the cheaper one moved:

snapshot   no transaction that writes anything has come or gone since: not a row can differ
versions   how many rows there are, and of those whose writer had not ended when the content was
           last looked at, the sum of a hash of (table, place, writer): a row version is never
           changed in place, and what was written before can only have gone
content    the sum over rows of two 64-bit hashes of the declared columns as text

docs/proofs/postgresql.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sulq.errors import InvalidQuery
from sulq.kernel.engines.postgres.dialect import Held, PostgresDialect, person_sql, read_held
from sulq.kernel.engines.postgres.session import PostgresAddress
from sulq.kernel.engines.sql.compile import PERSON, TABLE
from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.engines.sql.leaves import ColumnSql
from sulq.kernel.engines.sql.persons import kept_rows_sql
from sulq.kernel.schema.columns import Schema

READ = "rows_read"
TABLE_KINDS = ("r", "p")
FACTS = """
SELECT t.oid, t.relkind, t.relhassubclass OR t.relkind = 'p', pg_postmaster_start_time(),
       CASE WHEN pg_is_in_recovery() THEN NULL ELSE CAST(pg_current_snapshot() AS TEXT) END,
       CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT),
       CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT)
FROM pg_class AS t JOIN pg_namespace AS n ON n.oid = t.relnamespace
WHERE n.nspname = {schema} AND t.relname = {table}
"""
COLUMNS = """
SELECT a.attname, a.attnum, a.atttypmod, a.attgenerated = 'v', k.typtype = 'e',
       CASE WHEN k.typnamespace = CAST('pg_catalog' AS regnamespace) THEN k.typname
            ELSE 'a type of its own' END,
       COALESCE((SELECT string_agg(e.oid || ' ' || e.enumlabel, ', ' ORDER BY e.oid)
                 FROM pg_enum AS e WHERE e.enumtypid = k.oid), ''),
       d.typtypmod
FROM pg_attribute AS a JOIN pg_type AS d ON d.oid = a.atttypid
JOIN pg_type AS k ON k.oid = CASE WHEN d.typtype = 'd' THEN d.typbasetype ELSE d.oid END
WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

ELSEWHERE = """
WITH RECURSIVE kin(oid) AS (SELECT CAST({oid} AS oid) UNION
     SELECT i.inhrelid FROM pg_inherits AS i JOIN kin ON i.inhparent = kin.oid)
SELECT count(*) FROM kin JOIN pg_class AS t ON t.oid = kin.oid WHERE t.relkind NOT IN ('r', 'p')
"""
VIEW = (
    "the address names a view or a foreign table, or has one among its partitions, whose rows"
    " cannot be told unchanged; publish a table: CREATE TABLE ... AS SELECT ..."
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A state of the server: its start, and what a transaction sees (None: cannot be said)."""

    started: object
    snapshot: str | None
    ended: int = field(compare=False)
    """Every transaction with a lower number has ended."""
    begun: int = field(compare=False)
    """None with this number or a higher one is seen."""


@dataclass(frozen=True, slots=True)
class PostgresCatalogue:
    """The table's identity and its columns."""

    oid: int
    columns: tuple[Held, ...]
    parts: bool = field(compare=False)
    """Rows may lie in other tables, as partitions or children."""

    def of(self, schema: Schema) -> PostgresCatalogue:
        """The same with the columns that are read alone: others may come, change and go."""
        read = {schema.unit, *(column.name for column in schema.columns)}
        return replace(self, columns=tuple(held for held in self.columns if held.name in read))


def look(cursor: Any, address: PostgresAddress) -> tuple[PostgresCatalogue, Moment]:
    """The catalogue's word, and the moment of the cursor's transaction."""
    wanted = FACTS.format(schema=Dialect.text(address.schema), table=Dialect.text(address.table))
    oid, kind, parts, *moment = cursor.execute(wanted).fetchone()
    if kind not in TABLE_KINDS:
        raise InvalidQuery(VIEW)
    columns = cursor.execute(COLUMNS.format(oid=int(oid))).fetchall()
    catalogue = PostgresCatalogue(int(oid), tuple(_held(row) for row in columns), parts)
    return catalogue, Moment(*moment)


def check_here(cursor: Any, catalogue: PostgresCatalogue) -> None:
    """`InvalidQuery` if a partition lies on another server, whose writers move no mark here."""
    if catalogue.parts and cursor.execute(ELSEWHERE.format(oid=catalogue.oid)).fetchone()[0]:
        raise InvalidQuery(VIEW)


def _held(row: tuple[Any, ...]) -> Held:
    name, number, modifier, computed, is_enum, kind, labels, of_domain = row
    kind = "enum" if is_enum else kind
    return Held(name, number, kind, max(modifier, of_domain), computed, labels)


@dataclass(frozen=True, slots=True)
class PostgresSource:
    """The declared columns as SQL over one table."""

    table: str
    """Its name in a FROM; ONLY it, where its rows lie in no other."""
    parts: bool
    places: Mapping[str, ColumnSql]
    names: tuple[str, ...]
    with_rows: str
    """WITH ..., naming the rows as they are read, and those that count."""
    read: str
    """SELECT of the declared columns of every row, and of whose it is."""

    @property
    def content_sql(self) -> str:
        """Rows, and two sums of hashes that do not depend on their order."""
        wanted = ", ".join(self.names)
        text = f"SELECT CAST(ROW({wanted}) AS TEXT) AS held FROM {READ} OFFSET 0"
        hashes = ", ".join(f"COALESCE(sum(hashtextextended(held, {seed})), 0)" for seed in (1, 2))
        return f"{self.with_rows} SELECT count(*), {hashes} FROM ({text}) AS texts"

    def versions_sql(self, since: int) -> str:
        """Rows, and the sum of hashes of where each row version lies and who wrote it: of those
        written from transaction `since` on, or of all where rows lie in several tables."""
        writer = "CAST(CAST(xmin AS TEXT) AS BIGINT) # (CAST(tableoid AS BIGINT) << 32)"
        mark = f"(SELECT age(CAST('{since % 2**32}' AS xid)))"  # worked out once
        late = "" if self.parts else f" FILTER (WHERE age(xmin) <= {mark})"
        return f"SELECT count(*), sum(hashtidextended(ctid, {writer})){late} FROM {self.table}"

    def fingerprint(self, schema: Schema, content: Sequence[int]) -> str:
        facts = repr((tuple(c.name for c in schema.columns), schema.unit, tuple(content)))
        return hashlib.sha256(facts.encode()).hexdigest()


def source_of(
    address: PostgresAddress, catalogue: PostgresCatalogue, schema: Schema
) -> PostgresSource:
    """How the declared columns are read; complaints name columns, never rows."""
    held = {column.name: column for column in catalogue.columns}
    person = [schema.unit] if schema.unit != "row" else []
    for name in (*(column.name for column in schema.columns), *person):
        if name not in held:
            shown = sorted(held)
            more = " and more" if len(shown) > 50 else ""
            raise InvalidQuery(f"no column {name!r} in the table, which has {shown[:50]}{more}")
        if held[name].computed:
            raise InvalidQuery(
                f"column {name!r} is computed when it is read; make it GENERATED ... STORED"
            )
    places: dict[str, ColumnSql] = {}
    chosen, names = [], []
    for number, column in enumerate(schema.columns):
        sql, kind = read_held(column, held[column.name])
        names.append(f"c{number}")
        places[column.name] = ColumnSql(f"c{number}", kind, dialect=PostgresDialect)
        chosen.append(f"{sql} AS c{number}")
    for name in person:
        names.append(PERSON)
        chosen.append(f"{person_sql(Dialect.name(name), held[name])} AS {PERSON}")
    table = address.sql if catalogue.parts else f"ONLY {address.sql}"
    read = f"SELECT {', '.join(chosen)} FROM {table}"
    kept = kept_rows_sql(schema, places, PERSON, READ) if person else f"SELECT * FROM {READ}"
    with_rows = f"WITH {READ} AS NOT MATERIALIZED ({read}), {TABLE} AS NOT MATERIALIZED ({kept})"
    return PostgresSource(table, catalogue.parts, places, tuple(names), with_rows, read)
