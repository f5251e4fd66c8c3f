"""The two stores under one set of tests: save one, put it back, write into it as anybody can."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import apsw
from tests.postgres_server import PostgresServer

from sulq.kernel.ledger.state_dir import is_shared, read_place
from sulq.kernel.ledger.stores.postgres import PostgresStore
from sulq.kernel.ledger.stores.sqlite import SqliteStore

Place = str | Path
_names = count()


def new_place(server: PostgresServer) -> str:
    """The address of a ledger that nobody has made yet."""
    return f"{server.url()}&ledger=t{next(_names)}"


def sql(place: Place, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
    """Run `query` beside whoever has the ledger; `events` is its table, `?` a value."""
    if not is_shared(place):
        connection = apsw.Connection(str(place))
        try:
            return connection.execute(query, values).fetchall()
        finally:
            connection.close()
    import psycopg

    found = read_place(str(place))
    text = query.replace("events", found.table).replace("?", "%s")
    with psycopg.connect(found.server, autocommit=True) as server:
        cursor = server.execute(text, values)
        return cursor.fetchall() if cursor.description is not None else []


def store_of(place: Place) -> type:
    return PostgresStore if is_shared(place) else SqliteStore


def save(place: Place) -> Any:
    """A backup."""
    if is_shared(place):
        return sql(place, "select seq, hash, body, noisy, seal from events order by seq")
    return Path(place).read_bytes()


def put_back(place: Place, saved: Any) -> None:
    """The backup in place of what is there."""
    if not is_shared(place):
        Path(place).write_bytes(saved)
        return
    sql(place, "truncate events")
    for row in saved:
        sql(place, "insert into events values (?, ?, ?, ?, ?)", tuple(row))
