"""A running server tells the command line of this machine where it is.

One process holds a ledger. While a server does, `sulq grant` and its kin go through it: it leaves
its address and a token that is good in its own memory only, in <state>/serving/<ledger>.json,
readable by the owner alone. What a killed server left behind is noticed and removed.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from sulq.errors import Refused, SulqError
from sulq.kernel.ledger.file import path_home
from sulq.kernel.ledger.state_dir import (
    location_name,
    private_directory,
    private_path,
    read_private,
    write_private,
)
from sulq.server.auth.tokens import Access, Role
from sulq.server.service.catalog import Tables
from sulq.wire.errors import Problem, error_of

LOCAL = "this machine"
"""The name under which the command line of this machine comes in."""
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class RunningServer:
    """Where a server is, and how the owner of this machine talks to it."""

    url: str
    token: str
    process: int
    tables: Mapping[str, str]
    """The ledger's names of its tables, and what they are served as."""
    certificate: str | None = None

    def request(self, method: str, path: str, body: object = None, **query: str) -> Any:
        """The reply as data; what the server refuses is raised here."""
        headers = {"Authorization": f"Bearer {self.token}"}
        try:
            with httpx.Client(
                base_url=self.url, verify=self._trust(), timeout=PATIENCE, trust_env=False
            ) as client:
                reply = client.request(method, path, json=body, headers=headers, params=query)
        except httpx.HTTPError:
            raise Refused(f"the server at {self.url} does not answer; look at its log") from None
        if reply.is_error:
            raise error_of(Problem.model_validate_json(reply.content))
        return reply.json()

    def path(self, table: str) -> str:
        """Where it serves a table of the ledger."""
        if (served := self.tables.get(table)) is None:
            raise Refused(
                f"the server at {self.url} holds the ledger but does not serve {table!r};"
                " start it again with this table, or stop it: revoke and close need no rows"
            )
        return f"/v1/tables/{quote(served, safe='')}"

    def _trust(self) -> ssl.SSLContext | bool:
        """This very certificate, whatever name it was made out to."""
        if self.certificate is None:
            return True
        context = ssl.create_default_context(cafile=self.certificate)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.check_hostname = False
        return context

    def answers(self) -> bool:
        """Whether this server is still there and knows its token."""
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        try:
            return bool(self.request("GET", "/v1/me").get("role") == str(Role.OWNER))
        except (SulqError, AttributeError, ValueError):
            return False


@contextmanager
def announced(
    tables: Tables, access: Access, url: str, certificate: Path | None = None
) -> Iterator[None]:
    """Tell where the server is while it runs, of new tables too; nothing is left behind."""
    token = access.lend(LOCAL, Role.OWNER)
    pem = None if certificate is None else str(certificate.absolute())
    home, told = private_directory("serving"), dict[Path, bytes]()

    def tell() -> None:
        for ledger, served in _by_ledger(tables).items():
            path = home / f"{ledger}.json"
            told[path] = json.dumps(
                asdict(RunningServer(url, token, os.getpid(), served, pem))
            ).encode()
            write_private(path, told[path], replace=True)

    tell()
    tables.on_change = tell
    try:
        yield
    finally:
        tables.on_change = None
        for path, said in told.items():
            with suppress(OSError, Refused):
                if read_private(path) == said:
                    path.unlink(missing_ok=True)


def _by_ledger(tables: Tables) -> dict[str, dict[str, str]]:
    """What each ledger's tables are served as."""
    found: dict[str, dict[str, str]] = {}
    for name in tables.names():
        said = tables[name].statement().statement
        found.setdefault(said.ledger, {})[said.table] = name
    return found


def serving(ledger: str | Path) -> RunningServer | None:
    """The server that holds the ledger at this path, if one does and answers."""
    known = read_private(path_home(location_name(ledger)) / "ledger")
    if not known:
        return None
    path = private_path("serving", known.decode("ascii", "replace") + ".json")
    content = read_private(path)
    if content is None:
        return None
    with suppress(ValueError, TypeError, KeyError):
        found = RunningServer(**json.loads(content))
        if found.answers():
            return found
    with suppress(OSError):  # left behind by a server that was killed
        if read_private(path) == content:
            path.unlink(missing_ok=True)
    return None
