"""A server with its PostgreSQL port open, and a table of each kind of column."""

from __future__ import annotations

import datetime
import io
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.people import SCHEMA, frame
from tests.server.conftest import serving

from sulq import Database, Number, Promise, Schema
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Role
from sulq.server.limits import Settings
from sulq.server.middleware import Log
from sulq.server.postgres.listener import PostgresPort
from sulq.server.service.catalog import Tables

WITH_DAYS = Schema(
    *SCHEMA.columns,
    Number("day", datetime.date(2020, 1, 1), datetime.date(2024, 12, 31)),
    Number("seen", datetime.datetime(2020, 1, 1), datetime.datetime(2024, 12, 31)),
)
CHARTS = (
    "SELECT COUNT(*) AS n FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE smoker",
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
    "SELECT blood, COUNT(*) AS n FROM people GROUP BY blood",
    'SELECT "public"."people"."blood" AS "blood", COUNT(*) AS "count" FROM "public"."people"'
    ' GROUP BY "public"."people"."blood" ORDER BY "public"."people"."blood" ASC',
    "SELECT blood, AVG(income) AS pay FROM people GROUP BY blood ORDER BY pay DESC",
    "SELECT blood, SUM(age) AS years FROM people GROUP BY blood",
    "SELECT smoker, COUNT(*) AS n FROM people GROUP BY smoker",
    "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY 1",
    "SELECT AVG(age) AS a FROM people WHERE blood = 'A'",
    "SELECT MEDIAN(age) AS m FROM people",
    "SELECT AVG(day) AS d FROM people",
    "SELECT DATE_TRUNC('year', day) AS y, COUNT(*) AS n FROM people GROUP BY 1",
    "SELECT EXTRACT(YEAR FROM day) AS y, COUNT(*) AS n FROM people GROUP BY 1",
    "SELECT blood, smoker, COUNT(*) AS n FROM people GROUP BY blood, smoker",
    "SELECT COUNT(*) AS n FROM people WHERE age BETWEEN 20 AND 40",
    "SELECT blood, n FROM (SELECT blood, COUNT(*) AS n FROM people GROUP BY blood) t WHERE n > 0",
    "SELECT CASE WHEN age >= 65 THEN 'old' ELSE 'young' END AS g, COUNT(*) AS n FROM people"
    " GROUP BY 1",
    "SELECT STDDEV(age) AS s FROM people",
    "SELECT DISTINCT blood FROM people ORDER BY blood",
)
"""What the tiles of a dashboard ask."""
BROWSED = (
    "SELECT 1",
    "SELECT version()",
    "SELECT current_schema()",
    "SHOW server_version",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'",
    "SELECT * FROM people LIMIT 100",
    'SELECT * FROM "public"."people" WHERE 1 = 0',
    "SELECT age, city FROM people LIMIT 10",
)
"""What tools look at before anybody draws a chart."""


@dataclass
class Door:
    """A server, its tables and tokens, and where PostgreSQL's protocol is spoken."""

    url: str
    port: int
    database: Database
    access: Access
    tokens: dict[str, str]
    log: io.StringIO
    app: Any
    listening: socket.socket

    def options(self, purpose: str | None = None, credits: int = 100, **more: str) -> str:
        """The options of a connection that may spend."""
        said = {f"sulq.{name}": value for name, value in more.items()}
        if purpose is not None:
            said |= {"sulq.credits": str(credits), "sulq.purpose": purpose}
        return " ".join(f"-c {name}={value}" for name, value in said.items())

    def given(self, who: str = "analyst", **more: Any) -> dict[str, Any]:
        """What psycopg connects with."""
        where = {"host": "127.0.0.1", "port": self.port, "dbname": "people", "user": who}
        return where | {"password": self.tokens[who]} | more

    @property
    def left(self) -> Any:
        return self.database.left_for("analyst")


def rows() -> pd.DataFrame:
    found = frame()
    found["day"] = pd.Timestamp("2022-03-04")
    found["seen"] = pd.Timestamp("2022-03-04 10:00")
    return found


@contextmanager
def opened(
    directory: Path,
    settings: Settings = Settings(pacing=False),  # noqa: B008 - a frozen value
    source: Any = None,
    **more: Any,
) -> Iterator[Door]:
    """Serve `people` over HTTP and over PostgreSQL's protocol."""
    promise = Promise(1, "1e-6", queries=2_000)
    given = rows() if source is None else source
    ledger = directory / "people.ledger"
    with Database.open(given, WITH_DAYS, promise, ledger, name="people", publish=True) as database:
        database.grant("analyst", 1_500)
        access, log = Access.open(), io.StringIO()
        tokens = {str(role): access.lend(str(role), role) for role in Role}
        listening = socket.create_server(("127.0.0.1", 0))
        app = create_app(
            Tables({"people": database}),
            access,
            settings=settings,
            log=Log(log),
            postgres=PostgresPort(listening, **more),
        )
        port = listening.getsockname()[1]
        with serving(app) as url:
            yield Door(url, port, database, access, tokens, log, app, listening)
        access.close()


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("door")
        patch.setenv("SULQ_STATE", str(path / "state"))
        with opened(path) as found:
            yield found
