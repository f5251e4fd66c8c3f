"""The awkward tables of `tables`, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.kernel.engines.reference import Row
from tests.postgres_server import NO_DRIVER, PostgresServer

psycopg = pytest.importorskip("psycopg", reason=NO_DRIVER)

AWKWARD = {
    "x": "double precision",
    "y": "double precision",
    "z": "double precision",
    "n": "integer",
    "m": "bigint",
    "d": "numeric(12, 4)",
    "small": "smallint",
    "city": "text",
    "name": "varchar",
    "code": "bigint",
    "smoker": "boolean",
    "bit": "smallint",
}


def fill(server: PostgresServer, table: str, types: Mapping[str, str], rows: Sequence[Row]) -> str:
    """Make the table anew with these rows; its address."""
    columns = ", ".join(f'"{name}" {kind}' for name, kind in types.items())
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f'DROP TABLE IF EXISTS "{table}"; CREATE TABLE "{table}" ({columns})')
        with connection.cursor() as cursor, cursor.copy(f'COPY "{table}" FROM STDIN') as copy:
            for row in rows:
                copy.write_row([row[name] for name in types])
    return server.url(table=table)


def storable(rows: Sequence[Row]) -> list[Row]:
    """Without the one character that PostgreSQL's text cannot hold."""
    return [
        {
            name: value.replace("\0", "0") if isinstance(value, str) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def run(server: PostgresServer, sql: str) -> list[Any]:
    """A statement of the owner's, or several."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        cursor = connection.execute(sql)
        return cursor.fetchall() if cursor.description else []
