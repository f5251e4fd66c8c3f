"""A study over HTTP, PostgreSQL's protocol and the console: each door has all its tables."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import psycopg
import pyarrow as pa
import pytest
from tests.server.conftest import new_key, serving

from sulq import Category, Database, Flag, Number, Promise
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Role
from sulq.server.limits import Settings
from sulq.server.middleware import Log
from sulq.server.postgres.listener import PostgresPort
from sulq.server.service.catalog import Tables
from sulq.studies import EventTable, Study

CLINIC = Study(
    "patients",
    Category("sex", ["F", "M"]),
    Number("age", 0, 100, step=1),
    person="patient_id",
    tables=[
        EventTable(
            "visits", Category("ward", ["eyes", "heart"]), Flag("urgent"), max_rows=2, ceiling=9
        ),
        EventTable("drugs", Number("dose", 0, 9), max_rows=1, ceiling=9, person="pid"),
    ],
)
WARDS = (
    "SELECT ward, p.sex, COUNT(*) AS n FROM visits v JOIN patients p USING (patient_id)"
    " GROUP BY ward, p.sex"
)


def rows() -> dict[str, pa.Table]:
    persons = range(200)
    made: dict[str, dict[str, list[Any]]] = {
        "patients": {
            "patient_id": list(persons),
            "sex": ["FM"[who % 2] for who in persons],
            "age": [who % 100 for who in persons],
        },
        "visits": {
            "patient_id": [who for who in persons for _ in range(3)],
            "ward": ["eyes" for _ in persons for _ in range(3)],
            "urgent": [who % 4 == 0 for who in persons for _ in range(3)],
        },
        "drugs": {"pid": list(persons), "dose": [1.5 for _ in persons]},
    }
    return {name: pa.table(columns) for name, columns in made.items()}


@dataclass
class Doors:
    url: str
    port: int
    database: Database
    tokens: dict[str, str]

    def client(self, who: str = "analyst") -> httpx.Client:
        return httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {self.tokens[who]}"}, timeout=60
        )

    def connected(self, **more: str) -> psycopg.Connection[Any]:
        options = " ".join(f"-c {name}={value}" for name, value in more.items())
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            dbname="clinic",
            user="ann",
            password=self.tokens["analyst"],
            autocommit=True,
            options=options,
        )


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    path, promise = tmp_path_factory.mktemp("study"), Promise(1, "1e-6", queries=500)
    with ExitStack() as closing:
        patch = closing.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("SULQ_STATE", str(path / "state"))
        ledger = path / "clinic.ledger"
        database = closing.enter_context(
            Database.open(rows(), CLINIC, promise, ledger, name="clinic", publish=True)
        )
        database.grant("analyst", 300)
        access, listening = Access.open(), socket.create_server(("127.0.0.1", 0))
        tokens = {str(role): access.lend(str(role), role) for role in Role}
        app = create_app(
            Tables({"clinic": database}),
            access,
            settings=Settings(pacing=False),
            log=Log(io.StringIO()),
            postgres=PostgresPort(listening),
        )
        with serving(app) as url:
            yield Doors(url, listening.getsockname()[1], database, tokens)
        access.close()


def test_sql_about_events_is_quoted_and_answered_over_http(doors: Doors) -> None:
    """Its questions name the table whose rows they sum, also where the clock prices them."""
    with doors.client() as client:
        quoted = client.post("/v1/tables/clinic/quote", json={"sql": WARDS}).json()
        assert quoted["credits"] == 8
        asked = client.post(
            "/v1/tables/clinic/sql", json={"sql": WARDS}, headers={"Idempotency-Key": new_key()}
        )
        assert asked.status_code == 200, asked.text
        assert asked.json()["rows"][0][:2] == ["eyes", "F"]


def test_tools_find_the_tables_of_a_study_and_ask_them(doors: Doors) -> None:
    with doors.connected() as connection:
        listed = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
            " ORDER BY 1"
        ).fetchall()
        assert listed == [("drugs",), ("patients",), ("visits",)]
        cursor = connection.execute("SELECT * FROM visits LIMIT 5")
        assert [column.name for column in cursor.description or ()] == [
            "ward", "urgent", "sex", "age",
        ]  # fmt: skip
        with pytest.raises(psycopg.Error, match="this costs 4 credits"):
            connection.execute("SELECT COUNT(*) FROM public.visits WHERE NOT urgent")
        with pytest.raises(psycopg.Error, match='relation "clinic" does not exist'):
            connection.execute("SELECT COUNT(*) FROM clinic")
    with doors.connected(**{"sulq.credits": "40", "sulq.purpose": "charts"}) as connection:
        found = connection.execute(WARDS).fetchall()
        assert found[0][:2] == ("eyes", "F")
        who = "SELECT COUNT(DISTINCT pid) FROM drugs WHERE dose > %s"
        assert connection.execute(who, (1,)).fetchone() is not None


def test_the_console_shows_the_columns_of_every_table_and_asks_them(doors: Doors) -> None:
    with doors.client("owner") as client:
        page = client.get("/console/clinic/table").text
        for said in ("visits", "ward", "drugs", "dose", "joined by patient_id", "one of visits 4"):
            assert said in page.replace("\N{NO-BREAK SPACE}", " "), said
        assert "EXISTS" in page
        page = client.get("/console/clinic/ask").text
        assert 'data-asked="patients"' in page
        assert all(f'data-column="{name}"' in page for name in ("visits", "ward", "dose", "sex"))
        urgent = "SELECT urgent, COUNT(*) AS n FROM visits GROUP BY urgent"
        quoted = client.post("/console/clinic/quote", json={"sql": urgent})
        assert (quoted.status_code, "8 credits" in quoted.text) == (200, True), quoted.text
