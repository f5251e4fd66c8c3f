"""A real server: uvicorn in a thread, a Parquet table on a ledger file, one token for each role."""

from __future__ import annotations

import io
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import duckdb
import httpx
import pytest
import uvicorn
from tests.server.serving import PromptServer
from tests.waiting import LONGEST, come

from sulq import Category, Database, Flag, Number, Promise, Schema
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Role
from sulq.server.limits import Settings
from sulq.server.middleware import Log
from sulq.server.service.catalog import Tables

SCHEMA = Schema(
    Number("age", 0, 110, step=1),
    Number("income", 0, 200_000),
    Flag("smoker"),
    Category("region", ["North", "South"], public=True),
    Category("illness", ["none", "asthma", "diabetes"]),
)
PROMISE = Promise(epsilon=1, delta="1e-6", queries=100)
ROWS = 5_000
CANARY = "canary-7f3a91"
"""In a hidden column of the table: it must appear nowhere."""


def write_people(path: Path, rows: int = ROWS) -> Path:
    path.write_bytes(people(rows))
    return path


@cache
def people(rows: int) -> bytes:
    with NamedTemporaryFile(suffix=".parquet") as file:
        duckdb.sql(
            "SELECT i AS person_id, i * 7 % 90 AS age, i * 13 % 90000 AS income,"
            " i % 4 = 0 AS smoker, ['North', 'South'][i % 2 + 1] AS region,"
            " ['none', 'asthma', 'diabetes'][i % 3 + 1] AS illness,"
            f" '{CANARY}-' || i AS note FROM range({rows}) AS t(i)"
        ).write_parquet(file.name)
        return Path(file.name).read_bytes()


def new_key() -> str:
    return secrets.token_hex(8)


@dataclass
class Served:
    """A server that runs, and what a test wants to know of it."""

    url: str
    app: Any
    access: Access
    databases: dict[str, Database]
    tokens: dict[str, str]
    log: io.StringIO
    clients: list[httpx.Client] = field(default_factory=list)

    @property
    def database(self) -> Database:
        return self.databases["people"]

    def logged(self, least: int) -> str:
        """The log, once it has so many lines: they are written after the replies."""
        come(lambda: len(self.log.getvalue().splitlines()) >= least, self.log.getvalue())
        return self.log.getvalue()

    def client(self, who: str | None = "analyst", **more: Any) -> httpx.Client:
        """An HTTP client with the token of a role, or of an analyst by name; None: without."""
        headers = {} if who is None else {"Authorization": f"Bearer {self.tokens[who]}"}
        made = httpx.Client(base_url=self.url, headers=headers, timeout=LONGEST, **more)
        self.clients.append(made)
        return made

    def post(self, path: str, body: Any, who: str = "analyst", key: str | None = None) -> Any:
        """POST below /v1/tables/people, with a key."""
        headers = {"Idempotency-Key": key or new_key()}
        return self.client(who).post(f"/v1/tables/people/{path}", json=body, headers=headers)

    def get(self, path: str, who: str = "analyst", **more: Any) -> Any:
        return self.client(who).get(f"/v1/tables/people/{path}", **more)


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """uvicorn in a thread; the address."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, server_header=False)
    running = PromptServer(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    come(lambda: running.started or not thread.is_alive())
    port = running.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        running.should_exit = True
        thread.join(LONGEST)


@contextmanager
def served(
    directory: Path, settings: Settings, promise: Promise = PROMISE, **databases: Database
) -> Iterator[Served]:
    """A server of `people`, and of further databases by name."""
    source = write_people(directory / "people.parquet")
    ledger = directory / "people.ledger"
    with Database.open(source, SCHEMA, promise, ledger, name="people", publish=True) as database:
        database.grant("analyst", 40)
        database.grant("rival", 10)
        access, log = Access.open(), io.StringIO()
        tokens = {str(role): access.lend(str(role), role) for role in Role}
        tokens["rival"] = access.lend("rival", Role.ANALYST)
        tables = {"people": database, **databases}
        app = create_app(Tables(tables), access, settings=settings, log=Log(log))
        found = Served("", app, access, tables, tokens, log)
        try:
            with serving(app) as found.url:
                yield found
        finally:
            for client in found.clients:
                client.close()
            access.close()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of the test's own."""
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def server(tmp_path: Path, state: Path) -> Iterator[Served]:
    """A server without pacing: `people`, tokens for owner, analyst, auditor and a rival analyst."""
    with served(tmp_path, Settings(pacing=False)) as found:
        yield found


@pytest.fixture
def paced_server(tmp_path: Path, state: Path) -> Iterator[Served]:
    with served(tmp_path, Settings()) as found:
        yield found
