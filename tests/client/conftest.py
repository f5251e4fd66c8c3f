"""Tables behind a real server (uvicorn in a thread), and the same tables here."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import serving

from sulq import Database
from sulq.client import Remote, connect
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Role
from sulq.server.limits import Settings
from sulq.server.middleware import Log
from sulq.server.service.catalog import Tables


@dataclass
class Far:
    """A server, the databases behind it, and who may ask them."""

    url: str
    databases: dict[str, Database]
    access: Access
    tables: Tables
    tokens: dict[str, str] = field(default_factory=dict)
    clients: list[Remote] = field(default_factory=list)

    def remote(self, table: str = "people", who: str = "owner", **more: Any) -> Remote:
        found = connect(f"{self.url}/{table}", token=self.tokens[who], **more)
        self.clients.append(found)
        return found


@contextmanager
def far(state: Path, **databases: Database) -> Iterator[Far]:
    """Serve these databases without pacing."""
    with ExitStack() as closing:
        for database in databases.values():
            closing.enter_context(database)
        access = Access.open()
        closing.callback(access.close)
        tables = Tables(databases)
        app = create_app(tables, access, settings=Settings(pacing=False), log=Log(io.StringIO()))
        url = closing.enter_context(serving(app))
        found = Far(url, databases, access, tables)
        found.tokens = {str(role): access.lend(str(role), role) for role in Role}
        try:
            yield found
        finally:
            for client in found.clients:
                client.close()


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SULQ_TOKEN", raising=False)
    monkeypatch.delenv("SULQ_URL", raising=False)
