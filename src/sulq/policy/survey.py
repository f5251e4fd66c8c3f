"""A first policy for a file: from its types alone, or, if the owner asks, from its values.

What comes from values is only ever proposed: `proposed = true` keeps a column closed until the
owner says that everybody may know it.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from sulq.engines.csv_files import csv_header, csv_reader
from sulq.engines.physical import INTEGERS, TIMESTAMPS
from sulq.engines.postgres import UNREAD
from sulq.engines.postgres_session import Address, Sessions, complaint, read_address
from sulq.engines.postgres_source import look
from sulq.errors import InvalidQuery, SulqError
from sulq.policy.columns import OPEN, ColumnPolicy
from sulq.policy.tables import TablePolicy
from sulq.schema.promise import Promise

SUGGESTED = Promise(1, "1e-6", 1000)
MOST_PROPOSED = 100
"""More distinct values than this are proposed as open text."""
REAL = {"FLOAT", "DOUBLE", "DECIMAL"}
WHEN = {"DATE", *TIMESTAMPS}
TEXT = {"VARCHAR", "ENUM"}
SERVERS = ("postgresql://", "postgres://")
KINDS = {
    **dict.fromkeys(("int2", "int4", "int8"), "BIGINT"),
    **dict.fromkeys(("float4", "float8", "numeric"), "DOUBLE"),
    **dict.fromkeys(("text", "varchar", "bpchar", "enum"), "VARCHAR"),
    **dict.fromkeys(("timestamp", "timestamptz"), "TIMESTAMP"),
    "date": "DATE",
    "bool": "BOOLEAN",
}
"""PostgreSQL's types by the names of a file's."""
LOOK_SECONDS = 60
ENDINGS = (".parquet", ".csv", ".csv.gz")
_IDENTIFIER = re.compile(r"(^|.*[_. -])(id|uuid|guid|key)", re.IGNORECASE)


class Survey:
    """A file, opened by its owner to write its policy; nothing of it is kept."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise InvalidQuery(f"there is no file {self.path}")
        if not self.path.name.endswith(ENDINGS):
            raise InvalidQuery(f"{self.path.name!r} should end in .parquet, .csv or .csv.gz")
        self._connection = duckdb.connect(":memory:")
        quoted = "'" + str(self.path).replace("'", "''") + "'"
        self._ask("SET temp_directory = ''")
        source = f"read_parquet({quoted}, hive_partitioning = false)"
        names = None
        if self.path.suffix != ".parquet":
            delimiter, names = csv_header(self.path)
            self._ask(f"SELECT count(COLUMNS(*)) FROM {csv_reader(self.path)}")  # noqa: S608
            source = (
                f"read_csv({quoted}, header = true, sample_size = -1, delim = '{delimiter}',"
                " quote = '\"', escape = '\"', comment = '', strict_mode = true,"
                " null_padding = false, hive_partitioning = false)"
            )
        self._ask(f"CREATE VIEW source AS SELECT * FROM {source}")  # noqa: S608
        self.types = {str(row[0]): str(row[1]) for row in self._ask("DESCRIBE source")}
        if names is not None and list(self.types) != names:  # a row was taken for the header
            raise self._unreadable()

    def rows(self) -> int:
        """How many rows the file has: the public n under replace."""
        return int(self._ask("SELECT count(*) FROM source")[0][0])

    def policy(
        self, name: str, source: str, ledger: str, *, from_data: bool
    ) -> tuple[TablePolicy, dict[str, str]]:
        """The table to review, and the comments that go with its columns."""
        columns = []
        kinds = {column: held.split("(")[0] for column, held in self.types.items()}
        drafted, notes = _drafted(kinds)
        for column, facts in drafted.items():
            kind = kinds[column]
            if kind in TEXT and self._like_numbers(column):
                notes[column] = (
                    f"{column} is text, though much of it reads as numbers. Declare a number,"
                    f' "{column}" = {{number = [low, high]}}, and whatever does not read as one'
                    " (NA, n/a, an empty field) is NULL"
                )
            if from_data and facts != {"flag": True}:
                facts = {**self._proposed(column, kind), "proposed": True}
            columns.append(ColumnPolicy(column, facts))
        return TablePolicy(name, source, ledger, SUGGESTED, tuple(columns)), notes

    def _like_numbers(self, column: str) -> bool:
        """True if most of a text column reads as numbers: some word for "missing" is between."""
        x = '"' + column.replace('"', '""') + '"'
        number = f"count(TRY_CAST(trim(CAST({x} AS VARCHAR)) AS DOUBLE))"
        share = self._ask(f"SELECT {number}, count({x}) FROM source")[0]  # noqa: S608
        return bool(share[1]) and 2 * int(share[0]) > int(share[1])

    def _proposed(self, column: str, kind: str) -> dict[str, Any]:
        x = '"' + column.replace('"', '""') + '"'
        if kind in TEXT:
            found = self._ask(
                f"SELECT DISTINCT {x} FROM source WHERE {x} IS NOT NULL ORDER BY 1"  # noqa: S608
                f" LIMIT {MOST_PROPOSED + 1}"
            )
            values = [str(row[0]) for row in found]
            return {"category": values} if 0 < len(values) <= MOST_PROPOSED else {"text": True}
        where = f" WHERE isfinite({x})" if kind in WHEN | {"FLOAT", "DOUBLE"} else ""
        low, high = self._ask(f"SELECT min({x}), max({x}) FROM source{where}")[0]  # noqa: S608
        if low is None:
            return {"number": [OPEN, OPEN]}
        if kind in WHEN:
            return {"number": _whole_years(low, high, kind)}
        if kind in INTEGERS:
            if low >= 0 and high <= 1:
                return {"flag": True}
            return {"number": _outward(low, high), "step": 1}
        return {"number": _outward(low, high)}

    def _ask(self, sql: str) -> list[Any]:
        """The engine's own words may quote rows: they are dropped."""
        found: list[Any] | None = None
        try:
            found = self._connection.execute(sql).fetchall()
        except duckdb.Error:
            found = None
        if found is None:
            raise self._unreadable()
        return found

    def _unreadable(self) -> InvalidQuery:
        return InvalidQuery(
            f"{self.path.name} cannot be read; give a Parquet file, or a CSV file in UTF-8 with a"
            " header line and as many fields in every row"
        )

    def close(self) -> None:
        self._connection.close()


def server_policy(address: str, name: str | None = None) -> tuple[TablePolicy, dict[str, str]]:
    """The same for a table in PostgreSQL, from the catalogue's types: no row is read."""
    if not address.lower().startswith(SERVERS):
        raise InvalidQuery(
            "a policy is drafted from a file here, or from a table in PostgreSQL; for another"
            " address draft it from a copy of the file, and write the address as its source"
        )
    place = read_address(address)
    called = name or re.sub(r"\W+", "_", place.table)
    drafted, notes = _drafted({
        column: KINDS.get(kind, kind) for column, kind in _types(place).items()
    })  # fmt: skip
    columns = tuple(ColumnPolicy(column, facts) for column, facts in drafted.items())
    return TablePolicy(called, address, f"{called}.ledger", SUGGESTED, columns), notes


def _types(place: Address) -> dict[str, str]:
    sessions = Sessions(place, None)
    unread = ""
    try:
        with sessions.reading(LOOK_SECONDS) as cursor:
            catalogue, _ = look(cursor, place)
    except SulqError:
        raise
    except Exception as error:  # noqa: BLE001 - the server's own words may quote the address
        unread = complaint(error) or UNREAD
    finally:
        sessions.close()
    if unread:
        raise InvalidQuery(unread)
    return {column.name: column.kind for column in catalogue.columns}


def _drafted(kinds: Mapping[str, str]) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """What the types say of each column, and notes on those that stay hidden."""
    drafted, notes = dict[str, dict[str, Any]](), dict[str, str]()
    for column, kind in kinds.items():
        facts = _by_type(kind)
        if _IDENTIFIER.fullmatch(column):
            notes[column] = (
                f"{column} looks like an identifier and stays hidden. If one person may have"
                f' several rows:\nunit = {{column = "{column}", max_rows = 4}}'
            )
        elif facts is None:
            notes[column] = f"{column} has type {kind}, which cannot be asked about: hidden"
        else:
            drafted[column] = facts
    if not drafted:
        raise InvalidQuery("there is no column that can be asked about")
    return drafted, notes


def _by_type(kind: str) -> dict[str, Any] | None:
    if kind == "BOOLEAN":
        return {"flag": True}
    if kind in INTEGERS:
        return {"number": [OPEN, OPEN], "step": 1}
    if kind in REAL or kind in WHEN:
        return {"number": [OPEN, OPEN]}
    return {"category": [OPEN]} if kind in TEXT else None


def _outward(low: float | int | Decimal, high: float | int | Decimal) -> list[int | Decimal]:
    """Round bounds, a little wider: two significant digits of the range."""
    width = float(high) - float(low) or max(abs(float(high)), 1.0)
    place = math.floor(math.log10(width)) - 1
    unit = Decimal(1).scaleb(place)
    bottom = math.floor(Decimal(str(low)) / unit) * unit
    top = math.ceil(Decimal(str(high)) / unit) * unit
    if bottom == top:
        top += unit
    if place >= 0:
        return [int(bottom), int(top)]
    return [bottom, top]


def _whole_years(low: Any, high: Any, kind: str) -> list[datetime.date]:
    first, last = int(low.year), min(int(high.year) + 1, 9999)
    if kind == "DATE":
        return [datetime.date(first, 1, 1), datetime.date(last, 1, 1)]
    return [datetime.datetime(first, 1, 1), datetime.datetime(last, 1, 1)]
